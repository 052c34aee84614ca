"""The local method's questions, answered by messages.

`AnsweredLosses` is a `ClusterLosses`: Refine and the rules for the number of clusters ask it what clusters
lose, as they ask rows that are here. What no message has answered yet is written down, and becomes the next
question to the sites. Shapes: L members, K clusters of a labelling, F folds, C columns of residuals.
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
# One-sided significance level of a site's objection: how often it objects though nothing is wrong.
OBJECTION = 1e-4


class NotAnsweredError(Exception):
    """The method needs a number that no answer holds yet; the wish for it is noted."""


def in_message(labels: Array) -> Any:
    """Return labels (L,), or picks (L, 2) of clusters, as nested tuples: the form in messages."""
    return tuple(tuple(entry) if isinstance(entry, list) else entry for entry in labels.tolist())


def _check_products(question: Question, answer: Answer) -> None:
    """Refuse residual products that answer another question, or that no residuals can have.

    Each fold's table is a Gram matrix: symmetric, without negative eigenvalues, and with a row for the site's
    own model, for each average with an offset, and for each average with offset and slopes.
    """
    # Mixing weights are learnt from these tables: impossible ones could give any weights.
    mixing, products = question.mixing, answer.products
    if (mixing is None) != (products is None):
        raise ProtocolError(f"{answer.site!r} did not answer the whole question.")
    if mixing is None or products is None:
        return
    grams = np.array(products.folds)
    # The own model, and each average twice: with an offset, and with offset and slopes.
    eigenvalues = np.linalg.eigvalsh(grams) if len(grams[0]) == 2 * len(mixing.labellings) + 1 else None
    if eigenvalues is None or not np.allclose(grams, np.swapaxes(grams, 1, 2), rtol=ROUNDING, atol=0):
        raise ProtocolError(f"{answer.site!r} answered with products of something else.")
    if (eigenvalues.min(axis=1) < -ROUNDING * np.abs(eigenvalues).max(axis=1)).any():
        raise ProtocolError(f"{answer.site!r} answered with products that no residuals have.")


def check_answer(question: Question, answer: Answer) -> Answer:
    """Return a site's answer; refuse one that is not to this question, or not whole.

    An answer comes from a stranger: its parts must have the numbers of labellings, clusters, pairings and
    predictors that the question has, or the method would misread them.
    """
    sites = [member.site for member in question.members]
    if answer.question != question_key(question) or answer.site not in sites:
        raise ProtocolError(f"{answer.site!r} answered a question that it was not asked.")
    own_index = sites.index(answer.site)
    n_labellings = len(question.labellings)
    expected_parts = (n_labellings, n_labellings, len(question.pairings), question.judging is None)
    stated_parts = (len(answer.halves), len(answer.likelihoods), len(answer.pairings), answer.verdict is None)
    if stated_parts != expected_parts:
        raise ProtocolError(f"{answer.site!r} did not answer the whole question.")
    for labels, halves in zip(question.labellings, answer.halves, strict=True):
        # A site's own cluster always predicts it: by its own model, where nobody else is there.
        if len(halves) != max(labels) + 1 or None in halves[labels[own_index]]:
            raise ProtocolError(f"{answer.site!r} did not answer for every cluster.")
    if any(np.shape(table) != (len(OFFSET_RATIOS), len(SLOPE_RATIOS)) for table in answer.likelihoods):
        raise ProtocolError(f"{answer.site!r} answered likelihoods on another grid.")
    _check_products(question, answer)
    if question.judging is not None and answer.verdict is not None:
        n_clusters, verdict = max(question.judging.labels) + 1, answer.verdict
        lengths_by_cluster = len(verdict.membership), len(verdict.beyond)
        if len(verdict.clusters) != n_clusters or not {0, n_clusters}.issuperset(lengths_by_cluster):
            raise ProtocolError(f"{answer.site!r} did not judge every cluster.")
        if len(verdict.line) != len(question.units) + 1:
            raise ProtocolError(f"{answer.site!r} answered with a line of other columns.")
        # Lines of classes, for each average and class; none where the response is a number.
        line_lengths = {len(line.values) for line in verdict.lines}
        n_parts = 2 * len(question.judging.mixing.labellings)
        if not line_lengths <= {len(question.units) + 1} or len(verdict.lines) % n_parts:
            raise ProtocolError(f"{answer.site!r} answered with lines of other columns.")
    return answer


def same_members(ours: Sequence[AveragedSite], theirs: Sequence[AveragedSite], *numbers: str) -> bool:
    """Tell whether two questions are about the same models, with numbers that differ by rounding only.

    ``numbers`` are names of fields of `AveragedSite`, such as "weight", that are compared.
    """
    if [(m.site, m.sha) for m in ours] != [(m.site, m.sha) for m in theirs]:
        return False
    our_numbers, their_numbers = (
        [[getattr(m, name) for name in numbers] for m in members] for members in (ours, theirs)
    )
    return np.allclose(our_numbers, their_numbers, rtol=SAME_WEIGHT, atol=0)


def same_judging(ours: JudgingQuestion | None, theirs: JudgingQuestion | None) -> bool:
    """Tell whether two questions about a partition and its mixture differ by rounding only.

    Two machines compute mixing weights that differ in the last digits; an answer to one serves the other.
    """
    if ours is None or theirs is None:
        return ours is theirs
    same_partition = (ours.labels, ours.mixing) == (theirs.labels, theirs.mixing)
    same_partition = same_partition and np.shape(ours.weights) == np.shape(theirs.weights)
    return same_partition and np.allclose(ours.weights, theirs.weights, rtol=0, atol=SAME_WEIGHT)


@dataclass(frozen=True)
class Answered:
    """A question with the answers that came to it, by site; each answer has been checked."""

    question: Question
    answers: Mapping[str, Answer]

    def is_about(self, members: Sequence[AveragedSite], units: Sequence[float]) -> bool:
        """Tell whether all members have answered, and the question had these weights and units.

        Answers about other models or weights are not used: their losses are those of other averages.
        """
        same_weights = same_members(members, self.question.members, "weight", "noise")
        same_units = len(units) == len(self.question.units)
        same_units = same_units and np.allclose(units, self.question.units, rtol=SAME_WEIGHT, atol=0)
        return same_weights and same_units and set(self.answers) == {member.site for member in members}


def halves_answered(answers: Sequence[Answer], labelling_index: int) -> Array:
    """Return the mean losses that L members answered to one labelling, of shape (K, L, 2).

    They are those of each cluster's average on both halves of each member's rows, infinite where a message
    has None: nobody else is in the cluster. ``labelling_index`` says which labelling of the question it is.
    """
    losses_by_member = [
        [[np.inf if loss is None else loss for loss in pair] for pair in answer.halves[labelling_index]]
        for answer in answers
    ]
    return np.moveaxis(np.array(losses_by_member), 0, 1)


def _products_of_columns(products: Products, columns: Array) -> tuple[Array, Array]:
    """Return Gram matrices (F, C, C) of some of the columns of residuals, and the rows (F,) behind them."""
    return np.array(products.folds)[:, columns[:, None], columns], np.array(products.counts)


class AnsweredLosses:
    """What clusters' averages lose on L members, from the answers of earlier rounds.

    Where an answer is missing, the wish is noted for the next question, and the caller is stopped by
    `NotAnsweredError` or handed None.

    ``members``, sorted by site, are those whose models are averaged; ``half_sizes``, of shape (L, 2), counts
    the rows in the halves that averages are scored on; ``units`` (p,) are common units of the predictors.
    """

    bounded = True

    def __init__(
        self,
        members: Sequence[AveragedSite],
        half_sizes: Array,
        units: Sequence[float],
        answered: Sequence[Answered],
    ) -> None:
        """Collect what earlier rounds answered about the present models; skip other rounds."""
        self.members, self.half_sizes, self._units = tuple(members), half_sizes, tuple(units)
        self.noise = np.array([member.noise for member in members])
        # Keys are pairs: the part of a question ("labellings", "likelihoods", "pairings"), and the labelling
        # or pairing in it. A dict keeps each wish once, in the order in which it came up.
        self._known: dict[tuple[str, Any], Any] = {}
        self._wanted: dict[tuple[str, Any], None] = {}
        # Earlier questions about mixtures and partitions, with all members' answers.
        self._mixings: list[tuple[MixingQuestion, list[Products]]] = []
        self._judgings: list[tuple[JudgingQuestion, list[Verdict]]] = []
        # The mixture and the partition that the next question shall be about; None: none.
        self._mixing: MixingQuestion | None = None
        self._judging: JudgingQuestion | None = None
        self.rounds = 0
        for earlier_round in answered:
            if earlier_round.is_about(members, self._units):
                self._learn(earlier_round)
                self.rounds += 1

    def _learn(self, answered: Answered) -> None:
        """Keep what an answered question says of each labelling, pairing, mixture and partition.

        Answers are put in the order of the members; later methods find them by what they are about.
        """
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
        """Return what the sites answered; where they have not, note that it is wanted and return None.

        ``part`` is "labellings" or "pairings", and ``about`` is one of them.
        """
        if (part, about) not in self._known:
            self._wanted[part, about] = None
        return self._known.get((part, about))

    @property
    def has_questions(self) -> bool:
        """Whether something is wanted that the sites have not answered yet."""
        return bool(self._wanted) or self._mixing is not None or self._judging is not None

    def question_now(self) -> Question:
        """Return one question about everything that is wanted.

        Each question costs a round, in which the slowest site is waited for: so all wishes share one.
        """
        labellings, pairings = (
            tuple(about for wanted, about in self._wanted if wanted == part)
            for part in ("labellings", "pairings")
        )
        return Question(
            members=self.members,
            units=self._units,
            labellings=labellings,
            pairings=pairings,
            mixing=self._mixing,
            judging=self._judging,
        )

    def on_halves(self, labels: Array) -> Array:
        """Return mean losses (K, L, 2) of each cluster's average on both halves of each member's rows.

        Raise `NotAnsweredError` where they are not known, and note that they are wanted.
        """
        # Labellings that differ in the names of clusters only are one question.
        tidy = tidy_labels(labels)
        if (tidy_halves := self._answer("labellings", in_message(tidy))) is None:
            raise NotAnsweredError
        halves = np.full((int(labels.max()) + 1, *tidy_halves.shape[1:]), np.inf)
        # Back to the caller's numbers of clusters; a number without members keeps infinite losses.
        halves[labels] = tidy_halves[tidy]
        return halves

    def likelihoods(self, labels: Array) -> Array:
        """Return the members' log-likelihoods of offsets and slopes, of shape (L, offsets, slopes).

        Raise `NotAnsweredError` where the labelling is not answered yet; its clusters must be numbered
        tidily.
        """
        self.on_halves(labels)
        log_likelihoods: Array = self._known["likelihoods", in_message(labels)]
        return log_likelihoods

    def paired_t(
        self, labels: Array, picks: Array, other_labels: Array, other_picks: Array
    ) -> tuple[Array, Array]:
        """Return by how much the first form of prediction loses more, and the standard error: (L,) both.

        ``picks`` (L, 2) says which cluster of ``labels`` predicts each half of each member. Where nobody has
        answered yet, the comparison is noted, and the first form is called infinitely worse.

        Calling it worse lets the rule look at all numbers of clusters that it might have to compare, so that
        one round answers for all of them. Nothing is concluded from it.
        """
        pairing = Pairing(*map(in_message, (labels, picks, other_labels, other_picks)))
        means_and_errors = self._answer("pairings", pairing)
        excess, error = (
            (np.full(len(labels), np.inf), np.zeros(len(labels)))
            if means_and_errors is None
            else means_and_errors
        )
        return excess, error

    def objectors(self, labels: Array) -> list[str]:
        """Return a sentence for each site that alone states that another labelling predicts it much better.

        The excess must be significant by Student's t, one-sided, and larger than the site's noise. One site
        must not decide for the others, so that it only becomes a note for readers.
        """
        chosen, notes = in_message(labels), []
        for (part, about), means_and_errors in self._known.items():
            if part != "pairings" or about.labels != chosen:
                continue
            degrees_of_freedom = np.maximum(self.half_sizes.sum(axis=1) - 1, 1)
            objects = (
                means_and_errors[0] > student.isf(OBJECTION, degrees_of_freedom) * means_and_errors[1]
            ) & (means_and_errors[0] > self.noise)
            if objects.sum() == 1:
                site = self.members[int(objects.argmax())].site
                notes.append(f"{site!r} alone says that other coteries would predict it better.")
        return list(dict.fromkeys(notes))

    def candidates(self) -> list[Array]:
        """Return the labellings of all pairings that are not answered yet: one of them will be chosen."""
        open_pairings = [about for _, about in self._wanted if isinstance(about, Pairing)]
        distinct_labellings = dict.fromkeys(
            labels for pairing in open_pairings for labels in (pairing.labels, pairing.other_labels)
        )
        return [np.array(labels) for labels in distinct_labellings]

    def products(self, mixing: MixingQuestion) -> tuple[Array, Array] | None:
        """Return residual Gram matrices (L, F, C, C) and their rows (L, F); None: not answered yet.

        An earlier question about more labellings serves as well, if it had the same ratios for these: their
        columns are taken out.
        """
        n_shared = len(mixing.labellings)
        for earlier, answered_products in self._mixings:
            if not set(mixing.labellings) <= set(earlier.labellings):
                continue
            indices = np.array([earlier.labellings.index(labels) for labels in mixing.labellings])
            if any(
                tuple(their_ratios[index] for index in indices) != our_ratios
                for our_ratios, their_ratios in zip(mixing.ratios, earlier.ratios, strict=True)
            ):
                continue
            # The own model, the averages with an offset, and the averages with offset and slopes.
            columns = np.r_[0, 1 + indices, 1 + len(earlier.labellings) + indices]
            parts = [_products_of_columns(site_products, columns) for site_products in answered_products]
            # A site with fewer rows than folds has fewer folds.
            n_folds = max(len(counts) for _, counts in parts)
            grams = np.zeros((len(parts), n_folds, 2 * n_shared + 1, 2 * n_shared + 1))
            rows = np.zeros((len(parts), n_folds))
            for index, (folds, counts) in enumerate(parts):
                grams[index, : len(folds)], rows[index, : len(counts)] = folds, counts
            return grams, rows
        return None

    def ask_products(self, mixing: MixingQuestion) -> None:
        """Note that the next question shall ask for residual products of this mixture."""
        self._mixing = mixing

    def verdicts(self, judging: JudgingQuestion) -> list[Verdict] | None:
        """Return each member's verdict on a partition and its mixture; None: not answered yet, and noted."""
        for earlier, verdicts in self._judgings:
            if same_judging(judging, earlier):
                return verdicts
        self._judging = judging
        return None
