"""One column: what becomes of it, decided on the rows of fit and applied to any rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie._arrays import Array
from coterie._options import listed
from coterie._text import counted
from coterie.encoding.entries import as_dates, typed

DATE_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": lambda series: series.dt.year(),
    "month": lambda series: series.dt.month(),
    "weekday": lambda series: series.dt.weekday(),
    "hour": lambda series: series.dt.hour(),
}
# A category that is seen less often has no column of its own: too few rows to learn from.
FEWEST_ROWS = 2
# A text column with more distinct entries than this share of its rows names rows, it does not describe them.
IDENTIFIER_SHARE = 0.5


@dataclass(frozen=True)
class ColumnPlan:
    """What becomes of a column, and the same in words (`remark`) for the reader of an output."""

    name: str
    # "number", "category", "date" or "left out".
    kind: str
    remark: str
    # What stands in for missing entries: the median of the number, or of each part of the date.
    fills: tuple[float, ...] = ()
    # Entries of a category, the most frequent first. It is the reference, which has no column.
    levels: tuple[str, ...] = ()
    # Whether rare entries share a column, which also takes entries that fit has not seen.
    other: bool = False
    # Parts of a date.
    parts: tuple[str, ...] = ()
    # Whether a column says where the entry was missing.
    indicator: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that it becomes, by name."""
        names: list[str] = []
        if self.kind == "number":
            names.append(self.name)
        elif self.kind == "date":
            names.extend(f"{self.name}.{part}" for part in self.parts)
        elif self.kind == "category":
            names.extend(f"{self.name}={level}" for level in self.levels[1:])
            names.extend([f"{self.name}=(other)"] if self.other else [])
        return (*names, *([f"{self.name}.missing"] if self.indicator else []))


def _left_out(name: str, why: str) -> ColumnPlan:
    return ColumnPlan(name, "left out", f"left out: {why}")


def _numbers(series: Any) -> Array:
    """Return numbers with NaN for all that is missing or infinite."""
    if series.dtype == nw.Duration:
        # In parts, for whole seconds would lose what lies below.
        series = series.dt.total_microseconds().cast(nw.Float64) / 1e6
    values = np.array(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    values[~np.isfinite(values)] = np.nan
    return values


def _gaps(count: int, n_rows: int) -> str:
    return f", {count} of {n_rows} missing" if count else ""


def _plan_number(name: str, series: Any) -> ColumnPlan:
    """Decide how a column of numbers is encoded."""
    values = _numbers(series)
    known = values[~np.isnan(values)]
    missing = len(values) - len(known)
    if not len(known):
        return _left_out(name, "it is empty")
    if not missing and known.min() == known.max():
        return _left_out(name, f"it has the one value {known[0]:g}")
    median = float(np.median(known))
    remark = "number" + _gaps(missing, len(values))
    if missing:
        remark += f" (filled with the median {median:g}, and marked)"
    return ColumnPlan(name, "number", remark, fills=(median,), indicator=bool(missing))


def _plan_date(name: str, series: Any) -> ColumnPlan:
    """Decide how a column of dates is encoded: which parts vary, and what fills gaps."""
    n_rows, known = len(series), series.drop_nulls()
    missing = n_rows - len(known)
    if not len(known):
        return _left_out(name, "it is empty")
    medians: dict[str, float] = {}
    for part, extract in DATE_PARTS.items():
        if part == "hour" and series.dtype == nw.Date:
            continue
        values = np.asarray(extract(known).to_numpy(), dtype=np.float64)
        if values.min() < values.max():
            medians[part] = float(np.median(values))
    if not medians and not missing:
        return _left_out(name, "year, month, weekday and hour are the same in all rows")
    remark = f"date: {', '.join(medians) or 'its gaps'}" + _gaps(missing, n_rows)
    if missing and medians:
        remark += " (filled with medians, and marked)"
    fills, parts = tuple(medians.values()), tuple(medians)
    return ColumnPlan(name, "date", remark, fills=fills, parts=parts, indicator=bool(missing))


def _plan_category(name: str, series: Any, max_levels: int, min_share: float) -> ColumnPlan:
    """Decide how a column of text is encoded: which levels have a column of their own."""
    n_rows, known = len(series), series.cast(nw.String).drop_nulls()
    missing = n_rows - len(known)
    if not len(known):
        return _left_out(name, "it is empty")
    tally = known.value_counts(name="rows")
    pairs = zip(tally[tally.columns[0]].to_list(), tally["rows"].to_list(), strict=True)
    counts: dict[str, int] = dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))
    if len(counts) > max_levels and len(counts) > IDENTIFIER_SHARE * len(known):
        return _left_out(name, f"its {len(counts)} distinct entries name rows rather than describe them")
    enough = max(FEWEST_ROWS, min_share * n_rows)
    frequent = [level for level, count in counts.items() if count >= enough][:max_levels]
    levels = tuple(frequent or list(counts)[:1])
    rare = len(counts) - len(levels)
    if len(levels) == 1 and not rare and not missing:
        return _left_out(name, f"it has the one value {levels[0]!r}")
    remark = f"category: {len(levels)} {'entry' if len(levels) == 1 else 'entries'}, "
    remark += f"{levels[0]!r} as reference"
    if rare:
        remark += f", {counted(rare, 'rare one')} joined"
    remark += _gaps(missing, n_rows) + (" (marked)" if missing else "")
    return ColumnPlan(name, "category", remark, levels=levels, other=bool(rare), indicator=bool(missing))


