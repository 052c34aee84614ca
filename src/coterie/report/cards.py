"""Each learner by itself: its verdict, its gain with the interval, its errors, whom it learns with.

The cards of the page, its picture of who gains and its table show these texts and places. There is one scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie._text import number, percent, whole_percents
from coterie.displays import GainsDisplay
from coterie.report.identity import target_and_unit
from coterie.report.pictures import both_ends, own_coterie_is_itself, taken_name
from coterie.report.site import sources_of
from coterie.report.subject import ReportSubject, full_name
from coterie.summary import learner_columns
from coterie.verdicts.verdict import COLLABORATE, NO_DIFFERENCE, NOT_MEASURED, STAY_ALONE, TOO_FEW_ROWS

# Rows of the picture of who gains.
MOST_GAINS = 40
# The look of a verdict, and what it asks for.
KINDS = {
    COLLABORATE: "gain",
    NO_DIFFERENCE: "even",
    STAY_ALONE: "lose",
    TOO_FEW_ROWS: "few",
    NOT_MEASURED: "few",
}
ADVICE = {
    COLLABORATE: "gain: learn with others",
    NO_DIFFERENCE: "no clear difference",
    STAY_ALONE: "lose: stay alone",
    TOO_FEW_ROWS: "too few rows to compare",
    NOT_MEASURED: "not measured",
}
# Steps between the ticks of the scale of gains: the first that gives few enough.
STEPS = (0.05, 0.1, 0.2, 0.25, 0.5)
MOST_TICKS = 7


class GainAxis:
    """Places of gains, in percent of a track's width; what lies beyond -100 % is at its end."""

    def __init__(self, ends: Sequence[float]) -> None:
        """Choose the range of gains that the axis covers."""
        low, high = max(min([0.0, *ends]), -1.0), min(max([0.05, *ends]), 1.0)
        fits = (step for step in STEPS if (high - low) / step <= MOST_TICKS)
        step = next(fits, STEPS[-1])
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        self.ticks = [index * step for index in range(first, last + 1)]
        self.low, self.high = self.ticks[0], self.ticks[-1]

    def cuts(self, gain: float | None) -> bool:
        """Tell whether a gain lies below the scale."""
        return gain is not None and math.isfinite(gain) and gain < self.low

    def __call__(self, gain: float | None) -> float | None:
        """Return the place of a gain."""
        if gain is None or not math.isfinite(gain):
            return None
        share = (gain - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 1)


def _singles(subject: ReportSubject) -> set[int]:
    """Return the coteries that have one member."""
    return {part["cluster"] for part in subject.summary["coteries"] if len(part["learners"]) == 1}


def _taken(
    subject: ReportSubject, rows: list[dict[str, Any]], singles: set[int]
) -> tuple[list[str], dict[Any, list[int]]]:
    """Return from whom learners take, and each one's percentages."""
    conclusion = subject.conclusion
    if conclusion is not None:
        result = {row["learner"]: sources_of(conclusion, row["learner"]) for row in rows}
        parts = {
            learner: whole_percents([part["own"], part["company"], part["others"]])
            for learner, part in result.items()
            if part is not None
        }
        return ["its own model", "others in its coterie", "other sites"], parts
    names = [name for name in rows[0] if name.startswith("from_")]
    names_shown = [taken_name(name) for name in names]
    known = [row for row in rows if names and row[names[0]] is not None]
    shares = np.array([[row[name] for name in names] for row in known], dtype=float).reshape(
        -1, max(len(names), 1)
    )
    once = own_coterie_is_itself(shares, names, [row["cluster"] in singles for row in known])
    return names_shown, {
        row["learner"]: whole_percents(part) for row, part in zip(known, once.tolist(), strict=True)
    }


def _error(row: dict[str, Any], name: str, *, root: bool) -> str:
    """Return one of a learner's errors as text, in the unit of the response where ``root`` is set."""
    value = row.get(name)
    return number(value if value is None or not root or value < 0 else math.sqrt(value))


