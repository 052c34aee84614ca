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
# Rows times predictors: each predictor is shuffled in each row.
MAX_SHUFFLED_CELLS = 150_000
N_FOLDS = 3
# Values along a predictor at which the dependence is measured.
GRID_SIZE = 8
# Cells of X that models predict from in one call.
MAX_CELLS_PER_CALL = 4_000_000


def _shares(importance: Array) -> Array:
    """Return the importance (K, p) of p predictors as shares of their sum in each of K clusters.

    Importance is the rise of the loss when a predictor is shuffled; where the loss falls, it counts as zero.
    """
    rises = np.maximum(np.nan_to_num(importance, nan=0.0, posinf=0.0), 0.0)
    totals = rises.sum(axis=1, keepdims=True)
    shares: Array = np.divide(rises, totals, out=np.zeros_like(rises), where=totals > 0)
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
    """A predictor as the user knows it, which is one column of X or several (a text column's indicators).

    ``values`` (B,) are those at which its dependence is measured, as shown to the user. ``entries`` (B, c)
    are the same values as they stand in its c ``columns``.
    """

    name: str
    columns: tuple[int, ...]
    values: Array
    entries: Array


def _predictors(model: Any, names: Sequence[str], X: Array) -> list[_Predictor]:
    """Return the predictors of rows X (N, p), whose columns are named, in the order of their first columns.

    The columns that one text column of a table became are one predictor: shuffled one by one they would
    contradict each other.
    """
    # Columns that no predictor has taken yet.
    remaining = {name: p for p, name in enumerate(names)}
    recipe = getattr(model, "table_", None)
    plans = () if recipe is None or not set(recipe.features) <= set(names) else recipe.columns
    predictors = []
    for plan in (plan for plan in plans if plan.kind in ("category", "number")):
        columns = tuple(remaining.pop(name) for name in plan.features)
        if plan.kind == "category":
            # The first level, the reference, is zero in all columns; the others are one in their own.
            indicators, reference = np.eye(len(columns)), np.zeros((1, len(columns)))
            levels = [name.removeprefix(f"{plan.name}=") for name in plan.features]
            values = np.array([*plan.levels[:1], *levels])
            predictors.append(_Predictor(plan.name, columns, values, np.vstack([reference, indicators])))
        else:
            predictors.append(_numeric_predictor(plan.name, columns, X))
    predictors += [_numeric_predictor(name, (p,), X) for name, p in remaining.items()]
    return sorted(predictors, key=lambda predictor: predictor.columns[0])


def _numeric_predictor(name: str, columns: tuple[int, ...], X: Array) -> _Predictor:
    """Return a predictor of numbers, to be looked at along quantiles of its first column in X (N, p).

    A second column marks missing entries. It is zero where the first one is set to a value.
    """
    values = np.unique(np.quantile(X[:, columns[0]], np.linspace(0.02, 0.98, GRID_SIZE)))
    entries = np.zeros((len(values), len(columns)))
    entries[:, 0] = values
    return _Predictor(name, columns, values, entries)


