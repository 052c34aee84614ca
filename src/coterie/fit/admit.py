"""Newcomers join a fit: they are placed among its coteries, which stay as they are.

Newcomers with rows enough select models of their own, the others do not; the two kinds are placed apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from coterie.candidates import ForClasses, candidates_per_learner, names_learners
from coterie.collaboration.classes import NestedClassResult
from coterie.collaboration.nested import FewRows, NestedForm, NestedResult
from coterie.collaboration.nested.own import own_bounds
from coterie.engines import resolve_engine
from coterie.fit.intervals import newcomer_residuals
from coterie.fit.options import Options
from coterie.fit.record import Fit, Newcomer
from coterie.method.select import BLOCKS, select_models
from coterie.records import Partition, Selection
from coterie.rows.learners import Learners
from coterie.verdicts import Admission, few_gains, newcomer_gains, place_newcomers

# Responses further from the others' range than this many widths of the range are not
# pooled with them.
FAR_IN_RANGES = 1.0


def candidates_for(spec: Any, known: list[Any], newcomers: list[Any]) -> Any:
    """Return the candidate models among which newcomers select, in the form of the estimator's option.

    ``spec`` is the option, and ``known`` are the learners of the fit. A mapping by learner may lack a
    newcomer, who then selects among the candidates of all learners in it, one of each name.
    """
    by_learner = spec.spec if isinstance(spec, ForClasses) else spec
    if not names_learners(spec, known) or all(learner in by_learner for learner in newcomers):
        return spec
    candidates_of_all: dict[str, Any] = {}
    for candidates in candidates_per_learner(spec, list(by_learner)):
        candidates_of_all.update(candidates)
    filled = {learner: by_learner.get(learner, candidates_of_all) for learner in newcomers}
    return ForClasses(filled) if isinstance(spec, ForClasses) else filled


def _by_size(fit: Fit, newcomers: Learners) -> Iterator[tuple[Learners, bool]]:
    """Yield the newcomers with rows enough for models of their own, and True; then the others, and False.

    The two kinds are compared with the clusters in different ways. A kind without a learner is left out.
    """
    large = newcomers.sizes >= fit.min_rows
    for in_subset, with_models in ((large, True), (~large, False)):
        if in_subset.any():
            yield newcomers.take(np.flatnonzero(in_subset)), with_models


def split_far_learners(small: Learners, learners: Learners) -> tuple[Learners | None, Learners | None]:
    """Split ``small`` learners into those whose rows may be pooled with the others', and those with far rows.

    One row far from all responses of the ``learners`` who shape the clusters would move the models of
    everybody: its learner is placed when these have been fitted. Return the near ones first; None stands for
    nobody.
    """
    if learners.loss.bounds is not None:
        # A bounded response, as of classes, has no far values.
        return small, None
    low, high = float(learners.scalar_y.min()), float(learners.scalar_y.max())
    margin = FAR_IN_RANGES * (high - low)
    far_rows = (small.scalar_y < low - margin) | (small.scalar_y > high + margin)
    has_far_row = np.bincount(small.owner, far_rows, len(small)) > 0
    near, far = (
        small.take(np.flatnonzero(mask)) if mask.any() else None for mask in (~has_far_row, has_far_row)
    )
    return near, far


def place_few(
    small: Learners,
    selection: Selection,
    partition: Partition,
    learners: Learners,
    options: Options,
    seed: int,
) -> tuple[FewRows, Admission]:
    """Place ``small`` learners, with too few rows for a model of their own, before anybody collaborates.

    Return them with their nearest clusters, for Collaborate to pool their rows there, and the placements.
    ``learners``, with their models in ``selection``, are those that shaped the clusters of ``partition``.
    """
    placed = place_newcomers(
        newcomers=small,
        models=None,
        learners=learners,
        selection=selection.aligned_to(learners.ids),
        partition=partition.aligned_to(learners.ids),
        engine=resolve_engine(options.engine, options.n_jobs),
        n_replicates=options.n_replicates,
        entropy=seed,
    )
    return FewRows(small, placed.nearest), placed


def with_few(fit: Fit, small: Learners, placed: Admission, nested: NestedResult | NestedClassResult) -> Fit:
    """Return the fit with ``small`` learners, whose few rows were pooled with the others', as newcomers.

    ``nested`` is the collaboration that pooled them: it has their out-of-fold residuals and weights.
    """
    residuals = nested.few_residuals, nested.few_all_residuals
    gains = few_gains(small, placed, residuals)
    weight_rows = zip(small.ids.tolist(), nested.few_weight_rows.tolist(), strict=True)
    return replace(
        fit,
        gains=fit.gains.joined(gains),
        admission=placed,
        newcomers=tuple(Newcomer(learner, weight_row) for learner, weight_row in weight_rows),
    )


def _place(fit: Fit, newcomers: Learners, with_models: bool) -> tuple[Selection | None, Admission]:
    """Let newcomers select models, if ``with_models``, and place them among the clusters of the fit.

    To select is to choose a model by cross-validation on the newcomer's own rows. Return their models (None
    without) and their placements, both in the order of the newcomers. The fit stays as it is.
    """
    known_ids, own_models, options = fit.learners.ids, None, fit.options
    if with_models:
        own_models = select_models(
            newcomers,
            candidates=candidates_for(
                options.chosen_candidates, known=known_ids.tolist(), newcomers=newcomers.ids.tolist()
            ),
            # Newcomers' rows are in order if those of the others are.
            splitter=BLOCKS if fit.selection.in_order else options.held_out_by,
            order=None,
            random_state=fit.seed,
            engine=options.engine,
            n_jobs=options.n_jobs,
        ).aligned_to(newcomers.ids)
    placed = place_newcomers(
        newcomers=newcomers,
        models=own_models,
        learners=fit.learners,
        selection=fit.selection.aligned_to(known_ids),
        partition=fit.partition.aligned_to(known_ids),
        engine=resolve_engine(options.engine, options.n_jobs),
        collaboration=fit.collaboration,
        n_replicates=options.n_replicates,
        entropy=fit.seed,
    )
    return own_models, placed


def _with_newcomers(fit: Fit, newcomers: Learners, with_models: bool) -> Fit:
    """Return the fit with newcomers behind the others: placed, with gains and intervals.

    All of them either select models of their own (``with_models``) or have too few rows. Nothing changes for
    the learners that are there: no model is fitted anew, and their verdicts stay.
    """
    units = fit.units
    # Where rows are standardised inside each learner, newcomers have centres and spreads of their own.
    if units is not None:
        newcomers, units_of_newcomers = newcomers.standardized()
        units = units.joined(units_of_newcomers)
    own_models, placed = _place(fit, newcomers, with_models)
    collaboration, intervals = fit.collaboration, fit.intervals
    weight_rows = collaboration.newcomer_weight_rows[placed.nearest]
    if isinstance(collaboration, NestedForm):
        collaboration, weight_rows = collaboration.with_newcomers(newcomers, placed.nearest)
    added = [
        Newcomer(learner, weight_row)
        for learner, weight_row in zip(newcomers.ids.tolist(), weight_rows.tolist(), strict=True)
    ]
    # Who turns out to stay alone predicts with its own model, within bounds by its responses.
    if own_models is not None:
        bounds = np.array([own_bounds(newcomers, newcomers.span(j)) for j in range(len(newcomers))])
        models = zip(added, own_models.models, bounds, strict=True)
        added = [replace(new, model=model, bounds=limits) for new, model, limits in models]
    gains = newcomer_gains(
        newcomers=newcomers,
        own=own_models,
        admission=placed,
        coterie=collaboration,
        with_all=fit.with_all,
        model=fit.gain_model,
        units=units,
    )
    if intervals is not None:
        residuals = newcomer_residuals(
            newcomers=newcomers,
            placed=placed,
            own=own_models,
            # The weights that the newcomers' own rows gave them would not be out of fold.
            collaboration=fit.collaboration,
            verdicts=gains["verdict"],
            seed=fit.seed,
        )
        intervals = intervals.joined(newcomers.ids, placed.labels, residuals)
    return replace(
        fit,
        collaboration=collaboration,
        gains=fit.gains.joined(gains),
        admission=placed if fit.admission is None else fit.admission.joined(placed),
        newcomers=(*fit.newcomers, *added),
        units=units,
        intervals=intervals,
    )


def admit_learners(fit: Fit, newcomers: Learners) -> Fit:
    """Return the fit with learners whom it did not know, behind those that are there.

    Its table keeps the order of first appearance, in whatever order the newcomers were placed.
    """
    ids_in_order = [*fit.learner_ids.tolist(), *newcomers.ids[newcomers.appearance].tolist()]
    for subset, with_models in _by_size(fit, newcomers):
        fit = _with_newcomers(fit, subset, with_models)
    return fit.in_order(ids_in_order)


def place_learners(fit: Fit, newcomers: Learners) -> Admission:
    """Say where newcomers belong, in order of first appearance; nothing is added to the fit."""
    placed: Admission | None = None
    for subset, with_models in _by_size(fit, newcomers):
        in_own_units = subset if fit.units is None else subset.standardized()[0]
        _, placed_subset = _place(fit, in_own_units, with_models)
        placed = placed_subset if placed is None else placed.joined(placed_subset)
    assert placed is not None
    return placed.aligned_to(newcomers.ids[newcomers.appearance])
