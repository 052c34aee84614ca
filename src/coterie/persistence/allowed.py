"""The types that a file may hold, with what each of them may be made of.

One table, `TYPES`: a line names the types of a module and the attributes that their code relies on.

- An attribute with a rule has to follow it, and a fitted object has all of them, less those that may be
  missing. Letters stand for sizes that have to agree: ``p`` is the number of features.
- Parameters follow the rules of their names (`coterie.persistence.parameters`).
- Any other attribute may hold data, and never stands in the place of a method.

To allow a type, add its line here and a model of it to ``tests/persistence/zoo.py``, from where the tests and
the fuzzer take it. Where compiled code follows its numbers, `coterie.persistence.sound` says what they need.
"""

from __future__ import annotations

from coterie.persistence import compiled, sound
from coterie.persistence.parameters import MOST_COLUMNS, setting
from coterie.persistence.rows import Row
from coterie.persistence.rules import (
    anything,
    array,
    count,
    each,
    either,
    maybe,
    none,
    real,
    table_of,
    text,
    within,
)


def _rows(module: str, names: str, row: Row) -> dict[str, Row]:
    return {f"{module}.{name}": row for name in names.split()}


_columns = count(MOST_COLUMNS, 1)
_one = count(1, 1)
_scalar = either(real, array("1"), array(""))
_known = each(array("*", "biufUO"))
_part = setting
_parts = each(setting)
_X = {"n_features_in_": _columns}

