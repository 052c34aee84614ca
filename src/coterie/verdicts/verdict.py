"""The verdict on each learner, and a sentence that says why, in the numbers of its row.

*Collaborate*: its error is expected to be lower with others. *Stay alone*: it is expected to be higher; the
learner then predicts with its own model. *No clear difference*: neither is sure; the learner predicts with
others. At most a tenth of the verdicts *collaborate* is wrong, on average, and likewise of the verdicts *stay
alone*. *Too few rows*: the learner has no model of its own to compare with.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.verdicts.gain_model import ExpectedGains, discoveries

COLLABORATE = "collaborate"
NO_DIFFERENCE = "no clear difference"
STAY_ALONE = "stay alone"
TOO_FEW_ROWS = "too few rows"
VERDICTS = (COLLABORATE, NO_DIFFERENCE, STAY_ALONE, TOO_FEW_ROWS)
# Where sites were asked for losses only, there is no verdict.
NOT_MEASURED = "not measured"

BAD_DATA = "No cluster of others describes its data."
BAD_MODEL = "Its own model predicts nobody else well."
NO_COMPANY = "Nobody shares its cluster."
NOBODY_ELSE = "There is nobody else to learn from."
BY_ITSELF = "It takes nothing from others."
FEW_ROWS = "It has no model of its own to compare with, and predicts with others."
NO_ERROR = "On all but extreme rows its error is zero, alone and with others."
ONE_CLASS = "All its rows have one class: what it would lose alone is not known. It predicts with others."
OUTSIDE = f"{BAD_DATA} It predicts with its own model."

# Below this share an expected change is called none, as it would be shown as 0 %.
_LEAST_PRINTED = 0.005


def _change(gain: float) -> str:
    """Say what others do to an error, the gain being the share of it that they save (below zero: add)."""
    if abs(gain) < _LEAST_PRINTED:
        return "change its error by less than 1 %"
    if gain > 0:
        return f"save {gain:.0%} of its error".replace("%", " %")
    if gain < -1:
        return f"multiply its error by {1 - gain:.3g}"
    return f"add {-gain:.0%} to its error".replace("%", " %")


def reason_for(verdict: str, gain: float) -> str:
    """Return the sentence that gives the reason for a verdict, in the gain that the table has beside it.

    ``gain`` is the share of the error alone that others are expected to save.
    """
    sentence = f"Others are expected to {_change(gain)}"
    if verdict != NO_DIFFERENCE:
        return f"{sentence}."
    if abs(gain) < _LEAST_PRINTED:
        return f"{sentence}; a gain and a loss are possible."
    return f"{sentence}, but {'a loss' if gain > 0 else 'a gain'} is possible."


def judge(expected: ExpectedGains, surely_lost: Array | bool = False) -> Array:
    """Return the verdicts on learners who could be compared, of shape (L,).

    ``surely_lost`` (L,) tells whose own rows show a loss by more than a standard error: what holds for the
    other learners does not make it a gain.
    """
    helps = discoveries(expected.chance_of_loss) & (expected.mean > 0) & ~np.asarray(surely_lost)
    harms = discoveries(expected.chance_of_no_harm) & (expected.mean < 0)
    return np.select([helps, harms], [COLLABORATE, STAY_ALONE], NO_DIFFERENCE)


def with_remarks(reasons: Array, fits: Array, bad_model: Array | None = None) -> Array:
    """Return the reasons (L,) with what else is to be said of a learner's data and model.

    ``fits`` (L,) tells whose data some cluster of others describes, ``bad_model`` (L,) whose own model
    predicts nobody else well; None: not known.
    """
    remarks = [np.where(fits, "", BAD_DATA)]
    if bad_model is not None:
        remarks.append(np.where(bad_model, BAD_MODEL, ""))
    rows = zip(reasons.tolist(), *(column.tolist() for column in remarks), strict=True)
    return np.array([" ".join(part for part in row if part) for row in rows])
