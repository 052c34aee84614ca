"""Models to bytes and back, by skops and never by pickle.

skops rebuilds an object from the name of its type and its attributes, and only where the name is trusted.
What we trust beside its own list is written out below, name by name: types whose construction does nothing
but hold numbers. Some of them hold indices that scikit-learn follows without looking, the reason why skops
does not trust them; these are checked before a loaded model is handed out.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble._forest import BaseForest
from sklearn.ensemble._gb import BaseGradientBoosting
from sklearn.ensemble._hist_gradient_boosting.gradient_boosting import BaseHistGradientBoosting
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.neighbors._base import NeighborsBase
from sklearn.svm._base import BaseLibSVM
from sklearn.tree import BaseDecisionTree

from coterie.persistence.archive import PersistenceError, check_stored, unfit

Array = NDArray[Any]

_KERNELS = (
    "CompoundKernel",
    "ConstantKernel",
    "DotProduct",
    "ExpSineSquared",
    "Exponentiation",
    "Hyperparameter",
    "Matern",
    "Product",
    "RBF",
    "RationalQuadratic",
    "Sum",
    "WhiteKernel",
)
_LINKS = ("IdentityLink", "Interval", "LogLink")
_LOSSES = (
    "AbsoluteError",
    "HalfGammaLoss",
    "HalfPoissonLoss",
    "HalfSquaredError",
    "HalfTweedieLoss",
    "HalfTweedieLossIdentity",
    "HuberLoss",
    "PinballLoss",
)
_SPLITTERS = (
    "GroupKFold",
    "GroupShuffleSplit",
    "KFold",
    "LeaveOneOut",
    "LeavePOut",
    "PredefinedSplit",
    "ShuffleSplit",
    "TimeSeriesSplit",
)
TRUSTED = frozenset(
    [
        "coterie._boosting.BoostedTrees",
        "coterie._forest.QuickForest",
        "coterie._forest.RandomCuts",
        "coterie._lines.Line",
        "coterie._penalised.QuickElasticNet",
        "coterie._penalised.QuickLasso",
        "numpy.dtype",
        "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.feature_selection._univariate_selection.f_regression",
        "sklearn.metrics._dist_metrics.ChebyshevDistance64",
        "sklearn.metrics._dist_metrics.EuclideanDistance64",
        "sklearn.metrics._dist_metrics.ManhattanDistance64",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.neighbors._ball_tree.BallTree",
        "sklearn.neighbors._kd_tree.KDTree",
        "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
        "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
        "sklearn.tree._tree.Tree",
        "sklearn.utils._bunch.Bunch",
        *(f"sklearn._loss.link.{name}" for name in _LINKS),
        *(f"sklearn._loss.loss.{name}" for name in _LOSSES),
        *(f"sklearn.gaussian_process.kernels.{name}" for name in _KERNELS),
        *(f"sklearn.model_selection._split.{name}" for name in _SPLITTERS),
    ]
)


def _named_types(schema: Any) -> Iterator[tuple[str, str]]:
    """Give out the module and the name of everything that a skops schema would look up."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if isinstance(part.get("__class__"), str) and isinstance(part.get("__module__"), str):
                yield part["__module__"], part["__class__"]
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _repacked(dumped: bytes) -> bytes:
    """Return a skops file without dates and blanks, once all that it names can be found again."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(dumped)) as source, zipfile.ZipFile(packed, "w") as target:
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename == "schema.json":
                schema = json.loads(content)
                for module, name in sorted(set(_named_types(schema))):
                    if not hasattr(sys.modules.get(module), name):
                        raise PersistenceError(
                            f"A candidate holds {module}.{name}, which a file can only name and nobody could "
                            "find again by this name: define it at the top of a module."
                        )
                content = json.dumps(schema, separators=(",", ":")).encode()
            target.writestr(zipfile.ZipInfo(entry.filename), content)
    return packed.getvalue()


def dump_model(model: Any) -> bytes:
    """Turn a model, a candidate or a splitter into bytes.

    Parameters
    ----------
    model : object
        What to dump.

    Returns
    -------
    bytes
        A skops file.
    """
    # Imported here, for skops looks through all of scikit-learn on import and most users save nothing.
    import skops.io

    try:
        dumped = skops.io.dumps(model)
    # What an object raises when it is asked for its state is up to the object.
    except Exception as error:
        raise PersistenceError(
            f"A {type(model).__name__} cannot be saved without pickle ({error}): leave this candidate out."
        ) from error
    return _repacked(dumped)


def _parts(root: Any) -> Iterator[Any]:
    """Give out an object and all that it holds."""
    seen: set[int] = set()
    waiting = [root]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, dict):
            waiting.extend(part.values())
        elif isinstance(part, (list, tuple, set)):
            waiting.extend(part)
        elif isinstance(part, np.ndarray):
            if part.dtype.kind == "O":
                waiting.extend(part.ravel().tolist())
        elif not isinstance(part, type):
            waiting.extend(getattr(part, "__dict__", {}).values())


def _descends(left: Array, right: Array, inner: Array) -> bool:
    """Tell whether the children of all inner nodes come later in the list: every walk then ends in a leaf."""
    place = np.flatnonzero(inner)
    children = np.column_stack([left[place], right[place]]).astype(np.int64)
    return bool(((children > place[:, None]) & (children < len(inner))).all()) and len(inner) > 0


def _within(values: Array, bound: int) -> bool:
    return bool(((values >= 0) & (values < bound)).all())


def _sound_tree(tree: Any, n_features: int) -> bool:
    inner = tree.children_left != -1
    return (
        tree.n_features == n_features
        and _descends(tree.children_left, tree.children_right, inner)
        and _within(tree.feature[inner], n_features)
    )


def _sound_predictor(predictor: Any, n_features: int) -> bool:
    nodes = predictor.nodes
    inner = nodes["is_leaf"] == 0
    categories = nodes["bitset_idx"][inner & (nodes["is_categorical"] != 0)]
    return (
        _descends(nodes["left"], nodes["right"], inner)
        and _within(nodes["feature_idx"][inner], n_features)
        and _within(categories, len(predictor.raw_left_cat_bitsets))
    )


def _sound_neighbours(tree: Any, n_features: int) -> bool:
    data, order, nodes, bounds = (np.asarray(part) for part in tree.get_arrays())
    places = np.arange(len(nodes))
    start, end = nodes["idx_start"], nodes["idx_end"]
    return (
        data.shape == (len(order), n_features)
        and bounds.shape[1:] == (len(nodes), n_features)
        and _within(order, len(order))
        and bool(((start >= 0) & (start <= end) & (end <= len(order))).all())
        and _descends(2 * places + 1, 2 * places + 2, nodes["is_leaf"] == 0)
    )


def _sound_vectors(machine: Any, n_features: int) -> bool:
    vectors = machine.support_vectors_
    n = len(vectors)
    return bool(
        vectors.shape == (n, n_features)
        and machine._dual_coef_.shape == (1, n)
        and machine.support_.shape == (n,)
        and machine.n_support_.sum() == n
        and machine._intercept_.shape == (1,)
    )


def _sound(part: Any) -> bool:
    """Tell whether the indices that compiled code follows blindly stay inside their arrays."""
    held = getattr(part, "__dict__", {})
    if isinstance(part, BaseDecisionTree) and "tree_" in held:
        return _sound_tree(part.tree_, part.n_features_in_)
    if isinstance(part, (BaseForest, BaseGradientBoosting)) and "estimators_" in held:
        trees = np.ravel(np.asarray(part.estimators_, dtype=object))
        flat = isinstance(part, BaseForest) or part.estimators_.shape == (len(trees), 1)
        return flat and all(tree.n_features_in_ == part.n_features_in_ for tree in trees)
    if isinstance(part, BaseHistGradientBoosting) and "_predictors" in held:
        predictors = [predictor for round_ in part._predictors for predictor in round_]
        return all(_sound_predictor(predictor, part.n_features_in_) for predictor in predictors)
    if isinstance(part, NeighborsBase) and "_fit_X" in held:
        whole = part._tree is None or _sound_neighbours(part._tree, part.n_features_in_)
        return whole and bool(part._fit_X.shape[1:] == (part.n_features_in_,))
    if isinstance(part, BaseLibSVM) and "support_vectors_" in held:
        return _sound_vectors(part, part.n_features_in_)
    return True


def load_model(dumped: bytes, trusted: Iterable[str | type]) -> Any:
    """Rebuild what `dump_model` dumped.

    Parameters
    ----------
    dumped : bytes
        A skops file, of which nothing is known.
    trusted : iterable of str or type
        Types that the user trusts beside `TRUSTED` and what skops trusts by itself.

    Returns
    -------
    object
        The model, candidate or splitter.
    """
    import skops.io

    check_stored(dumped)
    theirs = {t if isinstance(t, str) else f"{t.__module__}.{t.__name__}" for t in trusted}
    found = set(skops.io.get_untrusted_types(data=dumped))
    refused = sorted(found - TRUSTED - theirs)
    if refused:
        raise PersistenceError(
            f"The file names {refused[0]}, which is not among the types that coterie trusts: if you know it "
            f"and trust where the file comes from, use load(path, trusted={refused!r})."
        )
    with warnings.catch_warnings():
        # `load` compares the versions and says so once, not once per model.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = skops.io.loads(dumped, trusted=sorted(found))
    for part in _parts(model):
        if not _sound(part):
            raise unfit(f"holds a {type(part).__name__} whose parts do not fit each other")
        if isinstance(getattr(part, "__dict__", {}).get("memory"), str):
            # A folder of pickles that a pipeline would read when it is fitted again.
            part.memory = None
    return model
