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
from scipy.stats import t as student

from coterie._arrays import Array
from coterie.collaboration.nested.effects import OFFSET_RATIOS, SLOPE_RATIOS
from coterie.federated.messages import (
    Answer,
    AveragedSite,
    JudgingQuestion,
    Labels,
    MixingQuestion,
    Pairing,
    Products,
    ProtocolError,
    Question,
    Verdict,
    question_key,
)
from coterie.method.spectral import tidy_labels

# Two machines may compute weights that differ in their last digits; questions about them are the same.
SAME_WEIGHT = 1e-6
# A Gram matrix has no negative eigenvalue beyond this share of its largest.
ROUNDING = 1e-8
# The chance that a site objects though nothing is wrong.
OBJECTION = 1e-4


class NotAnsweredError(Exception):
    """The sites have not answered yet."""


def in_message(labels: Array) -> Any:
    """Return labels or picks, of shape (L,) or (L, 2), as they stand in messages."""
    return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in labels.tolist())


def _check_products(question: Question, answer: Answer) -> None:
    """Refuse products of residuals that no residuals can have."""
    mixing, products = question.mixing, answer.products
    if (mixing is None) != (products is None):
        raise ProtocolError(f"{answer.site!r} did not answer the whole question.")
    if mixing is None or products is None:
        return
    tables = np.array(products.folds)
    values = np.linalg.eigvalsh(tables) if len(tables[0]) == 2 * len(mixing.labellings) + 1 else None
    if values is None or not np.allclose(tables, np.swapaxes(tables, 1, 2), rtol=ROUNDING, atol=0):
        raise ProtocolError(f"{answer.site!r} answered with products of something else.")
    if (values.min(axis=1) < -ROUNDING * np.abs(values).max(axis=1)).any():
        raise ProtocolError(f"{answer.site!r} answered with products that no residuals have.")


def check_answer(question: Question, answer: Answer) -> Answer:
    """Return a site's answer, or refuse it where it is not to the question."""
    sites = [member.site for member in question.members]
    if answer.question != question_key(question) or answer.site not in sites:
        raise ProtocolError(f"{answer.site!r} answered a question that it was not asked.")
    index = sites.index(answer.site)
    n_labellings = len(question.labellings)
    wanted = (n_labellings, n_labellings, len(question.pairings), question.judging is None)
    given = (len(answer.halves), len(answer.likelihoods), len(answer.pairings), answer.verdict is None)
    if given != wanted:
        raise ProtocolError(f"{answer.site!r} did not answer the whole question.")
    for labels, halves in zip(question.labellings, answer.halves, strict=True):
        if len(halves) != max(labels) + 1 or None in halves[labels[index]]:
            raise ProtocolError(f"{answer.site!r} did not answer for every cluster.")
    if any(np.shape(table) != (len(OFFSET_RATIOS), len(SLOPE_RATIOS)) for table in answer.likelihoods):
        raise ProtocolError(f"{answer.site!r} answered likelihoods on another grid.")
    _check_products(question, answer)
    if question.judging is not None and answer.verdict is not None:
        n_clusters, verdict = max(question.judging.labels) + 1, answer.verdict
        counts = len(verdict.membership), len(verdict.beyond)
        if len(verdict.clusters) != n_clusters or not {0, n_clusters}.issuperset(counts):
            raise ProtocolError(f"{answer.site!r} did not judge every cluster.")
        if len(verdict.line) != len(question.units) + 1:
            raise ProtocolError(f"{answer.site!r} answered with a line of other columns.")
        sizes = {len(line.values) for line in verdict.lines}
        n_parts = 2 * len(question.judging.mixing.labellings)
        if not sizes <= {len(question.units) + 1} or len(verdict.lines) % n_parts:
            raise ProtocolError(f"{answer.site!r} answered with lines of other columns.")
    return answer


def same_members(ours: Sequence[AveragedSite], theirs: Sequence[AveragedSite], *numbers: str) -> bool:
    """Tell whether these are the same models of the same sites, with numbers that differ by rounding only."""
    if [(m.site, m.sha) for m in ours] != [(m.site, m.sha) for m in theirs]:
        return False
    first, second = ([[getattr(m, name) for name in numbers] for m in subset] for subset in (ours, theirs))
    return np.allclose(first, second, rtol=SAME_WEIGHT, atol=0)


