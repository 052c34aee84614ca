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
    """Return the path of that name, or else those that match it as a pattern, sorted.

    The name goes first: a file may be called ``a[1].csv``.
    """
    there = Path(pattern).exists()
    return [Path(pattern)] if there else [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]


def names_of(files: Sequence[Path]) -> list[str]:
    """Return a learner's name for each file: its name without suffix, or paths where two would be equal."""
    stems = [stem_of(path) for path in files]
    return stems if len(set(stems)) == len(stems) else [str(path) for path in files]


def _hint(path: Path) -> str:
    """Return the end of an error on a missing file: the most similar name beside it, if there is one."""
    names_in_folder = [other.name for other in path.parent.iterdir()] if path.parent.is_dir() else []
    most_similar = get_close_matches(path.name, names_in_folder, n=1)
    return f"did you mean {str(path.with_name(most_similar[0]))!r}?" if most_similar else "check the path."


def find_files(patterns: Sequence[str]) -> list[Path]:
    """Return the files that are named or match a pattern, each once, those of a pattern sorted.

    Folders, pipes, devices, unknown formats and names that match nothing are refused before anything
    heavy is loaded, so that a wrong path is answered at once.
    """
    files: list[Path] = []
    for pattern in patterns:
        matching = matches(pattern)
        if not matching:
            kind = "that matches " if glob.has_magic(pattern) else ""
            raise CommandError(f"There is no file {kind}{pattern!r}: {_hint(Path(pattern))}")
        files.extend(matching)
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
