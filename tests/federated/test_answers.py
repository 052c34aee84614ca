"""What has been answered is known, what has not becomes the next question."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.federated import Answered, ProtocolError, check_answer
from coterie.federated.answers import AnsweredLosses, NotAnsweredError
from coterie.federated.messages import (
    Answer,
    AveragedSite,
    JudgingQuestion,
    MixingQuestion,
    Products,
    Question,
    Verdict,
    question_key,
)

MEMBERS = tuple(AveragedSite(site, site, 1.0, 1.0) for site in "abc")
SIZES = np.full((3, 2), 10)
UNITS = (1.0,)
MIXING = MixingQuestion(((0, 0, 1), (0, 0, 0)), (((0.1, 0.0), (0.2, 0.0)), ((0.1, 1.0), (0.2, 1.0))))
JUDGING = JudgingQuestion((0, 0, 1), MIXING, (((0.2,) * 5,) * 3,) * 3)
VERDICT = Verdict(
    clusters=((0.0, 0.1), None),
    constant=(0.0, 0.1),
    coterie=(0.0, 0.1),
    errors=((1.0, 0.1),) * 3,
    early=1.0,
    own=1.0,
    others=1.0,
    n_rows=20,
    variance=0.1,
    distance=0.2,
    exact=False,
    inflation=1.0,
    membership=(1.0, 0.0),
    line=(0.0, 0.0),
    limits=(0.0, 0.0),
    range=(0.0, 1.0),
)


def products_of(place: int) -> Products:
    """Return products of residuals that tell sites and columns apart."""
    residuals = np.arange(1.0, 6.0) + place
    table = tuple(map(tuple, np.outer(residuals, residuals).tolist()))
    return Products((table,) * 2, (10.0, 10.0))


def answered(question: Question, value: float = 1.0) -> Answered:
    """Return answers that tell site, labelling and cluster apart."""
    replies = {}
    for place, member in enumerate(question.members):
        halves = tuple(
            tuple((value + place + 10 * k, value + place + 10 * k) for k in range(max(labels) + 1))
            for labels in question.labellings
        )
        replies[member.site] = Answer(
            site=member.site,
            question=question_key(question),
            halves=halves,
            likelihoods=tuple(((-float(place),) * 12,) * 12 for _ in question.labellings),
            pairings=tuple((0.5 + place, 0.1) for _ in question.pairings),
            products=None if question.mixing is None else products_of(place),
            verdict=None if question.judging is None else VERDICT,
        )
    return Answered(question, replies)


def losses_of(*answers: Answered) -> AnsweredLosses:
    return AnsweredLosses(MEMBERS, SIZES, UNITS, answers)


def test_what_is_not_known_is_asked_and_then_known():
    losses = losses_of()
    assert not losses.has_questions
    for labels in ([0, 0, 1], [0, 1, 2], [0, 0, 1]):
        with pytest.raises(NotAnsweredError):
            losses.on_halves(np.array(labels))
    question = losses.question_now()
    assert question.labellings == ((0, 0, 1), (0, 1, 2))
    known = losses_of(answered(question))
    halves = known.on_halves(np.array([0, 0, 1]))
    assert halves.shape == (2, 3, 2)
    assert halves[1, 2, 0] == 13.0
    assert not known.has_questions
    assert known.rounds == 1


def test_names_of_clusters_do_not_matter():
    losses = losses_of()
    with pytest.raises(NotAnsweredError):
        losses.on_halves(np.array([3, 3, 1]))
    question = losses.question_now()
    assert question.labellings == ((0, 0, 1),)
    halves = losses_of(answered(question)).on_halves(np.array([3, 3, 1]))
    assert halves.shape == (4, 3, 2)
    assert halves[3, 0, 0] == 1.0
    assert halves[1, 0, 0] == 11.0
    assert np.isinf(halves[[0, 2]]).all()


def test_a_comparison_that_is_not_known_counts_as_worse_until_it_is():
    arrays = (np.array([0, 0, 1]), np.zeros((3, 2), int), np.zeros(3, int), np.zeros((3, 2), int))
    losses = losses_of()
    excess, _ = losses.paired_t(*arrays)
    assert np.isinf(excess).all()
    assert [labels.tolist() for labels in losses.candidates()] == [[0, 0, 1], [0, 0, 0]]
    known = losses_of(answered(losses.question_now()))
    excess, error = known.paired_t(*arrays)
    assert excess.tolist() == [0.5, 1.5, 2.5]
    assert error.tolist() == [0.1] * 3
    assert not known.has_questions


def test_answers_about_other_members_weights_or_units_are_not_used():
    losses = losses_of()
    with pytest.raises(NotAnsweredError):
        losses.on_halves(np.zeros(3, int))
    good = answered(losses.question_now())
    assert good.is_about(MEMBERS, UNITS)
    assert good.is_about([replace(m, weight=1.0 + 1e-12) for m in MEMBERS], UNITS)
    assert not good.is_about(MEMBERS, (2.0,))
    assert not good.is_about([replace(m, weight=1.1) for m in MEMBERS], UNITS)
    assert not good.is_about([replace(m, sha="other") for m in MEMBERS], UNITS)
    assert not good.is_about(MEMBERS[:2], UNITS)
    incomplete = Answered(good.question, {s: a for s, a in good.answers.items() if s != "c"})
    assert not incomplete.is_about(MEMBERS, UNITS)


def test_products_are_asked_once_for_all_that_may_be_mixed():
    losses = losses_of()
    assert losses.products(MIXING) is None
    losses.ask_products(MIXING)
    assert losses.has_questions
    known = losses_of(answered(losses.question_now()))
    # A part of what was asked about: the second labelling alone.
    part = MixingQuestion(MIXING.labellings[1:], (MIXING.ratios[0][1:], MIXING.ratios[1][1:]))
    products, counts = known.products(part)
    assert products.shape == (3, 2, 3, 3)
    assert counts.tolist() == [[10.0, 10.0]] * 3
    # Columns 0, 2 and 4 of residuals 1 to 5.
    np.testing.assert_array_equal(products[0, 0], np.outer([1, 3, 5], [1, 3, 5]))
    other = replace(part, ratios=(((0.3, 0.0),), ((0.2, 1.0),)))
    assert known.products(other) is None


def test_a_verdict_is_asked_for_and_then_known():
    losses = losses_of()
    assert losses.verdicts(JUDGING) is None
    known = losses_of(answered(losses.question_now()))
    nearly = replace(JUDGING, weights=(((0.2 + 1e-12,) * 5,) * 3,) * 3)
    assert known.verdicts(nearly) == [VERDICT] * 3
    assert not known.has_questions
    assert known.verdicts(replace(JUDGING, weights=(((0.3,) * 5,) * 3,) * 3)) is None


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"question": "other"}, "was not asked"),
        ({"site": "z"}, "was not asked"),
        ({"halves": ()}, "did not answer the whole question"),
        ({"likelihoods": ()}, "did not answer the whole question"),
        ({"pairings": ((0.0, 0.1),)}, "did not answer the whole question"),
        ({"products": None}, "did not answer the whole question"),
        ({"verdict": None}, "did not answer the whole question"),
        ({"halves": (((1.0, 1.0),),)}, "every cluster"),
        ({"halves": (((None, 1.0), (1.0, 1.0)),)}, "every cluster"),
        ({"likelihoods": (((0.0,) * 3,) * 12,)}, "another grid"),
        ({"products": Products((((1.0,),),) * 2, (1.0, 1.0))}, "products of something else"),
        (
            {"products": Products((tuple(map(tuple, (-np.eye(5)).tolist())),) * 2, (1.0, 1.0))},
            "that no residuals have",
        ),
        ({"verdict": replace(VERDICT, clusters=((0.0, 0.1),))}, "judge every cluster"),
        ({"verdict": replace(VERDICT, membership=(1.0,))}, "judge every cluster"),
        ({"verdict": replace(VERDICT, line=(1.0,))}, "a line of other columns"),
    ],
)
def test_an_answer_to_something_else_is_refused(changes, words):
    question = Question(MEMBERS, UNITS, ((0, 0, 1),), (), MIXING, JUDGING)
    reply = answered(question).answers["a"]
    assert check_answer(question, reply) is reply
    with pytest.raises(ProtocolError, match=words):
        check_answer(question, replace(reply, **changes))
