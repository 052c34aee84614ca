"""Newcomers join a fitted model: they are placed among its coteries, which stay as they are.

Newcomers with rows enough select models of their own, the others do not; the two kinds are placed apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from coterie._rows import Learners
from coterie.candidates import candidates_per_learner, names_learners
from coterie.engines import resolve_engine
from coterie.nested import NestedCollaboration
from coterie.records import Selection
from coterie.stages import select_models
from coterie.stages.select import BLOCKS
from coterie.verdicts import Admission, newcomer_gains, place_newcomers


def candidates_for(spec: Any, known: list[Any], newcomers: list[Any]) -> Any:
    """Return the candidates; a newcomer whom a mapping does not name chooses among everybody's."""
    if not names_learners(spec, known) or all(learner in spec for learner in newcomers):
        return spec
    everybody: dict[str, Any] = {}
    for candidates in candidates_per_learner(spec, list(spec)):
        everybody.update(candidates)
    return {learner: spec.get(learner, everybody) for learner in newcomers}


def _alike(model: Any, newcomers: Learners) -> Iterator[tuple[Learners, bool]]:
    """Give out those who select models, then those who do not."""
    large = newcomers.sizes >= model.min_rows_
    for some, with_models in ((large, True), (~large, False)):
        if some.any():
            yield newcomers.take(np.flatnonzero(some)), with_models


def _place(model: Any, newcomers: Learners, with_models: bool) -> tuple[Selection | None, Admission]:
    """Return the newcomers' own models, and where they belong; the model stays as it is."""
    known, own = model._shaping.ids, None
    if with_models:
        own = select_models(
            newcomers,
            candidates=candidates_for(model.candidates, known.tolist(), newcomers.ids.tolist()),
            # Newcomers' rows are in order if those of the others are.
            splitter=BLOCKS if model.selection_.in_order else model.splitter,
            order=None,
            random_state=model._entropy,
            engine=model.engine,
            n_jobs=model.n_jobs,
        ).aligned_to(newcomers.ids)
    placed = place_newcomers(
        newcomers,
        own,
        model._shaping,
        model.selection_.aligned_to(known),
        model.partition_.aligned_to(known),
        resolve_engine(model.engine, model.n_jobs),
        collaboration=model.collaboration_,
        n_replicates=model.n_bootstrap,
        entropy=model._entropy,
    )
    return own, placed


def _add(model: Any, newcomers: Learners, with_models: bool) -> None:
    first_unit = 0
    if model._units is not None:
        first_unit = len(model._units.centre_y)
        newcomers, units = newcomers.standardized()
        model._units = model._units.joined(units)
    own, placed = _place(model, newcomers, with_models)
    ways = model.collaboration_.newcomer_ways[placed.nearest]
    if isinstance(model.collaboration_, NestedCollaboration):
        model.collaboration_, ways = model.collaboration_.with_newcomers(newcomers, placed.nearest)
    for place, learner in enumerate(newcomers.ids.tolist()):
        way = int(ways[place])
        if placed.labels[place] < 0:
            # Whom no cluster fits predicts with its own model; its way counts from the end.
            assert own is not None
            model._loners = (*model._loners, own.models[place])
            way = -len(model._loners)
        model._admitted[learner] = way, first_unit + place
    added = newcomer_gains(
        newcomers,
        own,
        placed,
        model.collaboration_,
        model._everybody,
        np.bincount(model.partition_.labels),
        model._units,
    )
    model.gains_ = model.gains_.joined(added)
    model.admission_ = placed if model.admission_ is None else model.admission_.joined(placed)


def admit_learners(model: Any, newcomers: Learners) -> None:
    """Place newcomers and add them to the model's tables, behind the learners that are there.

    Parameters
    ----------
    model : CoterieRegressor
        Fitted, with its rows.
    newcomers : Learners
        Whom it does not know.
    """
    shown = [*model.learner_ids_.tolist(), *newcomers.ids[newcomers.appearance].tolist()]
    for some, with_models in _alike(model, newcomers):
        _add(model, some, with_models)
    model._show_in_order(shown)


def place_learners(model: Any, newcomers: Learners) -> Admission:
    """Say where newcomers belong, in order of first appearance; the model stays as it is.

    Parameters
    ----------
    model : CoterieRegressor
        Fitted, with its rows.
    newcomers : Learners
        Whom it does not know.

    Returns
    -------
    Admission
        Of all of them.
    """
    placed: Admission | None = None
    for some, with_models in _alike(model, newcomers):
        inside = some if model._units is None else some.standardized()[0]
        added = _place(model, inside, with_models)[1]
        placed = added if placed is None else placed.joined(added)
    assert placed is not None
    place = {learner: p for p, learner in enumerate(placed.learner_ids.tolist())}
    shown = newcomers.ids[newcomers.appearance].tolist()
    return placed.take(np.array([place[learner] for learner in shown], dtype=int))
