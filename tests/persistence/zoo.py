"""A fitted model of every type that a file may hold, small ones."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA, FastICA, IncrementalPCA, TruncatedSVD
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import (
    AdaBoostRegressor,
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.feature_selection import (
    RFE,
    RFECV,
    GenericUnivariateSelect,
    SelectFdr,
    SelectFpr,
    SelectFromModel,
    SelectFwe,
    SelectKBest,
    SelectPercentile,
    SequentialFeatureSelector,
    VarianceThreshold,
    f_regression,
    mutual_info_regression,
    r_regression,
)
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.isotonic import IsotonicRegression
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Lasso, LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, KFold, RandomizedSearchCV, ShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor, RadiusNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
    TargetEncoder,
)
from sklearn.svm import SVR, LinearSVR, NuSVR
from sklearn.tree import DecisionTreeRegressor, ExtraTreeRegressor

from coterie.candidates import KNOWN
from coterie.models.boosting import BoostedClasses, BoostedTrees, LogOddsTrees
from coterie.models.classes import OneClass, VotingForest
from coterie.models.forest import QuickForest, RandomCuts
from coterie.models.logistic import QuickLogistic

SEED = {"random_state": 0}
_drawn = np.random.default_rng(0)
X = _drawn.normal(size=(40, 4))
X[:, 3] = _drawn.integers(0, 3, 40)
y = np.abs(X[:, 0] + X[:, 1] * X[:, 2] + X[:, 3]) + 1

_LINES = (
    *("ARDRegression", "BayesianRidge", "ElasticNet", "ElasticNetCV", "GammaRegressor", "HuberRegressor"),
    *("Lars", "LarsCV", "Lasso", "LassoCV", "LassoLars", "LassoLarsCV", "LassoLarsIC", "LinearRegression"),
    *("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV"),
    *("PoissonRegressor", "QuantileRegressor", "RANSACRegressor", "Ridge", "RidgeCV", "SGDRegressor"),
    *("TheilSenRegressor", "TweedieRegressor"),
)
_SCALERS = (
    *(MaxAbsScaler(), MinMaxScaler(), RobustScaler(), StandardScaler(), Binarizer(), Normalizer()),
    *(PowerTransformer(), QuantileTransformer(n_quantiles=10), PolynomialFeatures(2)),
    *(PolynomialFeatures((2, 3), interaction_only=True), FunctionTransformer(np.arcsinh)),
    *(KBinsDiscretizer(3), KBinsDiscretizer(3, encode="ordinal"), TargetEncoder(cv=2)),
    *(SimpleImputer(), SimpleImputer(add_indicator=True), KNNImputer(n_neighbors=2)),
    *(PCA(2), IncrementalPCA(2), TruncatedSVD(2), FastICA(2, **SEED)),
    *(Nystroem(n_components=5, **SEED), RBFSampler(n_components=5, **SEED)),
    *(SelectKBest(f_regression, k=2), SelectPercentile(r_regression), SelectFpr(f_regression, alpha=0.9)),
    *(SelectFdr(f_regression, alpha=0.9), SelectFwe(f_regression, alpha=0.9)),
    *(GenericUnivariateSelect(mutual_info_regression, mode="k_best", param=2), SelectFromModel(Lasso(0.01))),
    *(RFE(Ridge()), RFECV(Ridge(), cv=2), SequentialFeatureSelector(Ridge(), cv=2), VarianceThreshold()),
)
_ONE_HOT = ColumnTransformer(
    [("codes", OneHotEncoder(drop="first"), [3]), ("order", OrdinalEncoder(), slice(3, 4))],
    remainder=StandardScaler(),
)
_KERNEL = kernels.CompoundKernel([kernels.RBF()]).kernels[0] + kernels.ConstantKernel() * kernels.Matern()
_OTHER_KERNEL = kernels.RationalQuadratic() ** 2 + kernels.DotProduct() + kernels.ExpSineSquared()


def _quick_presets() -> dict[str, Any]:
    made = {f"preset {name}": make() for name, make in KNOWN.items()}
    made["preset rf"].set_params(regressor__n_estimators=3)
    made["preset gb"].set_params(regressor__n_estimators=3)
    made["preset nn"].set_params(regressor__mlpregressor__max_iter=5)
    return made


MODELS: dict[str, Any] = {
    **{name: getattr(linear_model, name)() for name in _LINES},
    **{
        type(step).__name__ + f" {place}": make_pipeline(step, Ridge()) for place, step in enumerate(_SCALERS)
    },
    **_quick_presets(),
    "LinearSVR": LinearSVR(max_iter=10),
    "PLSRegression": PLSRegression(2),
    "DecisionTreeRegressor": DecisionTreeRegressor(max_depth=3),
    "ExtraTreeRegressor": ExtraTreeRegressor(max_depth=3, **SEED),
    "RandomForestRegressor": RandomForestRegressor(3, max_depth=3, **SEED),
    "ExtraTreesRegressor": ExtraTreesRegressor(3, max_depth=3, **SEED),
    "QuickForest": QuickForest(3, max_depth=3, **SEED),
    "RandomCuts": RandomCuts(3, max_depth=3, **SEED),
    "GradientBoostingRegressor": GradientBoostingRegressor(n_estimators=3, **SEED),
    "huber": GradientBoostingRegressor(loss="huber", n_estimators=3, **SEED),
    "quantile": GradientBoostingRegressor(loss="quantile", n_estimators=3, subsample=0.5, **SEED),
    "HistGradientBoostingRegressor": HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5, **SEED),
    "gamma": HistGradientBoostingRegressor(loss="gamma", max_iter=2, min_samples_leaf=5, **SEED),
    "poisson": HistGradientBoostingRegressor(loss="poisson", max_iter=2, min_samples_leaf=5, **SEED),
    "categories": HistGradientBoostingRegressor(categorical_features=[3], max_iter=3, min_samples_leaf=3),
    "BoostedTrees": BoostedTrees(max_iter=2, min_samples_leaf=5, early_stopping=True, **SEED),
    "kd": KNeighborsRegressor(3, algorithm="kd_tree", leaf_size=5),
    "ball": KNeighborsRegressor(3, algorithm="ball_tree", leaf_size=5, p=1),
    "brute": KNeighborsRegressor(3, algorithm="brute", weights="distance"),
    "minkowski": KNeighborsRegressor(3, p=3),
    "radius": RadiusNeighborsRegressor(5.0),
    "SVR": SVR(),
    "NuSVR": NuSVR(kernel="poly"),
    "KernelRidge": KernelRidge(kernel="rbf"),
    "process": GaussianProcessRegressor(_KERNEL + kernels.WhiteKernel(), optimizer=None),
    "other process": GaussianProcessRegressor(_OTHER_KERNEL, alpha=10.0, optimizer=None),
    "lengths in a list": GaussianProcessRegressor(kernels.RBF([1.0, 2.0, 1.0, 1.0]), n_restarts_optimizer=1),
    "lengths": GaussianProcessRegressor(kernels.RBF(np.ones(4)), optimizer=None),
    "lbfgs": MLPRegressor(hidden_layer_sizes=(3,), solver="lbfgs", max_iter=5, **SEED),
    "adam": MLPRegressor(hidden_layer_sizes=(3, 2), max_iter=3, **SEED),
    "sgd": MLPRegressor(hidden_layer_sizes=(3,), solver="sgd", max_iter=3, learning_rate_init=1e-6, **SEED),
    "DummyRegressor": DummyRegressor(),
    "IsotonicRegression": make_pipeline(SelectKBest(f_regression, k=1), IsotonicRegression()),
    "AdaBoostRegressor": AdaBoostRegressor(DecisionTreeRegressor(max_depth=2), n_estimators=3, **SEED),
    "BaggingRegressor": BaggingRegressor(Ridge(), n_estimators=3, max_features=0.5, **SEED),
    "StackingRegressor": StackingRegressor([("a", Ridge()), ("b", Lasso())], passthrough=True, cv=2),
    "VotingRegressor": VotingRegressor([("a", Ridge()), ("b", Lasso())], weights=[1, 2]),
    "target": TransformedTargetRegressor(Ridge(), transformer=StandardScaler()),
    "function": TransformedTargetRegressor(Ridge(), func=np.log1p, inverse_func=np.expm1),
    "grid": GridSearchCV(make_pipeline(StandardScaler(), Ridge()), {"ridge__alpha": [0.1, 1.0]}, cv=2),
    "steps": GridSearchCV(
        make_pipeline(StandardScaler(), Ridge()), {"ridge": [Lasso(), Ridge()]}, cv=KFold(2)
    ),
    "draws": RandomizedSearchCV(
        Ridge(), {"alpha": [0.1, 1.0, 2.0]}, n_iter=2, cv=ShuffleSplit(2, **SEED), scoring=None, **SEED
    ),
    "union": make_pipeline(FeatureUnion([("a", StandardScaler()), ("b", PCA(2))]), Ridge()),
    "columns": make_pipeline(_ONE_HOT, LinearRegression()),
}


_TWO, _THREE = (y > 2).astype(int), np.digitize(y, [1.5, 3.0])
_BOOSTED = {"max_iter": 3, "min_samples_leaf": 3, **SEED}
CLASSIFIERS: dict[str, tuple[Any, Any]] = {
    f"{type(make()).__name__} of {count}": (make(), target)
    for count, target in (("two", _TWO), ("three", _THREE))
    for make in (
        QuickLogistic,
        linear_model.LogisticRegression,
        lambda: BoostedClasses(categorical_features=[3], early_stopping=True, **_BOOSTED),
        lambda: VotingForest(QuickForest(3, max_depth=3, **SEED)),
        lambda: KNeighborsClassifier(3),
    )
}
CLASSIFIERS |= {
    "OneClass": (OneClass(), np.zeros(40, dtype=int)),
    "RandomCuts of classes": (VotingForest(RandomCuts(3, max_depth=3, **SEED)), _THREE),
    "KNeighborsClassifier by a tree": (KNeighborsClassifier(3, algorithm="kd_tree"), _THREE),
    "LogisticRegressionCV": (linear_model.LogisticRegressionCV(Cs=2, cv=2), _TWO),
}
MODELS |= {name: model for name, (model, _) in CLASSIFIERS.items()}
MODELS["LogOddsTrees"] = LogOddsTrees(BoostedTrees(**_BOOSTED))


def fitted(name: str) -> Any:
    """Fit a model of the zoo."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if name == "LogOddsTrees":
            return MODELS[name].fit(X, np.column_stack([y, -y]), np.ones((len(y), 2)))
        return MODELS[name].fit(X, CLASSIFIERS[name][1] if name in CLASSIFIERS else y)
