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
    """Return the variance of each learner's response, (L,), in common units, shrunken to the median one.

    Errors are divided by it, so that learners count alike. It is never less than rounding error, so that
    a constant response divides nothing by zero.
    """
    sums = table.sums.within()
    counts = np.maximum(sums.counts, 1e-300)
    variances = np.maximum(sums.squares / counts - (sums.products[:, -1] / counts) ** 2, 0.0)
    # The median, so that one learner of a large scale is not everybody's.
    is_known = (sums.counts >= ROWS_OF_VARIANCE) & (variances > 0)
    median_variance = (
        float(np.median(variances[is_known]))
        if is_known.any()
        else float(np.average(variances, weights=counts))
    )
    shrunken = (sums.counts * variances + PSEUDO_ROWS * median_variance) / (sums.counts + PSEUDO_ROWS)
    return np.maximum(shrunken, smallest_level(float(table.rows.y.var())))


def row_scales(table: PooledTable, variances: Array) -> Array:
    """Return the weight (N,) of each row's squared residual where common weights are learnt.

    A learner's rows together count about one, in units of its response's ``variances`` (L,), whatever
    their number; learners with few rows count less.
    """
    counts = table.sums.within().counts
    scales_of_learners = 1 / (
        variances * np.maximum(counts, 1e-300) * (1 + PSEUDO_ROWS / np.maximum(counts, 1e-300))
    )
    scales: Array = table.rows.weights * scales_of_learners[table.rows.owner]
    return scales


def _grams(table: PooledTable, residuals: Array, variances: Array, n_learners: int) -> tuple[Array, Array]:
    """Return Gram matrices of residuals (N, C) by learner and fold, (L, F, C, C), and row weights (L, F).

    They have the products of predictors' residuals, from which the best weights of these follow without rows.
    They are divided by the ``variances`` (L,) of the responses, so that no learner's unit decides, and made
    for the first ``n_learners`` only.
    """
    n_folds, n_columns = len(table.folds), residuals.shape[1]
    grams, counts = np.zeros((n_learners, n_folds, n_columns, n_columns)), np.zeros((n_learners, n_folds))
    for learner in range(n_learners):
        span = table.learners.span(learner)
        learner_residuals, weights, fold_of_row = (
            residuals[span],
            table.rows.weights[span],
            table.folds.held_out[span],
        )
        for fold in range(n_folds):
            in_fold = fold_of_row == fold
            grams[learner, fold] = (
                (learner_residuals[in_fold] * weights[in_fold, None]).T
                @ learner_residuals[in_fold]
                / variances[learner]
            )
            counts[learner, fold] = weights[in_fold].sum()
    return grams, counts


def _common(table: PooledTable, residuals: Array, scales: Array, used_members: Array) -> tuple[Array, Array]:
    """Return the common weights (E,) of the members, and those learnt without each fold, (F, E).

    ``residuals`` (N, E) are out of fold and rows are weighed by ``scales`` (N,). Members that are not
    among the positions ``used_members`` have weight zero.
    """
    n_folds, size = len(table.folds), residuals.shape[1]
    grams = np.zeros((n_folds, size, size))
    for fold in range(n_folds):
        in_fold = table.folds.held_out == fold
        grams[fold] = (residuals[in_fold] * scales[in_fold, None]).T @ residuals[in_fold]
    grams_without = np.concatenate([grams.sum(axis=0)[None], grams.sum(axis=0) - grams])[:, used_members][
        :, :, used_members
    ]
    weights = np.zeros((n_folds + 1, size))
    weights[:, used_members] = simplex_weights(grams_without)
    return weights[0], weights[1:]


@dataclass(frozen=True)
class StackedWeights:
    """The weights of own models and of the dictionary's members, learnt on out-of-fold predictions.

    ``own`` (L,) are weights of the own models and ``members`` (L, E) of the members. ``newcomers`` (E,)
    are common weights of those members that need no id. ``residuals`` (N,) are under weights learnt
    without the row's fold. ``shrinkage`` is the number of pseudo-rows of the average learner.
    """

    own: Array
    members: Array
    newcomers: Array
    residuals: Array = field(repr=False)
    shrinkage: float


