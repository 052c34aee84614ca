"""Whose answers cannot be true together, and whose numbers are far from everybody's.

The average of models loses no more than the models lose on average, products of residuals tell the errors
that a site states later, differences between labellings follow from losses, and bounded losses are no larger
than losses. A site that breaks one of these is
left out. Numbers that are possible but far from what is typical are bounded where they are used; the
conclusion names the site.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from coterie._arrays import Array
from coterie.federated.answers import Answered, halves_answered
from coterie.federated.messages import Answer, AveragedSite, Labels, Pairing, Score, Share
from coterie.federated.participants import Participants
from coterie.method.refine.averages import membership
from coterie.method.spectral import tidy_labels
from coterie.method.weight_limits import WEIGHT_LIMITS, within_reach
from coterie.verdicts.gains import ROUNDING as SMALLEST_ERROR

# Beyond what machines differ by.
ROUNDING = 1e-6


def _losses(members: Sequence[AveragedSite], scores: Mapping[str, Score]) -> Array:
    """Return what models lost on members, models by members; NaN for own and failing models."""
    columns = [[scores[j.site].losses.get(i.site) for i in members] for j in members]
    losses = np.array([[np.nan if x is None or x.value is None else x.value for x in row] for row in columns])
    np.fill_diagonal(losses, np.nan)
    return losses.T


def _lose_too_much(answered: Answered, scores: Mapping[str, Score]) -> Array:
    """Tell on whom averages are said to lose more than their models do on average, of shape (M,)."""
    members = answered.question.members
    losses = _losses(members, scores)
    # A model that failed at a site takes no part in its averages, nor does its own.
    known = np.isfinite(losses)
    sizes = np.array([scores[member.site].half_sizes for member in members], dtype=float)
    room = ROUNDING * np.array([scores[member.site].noise for member in members])
    weights, replies = (
        np.array([member.weight for member in members]),
        [answered.answers[m.site] for m in members],
    )
    result = np.zeros(len(members), dtype=bool)
    for index, labels in enumerate(answered.question.labellings):
        halves = halves_answered(replies, index)
        stated = (np.where(sizes > 0, halves, 0.0) * sizes).sum(axis=2) / sizes.sum(axis=1)
        shares = membership(np.array(labels), max(labels) + 1, weights)
        totals = shares @ known
        sums = shares @ np.where(known, losses, 0.0)
        # Where others weigh next to nothing, a site alone in its cluster is predicted by itself.
        somebody = totals > ROUNDING * shares.sum(axis=1)[:, None]
        most = np.divide(sums, totals, out=np.full(sums.shape, np.inf), where=somebody)
        result |= (np.isfinite(stated) & (stated > most * (1 + ROUNDING) + room)).any(axis=0)
    return result


def _excess_of(pairing: Pairing, halves: Mapping[Labels, Array], place: int, sizes: Array) -> float | None:
    """Return the excess that a site's losses give for a pairing; None where they are not known."""
    means = []
    pairs = (pairing.labels, pairing.picks), (pairing.other_labels, pairing.other_picks)
    for labels, picks in pairs:
        tidy = tidy_labels(np.array(labels))
        result = halves.get(tuple(tidy.tolist()))
        if result is None:
            return None
        chosen = [result[tidy[labels.index(pick)], half] for half, pick in enumerate(picks[place])]
        means.append(np.where(sizes > 0, chosen, 0.0) @ sizes / sizes.sum())
    return float(means[0] - means[1])


def _objects_falsely(
    participants: Participants, answered: Sequence[Answered], site: str, level: float
) -> bool:
    """Tell whether a site states another excess of one labelling over another than its losses give."""
    halves: dict[Labels, Array] = {}
    for each in answered:
        if site in each.answers:
            for labels, pairs in zip(each.question.labellings, each.answers[site].halves, strict=True):
                halves[labels] = np.array([[np.inf if v is None else v for v in pair] for pair in pairs])
    sizes = np.array(participants.scores[site].half_sizes, dtype=float)
    for each in answered:
        if site not in each.answers:
            continue
        index = [member.site for member in each.question.members].index(site)
        for pairing, (stated, _) in zip(each.question.pairings, each.answers[site].pairings, strict=True):
            excess = _excess_of(pairing, halves, index, sizes)
            room = ROUNDING * (level + abs(stated))
            if (
                excess is not None
                and np.isfinite(excess)
                and abs(excess - stated) > room + ROUNDING * abs(excess)
            ):
                return True
    return False