_LINE = Row({**_X, "coef_": array("p"), "intercept_": _scalar})
_LINKED = Row({**_LINE.fitted, "_base_loss": _part}, missing="_base_loss")
_PARTIAL_SQUARES = Row(
    {**_X, "coef_": array("1 p"), "intercept_": array("1"), "_x_mean": array("p"), "_x_std": array("p")}
)
_TREE = Row({**_X, "n_outputs_": _one, "tree_": _part}, sound=sound.tree)
_FOREST = Row(
    {**_X, "n_outputs_": _one, "estimators_": _parts, "estimator_": _part, "estimator": _part},
    missing="estimator_ estimator",
    sound=sound.forest,
)
_BOOSTING = Row(
    {**_X, "estimators_": array("n 1", "O"), "init_": _part, "_loss": _part, "n_trees_per_iteration_": _one},
    missing="n_trees_per_iteration_",
    sound=sound.boosting,
)
_HISTOGRAM = Row(
    {
        **_X,
        "n_trees_per_iteration_": _one,
        "_n_features": _columns,
        "_loss": _part,
        "_bin_mapper": _part,
        "_preprocessor": maybe(_part),
        "_baseline_prediction": array("1 1"),
        "_predictors": each(_parts),
    },
    missing="_preprocessor",
    sound=sound.histogram,
)
_PREDICTOR = Row(
    {
        "nodes": array("n", "V"),
        "binned_left_cat_bitsets": array("k 8", "u"),
        "raw_left_cat_bitsets": array("k 8", "u"),
    },
    sound=sound.predictor,
)
_NEIGHBOURS = Row(
    {
        **_X,
        "_fit_X": array("n p", "f"),
        "_y": array("n"),
        "n_samples_fit_": count(2**31),
        "_fit_method": text("kd_tree", "ball_tree", "brute"),
        "_tree": maybe(_part),
        "effective_metric_": text(*sound.METRICS),
        "effective_metric_params_": table_of(maybe(real)),
    },
    sound=sound.neighbours,
)
_SUPPORT = Row(
    {
        **_X,
        "shape_fit_": each(count(2**31)),
        "support_vectors_": array("n p", "f"),
        "support_": array("n", "i"),
        "_n_support": array("2", "i"),
        "dual_coef_": array("1 n", "f"),
        "_dual_coef_": array("1 n", "f"),
        "intercept_": array("1", "f"),
        "_intercept_": array("1", "f"),
        "_probA": array("0", "f"),
        "_probB": array("0", "f"),
        "_gamma": real,
        "_sparse": sound.no,
    },
    # A coterie hands on rows, never a matrix of a kernel, into which libsvm would look by these indices.
    parameters={"kernel": text("linear", "poly", "rbf", "sigmoid"), "degree": count(100), "cache_size": real},
    sound=sound.support,
)
_NETWORK = Row(
    {
        **_X,
        "n_outputs_": _one,
        "n_layers_": count(1000),
        "coefs_": each(array("* *", "f")),
        "intercepts_": each(array("*", "f")),
        "out_activation_": text("identity"),
        "_optimizer": _part,
    },
    missing="_optimizer",
    sound=sound.network,
)
_PROCESS = Row(
    {
        **_X,
        "X_train_": array("n p"),
        "y_train_": array("n"),
        "alpha_": array("n"),
        "L_": array("n n"),
        "_y_train_mean": _scalar,
        "_y_train_std": _scalar,
        "kernel_": _part,
    },
    parameters={"alpha": either(real, array("*"))},
    sound=sound.process,
)
_KERNEL_RIDGE = Row(
    {**_X, "X_fit_": array("n p"), "dual_coef_": array("n")},
    parameters={"kernel": text(*sound.KERNELS)},
    sound=sound.kernel_ridge,
)
_ISOTONIC = Row({"X_thresholds_": array("t"), "y_thresholds_": array("t"), "X_min_": real, "X_max_": real})
_ADABOOST = Row(
    {**_X, "estimators_": _parts, "estimator_weights_": array("*"), "estimator_": _part}, "estimator_"
)
_BAGGING = Row(
    {**_X, "estimators_": _parts, "estimators_features_": each(within("*", "p")), "estimator_": _part},
    missing="estimator_",
    sound=sound.bagging,
)
_STACKING = Row(
    {
        "estimators_": _parts,
        "named_estimators_": table_of(_part),
        "final_estimator_": _part,
        "stack_method_": each(text("predict")),
    },
    missing="named_estimators_",
)
_VOTING = Row({"estimators_": _parts, "named_estimators_": table_of(_part)}, missing="named_estimators_")
_TARGET = Row({"regressor_": _part, "transformer_": _part, "_training_dim": _one})
_FOUND = "best_estimator_ scorer_ cv_results_ best_params_ _checked_cv_orig"
_SEARCH = Row(dict.fromkeys(_FOUND.split(), anything), missing=_FOUND)
_COLUMNS = Row(
    {
        **_X,
        "transformers_": each(sound.columns),
        "_columns": each(sound.chosen),
        "_transformer_to_input_indices": table_of(sound.chosen),
        "_remainder": sound.columns,
        "_name_to_fitted_passthrough": table_of(_part),
    },
    missing="_columns _transformer_to_input_indices _remainder _name_to_fitted_passthrough",
    parameters={"transformers": each(sound.columns)},
)
_PER_COLUMN = "mean_ var_ scale_ min_ center_ max_abs_ data_min_ data_max_ data_range_"
_SCALER = Row({**_X, **{name: maybe(array("p")) for name in _PER_COLUMN.split()}}, missing=_PER_COLUMN)
_POWERS = Row({**_X, "lambdas_": either(array("p"), each(real)), "_scaler": _part}, missing="_scaler")
_POLYNOMIAL = Row(
    {
        **_X,
        "_min_degree": count(25),
        "_max_degree": count(25),
        "n_output_features_": _columns,
        "_n_out_full": _columns,
    },
    sound=sound.polynomial,
)
_BINS = Row(
    {**_X, "bin_edges_": array("p", "O"), "n_bins_": array("p", "iu"), "_encoder": _part},
    missing="_encoder",
    sound=sound.bins,
)
_ONE_HOT = Row(
    {
        **_X,
        "categories_": _known,
        "_n_features_outs": each(_columns),
        "_infrequent_enabled": sound.no,
        "_drop_idx_after_grouping": maybe(array("p", "O")),
        "drop_idx_": maybe(array("p", "O")),
    },
    missing="_drop_idx_after_grouping drop_idx_",
    parameters={"min_frequency": none, "max_categories": none},
    sound=sound.one_hot,
)
_ORDINAL = Row({**_X, "categories_": _known}, sound=sound.categories)
_TARGET_CODES = Row(
    {
        **_X,
        "categories_": _known,
        "encodings_": each(array("*", "f")),
        "target_mean_": real,
        "target_type_": text("continuous"),
    },
    sound=sound.target_codes,
)
_IMPUTER = Row({**_X, "statistics_": array("p", "biufO"), "indicator_": maybe(_part)}, missing="indicator_")
_KNN_IMPUTER = Row(
    {
        **_X,
        "_fit_X": array("n p"),
        "_mask_fit_X": array("n p", "b"),
        "_valid_mask": array("p", "b"),
        "indicator_": maybe(_part),
    },
    missing="indicator_",
)
_PROJECTION = Row({**_X, "components_": array("k p"), "mean_": array("p")}, missing="mean_")
_LANDMARKS = Row(
    {**_X, "components_": array("k p"), "normalization_": array("k k")},
    parameters={"kernel": text(*sound.KERNELS)},
)
_FOURIER = Row({**_X, "random_weights_": array("p k"), "random_offset_": array("k")})
_QUANTILES = Row({**_X, "quantiles_": array("q p"), "references_": array("q")})
_VARIANCES = Row({**_X, "variances_": array("p")})
_SCORED = Row({**_X, "scores_": array("p"), "pvalues_": maybe(array("p"))}, missing="pvalues_")
_MASK = Row({**_X, "support_": array("p", "b"), "estimator_": _part}, missing="estimator_")
_LOSS = Row(
    {"closs": _part, "link": _part, "interval_y_true": _part, "interval_y_pred": _part}, sound=sound.loss
)
_COMPILED_LOSS = Row(build=compiled.build_loss, loader="LossNode")
_HIST = "sklearn.ensemble._hist_gradient_boosting"

