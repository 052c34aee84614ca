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

# Responses further from the others' range than this share of it are not pooled with them.
FAR = 1.0


def candidates_for(spec: Any, known: list[Any], newcomers: list[Any]) -> Any:
    """Return the candidates; a newcomer whom a mapping does not name chooses among everybody's."""
    given = spec.spec if isinstance(spec, ForClasses) else spec
    if not names_learners(spec, known) or all(learner in given for learner in newcomers):
        return spec
    all_learners: dict[str, Any] = {}
    for candidates in candidates_per_learner(spec, list(given)):
        all_learners.update(candidates)
    filled = {learner: given.get(learner, all_learners) for learner in newcomers}
    return ForClasses(filled) if isinstance(spec, ForClasses) else filled


def _alike(fit: Fit, newcomers: Learners) -> Iterator[tuple[Learners, bool]]:
    """Give out those who select models, then those who do not."""
    large = newcomers.sizes >= fit.min_rows
    for subset, with_models in ((large, True), (~large, False)):
        if subset.any():
            yield newcomers.take(np.flatnonzero(subset)), with_models


def split_far_learners(small: Learners, learners: Learners) -> tuple[Learners | None, Learners | None]:
    """Return the learners whose few rows may be pooled with the others', and those who would spoil them.

    One row far from all responses of those who shape the clusters would move the models of everybody: its
    learner is placed when these have been fitted.
    """
    if learners.loss.bounds is not None:
        # Nothing that comes can be far from anything.
        return small, None
    low, high = float(learners.scalar_y.min()), float(learners.scalar_y.max())
    far = (small.scalar_y < low - FAR * (high - low)) | (small.scalar_y > high + FAR * (high - low))
    apart = np.bincount(small.owner, far, len(small)) > 0
    parts = [small.take(np.flatnonzero(subset)) if subset.any() else None for subset in (~apart, apart)]
    return parts[0], parts[1]


def place_few(
    small: Learners,
    selection: Selection,
    partition: Partition,
    learners: Learners,
    options: Options,
    seed: int,
) -> tuple[FewRows, Admission]:
    """Place learners with too few rows for a model of their own, before anybody collaborates."""
    placed = place_newcomers(
        small,
        None,
        learners,
        selection.aligned_to(learners.ids),
        partition.aligned_to(learners.ids),
        resolve_engine(options.engine, options.n_jobs),
        n_replicates=options.n_replicates,
        entropy=seed,
    )
    return FewRows(small, placed.nearest), placed


def with_few(fit: Fit, small: Learners, placed: Admission, nested: NestedResult | NestedClassResult) -> Fit:
    """Return the fit with learners whose few rows were pooled with the others'."""
    residuals = nested.few_residuals, nested.few_all_residuals
    gains = few_gains(small, placed, residuals)
    rows = zip(small.ids.tolist(), nested.few_weight_rows.tolist(), strict=True)
    return replace(
        fit,
        gains=fit.gains.joined(gains),
        admission=placed,
        newcomers=tuple(Newcomer(learner, row) for learner, row in rows),
    )


def _place(fit: Fit, newcomers: Learners, with_models: bool) -> tuple[Selection | None, Admission]:
    """Return the newcomers' own models, and where they belong."""
    known, own, options = fit.learners.ids, None, fit.options
    if with_models:
        own = select_models(
            newcomers,
            candidates=candidates_for(options.chosen_candidates, known.tolist(), newcomers.ids.tolist()),
            # Newcomers' rows are in order if those of the others are.
            splitter=BLOCKS if fit.selection.in_order else options.held_out_by,
            order=None,
            random_state=fit.seed,
            engine=options.engine,
            n_jobs=options.n_jobs,
        ).aligned_to(newcomers.ids)
    placed = place_newcomers(
        newcomers,
        own,
        fit.learners,
        fit.selection.aligned_to(known),
        fit.partition.aligned_to(known),
        resolve_engine(options.engine, options.n_jobs),
        collaboration=fit.collaboration,
        n_replicates=options.n_replicates,
        entropy=fit.seed,
    )
    return own, placed


def _with(fit: Fit, newcomers: Learners, with_models: bool) -> Fit:
    """Return the fit with newcomers: placed, with gains and intervals."""
    units = fit.units
    if units is not None:
        newcomers, theirs = newcomers.standardized()
        units = units.joined(theirs)
    own, placed = _place(fit, newcomers, with_models)
    collaboration, intervals = fit.collaboration, fit.intervals
    weight_rows = collaboration.newcomer_weight_rows[placed.nearest]
    if isinstance(collaboration, NestedForm):
        collaboration, weight_rows = collaboration.with_newcomers(newcomers, placed.nearest)
    added = [Newcomer(*each) for each in zip(newcomers.ids.tolist(), weight_rows.tolist(), strict=True)]
    if own is not None:
        bounds = np.array([own_bounds(newcomers, newcomers.span(j)) for j in range(len(newcomers))])
        models = zip(added, own.models, bounds, strict=True)
        added = [replace(new, model=model, bounds=limits) for new, model, limits in models]
    gains = newcomer_gains(newcomers, own, placed, collaboration, fit.with_all, fit.gain_model, units)
    if intervals is not None:
        rows = newcomer_residuals(newcomers, placed, own, fit.collaboration, gains["verdict"], fit.seed)
        intervals = intervals.joined(newcomers.ids, placed.labels, rows)
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
    """Return the fit with learners whom it did not know, behind those that are there."""
    ids_in_order = [*fit.learner_ids.tolist(), *newcomers.ids[newcomers.appearance].tolist()]
    for subset, with_models in _alike(fit, newcomers):
        fit = _with(fit, subset, with_models)
    return fit.in_order(ids_in_order)


def place_learners(fit: Fit, newcomers: Learners) -> Admission:
    """Say where newcomers belong, in order of first appearance; nothing is added to the fit."""
    placed: Admission | None = None
    for subset, with_models in _alike(fit, newcomers):
        inside = subset if fit.units is None else subset.standardized()[0]
        added = _place(fit, inside, with_models)[1]
        placed = added if placed is None else placed.joined(added)
    assert placed is not None
    return placed.aligned_to(newcomers.ids[newcomers.appearance])
