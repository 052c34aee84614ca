"""Files that are whole or not there: one writer for everything that coterie puts on a disk.

A file is written under a temporary name beside its place, and takes its place in one step: whoever looks
finds the old file or the new one. A process that is killed leaves its temporary file behind. The name carries
the mark of this machine and this user, and the writer holds a lock on it. The next writer in the same folder
removes files that carry its own mark and that nobody has locked. It never touches any other file.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import platform
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

if sys.platform != "win32":
    import fcntl

# Of renameat2: refuse a name that is taken; let two names change places; look from the present folder.
_NOREPLACE, _EXCHANGE, _AT_FDCWD = 1, 2, -100
# Errors that a write reports without the name of its file.
_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)
# What a file system without links says.
_NO_LINK_ERRORS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
# How often to look again where another process removes the file of a lock at the same moment.
_LOCK_ATTEMPTS = 100
# What `read_plain` reads of a file, unless its reader says so.
MOST_PLAIN = 2**30
_TEMPORARY = re.compile(r"\.coterie-[0-9a-f]{8}-[0-9a-f]{16}\.tmp", re.ASCII)


def _mark() -> str:
    """Return eight hexadecimal digits that stand for this user on this machine, in names of temporary files.

    A writer removes only files with its own mark, for it cannot tell whether those of other machines are
    in use.
    """
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "")
    return hashlib.sha256(f"{platform.node()}\n{user}".encode()).hexdigest()[:8]


def read_plain(path: Path, most: int = MOST_PLAIN) -> bytes:
    """Return the bytes of a regular file of at most ``most`` bytes; refuse a longer one, a device or a pipe.

    Devices and pipes may have no end, and opening a pipe could wait for ever. The kind of the file is
    that of the open one, so that nobody can put another in its place between check and reading.
    """
    # Without waiting for the other end of a pipe.
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        status = os.fstat(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{str(path)!r} is no plain file: check the path.")
        with open(handle, "rb", closefd=False) as file:
            # One byte more than allowed shows a file that is too long, or that grows meanwhile.
            content = file.read(min(status.st_size, most) + 1)
    finally:
        os.close(handle)
    if len(content) > most:
        raise ValueError(f"{str(path)!r} is larger than {most / 2**30:g} GiB: check the path.")
    return content


def is_temporary(name: str) -> bool:
    """Tell whether a file's name is one that `write_whole` gives while a file is not finished."""
    return _TEMPORARY.fullmatch(name) is not None


def _try_lock(handle: int) -> bool:
    """Lock an open file without waiting; the lock ends with the process, however it ends.

    Returns False where another process holds the lock, and True also where the system has no locks.
    """
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks: nobody can hold one.
        return True
    return True


def _is_at(handle: int, path: Path) -> bool:
    """Tell whether an open file still lies under its name, and nobody has removed or replaced it."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _open_mark(path: Path) -> int | None:
    """Open a lock's file, made with its folder where it is missing; None: somebody has just removed it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except FileNotFoundError:
        return None


class LockedError(Exception):
    """Another process holds the lock; the message names it."""


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file that says which process holds it, or raise `LockedError`.

    The file is made where it is missing, and is not removed. The lock ends with the block or the process.
    """
    for _ in range(_LOCK_ATTEMPTS):
        handle = _open_mark(path)
        if handle is None:
            continue
        try:
            if not _try_lock(handle):
                raise LockedError(
                    os.read(handle, 200).decode("utf-8", "replace").strip() or "Another process"
                )
            # Otherwise a run that has just ended removed the file after it was opened here.
            if _is_at(handle, path):
                # Where nothing can be written, the lock holds without a name.
                with suppress(OSError):
                    os.ftruncate(handle, 0)
                    os.write(handle, f"Process {os.getpid()} on {platform.node()}\n".encode())
                yield
                return
        finally:
            os.close(handle)
    raise LockedError("Another process")


def remove_stale(folder: Path) -> None:
    """Remove the temporary files that killed processes of this user on this machine left in a folder.

    What lies deeper is left alone.
    """
    begin = f".coterie-{_mark()}-"
    with suppress(OSError):
        for name in os.listdir(folder):
            if name.startswith(begin) and is_temporary(name):
                _remove_unlocked(folder / name)


def _remove_unlocked(path: Path) -> None:
    """Remove a regular file that no process has locked: whoever wrote it has been killed.

    Links are not followed, and errors are ignored.
    """
    with suppress(OSError):
        if not stat.S_ISREG(os.lstat(path).st_mode):
            return
        if sys.platform == "win32":
            # Windows has no such locks, but refuses to remove a file that is open.
            path.unlink()
            return
        # Not through a link, and not waiting for the other end of a pipe.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if _try_lock(handle):
                path.unlink()
        finally:
            os.close(handle)


def _open_temporary(folder: Path, mode: int) -> tuple[int, Path]:
    """Open a new temporary file and lock it; return its handle and path.

    Between opening and locking, another process may take the file for one left behind and remove it. Then
    another one is opened.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    while True:
        path = folder / f".coterie-{_mark()}-{secrets.token_hex(8)}.tmp"
        handle = os.open(path, flags, mode)
        if _try_lock(handle) and os.path.lexists(path):
            return handle, path
        os.close(handle)


