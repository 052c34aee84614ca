"""One column: what becomes of it, decided on the rows of fit and applied to any rows."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie._arrays import Array
from coterie._options import listed
from coterie._text import counted
from coterie.encoding.entries import as_dates, has_commas, numbers_in, odd_entries, texts_of, typed
from coterie.rows.outside import OutsideFitWarning, more_than_fit, warn_outside

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
# Of a sound category fewer entries than this share are rare, or they have fewer rows than that share.
MOSTLY_RARE, RARE_ROWS = 0.5, 0.05


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
    # Whether numbers that are written as text have decimal commas.
    comma: bool = False
    # The rows of fit, and how many were missing, and had a rare entry of a category; None: nobody counted.
    counts: tuple[int, int, int] | None = None
    # What a reader of the fit should know of the column, in a sentence; empty: nothing.
    note: str = ""

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
    """Decide how a column of numbers is encoded: gaps become the median, and are marked by a column if any.

    A column that is empty, or has one value and no gaps, is left out.
    """
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
    counts = (len(values), missing, 0)
    return ColumnPlan(name, "number", remark, fills=(median,), indicator=bool(missing), counts=counts)


def _as_series(numbers: Array, like: Any) -> Any:
    """Return numbers as a column of the same library."""
    backend = nw.get_native_namespace(like)
    return nw.new_series(name=like.name, values=numbers, dtype=nw.Float64, backend=backend)


def _examples(entries: Counter[str]) -> str:
    return listed((entry for entry, _ in entries.most_common(3)), 3)


def plan_text(name: str, series: Any, max_levels: int, min_share: float) -> ColumnPlan:
    """Decide what becomes of a column, as `plan_column` does; text that is nearly all numbers is numbers.

    A note in the plan names the entries that are none, for text may also hold codes. Arguments as there.
    """
    series = typed(series)
    texts = texts_of(series) if series.dtype == nw.String else []
    comma = has_commas(texts)
    if comma is None or as_dates(series) is not None:
        return plan_column(name, series, max_levels, min_share)
    numbers = numbers_in(texts, comma)
    plan, odd = _plan_number(name, _as_series(numbers, series)), odd_entries(texts, numbers)
    note = f"Column {name!r} is text and was taken for numbers"
    if odd:
        note += (
            f": {odd.total()} of {len(texts)} entries are none ({_examples(odd)}) and count as missing. "
            "If it holds codes, make it a category"
        )
    return replace(plan, comma=comma, note=f"{note}.")


def _plan_date(name: str, series: Any) -> ColumnPlan:
    """Decide how a column of dates is encoded: which parts vary, and what fills gaps.

    Of year, month, weekday and hour those that are the same in all rows are left out; medians fill gaps.
    """
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
    counts = (n_rows, missing, 0)
    return ColumnPlan(name, "date", remark, fills=fills, parts=parts, indicator=bool(missing), counts=counts)


def _plan_category(name: str, series: Any, max_levels: int, min_share: float) -> ColumnPlan:
    """Decide how a column of text is encoded: which entries (levels) get an indicator column of their own.

    The most frequent entry is the reference and has none; the rare ones (below ``min_share`` of the rows, or
    beyond ``max_levels``) share one. A column with nearly as many entries as rows is left out.
    """
    n_rows, known = len(series), series.cast(nw.String).drop_nulls()
    missing = n_rows - len(known)
    if not len(known):
        return _left_out(name, "it is empty")
    tally = known.value_counts(name="rows")
    pairs = zip(tally[tally.columns[0]].to_list(), tally["rows"].to_list(), strict=True)
    # The most frequent entry first; of equally frequent ones in the order of the alphabet.
    counts: dict[str, int] = dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))
    if len(counts) > max_levels and len(counts) > IDENTIFIER_SHARE * len(known):
        return _left_out(name, f"its {len(counts)} distinct entries name rows rather than describe them")
    min_rows = max(FEWEST_ROWS, min_share * n_rows)
    frequent = [level for level, count in counts.items() if count >= min_rows][:max_levels]
    levels = tuple(frequent or list(counts)[:1])
    n_rare_levels = len(counts) - len(levels)
    if len(levels) == 1 and not n_rare_levels and not missing:
        return _left_out(name, f"it has the one value {levels[0]!r}")
    remark = f"category: {len(levels)} {'entry' if len(levels) == 1 else 'entries'}, "
    remark += f"{levels[0]!r} as reference"
    if n_rare_levels:
        remark += f", {counted(n_rare_levels, 'rare one')} joined"
    remark += _gaps(missing, n_rows) + (" (marked)" if missing else "")
    n_rare_rows = len(known) - sum(counts[level] for level in levels)
    note = ""
    if n_rare_levels > MOSTLY_RARE * len(counts) and n_rare_rows > RARE_ROWS * n_rows:
        note = (
            f"Column {name!r} is a category of {len(counts)} entries, and {n_rare_levels} of them are rare "
            f"and were joined ({n_rare_rows} of {n_rows} rows): join them by meaning, or make it numbers "
            "if it is."
        )
    return ColumnPlan(
        name,
        "category",
        remark,
        levels=levels,
        other=bool(n_rare_levels),
        indicator=bool(missing),
        counts=(n_rows, missing, n_rare_rows),
        note=note,
    )


def _kind(dtype: Any) -> str | None:
    """Return "number", "date" or "category" for a narwhals type; None if it cannot be turned into numbers."""
    if dtype.is_numeric() or dtype in (nw.Boolean, nw.Duration):
        return "number"
    if dtype in (nw.Date, nw.Datetime):
        return "date"
    return "category" if dtype in (nw.String, nw.Categorical, nw.Enum) else None


def plan_column(name: str, series: Any, max_levels: int, min_share: float) -> ColumnPlan:
    """Decide what becomes of a column, given as a narwhals Series.

    At most ``max_levels`` entries of a category get a column of their own; each has at least ``min_share`` of
    the rows. What cannot become numbers is left out, not refused: the plan says why.
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