TYPES: dict[str, Row] = {
    # Lines
    **_rows("coterie.models.lines", "Line", _LINE),
    **_rows("coterie.models.penalised", "QuickElasticNet QuickLasso", _LINE),
    **_rows("sklearn.cross_decomposition._pls", "PLSRegression", _PARTIAL_SQUARES),
    **_rows("sklearn.linear_model._base", "LinearRegression", _LINE),
    **_rows("sklearn.linear_model._bayes", "ARDRegression BayesianRidge", _LINE),
    **_rows("sklearn.linear_model._coordinate_descent", "ElasticNet ElasticNetCV Lasso LassoCV", _LINE),
    **_rows("sklearn.linear_model._glm.glm", "GammaRegressor PoissonRegressor TweedieRegressor", _LINKED),
    **_rows("sklearn.linear_model._huber", "HuberRegressor", _LINE),
    **_rows("sklearn.linear_model._least_angle", "Lars LarsCV LassoLars LassoLarsCV LassoLarsIC", _LINE),
    **_rows("sklearn.linear_model._omp", "OrthogonalMatchingPursuit OrthogonalMatchingPursuitCV", _LINE),
    **_rows("sklearn.linear_model._passive_aggressive", "PassiveAggressiveRegressor", _LINE),
    **_rows("sklearn.linear_model._quantile", "QuantileRegressor", _LINE),
    **_rows("sklearn.linear_model._ransac", "RANSACRegressor", Row({"estimator_": _part})),
    **_rows("sklearn.linear_model._ridge", "Ridge RidgeCV", _LINE),
    **_rows("sklearn.linear_model._stochastic_gradient", "SGDRegressor", _LINE),
    **_rows("sklearn.linear_model._theil_sen", "TheilSenRegressor", _LINE),
    **_rows("sklearn.svm._classes", "LinearSVR", _LINE),
    # Trees
    **_rows("coterie.models.boosting", "BoostedTrees", _HISTOGRAM),
    **_rows("coterie.models.forest", "QuickForest RandomCuts", _FOREST),
    **_rows("sklearn.ensemble._forest", "ExtraTreesRegressor RandomForestRegressor", _FOREST),
    **_rows("sklearn.ensemble._gb", "GradientBoostingRegressor", _BOOSTING),
    **_rows(f"{_HIST}.binning", "_BinMapper", Row()),
    **_rows(f"{_HIST}.gradient_boosting", "HistGradientBoostingRegressor", _HISTOGRAM),
    **_rows(f"{_HIST}.predictor", "TreePredictor", _PREDICTOR),
    **_rows("sklearn.tree._classes", "DecisionTreeRegressor ExtraTreeRegressor", _TREE),
    **_rows("sklearn.tree._tree", "Tree", Row(build=compiled.build_tree, loader="TreeNode")),
    # Neighbours, kernels, networks, others
    **_rows("sklearn.dummy", "DummyRegressor", Row({"constant_": array("1 1"), "n_outputs_": _one})),
    **_rows("sklearn.gaussian_process._gpr", "GaussianProcessRegressor", _PROCESS),
    **_rows("sklearn.gaussian_process.kernels", "CompoundKernel ConstantKernel DotProduct", Row()),
    **_rows("sklearn.gaussian_process.kernels", "ExpSineSquared Exponentiation Matern Product", Row()),
    **_rows("sklearn.gaussian_process.kernels", "RBF RationalQuadratic Sum WhiteKernel", Row()),
    **_rows("sklearn.isotonic", "IsotonicRegression", _ISOTONIC),
    **_rows("sklearn.kernel_ridge", "KernelRidge", _KERNEL_RIDGE),
    **_rows("sklearn.metrics._dist_metrics", " ".join(compiled.METRICS), Row(build=compiled.build_metric)),
    **_rows("sklearn.neighbors._ball_tree", "BallTree", Row(build=compiled.build_neighbours)),
    **_rows("sklearn.neighbors._kd_tree", "KDTree", Row(build=compiled.build_neighbours)),
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
    **_rows("sklearn.ensemble._voting", "VotingRegressor", _VOTING),
    **_rows("sklearn.ensemble._weight_boosting", "AdaBoostRegressor", _ADABOOST),
    **_rows("sklearn.metrics._scorer", "_PassthroughScorer", Row({"_estimator": _part})),
    **_rows("sklearn.model_selection._search", "GridSearchCV RandomizedSearchCV", _SEARCH),
    **_rows("sklearn.pipeline", "FeatureUnion Pipeline", Row()),
    **_rows("sklearn.utils._bunch", "Bunch", Row(loader="DictNode")),
    # What comes before a model
    **_rows("sklearn.decomposition._fastica", "FastICA", _PROJECTION),
    **_rows("sklearn.decomposition._incremental_pca", "IncrementalPCA", _PROJECTION),
    **_rows("sklearn.decomposition._pca", "PCA", _PROJECTION),
    **_rows("sklearn.decomposition._truncated_svd", "TruncatedSVD", _PROJECTION),
    **_rows("sklearn.feature_selection._from_model", "SelectFromModel", Row({"estimator_": _part})),
    **_rows("sklearn.feature_selection._rfe", "RFE RFECV", _MASK),
    **_rows("sklearn.feature_selection._sequential", "SequentialFeatureSelector", _MASK),
    **_rows("sklearn.feature_selection._univariate_selection", "GenericUnivariateSelect SelectFdr", _SCORED),
    **_rows("sklearn.feature_selection._univariate_selection", "SelectFpr SelectFwe", _SCORED),
    **_rows("sklearn.feature_selection._univariate_selection", "SelectKBest SelectPercentile", _SCORED),
    **_rows("sklearn.feature_selection._variance_threshold", "VarianceThreshold", _VARIANCES),
    **_rows("sklearn.impute._base", "MissingIndicator", Row({**_X, "features_": within("*", "p")})),
    **_rows("sklearn.impute._base", "SimpleImputer", _IMPUTER),
    **_rows("sklearn.impute._knn", "KNNImputer", _KNN_IMPUTER),
    **_rows("sklearn.kernel_approximation", "Nystroem", _LANDMARKS),
    **_rows("sklearn.kernel_approximation", "RBFSampler", _FOURIER),
    **_rows("sklearn.preprocessing._data", "Binarizer Normalizer", Row(_X)),
    **_rows("sklearn.preprocessing._data", "MaxAbsScaler MinMaxScaler RobustScaler StandardScaler", _SCALER),
    **_rows("sklearn.preprocessing._data", "PowerTransformer", _POWERS),
    **_rows("sklearn.preprocessing._data", "QuantileTransformer", _QUANTILES),
    **_rows("sklearn.preprocessing._discretization", "KBinsDiscretizer", _BINS),
    **_rows("sklearn.preprocessing._encoders", "OneHotEncoder", _ONE_HOT),
    **_rows("sklearn.preprocessing._encoders", "OrdinalEncoder", _ORDINAL),
    **_rows("sklearn.preprocessing._function_transformer", "FunctionTransformer", Row()),
    **_rows("sklearn.preprocessing._polynomial", "PolynomialFeatures", _POLYNOMIAL),
    **_rows("sklearn.preprocessing._target_encoder", "TargetEncoder", _TARGET_CODES),
    # Losses
    **_rows("sklearn._loss._loss", " ".join(sound.COMPILED_LOSSES), _COMPILED_LOSS),
    **_rows("sklearn._loss.link", "IdentityLink LogLink", Row({"interval_y_pred": _part}, "interval_y_pred")),
    **_rows("sklearn._loss.link", "Interval", Row({"low": real, "high": real})),
    **_rows("sklearn._loss.loss", " ".join(sound.LOSSES), _LOSS),
    # Splits
    **_rows("sklearn.model_selection._split", "GroupKFold GroupShuffleSplit KFold LeaveOneOut", Row()),
    **_rows("sklearn.model_selection._split", "PredefinedSplit ShuffleSplit TimeSeriesSplit", Row()),
    **_rows("sklearn.model_selection._split", "LeavePOut", Row(parameters={"p": count(2, 1)})),
}
