"""One run at a time: a file that is locked while a run lasts and says which process runs."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coterie._files import is_at, try_lock
from coterie.cli.errors import CommandError

# How often to look again where another run removes the file at the same moment.
_ATTEMPTS = 100


def _open(mark: Path) -> int | None:
    """Open the file, made with its folder where it is missing; None where somebody has just removed them."""
    mark.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return os.open(mark, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except FileNotFoundError:
        return None


def _refuse(handle: int, out: Path) -> CommandError:
    said = os.read(handle, 200).decode("utf-8", "replace").strip() or "Another process"
    return CommandError(
        f"{said} writes to {str(out)!r} at this moment: wait until it has ended, or give --out another "
        "folder."
    )


@contextmanager
def locked(mark: Path, out: Path) -> Iterator[None]:
    """Hold a file's lock for the results in `out`, or refuse and name the process that holds it.

    The file is made where it is missing, and is not removed. The lock ends with the block or the process.
    """
    for _ in range(_ATTEMPTS):
        handle = _open(mark)
        if handle is None:
            continue
        try:
            if not try_lock(handle):
                raise _refuse(handle, out)
            # Otherwise a run that has just ended removed the file after it was opened here.
            if is_at(handle, mark):
                os.ftruncate(handle, 0)
                os.write(handle, f"Process {os.getpid()} on {platform.node()}\n".encode())
                yield
                return
        finally:
            os.close(handle)
    raise CommandError(f"{str(mark)!r} cannot be locked: give --out another folder.")