def renameat2(source: Path, target: Path, flags: int) -> bool:
    """Rename in one step with Linux's flags, such as not to replace; both paths lie on one file system.

    Returns False where the system has no such call: nothing has happened then.
    """
    if sys.platform != "linux":
        return False
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    source_bytes, target_bytes = os.fsencode(source), os.fsencode(target)
    if call(_AT_FDCWD, source_bytes, _AT_FDCWD, target_bytes, ctypes.c_uint(flags)) == 0:
        return True
    error = ctypes.get_errno()
    # A kernel or a file system without this call.
    if error in (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP):
        return False
    raise OSError(error, os.strerror(error), str(target))


def exchange(one: Path, other: Path) -> bool:
    """Let two files or folders on one file system change places in one step; see `renameat2`."""
    return renameat2(one, other, _EXCHANGE)


def _put_fresh(temporary: Path, path: Path) -> None:
    """Rename a temporary file to ``path``; FileExistsError if that name is taken.

    No way may replace a file that another process makes at the same moment. Linux has a call for that;
    elsewhere a link does it, which fails if the name is taken.
    """
    if renameat2(temporary, path, _NOREPLACE):
        return
    try:
        # A rename would replace the other file.
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINK_ERRORS:
            raise
        # A file system without links: who was quicker by a moment is not seen.
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.rename(temporary, path)
    else:
        temporary.unlink()


def sync_folder(folder: Path) -> None:
    """Make sure that names in a folder outlast a power cut, where the system can do that."""
    # The files are whole and in their places by now: where a folder cannot be synced, nothing is lost.
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def write_whole(
    path: Path, *, fresh: bool = False, mode: int | None = None, sync: bool = True, tidy: bool = True
) -> Iterator[BinaryIO]:
    """Write a file that appears under its name once it is whole; on any failure the old one stays.

    Its folder must be there. A link is replaced, not followed: resolve it first to follow it.
    `fresh`: raise FileExistsError where a file has the name by then, instead of replacing it.
    `mode`: permissions; None: those of the file that is replaced, or the usual ones.
    `sync`: wait until the disk has it, so that it outlasts a power cut.
    `tidy`: remove what killed processes left in the folder; see `remove_stale`.
    """
    temporary = None
    try:
        if tidy:
            remove_stale(path.parent)
        handle, temporary = _open_temporary(path.parent, 0o666 if mode is None else mode)
        with open(temporary, "w+b", opener=lambda *_: handle) as file:
            yield file
            file.flush()
            if sync:
                os.fsync(handle)
            if mode is None and not fresh:
                with suppress(FileNotFoundError):
                    replaced_status = os.lstat(path)
                    if stat.S_ISREG(replaced_status.st_mode):
                        os.chmod(temporary, stat.S_IMODE(replaced_status.st_mode))
            # Windows renames no open file; elsewhere the lock is kept until the file has its name.
            if sys.platform == "win32":
                file.close()
            if fresh:
                _put_fresh(temporary, path)
            else:
                os.replace(temporary, path)
            temporary = None
    except OSError as error:
        # The name of the temporary file tells nobody anything.
        ours = isinstance(error.filename, str) and is_temporary(os.path.basename(error.filename))
        if ours or (error.filename is None and error.errno in _DISK_ERRORS):
            raise type(error)(error.errno, error.strerror, str(path)) from None
        raise
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
    if sync:
        sync_folder(path.parent)


def write_bytes(path: Path, content: bytes, *, fresh: bool = False, mode: int | None = None) -> None:
    """Write a file of known content by `write_whole`."""
    with write_whole(path, fresh=fresh, mode=mode) as file:
        file.write(content)
