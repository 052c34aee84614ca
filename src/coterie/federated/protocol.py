"""From the sites' messages to who learns with whom: the local method, through questions and answers.

`conclude` runs the method on the answers that are there. What it still has to know is the next question; with
all of it known, the answer is the conclusion. `coordinate` is the same as a generator, for carriers that wait
for replies. Partition, weights and verdicts are those of a local fit with ``refine="average"`` on the same
rows and seed: both ask the same functions.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._codec import parse_json
from coterie._options import check_count
from coterie.collaboration.classes import ClassAverages
from coterie.collaboration.classes.averaging import agree_on_class_weights, mixed_parts
from coterie.collaboration.nested.effects import slope_units
from coterie.collaboration.nested.resolutions import average_labels, resolution_counts, resolution_evidence
from coterie.collaboration.nested.site_rows import AverageDictionary
from coterie.collaboration.nested.weighing import (
    agree_on_ratios,
    agree_on_weights,
    best_clusters,
    mixed_models,
    response_units,
)
from coterie.federated.answers import Answered, AnsweredLosses, NotAnsweredError, check_answer, in_message
from coterie.federated.conclusions import Conclusion
from coterie.federated.consistency import contradictions, strange_numbers
from coterie.federated.findings import MemberOutcomes, conclusion_by_losses, conclusion_from
from coterie.federated.labels import response_moments
from coterie.federated.messages import (
    Answer,
    AveragedSite,
    JudgingQuestion,
    MixingQuestion,
    ProtocolError,
    Question,
    Score,
    Share,
)
from coterie.federated.participants import Participants, find_participants
from coterie.kernels.losses import DenseTiles
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.noise import cautious_levels, shrunken_levels
from coterie.method.refine.averages import model_weights
from coterie.method.refine.losses import whole_losses
from coterie.method.refine.moves import ROUNDS_OF_AVERAGES, refine_labels
from coterie.method.search import (
    Answerer,
    SearchOptions,
    check_n_clusters,
    finite_learners,
    largest_count,
    search_partition,
)
from coterie.method.spectral import check_scale, resolve_scale, tidy_labels
from coterie.method.weight_limits import WEIGHT_LIMITS, within_reach
from coterie.records import Exchange


@dataclass(frozen=True)
class Settings:
    """How to conclude; the same names as in `CoterieRegressor`.

    Parameters
    ----------
    n_clusters : int or str, default="auto"
        A number or a rule.
    max_clusters : int or None, default=None
        The largest number that a rule looks at.
    scale : {"noise", "median"} or float, default="noise"
        The factor a of the similarity exp(-a v).
    min_rows : int or None, default=None
        Rows that a site needs. None: as a local fit.
    refine_rounds : int, default=2
        How often sites are moved at most, as in `CoterieRegressor`; each costs a round of questions.
    seed : int, default=0
        For k-means.
    rounds : bool, default=True
        Ask further questions, for Refine, the held-out rule and the gains. False: the paper's method by
        losses alone, and ``"auto"`` is ``"eigengap"``.
    """

    n_clusters: int | str = "auto"
    max_clusters: int | None = None
    scale: str | float = "noise"
    min_rows: int | None = None
    refine_rounds: int = ROUNDS_OF_AVERAGES
    seed: int = 0
    rounds: bool = True

    def as_text(self) -> dict[str, str]:
        """Return the settings as a conclusion states them: the JSON of each value, by its name."""
        return {setting.name: json.dumps(getattr(self, setting.name)) for setting in fields(self)}

    @classmethod
    def from_text(cls, text: Mapping[str, str]) -> Settings:
        """Return the settings that a conclusion states; refuse unknown names and impossible values.

        They come from whoever concluded, and anybody may conclude again by them.
        """
        try:
            stated = cls(**{name: parse_json(value.encode()) for name, value in text.items()})
            check_count(stated.refine_rounds, "refine_rounds")
            check_count(stated.seed, "seed", least=0)
            for count in (stated.max_clusters, stated.min_rows):
                if count is not None:
                    check_count(count, "number")
            return stated
        except (TypeError, ValueError):
            raise ProtocolError("The settings that the conclusion states are none of coterie's.") from None

    @property
    def most_rounds(self) -> int:
        """How many rounds of questions there are at most.

        Each round of Refine asks once. One more compares numbers of coteries and asks what weights are learnt
        from, and the last one asks what all that brings.
        """
        return self.refine_rounds + 2


# With the usual settings.
MOST_ROUNDS = Settings().most_rounds


def _with_failures_counted(losses: Array) -> Array:
    """Return losses (M, M) in which a model's failure counts only where most sites say that it fails.

    Rows are models and columns are sites. A single site may lie. Where others could evaluate a model, its
    loss on a site that could not becomes the largest loss of any model there.
    """
    failed = ~np.isfinite(losses)
    fails_at_most_sites = failed.sum(axis=1, keepdims=True) * 2 > len(losses)
    worst = np.where(failed, 0.0, losses).max(axis=0, keepdims=True)
    return np.where(failed & ~fails_at_most_sites, worst, losses)


def _with_strangers_known(losses: Array, noise: Array) -> Array:
    """Return losses (M, M) in which a site that no other model suits gets its own model's losses elsewhere.

    Rows are models and columns are sites; ``noise`` (M,) has the noise levels. A site may claim that no model
    suits it, and so take a cluster for itself. The others' rows, which it cannot forge, say whether its model
    is unlike theirs.
    """
    # Whoever has little noise, as a site of one class has, is far from every model in units of its own noise.
    unit = np.maximum(noise, np.median(noise))
    # What each model loses on each site, in units of noise; a site's own model does not count.
    ratios = losses / unit
    np.fill_diagonal(ratios, np.inf)
    best_ratios = ratios.min(axis=0)
    largest_usual = WEIGHT_LIMITS.ratio * np.median(best_ratios)
    # If its own model suits nobody else either, the site tells the truth: its losses stay.
    is_stranger = (best_ratios > largest_usual) & (ratios.min(axis=1) <= largest_usual)
    # Transposed: the stranger's own model on the others' rows, in place of their models on its rows.
    corrected = np.where(is_stranger, ratios.T * unit, losses)
    np.fill_diagonal(corrected, losses.diagonal())
    return corrected


def _exchange_of_scores(participants: Participants) -> Exchange:
    """Return the losses and noise levels of M sites as an exchange, the record that clustering starts from.

    Every number may be a lie: failures, noise levels and losses that only one site speaks for are bounded by
    what the others say. A site is isolated where a loss of its model stays infinite.
    """
    sites = list(participants.shares)
    stated_losses = [[participants.scores[scorer].losses[model].value for scorer in sites] for model in sites]
    losses = np.array([[np.inf if loss is None else loss for loss in row] for row in stated_losses])
    noise_levels = np.array([participants.scores[site].noise for site in sites])
    noise_variances = np.array([participants.scores[site].noise_variance for site in sites])
    tied = np.array([participants.scores[site].tied for site in sites])
    n_rows = np.array([participants.shares[site].n_rows for site in sites])
    losses = _with_failures_counted(losses)
    # Cautious for tied sites (mostly one response), shrunk towards the median, within a factor of it.
    noise = within_reach(shrunken_levels(cautious_levels(noise_levels, n_rows, tied), noise_variances))
    losses = _with_strangers_known(losses, noise)
    return Exchange(
        learner_ids=np.array(sites),
        source=DenseTiles(losses),
        errors=losses.diagonal().copy(),
        noise=noise,
        isolated=~np.isfinite(losses).all(axis=1),
    )


def _members(participants: Participants, exchange: Exchange) -> list[AveragedSite]:
    """Return the sites whose models take part in averages, with what each model weighs there.

    A model weighs more with more rows, less noise, and smaller losses on other sites: see `model_weights`.
    The noise levels are those of the exchange, which no single site decides.
    """
    sites = exchange.learner_ids.tolist()
    n_rows = np.array([participants.shares[site].n_rows for site in sites])
    weights = model_weights(n_rows, exchange.noise, exchange)
    return [
        AveragedSite(site, participants.shares[site].sha, float(weight), float(noise))
        for site, weight, noise in zip(sites, weights, exchange.noise, strict=True)
    ]


def _predictor_units(participants: Participants, members: Sequence[AveragedSite]) -> tuple[float, ...]:
    """Return the common unit of each predictor, from all members' standard deviations.

    Slopes are shrunk in these units. Zero means that slopes of this predictor are not corrected.
    """
    units = slope_units(np.array([participants.shares[member.site].spreads for member in members]))
    return tuple(np.where(np.isfinite(units), units, 0.0).tolist())


def _ask_ahead(
    evidence: Evidence, losses: AnsweredLosses, cluster_counts: Iterable[int], rounds: int
) -> None:
    """Run Refine for every number of clusters, so that each notes the labellings that it must know losses of.

    Where an answer is missing, that run stops and the next one goes on. All wishes share one question; rounds
    are then those of the longest path, and not the sum over all paths. Refine moves single sites to the
    clusters that predict them better.
    """
    for n_clusters in cluster_counts:
        with suppress(NotAnsweredError):
            refine_labels(losses, tidy_labels(evidence.labels(n_clusters)), rounds=rounds)


def _mixing_question(labellings: Sequence[Array], losses: AnsweredLosses) -> MixingQuestion:
    """Return the averages that can be mixed, with the variances of offsets and slopes that sites find likely.

    ``labellings`` has one partition of the members for each resolution; likelihoods are summed over sites.
    """
    likelihoods = np.stack([losses.likelihoods(labels) for labels in labellings], axis=1)
    offset_only, offset_and_slopes = (
        tuple((offset, slope) for offset, slope in pairs) for pairs in agree_on_ratios(likelihoods).tolist()
    )
    return MixingQuestion(
        tuple(in_message(labels) for labels in labellings), (offset_only, offset_and_slopes)
    )


def _member_outcomes(
    participants: Participants,
    exchange: Exchange,
    losses: AnsweredLosses,
    labels: Array,
    labels_by_count: dict[int, Array],
) -> MemberOutcomes | None:
    """Return how the members predict and what they say it brings; None where they have to be asked first.

    Averages of several resolutions are mixed: the chosen partition ``labels`` (M,), coarser and finer ones
    from ``labels_by_count``, and all members as one. Weights are learnt from the residual products, then the
    sites judge the mixture: each step takes a round. A resolution is a partition with another number of
    clusters.
    """
    n_clusters = int(labels.max()) + 1
    counts = resolution_counts(len(labels), n_clusters)
    labellings_by_count = {**labels_by_count, n_clusters: labels}
    labellings = [*(labellings_by_count[count] for count in counts), np.zeros_like(labels)]
    mixing = _mixing_question(labellings, losses)
    products = losses.products(mixing)
    if products is None:
        losses.ask_products(mixing)
        return None
    shares = [participants.shares[member.site] for member in losses.members]
    n_rows = np.array([share.n_rows for share in shares])
    means, variances = response_moments(shares)
    if shares[0].classes:
        weights = agree_on_class_weights(*products)
    else:
        weights = agree_on_weights(*products, response_units(n_rows, means[:, 0], variances))
    weights_by_fold = np.concatenate([weights.held_out, weights.personal[None]])
    # One table per member: weights without each fold of its rows, then those of all folds.
    tables = tuple(tuple(map(tuple, table)) for table in np.swapaxes(weights_by_fold, 0, 1).tolist())
    judging = JudgingQuestion(in_message(labels), mixing, tables)
    verdicts = losses.verdicts(judging)
    if verdicts is None:
        return None
    dictionary = AverageDictionary(tuple(labellings), np.zeros(0), np.array(mixing.ratios))
    # For each resolution, the cluster whose average loses least on each member.
    clusters_of = np.array(
        [best_clusters(losses, labels_at_resolution) for labels_at_resolution in labellings]
    )
    weights_in_averages = np.array([member.weight for member in losses.members])
    all_learners = slice(0, len(labels))
    losses_of_models = exchange.source.tile(all_learners, all_learners)
    mixture_arguments: Any = dictionary, clusters_of, weights.personal, weights_in_averages, losses_of_models
    cluster_losses = whole_losses(losses, labels)
    if shares[0].classes:
        parts, shares_in_mixture = mixed_parts(*mixture_arguments)
        models = ClassAverages.totals(parts, weights.personal)
        return MemberOutcomes(
            models=models,
            own=shares_in_mixture[:, 0],
            verdicts=verdicts,
            losses=cluster_losses,
            parts=parts,
            part_shares=weights.personal,
        )
    models, shares_in_mixture = mixed_models(*mixture_arguments)
    return MemberOutcomes(
        models=models, own=shares_in_mixture[:, 0], verdicts=verdicts, losses=cluster_losses
    )


def conclude(
    shares: Sequence[Share],
    scores: Sequence[Score],
    answered: Sequence[Answered] = (),
    *,
    settings: Settings | None = None,
    leave_out: Mapping[str, str] | None = None,
) -> Question | Conclusion:
    """Run the method on what the sites sent; return the conclusion, or the next question to them.

    Sites are clustered by the losses of their models and moved one by one; then the number of clusters,
    weights and verdicts follow.

    Parameters
    ----------
    shares : sequence of Share
        From all sites.
    scores : sequence of Score
        From all sites. Whoever has not scored is left out.
    answered : sequence of Answered, default=()
        Earlier questions with their answers.
    settings : Settings or None, default=None
        How to conclude.
    leave_out : mapping of str to str or None, default=None
        Sites to go on without, and why.

    Returns
    -------
    Question or Conclusion
        A question to all its members, or the end.
    """
    settings = settings or Settings()
    check_scale(settings.scale)
    if settings.n_clusters == "cv":
        raise ProtocolError("The rule 'cv' needs rows that are here: take 'auto' or another rule.")
    participants = find_participants(shares, scores, min_rows=settings.min_rows, leave_out=leave_out)
    if not participants.shares:
        absent = {**participants.left_out, **participants.waiting}
        reason = next((f" {site!r}: {sentence}" for site, sentence in absent.items()), "")
        raise ProtocolError(f"There is no site left to conclude from.{reason}")
    if liars := contradictions(participants, answered):
        # Without them everything changes, from the weights on: it starts anew.
        left_out = {**(leave_out or {}), **liars}
        return conclude(shares, scores, answered, settings=settings, leave_out=left_out)
    exchange = _exchange_of_scores(participants)
    if exchange.isolated.all():
        raise ProtocolError("Every site's model failed somewhere: let the sites share other models.")
    options = SearchOptions(
        n_clusters=settings.n_clusters,
        max_clusters=settings.max_clusters,
        scale=settings.scale,
        refine="average",
        refine_rounds=settings.refine_rounds,
        seed=settings.seed,
    )
    if not settings.rounds:
        search_result = search_partition(exchange, Answerer(), replace(options, refine=None))
        return conclusion_by_losses(participants, search_result, settings.as_text())
    # Sites whose models failed somewhere stand apart; all others are the members.
    finite_exchange = exchange.take(finite_learners(exchange))
    members = _members(participants, finite_exchange)
    half_sizes = np.array([participants.scores[member.site].half_sizes for member in members])
    n_rows = np.array([participants.shares[member.site].n_rows for member in members])
    losses = AnsweredLosses(members, half_sizes, _predictor_units(participants, members), answered)
    n_clusters = check_n_clusters(settings.n_clusters, len(exchange.learner_ids))
    largest_n_clusters, rounds = (
        largest_count(len(members), n_clusters, settings.max_clusters),
        settings.refine_rounds,
    )
    # Spectral clustering for each number of clusters: where Refine, which moves single sites, starts from.
    evidence = Evidence(
        finite_exchange,
        resolve_scale(finite_exchange, settings.scale),
        largest_n_clusters,
        settings.seed,
        n_rows,
    )
    # A given number needs itself and one cluster of all; a rule looks at every number.
    fixed_counts = [] if isinstance(n_clusters, str) else [min(n_clusters, len(members)), 1]
    _ask_ahead(evidence, losses, fixed_counts or range(1, largest_n_clusters + 1), rounds)
    # Resolutions are coarser and finer partitions, whose averages are mixed beside those of the coteries.
    evidence_of_resolutions, counts_of_resolutions = resolution_evidence(
        finite_exchange, n_rows, settings.seed
    )
    _ask_ahead(evidence_of_resolutions, losses, counts_of_resolutions, rounds)
    n_features = len(next(iter(participants.shares.values())).columns)
    try:
        search_result = search_partition(exchange, Answerer(losses, n_rows, n_features), options)
        resolutions = average_labels(finite_exchange, losses, n_rows, settings.seed, rounds)
    except NotAnsweredError:
        return losses.question_now()
    # Tidy labels are numbered from the largest cluster on, so that equal partitions have equal labels.
    final_labels = tidy_labels(search_result.partition.aligned_to(search_result.learner_ids).labels)
    if losses.has_questions:
        # One of these will be chosen. Residual products, which weights are learnt from, are asked for at once
        # for all of them: that saves a round.
        labellings = [
            *resolutions.values(),
            *map(tidy_labels, losses.candidates()),
            np.zeros_like(final_labels),
        ]
        distinct_labellings = {labels.tobytes(): labels for labels in labellings}
        losses.ask_products(_mixing_question(list(distinct_labellings.values()), losses))
        return losses.question_now()
    # A member alone has nobody to learn with: it needs no further question.
    outcomes = None
    if len(members) > 1:
        outcomes = _member_outcomes(participants, finite_exchange, losses, final_labels, resolutions)
        if outcomes is None:
            return losses.question_now()
    # What readers shall know of numbers that are possible and yet far from the others'.
    notes = (*strange_numbers(participants), *losses.objectors(final_labels))
    concluded = conclusion_from(
        participants=participants,
        exchange=exchange,
        search_result=search_result,
        outcomes=outcomes,
        rounds=losses.rounds,
        settings=settings.as_text(),
    )
    return replace(concluded, notes=(*concluded.notes, *notes))


def _answers_of_round(
    question: Question, replies: Sequence[Answer], round_: int
) -> tuple[Answered, dict[str, str]]:
    """Return a round's question with its good answers, and the members who gave none, with the reason.

    An answer is not good if `check_answer` refuses it, or if the site sent two different ones. ``round_``
    counts from 1, for the reasons.
    """
    good_answers: dict[str, Answer] = {}
    without_answer: dict[str, str] = {}
    for reply in replies:
        try:
            check_answer(question, reply)
        except ProtocolError as error:
            without_answer.setdefault(reply.site, f"In round {round_} its answer was refused: {error}")
            continue
        if reply.site in good_answers and good_answers[reply.site] != reply:
            without_answer[reply.site] = f"In round {round_} it answered twice, and differently."
        good_answers[reply.site] = reply
    for member in question.members:
        if member.site not in good_answers:
            without_answer.setdefault(member.site, f"It did not answer in round {round_}.")
    members = {member.site for member in question.members}
    without_answer = {site: reason for site, reason in without_answer.items() if site in members}
    return Answered(
        question, {s: a for s, a in good_answers.items() if s not in without_answer}
    ), without_answer


def coordinate(
    shares: Sequence[Share], scores: Sequence[Score], *, settings: Settings | None = None
) -> Generator[Question, Sequence[Answer], Conclusion]:
    """Conclude by asking: yields questions, wants the answers sent, returns the conclusion.

    A site that does not answer, answers twice or answers nonsense is left out, and the others go on.

    Parameters
    ----------
    shares : sequence of Share
        From all sites.
    scores : sequence of Score
        From all sites.
    settings : Settings or None, default=None
        How to conclude.

    Returns
    -------
    Conclusion
        Who learns with whom, and who was left out and why.

    Yields
    ------
    Question
        To all its members; send the answers that came.
    """
    answered: list[Answered] = []
    left_out: dict[str, str] = {}
    while True:
        outcome = conclude(shares, scores, answered, settings=settings, leave_out=left_out)
        if isinstance(outcome, Conclusion):
            return outcome
        replies = yield outcome
        answered_round, without_answer = _answers_of_round(outcome, replies, len(answered) + 1)
        answered.append(answered_round)
        # Without them all averages change: the next call of `conclude` starts anew with the others.
        left_out |= without_answer