def weigh(
    table: PooledTable, dictionary: PooledDictionary, columns: Array, own_predictions: Array, variances: Array
) -> StackedWeights:
    """Learn each learner's weights of its own model and of the members, by out-of-fold predictions.

    ``columns`` (N, E) are those of the members and ``own_predictions`` (N,) those of own models, NaN for
    learners without. Those come last and take the common weights; the others have weights of their own.
    """
    y, folds, owner = table.rows.y, table.folds.held_out, table.rows.owner
    n_own, n_members = int(table.shaping.sum()), columns.shape[1]
    scales = row_scales(table, variances)
    residuals = np.where(folds[:, None] >= 0, y[:, None] - columns, 0.0)
    all_members = np.arange(n_members)
    common, held_out = _common(table, residuals, scales, all_members)
    members_without_id = np.array(
        [position for position, member in enumerate(dictionary.members) if member.name not in KNOW_THE_ID]
    )
    newcomer_weights = _common(table, residuals, scales, members_without_id)[0]
    own_weights, member_weights = np.zeros(len(table.learners)), np.tile(common, (len(table.learners), 1))
    fold_of = np.maximum(folds, 0)
    mixed_predictions = np.einsum("ne,ne->n", columns, held_out[fold_of])
    own_rows = np.flatnonzero(owner < n_own)
    own_and_member_residuals = np.column_stack([y - own_predictions, residuals])
    own_and_member_residuals[folds < 0] = 0.0
    learnt: LearntWeights = learn_weights(*_grams(table, own_and_member_residuals, variances, n_own))
    own_weights[:n_own], member_weights[:n_own] = learnt.personal[:, 0], learnt.personal[:, 1:]
    weights_of_rows = learnt.held_out[fold_of[own_rows], owner[own_rows]]
    mixed_predictions[own_rows] = np.einsum(
        "ne,ne->n", np.column_stack([own_predictions, columns])[own_rows], weights_of_rows
    )
    bounds_of_rows = table.units.response(_plausible(table))[table.labels[owner]]
    mixed_predictions = np.clip(mixed_predictions, bounds_of_rows[:, 0], bounds_of_rows[:, 1])
    held_out_residuals = np.where(folds >= 0, y - mixed_predictions, np.nan)
    return StackedWeights(
        own=own_weights,
        members=member_weights,
        newcomers=newcomer_weights,
        residuals=held_out_residuals,
        shrinkage=learnt.shrinkage,
    )


def _plausible(table: PooledTable) -> Array:
    """Return the range of the responses in each of K coteries with a margin, of shape (K, 2)."""
    responses, cluster_of_row = table.learners.scalar_y, table.labels[table.rows.owner]
    return np.array([widened(responses[cluster_of_row == k]) for k in range(table.n_coteries)])


def plausible_columns(table: PooledTable, columns: Array) -> Array:
    """Return the members' predictions (N, E), in common units, clipped to the range of all responses.

    The models' predictions are clipped to the same range later. Weights that are learnt within a narrower
    one would promise too small an error.
    """
    low, high = table.units.response(np.array(widened(table.learners.scalar_y)))
    return np.clip(columns, low, high)


def _shares(
    stacked: StackedWeights, dictionary: PooledDictionary, n_own: int
) -> tuple[tuple[str, ...], Array]:
    """Return the names of the sources of predictions, and what each learner takes from each.

    Sources are the learner alone, its coterie, and all learners. The weights of the members of a source
    are added, (L, number of sources), for the first ``n_own`` learners, who have models of their own.
    """
    sources = [member.source for member in dictionary.members]
    present_sources = [source for source in SOURCES if source in sources]
    taken_from_sources = [
        stacked.members[:n_own, [member_source == source for member_source in sources]].sum(axis=1)
        for source in present_sources
    ]
    names = ("alone", *(SHARE_NAMES[source] for source in present_sources))
    return names, np.column_stack([stacked.own[:n_own], *taken_from_sources])


def _padded(lines: Array, n_features: int) -> Array:
    """Return lines (M, q) for all predictors, (M, p + 1), with zero slopes for those that no line has."""
    padded = np.zeros((len(lines), n_features + 1))
    padded[:, : lines.shape[1] - 1], padded[:, -1] = lines[:, :-1], lines[:, -1]
    return padded


