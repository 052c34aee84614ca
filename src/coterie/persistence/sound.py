"""Whether the attributes of a fitted object fit each other, where its code relies on that.

Each function takes the attributes of one object, by name, that have passed the rules of the table one by one.
It tells whether they agree with each other; where they do not, the file is refused. Compiled code reads
memory by these numbers without a look, so that a forged file could crash the process or read what lies
beside.
"""

from __future__ import annotations

from itertools import pairwise
from math import comb
from typing import Any

import numpy as np

from coterie.persistence.compiled import descends
from coterie.persistence.parameters import MAX_COLUMNS, MAX_UNITS, setting
from coterie.persistence.rules import Sizes, anything, array, each, is_plain, stay_within

Attributes = dict[str, Any]

KERNELS = ("additive_chi2", "chi2", "cosine", "laplacian", "linear", "poly", "polynomial", "rbf", "sigmoid")
METRICS = (
    *("chebyshev", "cityblock", "cosine", "euclidean", "l1", "l2", "manhattan", "minkowski"),
    *("braycurtis", "canberra", "correlation", "hamming", "infinity", "nan_euclidean", "p", "sqeuclidean"),
)
LOSSES = (
    *("AbsoluteError", "HalfGammaLoss", "HalfPoissonLoss", "HalfSquaredError", "HalfTweedieLoss"),
    *("HalfTweedieLossIdentity", "HuberLoss", "PinballLoss", "HalfBinomialLoss", "HalfMultinomialLoss"),
)
COMPILED_LOSSES = tuple(f"Cy{name}" for name in LOSSES)
# A kernel's matrix has an entry for each of these and each new row, so more would fill the memory.
_MAX_KERNEL_ROWS = 50_000


def no(value: Any, sizes: Sizes) -> bool:
    """Let nothing but False pass."""
    return value is False


def chosen(value: Any, sizes: Sizes) -> bool:
    """Let a choice of columns pass: a name, a slice, or a list no longer than the table is wide.

    Shorter lists than `MAX_UNITS` pass in any case. ``sizes["p"]`` is the width, if it is known.
    """
    max_length = max(sizes.get("p", 0), MAX_UNITS)
    return is_plain(value) and (not hasattr(value, "__len__") or len(value) <= max_length)


def columns(value: Any, sizes: Sizes) -> bool:
    """Let an entry of a ColumnTransformer pass: a tuple of a name, a transformer and its columns."""
    return (
        isinstance(value, tuple)
        and len(value) == 3
        and isinstance(value[0], str)
        and setting(value[1], sizes)
        and chosen(value[2], sizes)
    )


def _are(objects: Any, *names: str) -> bool:
    """Tell whether the types of all objects have one of these names."""
    return all(type(value).__name__ in names for value in objects)


def tree(attributes: Attributes) -> bool:
    """Check that a fitted decision tree looks at as many columns as its estimator is given.

    Compiled code reads a row at the columns of the tree's nodes, without a look at the row's width.
    """
    grown = attributes["tree_"]
    return (
        _are([grown], "Tree")
        and grown.n_features == attributes["n_features_in_"]
        and grown.n_outputs == attributes["n_outputs_"]
    )


def _grown(trees: list[Any], width: int) -> bool:
    """Tell whether these are fitted trees of regression that look at ``width`` columns."""
    are_trees = _are(trees, "DecisionTreeRegressor", "ExtraTreeRegressor")
    return are_trees and all("tree_" in vars(model) and model.n_features_in_ == width for model in trees)


def forest(attributes: Attributes) -> bool:
    """Check that a forest has trees, all as wide as the forest and with as many outputs."""
    trees = list(attributes["estimators_"])
    are_grown = len(trees) > 0 and _grown(trees, attributes["n_features_in_"])
    return are_grown and all(tree_model.n_outputs_ == attributes["n_outputs_"] for tree_model in trees)