def same_judging(ours: JudgingQuestion | None, theirs: JudgingQuestion | None) -> bool:
    """Tell whether two questions for a verdict differ by rounding only."""
    if ours is None or theirs is None:
        return ours is theirs
    same = (ours.labels, ours.mixing) == (theirs.labels, theirs.mixing)
    same = same and np.shape(ours.weights) == np.shape(theirs.weights)
    return same and np.allclose(ours.weights, theirs.weights, rtol=0, atol=SAME_WEIGHT)


@dataclass(frozen=True)
class Answered:
    """A question and the answers to it, by site; checked."""

    question: Question
    answers: Mapping[str, Answer]

    def is_about(self, members: Sequence[AveragedSite], units: Sequence[float]) -> bool:
        """Tell whether the question was about these members, with these weights, and all have answered."""
        same = same_members(members, self.question.members, "weight", "noise")
        alike = len(units) == len(self.question.units)
        alike = alike and np.allclose(units, self.question.units, rtol=SAME_WEIGHT, atol=0)
        return same and alike and set(self.answers) == {member.site for member in members}


def halves_answered(answers: Sequence[Answer], place: int) -> Array:
    """Return what was answered to one labelling, of shape (K, L, 2)."""
    columns = [[[np.inf if v is None else v for v in pair] for pair in a.halves[place]] for a in answers]
    return np.moveaxis(np.array(columns), 0, 1)


def _part_of(products: Products, places: Array) -> tuple[Array, Array]:
    """Return the products (F, C, C) of some columns, and the rows (F,) behind them."""
    return np.array(products.folds)[:, places[:, None], places], np.array(products.counts)


