"""The verdict on each learner, in words that it can check against the numbers of its row.

*Collaborate*: it has company, and the coterie's error is lower than its own or not significantly higher; or
it has none, but predicts surely better with what it takes from others.
*Stay alone*: nobody shares its cluster though somebody could, or its coterie costs it more than noise does.
*Does not belong*: no cluster of others predicts it as well as its own noise allows.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array

COLLABORATE = "collaborate"
STAY_ALONE = "stay alone"
DOES_NOT_BELONG = "does not belong"
VERDICTS = (COLLABORATE, STAY_ALONE, DOES_NOT_BELONG)

BAD_DATA = "its data disagree with everybody"
BAD_DATA_BUT_GAINS = "its data disagree with everybody, though it gains by what they share"
BAD_MODEL = "its own model predicts nobody else well"
NO_COMPANY = "nobody shares its cluster"
NOBODY_ELSE = "there is nobody else"
BEYOND = "it gains from learners beyond its cluster"
COSTS = "its coterie predicts it worse than it does itself"
NOT_SURELY_WORSE = "costs it nothing beyond noise"
FEW_ROWS = "too few rows to be sure"

# A gain counts as one, or as a cost, beyond this many of its standard errors.
STANDARD_ERRORS = 2.0


def decide(
    gain: Array, gain_se: Array, company: Array, fits: Array, by_itself: Array | bool = False
) -> tuple[Array, Array]:
    """Return the verdict on each learner, one of `VERDICTS`, and its reason, empty where numbers say it all.

    All are arrays of shape (L,). ``gain`` is the share of the error alone that the coterie saves, NaN where
    there is no error alone; ``company`` counts the learners in the same cluster beside this one; ``fits``
    tells whether some cluster of others predicts the learner as well as its own noise allows; ``by_itself``
    whether it predicts by its own model alone, because with others it did worse.
    """
    margin = STANDARD_ERRORS * np.nan_to_num(gain_se, nan=0.0)
    with np.errstate(invalid="ignore"):
        pays, costs, worse = gain > margin, gain < -margin, gain < 0
    if len(gain) == 1 and not company[0]:
        return np.array([STAY_ALONE]), np.array([NOBODY_ELSE])
    alone = company == 0
    cases = [
        (pays & ~alone, COLLABORATE, ""),
        (pays & ~fits, DOES_NOT_BELONG, BAD_DATA_BUT_GAINS),
        (~fits, DOES_NOT_BELONG, BAD_DATA),
        (pays, COLLABORATE, BEYOND),
        (alone, STAY_ALONE, NO_COMPANY),
        (costs | by_itself, STAY_ALONE, COSTS),
        (worse, COLLABORATE, NOT_SURELY_WORSE),
    ]
    conditions, verdicts, reasons = zip(*cases, strict=True)
    return np.select(conditions, verdicts, COLLABORATE), np.select(conditions, reasons, "")
