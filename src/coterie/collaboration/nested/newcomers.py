"""How a learner predicts with members of the dictionary, given its weights and what is known of it.

The same serves learners of the fit, those with few rows, and newcomers: a member with trees is a weight on a
model, a line or a level is a part of the learner's own line.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.describing import Describer
from coterie.collaboration.nested.guard import widened
from coterie.collaboration.nested.line import Ratios, own_effects
from coterie.collaboration.nested.sums import FoldSums, Units
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class LinesAndLevels:
    """What the parts of predictions are made of, for M learners: their lines and levels, in common units.

    ``lines`` and ``coterie_lines`` have the shape (M, q), ``levels`` (M,).
    """

    lines: Array
    coterie_lines: Array
    levels: Array


def own_lines(weights: Array, bases: tuple[str, ...], placed: LinesAndLevels, units: Units) -> Array:
    """Return the lines (M, q) that weights (M, E) of members give to learners, in units of the response."""
    total = np.zeros_like(placed.lines)
    for member, base in enumerate(bases):
        if base == "line":
            total += weights[:, member, None] * placed.lines
        elif base == "coterie line":
            total += weights[:, member, None] * placed.coterie_lines
        elif base == "level":
            total[:, -1] += weights[:, member] * placed.levels
    lines: Array = units.outside(total, level=False)
    # What is measured from the middle of all responses is brought back by as much as it weighs.
    based = [member for member, base in enumerate(bases) if base != "nothing"]
    lines[:, -1] += weights[:, based].sum(axis=1) * units.middle
    return lines


@dataclass(frozen=True)
class PooledNewcomers:
    """How newcomers are described, and weigh the members: as learners whose id no model has seen.

    ``weights`` (E,) are common weights of the members that need no id, whose ``bases`` are named and whose
    trees are at the ``positions`` (E,) among the models, -1 where there are none. ``coterie_lines`` (K, q)
    are lines of the coteries and ``coterie_ratios`` say how far members depart from them. ``bounds`` (K, 2)
    is what the responses of each coterie make plausible; ``several`` says whether models see the
    coterie.
    """

    units: Units
    describer: Describer
    weights: Array
    bases: tuple[str, ...]
    positions: Array
    coterie_lines: Array
    coterie_ratios: Ratios
    bounds: Array
    several: bool = field(default=False)

    def rows_of(self, newcomers: Learners, labels: Array, n_context: int, n_models: int) -> tuple[Array, ...]:
        """Return weights of models, lines, bounds of these and descriptions of newcomers, by coterie."""
        Z, y = self.units.rows(newcomers.X), self.units.response(newcomers.scalar_y)
        folds = np.ones((1, len(y)), dtype=bool)
        sums = FoldSums(Z, y, newcomers, folds).within()
        description = self.describer.describe(sums)
        common = self.coterie_lines[labels]
        own = np.empty_like(common)
        for k in np.unique(labels):
            members = np.flatnonzero(labels == k)
            own[members] = own_effects(
                sums.take(members, sums.total), self.coterie_lines[k], self.coterie_ratios
            )
        placed = LinesAndLevels(self.describer.common + description.own, common + own, description.levels)
        weights = np.tile(self.weights, (len(newcomers), 1))
        lines = np.zeros((len(newcomers), newcomers.n_features + 1))
        result = own_lines(weights, self.bases, placed, self.units)
        lines[:, : result.shape[1] - 1], lines[:, -1] = result[:, :-1], result[:, -1]
        models = np.zeros((len(newcomers), n_models))
        for member, position in enumerate(self.positions):
            if position >= 0:
                models[:, position] = weights[:, member]
        context = np.full((len(newcomers), n_context), np.nan)
        known = [description.numbers, description.coteries]
        if self.several:
            known.append(labels[:, None].astype(float))
        beside = np.column_stack(known)
        context[:, : beside.shape[1]] = beside
        based = weights[:, [base != "nothing" for base in self.bases]].sum(axis=1, keepdims=True)
        # What its own rows show is plausible, too, as it is for a learner of the fit.
        seen = [widened(newcomers.scalar_y[newcomers.span(j)]) for j in range(len(newcomers))]
        both = np.stack([np.array(seen), self.bounds[labels]])
        bounds = np.column_stack([both[:, :, 0].min(axis=0), both[:, :, 1].max(axis=0)])
        return models, lines, based * bounds, context, bounds
