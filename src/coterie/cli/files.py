"""Which files are meant: found by name or pattern, before anything heavy is loaded; or why there is none."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from coterie.cli.errors import CommandError

# A format's suffixes, and what separates its fields where it is text.
TEXT = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
SUFFIXES = (*TEXT, *(f"{suffix}.gz" for suffix in TEXT), *PARQUET, *ARROW, *EXCEL)

FILENAME = "filename"
# The model among the results of a fit.
MODEL = "model.coterie"


def suffix_of(path: Path) -> str:
    """Return the suffix that tells a file's format; empty where it is not known."""
    name = path.name.lower()
    return next((suffix for suffix in sorted(SUFFIXES, key=len, reverse=True) if name.endswith(suffix)), "")


def stem_of(path: Path) -> str:
    """Return a file's name without the suffix of its format."""
    return path.name[: len(path.name) - len(suffix_of(path))] or path.name


def matches(pattern: str) -> list[Path]:
    """Return what is there under a name or matches a pattern, in sorted order."""
    there = Path(pattern).exists()
    return [Path(pattern)] if there else [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]


def names_of(files: Sequence[Path]) -> list[str]:
    """Return learners' names for files: without folder and suffix, unless two would have the same."""
    stems = [stem_of(path) for path in files]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in files]


def _hint(path: Path) -> str:
    """Return what may be meant by the name of a file that is not there."""
    there = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    near = get_close_matches(path.name, there, n=1)
    return f"did you mean {str(path.with_name(near[0]))!r}?" if near else "check the path."


def find_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that are named or match a pattern, in sorted order."""
    files: list[Path] = []
    for pattern in patterns:
        result = matches(pattern)
        if not result:
            kind = "that matches " if glob.has_magic(pattern) else ""
            raise CommandError(f"There is no file {kind}{pattern!r}: {_hint(Path(pattern))}")
        files.extend(result)
    for path in files:
        if path.is_dir():
            raise CommandError(f"{str(path)!r} is a folder: name its files, as in '{path}/*.csv'.")
        if not path.is_file():
            # A pipe would be waited for, a device read for ever.
            raise CommandError(f"{str(path)!r} is no plain file: copy what it holds into one.")
        if not suffix_of(path):
            raise CommandError(
                f"The format of {str(path)!r} is not known by its name: it must end in {', '.join(SUFFIXES)}."
            )
    return list(dict.fromkeys(files))


def find_model(path: str) -> str:
    """Return the model that is meant, that of a fit if its folder is named; refuse one that is not there."""
    if not Path(path).exists():
        raise CommandError(f"There is no file {path!r}: {_hint(Path(path))}")
    inside = Path(path) / MODEL
    return str(inside) if inside.is_file() else path
