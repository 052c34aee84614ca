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
        """Return the settings as a conclusion states them."""
        return {each.name: json.dumps(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_text(cls, text: Mapping[str, str]) -> Settings:
        """Return the settings that a conclusion states; refuse what are none."""
        try:
            result = cls(**{name: parse_json(value.encode()) for name, value in text.items()})
            check_count(result.refine_rounds, "refine_rounds")
            check_count(result.seed, "seed", least=0)
            for count in (result.max_clusters, result.min_rows):
                if count is not None:
                    check_count(count, "number")
            return result
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
    """Return the losses in which models have failed only where most sites say so.

    A single site may lie. Where others could evaluate a model, it counts as the worst of those that the site
    could evaluate.
    """
    failed = ~np.isfinite(losses)
    most = failed.sum(axis=1, keepdims=True) * 2 > len(losses)
    worst = np.where(failed, 0.0, losses).max(axis=0, keepdims=True)
    return np.where(failed & ~most, worst, losses)


def _with_strangers_known(losses: Array, noise: Array) -> Array:
    """Return the losses in which a site that no model suits is known by what its own model loses elsewhere.

    A site may say that of itself, so that it stands apart and takes one of the clusters. The others' rows say
    whether its model is unlike theirs.
    """
    ratios = losses / noise
    np.fill_diagonal(ratios, np.inf)
    best = ratios.min(axis=0)
    usual = WEIGHT_LIMITS.ratio * np.median(best)
    # Where its model suits nobody either, it is what it says.
    strange = (best > usual) & (ratios.min(axis=1) <= usual)
    known = np.where(strange, ratios.T * noise, losses)
    np.fill_diagonal(known, losses.diagonal())
    return known


def _exchange(participants: Participants) -> Exchange:
    """Return the exchange that the sites' scores make."""
    sites = list(participants.shares)
    values = [[participants.scores[j].losses[i].value for j in sites] for i in sites]
    losses = np.array([[np.inf if v is None else v for v in row] for row in values])
    levels = np.array([participants.scores[site].noise for site in sites])
    variances = np.array([participants.scores[site].noise_variance for site in sites])
    tied = np.array([participants.scores[site].tied for site in sites])
    rows = np.array([participants.shares[site].n_rows for site in sites])
    losses = _with_failures_counted(losses)
    noise = within_reach(shrunken_levels(cautious_levels(levels, rows, tied), variances))
    losses = _with_strangers_known(losses, noise)
    return Exchange(
        learner_ids=np.array(sites),
        source=DenseTiles(losses),
        errors=losses.diagonal().copy(),
        noise=noise,
        isolated=~np.isfinite(losses).all(axis=1),
    )


def _members(participants: Participants, known: Exchange) -> list[AveragedSite]:
    """Return the sites whose models take part in averages, with their weights."""
    sites = known.learner_ids.tolist()
    n_rows = np.array([participants.shares[site].n_rows for site in sites])
    weights = model_weights(n_rows, known.noise, known)
    return [
        AveragedSite(site, participants.shares[site].sha, float(weight), float(noise))
        for site, weight, noise in zip(sites, weights, known.noise, strict=True)
    ]


def _units(participants: Participants, members: Sequence[AveragedSite]) -> tuple[float, ...]:
    """Return the common units of the predictors; zero where slopes are not corrected."""
    units = slope_units(np.array([participants.shares[member.site].spreads for member in members]))
    return tuple(np.where(np.isfinite(units), units, 0.0).tolist())


def _ask_ahead(evidence: Evidence, losses: AnsweredLosses, counts: Iterable[int], rounds: int) -> None:
    """Note all labellings that Refine can ask about by now, for every number of clusters at once.

    Rounds are then those of the longest path and not of all together.
    """
    for count in counts:
        with suppress(NotAnsweredError):
            refine_labels(losses, tidy_labels(evidence.labels(count)), rounds=rounds)


def _mixing(labellings: Sequence[Array], losses: AnsweredLosses) -> MixingQuestion:
    """Return what is mixed; offsets and slopes are of the size that the sites find likely."""
    likelihoods = np.stack([losses.likelihoods(labels) for labels in labellings], axis=1)
    first, second = (
        tuple((offset, slope) for offset, slope in part) for part in agree_on_ratios(likelihoods).tolist()
    )
    return MixingQuestion(tuple(in_message(labels) for labels in labellings), (first, second))


def _mixed(
    participants: Participants,
    known: Exchange,
    losses: AnsweredLosses,
    labels: Array,
    found: dict[int, Array],
) -> MemberOutcomes | None:
    """Return how the members predict with the chosen partition; None where they have to be asked."""
    chosen = int(labels.max()) + 1
    counts = resolution_counts(len(labels), chosen)
    by_count = {**found, chosen: labels}
    labellings = [*(by_count[count] for count in counts), np.zeros_like(labels)]
    mixing = _mixing(labellings, losses)
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
    whole = np.concatenate([weights.held_out, weights.personal[None]])
    tables = tuple(tuple(map(tuple, table)) for table in np.swapaxes(whole, 0, 1).tolist())
    judging = JudgingQuestion(in_message(labels), mixing, tables)
    verdicts = losses.verdicts(judging)
    if verdicts is None:
        return None
    dictionary = AverageDictionary(tuple(labellings), np.zeros(0), np.array(mixing.ratios))
    clusters_of = np.array([best_clusters(losses, each) for each in labellings])
    in_averages = np.array([member.weight for member in losses.members])
    all_learners = slice(0, len(labels))
    tile = known.source.tile(all_learners, all_learners)
    mixing_of: Any = dictionary, clusters_of, weights.personal, in_averages, tile
    cluster_losses = whole_losses(losses, labels)
    if shares[0].classes:
        parts, shares_of = mixed_parts(*mixing_of)
        models = ClassAverages.totals(parts, weights.personal)
        return MemberOutcomes(models, shares_of[:, 0], verdicts, cluster_losses, parts, weights.personal)
    models, shares_of = mixed_models(*mixing_of)
    return MemberOutcomes(models, shares_of[:, 0], verdicts, cluster_losses)


def conclude(
    shares: Sequence[Share],
    scores: Sequence[Score],
    answered: Sequence[Answered] = (),
    *,
    settings: Settings | None = None,
    leave_out: Mapping[str, str] | None = None,
) -> Question | Conclusion:
    """Return who learns with whom, or the question that comes first.

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
        whole = {**participants.left_out, **participants.waiting}
        reason = next((f" {site!r}: {sentence}" for site, sentence in whole.items()), "")
        raise ProtocolError(f"There is no site left to conclude from.{reason}")
    if liars := contradictions(participants, answered):
        left_out = {**(leave_out or {}), **liars}
        return conclude(shares, scores, answered, settings=settings, leave_out=left_out)
    exchange = _exchange(participants)
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
        result = search_partition(exchange, Answerer(), replace(options, refine=None))
        return conclusion_by_losses(participants, result, settings.as_text())
    known = exchange.take(finite_learners(exchange))
    members = _members(participants, known)
    half_sizes = np.array([participants.scores[member.site].half_sizes for member in members])
    n_rows = np.array([participants.shares[member.site].n_rows for member in members])
    losses = AnsweredLosses(members, half_sizes, _units(participants, members), answered)
    n_clusters = check_n_clusters(settings.n_clusters, len(exchange.learner_ids))
    most, rounds = largest_count(len(members), n_clusters, settings.max_clusters), settings.refine_rounds
    evidence = Evidence(known, resolve_scale(known, settings.scale), most, settings.seed, n_rows)
    given = [] if isinstance(n_clusters, str) else [min(n_clusters, len(members)), 1]
    _ask_ahead(evidence, losses, given or range(1, most + 1), rounds)
    finer, counts = resolution_evidence(known, n_rows, settings.seed)
    _ask_ahead(finer, losses, counts, rounds)
    n_features = len(next(iter(participants.shares.values())).columns)
    try:
        result = search_partition(exchange, Answerer(losses, n_rows, n_features), options)
        resolutions = average_labels(known, losses, n_rows, settings.seed, rounds)
    except NotAnsweredError:
        return losses.question_now()
    final = tidy_labels(result.partition.aligned_to(result.learner_ids).labels)
    if losses.has_questions:
        # One of these will be chosen. What weights are learnt from is asked for all of them at once.
        labellings = [*resolutions.values(), *map(tidy_labels, losses.candidates()), np.zeros_like(final)]
        distinct = {labels.tobytes(): labels for labels in labellings}
        losses.ask_products(_mixing(list(distinct.values()), losses))
        return losses.question_now()
    mixed = None
    if len(members) > 1:
        mixed = _mixed(participants, known, losses, final, resolutions)
        if mixed is None:
            return losses.question_now()
    notes = (*strange_numbers(participants), *losses.objectors(final))
    concluded = conclusion_from(participants, exchange, result, mixed, losses.rounds, settings.as_text())
    return replace(concluded, notes=(*concluded.notes, *notes))


def _received(question: Question, replies: Sequence[Answer], round_: int) -> tuple[Answered, dict[str, str]]:
    """Return the good answers of a round, and who gave none and why."""
    good: dict[str, Answer] = {}
    gone: dict[str, str] = {}
    for reply in replies:
        try:
            check_answer(question, reply)
        except ProtocolError as error:
            gone.setdefault(reply.site, f"In round {round_} its answer was refused: {error}")
            continue
        if reply.site in good and good[reply.site] != reply:
            gone[reply.site] = f"In round {round_} it answered twice, and differently."
        good[reply.site] = reply
    for member in question.members:
        if member.site not in good:
            gone.setdefault(member.site, f"It did not answer in round {round_}.")
    members = {member.site for member in question.members}
    gone = {site: reason for site, reason in gone.items() if site in members}
    return Answered(question, {s: a for s, a in good.items() if s not in gone}), gone


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
        round_, gone = _received(outcome, replies, len(answered) + 1)
        answered.append(round_)
        left_out |= gone