def _kind(dtype: Any) -> str | None:
    """Return what entries of a type are; None where they cannot be turned into numbers."""
    if dtype.is_numeric() or dtype in (nw.Boolean, nw.Duration):
        return "number"
    if dtype in (nw.Date, nw.Datetime):
        return "date"
    return "category" if dtype in (nw.String, nw.Categorical, nw.Enum) else None


def plan_column(name: str, series: Any, max_levels: int, min_share: float) -> ColumnPlan:
    """Decide what becomes of a column, given as a narwhals Series.

    At most `max_levels` entries of a category get a column of their own; each has at least `min_share` of the
    rows.
    """
    series = typed(series)
    dates = as_dates(series) if series.dtype == nw.String else None
    if dates is not None:
        return _plan_date(name, dates)
    match _kind(series.dtype):
        case "number":
            return _plan_number(name, series)
        case "date":
            return _plan_date(name, series)
        case "category":
            return _plan_category(name, series, max_levels, min_share)
    return _left_out(name, f"entries of type {series.dtype} cannot be turned into numbers")


def _encode_number(plan: ColumnPlan, series: Any) -> tuple[list[Array], Array]:
    """Return the column as numbers, gaps filled, and which entries were missing."""
    values = _numbers(series) if _kind(series.dtype) == "number" else np.full(len(series), np.nan)
    missing = np.isnan(values)
    values[missing] = plan.fills[0]
    return [values], missing


def _encode_date(plan: ColumnPlan, series: Any) -> tuple[list[Array], Array]:
    """Return a column for each part of the dates, gaps filled, and which entries were missing."""
    known = series.drop_nulls()
    missing = np.asarray(series.is_null().to_numpy(), dtype=bool)
    encoded = []
    for part, fill in zip(plan.parts, plan.fills, strict=True):
        values = np.full(len(series), fill)
        if part == "hour" and series.dtype == nw.Date:
            values[~missing] = 0.0
        elif len(known):
            values[~missing] = DATE_PARTS[part](known).to_numpy()
        encoded.append(values)
    return encoded, missing


def _encode_category(plan: ColumnPlan, series: Any) -> tuple[list[Array], Array]:
    """Return an indicator for each level but the first, and which entries were missing."""
    text = series.cast(nw.String)
    missing = np.asarray(text.is_null().to_numpy(), dtype=bool)
    text = text.fill_null("")
    result = [np.asarray((text == level).to_numpy(), dtype=bool) & ~missing for level in plan.levels]
    encoded = [np.asarray(where, dtype=np.float64) for where in result[1:]]
    elsewhere = ~np.logical_or.reduce([missing, *result])
    if plan.other:
        encoded.append(elsewhere.astype(np.float64))
    elif elsewhere.any():
        new = list(dict.fromkeys(text.filter(elsewhere.tolist()).to_list()))
        warnings.warn(
            f"The column {plan.name!r} has entries that fit has not seen: {listed(new)}. "
            f"They count as {plan.levels[0]!r}, the most frequent entry of fit.",
            UserWarning,
            stacklevel=2,
        )
    return encoded, missing


ENCODERS = {"number": _encode_number, "date": _encode_date, "category": _encode_category}


def encode_column(plan: ColumnPlan, series: Any) -> dict[str, Array]:
    """Return the columns of numbers, without gaps, that a column becomes; its plan is not "left out"."""
    series = typed(series)
    if plan.kind == "date" and series.dtype == nw.String:
        dates = as_dates(series)
        series = series if dates is None else dates
    # Any entry can be taken as the text of a category.
    if plan.kind not in ("category", _kind(series.dtype)) and len(series.drop_nulls()):
        raise ValueError(
            f"The column {plan.name!r} held a {plan.kind} in fit and holds entries of type {series.dtype} "
            "now: give it the type that it had."
        )
    encoded, missing = ENCODERS[plan.kind](plan, series)
    if plan.indicator:
        encoded.append(missing.astype(np.float64))
    return dict(zip(plan.features, encoded, strict=True))
