"""The local method's questions, answered by messages.

`AnsweredLosses` is a `ClusterLosses`: Refine and the rules for the number of clusters ask it what clusters
lose, as they ask rows that are here. What no message has answered yet is written down, and becomes the next
question to the sites.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.federated.messages import Answer, Member, Pairing, ProtocolError, Question, Verdict, question_key
from coterie.method.refine.grams import GramAverages
from coterie.method.spectral import tidy_labels

Labels = tuple[int, ...]

# Two machines may compute weights that differ in their last digits; questions about them are the same.
SAME_WEIGHT = 1e-6


class NotAnsweredError(Exception):
    """The sites have to be asked first."""


def _in_message(labels: Array) -> Any:
    """Return labels or picks, of shape (L,) or (L, 2), as they stand in messages."""
    return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in labels.tolist())


def check_answer(question: Question, answer: Answer) -> Answer:
    """Return a site's answer, or refuse it where it is not to the question."""
    sites = [member.site for member in question.members]
    if answer.question != question_key(question) or answer.site not in sites:
        raise ProtocolError(f"{answer.site!r} answered a question that it was not asked.")
    place = sites.index(answer.site)
    wanted = (len(question.labellings), len(question.pairings), len(question.verdicts))
    if (len(answer.halves), len(answer.pairings), len(answer.verdicts)) != wanted:
        raise ProtocolError(f"{answer.site!r} did not answer all that it was asked.")
    for labels, halves in zip(question.labellings, answer.halves, strict=True):
        if len(halves) != max(labels) + 1 or None in halves[labels[place]]:
            raise ProtocolError(f"{answer.site!r} did not answer for every cluster.")
    for labels, verdict in zip(question.verdicts, answer.verdicts, strict=True):
        n_clusters = max(labels) + 1
        if len(verdict.clusters) != n_clusters or len(verdict.membership) not in (0, n_clusters):
            raise ProtocolError(f"{answer.site!r} did not judge every cluster.")
    return answer


def same_members(ours: Sequence[Member], theirs: Sequence[Member], *numbers: str) -> bool:
    """Tell whether these are the same models of the same sites, with numbers that differ by rounding only."""
    if [(m.site, m.sha) for m in ours] != [(m.site, m.sha) for m in theirs]:
        return False
    first, second = ([[getattr(m, name) for name in numbers] for m in some] for some in (ours, theirs))
    return np.allclose(first, second, rtol=SAME_WEIGHT, atol=0)


@dataclass(frozen=True)
class Answered:
    """A question and the answers to it, by site; checked."""

    question: Question
    answers: Mapping[str, Answer]

    def is_about(self, members: Sequence[Member], *, clipped: bool) -> bool:
        """Tell whether the question was about these members, with these weights, and all have answered."""
        same = same_members(members, self.question.members, "weight") and self.question.clipped == clipped
        return same and set(self.answers) == {member.site for member in members}


def _halves(answers: Sequence[Answer], place: int) -> Array:
    """Return what was answered to one labelling, of shape (K, L, 2)."""
    columns = [[[np.inf if v is None else v for v in pair] for pair in a.halves[place]] for a in answers]
    return np.moveaxis(np.array(columns), 0, 1)


class AnsweredLosses:
    """What clusters lose, as far as the sites have answered in earlier rounds.

    ``members``, sorted by site, are those whose models are averaged; ``half_sizes``, of shape (L, 2), are the
    rows in their halves. ``grams`` answers for losses on halves where all sites revealed their Gram matrices.
    """

    def __init__(
        self,
        members: Sequence[Member],
        half_sizes: Array,
        answered: Sequence[Answered],
        grams: GramAverages | None = None,
    ) -> None:
        self.members, self.half_sizes = tuple(members), half_sizes
        self.noise = np.array([member.noise for member in members])
        self._grams = grams
        # By part of a question and what it is about: what is known, and what has to be asked, each once, in
        # the order in which it was wanted.
        self._known: dict[tuple[str, Any], Any] = {}
        self._wanted: dict[tuple[str, Any], None] = {}
        self.rounds = 0
        for each in answered:
            if each.is_about(members, clipped=self.clipped):
                self._learn(each)
                self.rounds += 1

    def _learn(self, answered: Answered) -> None:
        question = answered.question
        replies = [answered.answers[member.site] for member in self.members]
        for place, labels in enumerate(question.labellings):
            self._known["labellings", labels] = _halves(replies, place)
        for place, pairing in enumerate(question.pairings):
            self._known["pairings", pairing] = np.array([reply.pairings[place] for reply in replies]).T
        for place, labels in enumerate(question.verdicts):
            self._known["verdicts", labels] = [reply.verdicts[place] for reply in replies]

    def _answer(self, part: str, about: Labels | Pairing) -> Any:
        """Return what the sites answered; None where they have to be asked, which is noted."""
        if (part, about) not in self._known:
            self._wanted[part, about] = None
        return self._known.get((part, about))

    @property
    def clipped(self) -> bool:
        """Whether squared residuals are bounded; Gram matrices know plain squares only."""
        return self._grams is None

    @property
    def has_questions(self) -> bool:
        """Whether something has to be asked."""
        return bool(self._wanted)

    def question_now(self) -> Question:
        """Return all that has to be asked, in one question."""
        labellings, pairings, verdicts = (
            tuple(about for wanted, about in self._wanted if wanted == part)
            for part in ("labellings", "pairings", "verdicts")
        )
        return Question(self.members, labellings, pairings, verdicts, self.clipped)

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses of shape (K, L, 2); where they are not known, note it and raise."""
        # Labellings that differ in the names of clusters only are one question.
        tidy = tidy_labels(labels)
        key = "labellings", _in_message(tidy)
        if self._grams is not None and key not in self._known:
            self._known[key] = self._grams.on_halves(tidy)
        if (found := self._answer(*key)) is None:
            raise NotAnsweredError
        halves = np.full((int(labels.max()) + 1, *found.shape[1:]), np.inf)
        halves[labels] = found[tidy]
        return halves

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Return mean excess and standard error; where they are not known, note it and call it worse.

        Calling it worse lets the rule look at all numbers of clusters that it might have to compare, so that
        one round answers for all of them. Nothing is concluded from it.
        """
        pairing = Pairing(*map(_in_message, (labels, picks, other_labels, other_picks)))
        found = self._answer("pairings", pairing)
        excess, error = (np.full(len(labels), np.inf), np.zeros(len(labels))) if found is None else found
        return excess, error

    def verdicts(self, labels: Array) -> list[Verdict] | None:
        """Return what a labelling brings each member; None where it has to be asked, which is noted."""
        verdicts: list[Verdict] | None = self._answer("verdicts", _in_message(labels))
        return verdicts

    def candidates(self) -> list[Array]:
        """Return the labellings that are to be compared, one of which will be chosen."""
        pairings = [about for _, about in self._wanted if isinstance(about, Pairing)]
        found = dict.fromkeys(labels for p in pairings for labels in (p.labels, p.other_labels))
        return [np.array(labels) for labels in found]
