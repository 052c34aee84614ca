"""The types that a file may hold, with what each of them may be made of: a security boundary.

A file may come from anybody. A type that is not here, and that the user does not trust, is
refused: making its objects could run code.

One table, `TYPES`: a line names the types of a module and the attributes that their code relies on. Its `Row`
checks the attributes of an object.

- An attribute with a rule has to follow it, and a fitted object has all of them, less those whose names end
  in ``?``. Letters stand for sizes that have to agree: ``p`` is the number of features.
- Parameters follow the rules of their names (`coterie.persistence.parameters`).
- Any other attribute may hold data, and never stands in the place of a method.

To allow a type, add its line here and a model of it to ``tests/persistence/zoo.py``, from where the tests and
the fuzzer take it. Where compiled code follows its numbers, `coterie.persistence.sound` says what they need.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NoReturn

from coterie.persistence import compiled, rules, sound
from coterie.persistence.archive import PersistenceError, unfit
from coterie.persistence.compiled import Build
from coterie.persistence.parameters import MAX_COLUMNS, cleaned, may_be, setting
from coterie.persistence.rules import Rule, Sizes, array, count, each, either, is_plain, real, rules_of, text


def _parameters_of(cls: Callable[..., Any]) -> frozenset[str]:
    """Return the names of a class's parameters."""
    named = inspect.signature(cls).parameters.values()
    return frozenset(p.name for p in named if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY))


@dataclass(frozen=True)
class Row:
    """What an object of a type may be made of.

    ``fitted`` are the attributes that its code relies on, ``optional`` those that a fitted object may lack,
    and ``parameters`` those for which the rule of their name is too wide. ``sound`` tells whether attributes
    that pass one by one also fit each other. ``build`` makes an object of compiled code from its arguments
    and its state. ``loader`` is how skops writes the type.
    """

    fitted: Mapping[str, Rule] = field(default_factory=dict)
    optional: Mapping[str, Rule] = field(default_factory=dict)
    parameters: Mapping[str, Rule] = field(default_factory=dict)
    sound: Callable[[dict[str, Any]], bool] | None = None
    build: Build | None = None
    loader: str = "ObjectNode"

    def checked(self, cls: type[Any], name: str, state: Any) -> dict[str, Any] | None:
        """Return the attributes to make an object of type ``cls`` with, once all are allowed.

        None, for an object without attributes, stays None. ``state`` is what the file says of the object,
        which may be hostile, and ``name`` its dotted name for the error.
        """
        if state is None:
            return None
        if not isinstance(state, dict) or not all(type(key) is str for key in state):
            raise unfit(f"holds a {cls.__name__} without attributes")
        attributes = cleaned(state)
        sizes: Sizes = {}
        if count(MAX_COLUMNS, 1)(state.get("n_features_in_"), sizes):
            sizes["p"] = int(state["n_features_in_"])
        parameter_rules = {key: partial(may_be, key) for key in _parameters_of(cls)}
        rules: dict[str, Rule] = {**parameter_rules, **self.parameters, **self.optional, **self.fitted}
        # In the order of the table: the first array sets a size, and the others have to agree.
        in_table = [key for key in (*self.fitted, *self.optional) if key in attributes]
        for key in dict.fromkeys([*in_table, *attributes]):
            # An attribute of the class itself is a method, or a constant that its code relies on.
            free = key.isidentifier() and not hasattr(cls, key)
            value = attributes[key]
            if not (rules[key](value, sizes) if key in rules else free and is_plain(value)):
                self._refuse(cls, name, key)
        # An object has all that fitting makes, or, not fitted yet, nothing of it.
        needed = self.fitted.keys()
        whole = needed <= attributes.keys() or needed.isdisjoint(attributes)
        if not whole or not (self.sound is None or needed.isdisjoint(attributes) or self.sound(attributes)):
            raise unfit(f"holds a {cls.__name__} whose parts do not fit each other")
        return attributes

    def _refuse(self, cls: type[Any], name: str, key: str) -> NoReturn:
        """Refuse the attribute ``key``, and say how to trust the type; ``name`` is its dotted name.

        An attribute that compiled code relies on is refused without that remedy.
        """
        if key in self.fitted or key in self.optional:
            raise unfit(f"holds a {cls.__name__} whose parts do not fit each other ({key!r})")
        raise PersistenceError(
            f"The file holds a {cls.__name__} whose {key!r} is not among what coterie trusts: if you know it "
            f"and trust where the file comes from, use load(path, trusted=[{name!r}])."
        )