def voting(attributes: Attributes) -> bool:
    """Check that a forest that answers classes has an output for each of them, or one for two classes.

    The forest inside, ``forest_``, is one of ours and predicts shares of the classes as numbers.
    """
    inner_forest, n_classes = attributes["forest_"], len(attributes["classes_"])
    n_outputs = 1 if n_classes <= 2 else n_classes
    return (
        _are([inner_forest], "QuickForest", "RandomCuts")
        and inner_forest.n_features_in_ == attributes["n_features_in_"]
        and inner_forest.n_outputs_ == n_outputs
    )


def logistic(attributes: Attributes) -> bool:
    """Check that a logistic model has coefficients for each class, or one line for two classes."""
    n_classes = len(attributes["classes_"])
    return len(attributes["coef_"]) == (1 if n_classes == 2 else n_classes)


def boosting(attributes: Attributes) -> bool:
    """Check gradient boosting: trees look at the same columns, and the first guess is one number a row."""
    n_features = attributes["n_features_in_"]
    # Trees are added to as many guesses as there are rows, without a look at how many there are.
    guesses = np.asarray(attributes["init_"].predict(np.zeros((2, n_features))))
    return guesses.shape == (2,) and _grown(attributes["estimators_"].ravel().tolist(), n_features)


def predictor(attributes: Attributes) -> bool:
    """Check a tree of histogram boosting: its walks end in leaves, and its sets of categories are there.

    Compiled code follows the indices of children and of bitsets (sets of categories, a bit each) unchecked.
    """
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = attributes["nodes"]
    if nodes.dtype.names != PREDICTOR_RECORD_DTYPE.names:
        return False
    is_inner = nodes["is_leaf"] == 0
    bitset_indices = nodes["bitset_idx"][is_inner & (nodes["is_categorical"] != 0)]
    bitset_types = {attributes["raw_left_cat_bitsets"].dtype, attributes["binned_left_cat_bitsets"].dtype}
    return (
        descends(nodes["left"], nodes["right"], is_inner)
        and bitset_types == {np.dtype(np.uint32)}
        and stay_within(bitset_indices, len(attributes["raw_left_cat_bitsets"]))
    )


def _categories(mapper: Any, n_features: int) -> Any:
    """Return which columns are categorical, of shape (n_features,); None if that cannot be trusted.

    ``mapper`` puts values into bins. The categories that it lists for a column are below 256, the size of a
    bitset.
    """
    is_categorical, thresholds = vars(mapper).get("is_categorical_"), vars(mapper).get("bin_thresholds_")
    if not (
        array(f"{n_features}", "bu")(is_categorical, {}) and each(anything, f"{n_features}")(thresholds, {})
    ):
        return None
    categories_by_column = [thresholds[index] for index in np.flatnonzero(is_categorical)]
    are_sound = all(
        array("*", "f")(column_categories, {}) and stay_within(column_categories, 256)
        for column_categories in categories_by_column
    )
    return is_categorical != 0 if are_sound else None


def histogram(attributes: Attributes) -> bool:
    """Check a model of histogram boosting: its trees look at columns that are there, and ask soundly.

    They ask for categories only where columns have them, and each round has as many trees as the baseline has
    values: one, or one for each class.
    """
    n_features, mapper, preprocessor = (
        attributes["_n_features"],
        attributes["_bin_mapper"],
        attributes.get("_preprocessor"),
    )
    is_categorical = _categories(mapper, n_features) if _are([mapper], "_BinMapper") else None
    trees = [tree_predictor for round_ in attributes["_predictors"] for tree_predictor in round_]
    trees_per_round = attributes["n_trees_per_iteration_"]
    counts = {len(round_) for round_ in attributes["_predictors"]} | {
        attributes["_baseline_prediction"].shape[1]
    }
    # Each round must have as many trees as the code expects, for it counts them no more.
    if is_categorical is None or not _are(trees, "TreePredictor") or counts != {trees_per_round}:
        return False
    classes = attributes.get("classes_")
    if classes is not None and trees_per_round != (1 if len(classes) == 2 else len(classes)):
        return False
    for tree_predictor in trees:
        inner_nodes = tree_predictor.nodes[tree_predictor.nodes["is_leaf"] == 0]
        categorical_columns = inner_nodes["feature_idx"][inner_nodes["is_categorical"] != 0]
        if not (
            stay_within(inner_nodes["feature_idx"], n_features) and is_categorical[categorical_columns].all()
        ):
            return False
    if preprocessor is None:
        return bool(attributes["n_features_in_"] == n_features)
    # It hands its columns to compiled code as they come, so one row shows how many there are.
    transformed_row = preprocessor.transform(np.zeros((1, attributes["n_features_in_"])))
    return isinstance(transformed_row, np.ndarray) and transformed_row.shape == (1, n_features)


