"""Hostile inputs for the command line: good files and options, bent in one to three ways.

Everything happens in the folder that is current: files are written there, and paths are relative to it.
"""

from __future__ import annotations

import gzip
import io
import os
import random
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from expansions import lying

WORKBOOK = "a workbook of two cells far apart"
TEXTS = [
    "", " ", "²", "9" * 5000, "-1", "0", "1e3", "nan", "inf", "%%%", "\x1b[31mred", "\u202eevil", "\x07",
    "../..", "/dev/full", "/dev/null/x", "a" * 300, "a/" * 3000, "--", "-", "'; ls", "=1+1", "{}", "None",
    "\u00e9", "\udc80", "base64", "utf-16", "idna", "tcp://127.0.0.1:1", "tcp://x", "missing.csv",
    "table.csv", ".", "~", "*", "[", "$HOME", "1,2", "y", "site", "x0", "2", "linear", "nosuch", "\n", "\t",
    "\u2028", "\U0001f600", "/", "link", "dangling",
]  # fmt: skip
# Of each command, the options that take a value.
OPTIONS = {
    "fit": (
        "--target", "--group", "--features", "--drop", "--candidates", "--n-clusters", "--max-clusters",
        "--collaboration", "--out", "--seed", "--jobs", "--landmarks", "--device", "--scheduler", "--memory",
        "--delimiter", "--encoding", "--from-nvflare", "--metric", "--nosuch", "",
    ),
    "predict": ("--out", "--delimiter", "--encoding", "--name", "--known-keys", "--own", "--nosuch", ""),
    "admit": ("--out", "--delimiter", "--encoding", ""),
    "inspect": ("",),
    "report": ("--out", ""),
    "keygen": ("--name", "--out"),
    "share": (
        "--target", "--name", "--folder", "--features", "--drop", "--candidates", "--seed", "--sign",
        "--known-keys", "--epsilon", "--delta", "--schema", "--moments", "--delimiter", "--encoding", "",
    ),
    "columns": (
        "--target", "--name", "--folder", "--features", "--drop", "--fewest", "--sign", "--known-keys",
        "--delimiter", "--encoding", "",
    ),
    "score": (
        "--target", "--name", "--folder", "--wait", "--sign", "--known-keys", "--delimiter", "--encoding", "",
    ),
    "conclude": (
        "--folder", "--leave-out", "--n-clusters", "--max-clusters", "--min-rows", "--refine-rounds",
        "--seed", "--wait", "--sign", "--known-keys",
    ),
}  # fmt: skip
# Time that a command is to wait for is not what is tested here.
LENGTHY = {("score", "--wait"), ("conclude", "--wait")}
# An id that takes the place of each letter, the partition being the same.
RENAMED: dict[str, Callable[[str], str]] = {
    "formulas": lambda s: f"=cmd|' /C calc'!{s}",
    "signs": lambda s: f"{'+-@'[ord(s) % 3]}{s}",
    "negative numbers": lambda s: str(-ord(s)),
    "apostrophes": lambda s: f"''{s}",
    "control characters": lambda s: f"\x1b[3{ord(s) % 8}m{s}\u202e\x07",
    "ends of lines": lambda s: f"{s}\n{s}\r",
    "long names": lambda s: s * 3000,
    "quotes": lambda s: f'"{s}",;\t',
    "other scripts": lambda s: f"\u05d0\u0416\U0001f600{s}",
    "spaces": lambda s: f" {s} ",
    "markup": lambda s: f"[red]{s}[/red]<script>",
}


@dataclass
class Command:
    """A command, and what must come of it.

    Parameters
    ----------
    arguments : list of str
        Behind ``coterie``.
    spoiled : bool
        Whether the answer may be another one, or a refusal.
    changes : list of str
        How it was bent.
    """

    arguments: list[str]
    spoiled: bool = False
    changes: list[str] = field(default_factory=list)


