"""What a run leaves in its folder, and how an interrupted one is taken up again.

``settings.json`` says what the numbers belong to; ``results.csv`` holds them, the same bytes from the same
seed; ``seconds.csv`` holds the times, which differ from run to run. While a run lasts, every finished
replication is a line of ``journal.jsonl``, forced to the disk; with the results written, it goes.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from coterie._files import write_bytes
from reproductions.harness.experiment import Record

SETTINGS = "settings.json"
RESULTS = "results.csv"
SECONDS = "seconds.csv"
JOURNAL = "journal.jsonl"


@dataclass(frozen=True)
class Replication:
    """A finished replication.

    Parameters
    ----------
    number : int
        Counted from 0.
    seconds : float
        Processor time that it took.
    records : tuple of mapping
        What it measured.
    """

    number: int
    seconds: float
    records: tuple[Record, ...]


def plain(value: Any) -> Any:
    """Return a scalar as Python's own type, so that it is written the same everywhere."""
    value = value.item() if isinstance(value, np.generic) else value
    if value is not None and not isinstance(value, bool | int | float | str):
        raise TypeError(f"A record holds scalars and texts only. Got {value!r}.")
    return value


def write_atomically(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    write_bytes(path, text.encode())


def append_to_journal(folder: Path, replication: Replication) -> None:
    """Add a finished replication to the journal, on the disk before this returns."""
    line = json.dumps(
        {
            "replication": replication.number,
            "seconds": replication.seconds,
            "records": [dict(record) for record in replication.records],
        }
    )
    with (folder / JOURNAL).open("a+b") as stream:
        # A line torn by a kill would swallow this one: end it first.
        if stream.tell() and _last_byte(stream) != b"\n":
            stream.write(b"\n")
        stream.write(line.encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())


def _last_byte(stream: Any) -> bytes:
    stream.seek(-1, os.SEEK_END)
    last: bytes = stream.read(1)
    return last


def read_journal(folder: Path) -> dict[int, Replication]:
    """Return the journal's replications by number; a line that is not whole counts as not there."""
    path = folder / JOURNAL
    found: dict[int, Replication] = {}
    for line in path.read_bytes().split(b"\n") if path.is_file() else []:
        try:
            entry = json.loads(line)
            replication = Replication(entry["replication"], entry["seconds"], tuple(entry["records"]))
        except (ValueError, TypeError, KeyError):
            continue
        if _is_whole(replication):
            found[replication.number] = replication
    return found


def _is_whole(replication: Replication) -> bool:
    """Tell whether a line that can be read is one that was written here."""
    numbers = type(replication.number) is int and isinstance(replication.seconds, int | float)
    return numbers and bool(replication.records) and all(isinstance(r, dict) for r in replication.records)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    # repr gives the shortest digits from which the same number is read back.
    return repr(value) if isinstance(value, float) else str(value)


def _value(cell: str | None) -> Any:
    if cell is None:
        return None
    if cell in ("", "True", "False"):
        return {"": None, "True": True, "False": False}[cell]
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            continue
    return cell


def flat_records(replications: Iterable[Replication]) -> list[Record]:
    """Return all records in the order of the replications, each with its replication's number."""
    ordered = sorted(replications, key=lambda replication: replication.number)
    return [{"replication": r.number, **record} for r in ordered for record in r.records]


def results_text(records: Iterable[Record]) -> str:
    """Return the content of ``results.csv``: a column for every name that any record has."""
    rows = list(records)
    names = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([_cell(row.get(name)) for name in names] for row in rows)
    return text.getvalue()


def read_results(path: Path) -> list[Record]:
    """Read the records of a ``results.csv``; a cell without content is left out of its record."""
    with path.open(newline="", encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    return [{name: _value(cell) for name, cell in row.items() if cell != ""} for row in rows]


def _numbered(path: Path) -> list[tuple[int, Record]]:
    """Return the rows of a file with the number of their replication, or say that it is damaged."""
    if not path.is_file():
        return []
    try:
        rows = [dict(row) for row in read_results(path)]
        # A row that is cut short has cells of None, one that is too long has a name of None.
        if any(None in row or None in row.values() for row in rows):
            raise ValueError("a row has too few or too many cells")
        return [(int(row.pop("replication")), row) for row in rows]
    except (ValueError, TypeError, KeyError) as cause:
        raise ValueError(
            f"{path} is damaged ({cause}): give --force to begin anew, or another folder by --out."
        ) from cause


def read_finished(folder: Path) -> dict[int, Replication]:
    """Return every replication that the folder holds, from its results and from its journal."""
    finished: dict[int, list[Record]] = {}
    for number, record in _numbered(folder / RESULTS):
        finished.setdefault(number, []).append(record)
    seconds = {number: float(row.get("seconds", "nan")) for number, row in _numbered(folder / SECONDS)}
    done = {r: Replication(r, seconds.get(r, float("nan")), tuple(rows)) for r, rows in finished.items()}
    return {**done, **read_journal(folder)}


def write_finished(folder: Path, replications: Iterable[Replication]) -> list[Record]:
    """Write results and times, drop the journal, and return the records."""
    ordered = sorted(replications, key=lambda replication: replication.number)
    records = flat_records(ordered)
    write_atomically(folder / RESULTS, results_text(records))
    times = [{"replication": r.number, "seconds": round(r.seconds, 3)} for r in ordered]
    write_atomically(folder / SECONDS, results_text(times))
    (folder / JOURNAL).unlink(missing_ok=True)
    return records


def settings_text(stamp: Mapping[str, Any]) -> str:
    """Return the content of ``settings.json``."""
    return json.dumps(stamp, indent=2, sort_keys=True) + "\n"


def read_settings(folder: Path) -> dict[str, Any] | None:
    """Return what the folder's numbers belong to, or None where there are none."""
    path = folder / SETTINGS
    if not path.is_file():
        return None
    try:
        stamp = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}
    return stamp if isinstance(stamp, dict) else {}


def differences(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Name what differs between two stamps, nested settings by their own names."""
    # Through JSON, so that a tuple equals the list it is written as.
    here, there = (json.loads(json.dumps(stamp)) for stamp in (mine, theirs))
    found = []
    for name in sorted({*here, *there}):
        ours, other = here.get(name), there.get(name)
        if ours == other:
            continue
        if isinstance(ours, dict) and isinstance(other, dict):
            found += differences(ours, other)
        else:
            found.append(f"{name} ({json.dumps(other)} there, {json.dumps(ours)} asked for)")
    return found