def neighbours(attributes: Attributes) -> bool:
    """Check that the search tree is of the kind that the method asks for, and has the stored rows.

    The method "brute" has no tree. Otherwise the tree answers with positions of rows, which are then looked
    up.
    """
    tree_type = {"kd_tree": "KDTree", "ball_tree": "BallTree"}.get(attributes["_fit_method"], "NoneType")
    if attributes["n_samples_fit_"] != len(attributes["_fit_X"]) or not _are(
        [attributes["_tree"]], tree_type
    ):
        return False
    return (
        attributes["_tree"] is None
        or np.asarray(attributes["_tree"].data).shape == attributes["_fit_X"].shape
    )


def support(attributes: Attributes) -> bool:
    """Check the indices and counts of a support vector machine, which libsvm takes as they are.

    Indices lie inside the training table, and the first count is that of the vectors stored.
    """
    n_vectors, fit_shape = len(attributes["support_vectors_"]), attributes["shape_fit_"]
    return (
        fit_shape[1] == attributes["n_features_in_"]
        and attributes["support_"].dtype == attributes["_n_support"].dtype == np.int32
        and stay_within(attributes["support_"], fit_shape[0])
        and int(attributes["_n_support"][0]) == n_vectors
        and bool((attributes["_n_support"] >= 0).all())
    )


def network(attributes: Attributes) -> bool:
    """Check that each layer of a network fits the one before, and that the last gives one value.

    No layer has more than `MAX_UNITS` units, for their products would fill the memory.
    """
    layers, offsets = attributes["coefs_"], attributes["intercepts_"]
    widths = [attributes["n_features_in_"], *(layer.shape[1] for layer in layers)]
    return (
        attributes["n_layers_"] == len(widths)
        and widths[-1] == 1
        and all(
            layer.shape == shape_of_layer
            for layer, shape_of_layer in zip(layers, pairwise(widths), strict=True)
        )
        and all(len(offset) == width for offset, width in zip(offsets, widths[1:], strict=True))
        and max(widths[1:]) <= MAX_UNITS
    )


def kernel_ridge(attributes: Attributes) -> bool:
    """Check that the matrix of a kernel stays small."""
    return len(attributes["X_fit_"]) <= _MAX_KERNEL_ROWS


def _scales(kernel: Any) -> list[Any]:
    """Return the length scales of a kernel and of all kernels inside it, in a list; None for one without.

    Kernels hold others: sums and products in attributes, compound ones in a list ``kernels``.
    """
    inner_kernels = [value for value in vars(kernel).values() if hasattr(value, "__dict__")]
    inner_kernels += [
        inner_kernel for inner_kernel in vars(kernel).get("kernels", ()) if hasattr(inner_kernel, "__dict__")
    ]
    return [
        vars(kernel).get("length_scale"),
        *(scale for inner_kernel in inner_kernels for scale in _scales(inner_kernel)),
    ]


