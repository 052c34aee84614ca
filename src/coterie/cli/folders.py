"""Where results go: whole or not at all, and what a stopped run leaves beside them.

While a run lasts, ``OUT.unfinished`` stands beside ``OUT``. Its file ``running`` marks it as ours and is
locked by the run, so that two runs never write the same results. Results are written inside it; then they and
the old ones change places in one step. Only files with our names in a folder with our mark are removed, never
through a link, and never before the new results are in their place.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coterie._files import exchange, is_temporary, remove_stale, sync_folder
from coterie.cli.errors import CommandError
from coterie.cli.locking import locked

OUTPUTS = (
    "labels.csv",
    "gains.csv",
    "losses.csv",
    "summary.json",
    "model.coterie",
    "report.html",
    "learners.csv",
)
MARK = "running"

_FIT = re.compile(r"[0-9a-f]{32}", re.ASCII)


def disk_error(error: OSError, path: Path) -> CommandError:
    """Turn an error of the disk into a sentence."""
    cause = error.strerror or str(error)
    # Libraries in Rust give the number of an error in its text only.
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or f"(os error {errno.ENOSPC})" in cause:
        return CommandError(
            f"No space is left on the disk of {str(path)!r}: free some, or give --out another place."
        )
    return CommandError(f"{str(path)!r} cannot be written ({cause}): give --out another place.")


def cache_error(error: OSError, path: Path) -> CommandError:
    """Turn an error of the cache's disk into a sentence."""
    return CommandError(
        f"The cache {str(path)!r} cannot be used ({error.strerror or error}): free some space there, or name "
        "another folder in the environment variable COTERIE_CACHE."
    )


def _is_fit(name: str) -> bool:
    return _FIT.fullmatch(name) is not None or is_temporary(name)


def _is_result(name: str) -> bool:
    return name in OUTPUTS or is_temporary(name)


