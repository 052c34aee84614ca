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
# Of a categorical column: the most levels that a site names, and that get an indicator column of their own.
MOST_NAMED, MOST_LEVELS = 50, 12
# Characters of a level's name, and of a note for readers.
LONGEST_LEVEL, LONGEST_NOTE = 100, 400
# Sizes that differ by this factor or more look like other units: the smallest steps of units are 10 and 1000.
OTHER_UNITS = 5.0
# What stands for missing parts of a date: the middle of each.
MIDDLES = {"month": 6.0, "weekday": 4.0, "hour": 12.0}


def _rounded(value: float) -> float:
    """Return a number rounded to one significant digit, so that it tells little about single rows.

    A number that is not finite becomes zero.
    """
    return float(f"{value:.0e}") if math.isfinite(value) else 0.0


def _median_and_size(series: Any, kind: str, fewest: int) -> tuple[float | None, float | None]:
    """Return the median of a column, and of its absolute values; None for what cannot be said.

    Both are rounded to one digit. A date has the median year, rounded to ten. With fewer than ``fewest``
    entries nothing is said, for the median of a few rows would give them away.
    """
    present = series.drop_nulls()
    if kind == "date":
        years = np.asarray(present.dt.year().to_numpy(), dtype=float)
        return (float(np.round(np.median(years), -1)) if len(years) >= fewest else None), None
    if series.dtype == nw.Duration:
        return None, None
    numbers = np.array(present.cast(nw.Float64).to_numpy(), dtype=float)
    numbers = numbers[np.isfinite(numbers)]
    if len(numbers) < fewest:
        return None, None
    return _rounded(float(np.median(numbers))), _rounded(float(np.median(np.abs(numbers))))


def _frequent_levels(series: Any, fewest: int) -> tuple[str, ...]:
    """Return the entries of a column that ``fewest`` rows or more have, the most frequent first.

    Rarer entries are never named: they could point to single persons.
    """
    n_rows_by_level = Counter(series.cast(nw.String).drop_nulls().to_list())
    frequent = [level for level, count in n_rows_by_level.items() if count >= fewest]
    printable = [level for level in frequent if level.isprintable() and len(level) <= LONGEST_LEVEL]
    return tuple(sorted(printable, key=lambda level: (-n_rows_by_level[level], level))[:MOST_NAMED])


def describe_column(name: str, series: Any, fewest: int = FEWEST_WITH_LEVEL) -> ColumnNote:
    """Return what a site says of a column: its kind, levels, gaps, median and size.

    ``series`` is a narwhals Series. Nothing is said of fewer than ``fewest`` rows. The kind is that of a
    local encoding (`plan_column`), except where this site alone cannot know it.
    """
    kind = plan_column(name, series, MOST_LEVELS, 0.0).kind
    if kind == "left out" and (series.dtype.is_numeric() or series.dtype == nw.Boolean):
        # Constant or empty here, it may vary elsewhere.
        kind = "number"
    # NaN in a column of floats is a gap, too. Few gaps are not mentioned: they could point to single rows.
    with_gaps = series.cast(nw.Float64).fill_nan(None) if series.dtype.is_float() else series
    has_gaps = int(with_gaps.is_null().sum()) >= fewest
    levels = _frequent_levels(series, fewest) if kind == "category" else ()
    if kind == "left out" and series.dtype in (nw.String, nw.Categorical, nw.Enum):
        # Entries that many rows have are no names of rows: a column with one value here.
        levels = _frequent_levels(series, fewest)
        kind = "category" if levels else kind
    has_hours = kind == "date" and series.dtype == nw.Datetime
    median, size = _median_and_size(series, kind, fewest) if kind in ("number", "date") else (None, None)
    return ColumnNote(
        name=name, kind=kind, levels=levels, gaps=has_gaps, hours=has_hours, middle=median, size=size
    )


