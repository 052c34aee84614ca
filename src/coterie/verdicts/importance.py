"""Which predictors matter in each cluster, and how: on rows that the models have not seen.

Each cluster's rows are cut into folds. A model of the kind that most members chose is fitted without each
fold. Importance is the rise of its loss on the fold when a predictor's entries are shuffled, and dependence
is its mean prediction on the fold when a predictor is set to one value in all rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie._arrays import Array
from coterie._options import listed
from coterie._seeds import generator_for, integer_seed, seeded_copy
from coterie.loss import Loss
from coterie.method.fitting import quiet_fits
from coterie.rows.learners import Learners
from coterie.verdicts.differences import predictor_names

# Of a cluster this many rows are looked at; fewer where there are very many predictors to shuffle.
FEWEST_ROWS, MOST_ROWS = 200, 1_000
MOST_SHUFFLED = 150_000
FOLDS = 3
# Values along a predictor at which the dependence is measured.
GRID = 8
# Cells that models predict in one call.
MOST_CELLS = 4_000_000


def _shares(importance: Array) -> Array:
    """Return rises as shares of their sum in each cluster; a fall is none."""
    rises = np.maximum(np.nan_to_num(importance, nan=0.0, posinf=0.0), 0.0)
    total = rises.sum(axis=1, keepdims=True)
    shares: Array = np.divide(rises, total, out=np.zeros_like(rises), where=total > 0)
    return shares


@dataclass(frozen=True)
class Importance:
    """Which predictors matter in each cluster, and how.

    Parameters
    ----------
    clusters : ndarray of shape (K,)
        The clusters.
    predictors : ndarray of shape (p,)
        Names of the predictors; all columns that one text column became are one predictor.
    importance : ndarray of shape (K, p)
        Rise of the loss on rows not seen when the predictor is shuffled, as a share of the response's
        variance in the cluster.
    spread : ndarray of shape (K, p)
        Its standard error.
    error : ndarray of shape (K,)
        Loss of the models on these rows, as a share of the response's variance.
    models : tuple of str
        The kind of model of each cluster.
    n_rows : ndarray of shape (K,)
        Rows that were looked at.
    shapes : tuple of Shape
        How predictions depend on the most important predictors.
    label : class or None, default=None
        The class whose probability the shapes are about; None for numbers.
    """

    clusters: Array
    predictors: Array
    importance: Array
    spread: Array
    error: Array
    models: tuple[str, ...]
    n_rows: Array
    shapes: tuple[Shape, ...] = field(repr=False)
    label: Any = None

    @property
    def shares(self) -> Array:
        """The importance of each predictor as a share of all predictors' in its cluster, of shape (K, p)."""
        return _shares(self.importance)


@dataclass(frozen=True)
class Shape:
    """How predictions depend on one predictor.

    Parameters
    ----------
    predictor : str
        Its name.
    values : ndarray of shape (B,)
        The values to which it was set: numbers, or entries of a text column.
    predictions : ndarray of shape (K, B)
        The mean prediction of each cluster's models.
    """

    predictor: str
    values: Array
    predictions: Array


@dataclass(frozen=True)
class _Predictor:
    """A predictor: its columns, and the rows of entries (B, len(columns)) along which it is looked at."""

    name: str
    columns: tuple[int, ...]
    values: Array
    entries: Array


def _predictors(model: Any, names: Sequence[str], X: Array) -> list[_Predictor]:
    """Return the predictors; the columns that a table's text column became belong together."""
    index = {name: p for p, name in enumerate(names)}
    recipe = getattr(model, "table_", None)
    plans = () if recipe is None or not set(recipe.features) <= set(names) else recipe.columns
    result = []
    for plan in (plan for plan in plans if plan.kind in ("category", "number")):
        columns = tuple(index.pop(name) for name in plan.features)
        if plan.kind == "category":
            rows, first = np.eye(len(columns)), np.zeros((1, len(columns)))
            entries = [name.removeprefix(f"{plan.name}=") for name in plan.features]
            values = np.array([*plan.levels[:1], *entries])
            result.append(_Predictor(plan.name, columns, values, np.vstack([first, rows])))
        else:
            result.append(_number(plan.name, columns, X))
    result += [_number(name, (p,), X) for name, p in index.items()]
    return sorted(result, key=lambda predictor: predictor.columns[0])


