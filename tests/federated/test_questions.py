"""A site answers what the method needs, and counts it where nobody else can write."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.federated import ProtocolError, answer, conclude, questions
from coterie.federated.folder import SealedFolder
from coterie.federated.messages import question_key
from coterie.federated.questions import AnswerMemory, due_questions, memory_of, open_questions


@pytest.fixture
def box(tmp_path, sites) -> SealedFolder:
    (tmp_path / "box").mkdir()
    box = SealedFolder(tmp_path / "box")
    for message in (*sites.shares, *sites.scores):
        box.put(message)
    return box


@pytest.fixture(scope="module")
def question(sites):
    return conclude(sites.shares, sites.scores)


def forged(question, number):
    """A question like the right one, with weights of somebody's choice."""
    first, *others = question.members
    return replace(question, members=(replace(first, weight=first.weight * (2 + number)), *others))


def due(box, site, remembered=None):
    return due_questions(box.read(answers_of=site), site, remembered or {}, box.read)


def test_questions_about_other_models_are_not_open(box, question):
    site = question.members[0].site
    box.put(question)
    box.put(replace(question, members=(replace(question.members[0], sha="00"), *question.members[1:])))
    assert list(open_questions(box.read(), site)) == [question]


def test_the_question_that_follows_from_the_files_comes_before_forged_ones(box, question, monkeypatch):
    monkeypatch.setattr(questions, "MOST_QUESTIONS", 2)
    site = question.members[0].site
    for number in range(5):
        box.put(forged(question, number))
    assert len(due(box, site).questions) == 2
    assert len(due(box, site).surplus) == 3
    box.put(question)
    found = due(box, site)
    assert found.questions[0] == question
    assert len(found.surplus) == 4


def test_so_does_one_about_fewer_sites(box, sites, question, monkeypatch):
    monkeypatch.setattr(questions, "MOST_QUESTIONS", 1)
    gone = question.members[-1].site
    fewer = conclude(sites.shares, sites.scores, leave_out={gone: "it is silent."})
    for number in range(3):
        box.put(forged(question, number))
    box.put(fewer)
    assert due(box, question.members[0].site).questions == (fewer,)


def test_answers_are_counted_although_the_question_was_overwritten(
    box, sites, question, monkeypatch, tmp_path
):
    monkeypatch.setattr(questions, "MOST_QUESTIONS", 3)
    site = question.members[0].site
    memory = AnswerMemory(tmp_path / "cache" / "answered.json")
    answered = 0
    for number in range(6):
        for path in (*box.path.glob("question-*"), *box.path.glob("answer-*")):
            path.unlink()
        box.put(forged(question, number))
        for each in due(box, site, memory.read()).questions:
            memory.add(each)
            box.put(answer(sites.sites[site], sites.shares, each, n_replicates=0))
            answered += 1
    assert answered == 3
    # The same answer again tells nothing new.
    box.put(forged(question, 0))
    assert due(box, site, memory.read()).questions == (forged(question, 0),)


def test_answers_about_models_that_changed_do_not_count(box, question, monkeypatch):
    monkeypatch.setattr(questions, "MOST_QUESTIONS", 1)
    box.put(question)
    site = question.members[0].site
    assert due(box, site, {"old": {site: "another model"}}).questions == (question,)
    assert due(box, site, {"old": {site: question.members[0].sha}}).surplus == (question,)


def test_the_memory_belongs_to_a_site_and_its_model(sites, question, monkeypatch, tmp_path):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path))
    one, other, *_ = sites.shares
    memory_of(one).add(question)
    assert list(memory_of(one).read()) == [question_key(question)]
    assert memory_of(other).read() == {}
    assert memory_of(replace(one, site="another")).read() == {}


@pytest.mark.parametrize("content", ["{", "[]", '{"a": 1}'])
def test_a_damaged_memory_is_said(tmp_path, content):
    (tmp_path / "m.json").write_text(content)
    with pytest.raises(ProtocolError, match="damaged"):
        AnswerMemory(tmp_path / "m.json").read()
