"""Sites agree on what becomes of their columns, before anybody shares anything that is learnt.

Each site names its columns and the entries of categories that enough of its rows have. From these notes
anybody makes the encoding that all sites use: the same levels, the same reference, the same numbers in place
of what is missing. Columns that seem to be in other units at one site are pointed out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie._options import listed
from coterie.encoding import ColumnPlan, TableEncoder
from coterie.encoding.columns import DATE_PARTS, plan_column
from coterie.federated.checks import MOST_CLASSES
from coterie.federated.labels import label_text
from coterie.federated.messages import ProtocolError
from coterie.federated.site import software_versions
from coterie.federated.tables import ColumnNote, Columns, Encoding

# The kind of a response that is a class.
CLASS = "class"
# How many rows must have an entry before it is named, unless a site asks for more.
FEWEST_WITH_LEVEL = 10
# Levels of a column that a site names, and that get a column of their own.
MOST_NAMED, MOST_LEVELS = 50, 12
LONGEST_LEVEL, LONGEST_NOTE = 100, 400
# Sizes that differ by this factor or more look like other units: the smallest steps of units are 10 and 1000.
OTHER_UNITS = 5.0
# What stands for missing parts of a date: the middle of each.
MIDDLES = {"month": 6.0, "weekday": 4.0, "hour": 12.0}


def _rounded(value: float) -> float:
    """Return a number with one digit."""
    return float(f"{value:.0e}") if math.isfinite(value) else 0.0


def _middle(series: Any, kind: str, fewest: int) -> tuple[float | None, float | None]:
    """Return the median and the median size of numbers, or of years, to one digit; years to ten."""
    known = series.drop_nulls()
    if kind == "date":
        years = np.asarray(known.dt.year().to_numpy(), dtype=float)
        return (float(np.round(np.median(years), -1)) if len(years) >= fewest else None), None
    if series.dtype == nw.Duration:
        return None, None
    values = np.array(known.cast(nw.Float64).to_numpy(), dtype=float)
    values = values[np.isfinite(values)]
    if len(values) < fewest:
        return None, None
    return _rounded(float(np.median(values))), _rounded(float(np.median(np.abs(values))))


def _levels(series: Any, fewest: int) -> tuple[str, ...]:
    """Return the entries that enough rows have, the most frequent first."""
    counted = Counter(series.cast(nw.String).drop_nulls().to_list())
    named = [level for level, count in counted.items() if count >= fewest]
    printable = [level for level in named if level.isprintable() and len(level) <= LONGEST_LEVEL]
    return tuple(sorted(printable, key=lambda level: (-counted[level], level))[:MOST_NAMED])


def describe_column(name: str, series: Any, fewest: int = FEWEST_WITH_LEVEL) -> ColumnNote:
    """Return what a site says of a column, given as a narwhals Series."""
    kind = plan_column(name, series, MOST_LEVELS, 0.0).kind
    if kind == "left out" and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        # Constant or empty here, it may vary elsewhere.
        kind = "number"
    values = series.cast(nw.Float64).fill_nan(None) if series.dtype.is_float() else series
    gaps = int(values.is_null().sum()) >= fewest
    levels = _levels(series, fewest) if kind == "category" else ()
    if kind == "left out" and series.dtype in (nw.String, nw.Categorical, nw.Enum):
        # Entries that many rows have are no names of rows: a column with one value here.
        levels = _levels(series, fewest)
        kind = "category" if levels else kind
    hours = kind == "date" and series.dtype == nw.Datetime
    middle, size = _middle(series, kind, fewest) if kind in ("number", "date") else (None, None)
    return ColumnNote(name, kind, levels, gaps, hours, middle, size)


def describe_classes(name: str, series: Any, fewest: int = FEWEST_WITH_LEVEL) -> ColumnNote:
    """Return what a site says of a response that is a class: the classes that enough rows have."""
    counted = Counter(label_text(label) for label in series.drop_nulls().to_list() if label == label)
    named = sorted(label for label, count in counted.items() if count >= fewest)
    printable = tuple(label for label in named if label.isprintable() and 0 < len(label) <= LONGEST_LEVEL)
    return ColumnNote(name, CLASS, printable[:MOST_CLASSES], False, False, None, None)


def describe_columns(
    table: Any,
    *,
    site: str,
    target: str,
    columns: Sequence[str],
    fewest: int = FEWEST_WITH_LEVEL,
    classes: bool = False,
) -> Columns:
    """Return what a site says of its table.

    Parameters
    ----------
    table : pandas, polars or pyarrow table
        The site's rows.
    site : str
        Who speaks.
    target : str
        The response.
    columns : sequence of str
        The predictors.
    fewest : int, default=10
        How many rows must have an entry before it is named.
    classes : bool, default=False
        Whether the response is a class.

    Returns
    -------
    Columns
        Names, kinds, levels, and numbers rounded to one digit.
    """
    if fewest < 2:
        raise ProtocolError(f"An entry must be that of at least 2 rows before it is named. Got {fewest}.")
    whole = nw.from_native(table, eager_only=True)
    first = (describe_classes if classes else describe_column)(target, whole[target], fewest)
    others = tuple(describe_column(name, whole[name], fewest) for name in columns)
    return Columns(site, first, others, fewest, software_versions())


def _agreed_classes(known: Sequence[Columns], notes: list[str]) -> tuple[str, ...]:
    """Return the classes that any site names, none where most sites say that the response is a number."""
    saying = [message for message in known if message.target.kind == CLASS]
    if 2 * len(saying) <= len(known):
        notes += [f"{message.site!r} alone takes the target for a class." for message in saying]
        return ()
    others = [message.site for message in known if message.target.kind != CLASS]
    if others:
        notes.append(f"{listed(others)} cannot take part unless the target is a class there, too.")
    result = {label for message in saying for label in message.target.levels}
    if len(result) < 2:
        raise ProtocolError(
            f"Only the classes {sorted(result)} are those of enough rows at some site: lower --fewest there."
        )
    if len(result) > MOST_CLASSES:
        raise ProtocolError(f"The sites name {len(result)} classes: {MOST_CLASSES} are the most.")
    return tuple(sorted(result, key=_as_sorted))


def _as_sorted(label: str) -> tuple[bool, float, str]:
    """Return what labels are sorted by: numbers by their size, texts behind them."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def _left_out(name: str, why: str) -> ColumnPlan:
    return ColumnPlan(name, "left out", f"left out: {why}")