# Words for rules in the rows of the table below, beside those of `coterie.persistence.rules`.
_NAMED: dict[str, Rule] = {
    "choice": sound.chosen,
    "columns": sound.columns,
    "continuous": text("continuous"),
    "degree": count(25),
    "false": sound.no,
    "identity": text("identity"),
    "indices": rules.within("<p", "p"),
    "layers": count(1000),
    "many": count(2**31),
    "method": text("kd_tree", "ball_tree", "brute"),
    "metric": text(*sound.METRICS),
    "nodes": array("n", "V"),
    "one": count(1, 1),
    "part": setting,
    "powers": either(array("p"), each(real)),
    "predict": text("predict"),
    "scalar": either(real, array("1"), array("")),
    "width": count(MAX_COLUMNS, 1),
}


def _row(fitted: str, **more: Any) -> Row:
    """Return a row; ``fitted`` reads as "coef_: p, intercept_: scalar, _base_loss?: part".

    A name with ``?`` is optional. ``more`` are the other fields of `Row`.
    """
    read = rules_of(fitted, _NAMED)
    optional = {name[:-1]: rule for name, rule in read.items() if name.endswith("?")}
    needed = {name: rule for name, rule in read.items() if not name.endswith("?")}
    return Row(needed, optional, **more)


def _rows(module: str, names: str, row: Row) -> dict[str, Row]:
    return {f"{module}.{name}": row for name in names.split()}