def _against_measured(row: dict[str, Any]) -> bool:
    """Tell whether the errors measured on a learner's rows point another way than the gain expected."""
    gain, own, others = (row.get(name) for name in ("gain", "error_alone", "error_with"))
    return bool(gain and own is not None and others is not None and (others - own) * gain > 0)


def _used(row: dict[str, Any], taken: list[int] | None, *, lone: bool) -> str:
    """Return what `predict` uses for a learner by default, in a sentence."""
    unknown = not row.get("verdict") or row["verdict"] == NOT_MEASURED
    # Without shares nobody can tell whether a learner by itself takes from all.
    if unknown or (lone and taken is None and row["verdict"] != STAY_ALONE):
        return ""
    own = row["verdict"] == STAY_ALONE or (taken is not None and taken[0] == sum(taken))
    return f"Predictions use {'its own model' if own else 'others'}."


def _card(
    row: dict[str, Any], scale: GainAxis, taken: list[int] | None, *, root: bool, lone: bool
) -> list[Any]:
    """Return the entries of a learner's card, in the order that the page's script reads."""
    gain, low, high = (row.get(name) for name in ("gain", "gain_low", "gain_high"))
    # How often a learner predicts itself best says nothing about company.
    sure = None if lone else row.get("membership")
    return [
        full_name(row["learner"]),
        -1 if row["cluster"] is None else row["cluster"],
        row.get("verdict", ""),
        row.get("reason", "").replace(" %", "%"),
        percent(gain, sign=True),
        None if low is None or high is None else [percent(low, sign=True), percent(high, sign=True)],
        [scale(gain), scale(low), scale(high)],
        [_error(row, name, root=root) for name in ("error_alone", "error_with", "error_all")],
        None if row.get("n_rows") is None else f"{row['n_rows']:,}",
        taken,
        None if sure is None else percent(sure),
        row.get("second_cluster", -1),
        row.get("model") or "",
        _against_measured(row),
        _used(row, taken, lone=lone),
        scale.cuts(low),
    ]


def learner_cards(subject: ReportSubject) -> dict[str, Any]:
    """Return what the page says of each learner, the largest gain first, and whom its picture shows."""
    rows = subject.summary["gains"]
    measured = "gain" in rows[0]
    if measured:
        columns = learner_columns(subject.found)
        order = GainsDisplay(columns).frame()["learner"].tolist()
        index = {learner: p for p, learner in enumerate(order)}
        rows = sorted(rows, key=lambda row: index[row["learner"]])
    ends = [row[name] for row in rows for name in ("gain", "gain_low", "gain_high") if measured]
    scale = GainAxis([end for end in ends if end is not None])
    zero = scale.ticks.index(0.0)
    classes = "scores" in subject.summary
    singles = _singles(subject)
    names, taken = _taken(subject, rows, singles)
    # Whom errors compare stands in the picture.
    compared = [p for p, row in enumerate(rows) if measured and row["gain"] is not None]
    return {
        "error": "Brier score" if classes else "RMSE",
        "unit": "" if classes else target_and_unit(subject)[1],
        "takes": names,
        "measured": measured,
        "clear": subject.summary["clear"],
        "kinds": KINDS,
        "ticks": [
            # On a phone every other one is left out, never the zero.
            [scale(tick), percent(tick, sign=True), bool((index - zero) % 2)]
            for index, tick in enumerate(scale.ticks)
        ],
        "zero": scale(0.0),
        "rows": [
            _card(row, scale, taken.get(row["learner"]), root=not classes, lone=row["cluster"] in singles)
            for row in rows
        ],
        "shown": [compared[p] for p in both_ends(len(compared), MOST_GAINS)],
        "left_out": max(0, len(compared) - MOST_GAINS),
    }


def verdict_parts(verdicts: dict[str, int]) -> list[dict[str, Any]]:
    """Return the verdicts that were given, in a fixed order: name, what it asks for, count, share."""
    total = sum(verdicts.values())
    return [
        {"name": name, "kind": kind, "advice": ADVICE[name], "count": verdicts[name]}
        | {"share": round(100 * verdicts[name] / total, 2)}
        for name, kind in KINDS.items()
        if verdicts.get(name)
    ]
