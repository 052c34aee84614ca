"""Whether the attributes of a fitted object fit each other, where its code relies on that.

Each function takes attributes that have passed the rules of the table one by one.
"""

from __future__ import annotations

from itertools import pairwise
from math import comb
from typing import Any

import numpy as np

from coterie.persistence.compiled import descends
from coterie.persistence.parameters import MOST_COLUMNS, MOST_UNITS, setting
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
# A kernel's matrix has an entry for each of these and each new row.
_MOST_KERNEL_ROWS = 50_000


def no(value: Any, sizes: Sizes) -> bool:
    """Let nothing but False pass."""
    return value is False


def chosen(value: Any, sizes: Sizes) -> bool:
    """Let a choice of columns pass, no longer than a table is wide."""
    most = max(sizes.get("p", 0), MOST_UNITS)
    return is_plain(value) and (not hasattr(value, "__len__") or len(value) <= most)


def columns(value: Any, sizes: Sizes) -> bool:
    """Let a transformer pass with its name and its columns."""
    return (
        isinstance(value, tuple)
        and len(value) == 3
        and isinstance(value[0], str)
        and setting(value[1], sizes)
        and chosen(value[2], sizes)
    )


def _are(values: Any, *names: str) -> bool:
    return all(type(value).__name__ in names for value in values)


def tree(held: Attributes) -> bool:
    """Check that a tree looks at the columns that it is given."""
    grown = held["tree_"]
    return (
        _are([grown], "Tree")
        and grown.n_features == held["n_features_in_"]
        and grown.n_outputs == held["n_outputs_"]
    )


def _grown(trees: list[Any], width: int) -> bool:
    """Tell whether these are fitted trees of the right width."""
    of_trees = _are(trees, "DecisionTreeRegressor", "ExtraTreeRegressor")
    return of_trees and all("tree_" in vars(one) and one.n_features_in_ == width for one in trees)


def forest(held: Attributes) -> bool:
    """Check that all trees look at the columns of the forest."""
    trees = list(held["estimators_"])
    alike = len(trees) > 0 and _grown(trees, held["n_features_in_"])
    return alike and all(one.n_outputs_ == held["n_outputs_"] for one in trees)


def voting(held: Attributes) -> bool:
    """Check that a forest has a column for each class, one for two of them."""
    grown, n_classes = held["forest_"], len(held["classes_"])
    columns = 1 if n_classes <= 2 else n_classes
    return (
        _are([grown], "QuickForest", "RandomCuts")
        and grown.n_features_in_ == held["n_features_in_"]
        and grown.n_outputs_ == columns
    )


def logistic(held: Attributes) -> bool:
    """Check that there is a line for each class, one for two of them."""
    n_classes = len(held["classes_"])
    return len(held["coef_"]) == (1 if n_classes == 2 else n_classes)


def boosting(held: Attributes) -> bool:
    """Check that all trees look at the same columns, and that there is a first guess to add them to."""
    width = held["n_features_in_"]
    # Trees are added to as many guesses as there are rows, without a look at how many there are.
    guesses = np.asarray(held["init_"].predict(np.zeros((2, width))))
    return guesses.shape == (2,) and _grown(held["estimators_"].ravel().tolist(), width)