def _text_as_numbers(plan: ColumnPlan, series: Any) -> tuple[Any, bool]:
    """Return a column of text as numbers, NaN for other entries, and whether a warning named these.

    The column stays text where fit saw only numbers and no entry is one: it is refused for its type then.
    """
    texts = texts_of(series)
    values = numbers_in(texts, plan.comma)
    odd = odd_entries(texts, values)
    if odd and not plan.note:
        if np.isnan(values).all():
            return series, False
        warn_outside(
            f"Column {plan.name!r} held numbers in fit, and {odd.total()} of {len(texts)} entries are none "
            f"({_examples(odd)}): they count as missing."
        )
    return _as_series(values, series), bool(odd) and not plan.note


def _encode_number(plan: ColumnPlan, series: Any) -> tuple[list[Array], Array]:
    """Return the column as numbers in a list of one, gaps filled, and which entries (n,) were missing."""
    values = _numbers(series) if _kind(series.dtype) == "number" else np.full(len(series), np.nan)
    missing = np.isnan(values)
    values[missing] = plan.fills[0]
    return [values], missing


def _encode_date(plan: ColumnPlan, series: Any) -> tuple[list[Array], Array]:
    """Return a column for each part of the dates, gaps filled, and which entries were missing.

    Dates without a time, where fit had times, count as midnight.
    """
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
    """Return an indicator (n,) for each level but the first, and which entries (n,) were missing.

    Entries that are no level share an indicator if rare entries of fit did. Else they are zero in all of
    them, like the first level, with a warning. It is also warned where many more rows than in fit are new.
    """
    is_numeric = _kind(series.dtype) == "number"
    text = (series.fill_nan(None) if series.dtype.is_float() else series).cast(nw.String)
    missing = np.asarray(text.is_null().to_numpy(), dtype=bool)
    text = text.fill_null("")
    # A whole number that became a fraction, for a gap stands beside it, is the same entry.
    without_fraction = text.str.replace(r"\.0$", "") if is_numeric else text
    has_level = [
        np.asarray(((text == level) | (without_fraction == level)).to_numpy(), dtype=bool) & ~missing
        for level in plan.levels
    ]
    encoded = [np.asarray(indicator, dtype=np.float64) for indicator in has_level[1:]]
    no_level = ~np.logical_or.reduce([missing, *has_level])
    if plan.other:
        encoded.append(no_level.astype(np.float64))
    count = int(no_level.sum())
    if not count:
        return encoded, missing
    rows_of_fit, _, rare_in_fit = plan.counts or (0, 0, 0)
    all_new = is_numeric and count == len(series) - missing.sum()
    many = plan.counts is not None and (
        all_new or more_than_fit(count, len(series), rare_in_fit, rows_of_fit)
    )
    if many or not plan.other:
        new_entries = list(dict.fromkeys(text.filter(no_level.tolist()).to_list()))
        counted_as = "rare ones" if plan.other else f"{plan.levels[0]!r}, the most frequent entry of fit"
        seen = f", where {rare_in_fit} of {rows_of_fit} were rare" if plan.other else ""
        warnings.warn(
            f"The column {plan.name!r} has entries that fit has not seen: {listed(new_entries)}. They are "
            f"those of {count} of {len(series)} rows{seen}, and count as {counted_as}.",
            OutsideFitWarning if many else UserWarning,
            stacklevel=4,
        )
    return encoded, missing


ENCODERS = {"number": _encode_number, "date": _encode_date, "category": _encode_category}


def _stand_in(plan: ColumnPlan) -> str:
    """Say what a missing entry counts as."""
    if plan.kind == "category":
        return f"they count as {plan.levels[0]!r}, the most frequent entry of fit"
    return f"they count as the median{'' if plan.kind == 'number' else 's'} of fit"


def encode_column(plan: ColumnPlan, series: Any) -> dict[str, Array]:
    """Return the columns of numbers (n,), by name and without gaps, that a column becomes by its plan.

    The plan was made by fit, and is not "left out". A column of another type than in fit is refused, and one
    with many more gaps than in fit is warned of: predictions would silently rest on medians.
    """
    series, warned = typed(series), False
    if plan.kind == "date" and series.dtype == nw.String:
        dates = as_dates(series)
        series = series if dates is None else dates
    if plan.kind == "number" and series.dtype in (nw.String, nw.Categorical, nw.Enum):
        series, warned = _text_as_numbers(plan, series.cast(nw.String))
    # Any entry can be taken as the text of a category.
    if plan.kind not in ("category", _kind(series.dtype)) and len(series.drop_nulls()):
        raise ValueError(
            f"The column {plan.name!r} held a {plan.kind} in fit and holds entries of type {series.dtype} "
            "now: give it the type that it had."
        )
    encoded, missing = ENCODERS[plan.kind](plan, series)
    rows_of_fit, gaps_of_fit, _ = plan.counts or (0, 0, 0)
    comparable = plan.counts is not None and not warned
    if comparable and more_than_fit(int(missing.sum()), len(missing), gaps_of_fit, rows_of_fit):
        warn_outside(
            f"Column {plan.name!r} is missing in {missing.sum()} of {len(missing)} rows, and was in "
            f"{gaps_of_fit} of {rows_of_fit} rows of fit: {_stand_in(plan)}."
        )
    if plan.indicator:
        encoded.append(missing.astype(np.float64))
    return dict(zip(plan.features, encoded, strict=True))