def _plan(name: str, kind: str, notes: Sequence[ColumnNote]) -> ColumnPlan:
    """Return what becomes of a column that is of one kind at these sites."""
    gaps = any(note.gaps for note in notes)
    marked = ", gaps are marked" if gaps else ""
    middles = [note.middle for note in notes if note.middle is not None]
    middle = float(np.median(middles)) if middles else 0.0
    if kind == "left out":
        return _left_out(name, "its entries name rows, or are of a type that cannot become numbers")
    if kind == "number":
        return ColumnPlan(name, kind, f"number{marked}", fills=(middle,), indicator=gaps)
    if kind == "date":
        parts = tuple(part for part in DATE_PARTS if part != "hour" or any(note.hours for note in notes))
        fills = tuple(MIDDLES.get(part, middle) for part in parts)
        remark = f"date: {', '.join(parts)}{marked}"
        return ColumnPlan(name, kind, remark, fills=fills, parts=parts, indicator=gaps)
    # By how many sites name them, then by their mean place there; numbers of rows are not known.
    indices: dict[str, list[int]] = {}
    for note in notes:
        for index, level in enumerate(note.levels):
            indices.setdefault(level, []).append(index)
    order = {level: (-len(result), sum(result) / len(result), level) for level, result in indices.items()}
    levels = tuple(sorted(order, key=lambda level: order[level])[:MOST_LEVELS])
    if not levels:
        return _left_out(name, "no entry is that of enough rows at any site")
    remark = f"category: {len(levels)} entries, {levels[0]!r} as reference, all others joined{marked}"
    return ColumnPlan(name, kind, remark, levels=levels, other=True, indicator=gaps)


def _unit_notes(name: str, noted: Sequence[tuple[str, ColumnNote]]) -> list[str]:
    """Say at which sites a column's numbers are of another size than at most."""
    sizes = {site: note.size for site, note in noted if note.size}
    if len(sizes) < 2:
        return []
    usual = float(np.median(list(sizes.values())))
    return [
        f"{name!r} is about {_rounded(size / usual):g} times as large at {site!r} as usual: check its units."
        for site, size in sizes.items()
        if abs(math.log(size / usual)) >= math.log(OTHER_UNITS)
    ]


def agree(messages: Sequence[Columns]) -> Encoding:
    """Return the encoding that follows from all sites' notes.

    Parameters
    ----------
    messages : sequence of Columns
        From all sites.

    Returns
    -------
    Encoding
        The same for the same messages in any order. A column is left out unless more than half of the sites
        have it, and of one kind.
    """
    if not messages:
        raise ProtocolError("No site has described its columns yet: run `coterie columns` at every site.")
    known = sorted(messages, key=lambda message: message.site)
    targets = Counter(message.target.name for message in known)
    target = max(targets, key=lambda name: targets[name])
    notes = [
        f"{message.site!r} predicts {message.target.name!r} and has no say."
        for message in known
        if message.target.name != target
    ]
    known = [message for message in known if message.target.name == target]
    by_site = {message.site: {note.name: note for note in message.columns} for message in known}
    names = dict.fromkeys(name for result in by_site.values() for name in result)
    plans = []
    classes = _agreed_classes(known, notes)
    notes += _unit_notes(target, [(message.site, message.target) for message in known])
    for name in names:
        noted = [(site, result[name]) for site, result in by_site.items() if name in result]
        kinds = Counter(note.kind for _, note in noted)
        kind = max(kinds, key=lambda kind: kinds[kind])
        fitting = [(site, note) for site, note in noted if note.kind == kind]
        # One site must not take a column from all others.
        if 2 * len(fitting) <= len(by_site):
            plans.append(_left_out(name, f"only {len(fitting)} of {len(by_site)} sites have it as a {kind}"))
            continue
        plans.append(_plan(name, kind, [note for _, note in fitting]))
        notes += _unit_notes(name, fitting)
        others = [site for site in by_site if site not in dict(fitting)]
        if others and kind != "left out":
            notes.append(
                f"{listed(others)} cannot take part unless {name!r} is a {kind} there, as at most sites."
            )
    notes += [f"Column {plan.name!r} is {plan.remark}." for plan in plans if plan.kind == "left out"]
    try:
        TableEncoder.from_columns(tuple(plans))
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    said = tuple(note[:LONGEST_NOTE] for note in notes)
    return Encoding(target, tuple(plans), tuple(by_site), said, classes)


def follows(encoding: Encoding, messages: Sequence[Columns]) -> bool:
    """Tell whether an encoding is what the notes of its sites lead to, whoever wrote it."""
    said = [message for message in messages if message.site in encoding.sites]
    if not said:
        return False
    result = agree(said)
    return replace(result, notes=()) == replace(encoding, notes=())