def _number(name: str, columns: tuple[int, ...], X: Array) -> _Predictor:
    """Return a predictor of numbers; a column that marks missing entries is zero where it is set."""
    values = np.unique(np.quantile(X[:, columns[0]], np.linspace(0.02, 0.98, GRID)))
    entries = np.zeros((len(values), len(columns)))
    entries[:, 0] = values
    return _Predictor(name, columns, values, entries)


def _fold_of_row(learners: Learners, rows: Array, *, in_blocks: bool, generator: Any) -> Array:
    """Return the fold that holds each row out: blocks of each learner's rows, or random rows."""
    if not in_blocks:
        return np.asarray(generator.permutation(np.arange(len(rows)) % FOLDS))
    within = rows - learners.offsets[learners.owner[rows]]
    return np.asarray(within * FOLDS // learners.sizes[learners.owner[rows]])


def _predicted(loss: Loss, model: Any, X: Array, predictor: _Predictor, blocks: Array) -> Iterator[Array]:
    """Yield predictions (n, C) for each block of entries (n, c) in the predictor's place."""
    blocks_at_once = max(1, MOST_CELLS // max(X.size, 1))
    for start in range(0, len(blocks), blocks_at_once):
        subset = blocks[start : start + blocks_at_once]
        changed = np.tile(X, (len(subset), 1))
        changed[:, predictor.columns] = subset.reshape(-1, len(predictor.columns))
        yield from loss.predict(model, changed).reshape(len(subset), len(X), -1)


@dataclass(frozen=True)
class _ClusterModels:
    """A cluster's models by fold, each with rows X (n, p) and responses (n, C) that it has not seen."""

    parts: tuple[tuple[Any, Array, Array], ...]
    # Their losses, fold by fold.
    losses: tuple[Array, ...]
    variance: float
    name: str

    @property
    def n_rows(self) -> int:
        return sum(len(X) for _, X, _ in self.parts)


def _fit_cluster(model: Any, members: Array, rows: Array, seed: int) -> _ClusterModels | None:
    """Fit a cluster's models without each fold; None where none could be fitted."""
    learners = model.record_.learners
    selection, loss = model.selection_.aligned_to(learners.ids), learners.loss
    name = Counter(selection.names[j] for j in members).most_common(1)[0][0]
    chosen = max((j for j in members if selection.names[j] == name), key=lambda j: selection.n_rows[j])
    generator = generator_for(seed, f"importance of the cluster of {learners.ids[members[0]]}")
    folds = _fold_of_row(learners, rows, in_blocks=selection.dependent, generator=generator)
    X, y = learners.X[rows], learners.y[rows]
    parts, losses = [], []
    for fold in range(FOLDS):
        validation = folds == fold
        if not validation.any() or validation.all():
            continue
        fresh = seeded_copy(selection.models[chosen], integer_seed(generator))
        try:
            with quiet_fits():
                fresh.fit(X[~validation], loss.target(y[~validation]))
            lost = loss.by_row(y[validation] - loss.predict(fresh, X[validation]))
        # Too few rows, one class only: a candidate may fail in its own way.
        except Exception:
            continue
        if np.isfinite(lost).all():
            parts.append((fresh, X[validation], y[validation]))
            losses.append(lost)
    variance = loss.variance(y)
    return _ClusterModels(tuple(parts), tuple(losses), variance, name) if parts and variance > 0 else None


def _rises(loss: Loss, fitted: _ClusterModels, predictor: _Predictor, generator: Any) -> tuple[float, float]:
    """Return the mean rise of the loss when a predictor is shuffled, and its standard error."""
    rises = []
    for (model, X, y), before in zip(fitted.parts, fitted.losses, strict=True):
        shuffled = X[generator.permutation(len(X))][:, predictor.columns][None]
        (predicted,) = _predicted(loss, model, X, predictor, shuffled)
        rises.append(loss.by_row(y - predicted) - before)
    rise = np.concatenate(rises) / fitted.variance
    return float(rise.mean()), float(rise.std() / np.sqrt(len(rise)))


def _dependence(loss: Loss, fitted: _ClusterModels, predictor: _Predictor, column: int) -> Array:
    """Return the mean prediction (B,) with the predictor set to each of its values."""
    total = np.zeros(len(predictor.values))
    for model, X, _ in fitted.parts:
        blocks = np.repeat(predictor.entries[:, None], len(X), axis=1)
        predictions = [loss.from_columns(rows) for rows in _predicted(loss, model, X, predictor, blocks)]
        total += np.array([each.sum() if each.ndim == 1 else each[:, column].sum() for each in predictions])
    return total / fitted.n_rows


def _label(model: Any, label: Any) -> tuple[Any, int]:
    """Return the class that shapes are about, and its column; None and 0 for numbers."""
    known = getattr(model, "classes_", None)
    if known is None:
        if label is not None:
            raise ValueError("The 'label' argument of measure_importance is for classes, not for numbers.")
        return None, 0
    labels = known.tolist()
    if label is not None and label not in labels:
        raise ValueError(
            f"The 'label' argument of measure_importance must be a class of the model, {listed(labels)}. "
            f"Got {label!r}."
        )
    if label is None:
        learners = model.record_.learners
        counts = np.bincount(learners.loss.target(learners.y), minlength=len(labels))
        label = labels[1] if len(labels) == 2 else labels[int(counts.argmax())]
    return label, labels.index(label)


def measure_importance(
    model: Any, clusters: Sequence[int] | None = None, *, label: Any = None, n_shapes: int = 4
) -> Importance:
    """Tell which predictors matter in each cluster, and how, on rows not seen.

    Of each cluster at most 1,000 rows are looked at. Weights of rows are not used. Under
    ``standardize="learner"`` predictors and predictions are in each learner's standardised units.

    Parameters
    ----------
    model : CoterieRegressor or CoterieClassifier
        Fitted, with its rows.
    clusters : sequence of int or None, default=None
        The clusters to look at. None: all.
    label : class or None, default=None
        Of classes, the one whose probability the shapes are about. None: of two the second, of more the most
        frequent.
    n_shapes : int, default=4
        Number of predictors whose shapes are measured.

    Returns
    -------
    Importance
        Of the clusters for which a model could be fitted.

    Examples
    --------
    >>> from coterie import CoterieRegressor
    >>> from coterie.datasets import make_linear_learners
    >>> from coterie.verdicts import measure_importance
    >>> truths = [[3.0, 0.0, 0.0], [0.0, 0.0, -3.0]]
    >>> data = make_linear_learners(8, coefficients=truths, random_state=0)
    >>> model = CoterieRegressor(["ridge"], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    >>> sorted(measure_importance(model).importance.argmax(axis=1).tolist())
    [0, 2]
    """
    check_is_fitted(model)
    learners, seed = model.record_.learners, model.record_.seed
    if not len(learners.y):
        raise ValueError(
            "This model was saved without its rows, which measure_importance needs: save it with rows=True."
        )
    label, column = _label(model, label)
    labels = model.partition_.aligned_to(learners.ids).labels
    most = int(np.clip(MOST_SHUFFLED / learners.n_features, FEWEST_ROWS, MOST_ROWS))
    fitted: dict[int, _ClusterModels] = {}
    for cluster in range(model.n_clusters_) if clusters is None else clusters:
        rows = np.flatnonzero(labels[learners.owner] == cluster)
        if len(rows) > most:
            rows = rows[np.linspace(0, len(rows) - 1, most).astype(int)]
        result = _fit_cluster(model, np.flatnonzero(labels == cluster), rows, seed) if len(rows) else None
        if result is not None:
            fitted[cluster] = result
    if not fitted:
        raise ValueError("No cluster has enough rows for a model of its own: there is no importance to show.")
    names = predictor_names(model)
    seen = np.vstack([X for each in fitted.values() for _, X, _ in each.parts])
    predictors = _predictors(model, names, seen)
    generator = generator_for(seed, "importance")
    measured = np.array(
        [
            [_rises(learners.loss, each, predictor, generator) for predictor in predictors]
            for each in fitted.values()
        ]
    )
    importance = measured[:, :, 0]
    top = np.argsort(-_shares(importance).mean(axis=0), kind="stable")[:n_shapes]
    shapes = tuple(
        Shape(
            predictors[p].name,
            predictors[p].values,
            np.array([_dependence(learners.loss, each, predictors[p], column) for each in fitted.values()]),
        )
        for p in top.tolist()
    )
    losses = [np.concatenate(each.losses).mean() / each.variance for each in fitted.values()]
    return Importance(
        clusters=np.array(list(fitted)),
        predictors=np.array([predictor.name for predictor in predictors]),
        importance=importance,
        spread=measured[:, :, 1],
        error=np.array(losses),
        models=tuple(each.name for each in fitted.values()),
        n_rows=np.array([each.n_rows for each in fitted.values()]),
        shapes=shapes,
        label=label,
    )