def make_table() -> Any:
    """Return six learners of two truths, a, c, e and b, d, f, as a polars table."""
    import polars as pl

    from coterie.datasets import make_linear_learners

    data = make_linear_learners(n_learners=6, n_truths=2, n_rows=20, n_features=2, random_state=0)
    sites = ["abcdef"[int(name[-2:])] for name in data.groups.tolist()]
    return pl.DataFrame(data.X, schema=["x0", "x1"]).with_columns(y=pl.Series(data.y), site=pl.Series(sites))


def _csv(table: Any, **options: Any) -> bytes:
    content: bytes = table.write_csv(**options).encode()
    return content


def _keep(table: Any, draw: random.Random, names: list[str]) -> tuple[str, bytes, list[str], str]:
    """Write a table in a way that keeps its answer: the file's name, bytes, options, and the way."""
    import polars as pl

    formats = "csv parquet arrow gzip tabs semicolons latin-1 utf-16 mark windows stream"
    change = draw.choice([*formats.split(), "order", "categories", "wide", "units", "blank cells", *names])
    if change in RENAMED:
        table = table.with_columns(site=pl.Series([RENAMED[change](s) for s in table["site"]]))
        return ("table.csv", _csv(table), [], change) if draw.random() < 0.5 else _parquet(table, change)
    if change in ("parquet", "categories"):
        return _parquet(
            table.with_columns(pl.col("site").cast(pl.Categorical)) if change != "parquet" else table, change
        )
    if change in ("arrow", "stream"):
        buffer = io.BytesIO()
        (table.write_ipc if change == "arrow" else table.write_ipc_stream)(buffer)
        return "table.arrow", buffer.getvalue(), [], change
    if change == "order":
        table = table.sample(fraction=1.0, shuffle=True, seed=draw.randrange(99)).select(
            draw.sample(table.columns, 4)
        )
    if change == "wide":
        table = table.with_columns(pl.lit(1.0).alias(f"constant {k}") for k in range(500))
    if change == "blank cells":
        table = table.with_columns(empty=pl.lit(None, dtype=pl.String))
    if change == "units":
        table = table.with_columns(pl.col("x0") * 2.0 ** draw.choice((-600, -130, 130, 600)))
    content, text = _csv(table), _csv(table).decode()
    return {
        "gzip": ("table.csv.gz", gzip.compress(content), [], change),
        "tabs": ("table.tsv", _csv(table, separator="\t"), [], change),
        "semicolons": ("table.csv", _csv(table, separator=";"), ["--delimiter", ";"], change),
        "latin-1": ("table.csv", text.encode("latin-1"), ["--encoding", "latin-1"], change),
        "utf-16": ("table.csv", text.encode("utf-16"), ["--encoding", "utf-16"], change),
        "mark": ("table.csv", text.encode("utf-8-sig"), [], change),
        "windows": ("table.csv", text.replace("\n", "\r\n").encode(), [], change),
    }.get(change, ("table.csv", content, [], change))


def _parquet(table: Any, change: str) -> tuple[str, bytes, list[str], str]:
    buffer = io.BytesIO()
    table.write_parquet(buffer)
    return "table.parquet", buffer.getvalue(), [], f"{change}, in Parquet"


