"""From what the sites told to who learns with whom: the local method, asked through messages.

`conclude` runs the method on the answers that are there. What it still has to know is the next question; with
all of it known, the answer is the conclusion. `coordinate` is the same as a generator, for carriers that wait
for replies. The partition is that of a local fit with ``refine="average"`` on the same rows and seed; the
weights are those of ``collaboration="average"``.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from coterie.federated.answers import Answered, AnsweredLosses, NotAnsweredError, check_answer
from coterie.federated.findings import conclusion_by_losses, conclusion_from
from coterie.federated.messages import Answer, Conclusion, Member, ProtocolError, Question, Score, Share
from coterie.federated.participants import Participants, find_participants
from coterie.kernels.losses import DenseTiles
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.n_clusters.held_out import best_refined, held_out
from coterie.method.noise import shrunken_levels
from coterie.method.refine.averages import model_weights
from coterie.method.refine.grams import GramAverages
from coterie.method.refine.losses import whole_losses
from coterie.method.refine.moves import REFINE, refine_labels
from coterie.method.search import (
    Answerer,
    SearchOptions,
    check_n_clusters,
    finite_learners,
    largest_count,
    search_partition,
)
from coterie.method.spectral import check_scale, resolve_scale, tidy_labels
from coterie.records import Exchange

# Each round of Refine asks once; one more compares numbers of coteries and judges those that may be chosen.
MOST_ROUNDS = REFINE.rounds + 1


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
    refine_rounds : int, default=10
        How often sites are moved at most, as in `cluster_learners`; each costs a round of questions.
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
    refine_rounds: int = REFINE.rounds
    seed: int = 0
    rounds: bool = True


def _exchange(participants: Participants) -> Exchange:
    sites = list(participants.shares)
    values = [[participants.scores[j].losses[i].value for j in sites] for i in sites]
    losses = np.array([[np.inf if v is None else v for v in row] for row in values])
    levels = np.array([participants.scores[site].noise for site in sites])
    variances = np.array([participants.scores[site].noise_variance for site in sites])
    return Exchange(
        learner_ids=np.array(sites),
        source=DenseTiles(losses),
        errors=losses.diagonal().copy(),
        noise=shrunken_levels(levels, variances),
        isolated=~np.isfinite(losses).all(axis=1),
    )


def _members(participants: Participants, known: Exchange) -> list[Member]:
    sites = known.learner_ids.tolist()
    n_rows = np.array([participants.shares[site].n_rows for site in sites])
    weights = model_weights(n_rows, known.noise, known)
    return [
        Member(site, participants.shares[site].sha, float(weight), int(n), float(noise))
        for site, weight, n, noise in zip(sites, weights, n_rows, known.noise, strict=True)
    ]


def _grams(participants: Participants, members: Sequence[Member]) -> GramAverages | None:
    """Return the arithmetic of Gram matrices, where all sites revealed theirs."""
    sites = [member.site for member in members]
    products, responses, squares, own = [], [], [], []
    for site in sites:
        score = participants.scores[site]
        if score.grams is None or any(len(gram.response) != len(score.finite) for gram in score.grams):
            return None
        places = [score.finite.index(other) for other in sites]
        products.append([np.array(gram.models)[np.ix_(places, places)] for gram in score.grams])
        responses.append([np.array(gram.response)[places] for gram in score.grams])
        squares.append([gram.square for gram in score.grams])
        own.append([gram.own for gram in score.grams])
    weights = np.array([member.weight for member in members])
    return GramAverages(np.array(products), np.array(responses), np.array(squares), np.array(own), weights)


def _answered(evidence: Evidence, losses: AnsweredLosses, n_clusters: int | str, rounds: int) -> bool:
    """Tell whether the method can be run to its end; if not, note all that can be asked by now.

    Refine goes on for every number of clusters at once, as far as the answers go, so that the rounds are
    those of the longest path and not of all together.
    """
    try:
        if isinstance(n_clusters, str):
            held_out(evidence, losses, rounds=rounds)
        else:
            best_refined(evidence, losses, n_clusters, rounds=rounds)
        return True
    except NotAnsweredError:
        counts = range(1, evidence.most + 1) if isinstance(n_clusters, str) else [n_clusters]
        for count in counts:
            with suppress(NotAnsweredError):
                refine_labels(losses, tidy_labels(evidence.labels(count)), rounds=rounds)
        return False


def conclude(
    shares: Sequence[Share],
    scores: Sequence[Score],
    answered: Sequence[Answered] = (),
    *,
    settings: Settings | None = None,
    leave_out: Mapping[str, str] | None = None,
) -> Question | Conclusion:
    """Return who learns with whom, or what has to be asked first.

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
        why = next((f" {site!r}: {sentence}" for site, sentence in whole.items()), "")
        raise ProtocolError(f"There is no site left to conclude from.{why}")
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
        return conclusion_by_losses(
            participants, search_partition(exchange, Answerer(), replace(options, refine=None))
        )
    known = exchange.take(finite_learners(exchange))
    members = _members(participants, known)
    half_sizes = np.array([participants.scores[member.site].half_sizes for member in members])
    n_rows = np.array([member.n_rows for member in members])
    losses = AnsweredLosses(members, half_sizes, answered, _grams(participants, members))
    n_clusters = check_n_clusters(settings.n_clusters, len(exchange.learner_ids))
    most = largest_count(len(members), n_clusters, settings.max_clusters)
    scale = resolve_scale(known, settings.scale)
    evidence = Evidence(known, scale, most, settings.seed, n_rows)
    fixed = n_clusters if isinstance(n_clusters, str) else min(n_clusters, len(members))
    if not _answered(evidence, losses, fixed, settings.refine_rounds):
        return losses.question_now()
    n_features = len(next(iter(participants.shares.values())).columns)
    try:
        found = search_partition(exchange, Answerer(losses, n_rows, n_features), options)
    except NotAnsweredError:
        # Another rule chose more clusters than the held-out rule looked at.
        return losses.question_now()
    for labels in losses.candidates():
        losses.verdicts(tidy_labels(labels))
    if losses.has_questions:
        return losses.question_now()
    final = found.partition.aligned_to(found.learner_ids).labels
    verdicts = losses.verdicts(final)
    if verdicts is None:
        return losses.question_now()
    return conclusion_from(
        participants, exchange, found, members, verdicts, whole_losses(losses, final), losses.rounds
    )


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
    gone = {site: why for site, why in gone.items() if site in members}
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
