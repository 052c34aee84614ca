"""Who takes part, who is waited for, and who is left out and why.

One bad site must not stop the others. Whoever contradicts itself or cannot be compared is left out with a
sentence; whoever has not spoken yet is waited for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from coterie.federated.messages import Score, Share
from coterie.federated.peers import other_columns
from coterie.rows.threshold import rows_needed

Message = TypeVar("Message", Share, Score)

# A site that cannot evaluate more than this share of the others' models is left out, not the others.
MOST_FAILURES = 1 / 3
# Relative difference up to which share and score state the same error: models on the wire are rounded.
SAME_ERROR = 1e-3


@dataclass(frozen=True)
class Participants:
    """Who takes part in a conclusion, who is waited for, and who is left out.

    ``shares`` and ``scores`` are of those who take part, by site, sorted. ``left_out`` says who does not, and
    why; ``waiting`` says whose next message is missing, and which.
    """

    shares: Mapping[str, Share]
    scores: Mapping[str, Score]
    left_out: Mapping[str, str]
    waiting: Mapping[str, str]


def _one_message_each(messages: Iterable[Message], why: str, left_out: dict[str, str]) -> dict[str, Message]:
    """Return the message of each site; a site that sent two different ones is left out.

    It is added to ``left_out``, in place, with ``why``. Nobody could say which of the two is meant.
    """
    by_site: dict[str, Message] = {}
    for message in messages:
        if message.site in by_site and by_site[message.site] != message:
            left_out[message.site] = why
        by_site[message.site] = message
    return {site: message for site, message in by_site.items() if site not in left_out}


def _with_other_columns(shares: Mapping[str, Share]) -> dict[str, str]:
    """Return the sites with other columns, target or classes than most sites have, and a sentence why.

    Where two versions are equally frequent, that of the first site counts.
    """
    votes = Counter((share.columns, share.target, share.classes) for share in shares.values())
    most_frequent = max(votes, key=lambda key: votes[key])
    others = [
        share for share in shares.values() if (share.columns, share.target, share.classes) != most_frequent
    ]
    return {share.site: other_columns(share, *most_frequent) for share in others}


def _too_small(shares: Mapping[str, Share], min_rows: int | None) -> dict[str, str]:
    """Return the sites with fewer rows than clustering needs, and a sentence why they cannot take part.

    ``min_rows`` is the number needed; None: `rows_needed` finds it from all sites' rows and predictors.
    """
    row_counts = np.array([share.n_rows for share in shares.values()])
    n_features = len(next(iter(shares.values())).columns)
    needed = rows_needed(row_counts, n_features, "auto" if min_rows is None else min_rows)
    return {
        site: f"It has {share.n_rows} rows, and clustering needs {needed}."
        for site, share in shares.items()
        if share.n_rows < needed
    }


def _contradiction(share: Share, score: Score) -> str | None:
    """Return a sentence if a site's score contradicts its share; else None.

    Both state the number of rows and the error of the own model on them. A site that states two values has
    mixed up its files, or lies.
    """
    if sum(score.half_sizes) != share.n_rows:
        return f"It shared {share.n_rows} rows and scored on {sum(score.half_sizes)}."
    own_error = score.losses[share.site].value
    if own_error is None:
        return "It could not evaluate its own model."
    if abs(own_error - share.error) > SAME_ERROR * max(share.error, score.noise):
        return f"Its share states the error {share.error:.6g} and its score {own_error:.6g}."
    return None


def _up_to_date(shares: Mapping[str, Share], scores: dict[str, Score]) -> dict[str, str]:
    """Return the sites that must score again, since models came or changed after they scored.

    Losses must be known for every pair of sites. Sites are taken out one by one, the one with most gaps
    first, until no pair lacks a loss.
    """
    waiting: dict[str, str] = {}
    sites = sorted(scores)

    def has_scored(scorer: str, site: str) -> bool:
        """Tell whether a site has scored the present model of another."""
        loss = scores[scorer].losses.get(site)
        return loss is not None and loss.sha == shares[site].sha

    while True:
        unscored_by = {
            each_site: [other for other in sites if not has_scored(each_site, other)] for each_site in sites
        }
        if not any(unscored_by.values()):
            return waiting
        # By model: how many sites have not scored it.
        n_not_scoring = Counter(other for unscored in unscored_by.values() for other in unscored)
        # Somebody who came late is lacked by many; somebody who has not scored again lacks many.
        # The site with most gaps, on its own side or on the others'; of equals the first by name.
        worst = max(sites, key=lambda each_site: max(len(unscored_by[each_site]), n_not_scoring[each_site]))
        if len(unscored_by[worst]) >= n_not_scoring[worst]:
            waiting[worst] = (
                f"It has not scored the model of {unscored_by[worst][0]!r}: run score there again."
            )
        else:
            waiting[worst] = f"{n_not_scoring[worst]} sites have not scored its model: run score there again."
        sites.remove(worst)


def _too_many_failures(scores: Mapping[str, Score], sites: Sequence[str]) -> dict[str, str]:
    """Return the sites that could not evaluate too many of the others' models, and a sentence why.

    Where one site fails on many models that others could evaluate, the fault is its own.
    """
    reasons = {}
    for site in sites:
        others = [other for other in sites if other != site]
        failures = sum(scores[site].losses[other].value is None for other in others)
        if failures > max(1.0, MOST_FAILURES * len(others)):
            reasons[site] = f"It could not evaluate {failures} of {len(others)} models, which others could."
    return reasons


def find_participants(
    shares: Sequence[Share],
    scores: Sequence[Score],
    *,
    min_rows: int | None = None,
    leave_out: Mapping[str, str] | None = None,
) -> Participants:
    """Sort the sites into those who take part, those who are waited for and those who are left out.

    Every site that shared stands in one of the parts. ``min_rows`` is the number of rows that a site needs;
    None: as in a local fit, 2p + 5 where at least half of the sites have as many, else 4. ``leave_out`` names
    sites to go on without, and why.
    """
    to_leave_out, left_out = dict(leave_out or {}), dict[str, str]()
    sorted_shares = sorted(
        (share for share in shares if share.site not in to_leave_out), key=lambda share: share.site
    )
    reason_for_two = "Two different shares bear its name: give each site a name of its own."
    share_by_site = _one_message_each(sorted_shares, reason_for_two, left_out)
    # The order matters: the rows that a site needs are counted among sites with the same columns.
    for find_unfit in (_with_other_columns, partial(_too_small, min_rows=min_rows)):
        left_out |= find_unfit(share_by_site) if share_by_site else {}
        share_by_site = {site: share for site, share in share_by_site.items() if site not in left_out}
    wanted_scores = (score for score in scores if score.site in share_by_site)
    score_by_site = _one_message_each(wanted_scores, "It scored twice, and differently.", left_out)
    for site, score in list(score_by_site.items()):
        # Of another sha it is of an older model: the site shared again since.
        is_current = score.sha == share_by_site[site].sha
        if is_current and (reason := _contradiction(share_by_site[site], score)) is not None:
            left_out[site] = reason
        if not is_current or site in left_out:
            del score_by_site[site]
    not_scored = [site for site in share_by_site if site not in score_by_site and site not in left_out]
    waiting = dict.fromkeys(not_scored, "It has not scored: run score there.")
    waiting |= _up_to_date(share_by_site, score_by_site)
    present = [site for site in sorted(score_by_site) if site not in waiting]
    left_out |= _too_many_failures(score_by_site, present)
    present = [site for site in present if site not in left_out]
    sites_that_shared = {share.site for share in shares}
    left_out |= {site: reason for site, reason in to_leave_out.items() if site in sites_that_shared}
    return Participants(
        shares={site: share_by_site[site] for site in present},
        scores={site: score_by_site[site] for site in present},
        left_out=left_out,
        waiting=waiting,
    )
