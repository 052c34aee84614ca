import numpy as np
import pytest

from coterie.verdicts.verdict import (
    BAD_DATA,
    BAD_DATA_BUT_GAINS,
    BEYOND,
    COLLABORATE,
    COSTS,
    DOES_NOT_BELONG,
    NO_COMPANY,
    NOBODY_ELSE,
    NOT_SURELY_WORSE,
    STAY_ALONE,
    decide,
)


@pytest.mark.parametrize(
    ("gain", "gain_se", "company", "fits", "verdict", "reason"),
    [
        (0.3, 0.1, 2, True, COLLABORATE, ""),
        (-0.1, 0.1, 2, True, COLLABORATE, NOT_SURELY_WORSE),
        (0.0, 0.0, 2, True, COLLABORATE, ""),
        (np.nan, np.nan, 2, True, COLLABORATE, ""),
        (-0.3, 0.1, 2, True, STAY_ALONE, COSTS),
        (0.0, 0.0, 0, True, STAY_ALONE, NO_COMPANY),
        (0.0, 0.0, 0, False, DOES_NOT_BELONG, BAD_DATA),
        (-3.0, 0.1, 2, False, DOES_NOT_BELONG, BAD_DATA),
        (0.3, 0.1, 0, True, COLLABORATE, BEYOND),
        (0.3, 0.1, 0, False, DOES_NOT_BELONG, BAD_DATA_BUT_GAINS),
        # What pays is worth having, whatever the clusters say.
        (0.3, 0.1, 2, False, COLLABORATE, ""),
    ],
)
def test_the_verdict_follows_the_numbers(
    gain: float, gain_se: float, company: int, fits: bool, verdict: str, reason: str
) -> None:
    # A second learner, so that the first one is not alone in the world.
    columns = (np.array([first, second]) for first, second in ((gain, 0.1), (gain_se, 0.1), (company, 3)))
    verdicts, reasons = decide(*columns, np.array([fits, True]))
    assert verdicts.tolist() == [verdict, COLLABORATE]
    assert reasons.tolist() == [reason, ""]


def test_who_predicts_by_itself_because_that_is_better_stays_alone() -> None:
    nothing = np.zeros(3)
    by_itself = np.array([True, False, True])
    verdicts, reasons = decide(nothing, nothing, np.array([2, 2, 0]), np.ones(3, dtype=bool), by_itself)
    assert verdicts.tolist() == [STAY_ALONE, COLLABORATE, STAY_ALONE]
    assert reasons.tolist() == [COSTS, "", NO_COMPANY]


def test_the_only_learner_stays_alone() -> None:
    verdicts, reasons = decide(np.zeros(1), np.zeros(1), np.zeros(1, dtype=int), np.zeros(1, dtype=bool))
    assert verdicts.tolist() == [STAY_ALONE]
    assert reasons.tolist() == [NOBODY_ELSE]