def _fold_of_row(learners: Learners, rows: Array, *, in_blocks: bool, generator: Any) -> Array:
    """Return for each of ``rows`` (n,), positions among all learners' rows, the fold (n,) that holds it out.

    Folds are random, or blocks of each learner's rows where neighbouring rows depend on each other.
    """
    if not in_blocks:
        return np.asarray(generator.permutation(np.arange(len(rows)) % N_FOLDS))
    position_in_learner = rows - learners.offsets[learners.owner[rows]]
    return np.asarray(position_in_learner * N_FOLDS // learners.sizes[learners.owner[rows]])


def _predicted(loss: Loss, model: Any, X: Array, predictor: _Predictor, blocks: Array) -> Iterator[Array]:
    """Yield the predictions (n, C) for rows X (n, p) with the predictor's c columns replaced.

    ``blocks`` (B, n, c) has B replacements, each with an entry for every row. Several are predicted in one
    call, as calls cost more than rows.
    """
    blocks_at_once = max(1, MAX_CELLS_PER_CALL // max(X.size, 1))
    for start in range(0, len(blocks), blocks_at_once):
        replacements = blocks[start : start + blocks_at_once]
        changed = np.tile(X, (len(replacements), 1))
        changed[:, predictor.columns] = replacements.reshape(-1, len(predictor.columns))
        yield from loss.predict(model, changed).reshape(len(replacements), len(X), -1)


@dataclass(frozen=True)
class _ClusterModels:
    """A cluster's models by fold, each with rows X (n, p) and responses y (n, C) that were held out of it."""

    # Model, X and y of each fold.
    parts: tuple[tuple[Any, Array, Array], ...]
    # The losses (n,) of each fold's model on its held-out rows.
    losses: tuple[Array, ...]
    # The variance of the response in the cluster, the unit of losses.
    variance: float
    # The candidate's name.
    name: str

    @property
    def n_rows(self) -> int:
        return sum(len(X) for _, X, _ in self.parts)


def _fit_cluster(model: Any, members: Array, rows: Array, seed: int) -> _ClusterModels | None:
    """Fit one model per fold on a cluster's ``rows`` outside the fold; None where none could be fitted.

    The model is the candidate that most of the ``members``, positions of learners, selected. ``model`` is the
    fitted estimator, ``rows`` are positions among all rows. Folds whose model fails are left out.
    """
    learners = model.record_.learners
    selection, loss = model.selection_.aligned_to(learners.ids), learners.loss
    name = Counter(selection.names[j] for j in members).most_common(1)[0][0]
    # Of those who selected it the learner with the most rows lends its model, which is fitted anew.
    chosen = max((j for j in members if selection.names[j] == name), key=lambda j: selection.n_rows[j])
    generator = generator_for(seed, f"importance of the cluster of {learners.ids[members[0]]}")
    folds = _fold_of_row(learners, rows, in_blocks=selection.dependent, generator=generator)
    X, y = learners.X[rows], learners.y[rows]
    parts, losses = [], []
    for fold in range(N_FOLDS):
        held_out = folds == fold
        if not held_out.any() or held_out.all():
            continue
        fold_model = seeded_copy(selection.models[chosen], integer_seed(generator))
        try:
            with quiet_fits():
                fold_model.fit(X[~held_out], loss.target(y[~held_out]))
            held_out_losses = loss.by_row(y[held_out] - loss.predict(fold_model, X[held_out]))
        # Too few rows, one class only: a candidate may fail in its own way.
        except Exception:
            continue
        if np.isfinite(held_out_losses).all():
            parts.append((fold_model, X[held_out], y[held_out]))
            losses.append(held_out_losses)
    variance = loss.variance(y)
    return _ClusterModels(tuple(parts), tuple(losses), variance, name) if parts and variance > 0 else None


def _rises(loss: Loss, fitted: _ClusterModels, predictor: _Predictor, generator: Any) -> tuple[float, float]:
    """Return the permutation importance of a predictor on held-out rows, and its standard error.

    That is the mean rise of the loss when the predictor's columns are shuffled together, as a share of the
    response's variance.
    """
    rises_by_fold = []
    for (model, X, y), losses in zip(fitted.parts, fitted.losses, strict=True):
        shuffled = X[generator.permutation(len(X))][:, predictor.columns][None]
        (predicted,) = _predicted(loss, model, X, predictor, shuffled)
        rises_by_fold.append(loss.by_row(y - predicted) - losses)
    rises = np.concatenate(rises_by_fold) / fitted.variance
    return float(rises.mean()), float(rises.std() / np.sqrt(len(rises)))


def _dependence(loss: Loss, fitted: _ClusterModels, predictor: _Predictor, column: int) -> Array:
    """Return the partial dependence (B,) on held-out rows: the mean prediction with a value set in all rows.

    There are B values of the predictor. Of classes the mean is that of the probability in ``column``.
    """
    sums = np.zeros(len(predictor.values))
    for model, X, _ in fitted.parts:
        blocks = np.repeat(predictor.entries[:, None], len(X), axis=1)
        by_value = [loss.from_columns(rows) for rows in _predicted(loss, model, X, predictor, blocks)]
        sums += np.array(
            [
                predictions.sum() if predictions.ndim == 1 else predictions[:, column].sum()
                for predictions in by_value
            ]
        )
    return sums / fitted.n_rows


def _label(model: Any, label: Any) -> tuple[Any, int]:
    """Return the class that shapes are about, and its column of probabilities; None and 0 for numbers.

    Without a ``label`` it is the second of two classes, else the most frequent. Refuse what is no class.
    """
    distinct_labels = getattr(model, "classes_", None)
    if distinct_labels is None:
        if label is not None:
            raise ValueError("The 'label' argument of measure_importance is for classes, not for numbers.")
        return None, 0
    labels = distinct_labels.tolist()
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
    max_rows = int(np.clip(MAX_SHUFFLED_CELLS / learners.n_features, FEWEST_ROWS, MOST_ROWS))
    fitted: dict[int, _ClusterModels] = {}
    for cluster in range(model.n_clusters_) if clusters is None else clusters:
        rows = np.flatnonzero(labels[learners.owner] == cluster)
        if len(rows) > max_rows:
            rows = rows[np.linspace(0, len(rows) - 1, max_rows).astype(int)]
        cluster_models = (
            _fit_cluster(model, members=np.flatnonzero(labels == cluster), rows=rows, seed=seed)
            if len(rows)
            else None
        )
        if cluster_models is not None:
            fitted[cluster] = cluster_models
    if not fitted:
        raise ValueError("No cluster has enough rows for a model of its own: there is no importance to show.")
    names = predictor_names(model)
    held_out_rows = np.vstack([X for models in fitted.values() for _, X, _ in models.parts])
    predictors = _predictors(model, names, held_out_rows)
    generator = generator_for(seed, "importance")
    # Of shape (K, p, 2): the rise of the loss, and its standard error.
    rises = np.array(
        [
            [_rises(learners.loss, models, predictor, generator) for predictor in predictors]
            for models in fitted.values()
        ]
    )
    importance = rises[:, :, 0]
    most_important = np.argsort(-_shares(importance).mean(axis=0), kind="stable")[:n_shapes]
    shapes = tuple(
        Shape(
            predictor=predictors[p].name,
            values=predictors[p].values,
            predictions=np.array(
                [_dependence(learners.loss, models, predictors[p], column) for models in fitted.values()]
            ),
        )
        for p in most_important.tolist()
    )
    errors = [np.concatenate(models.losses).mean() / models.variance for models in fitted.values()]
    return Importance(
        clusters=np.array(list(fitted)),
        predictors=np.array([predictor.name for predictor in predictors]),
        importance=importance,
        spread=rises[:, :, 1],
        error=np.array(errors),
        models=tuple(models.name for models in fitted.values()),
        n_rows=np.array([models.n_rows for models in fitted.values()]),
        shapes=shapes,
        label=label,
    )
