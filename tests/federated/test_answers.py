"""What has been answered is known, what has not becomes the next question."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.federated import Answered, ProtocolError, check_answer
from coterie.federated.answers import AnsweredLosses, NotAnsweredError
from coterie.federated.messages import Answer, Member, Question, Verdict, question_key

MEMBERS = tuple(Member(site, site, 1.0, 20, 1.0) for site in "abc")
SIZES = np.full((3, 2), 10)
VERDICT = Verdict(((0.0, 0.1), None), (0.0, 0.1), (0.0, 0.1), ((1.0, 0.1),) * 3, 0.1, (1.0, 0.0))


def answered(question: Question, value: float = 1.0) -> Answered:
    """Return answers that tell site, labelling and cluster apart."""
    replies = {}
    for place, member in enumerate(question.members):
        halves = tuple(
            tuple((value + place + 10 * k, value + place + 10 * k) for k in range(max(labels) + 1))
            for labels in question.labellings
        )
        pairings = tuple((0.5 + place, 0.1) for _ in question.pairings)
        verdicts = tuple(VERDICT for _ in question.verdicts)
        replies[member.site] = Answer(member.site, question_key(question), halves, pairings, verdicts)
    return Answered(question, replies)


def test_what_is_not_known_is_asked_and_then_known():
    losses = AnsweredLosses(MEMBERS, SIZES, [])
    assert not losses.has_questions
    for labels in ([0, 0, 1], [0, 1, 2], [0, 0, 1]):
        with pytest.raises(NotAnsweredError):
            losses.on_halves(np.array(labels))
    question = losses.question_now()
    assert question.labellings == ((0, 0, 1), (0, 1, 2))
    known = AnsweredLosses(MEMBERS, SIZES, [answered(question)])
    halves = known.on_halves(np.array([0, 0, 1]))
    assert halves.shape == (2, 3, 2)
    assert halves[1, 2, 0] == 13.0
    assert not known.has_questions
    assert known.rounds == 1


def test_names_of_clusters_do_not_matter():
    losses = AnsweredLosses(MEMBERS, SIZES, [])
    with pytest.raises(NotAnsweredError):
        losses.on_halves(np.array([3, 3, 1]))
    question = losses.question_now()
    assert question.labellings == ((0, 0, 1),)
    halves = AnsweredLosses(MEMBERS, SIZES, [answered(question)]).on_halves(np.array([3, 3, 1]))
    assert halves.shape == (4, 3, 2)
    assert halves[3, 0, 0] == 1.0
    assert halves[1, 0, 0] == 11.0
    assert np.isinf(halves[[0, 2]]).all()


def test_a_comparison_that_is_not_known_counts_as_worse_until_it_is():
    arrays = (np.array([0, 0, 1]), np.zeros((3, 2), int), np.zeros(3, int), np.zeros((3, 2), int))
    losses = AnsweredLosses(MEMBERS, SIZES, [])
    excess, _ = losses.paired_t(*arrays)
    assert np.isinf(excess).all()
    assert [labels.tolist() for labels in losses.candidates()] == [[0, 0, 1], [0, 0, 0]]
    known = AnsweredLosses(MEMBERS, SIZES, [answered(losses.question_now())])
    excess, error = known.paired_t(*arrays)
    assert excess.tolist() == [0.5, 1.5, 2.5]
    assert error.tolist() == [0.1] * 3
    assert not known.has_questions


def test_answers_about_other_members_weights_or_squares_are_not_used():
    losses = AnsweredLosses(MEMBERS, SIZES, [])
    with pytest.raises(NotAnsweredError):
        losses.on_halves(np.zeros(3, int))
    question = losses.question_now()
    good = answered(question)
    assert good.is_about(MEMBERS, clipped=True)
    assert good.is_about([replace(m, weight=1.0 + 1e-12) for m in MEMBERS], clipped=True)
    assert not good.is_about(MEMBERS, clipped=False)
    assert not good.is_about([replace(m, weight=1.1) for m in MEMBERS], clipped=True)
    assert not good.is_about([replace(m, sha="other") for m in MEMBERS], clipped=True)
    assert not good.is_about(MEMBERS[:2], clipped=True)
    incomplete = Answered(question, {s: a for s, a in good.answers.items() if s != "c"})
    assert not incomplete.is_about(MEMBERS, clipped=True)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"question": "other"}, "was not asked"),
        ({"site": "z"}, "was not asked"),
        ({"halves": ()}, "did not answer all"),
        ({"pairings": ((0.0, 0.1),)}, "did not answer all"),
        ({"halves": (((1.0, 1.0),),)}, "every cluster"),
        ({"halves": (((None, 1.0), (1.0, 1.0)),)}, "every cluster"),
        ({"verdicts": (replace(VERDICT, clusters=((0.0, 0.1),)),)}, "judge every cluster"),
        ({"verdicts": (replace(VERDICT, membership=(1.0,)),)}, "judge every cluster"),
    ],
)
def test_an_answer_to_something_else_is_refused(changes, words):
    question = Question(MEMBERS, ((0, 0, 1),), (), ((0, 0, 1),), clipped=True)
    reply = answered(question).answers["a"]
    assert check_answer(question, reply) is reply
    with pytest.raises(ProtocolError, match=words):
        check_answer(question, replace(reply, **changes))
