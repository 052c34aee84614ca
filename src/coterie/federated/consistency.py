"""Whose answers cannot be true together, and whose numbers are far from everybody's.

Losses are convex: the average of models loses no more than the models lose on average. Products of residuals
give the errors that a site states later, differences between labellings follow from losses, and bounded
losses are no larger than losses. A site that breaks one of these is left out. Numbers that are possible but
far from what is typical are bounded where they are used; the conclusion names the site.
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

# A relative difference above this is no rounding: two machines differ by less.
ROUNDING = 1e-6


def _losses_of_models(members: Sequence[AveragedSite], scores: Mapping[str, Score]) -> Array:
    """Return the mean loss of each member's model on each member's rows, of shape (M, M).

    Rows are models and columns are sites. NaN stands where a model failed, and on the diagonal: a site's own
    model has seen its rows, and takes no part in the averages there. Losses are those of the scores, before
    anything was bounded.
    """
    losses_by_scorer = [
        [scores[scorer.site].losses.get(model.site) for model in members] for scorer in members
    ]
    losses = np.array(
        [
            [np.nan if peer_loss is None or peer_loss.value is None else peer_loss.value for peer_loss in row]
            for row in losses_by_scorer
        ]
    )
    np.fill_diagonal(losses, np.nan)
    return losses.T


def _lose_too_much(answered: Answered, scores: Mapping[str, Score]) -> Array:
    """Tell at which of M members averages are said to lose more than their models do on average.

    By convexity of the loss that is impossible, so that such a site contradicts its own score. Every
    labelling of the question is checked, cluster by cluster; the result has shape (M,).
    """
    members = answered.question.members
    losses = _losses_of_models(members, scores)
    # A model that failed at a site takes no part in its averages, nor does its own.
    is_known = np.isfinite(losses)
    half_sizes = np.array([scores[member.site].half_sizes for member in members], dtype=float)
    rounding = ROUNDING * np.array([scores[member.site].noise for member in members])
    weights, replies = (
        np.array([member.weight for member in members]),
        [answered.answers[m.site] for m in members],
    )
    contradicts = np.zeros(len(members), dtype=bool)
    for labelling_index, labels in enumerate(answered.question.labellings):
        halves = halves_answered(replies, labelling_index)
        # Means over all rows of a site, from the means on both halves: clusters by members, (K, M).
        stated_losses = (np.where(half_sizes > 0, halves, 0.0) * half_sizes).sum(axis=2) / half_sizes.sum(
            axis=1
        )
        weights_in_clusters = membership(np.array(labels), max(labels) + 1, weights)
        known_weight = weights_in_clusters @ is_known
        summed_losses = weights_in_clusters @ np.where(is_known, losses, 0.0)
        # Where others weigh next to nothing, a site alone in its cluster is predicted by itself.
        has_models = known_weight > ROUNDING * weights_in_clusters.sum(axis=1)[:, None]
        largest_loss = np.divide(
            summed_losses, known_weight, out=np.full(summed_losses.shape, np.inf), where=has_models
        )
        contradicts |= (
            np.isfinite(stated_losses) & (stated_losses > largest_loss * (1 + ROUNDING) + rounding)
        ).any(axis=0)
    return contradicts


def _excess_of(
    pairing: Pairing, halves: Mapping[Labels, Array], own_index: int, half_sizes: Array
) -> float | None:
    """Return by how much a pairing's first form loses more on a site's rows, from its stated losses.

    ``halves`` has the site's losses (K, 2) by tidy labelling, and ``half_sizes`` (2,) its rows in both
    halves. ``own_index`` is the site's index among the members. None where a labelling's losses were not
    stated. The excess that the site stated itself is compared with this one.
    """
    mean_losses = []
    forms = (pairing.labels, pairing.picks), (pairing.other_labels, pairing.other_picks)
    for labels, picks in forms:
        tidy = tidy_labels(np.array(labels))
        losses_on_halves = halves.get(tuple(tidy.tolist()))
        if losses_on_halves is None:
            return None
        chosen = [
            losses_on_halves[tidy[labels.index(pick)], half] for half, pick in enumerate(picks[own_index])
        ]
        mean_losses.append(np.where(half_sizes > 0, chosen, 0.0) @ half_sizes / half_sizes.sum())
    return float(mean_losses[0] - mean_losses[1])


def _objects_falsely(
    participants: Participants, answered: Sequence[Answered], site: str, level: float
) -> bool:
    """Tell whether a site states an excess of one labelling over another that its losses contradict.

    ``level`` is the site's noise level, the unit of what counts as rounding. A false excess could talk the
    method out of a labelling that suits all other sites.
    """
    # By labelling, the site's losses (K, 2) on both halves of its rows; infinite where nobody could predict.
    halves: dict[Labels, Array] = {}
    for earlier_round in answered:
        if site in earlier_round.answers:
            for labels, losses_of_clusters in zip(
                earlier_round.question.labellings, earlier_round.answers[site].halves, strict=True
            ):
                halves[labels] = np.array(
                    [[np.inf if loss is None else loss for loss in pair] for pair in losses_of_clusters]
                )
    half_sizes = np.array(participants.scores[site].half_sizes, dtype=float)
    for earlier_round in answered:
        if site not in earlier_round.answers:
            continue
        own_index = [member.site for member in earlier_round.question.members].index(site)
        for pairing, (stated, _) in zip(
            earlier_round.question.pairings, earlier_round.answers[site].pairings, strict=True
        ):
            excess = _excess_of(pairing, halves, own_index, half_sizes)
            rounding = ROUNDING * (level + abs(stated))
            if (
                excess is not None
                and np.isfinite(excess)
                and abs(excess - stated) > rounding + ROUNDING * abs(excess)
            ):
                return True
    return False


def _contradicts_itself(share: Share, noise: float, before: Sequence[Answer], answer: Answer) -> bool:
    """Tell whether a verdict states other errors than the residual products of the same site give.

    ``before`` has all answers of the site, and ``noise`` is its noise level. Bounded losses must not exceed
    the errors either, and no number of rows that of the share. A verdict comes last: whoever changes its
    errors then could claim any gain.
    """
    verdict = answer.verdict
    if verdict is None:
        return False
    # Errors below this share of the noise are rounding.
    smallest_error, factor = SMALLEST_ERROR * noise, 1 + ROUNDING
    own_error, others_error = verdict.errors[0][0], verdict.errors[1][0]
    within_errors = (
        verdict.own <= own_error * factor + smallest_error
        and verdict.others <= others_error * factor + smallest_error
    )
    if not within_errors or verdict.n_rows > share.n_rows:
        return True
    for earlier in before:
        if earlier.products is not None:
            grams, counts = earlier.products.folds, earlier.products.counts
            # The first column of residuals is of the own model: its square sum by rows is the error alone.
            error_by_products = sum(table[0][0] for table in grams) / max(sum(counts), 1.0)
            if (
                abs(error_by_products - own_error)
                > ROUNDING * max(error_by_products, own_error) + smallest_error
                or sum(counts) > share.n_rows * factor
            ):
                return True
    return False


def contradictions(participants: Participants, answered: Sequence[Answered]) -> dict[str, str]:
    """Return the sites whose answers cannot be true together, with a sentence that says why.

    Only rounds count in which all members answered, about models that are still current.
    """
    reasons: dict[str, str] = {}
    noise_levels: dict[str, float] = {}
    answers_by_site: dict[str, list[Answer]] = {site: [] for site in participants.scores}
    for earlier_round in answered:
        current_shas = {site: share.sha for site, share in participants.shares.items()}
        members = {member.site: member.sha for member in earlier_round.question.members}
        if set(earlier_round.answers) != set(members) or not members.items() <= current_shas.items():
            # It was asked of others, or some have not answered yet.
            continue
        noise_levels |= {member.site: member.noise for member in earlier_round.question.members}
        for site, answer in earlier_round.answers.items():
            answers_by_site[site].append(answer)
        for member, too_much in zip(
            earlier_round.question.members, _lose_too_much(earlier_round, participants.scores), strict=True
        ):
            if too_much:
                reasons[member.site] = "It states that averages lose more than their models do."
    # Rounds in which somebody answered who is left out now are of other averages.
    rounds_of_participants = [
        earlier_round for earlier_round in answered if set(earlier_round.answers) <= set(answers_by_site)
    ]
    for site, answers in answers_by_site.items():
        if site not in reasons and _objects_falsely(
            participants, rounds_of_participants, site, noise_levels.get(site, 0.0)
        ):
            reasons[site] = "It states another difference between two labellings than its losses have."
        for answer in answers:
            share, noise = participants.shares[site], noise_levels.get(site, 0.0)
            if site not in reasons and _contradicts_itself(share, noise, answers, answer):
                reasons[site] = "The errors that it states at the end are not those of its residuals."
    return reasons


def _far_from_median(values: Mapping[str, float]) -> list[str]:
    """Return the sites whose value is farther from the median, by ratio, than a single site may count.

    ``values`` are positive numbers, such as noise levels or numbers of rows.
    """
    median = float(np.median(list(values.values())))
    largest_ratio = WEIGHT_LIMITS.ratio
    return [
        site
        for site, value in values.items()
        if not median / largest_ratio <= value <= median * largest_ratio
    ]


def _unlike_all(scores: Mapping[str, Score]) -> list[str]:
    """Return the sites on whose rows even the best of the others' models loses far more than is typical.

    Losses are in units of the site's noise. Such a site has other data than all others, or says so.
    """
    sites = list(scores)
    best_losses = []
    for site in sites:
        losses_of_others = [scores[site].losses[other].value for other in sites if other != site]
        best_losses.append(min((loss for loss in losses_of_others if loss is not None), default=np.inf))
    best_ratios = np.array(best_losses) / within_reach(np.array([scores[site].noise for site in sites]))
    is_unlike = best_ratios > WEIGHT_LIMITS.ratio**2 * np.median(best_ratios)
    return [site for site, unlike in zip(sites, is_unlike, strict=True) if unlike]


def strange_numbers(participants: Participants) -> list[str]:
    """Return a sentence for each site whose noise level, rows or failures are far from the others'.

    Such numbers may be true, so that the site stays; readers shall know.
    """
    scores, notes = participants.scores, []
    # Of two sites nobody can say which one is far from the other.
    if len(scores) > 2:
        noise_levels = {site: score.noise for site, score in scores.items()}
        row_counts = {site: float(share.n_rows) for site, share in participants.shares.items()}
        ending = "is far from what is typical, and counts within bounds."
        notes += [f"The noise level of {site!r} {ending}" for site in _far_from_median(noise_levels)]
        notes += [f"The number of rows of {site!r} {ending}" for site in _far_from_median(row_counts)]
        notes += [f"No other site's model suits the rows of {site!r}." for site in _unlike_all(scores)]
    for site in scores:
        unable = [other for other in scores if scores[other].losses[site].value is None]
        if unable and 2 * len(unable) <= len(scores):
            notes.append(f"{unable[0]!r} could not evaluate the model of {site!r}, which most others could.")
    return notes