def describe_classes(name: str, series: Any, fewest: int = FEWEST_WITH_LEVEL) -> ColumnNote:
    """Return what a site says of a response that is a class: the classes of ``fewest`` rows or more.

    Missing labels do not count: NaN is the only value that differs from itself. Rare classes are not named,
    for they could point to single persons.
    """
    n_rows_by_class = Counter(label_text(label) for label in series.drop_nulls().to_list() if label == label)
    frequent = sorted(label for label, count in n_rows_by_class.items() if count >= fewest)
    printable = tuple(label for label in frequent if label.isprintable() and 0 < len(label) <= LONGEST_LEVEL)
    return ColumnNote(
        name=name,
        kind=CLASS,
        levels=printable[:MOST_CLASSES],
        gaps=False,
        hours=False,
        middle=None,
        size=None,
    )


def describe_columns(
    table: Any,
    *,
    site: str,
    target: str,
    columns: Sequence[str],
    fewest: int = FEWEST_WITH_LEVEL,
    classes: bool = False,
) -> Columns:
    """Return what a site says of its table, before any encoding is agreed on and anything is learnt.

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
    frame = nw.from_native(table, eager_only=True)
    target_note = (describe_classes if classes else describe_column)(target, frame[target], fewest)
    predictor_notes = tuple(describe_column(name, frame[name], fewest) for name in columns)
    return Columns(
        site=site,
        target=target_note,
        columns=predictor_notes,
        fewest=fewest,
        software=software_versions(),
    )


def _agreed_classes(messages: Sequence[Columns], notes: list[str]) -> tuple[str, ...]:
    """Return all classes that any site names, sorted; none where the response is a number at most sites.

    A site may lack a class that others have, hence the union. Sentences about sites that do not fit in are
    added to ``notes``, in place.
    """
    with_classes = [message for message in messages if message.target.kind == CLASS]
    if 2 * len(with_classes) <= len(messages):
        notes += [f"{message.site!r} alone takes the target for a class." for message in with_classes]
        return ()
    others = [message.site for message in messages if message.target.kind != CLASS]
    if others:
        notes.append(f"{listed(others)} cannot take part unless the target is a class there, too.")
    labels = {label for message in with_classes for label in message.target.levels}
    if len(labels) < 2:
        raise ProtocolError(
            f"Only the classes {sorted(labels)} are those of enough rows at some site: lower --fewest there."
        )
    if len(labels) > MOST_CLASSES:
        raise ProtocolError(f"The sites name {len(labels)} classes: {MOST_CLASSES} are the most.")
    return tuple(sorted(labels, key=_label_order))


def _label_order(label: str) -> tuple[bool, float, str]:
    """Return a sort key of labels: numbers by their size, then texts in alphabetical order."""
    try:
        return False, float(label), label
    except ValueError:
        return True, 0.0, label


def _left_out(name: str, why: str) -> ColumnPlan:
    """Return the plan of a column that is not used; ``why`` ends the remark that readers see."""
    return ColumnPlan(name, "left out", f"left out: {why}")


def _plan(name: str, kind: str, notes: Sequence[ColumnNote]) -> ColumnPlan:
    """Return how all sites encode a column, from the notes of those sites that have it as this kind.

    Gaps are filled with the median of the sites' medians, and an indicator marks them where any site has
    some. Every site must use the same plan: else the same numbers would mean different things.
    """
    has_gaps = any(note.gaps for note in notes)
    gap_remark = ", gaps are marked" if has_gaps else ""
    medians = [note.middle for note in notes if note.middle is not None]
    fill = float(np.median(medians)) if medians else 0.0
    if kind == "left out":
        return _left_out(name, "its entries name rows, or are of a type that cannot become numbers")
    if kind == "number":
        return ColumnPlan(name, kind, f"number{gap_remark}", fills=(fill,), indicator=has_gaps)
    if kind == "date":
        parts = tuple(part for part in DATE_PARTS if part != "hour" or any(note.hours for note in notes))
        fills = tuple(MIDDLES.get(part, fill) for part in parts)
        remark = f"date: {', '.join(parts)}{gap_remark}"
        return ColumnPlan(name, kind, remark, fills=fills, parts=parts, indicator=has_gaps)
    # Levels that many sites name come first, then those that are frequent there. Numbers of rows are not
    # known, so that frequency is the mean rank in the sites' lists.
    ranks: dict[str, list[int]] = {}
    for note in notes:
        for rank, level in enumerate(note.levels):
            ranks.setdefault(level, []).append(rank)
    sort_keys = {
        level: (-len(ranks_of_level), sum(ranks_of_level) / len(ranks_of_level), level)
        for level, ranks_of_level in ranks.items()
    }
    levels = tuple(sorted(sort_keys, key=lambda level: sort_keys[level])[:MOST_LEVELS])
    if not levels:
        return _left_out(name, "no entry is that of enough rows at any site")
    remark = f"category: {len(levels)} entries, {levels[0]!r} as reference, all others joined{gap_remark}"
    return ColumnPlan(name, kind, remark, levels=levels, other=True, indicator=has_gaps)


def _unit_notes(name: str, notes_by_site: Sequence[tuple[str, ColumnNote]]) -> list[str]:
    """Return a sentence for each site whose numbers in a column suggest other units than elsewhere.

    ``notes_by_site`` pairs sites with their notes. Sizes, medians of absolute values, are compared with the
    median site; for example grams beside kilograms differ by 1000.
    """
    sizes = {site: note.size for site, note in notes_by_site if note.size}
    if len(sizes) < 2:
        return []
    usual = float(np.median(list(sizes.values())))
    return [
        f"{name!r} is about {_rounded(size / usual):g} times as large at {site!r} as usual: check its units."
        for site, size in sizes.items()
        if abs(math.log(size / usual)) >= math.log(OTHER_UNITS)
    ]


def agree(messages: Sequence[Columns]) -> Encoding:
    """Return the encoding of all sites' tables as numbers that follows from what sites say of their columns.

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
    voters = sorted(messages, key=lambda message: message.site)
    votes_for_targets = Counter(message.target.name for message in voters)
    # The target of most sites counts; sites with another one have no say.
    target = max(votes_for_targets, key=lambda name: votes_for_targets[name])
    notes = [
        f"{message.site!r} predicts {message.target.name!r} and has no say."
        for message in voters
        if message.target.name != target
    ]
    voters = [message for message in voters if message.target.name == target]
    by_site = {message.site: {note.name: note for note in message.columns} for message in voters}
    # A dict keeps the order in which columns first appear.
    column_names = dict.fromkeys(name for notes_of_site in by_site.values() for name in notes_of_site)
    plans = []
    classes = _agreed_classes(voters, notes)
    notes += _unit_notes(target, [(message.site, message.target) for message in voters])
    for name in column_names:
        having_it = [
            (site, notes_of_site[name]) for site, notes_of_site in by_site.items() if name in notes_of_site
        ]
        # For each column the kind that most sites state, among number, category, date and left out.
        votes_for_kinds = Counter(note.kind for _, note in having_it)
        kind = max(votes_for_kinds, key=lambda kind: votes_for_kinds[kind])
        same_kind = [(site, note) for site, note in having_it if note.kind == kind]
        # One site must not take a column from all others.
        if 2 * len(same_kind) <= len(by_site):
            plans.append(
                _left_out(name, f"only {len(same_kind)} of {len(by_site)} sites have it as a {kind}")
            )
            continue
        plans.append(_plan(name, kind, [note for _, note in same_kind]))
        notes += _unit_notes(name, same_kind)
        others = [site for site in by_site if site not in dict(same_kind)]
        if others and kind != "left out":
            notes.append(
                f"{listed(others)} cannot take part unless {name!r} is a {kind} there, as at most sites."
            )
    notes += [f"Column {plan.name!r} is {plan.remark}." for plan in plans if plan.kind == "left out"]
    try:
        # Only a check: plans that no table could be encoded by are refused here.
        TableEncoder.from_columns(tuple(plans))
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    short_notes = tuple(note[:LONGEST_NOTE] for note in notes)
    return Encoding(
        target=target, columns=tuple(plans), sites=tuple(by_site), notes=short_notes, classes=classes
    )


def follows(encoding: Encoding, messages: Sequence[Columns]) -> bool:
    """Tell whether an encoding is the one that the notes of its sites lead to, whoever wrote it.

    Any participant can compute it again, so that nobody has to be trusted. Notes for readers may differ.
    """
    from_its_sites = [message for message in messages if message.site in encoding.sites]
    if not from_its_sites:
        return False
    recomputed = agree(from_its_sites)
    return replace(recomputed, notes=()) == replace(encoding, notes=())