def _is_folder(path: Path) -> bool:
    """Tell whether there is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _strangers(folder: Path, is_ours: Callable[[str], bool]) -> list[Path]:
    """Return what is in a folder that we would not have put there: other names, folders, links."""
    with os.scandir(folder) as entries:
        odd = [e.path for e in entries if not (is_ours(e.name) and e.is_file(follow_symlinks=False))]
    return sorted(map(Path, odd))


def _remove(folder: Path, is_ours: Callable[[str], bool]) -> None:
    """Remove our files from a folder, and the folder once it is empty."""
    if not _is_folder(folder):
        return
    for name in os.listdir(folder):
        if is_ours(name):
            with suppress(OSError):
                (folder / name).unlink()
    # Refused where something is left that is not ours.
    with suppress(OSError):
        folder.rmdir()


def _sync(path: Path) -> None:
    """Wait until the disk has a file."""
    handle = os.open(path, os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@dataclass(frozen=True)
class Workplace:
    """The folder of a run's results, and the one beside it that holds what is not finished.

    Parameters
    ----------
    out : Path
        Where the results will be. A link has been followed: the folder that it names is replaced, and the
        link stays.
    """

    out: Path

    @property
    def state(self) -> Path:
        """What a stopped run leaves."""
        return self.out.with_name(f"{self.out.name}.unfinished")

    @property
    def fits(self) -> Path:
        """Finished learners."""
        return self.state / "fits"

    @property
    def results(self) -> Path:
        """New results that are not in their place yet, or old ones that were replaced."""
        return self.state / "results"

    @property
    def replaced(self) -> Path:
        """Old results while new ones take their place, where the system needs two steps for it."""
        return self.state / "replaced"

    @property
    def mark(self) -> Path:
        """The file that is locked."""
        return self.state / MARK

    def _check_state(self) -> None:
        """Refuse a folder for unfinished work that is not ours, or holds what is not ours."""
        if not os.path.lexists(self.state):
            return
        remedy = "move it, or give --out another folder."
        if not _is_folder(self.state):
            raise CommandError(
                f"{str(self.state)!r} is a file or a link, and a folder of that name holds unfinished work: "
                f"{remedy}"
            )
        if hasattr(os, "getuid") and self.state.lstat().st_uid != os.getuid():
            raise CommandError(f"The folder {str(self.state)!r} belongs to somebody else: {remedy}")
        ours = {self.fits: _is_fit, self.results: _is_result, self.replaced: _is_result}
        strange = [path for path in _strangers(self.state, MARK.__eq__) if path not in ours]
        if not self.mark.exists():
            strange = [self.state / name for name in os.listdir(self.state)]
        for folder, is_ours in ours.items():
            if os.path.lexists(folder):
                strange += _strangers(folder, is_ours) if _is_folder(folder) else [folder]
        if strange:
            raise CommandError(f"{str(min(strange))!r} was not put there by coterie: {remedy}")

    def has_fits(self) -> bool:
        """Tell whether a stopped run has left finished learners."""
        return _is_folder(self.fits) and any(_FIT.fullmatch(name) for name in os.listdir(self.fits))

    def _check_out(self, *, force: bool, resume: bool) -> None:
        if os.path.lexists(self.out) and not _is_folder(self.out):
            raise CommandError(f"{str(self.out)!r} is a file: give --out the name of a folder.")
        found = sorted(os.listdir(self.out)) if _is_folder(self.out) else []
        strange = _strangers(self.out, _is_result) if found else []
        if strange:
            raise CommandError(
                f"The folder {str(self.out)!r} holds {strange[0].name!r}, which is not a result of coterie: "
                "give --out another folder."
            )
        if found and not force:
            raise CommandError(
                f"The folder {str(self.out)!r} has results already: give --out another folder, or replace "
                "them with --force."
            )
        if self.has_fits() and not (resume or force):
            raise CommandError(
                f"A fit that was stopped has left its finished learners in {str(self.state)!r}: go on with "
                "--resume, or begin again with --force."
            )

    def check(self, *, force: bool, resume: bool) -> None:
        """Refuse to overwrite anything but results of ours, and these only by force; remove nothing.

        Parameters
        ----------
        force : bool
            Replace results, and do not use what a stopped run has left.
        resume : bool
            Go on with a run that was stopped.
        """
        try:
            self._check_state()
            if self.mark.exists():
                with locked(self.mark, self.out):
                    self._bring_back()
            self._check_out(force=force, resume=resume)
        except OSError as error:
            raise disk_error(error, self.out) from error

    def _bring_back(self) -> None:
        """Undo a replacement that was killed between its two steps."""
        if _is_folder(self.replaced):
            # Nothing is lost with an empty folder that somebody has made since.
            with suppress(OSError):
                self.out.rmdir()
            if not os.path.lexists(self.out):
                os.rename(self.replaced, self.out)

    @contextmanager
    def held(self, *, force: bool, resume: bool) -> Iterator[None]:
        """Keep other runs out while results are made; check once more what may have changed.

        Parameters
        ----------
        force, resume : bool
            As for `check`.

        Yields
        ------
        None
            The work goes inside.
        """
        try:
            self._check_state()
            with locked(self.mark, self.out):
                try:
                    self._bring_back()
                    self._check_out(force=force, resume=resume)
                    yield
                finally:
                    self._leave()
            if sys.platform == "win32":
                # Windows removes no file that is open, and so none that another run holds.
                self._remove_mark()
        except OSError as error:
            raise disk_error(error, self.out) from error

    def _leave(self) -> None:
        """Remove what is not finished; the mark goes last, and stays with finished learners."""
        with suppress(OSError):
            self._bring_back()
            _remove(self.results, _is_result)
            _remove(self.replaced, _is_result)
            remove_stale(self.fits)
            # Refused where finished learners are left.
            with suppress(OSError):
                self.fits.rmdir()
            self._remove_mark()

    def _remove_mark(self) -> None:
        with suppress(OSError):
            if os.listdir(self.state) == [MARK]:
                self.mark.unlink()
                self.state.rmdir()

    def forget_fits(self) -> None:
        """Remove finished learners."""
        _remove(self.fits, _is_fit)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a folder to write results to, and put it into its place once all are there.

        Yields
        ------
        Path
            A new folder.
        """
        try:
            _remove(self.results, _is_result)
            self.results.mkdir()
            yield self.results
            for name in os.listdir(self.results):
                _sync(self.results / name)
            sync_folder(self.results)
            self._put()
            sync_folder(self.out.parent)
        except OSError as error:
            raise disk_error(error, self.out) from error

    def _put(self) -> None:
        """Put the new results into their place: whoever looks finds the old ones or these."""
        if not os.path.lexists(self.out):
            os.rename(self.results, self.out)
            return
        os.chmod(self.results, stat.S_IMODE(self.out.stat().st_mode))
        if not exchange(self.results, self.out):
            # Two steps; `_bring_back` undoes the first where the second was never made.
            _remove(self.replaced, _is_result)
            os.rename(self.out, self.replaced)
            os.rename(self.results, self.out)