def predictor(held: Attributes) -> bool:
    """Check that every walk through a tree ends in a leaf, and that its categories are there."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE

    nodes = held["nodes"]
    if nodes.dtype.names != PREDICTOR_RECORD_DTYPE.names:
        return False
    inner = nodes["is_leaf"] == 0
    bitsets = nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)]
    words = {held["raw_left_cat_bitsets"].dtype, held["binned_left_cat_bitsets"].dtype}
    return (
        descends(nodes["left"], nodes["right"], inner)
        and words == {np.dtype(np.uint32)}
        and stay_within(bitsets, len(held["raw_left_cat_bitsets"]))
    )


def _categories(mapper: Any, width: int) -> Any:
    """Return which columns have known categories, or None if that is not known."""
    flags, bounds = vars(mapper).get("is_categorical_"), vars(mapper).get("bin_thresholds_")
    if not (array(f"{width}", "bu")(flags, {}) and each(anything, f"{width}")(bounds, {})):
        return None
    listed = [bounds[index] for index in np.flatnonzero(flags)]
    fits = all(array("*", "f")(known, {}) and stay_within(known, 256) for known in listed)
    return flags != 0 if fits else None


def histogram(held: Attributes) -> bool:
    """Check that trees look at columns that are there, and ask for categories only where they are."""
    width, mapper, before = held["_n_features"], held["_bin_mapper"], held.get("_preprocessor")
    known = _categories(mapper, width) if _are([mapper], "_BinMapper") else None
    trees = [one for round_ in held["_predictors"] for one in round_]
    each_round = held["n_trees_per_iteration_"]
    sizes = {len(round_) for round_ in held["_predictors"]} | {held["_baseline_prediction"].shape[1]}
    if known is None or not _are(trees, "TreePredictor") or sizes != {each_round}:
        return False
    classes = held.get("classes_")
    if classes is not None and each_round != (1 if len(classes) == 2 else len(classes)):
        return False
    for one in trees:
        inner = one.nodes[one.nodes["is_leaf"] == 0]
        bitsets = inner["feature_idx"][inner["is_categorical"] != 0]
        if not (stay_within(inner["feature_idx"], width) and known[bitsets].all()):
            return False
    if before is None:
        return bool(held["n_features_in_"] == width)
    # It hands its columns to compiled code as they come, so one row shows how many there are.
    row = before.transform(np.zeros((1, held["n_features_in_"])))
    return isinstance(row, np.ndarray) and row.shape == (1, width)


def neighbours(held: Attributes) -> bool:
    """Check that the search tree is there if it is needed, and has the rows."""
    kind = {"kd_tree": "KDTree", "ball_tree": "BallTree"}.get(held["_fit_method"], "NoneType")
    if held["n_samples_fit_"] != len(held["_fit_X"]) or not _are([held["_tree"]], kind):
        return False
    return held["_tree"] is None or np.asarray(held["_tree"].data).shape == held["_fit_X"].shape


def support(held: Attributes) -> bool:
    """Check the indices and counts that libsvm takes as they are."""
    n, shape = len(held["support_vectors_"]), held["shape_fit_"]
    return (
        shape[1] == held["n_features_in_"]
        and held["support_"].dtype == held["_n_support"].dtype == np.int32
        and stay_within(held["support_"], shape[0])
        and int(held["_n_support"][0]) == n
        and bool((held["_n_support"] >= 0).all())
    )


def network(held: Attributes) -> bool:
    """Check that each layer takes what the one before it gives."""
    layers, offsets = held["coefs_"], held["intercepts_"]
    widths = [held["n_features_in_"], *(layer.shape[1] for layer in layers)]
    return (
        held["n_layers_"] == len(widths)
        and widths[-1] == 1
        and all(layer.shape == pair for layer, pair in zip(layers, pairwise(widths), strict=True))
        and all(len(offset) == width for offset, width in zip(offsets, widths[1:], strict=True))
        and max(widths[1:]) <= MOST_UNITS
    )


def kernel_ridge(held: Attributes) -> bool:
    """Check that the matrix of a kernel stays small."""
    return len(held["X_fit_"]) <= _MOST_KERNEL_ROWS


def _scales(kernel: Any) -> list[Any]:
    """Return the length scales of a kernel and of the kernels inside it."""
    inner = [value for value in vars(kernel).values() if hasattr(value, "__dict__")]
    inner += [one for one in vars(kernel).get("kernels", ()) if hasattr(one, "__dict__")]
    return [vars(kernel).get("length_scale"), *(scale for one in inner for scale in _scales(one))]


def process(held: Attributes) -> bool:
    """Check that each length belongs to a column."""
    lengths = [scale for scale in _scales(held["kernel_"]) if isinstance(scale, np.ndarray)]
    return all(scale.shape in ((), (held["n_features_in_"],)) for scale in lengths)


def _n_products(width: int, least: int, most: int, only: bool) -> int:
    """Count the products of at least one of the columns whose degrees lie within bounds."""
    first = max(least, 1)
    if only:
        return sum(comb(width, degree) for degree in range(first, most + 1))
    return comb(width + most, most) - comb(width + first - 1, first - 1)


def polynomial(held: Attributes) -> bool:
    """Check that PolynomialFeatures makes as many columns as it says, and not too many."""
    least, most = held["_min_degree"], held["_max_degree"]
    only, bias = held.get("interaction_only"), held.get("include_bias")
    if not (least <= most and isinstance(only, bool) and isinstance(bias, bool)):
        return False
    full, out = (_n_products(held["n_features_in_"], low, most, only) + bias for low in (0, least))
    return bool(held["_n_out_full"] == full <= MOST_COLUMNS and held["n_output_features_"] == out)


def bins(held: Attributes) -> bool:
    """Check that each column has its edges."""
    edges = held["bin_edges_"].tolist()
    of_numbers = all(array("*", "f")(edge, {}) for edge in edges)
    return of_numbers and [len(edge) - 1 for edge in edges] == held["n_bins_"].tolist()


def categories(held: Attributes) -> bool:
    """Check that categories are data, and not too many."""
    total = sum(len(known) for known in held["categories_"])
    return total <= MOST_COLUMNS and all(is_plain(known) for known in held["categories_"])


def one_hot(held: Attributes) -> bool:
    """Check where each category goes: the place is written to without a look."""
    dropped = held.get("_drop_idx_after_grouping")
    sizes = [len(known) for known in held["categories_"]]
    drops = [None] * len(sizes) if dropped is None else dropped.tolist()
    pairs = list(zip(drops, sizes, strict=True))
    placed = all(drop is None or (isinstance(drop, (int, np.integer)) and 0 <= drop < n) for drop, n in pairs)
    outs = [size - (drop is not None) for drop, size in pairs]
    return categories(held) and placed and outs == list(held["_n_features_outs"])


def target_codes(held: Attributes) -> bool:
    """Check that each category has its value."""
    values = [len(known) for known in held["encodings_"]]
    return categories(held) and [len(known) for known in held["categories_"]] == values


def loss(held: Attributes) -> bool:
    """Check that the parts of a loss are what their names say."""
    return (
        _are([held["closs"]], *COMPILED_LOSSES)
        and _are([held["link"]], "IdentityLink", "LogLink", "LogitLink", "MultinomialLogit")
        and _are([held["interval_y_true"], held["interval_y_pred"]], "Interval")
    )
