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
        """Choose range and ticks such that zero and all ``ends`` (of intervals of gains) lie inside.

        The range is at most -100 % to 100 %. The step between ticks is the smallest of `STEPS` that
        needs at most `MOST_TICKS`, so that ticks are round numbers.
        """
        # At least 5 % to the right of zero, so that an axis without gains has a width.
        low, high = max(min([0.0, *ends]), -1.0), min(max([0.05, *ends]), 1.0)
        small_enough_steps = (step for step in STEPS if (high - low) / step <= MOST_TICKS)
        step = next(small_enough_steps, STEPS[-1])
        # The tiny number absorbs rounding: an end at a tick needs no further one.
        first_multiple, last_multiple = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        self.ticks = [index * step for index in range(first_multiple, last_multiple + 1)]
        self.low, self.high = self.ticks[0], self.ticks[-1]

    def cuts(self, gain: float | None) -> bool:
        """Tell whether a gain lies below the axis, so that an arrow stands for it."""
        return gain is not None and math.isfinite(gain) and gain < self.low

    def __call__(self, gain: float | None) -> float | None:
        """Return where a gain stands, in percent of the width, 0 to 100; None where there is no gain."""
        if gain is None or not math.isfinite(gain):
            return None
        share = (gain - self.low) / (self.high - self.low)
        return round(100 * min(max(share, 0.0), 1.0), 1)


def _singles(subject: ReportSubject) -> set[int]:
    """Return the labels of the coteries that have one member."""
    return {part["cluster"] for part in subject.summary["coteries"] if len(part["learners"]) == 1}


def _taken(
    subject: ReportSubject, rows: list[dict[str, Any]], singles: set[int]
) -> tuple[list[str], dict[Any, list[int]]]:
    """Return what learners' predictions are made of: names of R sources, and R whole percentages by learner.

    Percentages sum to 100. Learners without known weights are not in the dict. What a learner takes from
    a coterie that it is alone in counts as its own model's: ``singles`` has the labels of such coteries.
    ``rows`` is the table of gains, a dict per learner; a conclusion of sites knows other sources than a fit.
    """
    conclusion = subject.conclusion
    if conclusion is not None:
        sources = {row["learner"]: sources_of(conclusion, row["learner"]) for row in rows}
        percents = {
            learner: whole_percents([source_shares["own"], source_shares["company"], source_shares["others"]])
            for learner, source_shares in sources.items()
            if source_shares is not None
        }
        return ["its own model", "others in its coterie", "other sites"], percents
    columns = [name for name in rows[0] if name.startswith("from_")]
    names_shown = [taken_name(name) for name in columns]
    rows_with_weights = [row for row in rows if columns and row[columns[0]] is not None]
    shares = np.array([[row[name] for name in columns] for row in rows_with_weights], dtype=float).reshape(
        -1, max(len(columns), 1)
    )
    merged_shares = own_coterie_is_itself(
        shares, columns, [row["cluster"] in singles for row in rows_with_weights]
    )
    return names_shown, {
        row["learner"]: whole_percents(source_shares)
        for row, source_shares in zip(rows_with_weights, merged_shares.tolist(), strict=True)
    }


def _error(row: dict[str, Any], name: str, *, root: bool) -> str:
    """Return one of a learner's errors as text; ``root`` takes the root of squared errors."""
    value = row.get(name)
    return number(value if value is None or not root or value < 0 else math.sqrt(value))


def _against_measured(row: dict[str, Any]) -> bool:
    """Tell whether the measured errors point another way than the expected gain; the page says so then.

    The expected gain also uses what other learners gain, so that luck on a learner's few rows weighs
    less. A positive gain and a larger error with others disagree, and the other way round.
    """
    gain, error_alone, error_with = (row.get(name) for name in ("gain", "error_alone", "error_with"))
    return bool(
        gain and error_alone is not None and error_with is not None and (error_with - error_alone) * gain > 0
    )