_SEEN = "n_features_in_: width"
_LINE = _row(f"{_SEEN}, coef_: p, intercept_: scalar")
_LINKED = _row(f"{_SEEN}, coef_: p, intercept_: scalar, _base_loss?: part")
_PARTIAL_SQUARES = _row(f"{_SEEN}, coef_: 1 p, intercept_: 1, _x_mean: p, _x_std: p")
_LOGISTIC = _row(f"{_SEEN}, classes_: any k, coef_: m p, intercept_: m", sound=sound.logistic)
_TREE = _row(f"{_SEEN}, n_outputs_: many, tree_: part", sound=sound.tree)
_FOREST = _row(
    f"{_SEEN}, n_outputs_: many, estimators_: each part, estimator_?: part, estimator?: part",
    sound=sound.forest,
)
_BOOSTING = _row(
    f"{_SEEN}, estimators_: object n 1, init_: part, _loss: part, n_trees_per_iteration_?: one",
    sound=sound.boosting,
)
_HISTOGRAM = _row(
    f"{_SEEN}, n_trees_per_iteration_: one, _n_features: width, _loss: part, _bin_mapper: part, "
    "_preprocessor?: maybe part, _baseline_prediction: 1 1, _predictors: each each part",
    sound=sound.histogram,
)
_HISTOGRAM_OF_CLASSES = _row(
    f"{_SEEN}, classes_: any k, n_trees_per_iteration_: many, _n_features: width, _loss: part, "
    "_bin_mapper: part, _preprocessor?: maybe part, _label_encoder?: part, _baseline_prediction: 1 t, "
    "_predictors: each each part",
    sound=sound.histogram,
)
_PREDICTOR = _row(
    "nodes: nodes, binned_left_cat_bitsets: uint k 8, raw_left_cat_bitsets: uint k 8",
    sound=sound.predictor,
)
_NEIGHBOURS = _row(
    f"{_SEEN}, _fit_X: float n p, _y: n, n_samples_fit_: many, _fit_method: method, _tree: maybe part, "
    "effective_metric_: metric, effective_metric_params_: table maybe real",
    sound=sound.neighbours,
)
_NEIGHBOURS_OF_CLASSES = _row(
    f"{_SEEN}, classes_: any k, outputs_2d_: false, _fit_X: float n p, _y: n, n_samples_fit_: many, "
    "_fit_method: method, _tree: maybe part, effective_metric_: metric, "
    "effective_metric_params_: table maybe real",
    sound=sound.neighbours,
)
_SUPPORT = _row(
    f"{_SEEN}, shape_fit_: each/2 many, support_vectors_: float n p, support_: int n, _n_support: int 2, "
    "dual_coef_: float 1 n, _dual_coef_: float 1 n, intercept_: float 1, _intercept_: float 1, "
    "_probA: float 0, _probB: float 0, _gamma: real, _sparse: false",
    # A coterie hands on rows, never a matrix of a kernel, into which libsvm would look by these indices.
    parameters={"kernel": text("linear", "poly", "rbf", "sigmoid"), "degree": count(100), "cache_size": real},
    sound=sound.support,
)
_NETWORK = _row(
    f"{_SEEN}, n_outputs_: one, n_layers_: layers, coefs_: each/l float * *, intercepts_: each/l float *, "
    "out_activation_: identity, _optimizer?: part",
    sound=sound.network,
)
_PROCESS = _row(
    f"{_SEEN}, X_train_: n p, y_train_: n, alpha_: n, L_: n n, _y_train_mean: scalar, _y_train_std: scalar, "
    "kernel_: part",
    parameters={"alpha": either(real, array("*"))},
    sound=sound.process,
)
_KERNEL = {"kernel": text(*sound.KERNELS)}
_KERNEL_RIDGE = _row(f"{_SEEN}, X_fit_: n p, dual_coef_: n", parameters=_KERNEL, sound=sound.kernel_ridge)
_ISOTONIC = _row("X_thresholds_: t, y_thresholds_: t, X_min_: real, X_max_: real")
_ADABOOST = _row(f"{_SEEN}, estimators_: each part, estimator_weights_: *, estimator_?: part")
_BAGGING = _row(f"{_SEEN}, estimators_: each/m part, estimators_features_: each/m indices, estimator_?: part")
_VOTED = "estimators_: each part, named_estimators_?: table part"
_STACKING = _row(f"{_VOTED}, final_estimator_: part, stack_method_: each predict")
_TARGET = _row("regressor_: part, transformer_: part, _training_dim: one")
_FOUND = ("best_estimator_", "scorer_", "cv_results_", "best_params_", "_checked_cv_orig")
_SEARCH = Row(optional=dict.fromkeys(_FOUND, rules.anything))
_COLUMNS = _row(
    f"{_SEEN}, transformers_: each columns, _columns?: each choice, _remainder?: columns, "
    "_transformer_to_input_indices?: table choice, _name_to_fitted_passthrough?: table part",
    parameters={"transformers": each(sound.columns)},
)
_SCALER = _row(
    f"{_SEEN}, mean_?: maybe p, var_?: maybe p, scale_?: maybe p, min_?: maybe p, center_?: maybe p, "
    "max_abs_?: maybe p, data_min_?: maybe p, data_max_?: maybe p, data_range_?: maybe p"
)
_POWERS = _row(f"{_SEEN}, lambdas_: powers, _scaler?: part")
_POLYNOMIAL = _row(
    f"{_SEEN}, _min_degree: degree, _max_degree: degree, n_output_features_: width, _n_out_full: width",
    sound=sound.polynomial,
)
_BINS = _row(f"{_SEEN}, bin_edges_: object p, n_bins_: int p, _encoder?: part", sound=sound.bins)
_KNOWN = f"{_SEEN}, categories_: each/p any *"
_ONE_HOT = _row(
    f"{_KNOWN}, _n_features_outs: each/p width, _infrequent_enabled: false, "
    "_drop_idx_after_grouping?: maybe object p, drop_idx_?: maybe object p",
    parameters={"min_frequency": rules.none, "max_categories": rules.none},
    sound=sound.one_hot,
)
_ORDINAL = _row(_KNOWN, sound=sound.categories)
_TARGET_CODES = _row(
    f"{_KNOWN}, encodings_: each/p float *, target_mean_: real, target_type_: continuous",
    sound=sound.target_codes,
)
_IMPUTER = _row(f"{_SEEN}, statistics_: mixed p, indicator_?: maybe part")
_KNN_IMPUTER = _row(
    f"{_SEEN}, _fit_X: n p, _mask_fit_X: bool n p, _valid_mask: bool p, indicator_?: maybe part"
)
_PROJECTION = _row(f"{_SEEN}, components_: k p, mean_?: p")
_LANDMARKS = _row(f"{_SEEN}, components_: k p, normalization_: k k", parameters=_KERNEL)
_FOURIER = _row(f"{_SEEN}, random_weights_: p k, random_offset_: k")
_QUANTILES = _row(f"{_SEEN}, quantiles_: q p, references_: q")
_SCORED = _row(f"{_SEEN}, scores_: p, pvalues_?: maybe p")
_MASK = _row(f"{_SEEN}, support_: bool p, estimator_?: part")
_LOSS = _row("closs: part, link: part, interval_y_true: part, interval_y_pred: part", sound=sound.loss)
_LINK = _row("interval_y_pred?: part")
_COMPILED_LOSS = Row(build=compiled.build_loss, loader="LossNode")
_HIST = "sklearn.ensemble._hist_gradient_boosting"

