"""A conclusion is used only if it follows from what the sites said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.federated import Answered, ProtocolError, Question, Settings, conclude
from coterie.federated.recomputing import check_conclusion


@pytest.fixture(scope="module")
def answered(sites):
    """Return all questions with their answers."""
    found: list[Answered] = []
    while isinstance(outcome := conclude(sites.shares, sites.scores, found), Question):
        found.append(Answered(outcome, {reply.site: reply for reply in sites.replies(outcome)}))
    return found


def test_what_follows_is_used(sites, conclusion, answered):
    check_conclusion(conclusion, sites.shares, sites.scores, answered)


def test_settings_survive_as_text():
    settings = Settings(n_clusters=3, scale=0.5, min_rows=7, refine_rounds=1, seed=2)
    assert Settings.from_text(settings.as_text()) == settings
    for name, value in (("refine_rounds", '"many"'), ("seed", "-1"), ("stranger", "1"), ("min_rows", "{")):
        with pytest.raises(ProtocolError, match="none of coterie's"):
            Settings.from_text({name: value})


def swapped(conclusion):
    """Let two sites predict as the other one."""
    first, second = sorted(conclusion.mixtures)[:2]
    mixtures = dict(conclusion.mixtures)
    mixtures[first], mixtures[second] = mixtures[second], mixtures[first]
    return {"mixtures": mixtures}


def steeper(conclusion):
    site = sorted(conclusion.mixtures)[0]
    mine = conclusion.mixtures[site]
    return {"mixtures": {**conclusion.mixtures, site: replace(mine, line=(9.0, *mine.line[1:]))}}


def about_moments(conclusion):
    """Say nothing of how sites predict, as where they sent moments."""
    return {"mixtures": {}}


def with_another_verdict(conclusion):
    first, *others = conclusion.gains
    return {"gains": (replace(first, verdict="collaborate"), *others)}


@pytest.mark.parametrize("change", [swapped, steeper, about_moments, with_another_verdict])
def test_what_does_not_follow_is_refused(sites, conclusion, answered, change):
    forged = replace(conclusion, **change(conclusion))
    with pytest.raises(ProtocolError, match="does not follow"):
        check_conclusion(forged, sites.shares, sites.scores, answered)


def test_without_the_answers_nothing_can_be_said(sites, conclusion, answered):
    with pytest.raises(ProtocolError, match="are not all here"):
        check_conclusion(conclusion, sites.shares, sites.scores, answered[:-1])
