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
# Share and score state the same error; models on the wire differ from the fitted ones by less than this.
SAME_ERROR = 1e-3


@dataclass(frozen=True)
class Participants:
    """Who takes part.

    ``shares`` and ``scores`` are of those who take part, sorted by site. ``left_out`` says who does not, and
    why; ``waiting`` says whose next message is missing, and which.
    """

    shares: Mapping[str, Share]
    scores: Mapping[str, Score]
    left_out: Mapping[str, str]
    waiting: Mapping[str, str]


def _one_each(messages: Iterable[Message], why: str, left_out: dict[str, str]) -> dict[str, Message]:
    """Return the message of each site; one that sent two different ones is left out."""
    result: dict[str, Message] = {}
    for message in messages:
        if message.site in result and result[message.site] != message:
            left_out[message.site] = why
        result[message.site] = message
    return {site: message for site, message in result.items() if site not in left_out}


def _unlike(shares: Mapping[str, Share]) -> dict[str, str]:
    """Return who has other columns than most sites; of equal numbers, than the first site."""
    counts = Counter((share.columns, share.target, share.classes) for share in shares.values())
    usual = max(counts, key=lambda key: counts[key])
    others = [share for share in shares.values() if (share.columns, share.target, share.classes) != usual]
    return {share.site: other_columns(share, *usual) for share in others}


def _too_small(shares: Mapping[str, Share], min_rows: int | None) -> dict[str, str]:
    """Return the sites with too few rows, and why they cannot take part."""
    sizes = np.array([share.n_rows for share in shares.values()])
    n_features = len(next(iter(shares.values())).columns)
    needed = rows_needed(sizes, n_features, "auto" if min_rows is None else min_rows)
    return {
        site: f"It has {share.n_rows} rows, and clustering needs {needed}."
        for site, share in shares.items()
        if share.n_rows < needed
    }


def _contradiction(share: Share, score: Score) -> str | None:
    """Say how a site contradicts itself."""
    if sum(score.half_sizes) != share.n_rows:
        return f"It shared {share.n_rows} rows and scored on {sum(score.half_sizes)}."
    own = score.losses[share.site].value
    if own is None:
        return "It could not evaluate its own model."
    if abs(own - share.error) > SAME_ERROR * max(share.error, score.noise):
        return f"Its share states the error {share.error:.6g} and its score {own:.6g}."
    return None


def _up_to_date(shares: Mapping[str, Share], scores: dict[str, Score]) -> dict[str, str]:
    """Return who has to score again, because models came or changed after it scored."""
    waiting: dict[str, str] = {}
    sites = sorted(scores)

    def knows(scorer: str, site: str) -> bool:
        """Tell whether a site has scored the present model of another."""
        loss = scores[scorer].losses.get(site)
        return loss is not None and loss.sha == shares[site].sha

    while True:
        lacking = {s: [t for t in sites if not knows(s, t)] for s in sites}
        if not any(lacking.values()):
            return waiting
        lacked = Counter(t for missing in lacking.values() for t in missing)
        # Somebody who came late is lacked by many; somebody who has not scored again lacks many.
        worst = max(sites, key=lambda s: max(len(lacking[s]), lacked[s]))
        if len(lacking[worst]) >= lacked[worst]:
            waiting[worst] = f"It has not scored the model of {lacking[worst][0]!r}: run score there again."
        else:
            waiting[worst] = f"{lacked[worst]} sites have not scored its model: run score there again."
        sites.remove(worst)


def _too_many_failures(scores: Mapping[str, Score], sites: Sequence[str]) -> dict[str, str]:
    """Return the sites that could not evaluate most of the others' models."""
    result = {}
    for site in sites:
        others = [s for s in sites if s != site]
        failures = sum(scores[site].losses[s].value is None for s in others)
        if failures > max(1.0, MOST_FAILURES * len(others)):
            result[site] = f"It could not evaluate {failures} of {len(others)} models, which others could."
    return result


def find_participants(
    shares: Sequence[Share],
    scores: Sequence[Score],
    *,
    min_rows: int | None = None,
    leave_out: Mapping[str, str] | None = None,
) -> Participants:
    """Sort the sites into those who take part, those who are waited for and those who are left out.

    Every site that shared stands in one of the parts. ``min_rows`` are the rows that a site needs; None: as
    in a local fit, 2p + 5 where at least half of the sites have as many, else 4. ``leave_out`` names sites to
    go on without, and why.
    """
    named, left_out = dict(leave_out or {}), dict[str, str]()
    unnamed = sorted((share for share in shares if share.site not in named), key=lambda share: share.site)
    twice = "Two different shares bear its name: give each site a name of its own."
    known = _one_each(unnamed, twice, left_out)
    for reasons in (_unlike, partial(_too_small, min_rows=min_rows)):
        left_out |= reasons(known) if known else {}
        known = {site: share for site, share in known.items() if site not in left_out}
    wanted = (score for score in scores if score.site in known)
    scored = _one_each(wanted, "It scored twice, and differently.", left_out)
    for site, score in list(scored.items()):
        # Of another sha it is of an older model: the site shared again since.
        current = score.sha == known[site].sha
        if current and (reason := _contradiction(known[site], score)) is not None:
            left_out[site] = reason
        if not current or site in left_out:
            del scored[site]
    silent = [site for site in known if site not in scored and site not in left_out]
    waiting = dict.fromkeys(silent, "It has not scored: run score there.")
    waiting |= _up_to_date(known, scored)
    present = [site for site in sorted(scored) if site not in waiting]
    left_out |= _too_many_failures(scored, present)
    present = [site for site in present if site not in left_out]
    shared = {share.site for share in shares}
    left_out |= {site: reason for site, reason in named.items() if site in shared}
    return Participants(
        {site: known[site] for site in present}, {site: scored[site] for site in present}, left_out, waiting
    )
