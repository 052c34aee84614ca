"""The answer for learners' rows: labels, how surely, how many, and in what the learners differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from coterie._arrays import Array
from coterie.method.likelihood.bound import Mixture, Moments
from coterie.method.likelihood.counting import Answered, count_rows, labels_of
from coterie.method.likelihood.features import DIRECTION, LEVEL, LINEAR, PRODUCT, SMOOTH, WAVE
from coterie.method.likelihood.rules import RULES
from coterie.records import Curve
from coterie.rows.learners import Learners


class Likelihood(NamedTuple):
    """Who belongs together, how surely, how many, and in what they differ.

    ``labels`` (L,), ``responsibilities`` (L, K), ``bounds`` of log p(y) by number of clusters, ``labellings``
    by number of clusters, the chosen ``mixture``, the ``kinds`` of its columns, and ``differs``: the columns
    in which clusters, or learners of one cluster, differ. Own departures may have a ``direction``. ``clear``
    is false where clusters and gradual differences explain the learners about equally well, or where there
    are gradual differences only; then ``why`` says it in a sentence.
    """

    labels: Array
    responsibilities: Array
    bounds: Mapping[int, float]
    labellings: Mapping[int, Array]
    mixture: Mixture
    kinds: Array
    differs: Array
    direction: Array | None
    clear: bool
    why: str

    @property
    def curve(self) -> Curve:
        """The bounds as a rule's curve."""
        counts = np.array(sorted(self.bounds))
        values = np.array([self.bounds[k] for k in counts.tolist()])
        criterion = "lower bound of the log likelihood, in nats (higher is better)"
        return Curve("likelihood", counts, values, int(self.labels.max()) + 1, criterion)


def differing_columns(moments: Moments, mixture: Mixture) -> Array:
    """Return the columns in which clusters differ by three standard errors, or learners by one.

    With several clusters their lines are compared with the common one, where nine is three standard errors
    squared; with one, the variance of learners' own departures with the variance of estimation.
    """
    gram = moments.gram * mixture.state.noise_precision[:, None, None]
    information = np.diagonal(gram, axis1=1, axis2=2).mean(axis=0)
    _, K = mixture.state.responsibilities.shape
    sizes = np.diagonal(mixture.covariances, axis1=1, axis2=2)
    between = ((mixture.means - mixture.common) ** 2 / sizes).max(axis=0) / 9
    within = mixture.state.own_variance * information
    return np.flatnonzero((between if K > 1 else within) > 1)


def _named(columns: Array, kinds: Array) -> str:
    # Say in what columns learners differ, for people: numbers of predictors, and names of other kinds.
    lines = [str(c) for c in columns.tolist() if kinds[c] == LINEAR]
    names = [f"column{'s' if len(lines) > 1 else ''} {', '.join(lines)}"] if lines else []
    names += ["the level"] if (kinds[columns] == LEVEL).any() else []
    names += ["a direction of the slopes"] if (kinds[columns] == DIRECTION).any() else []
    names += ["curved features"] if np.isin(kinds[columns], (PRODUCT, WAVE, SMOOTH)).any() else []
    return " and ".join(names) or "all columns"


def _doubt(answered: Answered, most: int, columns: Array) -> str:
    """Return why the clusters are not clear, as a sentence for the user; an empty text where they are.

    ``most`` is the largest number looked at, ``columns`` are those in which learners differ. The
    bound of the log likelihood must lead by a few nats: what leads by less is undecided.
    """
    (mixtures, chosen, surely), moments, spread = answered
    bounds = {k: m.bound for k, m in mixtures.items()}
    rival = max((k for k in bounds if k > 1), key=lambda k: bounds[k], default=1)
    lead, what = bounds[chosen if chosen > 1 else rival] - bounds[1], _named(columns, moments.kinds)
    undecided = f"coteries and gradual differences in {what} explain the learners about equally well"
    if chosen > 1 and lead < RULES.undecided:
        return f"{chosen} {undecided}"
    if chosen > 1 and surely < RULES.surely:
        return f"{chosen} coteries do not surely predict rows left out better than one"
    if chosen == most < len(moments.n_rows):
        return f"the largest number of clusters that was looked at, {most}, is the best"
    if chosen == 1 and spread > RULES.undecided and len(columns):
        both = rival > 1 and abs(lead) < RULES.undecided
        return f"{rival} {undecided}" if both else f"the learners differ gradually in {what}"
    return ""


def read(answered: Answered, most: int, given: int | None = None) -> Likelihood:
    """Read the answer off the mixtures that were found; a number that was given is not judged.

    A mixture is a fit of the likelihood with so and so many clusters. ``most`` is the largest number of
    clusters looked at; without a reason for doubt the answer is clear.
    """
    (mixtures, chosen, _), moments, _ = answered
    columns = differing_columns(moments, mixtures[chosen])
    reason = _doubt(answered, most, columns) if given is None else ""
    return Likelihood(
        labels_of(mixtures[chosen].state.responsibilities),
        mixtures[chosen].state.responsibilities,
        {k: m.bound for k, m in mixtures.items()},
        {k: labels_of(m.state.responsibilities) for k, m in mixtures.items()},
        mixtures[chosen],
        moments.kinds,
        columns,
        moments.direction,
        not reason,
        reason,
    )


def answer_learners(
    learners: Learners,
    most: int,
    *,
    given: int | None = None,
    extra: Sequence[Array] = (),
    in_order: bool = False,
) -> Likelihood:
    """Cluster learners with a response of one column by the likelihood.

    ``most`` is the largest number of clusters, ``given`` the number if it is known. ``extra`` are labellings
    (L,) to start from, too; ``in_order`` says that neighbouring rows depend on each other.
    """
    # The numbers in the rules are for a response in units of its spread; the median does not mind outliers.
    y = learners.scalar_y - np.median(learners.scalar_y)
    spread = float(y.std())
    rows = (learners.X, y / spread if spread > 0 else y, learners.offsets)
    result = count_rows(*rows, most, weights=learners.weights, given=given, extra=extra, in_order=in_order)
    return read(result, most, given)
