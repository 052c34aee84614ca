"""Scoring and answering in a folder that strangers write to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from coterie.cli.errors import CommandError
from coterie.cli.sites import check_wait
from coterie.federated import conclude
from coterie.federated.folder import SealedFolder
from coterie.federated.messages import Pairing

from .test_conclude import concluded, concluded_once, scored, scored_once  # noqa: F401


@pytest.fixture(autouse=True)
def _fresh_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))


def right_question(box: SealedFolder):
    contents = box.read()
    return conclude(contents.shares, contents.scores, contents.answered)


def score_a(run, *options):
    return run("score", "a.csv", "--name", "a", "--folder", "box", *options)


def test_a_question_that_makes_no_sense_does_not_stop_the_others(run, scored):  # noqa: F811
    box = SealedFolder("box")
    question = right_question(box)
    n = len(question.members)
    # Clusters 1 to 3 have nobody to predict with.
    holes, picks = (0, *[4] * (n - 1)), ((2, 2),) * n
    box.put(replace(question, labellings=(), pairings=(Pairing(holes, picks, holes, picks),)))
    box.put(question)
    outcome = score_a(run, "--wait", "0.1")
    assert outcome.code == 0, outcome
    assert "a answered 1 question." in outcome.out
    assert outcome.err.count("is not answered. The question is about a cluster that has nobody") == 1


def test_many_forged_questions_do_not_keep_the_right_one_from_being_answered(run, scored):  # noqa: F811
    box = SealedFolder("box")
    question = right_question(box)
    first, *others = question.members
    for number in range(32):
        box.put(replace(question, members=(replace(first, weight=first.weight * (2 + number)), *others)))
    box.put(question)
    outcome = score_a(run)
    assert "a answered 30 questions." in outcome.out
    assert outcome.err.count("At most 30 are answered") == 3
    (found,) = [each for each in box.read().answered if each.question == question]
    assert "a" in found.answers


def test_waiting_does_not_end_with_an_older_conclusion(run, concluded, monkeypatch):  # noqa: F811
    looks = []
    original = SealedFolder.read

    def read(self, answers_of=None):
        looks.append(1)
        return original(self, answers_of)

    monkeypatch.setattr("coterie.cli.sites.PAUSE", 0.01)
    monkeypatch.setattr(SealedFolder, "read", read)
    assert score_a(run, "--wait", "0.5").code == 0
    assert len(looks) > 2


def test_waiting_ends_with_a_new_conclusion(run, concluded, monkeypatch):  # noqa: F811
    found = SealedFolder("box").read().conclusion
    monkeypatch.setattr("coterie.cli.sites.PAUSE", 0.01)
    original = SealedFolder.read

    def read(self, answers_of=None):
        contents = original(self, answers_of)
        self.put(replace(found, notes=("Concluded again.",)), replace=True)
        return contents

    monkeypatch.setattr(SealedFolder, "read", read)
    # Would otherwise run for an hour.
    assert score_a(run, "--wait", "3600").code == 0


@pytest.mark.parametrize("command", [("score", "a.csv", "--name", "a"), ("conclude",)])
def test_a_wait_that_is_no_number_is_refused(run, scored, command):  # noqa: F811
    # Some versions of typer refuse it themselves.
    assert run(*command, "--folder", "box", "--wait", "nan").code == 2
    with pytest.raises(CommandError, match="Got nan"):
        check_wait(float("nan"))


def test_concluding_waits_for_the_first_share(run, scored, monkeypatch):  # noqa: F811
    (scored / "later").mkdir()
    monkeypatch.setattr("coterie.cli.sites.PAUSE", 0.01)
    original = SealedFolder.read
    looks = []

    def read(self, answers_of=None):
        looks.append(1)
        if len(looks) == 3:
            for path in (scored / "box").iterdir():
                (self.path / path.name).write_bytes(path.read_bytes())
        return original(self, answers_of)

    monkeypatch.setattr(SealedFolder, "read", read)
    outcome = run("conclude", "--folder", "later", "--wait", "0.5", "--json")
    assert json.loads(outcome.out)["state"] == "asking"
    monkeypatch.setattr(SealedFolder, "read", original)
    (scored / "empty").mkdir()
    assert "has no share" in run("conclude", "--folder", "empty", "--wait", "0.05").complaint
