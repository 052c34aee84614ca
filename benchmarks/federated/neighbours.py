"""Neighbouring files: one cell of one row is changed. How far does that move what is sent?

    python benchmarks/federated/neighbours.py [OUTPUT]

Each file has thirty rows with a number, a category of the levels "0", "1" and "2", a category of words and
a date. In its neighbour, one cell has another text: other ways to write numbers, words for nothing, quotes,
line ends, signs of formulas. Files are CSV (the text raw, or as a writer quotes it), Excel and Parquet (with
columns of text, or of the types that the texts have). Both files go through ``coterie share --epsilon`` and
through Flower's node, up to where noise would be added. Counted are neighbours that are refused, and those
where rows that did not change are read differently, or the sums zz' move by more than the square root of two.
If a text has the line end of its file, only the rows that did not change are compared: the row became two.

``neighbours.txt`` has the counts of the code as it is, and those of 0.2.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path
from typing import Any
from unittest import mock
from xml.sax.saxutils import escape

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import polars as pl

from coterie.cli.app import main as command
from coterie.federated.moments.site import bounded_rows
from coterie.flower.moments import moments_of_node

NAMES = ("x", "level", "word", "day", "y")
ROWS = [
    (f"{0.1 * k:.1f}", str(k % 3), ("red", "blue")[k % 2], f"2020-01-{k + 1:02d}", f"{k % 7}")
    for k in range(30)
]
SCHEMA = {
    "target": {"name": "y", "low": 0, "high": 7},
    "columns": [
        {"name": "x", "low": 0, "high": 3, "missing": True},
        {"name": "level", "kind": "category", "levels": ["0", "1", "2"]},
        {"name": "word", "kind": "category", "levels": ["red", "blue"], "missing": True},
        {"name": "day", "kind": "date", "low": 2010, "high": 2030},
    ],
}
NUMBERS = ("1.5", "1,5", "1e3", "1e400", "-0", "+1", "007", "1_000", "1.234,5", "99999999999999999999")
WORDS = (
    "abc",
    "?",
    "NA",
    "nan",
    "inf",
    "true",
    "",
    " ",
    "2020-13-45",
    "31.12.2020",
    "2020-01-01 12:30:00",
    "\u0663",
)
SIGNS = (
    '"',
    '""',
    'a"b',
    '"a',
    'a"',
    "'=1",
    "=1+1",
    ",",
    "1,2",
    ";",
    "a\nb",
    '"\n',
    "\r\n",
    "\n",
    '1"\n"2',
    "#N/A",
    "\\",
)
TEXTS = (*NUMBERS, *WORDS, *SIGNS)
PLACES = [(row, column) for row in (0, 29) for column in range(len(NAMES))]

Rows = Sequence[Sequence[str]]


def raw_csv(path: Path, rows: Rows) -> None:
    """Write texts as they are, whatever is in them."""
    path.write_text("".join(",".join(row) + "\n" for row in (NAMES, *rows)), newline="")


def quoted_csv(path: Path, rows: Rows) -> None:
    """Write as a spreadsheet does: lines end with two signs, and quotes are where they are needed."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])


def text_parquet(path: Path, rows: Rows) -> None:
    """Write columns of text."""
    pl.DataFrame(rows, schema=list(NAMES), orient="row").write_parquet(path)


def _typed(texts: Sequence[str]) -> pl.Series:
    """Return a column of the first type that all of its texts have."""
    column = pl.Series([text or None for text in texts], dtype=pl.String)
    for kind in (pl.Int64, pl.Float64, pl.Boolean, pl.Date):
        try:
            return column.str.to_date() if kind == pl.Date else column.cast(kind)
        except pl.exceptions.PolarsError:
            continue
    return column


def typed_parquet(path: Path, rows: Rows) -> None:
    """Write columns of the types that their texts have."""
    pl.DataFrame(dict(zip(NAMES, map(_typed, zip(*rows, strict=True)), strict=True))).write_parquet(path)