TYPES: dict[str, Row] = {
    # Lines
    **_rows("coterie.models.logistic", "QuickLogistic", _LOGISTIC),
    **_rows("coterie.models.linear", "Line", _LINE),
    **_rows("coterie.models.linear", "QuickElasticNet QuickLasso QuickRidge", _LINE),
    **_rows("sklearn.cross_decomposition._pls", "PLSRegression", _PARTIAL_SQUARES),
    **_rows("sklearn.linear_model._base", "LinearRegression", _LINE),
    **_rows("sklearn.linear_model._bayes", "ARDRegression BayesianRidge", _LINE),
    **_rows("sklearn.linear_model._coordinate_descent", "ElasticNet ElasticNetCV Lasso LassoCV", _LINE),
    **_rows("sklearn.linear_model._glm.glm", "GammaRegressor PoissonRegressor TweedieRegressor", _LINKED),
    **_rows("sklearn.linear_model._huber", "HuberRegressor", _LINE),
    **_rows("sklearn.linear_model._least_angle", "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC", _LINE),
    **_rows("sklearn.linear_model._logistic", "LogisticRegression LogisticRegressionCV", _LOGISTIC),
    **_rows("sklearn.linear_model._omp", "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV", _LINE),
    **_rows("sklearn.linear_model._passive_aggressive", "PassiveAggressiveRegressor", _LINE),
    **_rows("sklearn.linear_model._quantile", "QuantileRegressor", _LINE),
    **_rows("sklearn.linear_model._ransac", "RANSACRegressor", _row("estimator_: part")),
    **_rows("sklearn.linear_model._ridge", "Ridge RidgeCV", _LINE),
    **_rows("sklearn.linear_model._stochastic_gradient", "SGDRegressor", _LINE),
    **_rows("sklearn.linear_model._theil_sen", "TheilSenRegressor", _LINE),
    **_rows("sklearn.svm._classes", "LinearSVR", _LINE),
    # Trees
    **_rows("coterie.models.boosting", "BoostedTrees", _HISTOGRAM),
    **_rows("coterie.models.boosting", "BoostedClasses", _HISTOGRAM_OF_CLASSES),
    **_rows("coterie.models.boosting", "LogOddsTrees", _row(f"{_SEEN}, estimators_: each part")),
    **_rows("coterie.models.classes", "OneClass", _row(f"{_SEEN}, classes_: any 1")),
    **_rows(
        "coterie.models.classes",
        "VotingForest",
        _row(f"{_SEEN}, classes_: any k, forest_: part", sound=sound.voting),
    ),
    **_rows("coterie.models.forest", "QuickForest RandomCuts", _FOREST),
    **_rows("sklearn.ensemble._forest", "ExtraTreesRegressor RandomForestRegressor", _FOREST),
    **_rows("sklearn.ensemble._gb", "GradientBoostingRegressor", _BOOSTING),
    **_rows(f"{_HIST}.binning", "_BinMapper", Row()),
    **_rows(f"{_HIST}.gradient_boosting", "HistGradientBoostingRegressor", _HISTOGRAM),
    **_rows(f"{_HIST}.predictor", "TreePredictor", _PREDICTOR),
    **_rows("sklearn.tree._classes", "DecisionTreeRegressor ExtraTreeRegressor", _TREE),
    **_rows("sklearn.tree._tree", "Tree", Row(build=compiled.build_tree, loader="TreeNode")),
    # Neighbours, kernels, networks, others
    **_rows("sklearn.dummy", "DummyRegressor", _row("constant_: 1 1, n_outputs_: one")),
    **_rows("sklearn.gaussian_process._gpr", "GaussianProcessRegressor", _PROCESS),
    **_rows("sklearn.gaussian_process.kernels", "CompoundKernel ConstantKernel DotProduct", Row()),
    **_rows("sklearn.gaussian_process.kernels", "ExpSineSquared Exponentiation Matern Product", Row()),
    **_rows("sklearn.gaussian_process.kernels", "RBF RationalQuadratic Sum WhiteKernel", Row()),
    **_rows("sklearn.isotonic", "IsotonicRegression", _ISOTONIC),
    **_rows("sklearn.kernel_ridge", "KernelRidge", _KERNEL_RIDGE),
    **_rows("sklearn.metrics._dist_metrics", " ".join(compiled.METRICS), Row(build=compiled.build_metric)),
    **_rows("sklearn.neighbors._ball_tree", "BallTree", Row(build=compiled.build_neighbours)),
    **_rows("sklearn.neighbors._kd_tree", "KDTree", Row(build=compiled.build_neighbours)),
    **_rows("sklearn.neighbors._classification", "KNeighborsClassifier", _NEIGHBOURS_OF_CLASSES),
    **_rows("sklearn.neighbors._regression", "KNeighborsRegressor RadiusNeighborsRegressor", _NEIGHBOURS),
    **_rows("sklearn.neural_network._multilayer_perceptron", "MLPRegressor", _NETWORK),
    **_rows("sklearn.neural_network._stochastic_optimizers", "AdamOptimizer SGDOptimizer", Row()),
    **_rows("sklearn.svm._classes", "NuSVR SVR", _SUPPORT),
    # Models of models
    **_rows("collections", "OrderedDict", Row(loader="DictNode")),
    **_rows("sklearn.compose._column_transformer", "ColumnTransformer", _COLUMNS),
    **_rows("sklearn.compose._target", "TransformedTargetRegressor", _TARGET),
    **_rows("sklearn.ensemble._bagging", "BaggingRegressor", _BAGGING),
    **_rows("sklearn.ensemble._stacking", "StackingRegressor", _STACKING),
    **_rows("sklearn.ensemble._voting", "VotingRegressor", _row(_VOTED)),
    **_rows("sklearn.ensemble._weight_boosting", "AdaBoostRegressor", _ADABOOST),
    **_rows("sklearn.metrics._scorer", "_PassthroughScorer", _row("_estimator: part")),
    **_rows("sklearn.model_selection._search", "GridSearchCV RandomizedSearchCV", _SEARCH),
    **_rows("sklearn.pipeline", "FeatureUnion Pipeline", Row()),
    **_rows("sklearn.utils._bunch", "Bunch", Row(loader="DictNode")),
    # What comes before a model
    **_rows("sklearn.decomposition._fastica", "FastICA", _PROJECTION),
    **_rows("sklearn.decomposition._incremental_pca", "IncrementalPCA", _PROJECTION),
    **_rows("sklearn.decomposition._pca", "PCA", _PROJECTION),
    **_rows("sklearn.decomposition._truncated_svd", "TruncatedSVD", _PROJECTION),
    **_rows("sklearn.feature_selection._from_model", "SelectFromModel", _row("estimator_: part")),
    **_rows("sklearn.feature_selection._rfe", "RFE RFECV", _MASK),
    **_rows("sklearn.feature_selection._sequential", "SequentialFeatureSelector", _MASK),
    **_rows("sklearn.feature_selection._univariate_selection", "GenericUnivariateSelect SelectFdr", _SCORED),
    **_rows("sklearn.feature_selection._univariate_selection", "SelectFpr SelectFwe", _SCORED),
    **_rows("sklearn.feature_selection._univariate_selection", "SelectKBest SelectPercentile", _SCORED),
    **_rows(
        "sklearn.feature_selection._variance_threshold", "VarianceThreshold", _row(f"{_SEEN}, variances_: p")
    ),
    **_rows("sklearn.impute._base", "MissingIndicator", _row(f"{_SEEN}, features_: indices")),
    **_rows("sklearn.impute._base", "SimpleImputer", _IMPUTER),
    **_rows("sklearn.impute._knn", "KNNImputer", _KNN_IMPUTER),
    **_rows("sklearn.kernel_approximation", "Nystroem", _LANDMARKS),
    **_rows("sklearn.kernel_approximation", "RBFSampler", _FOURIER),
    **_rows("sklearn.preprocessing._data", "Binarizer Normalizer", _row(_SEEN)),
    **_rows("sklearn.preprocessing._data", "MaxAbsScaler MinMaxScaler RobustScaler StandardScaler", _SCALER),
    **_rows("sklearn.preprocessing._data", "PowerTransformer", _POWERS),
    **_rows("sklearn.preprocessing._data", "QuantileTransformer", _QUANTILES),
    **_rows("sklearn.preprocessing._discretization", "KBinsDiscretizer", _BINS),
    **_rows("sklearn.preprocessing._encoders", "OneHotEncoder", _ONE_HOT),
    **_rows("sklearn.preprocessing._encoders", "OrdinalEncoder", _ORDINAL),
    **_rows("sklearn.preprocessing._function_transformer", "FunctionTransformer", Row()),
    **_rows("sklearn.preprocessing._label", "LabelEncoder", _row("classes_: any k")),
    **_rows("sklearn.preprocessing._polynomial", "PolynomialFeatures", _POLYNOMIAL),
    **_rows("sklearn.preprocessing._target_encoder", "TargetEncoder", _TARGET_CODES),
    # Losses
    **_rows("sklearn._loss._loss", " ".join(sound.COMPILED_LOSSES), _COMPILED_LOSS),
    **_rows(
        "sklearn._loss.link",
        "IdentityLink LogLink LogitLink MultinomialLogit",
        _row("interval_y_pred?: part"),
    ),
    **_rows("sklearn._loss.link", "Interval", _row("low: real, high: real")),
    **_rows("sklearn._loss.loss", " ".join(sound.LOSSES), _LOSS),
    # Splits
    **_rows("sklearn.model_selection._split", "GroupKFold GroupShuffleSplit KFold LeaveOneOut", Row()),
    **_rows("sklearn.model_selection._split", "PredefinedSplit ShuffleSplit TimeSeriesSplit", Row()),
    **_rows("sklearn.model_selection._split", "LeavePOut", Row(parameters={"p": count(2, 1)})),
}
