"""Counts the file operations of this process, and makes one of them the last, or the first that fails.

Counted is every call that changes something below one folder: opening for writing, each write, rename, link,
unlink, mkdir, rmdir, chmod, truncate, sync. A kill comes right after the operation. A full disk begins in the
middle of a write and lasts: what needs space fails from then on, removing does not. A disk that turned
read-only refuses every change.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coterie import _files

# What needs no space on a full disk.
FREE = ("unlink", "rmdir", "chmod", "ftruncate")


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and when.

    Parameters
    ----------
    kind : {"none", "kill", "full", "read-only"}
        What.
    after : int
        The operation that is the last one, or the first one that fails; counted from 1.
    """

    kind: str = "none"
    after: int = 0


class Shim:
    """Stands between Python and the file system.

    Parameters
    ----------
    root : Path
        Operations elsewhere are not counted.
    fault : Fault
        What to do.
    """

    def __init__(self, root: Path, fault: Fault) -> None:
        self.root, self.fault, self.names = f"{root}{os.sep}", fault, list[str]()

    def _inside(self, target: Any) -> bool:
        if isinstance(target, int):
            try:
                target = os.readlink(f"/proc/self/fd/{target}")
            except OSError:
                return False
        return os.path.abspath(os.fsdecode(target)).startswith(self.root)

    def before(self, name: str) -> None:
        """Count an operation; raise where it fails."""
        self.names.append(name)
        broken = self.fault.kind in ("full", "read-only") and len(self.names) >= self.fault.after
        if broken and self.fault.kind == "full" and name not in FREE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if broken and self.fault.kind == "read-only":
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def done(self) -> None:
        """End the process where this operation is to be its last."""
        if self.fault.kind == "kill" and len(self.names) == self.fault.after:
            os.kill(os.getpid(), signal.SIGKILL)

    def around(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of the module os that is counted."""

        def counted(target: Any, *rest: Any, **options: Any) -> Any:
            if not self._inside(target):
                return function(target, *rest, **options)
            self.before(name)
            try:
                return function(target, *rest, **options)
            finally:
                self.done()

        return counted

    def _open(self, target: Any, flags: int, *rest: Any, **options: Any) -> int:
        if not flags & (os.O_WRONLY | os.O_RDWR) or not self._inside(target):
            return real_open(target, flags, *rest, **options)
        self.before("open")
        try:
            return real_open(target, flags, *rest, **options)
        finally:
            self.done()

    def _file(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        if not set(mode) & set("wxa+") or not self._inside(file):
            return real_file(file, mode, buffering, encoding, errors, newline, closefd, opener)
        if opener is None:
            self.before("open")
        raw = Raw(self, file, mode.replace("b", "").replace("t", ""), closefd, opener)
        self.done()
        buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    def install(self) -> None:
        """Put the shim in place, for good."""
        for name in ("rename", "replace", "link", "unlink", "mkdir", "rmdir", "chmod"):
            setattr(os, name, self.around(name, getattr(os, name)))
        for name in ("fsync", "write", "ftruncate"):
            setattr(os, name, self.around(name, getattr(os, name)))
        os.remove = os.unlink
        os.open = self._open
        io.open = builtins.open = self._file
        # This one does not pass through Python's os.
        _files.renameat2 = self.around("renameat2", _files.renameat2)


class Raw(io.FileIO):
    """A file whose writes are counted."""

    def __init__(self, shim: Shim, file: Any, mode: str, closefd: bool, opener: Any) -> None:
        super().__init__(file, mode, closefd, opener)
        self._shim = shim

    def write(self, content: Any) -> int:
        """Write, or fail in the middle."""
        try:
            self._shim.before("write")
        except OSError as error:
            if error.errno == errno.ENOSPC:
                super().write(memoryview(content)[: len(content) // 2])
            raise
        written = super().write(content)
        self._shim.done()
        return written


real_open, real_file = os.open, io.open
