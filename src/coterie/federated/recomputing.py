"""Whether a conclusion follows from the files that it was made from: whoever concludes may lie, too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coterie.federated.answers import Answered
from coterie.federated.conclusions import Conclusion, Mixture
from coterie.federated.messages import ProtocolError, Score, Share
from coterie.federated.protocol import Settings, conclude

# Two machines may come to numbers that differ by this fraction of the largest.
ROUNDING = 1e-6


def _numbers_of_lines(mixture: Mixture) -> list[float]:
    """Return slopes, intercepts and limits of all lines in a mixture of classifiers, as one flat list.

    Two conclusions are compared number by number.
    """
    lines = [line for part in mixture.parts for line in part.lines]
    return [number for line in lines for number in (*line.values, *line.limits)]


def _predict_alike(ours: Mixture, theirs: Mixture, sites: Sequence[str]) -> bool:
    """Tell whether two mixtures predict the same, up to rounding.

    Weights and shares, which are at most one, are compared with an absolute tolerance; lines and limits, in
    the units of the response, relative to the largest of them.
    """
    our_shares, their_shares = (
        [mixture.weights.get(site, 0.0) for site in sites] for mixture in (ours, theirs)
    )
    # Parts exist for classes only: averages of models, with a line for each class or none.
    if [len(part.lines) for part in ours.parts] != [len(part.lines) for part in theirs.parts]:
        return False
    our_shares += [part.weights.get(site, 0.0) for part in ours.parts for site in sites]
    their_shares += [part.weights.get(site, 0.0) for part in theirs.parts for site in sites]
    our_shares += [part.share for part in ours.parts]
    their_shares += [part.share for part in theirs.parts]
    our_numbers, their_numbers = (
        np.array(
            [
                *mixture.line,
                *mixture.limits,
                *(mixture.range or ()),
                *(mixture.plausible or ()),
                *_numbers_of_lines(mixture),
            ]
        )
        for mixture in (ours, theirs)
    )
    if len(our_numbers) != len(their_numbers):
        return False
    tolerance = ROUNDING * float(np.abs(our_numbers).max())
    same_shares = np.allclose(our_shares, their_shares, rtol=0, atol=ROUNDING)
    return same_shares and np.allclose(our_numbers, their_numbers, rtol=0, atol=tolerance)


def check_conclusion(
    conclusion: Conclusion, shares: Sequence[Share], scores: Sequence[Score], answered: Sequence[Answered]
) -> Conclusion:
    """Refuse a conclusion that does not follow from what the sites said; return the one that does.

    Parameters
    ----------
    conclusion : Conclusion
        What somebody concluded.
    shares, scores, answered : sequence
        The sites' messages, as for `conclude`.

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
    recomputed = conclude(shares, scores, answered, settings=settings, leave_out=left_out)
    if not isinstance(recomputed, Conclusion):
        raise ProtocolError(f"The files that the conclusion was made from are not all here: {remedy}")
    # Who is with whom and what is advised must be equal; numbers in mixtures may differ by rounding.
    clusters_and_verdicts = [
        [(row.learner, row.cluster, row.verdict) for row in stated.gains]
        for stated in (conclusion, recomputed)
    ]
    sites = sorted(recomputed.models)
    same_outcome = (
        clusters_and_verdicts[0] == clusters_and_verdicts[1]
        and conclusion.models == recomputed.models
        and bool(conclusion.mixtures)
    )
    same_outcome = same_outcome and conclusion.classes == recomputed.classes
    if not same_outcome or not all(
        _predict_alike(conclusion.mixtures[site], recomputed.mixtures[site], sites) for site in sites
    ):
        raise ProtocolError(f"The conclusion does not follow from what the sites said: {remedy}")
    return recomputed
