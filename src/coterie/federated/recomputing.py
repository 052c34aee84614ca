"""Whether a conclusion follows from the files that it was made from: whoever concludes may lie, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coterie.federated.answers import Answered
from coterie.federated.conclusions import Conclusion, Mixture
from coterie.federated.messages import ProtocolError, Score, Share
from coterie.federated.protocol import Settings, conclude

# Two machines may come to numbers that differ by this share of the largest.
ROUNDING = 1e-6


def _own_lines(mixture: Mixture) -> list[float]:
    """Return all numbers of the lines of a mixture's parts."""
    lines = [line for part in mixture.parts for line in part.lines]
    return [number for line in lines for number in (*line.values, *line.limits)]


def _alike(ours: Mixture, theirs: Mixture, sites: Sequence[str]) -> bool:
    """Tell whether two mixtures predict the same, up to rounding."""
    first, second = ([m.weights.get(site, 0.0) for site in sites] for m in (ours, theirs))
    if [len(part.lines) for part in ours.parts] != [len(part.lines) for part in theirs.parts]:
        return False
    first += [part.weights.get(site, 0.0) for part in ours.parts for site in sites]
    second += [part.weights.get(site, 0.0) for part in theirs.parts for site in sites]
    first += [part.share for part in ours.parts]
    second += [part.share for part in theirs.parts]
    line, other = (
        np.array([*m.line, *m.limits, *(m.range or ()), *(m.plausible or ()), *_own_lines(m)])
        for m in (ours, theirs)
    )
    if len(line) != len(other):
        return False
    size = ROUNDING * float(np.abs(line).max())
    same = np.allclose(first, second, rtol=0, atol=ROUNDING)
    return same and np.allclose(line, other, rtol=0, atol=size)


def check_conclusion(
    conclusion: Conclusion, shares: Sequence[Share], scores: Sequence[Score], answered: Sequence[Answered]
) -> Conclusion:
    """Refuse a conclusion that does not follow from what the sites said; return the one that does.

    Parameters
    ----------
    conclusion : Conclusion
        What somebody concluded.
    shares, scores, answered : sequence
        What the sites said, as for `conclude`.

    Returns
    -------
    Conclusion
        Concluded again: what the other one states beside coteries, verdicts and weights may be anything.

    Raises
    ------
    ProtocolError
        If the same settings lead to another conclusion, or to none.
    """
    remedy = "conclude again, or name who may conclude."
    left_out: Mapping[str, str] = conclusion.left_out
    settings = Settings.from_text(conclusion.settings)
    result = conclude(shares, scores, answered, settings=settings, leave_out=left_out)
    if not isinstance(result, Conclusion):
        raise ProtocolError(f"The files that the conclusion was made from are not all here: {remedy}")
    verdicts = [
        [(row.learner, row.cluster, row.verdict) for row in each.gains] for each in (conclusion, result)
    ]
    sites = sorted(result.models)
    same = verdicts[0] == verdicts[1] and conclusion.models == result.models and bool(conclusion.mixtures)
    same = same and conclusion.classes == result.classes
    if not same or not all(_alike(conclusion.mixtures[s], result.mixtures[s], sites) for s in sites):
        raise ProtocolError(f"The conclusion does not follow from what the sites said: {remedy}")
    return result