def excel(path: Path, rows: Rows) -> None:
    """Write a workbook in which texts that are numbers are numbers."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"

    def cell(text: str) -> str:
        try:
            return f"<c><v>{float(text)!r}</v></c>" if np.isfinite(float(text)) else f"<c>{text}</c>"
        except ValueError:
            return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(text)}</t></is></c>'

    lines = "".join(f"<row>{''.join(map(cell, row))}</row>" for row in (NAMES, *rows))
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{package}/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="w" '
        f'Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>'
        '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" '
        f'Type="{office}/worksheet" Target="worksheets/s1.xml"/></Relationships>',
        "xl/worksheets/s1.xml": f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>',
    }
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)


# The line ends that make a text several lines.
LINE_ENDS = {"CSV, raw": "\n", "CSV, quoted": "\r\n"}
WRITERS: dict[str, tuple[str, Callable[[Path, Rows], None]]] = {
    "CSV, raw": (".csv", raw_csv),
    "CSV, quoted": (".csv", quoted_csv),
    "Excel": (".xlsx", excel),
    "Parquet, text": (".parquet", text_parquet),
    "Parquet, typed": (".parquet", typed_parquet),
}


class _SeenError(Exception):
    """The rows that a message would be made of were seen."""


def _seen(found: list[Any]) -> Callable[..., Any]:
    def stop(X: Any, y: Any, *, schema: Any, **_: Any) -> Any:
        found.append(bounded_rows(X, y, schema))
        raise _SeenError

    return stop


def by_command(path: Path, schema: Path) -> Any:
    """Return the bounded rows (n, q) of a file by ``coterie share``; None where it is refused."""
    words = [
        "coterie",
        "share",
        str(path),
        "--name",
        "a",
        "--epsilon",
        "1",
        "--schema",
        str(schema),
        "--dry-run",
    ]
    found: list[Any] = []
    quiet = io.StringIO()
    with (
        mock.patch.object(sys, "argv", words),
        mock.patch("coterie.cli.moments.moments_of", _seen(found)),
        redirect_stdout(quiet),
        redirect_stderr(quiet),
        suppress(SystemExit, _SeenError),
    ):
        command()
    return found[0] if found else None


def by_flower(path: Path, schema: Path) -> Any:
    """Return the bounded rows (n, q) of a file by Flower's node; None where it is refused."""
    from coterie.flower.client import _read_rows

    found: list[Any] = []
    config = {"epsilon": "1", "site": "a", "table": str(path), "schema": str(schema)}
    with mock.patch("coterie.flower.moments.send_once", _seen(found)):
        try:
            moments_of_node(config, _read_rows, lambda: None)  # type: ignore[arg-type,return-value]
        except _SeenError:
            pass
        # Whatever it is, the node would not send.
        except Exception:
            return None
    return found[0] if found else None


READERS = {"share": by_command, "Flower": by_flower}


def with_cell(row: int, column: int, text: str) -> Rows:
    """Return the rows with another text in one cell."""
    changed = [list(line) for line in ROWS]
    changed[row][column] = text
    return changed


def outcome_of(kind: str, text: str, row: int, first: Any, second: Any) -> str:
    """Return what comes of a pair, whose bounded rows are given: (n, q), or None where it is refused."""
    if first is None or second is None:
        return "refused"
    # Such a text is several lines, and so several rows.
    split = LINE_ENDS.get(kind, "none") in text
    if not split and np.linalg.norm(first.T @ first - second.T @ second) > np.sqrt(2) + 1e-9:
        return "moved too far"
    after = len(first) - row - 1
    length = len(second) > after if split else len(second) == len(first)
    before = np.array_equal(first[:row], second[:row])
    same = length and before and np.array_equal(first[row + 1 :], second[len(second) - after :])
    return "kept" if same else "other rows changed"


def pairs(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield, for each pair, the reader, the kind of file and what came of it."""
    schema = folder / "schema.json"
    schema.write_text(json.dumps(SCHEMA))
    for kind, (suffix, write) in WRITERS.items():
        readers = {name: read for name, read in READERS.items() if name == "share" or kind != "Excel"}
        path = folder / f"rows{suffix}"
        write(path, ROWS)
        base = {name: read(path, schema) for name, read in readers.items()}
        for row, column in PLACES:
            for text in TEXTS:
                write(path, with_cell(row, column, text))
                for name, read in readers.items():
                    yield name, kind, outcome_of(kind, text, row, base[name], read(path, schema))


def main() -> None:
    """Count, and write the counts."""
    with tempfile.TemporaryDirectory() as folder:
        counts = Counter(pairs(Path(folder)))
    outcomes = ("kept", "refused", "other rows changed", "moved too far")
    lines = [f"{'reader':8} {'file':15} {'pairs':>6} " + " ".join(f"{each:>18}" for each in outcomes)]
    for reader, kind in dict.fromkeys((reader, kind) for reader, kind, _ in counts):
        each = [counts[reader, kind, outcome] for outcome in outcomes]
        lines.append(f"{reader:8} {kind:15} {sum(each):6d} " + " ".join(f"{count:18d}" for count in each))
    text = "\n".join(lines) + "\n"
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
