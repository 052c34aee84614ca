"""Whose turn it is, at every step of the way."""

from __future__ import annotations

import json
import os

from .test_conclude import (  # noqa: F401
    SITES,
    concluded,
    concluded_once,
    score_all,
    scored,
    scored_once,
)


def status_of(run):
    found = json.loads(run("status", "--folder", "box", "--json").out)
    return found["state"], set(found["waiting"])


def test_the_whole_way_in_at_most_six_visits(run, scored):  # noqa: F811
    for site in SITES:
        os.remove(f"box/score-{site}.coterie")
    assert status_of(run) == ("scoring", set(SITES))
    before = sorted(os.listdir("box"))
    visits = 1
    while True:
        score_all(run, SITES[:4])
        assert status_of(run)[1] == set(SITES[4:])
        score_all(run, SITES[4:])
        visits += 1
        assert status_of(run) == ("concluding", set())
        if run("conclude", "--folder", "box").code == 0:
            break
        assert status_of(run) == ("answering", set(SITES))
    assert status_of(run) == ("concluded", set())
    assert visits <= 6
    assert before != sorted(os.listdir("box"))


def test_looking_writes_nothing(run, scored):  # noqa: F811
    before = sorted(os.listdir("box"))
    outcome = run("status", "--folder", "box")
    assert outcome.code == 0
    assert "6 sites have shared." in outcome.out
    assert "run `coterie conclude`" in outcome.out
    assert sorted(os.listdir("box")) == before


def test_an_empty_folder_and_a_site_that_came_later(run, concluded):  # noqa: F811
    assert "Concluded" in run("status", "--folder", "box").out
    os.mkdir("empty")
    assert "Nobody has shared" in run("status", "--folder", "empty").out
    run("share", "a.csv", "--target", "y", "--name", "z", "--folder", "box", "--candidates", "ridge")
    assert "z shared later" in run("status", "--folder", "box").out


def test_who_is_left_out_is_named(run, scored):  # noqa: F811
    os.remove("box/share-c.coterie")
    run("share", "c.csv", "--target", "y", "--name", "c", "--folder", "box", "--drop", "x1")
    outcome = run("status", "--folder", "box")
    assert "Left out: c. It lacks the column 'x1'" in outcome.out