class AnsweredLosses:
    """What clusters lose, as far as the sites have answered in earlier rounds.

    ``members``, sorted by site, are those whose models are averaged; ``half_sizes``, of shape (L, 2), are the
    rows in their halves; ``units`` (p,) are common units of the predictors.
    """

    bounded = True

    def __init__(
        self,
        members: Sequence[AveragedSite],
        half_sizes: Array,
        units: Sequence[float],
        answered: Sequence[Answered],
    ) -> None:
        """Collect what earlier rounds answered about the present models."""
        self.members, self.half_sizes, self._units = tuple(members), half_sizes, tuple(units)
        self.noise = np.array([member.noise for member in members])
        # By part of a question and what it is about: what is known, and what has to be asked, each once, in
        # the order in which it was wanted.
        self._known: dict[tuple[str, Any], Any] = {}
        self._wanted: dict[tuple[str, Any], None] = {}
        self._mixings: list[tuple[MixingQuestion, list[Products]]] = []
        self._judgings: list[tuple[JudgingQuestion, list[Verdict]]] = []
        self._mixing: MixingQuestion | None = None
        self._judging: JudgingQuestion | None = None
        self.rounds = 0
        for each in answered:
            if each.is_about(members, self._units):
                self._learn(each)
                self.rounds += 1

    def _learn(self, answered: Answered) -> None:
        """Keep what an answered question tells of each labelling and pairing."""
        question = answered.question
        replies = [answered.answers[member.site] for member in self.members]
        for index, labels in enumerate(question.labellings):
            self._known["labellings", labels] = halves_answered(replies, index)
            self._known["likelihoods", labels] = np.array([reply.likelihoods[index] for reply in replies])
        for index, pairing in enumerate(question.pairings):
            self._known["pairings", pairing] = np.array([reply.pairings[index] for reply in replies]).T
        if question.mixing is not None:
            products = [reply.products for reply in replies if reply.products is not None]
            self._mixings.append((question.mixing, products))
        if question.judging is not None:
            verdicts = [reply.verdict for reply in replies if reply.verdict is not None]
            self._judgings.append((question.judging, verdicts))

    def _answer(self, part: str, about: Labels | Pairing) -> Any:
        """Return what the sites answered; None where they have to be asked, which is noted."""
        if (part, about) not in self._known:
            self._wanted[part, about] = None
        return self._known.get((part, about))

    @property
    def has_questions(self) -> bool:
        """Whether something has to be asked."""
        return bool(self._wanted) or self._mixing is not None or self._judging is not None

    def question_now(self) -> Question:
        """Return all that has to be asked, in one question."""
        labellings, pairings = (
            tuple(about for wanted, about in self._wanted if wanted == part)
            for part in ("labellings", "pairings")
        )
        return Question(self.members, self._units, labellings, pairings, self._mixing, self._judging)

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses of shape (K, L, 2); where they are not known, note it and raise."""
        # Labellings that differ in the names of clusters only are one question.
        tidy = tidy_labels(labels)
        if (result := self._answer("labellings", in_message(tidy))) is None:
            raise NotAnsweredError
        halves = np.full((int(labels.max()) + 1, *result.shape[1:]), np.inf)
        halves[labels] = result[tidy]
        return halves

    def likelihoods(self, labels: Array) -> Array:
        """Return log-likelihoods (L, offsets, slopes) of a tidy labelling whose losses are known."""
        self.on_halves(labels)
        result: Array = self._known["likelihoods", in_message(labels)]
        return result

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Return mean excess and standard error; where they are not known, note it and call it worse.

        Calling it worse lets the rule look at all numbers of clusters that it might have to compare, so that
        one round answers for all of them. Nothing is concluded from it.
        """
        pairing = Pairing(*map(in_message, (labels, picks, other_labels, other_picks)))
        result = self._answer("pairings", pairing)
        excess, error = (np.full(len(labels), np.inf), np.zeros(len(labels))) if result is None else result
        return excess, error

    def objectors(self, labels: Array) -> list[str]:
        """Return a sentence for a site that alone says that the chosen labelling is not good enough."""
        chosen, notes = in_message(labels), []
        for (part, about), result in self._known.items():
            if part != "pairings" or about.labels != chosen:
                continue
            freedom = np.maximum(self.half_sizes.sum(axis=1) - 1, 1)
            surely = (result[0] > student.isf(OBJECTION, freedom) * result[1]) & (result[0] > self.noise)
            if surely.sum() == 1:
                site = self.members[int(surely.argmax())].site
                notes.append(f"{site!r} alone says that other coteries would predict it better.")
        return list(dict.fromkeys(notes))

    def candidates(self) -> list[Array]:
        """Return the labellings that are to be compared, one of which will be chosen."""
        pairings = [about for _, about in self._wanted if isinstance(about, Pairing)]
        result = dict.fromkeys(labels for p in pairings for labels in (p.labels, p.other_labels))
        return [np.array(labels) for labels in result]

    def products(self, mixing: MixingQuestion) -> tuple[Array, Array] | None:
        """Return products (L, F, C, C) and rows (L, F), asked for these labellings or more; None: not yet."""
        n_shared = len(mixing.labellings)
        for asked, products in self._mixings:
            if not set(mixing.labellings) <= set(asked.labellings):
                continue
            indices = np.array([asked.labellings.index(labels) for labels in mixing.labellings])
            if any(
                tuple(theirs[index] for index in indices) != ours
                for ours, theirs in zip(mixing.ratios, asked.ratios, strict=True)
            ):
                continue
            columns = np.r_[0, 1 + indices, 1 + len(asked.labellings) + indices]
            parts = [_part_of(each, columns) for each in products]
            # A site with fewer rows than folds has fewer folds.
            n_folds = max(len(counts) for _, counts in parts)
            whole = np.zeros((len(parts), n_folds, 2 * n_shared + 1, 2 * n_shared + 1))
            rows = np.zeros((len(parts), n_folds))
            for index, (tables, counts) in enumerate(parts):
                whole[index, : len(tables)], rows[index, : len(counts)] = tables, counts
            return whole, rows
        return None

    def ask_products(self, mixing: MixingQuestion) -> None:
        """Note that products are to be asked for."""
        self._mixing = mixing

    def verdicts(self, judging: JudgingQuestion) -> list[Verdict] | None:
        """Return what a partition and a mixture bring each member; None: to be asked, which is noted."""
        for asked, verdicts in self._judgings:
            if same_judging(judging, asked):
                return verdicts
        self._judging = judging
        return None