def _spoil_column(table: Any, draw: random.Random) -> tuple[Any, str]:
    """Spoil a column of a table that is saved as Parquet."""
    import polars as pl

    name = draw.choice(table.columns)
    n = table.height
    kinds: dict[str, Callable[[], Any]] = {
        "lists": lambda: [[1]] * n,
        "structs": lambda: [{"a": k % 3} for k in range(n)],
        "bytes": lambda: [b"\xff%d" % (k % 6) for k in range(n)],
        "nulls": lambda: [None] * n,
        "dates": lambda: pl.date_range(pl.date(2020, 1, 1), pl.date(2030, 1, 1), eager=True)[:n],
        "durations": lambda: pl.Series(range(n)).cast(pl.Duration),
        "times": lambda: pl.Series(range(n)).cast(pl.Time),
        "decimals": lambda: pl.Series([str(k % 6) for k in range(n)]).cast(pl.Decimal(10, 2)),
        "booleans": lambda: [k % 2 == 0 for k in range(n)],
        "NaN and infinity": lambda: [(float("nan"), float("inf"), 1.0)[k // 20 % 3] for k in range(n)],
        "huge numbers": lambda: [(1e308, -1e308, 1e-308)[k % 3] for k in range(n)],
        "huge integers": lambda: pl.Series([2**64 - 1, 0] * (n // 2), dtype=pl.UInt64),
        "one value": lambda: ["same"] * n,
        "a value each": lambda: [f"row {k}" for k in range(n)],
        "mostly numbers": lambda: ["1.5"] * (n - 1) + ["x"],
    }
    kind = draw.choice(list(kinds))
    return table.with_columns(pl.Series(name, kinds[kind](), strict=False)), f"{name} of {kind}"


def _spoil_bytes(content: bytes, draw: random.Random) -> tuple[bytes, str]:
    changes: dict[str, Callable[[], bytes]] = {
        "cut off": lambda: content[: draw.randrange(len(content))],
        "nothing": lambda: b"",
        "blank": lambda: b"\n \n\n",
        "noise": lambda: draw.randbytes(5000),
        "flipped": lambda: bytes(b ^ (draw.random() < 0.01) * 0xFF for b in content),
        "NUL": lambda: content.replace(b",", b"\0", 50),
        "twice": lambda: content + content,
        "a long line": lambda: content + b"9" * 2**20,
        "quotes": lambda: content.replace(b",", b'"', 3),
        "many commas": lambda: content.replace(b"\n", b",,,\n", 20),
        "a header alone": lambda: content.split(b"\n")[0] + b"\n",
        "twice the same name": lambda: content.replace(b"x1", b"x0", 1),
    }
    change = draw.choice(list(changes))
    return changes[change](), change


def _spoil_file(name: str, content: bytes, draw: random.Random) -> tuple[str, str]:
    """Put something else where the file should be; return what is named, and what it is."""
    path = Path(name)
    things: dict[str, Callable[[], Any]] = {
        "a pipe": lambda: os.mkfifo(path),
        "a folder": path.mkdir,
        "a link to nowhere": lambda: path.symlink_to("nowhere"),
        "a link to itself": lambda: path.symlink_to(name),
        "an endless device": lambda: path.symlink_to("/dev/zero"),
        "a gzip bomb": lambda: Path(f"{path.stem}.csv.gz").write_bytes(bomb()),
        "another format": lambda: path.with_suffix(".parquet").write_bytes(content),
        "no file": lambda: None,
        WORKBOOK: lambda: path.with_suffix(".xlsx").write_bytes(workbook(draw)),
    }
    thing = draw.choice(list(things))
    things[thing]()
    return name if thing != WORKBOOK else f"{path.stem}.xlsx", thing


def workbook(draw: random.Random) -> bytes:
    """Return a workbook of a kilobyte with two cells, far apart."""
    last = draw.choice(("XFD1048576", "A1048576", "XFD2", "ZZ100000"))
    main, office = "spreadsheetml/2006/main", "officeDocument/2006/relationships"
    root, package = "http://schemas.openxmlformats.org/", "package/2006/relationships"
    cells = f'<c r="A1"><v>1</v></c><c r="{last}"><v>1</v></c>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{root}package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{root}{package}"><Relationship Id="w" '
        f'Type="{root}{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{root}{main}" xmlns:r="{root}{office}"><sheets>'
        '<sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{root}{package}"><Relationship Id="r1" '
        f'Type="{root}{office}/worksheet" Target="worksheets/s1.xml"/></Relationships>',
        "xl/worksheets/s1.xml": f'<worksheet xmlns="{root}{main}"><sheetData><row>{cells}</row></sheetData>'
        "</worksheet>",
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as book:
        for name, text in parts.items():
            book.writestr(zipfile.ZipInfo(name), text)
    return buffer.getvalue()


def bomb() -> bytes:
    """Return 0.4 MB that unpack to 400 MB of CSV."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0) as file:
        file.write(b"site,x0,x1,y\n")
        for _ in range(400):
            file.write(b"a,1,2,3.5\n" * 100_000)
    return buffer.getvalue()


def _longer(content: bytes) -> bytes:
    """Return a model file whose arrays go on for 200 MB behind the size that the zip declares."""
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    return lying(members, "arrays.npz", 200_000_000, len(members["arrays.npz"]))


def _usual(command: str, table: str) -> list[str]:
    """Return good arguments of a command."""
    model, folder = "good/fitted/model.coterie", "good/folder"
    common = ["--target", "y", "--candidates", "lr"]
    return {
        "fit": ["fit", table, *common, "--group", "site", "--no-report", "--out", "out"],
        "predict": ["predict", model, table],
        "admit": ["admit", model, "good/new.csv"],
        "inspect": ["inspect", model],
        "report": ["report", model],
        "keygen": ["keygen", "--name", "a", "--out", "a.key"],
        "share": ["share", "good/rows.csv", *common, "--name", "g", "--folder", folder],
        "columns": ["columns", "good/rows.csv", "--target", "y", "--name", "g", "--folder", folder],
        "score": ["score", "good/a.csv", "--name", "a", "--folder", folder],
        "conclude": ["conclude", "--folder", folder],
    }[command]


def _spoil_option(command: Command, draw: random.Random) -> None:
    verb = command.arguments[0]
    names = [name for name in OPTIONS[verb] if (verb, name) not in LENGTHY]
    name, value = draw.choice(names), draw.choice(TEXTS)
    command.arguments += [name, value] if name else [value]
    command.changes.append(f"{name or 'a further argument'} {ascii(value)[:40]}")


def _spoil_folder(draw: random.Random) -> str:
    """Damage a model or a file of the sealed folder, or put something endless in its place."""
    files = sorted(path for path in Path("good").rglob("*.coterie"))
    path = draw.choice(files)
    if draw.random() < 0.2:
        path.unlink()
        pipe = draw.random() < 0.5
        _ = os.mkfifo(path) if pipe else path.symlink_to("/dev/zero")
        return f"{path}: {'a pipe' if pipe else 'an endless device'}"
    if draw.random() < 0.2 and path.name == "model.coterie":
        path.write_bytes(_longer(path.read_bytes()))
        return f"{path}: a member longer than it says"
    content, change = _spoil_bytes(path.read_bytes(), draw)
    path.write_bytes(content)
    return f"{path}: {change}"


def bend_command(draw: random.Random) -> Command:
    """Write bent files into the current folder, where ``good`` lies; return what to run.

    Parameters
    ----------
    draw : random.Random
        What decides.

    Returns
    -------
    Command
        Its arguments.
    """
    verb = "fit" if draw.random() < 0.5 else draw.choice(list(OPTIONS))
    table = make_table()
    Path("precious").write_text("mine")
    Path("link").symlink_to("precious")
    Path("dangling").symlink_to("nowhere")
    name, content, options, change = _keep(table, draw, list(RENAMED) if verb == "fit" else [])
    command = Command([], changes=[verb, change])
    kind = draw.random() if verb in ("fit", "predict") else 1.0
    if kind < 0.15:
        spoiled, said = _spoil_column(table, draw)
        name, content, options, _ = _parquet(spoiled, "")
        command.changes[1] = said
    elif kind < 0.3:
        content, said = _spoil_bytes(content, draw)
        command.changes.append(said)
    if 0.3 <= kind < 0.4:
        name, said = _spoil_file(name, content, draw)
        command.changes.append(said)
    else:
        Path(name).write_bytes(content)
    command.arguments = [*_usual(verb, name), *(options if verb in ("fit", "predict") else [])]
    command.spoiled = kind < 0.4
    if draw.random() < (0.4 if command.spoiled or verb == "fit" else 0.7):
        _spoil_option(command, draw)
        command.spoiled = True
    if verb not in ("fit", "keygen") and draw.random() < 0.4:
        command.changes.append(_spoil_folder(draw))
        command.spoiled = True
    return command