def _used(row: dict[str, Any], percents: list[int] | None, *, lone: bool) -> str:
    """Return in a sentence whether `predict` uses a learner's own model or others; empty if unknown.

    ``percents`` are whole percentages from each source, the own model first. ``lone``: the learner is alone
    in its coterie.
    """
    not_measured = not row.get("verdict") or row["verdict"] == NOT_MEASURED
    # Without shares nobody can tell whether a learner by itself takes from all.
    if not_measured or (lone and percents is None and row["verdict"] != STAY_ALONE):
        return ""
    uses_own_model = row["verdict"] == STAY_ALONE or (percents is not None and percents[0] == sum(percents))
    return f"Predictions use {'its own model' if uses_own_model else 'others'}."


def _card(
    row: dict[str, Any], scale: GainAxis, percents: list[int] | None, *, root: bool, lone: bool
) -> list[Any]:
    """Return what the page says of a learner, as a list: the page's script reads the entries by position.

    ``row`` is the learner's row of the table of gains, ``percents`` its percentages from each source.
    ``root``: errors are squared and shown as roots. ``lone``: the learner is alone in its coterie.
    No entry may change its position without the script. A label of -1 stands for no coterie.
    """
    gain, low, high = (row.get(name) for name in ("gain", "gain_low", "gain_high"))
    # Of a coterie of one, the probability says nothing about learning with others.
    own_probability = None if lone else row.get("membership")
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
        percents,
        None if own_probability is None else percent(own_probability),
        row.get("second_cluster", -1),
        row.get("model") or "",
        _against_measured(row),
        _used(row, percents, lone=lone),
        scale.cuts(low),
    ]


def learner_cards(subject: ReportSubject) -> dict[str, Any]:
    """Return what the page says of each learner, the largest gain first, with the axis of gains.

    A gain is the share of a learner's error that others save. ``rows`` are the cards; ``shown`` has the
    positions of those in the picture of gains, from both ends where they are many; ``left_out`` counts the
    others.
    """
    rows = subject.summary["gains"]
    has_gains = "gain" in rows[0]
    if has_gains:
        columns = learner_columns(subject.found)
        order = GainsDisplay(columns).frame()["learner"].tolist()
        rank_of = {learner: position for position, learner in enumerate(order)}
        rows = sorted(rows, key=lambda row: rank_of[row["learner"]])
    interval_ends = [row[name] for row in rows for name in ("gain", "gain_low", "gain_high") if has_gains]
    axis = GainAxis([end for end in interval_ends if end is not None])
    zero = axis.ticks.index(0.0)
    of_classes = "scores" in subject.summary
    singles = _singles(subject)
    source_names, percents_of = _taken(subject, rows, singles)
    # Whom errors compare stands in the picture.
    compared = [position for position, row in enumerate(rows) if has_gains and row["gain"] is not None]
    return {
        "error": "Brier score" if of_classes else "RMSE",
        "unit": "" if of_classes else target_and_unit(subject)[1],
        "takes": source_names,
        "measured": has_gains,
        "clear": subject.summary["clear"],
        "kinds": KINDS,
        "ticks": [
            # On a phone every other one is left out, never the zero.
            [axis(tick), percent(tick, sign=True), bool((rank_of - zero) % 2)]
            for rank_of, tick in enumerate(axis.ticks)
        ],
        "zero": axis(0.0),
        "rows": [
            _card(
                row,
                axis,
                percents_of.get(row["learner"]),
                root=not of_classes,
                lone=row["cluster"] in singles,
            )
            for row in rows
        ],
        "shown": [compared[position] for position in both_ends(len(compared), MOST_GAINS)],
        "left_out": max(0, len(compared) - MOST_GAINS),
    }


def verdict_parts(verdicts: dict[str, int]) -> list[dict[str, Any]]:
    """Return counts of verdicts as parts of a bar, in a fixed order: name, look, advice, count, percent."""
    total = sum(verdicts.values())
    return [
        {"name": name, "kind": kind, "advice": ADVICE[name], "count": verdicts[name]}
        | {"share": round(100 * verdicts[name] / total, 2)}
        for name, kind in KINDS.items()
        if verdicts.get(name)
    ]
