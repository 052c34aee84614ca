"""Pooled rows: how learners weigh the members of the dictionary, and how they predict.

A learner with a model of its own may use it beside the members of the dictionary. A learner without one uses
common weights. What a learner predicts is kept within what the responses of its coterie make plausible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.guard import widened
from coterie.collaboration.nested.members import KNOW_THE_ID, TREES_OF_ALL, TREES_OF_COTERIE
from coterie.collaboration.nested.newcomers import LinesAndLevels, PooledNewcomers, own_lines
from coterie.collaboration.nested.pooled import PooledDictionary
from coterie.collaboration.nested.record import NestedCollaboration
from coterie.collaboration.nested.views import PooledTable
from coterie.collaboration.nested.weights import LearntWeights, learn_weights, simplex_weights
from coterie.method.noise import smallest_level
from coterie.records import Selection

# Learners with at least this many rows count alike; those with fewer know their errors badly and count less.
PSEUDO_ROWS = 10.0
# Fewer rows do not show the variance of a response.
ROWS_OF_VARIANCE = 5
SOURCES = ("coterie", "all", "adapted")
SHARE_NAMES = {"coterie": "coterie", "all": "all", "adapted": "all adapted"}


def response_variances(table: PooledTable) -> Array:
    """Return the variance of each learner's response, of shape (L,), in common units.

    Where rows are few it is shrunk to the median learner's; where it is rounding, it is its bound.
    """
    sums = table.sums.within()
    counts = np.maximum(sums.counts, 1e-300)
    variances = np.maximum(sums.squares / counts - (sums.products[:, -1] / counts) ** 2, 0.0)
    # The median, so that one learner of a large scale is not everybody's.
    known = (sums.counts >= ROWS_OF_VARIANCE) & (variances > 0)
    typical = (
        float(np.median(variances[known])) if known.any() else float(np.average(variances, weights=counts))
    )
    shrunk = (sums.counts * variances + PSEUDO_ROWS * typical) / (sums.counts + PSEUDO_ROWS)
    return np.maximum(shrunk, smallest_level(float(table.rows.y.var())))


def row_scales(table: PooledTable, variances: Array) -> Array:
    """Return what the squared residual of each row counts for in common weights, of shape (N,)."""
    counts = table.sums.within().counts
    by_learner = 1 / (variances * np.maximum(counts, 1e-300) * (1 + PSEUDO_ROWS / np.maximum(counts, 1e-300)))
    scales: Array = table.rows.weights * by_learner[table.rows.owner]
    return scales


def _grams(table: PooledTable, residuals: Array, variances: Array, n_learners: int) -> tuple[Array, Array]:
    """Return Gram matrices of residuals (N, C) by learner and fold, and how much rows count in them."""
    n_folds, n_columns = len(table.folds), residuals.shape[1]
    grams, counts = np.zeros((n_learners, n_folds, n_columns, n_columns)), np.zeros((n_learners, n_folds))
    for j in range(n_learners):
        span = table.learners.span(j)
        selected, weights, folds = residuals[span], table.rows.weights[span], table.folds.held_out[span]
        for fold in range(n_folds):
            rows = folds == fold
            grams[j, fold] = (selected[rows] * weights[rows, None]).T @ selected[rows] / variances[j]
            counts[j, fold] = weights[rows].sum()
    return grams, counts


def _common(table: PooledTable, residuals: Array, scales: Array, used: Array) -> tuple[Array, Array]:
    """Return common weights (E,) of the members that are used, and the same without each fold, (F, E)."""
    n_folds, size = len(table.folds), residuals.shape[1]
    grams = np.zeros((n_folds, size, size))
    for fold in range(n_folds):
        rows = table.folds.held_out == fold
        grams[fold] = (residuals[rows] * scales[rows, None]).T @ residuals[rows]
    without = np.concatenate([grams.sum(axis=0)[None], grams.sum(axis=0) - grams])[:, used][:, :, used]
    weights = np.zeros((n_folds + 1, size))
    weights[:, used] = simplex_weights(without)
    return weights[0], weights[1:]


@dataclass(frozen=True)
class StackedWeights:
    """How everybody weighs the dictionary.

    ``own`` (L,) is the weight of the own model, ``members`` (L, E) are those of the members; ``newcomers``
    (E,) are common weights of those that need no id. ``residuals`` (N,) are honest: weights were learnt
    without the row's fold. ``shrinkage`` counts pseudo-rows of the average learner.
    """

    own: Array
    members: Array
    newcomers: Array
    residuals: Array = field(repr=False)
    shrinkage: float


def weigh(
    table: PooledTable, dictionary: PooledDictionary, columns: Array, own_predictions: Array, variances: Array
) -> StackedWeights:
    """Weigh the dictionary for everybody.

    ``columns`` (N, E) are the members' predictions out of fold and ``own_predictions`` (N,) those of own
    models, NaN for learners without. The first learners have models of their own.
    """
    y, folds, owner = table.rows.y, table.folds.held_out, table.rows.owner
    n_own, n_members = int(table.shaping.sum()), columns.shape[1]
    scales = row_scales(table, variances)
    residuals = np.where(folds[:, None] >= 0, y[:, None] - columns, 0.0)
    everything = np.arange(n_members)
    common, held_out = _common(table, residuals, scales, everything)
    no_id = np.array([p for p, m in enumerate(dictionary.members) if m.name not in KNOW_THE_ID])
    newcomers = _common(table, residuals, scales, no_id)[0]
    own_weights, members = np.zeros(len(table.learners)), np.tile(common, (len(table.learners), 1))
    fold_of = np.maximum(folds, 0)
    mixed = np.einsum("ne,ne->n", columns, held_out[fold_of])
    own_rows = np.flatnonzero(owner < n_own)
    both = np.column_stack([y - own_predictions, residuals])
    both[folds < 0] = 0.0
    learnt: LearntWeights = learn_weights(*_grams(table, both, variances, n_own))
    own_weights[:n_own], members[:n_own] = learnt.personal[:, 0], learnt.personal[:, 1:]
    selected = learnt.held_out[fold_of[own_rows], owner[own_rows]]
    mixed[own_rows] = np.einsum("ne,ne->n", np.column_stack([own_predictions, columns])[own_rows], selected)
    bounds = table.units.response(_plausible(table))[table.labels[owner]]
    mixed = np.clip(mixed, bounds[:, 0], bounds[:, 1])
    held_out_residuals = np.where(folds >= 0, y - mixed, np.nan)
    return StackedWeights(own_weights, members, newcomers, held_out_residuals, learnt.shrinkage)


def _plausible(table: PooledTable) -> Array:
    """Return what the responses of each coterie make plausible, of shape (K, 2)."""
    y, cluster_of_row = table.learners.scalar_y, table.labels[table.rows.owner]
    return np.array([widened(y[cluster_of_row == k]) for k in range(table.n_coteries)])


def plausible_columns(table: PooledTable, columns: Array) -> Array:
    """Return members' predictions (N, E), in common units, within what all responses make plausible.

    These are the bounds of their predictions. Weights learnt within narrower ones would promise too much.
    """
    low, high = table.units.response(np.array(widened(table.learners.scalar_y)))
    return np.clip(columns, low, high)


def _shares(
    stacked: StackedWeights, dictionary: PooledDictionary, n_own: int
) -> tuple[tuple[str, ...], Array]:
    """Return the names of the sources of predictions, and how much each learner takes from each."""
    sources = [member.source for member in dictionary.members]
    present = [source for source in SOURCES if source in sources]
    columns = [stacked.members[:n_own, [s == source for s in sources]].sum(axis=1) for source in present]
    names = ("alone", *(SHARE_NAMES[source] for source in present))
    return names, np.column_stack([stacked.own[:n_own], *columns])


def _padded(lines: Array, n_features: int) -> Array:
    """Return lines (M, q) with slopes of zero for predictors that no line has."""
    whole = np.zeros((len(lines), n_features + 1))
    whole[:, : lines.shape[1] - 1], whole[:, -1] = lines[:, :-1], lines[:, -1]
    return whole


def assemble(
    table: PooledTable,
    selection: Selection,
    own_bounds: Array,
    dictionary: PooledDictionary,
    stacked: StackedWeights,
) -> NestedCollaboration:
    """Put together how everybody predicts: those with own models, those without, newcomers, and with all."""
    view, units, n_features = dictionary.view, table.units, table.learners.n_features
    n_own, n_all, n_coteries = int(table.shaping.sum()), len(table.learners), table.n_coteries
    trees = [model for model in dictionary.models if model is not None]
    positions = np.full(len(dictionary.members), -1)
    positions[[p for p, model in enumerate(dictionary.models) if model is not None]] = n_own + np.arange(
        len(trees)
    )
    index = dict(zip((member.name for member in dictionary.members), positions.tolist(), strict=True))
    n_rows, n_models = n_all + n_coteries + 1, n_own + len(trees)
    weights = np.zeros((n_rows, n_models))
    weights[np.arange(n_own), np.arange(n_own)] = stacked.own[:n_own]
    for place_in_dictionary, position in enumerate(positions):
        if position >= 0:
            weights[:n_all, position] = stacked.members[:, place_in_dictionary]
    bases = tuple(member.base for member in dictionary.members)
    placed_labels = np.where(view.labels < 0, 0, view.labels)
    placed = LinesAndLevels(
        view.mixed.common + view.mixed.own,
        view.coterie_lines[placed_labels] + view.coterie_own,
        view.description.levels,
    )
    plausible = _plausible(table)
    lines = np.zeros((n_rows, n_features + 1))
    lines[:n_all] = _padded(own_lines(stacked.members, bases, placed, units), n_features)
    label_of_weight_row = np.r_[table.labels, np.arange(n_coteries)]
    prediction_bounds = np.vstack([plausible[label_of_weight_row], widened(table.learners.scalar_y)])
    based = stacked.members[:, [base != "nothing" for base in bases]].sum(axis=1, keepdims=True)
    bounds = np.zeros((n_rows, 2))
    bounds[:n_all] = based * plausible[table.labels]
    context = np.full((n_rows, view.context.shape[1]), np.nan)
    context[:n_all] = table.context(view.description, view.labels)
    shared = dictionary.tree_shares
    trees_of_coterie = index.get(TREES_OF_COTERIE, index.get(TREES_OF_ALL, -1))
    for k in range(n_coteries):
        row = n_all + k
        lines[row] = (1 - shared[1]) * _padded(units.outside(view.plain_lines[k])[None], n_features)[0]
        bounds[row] = (1 - shared[1]) * plausible[k]
        if trees_of_coterie >= 0:
            weights[row, trees_of_coterie] = shared[1]
        if n_coteries > 1:
            context[row, -1 - table.has_ids] = k
    lines[-1] = (1 - shared[0]) * _padded(units.outside(view.mixed.common)[None], n_features)[0]
    bounds[-1] = (1 - shared[0]) * np.array(widened(table.learners.scalar_y))
    if TREES_OF_ALL in index:
        weights[-1, index[TREES_OF_ALL]] = shared[0]
    mask = np.zeros((n_models, context.shape[1]), dtype=bool)
    model_bounds = np.vstack([own_bounds, np.zeros((len(trees), 2))])
    for member, position in zip(dictionary.members, positions, strict=True):
        if position >= 0:
            mask[position] = member.mask
            values = (table.rows.y - member.start(view)) * units.size
            model_bounds[position] = widened(values + (units.middle if member.base == "nothing" else 0.0))
    limits = np.tile([[-np.inf], [np.inf]], (1, n_features))
    limits[:, : len(units.low)] = units.low, units.high
    names = [
        member.name
        for member, model in zip(dictionary.members, dictionary.models, strict=True)
        if model is not None
    ]
    share_names, shares = _shares(stacked, dictionary, n_own)
    residuals = units.size * np.column_stack([stacked.residuals, table.rows.y[:, None] - dictionary.plain])
    own = [tuple(residuals[table.learners.span(j), [c]] for j in range(n_own)) for c in range(3)]
    return NestedCollaboration(
        learner_ids=table.learners.ids[:n_own],
        method="auto",
        models=(*selection.models, *trees),
        names=(*selection.names, *names),
        weights=weights,
        weight_rows=np.arange(n_own),
        newcomer_weight_rows=n_all + np.arange(n_coteries),
        residuals=own[0],
        bounds=model_bounds,
        corrections=lines,
        correction_bounds=bounds,
        limits=limits,
        plausible=prediction_bounds,
        form="pooled",
        plain_residuals=own[2],
        all_residuals=own[1],
        all_row=n_rows - 1,
        share_names=share_names,
        shares=shares,
        shrinkage=stacked.shrinkage,
        n_fits=dictionary.n_fits,
        context=context,
        mask=mask,
        newcomers=PooledNewcomers(
            units,
            view.describer,
            stacked.newcomers,
            bases,
            positions,
            view.coterie_lines,
            table.coterie_ratios,
            plausible,
            n_coteries > 1,
        ),
    )
