"""The verdicts, and sentences that agree with the numbers beside them."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.verdicts.gain_model import ExpectedGains
from coterie.verdicts.verdict import (
    BAD_DATA,
    BAD_MODEL,
    COLLABORATE,
    NO_DIFFERENCE,
    STAY_ALONE,
    VERDICTS,
    judge,
    reason_for,
    with_remarks,
)


def expected(means: list[float], losses: list[float], no_harms: list[float] | None = None) -> ExpectedGains:
    """Return what learners may expect with such chances of a loss, and of no harm."""
    mean, loss = np.array(means), np.array(losses)
    spread = np.full(len(mean), 0.1)
    no_harm = 1 - loss if no_harms is None else np.array(no_harms)
    return ExpectedGains(mean, spread, mean - 0.2, mean + 0.2, loss, no_harm)


def test_who_surely_gains_collaborates_and_who_surely_loses_stays_alone() -> None:
    verdicts = judge(expected([0.3, 0.01, -0.3], [0.001, 0.45, 0.999]))
    assert verdicts.tolist() == [COLLABORATE, NO_DIFFERENCE, STAY_ALONE]
    assert set(verdicts.tolist()) < set(VERDICTS)


def test_what_others_gain_is_no_gain_of_whose_own_rows_show_a_loss() -> None:
    verdicts = judge(expected([0.3, 0.3], [0.001, 0.001]), np.array([True, False]))
    assert verdicts.tolist() == [NO_DIFFERENCE, COLLABORATE]


def test_a_verdict_never_contradicts_the_expected_gain() -> None:
    # A skewed posterior may have its mean on the other side of zero than most of its mass.
    assert judge(expected([-0.1, 0.1], [0.01, 0.99])).tolist() == [NO_DIFFERENCE] * 2


def test_harm_is_judged_by_its_own_chance() -> None:
    # It loses with all rows taken into account, but not by what was measured.
    assert judge(expected([-0.3], [0.99], [0.4])).tolist() == [NO_DIFFERENCE]
    assert judge(expected([-0.3], [0.99], [0.05])).tolist() == [STAY_ALONE]


def test_nobody_is_judged_where_nobody_could_be_compared() -> None:
    assert judge(expected([], [])).shape == (0,)


@pytest.mark.parametrize(
    ("verdict", "gain", "sentence"),
    [
        (COLLABORATE, 0.3, "Others are expected to save 30 % of its error."),
        (STAY_ALONE, -0.3, "Others are expected to add 30 % to its error."),
        (STAY_ALONE, -4.0, "Others are expected to multiply its error by 5."),
        (NO_DIFFERENCE, 0.1, "Others are expected to save 10 % of its error, but a loss is possible."),
        (NO_DIFFERENCE, -0.1, "Others are expected to add 10 % to its error, but a gain is possible."),
        (COLLABORATE, 0.003, "Others are expected to change its error by less than 1 %."),
        (
            NO_DIFFERENCE,
            -0.003,
            "Others are expected to change its error by less than 1 %; a gain and a loss are possible.",
        ),
    ],
)
def test_the_sentence_says_the_number(verdict: str, gain: float, sentence: str) -> None:
    assert reason_for(verdict, gain) == sentence


@given(st.floats(-50, 0.999), st.sampled_from([COLLABORATE, NO_DIFFERENCE, STAY_ALONE]))
def test_the_sentence_agrees_with_the_number(gain: float, verdict: str) -> None:
    sentence = reason_for(verdict, gain)
    numbers = re.findall(r"[\d.]+(?:e\+\d+)?", sentence.rstrip("."))
    said = float(numbers[0].rstrip("."))
    if "save" in sentence:
        assert said / 100 == pytest.approx(gain, abs=0.0051)
    elif "add" in sentence:
        assert -said / 100 == pytest.approx(gain, abs=0.0051)
    elif "multiply" in sentence:
        assert said == pytest.approx(1 - gain, rel=0.01)
    else:
        assert abs(gain) < 0.01
    assert ("possible" in sentence) == (verdict == NO_DIFFERENCE)


def test_remarks_on_data_and_model_stand_behind_the_reason() -> None:
    reasons, fits = np.array(["One.", "Two.", ""]), np.array([True, False, False])
    assert with_remarks(reasons, fits).tolist() == ["One.", f"Two. {BAD_DATA}", BAD_DATA]
    models = np.array([True, False, True])
    both = with_remarks(reasons, fits, models)
    assert both.tolist() == [f"One. {BAD_MODEL}", f"Two. {BAD_DATA}", f"{BAD_DATA} {BAD_MODEL}"]