def _contradicts_itself(share: Share, noise: float, before: Sequence[Answer], answer: Answer) -> bool:
    """Tell whether a site's verdict has other errors than the products of its residuals."""
    verdict = answer.verdict
    if verdict is None:
        return False
    # Errors below this share of the noise are rounding.
    least, room = SMALLEST_ERROR * noise, 1 + ROUNDING
    own_error, others_error = verdict.errors[0][0], verdict.errors[1][0]
    bounded = verdict.own <= own_error * room + least and verdict.others <= others_error * room + least
    if not bounded or verdict.n_rows > share.n_rows:
        return True
    for earlier in before:
        if earlier.products is not None:
            tables, counts = earlier.products.folds, earlier.products.counts
            own = sum(table[0][0] for table in tables) / max(sum(counts), 1.0)
            if (
                abs(own - own_error) > ROUNDING * max(own, own_error) + least
                or sum(counts) > share.n_rows * room
            ):
                return True
    return False


def contradictions(participants: Participants, answered: Sequence[Answered]) -> dict[str, str]:
    """Return the sites whose answers cannot be true together, and why."""
    result: dict[str, str] = {}
    levels: dict[str, float] = {}
    before: dict[str, list[Answer]] = {site: [] for site in participants.scores}
    for each in answered:
        shas = {site: share.sha for site, share in participants.shares.items()}
        members = {member.site: member.sha for member in each.question.members}
        if set(each.answers) != set(members) or not members.items() <= shas.items():
            # It was asked of others, or some have not answered yet.
            continue
        levels |= {member.site: member.noise for member in each.question.members}
        for site, answer in each.answers.items():
            before[site].append(answer)
        for member, too_much in zip(
            each.question.members, _lose_too_much(each, participants.scores), strict=True
        ):
            if too_much:
                result[member.site] = "It states that averages lose more than their models do."
    asked = [each for each in answered if set(each.answers) <= set(before)]
    for site, answers in before.items():
        if site not in result and _objects_falsely(participants, asked, site, levels.get(site, 0.0)):
            result[site] = "It states another difference between two labellings than its losses have."
        for answer in answers:
            share, noise = participants.shares[site], levels.get(site, 0.0)
            if site not in result and _contradicts_itself(share, noise, answers, answer):
                result[site] = "The errors that it states at the end are not those of its residuals."
    return result


def _far(values: Mapping[str, float]) -> list[str]:
    """Return whose value is farther from the median than one site's weight may reach."""
    middle = float(np.median(list(values.values())))
    reach = WEIGHT_LIMITS.ratio
    return [site for site, value in values.items() if not middle / reach <= value <= middle * reach]


def _unlike_all(scores: Mapping[str, Score]) -> list[str]:
    """Return the sites on which even the best model of others is worse than is typical, by far."""
    sites = list(scores)
    best = []
    for site in sites:
        others = [scores[site].losses[other].value for other in sites if other != site]
        best.append(min((value for value in others if value is not None), default=np.inf))
    ratios = np.array(best) / within_reach(np.array([scores[site].noise for site in sites]))
    result = ratios > WEIGHT_LIMITS.ratio**2 * np.median(ratios)
    return [site for site, unlike in zip(sites, result, strict=True) if unlike]


def strange_numbers(participants: Participants) -> list[str]:
    """Return a sentence for each site whose noise level, rows or failures are far from everybody's."""
    scores, notes = participants.scores, []
    if len(scores) > 2:
        levels = {site: score.noise for site, score in scores.items()}
        rows = {site: float(share.n_rows) for site, share in participants.shares.items()}
        what = "is far from what is typical, and counts within bounds."
        notes += [f"The noise level of {site!r} {what}" for site in _far(levels)]
        notes += [f"The number of rows of {site!r} {what}" for site in _far(rows)]
        notes += [f"No other site's model suits the rows of {site!r}." for site in _unlike_all(scores)]
    for site in scores:
        failing = [other for other in scores if scores[other].losses[site].value is None]
        if failing and 2 * len(failing) <= len(scores):
            notes.append(f"{failing[0]!r} could not evaluate the model of {site!r}, which most others could.")
    return notes