def process(attributes: Attributes) -> bool:
    """Check that a Gaussian process with a length scale for each column has as many as it has columns."""
    lengths = [scale for scale in _scales(attributes["kernel_"]) if isinstance(scale, np.ndarray)]
    return all(scale.shape in ((), (attributes["n_features_in_"],)) for scale in lengths)


def _n_products(n_features: int, min_degree: int, max_degree: int, interaction_only: bool) -> int:
    """Return how many products of columns have a degree from the least, or one, to the largest.

    With ``interaction_only`` each column is a factor once at most: then they are subsets, else multisets.
    """
    lowest_degree = max(min_degree, 1)
    if interaction_only:
        return sum(comb(n_features, degree) for degree in range(lowest_degree, max_degree + 1))
    return comb(n_features + max_degree, max_degree) - comb(n_features + lowest_degree - 1, lowest_degree - 1)


def polynomial(attributes: Attributes) -> bool:
    """Check that PolynomialFeatures makes as many columns as it says, and not too many.

    The count of its code (``_n_out_full``) includes products below the least degree, which are made and then
    dropped. It writes into an array of the stated width.
    """
    min_degree, max_degree = attributes["_min_degree"], attributes["_max_degree"]
    interaction_only, include_bias = attributes.get("interaction_only"), attributes.get("include_bias")
    if not (
        min_degree <= max_degree and isinstance(interaction_only, bool) and isinstance(include_bias, bool)
    ):
        return False
    n_all_products, n_products_out = (
        _n_products(attributes["n_features_in_"], lowest, max_degree, interaction_only) + include_bias
        for lowest in (0, min_degree)
    )
    return bool(
        attributes["_n_out_full"] == n_all_products <= MAX_COLUMNS
        and attributes["n_output_features_"] == n_products_out
    )


def bins(attributes: Attributes) -> bool:
    """Check that each column has one edge more than it has bins."""
    edges = attributes["bin_edges_"].tolist()
    are_numbers = all(array("*", "f")(edge, {}) for edge in edges)
    return are_numbers and [len(edge) - 1 for edge in edges] == attributes["n_bins_"].tolist()


def categories(attributes: Attributes) -> bool:
    """Check that the categories of an encoder are data, and not too many in all columns together."""
    n_categories = sum(len(column_categories) for column_categories in attributes["categories_"])
    return n_categories <= MAX_COLUMNS and all(
        is_plain(column_categories) for column_categories in attributes["categories_"]
    )


def one_hot(attributes: Attributes) -> bool:
    """Check that a one-hot encoder has as many columns as categories that are not dropped.

    Dropped positions (None: the column drops no category) must lie inside: each is written to without a look.
    """
    dropped = attributes.get("_drop_idx_after_grouping")
    n_categories = [len(column_categories) for column_categories in attributes["categories_"]]
    dropped_positions = [None] * len(n_categories) if dropped is None else dropped.tolist()
    pairs = list(zip(dropped_positions, n_categories, strict=True))
    are_inside = all(
        position is None or (isinstance(position, (int, np.integer)) and 0 <= position < n_levels)
        for position, n_levels in pairs
    )
    n_columns_out = [size - (position is not None) for position, size in pairs]
    return categories(attributes) and are_inside and n_columns_out == list(attributes["_n_features_outs"])


def target_codes(attributes: Attributes) -> bool:
    """Check that a target encoder has a value for each category of each column."""
    n_values = [len(column_values) for column_values in attributes["encodings_"]]
    return (
        categories(attributes)
        and [len(column_values) for column_values in attributes["categories_"]] == n_values
    )


def loss(attributes: Attributes) -> bool:
    """Check that the parts of a loss of scikit-learn have the types that their names say."""
    return (
        _are([attributes["closs"]], *COMPILED_LOSSES)
        and _are([attributes["link"]], "IdentityLink", "LogLink", "LogitLink", "MultinomialLogit")
        and _are([attributes["interval_y_true"], attributes["interval_y_pred"]], "Interval")
    )
