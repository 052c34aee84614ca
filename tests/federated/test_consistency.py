"""What cannot be true is found out, and honest sites are never accused."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.datasets import make_stress
from coterie.federated.consistency import contradictions, strange_numbers
from coterie.federated.participants import find_participants

from .conftest import ask_all, make_sites


def changed(messages, place, **changes):
    return [replace(m, **changes) if k == place else m for k, m in enumerate(messages)]


def lying(sites, place, change):
    """Return what is concluded where one site changes its answers."""
    liar = sites.shares[place].site

    def reply(question, rounds):
        return [change(a, question) if a.site == liar else a for a in sites.replies(question)]

    return ask_all(sites, reply=reply), liar


def test_averages_that_lose_more_than_their_models_are_a_lie(sites):
    def change(answer, question):
        halves = tuple(
            tuple(tuple(None if v is None else v + 1e3 for v in pair) for pair in h) for h in answer.halves
        )
        return replace(answer, halves=halves)

    found, liar = lying(sites, 2, change)
    assert set(found.left_out) == {liar}
    assert "averages lose more" in found.left_out[liar]


@pytest.mark.parametrize(
    "changes", [{"own": 99.0}, {"others": 99.0}, {"n_rows": 2**40}, {"errors": ((9.0, 0.1),) * 3}]
)
def test_errors_that_are_not_those_of_the_residuals_are_a_lie(sites, changes):
    def change(answer, question):
        if answer.verdict is None:
            return answer
        return replace(answer, verdict=replace(answer.verdict, **changes))

    found, liar = lying(sites, 2, change)
    assert set(found.left_out) == {liar}
    assert "not those of its residuals" in found.left_out[liar]


def test_strange_numbers_are_named(sites):
    liar = sites.scores[4].site
    quiet = changed(sites.scores, 4, noise=1e-90)
    assert strange_numbers(find_participants(sites.shares, quiet)) == [
        f"The noise level of {liar!r} is far from what is typical, and counts within bounds."
    ]
    many = changed(sites.shares, 4, n_rows=2**40)
    halves = changed(sites.scores, 4, half_sizes=(2**39, 2**39))
    (note,) = strange_numbers(find_participants(many, halves))
    assert note.startswith(f"The number of rows of {liar!r} is far")
    assert not strange_numbers(find_participants(sites.shares, sites.scores))


def test_a_site_that_no_model_suits_is_named(sites):
    unlike = sites.scores[4]
    losses = {s: loss if s == unlike.site else replace(loss, value=1e6) for s, loss in unlike.losses.items()}
    scores = changed(sites.scores, 4, losses=losses)
    found = strange_numbers(find_participants(sites.shares, scores))
    assert found == [f"No other site's model suits the rows of {unlike.site!r}."]


@pytest.mark.parametrize("candidates", [["ridge"], ["rf"]])
def test_honest_sites_are_not_accused(candidates):
    data = make_stress("AR(1) noise .8, one truth", 7)
    kept = np.isin(data.groups, data.learner_ids[:6])
    found = ask_all(make_sites(replace_rows(data, kept), candidates))
    assert not found.left_out


def replace_rows(data, kept):
    from types import SimpleNamespace

    return SimpleNamespace(X=data.X[kept], y=data.y[kept], groups=data.groups[kept])


def test_answers_of_others_are_not_looked_at(sites):
    participants = find_participants(sites.shares, sites.scores)
    assert contradictions(participants, []) == {}
