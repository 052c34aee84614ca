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
    """Return each learner's own line (M, q), in the response's units, from its weights (M, E) of members.

    Members are added to a base: a line or a level, named in ``bases``. The bases of all members together
    are one line, the weighted sum of lines and levels in ``placed``.
    """
    lines_in_units = np.zeros_like(placed.lines)
    for member, base in enumerate(bases):
        if base == "line":
            lines_in_units += weights[:, member, None] * placed.lines
        elif base == "coterie line":
            lines_in_units += weights[:, member, None] * placed.coterie_lines
        elif base == "level":
            lines_in_units[:, -1] += weights[:, member] * placed.levels
    lines: Array = units.outside(lines_in_units, level=False)
    # What is measured from the middle of all responses is brought back by as much as it weighs.
    members_with_base = [member for member, base in enumerate(bases) if base != "nothing"]
    lines[:, -1] += weights[:, members_with_base].sum(axis=1) * units.middle
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
        """Return model weights, lines, bounds of lines, contexts and plausible ranges of newcomers.

        ``labels`` gives the coterie that each of them joins. They weigh members as the average
        learner does; their lines depart from their coterie's by shrunken effects of their own rows.
        Ids are unknown: NaN.
        """
        Z, y = self.units.rows(newcomers.X), self.units.response(newcomers.scalar_y)
        one_fold = np.ones((1, len(y)), dtype=bool)
        sums = FoldSums(Z, y, newcomers, one_fold).within()
        description = self.describer.describe(sums)
        common_lines = self.coterie_lines[labels]
        departures = np.empty_like(common_lines)
        for coterie in np.unique(labels):
            members = np.flatnonzero(labels == coterie)
            departures[members] = own_effects(
                sums.take(members, sums.total), self.coterie_lines[coterie], self.coterie_ratios
            )
        lines_and_levels = LinesAndLevels(
            self.describer.common + description.own, common_lines + departures, description.levels
        )
        weights = np.tile(self.weights, (len(newcomers), 1))
        lines = np.zeros((len(newcomers), newcomers.n_features + 1))
        weighted_lines = own_lines(weights, self.bases, lines_and_levels, self.units)
        lines[:, : weighted_lines.shape[1] - 1], lines[:, -1] = weighted_lines[:, :-1], weighted_lines[:, -1]
        model_weights = np.zeros((len(newcomers), n_models))
        for member, position in enumerate(self.positions):
            if position >= 0:
                model_weights[:, position] = weights[:, member]
        context = np.full((len(newcomers), n_context), np.nan)
        described = [description.numbers, description.coteries]
        if self.several:
            described.append(labels[:, None].astype(float))
        described_columns = np.column_stack(described)
        context[:, : described_columns.shape[1]] = described_columns
        base_weights = weights[:, [base != "nothing" for base in self.bases]].sum(axis=1, keepdims=True)
        # What its own rows show is plausible, too, as it is for a learner of the fit.
        own_ranges = [widened(newcomers.scalar_y[newcomers.span(j)]) for j in range(len(newcomers))]
        both_ranges = np.stack([np.array(own_ranges), self.bounds[labels]])
        bounds = np.column_stack([both_ranges[:, :, 0].min(axis=0), both_ranges[:, :, 1].max(axis=0)])
        return model_weights, lines, base_weights * bounds, context, bounds
