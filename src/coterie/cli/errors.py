"""What a command says when it cannot go on: one sentence, an exit code, no traceback."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Options with another name than in Python.
_COMMAND_LINE_NAMES = {"n_jobs": "jobs", "random_state": "seed"}


class CommandError(Exception):
    """A command cannot go on; the message is one sentence and a remedy."""

    exit_code = 2


class Interrupted(CommandError):
    """The user stopped the command; the message says how to go on."""

    # What a shell reports of a command ended by Ctrl-C.
    exit_code = 130


def _for_command_line(text: str) -> str:
    """Reword the library's error for the command line: 'n_jobs' option becomes --jobs.

    A remedy that only Python has, such as passing a model, is cut off.
    """
    text = re.sub(r" Or pass a scikit-learn \w+\.$", "", text)
    option = re.match(r"The '(\w+)' option ", text)
    if option is None:
        return text
    name = _COMMAND_LINE_NAMES.get(option[1], option[1]).replace("_", "-")
    return f"--{name} {text[option.end() :]}"


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn a ValueError inside, with which the library refuses input, into a command's error."""
    try:
        yield
    except ValueError as error:
        raise CommandError(_for_command_line(str(error))) from error


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn an OSError inside, while results are written to ``path``, into a command's error with a remedy."""
    try:
        yield
    except OSError as error:
        cause = error.strerror or str(error)
        sentence = f"{str(path)!r} cannot be written ({cause}): give --out another place."
        # Libraries in Rust give the number of an error in its text only.
        if error.errno in (errno.ENOSPC, errno.EDQUOT) or f"(os error {errno.ENOSPC})" in cause:
            sentence = (
                f"No space is left on the disk of {str(path)!r}: free some, or give --out another place."
            )
        raise CommandError(sentence) from error


@contextmanager
def cache_errors() -> Iterator[None]:
    """Turn an OSError inside, while the user's cache is used, into a command's error with a remedy."""
    try:
        yield
    except OSError as error:
        from coterie.datasets.files import data_home

        cause = error.strerror or str(error)
        raise CommandError(
            f"The cache {str(data_home())!r} cannot be used ({cause}): free some space there, or name "
            "another folder in the environment variable COTERIE_CACHE."
        ) from error


def require(remedy: str = "give it", **values: str) -> None:
    """Refuse options that were not given; their names are those of the parameters."""
    for name, value in values.items():
        if not value:
            raise CommandError(f"--{name} is missing: {remedy}, as in --{name} NAME.")