def assemble(
    table: PooledTable,
    selection: Selection,
    own_bounds: Array,
    dictionary: PooledDictionary,
    stacked: StackedWeights,
) -> NestedCollaboration:
    """Put weights, lines, models and bounds together in one record that predicts.

    Its rows are the learners with own models, those with few rows, one row for each coterie, by which
    newcomers predict, and last the row of what all learners share. Models are own models, then the
    members' trees.
    """
    view, units, n_features = dictionary.view, table.units, table.learners.n_features
    n_own, n_all, n_coteries = int(table.shaping.sum()), len(table.learners), table.n_coteries
    trees = [model for model in dictionary.models if model is not None]
    positions = np.full(len(dictionary.members), -1)
    positions[
        [member_position for member_position, model in enumerate(dictionary.models) if model is not None]
    ] = n_own + np.arange(len(trees))
    position_of = dict(zip((member.name for member in dictionary.members), positions.tolist(), strict=True))
    n_rows, n_models = n_all + n_coteries + 1, n_own + len(trees)
    weights = np.zeros((n_rows, n_models))
    weights[np.arange(n_own), np.arange(n_own)] = stacked.own[:n_own]
    for member_index, position in enumerate(positions):
        if position >= 0:
            weights[:n_all, position] = stacked.members[:, member_index]
    bases = tuple(member.base for member in dictionary.members)
    placed_labels = np.where(view.labels < 0, 0, view.labels)
    lines_and_levels = LinesAndLevels(
        view.mixed.common + view.mixed.own,
        view.coterie_lines[placed_labels] + view.coterie_own,
        view.description.levels,
    )
    plausible = _plausible(table)
    lines = np.zeros((n_rows, n_features + 1))
    lines[:n_all] = _padded(own_lines(stacked.members, bases, lines_and_levels, units), n_features)
    label_of_weight_row = np.r_[table.labels, np.arange(n_coteries)]
    prediction_bounds = np.vstack([plausible[label_of_weight_row], widened(table.learners.scalar_y)])
    base_weights = stacked.members[:, [base != "nothing" for base in bases]].sum(axis=1, keepdims=True)
    bounds = np.zeros((n_rows, 2))
    bounds[:n_all] = base_weights * plausible[table.labels]
    context = np.full((n_rows, view.context.shape[1]), np.nan)
    context[:n_all] = table.context(view.description, view.labels)
    tree_shares = dictionary.tree_shares
    trees_of_coterie = position_of.get(TREES_OF_COTERIE, position_of.get(TREES_OF_ALL, -1))
    for coterie in range(n_coteries):
        row = n_all + coterie
        lines[row] = (1 - tree_shares[1]) * _padded(
            units.outside(view.plain_lines[coterie])[None], n_features
        )[0]
        bounds[row] = (1 - tree_shares[1]) * plausible[coterie]
        if trees_of_coterie >= 0:
            weights[row, trees_of_coterie] = tree_shares[1]
        if n_coteries > 1:
            context[row, -1 - table.has_ids] = coterie
    lines[-1] = (1 - tree_shares[0]) * _padded(units.outside(view.mixed.common)[None], n_features)[0]
    bounds[-1] = (1 - tree_shares[0]) * np.array(widened(table.learners.scalar_y))
    if TREES_OF_ALL in position_of:
        weights[-1, position_of[TREES_OF_ALL]] = tree_shares[0]
    mask = np.zeros((n_models, context.shape[1]), dtype=bool)
    model_bounds = np.vstack([own_bounds, np.zeros((len(trees), 2))])
    for member, position in zip(dictionary.members, positions, strict=True):
        if position >= 0:
            mask[position] = member.mask
            targets = (table.rows.y - member.start(view)) * units.size
            model_bounds[position] = widened(targets + (units.middle if member.base == "nothing" else 0.0))
    limits = np.tile([[-np.inf], [np.inf]], (1, n_features))
    limits[:, : len(units.low)] = units.low, units.high
    tree_names = [
        member.name
        for member, model in zip(dictionary.members, dictionary.models, strict=True)
        if model is not None
    ]
    share_names, shares = _shares(stacked, dictionary, n_own)
    residuals = units.size * np.column_stack([stacked.residuals, table.rows.y[:, None] - dictionary.plain])
    residuals_by_source = [
        tuple(residuals[table.learners.span(learner), [source]] for learner in range(n_own))
        for source in range(3)
    ]
    return NestedCollaboration(
        learner_ids=table.learners.ids[:n_own],
        method="auto",
        models=(*selection.models, *trees),
        names=(*selection.names, *tree_names),
        weights=weights,
        weight_rows=np.arange(n_own),
        newcomer_weight_rows=n_all + np.arange(n_coteries),
        residuals=residuals_by_source[0],
        bounds=model_bounds,
        corrections=lines,
        correction_bounds=bounds,
        limits=limits,
        plausible=prediction_bounds,
        form="pooled",
        plain_residuals=residuals_by_source[2],
        all_residuals=residuals_by_source[1],
        all_row=n_rows - 1,
        share_names=share_names,
        shares=shares,
        shrinkage=stacked.shrinkage,
        n_fits=dictionary.n_fits,
        context=context,
        mask=mask,
        newcomers=PooledNewcomers(
            units=units,
            describer=view.describer,
            weights=stacked.newcomers,
            bases=bases,
            positions=positions,
            coterie_lines=view.coterie_lines,
            coterie_ratios=table.coterie_ratios,
            bounds=plausible,
            several=n_coteries > 1,
        ),
    )
