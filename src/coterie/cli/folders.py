"""Where results go: whole or not at all, and what a stopped run leaves beside them.

While a run lasts, ``OUT.unfinished`` stands beside ``OUT``. Its file ``running`` marks it as ours and is
locked by the run, so that two runs never write the same results. Results are written inside it; then they and
the old ones change places in one step. Only files with our names in a folder with our mark are removed, never
through a link, and never before the new results are in their place.
"""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coterie._files import LockedError, exchange, is_temporary, locked, remove_stale, sync_folder
from coterie.cli.errors import CommandError, disk_errors
from coterie.cli.files import MODEL

OUTPUTS = (
    "labels.csv",
    "gains.csv",
    "losses.csv",
    "summary.json",
    MODEL,
    "report.html",
    "learners.csv",
)
# The file that is locked.
MARK = "running"
# New results that are not in their place yet, or old ones that were replaced.
RESULTS = "results"
# Old results while new ones take their place, where the system needs two steps for it.
REPLACED = "replaced"

_FIT = re.compile(r"[0-9a-f]{32}", re.ASCII)


def _is_fit(name: str) -> bool:
    """Tell whether a file's name is that of a finished learner (a checksum), or of one being written."""
    return _FIT.fullmatch(name) is not None or is_temporary(name)


def _is_result(name: str) -> bool:
    """Tell whether a file's name is that of a result, or of one being written."""
    return name in OUTPUTS or is_temporary(name)


def _is_folder(path: Path) -> bool:
    """Tell whether there is a folder, and no link to one."""
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except FileNotFoundError:
        return False


def _strangers(folder: Path, is_ours: Callable[[str], bool]) -> list[Path]:
    """Return the paths in a folder that we would not have put there: other names, folders, links."""
    with os.scandir(folder) as entries:
        stranger_paths = [
            e.path for e in entries if not (is_ours(e.name) and e.is_file(follow_symlinks=False))
        ]
    return sorted(map(Path, stranger_paths))


def _remove(folder: Path, is_ours: Callable[[str], bool]) -> None:
    """Remove the files of a folder whose names are ours, and the folder once it is empty; nothing else.

    A link to a folder is not followed, for it may lead to a user's own files. What cannot be removed stays.
    """
    if not _is_folder(folder):
        return
    for name in os.listdir(folder):
        if is_ours(name):
            with suppress(OSError):
                (folder / name).unlink()
    # Refused where something is left that is not ours.
    with suppress(OSError):
        folder.rmdir()


@dataclass(frozen=True)
class Workplace:
    """The folder of a run's results, and the one beside it that holds what is not finished.

    A link to the folder has been followed: what it names is replaced, and the link stays.
    """

    out: Path
    # Replace results, and do not use what a stopped run has left.
    force: bool = False
    # Go on with a run that was stopped.
    resume: bool = False

    @classmethod
    def named(cls, out: str, *, force: bool = False, resume: bool = False) -> Workplace:
        """Return the workplace of ``--out``, after a check that results may go there.

        ``force`` replaces old results; ``resume`` goes on with a run that was stopped.
        """
        path = Path(out)
        # The folder's neighbour needs its name. What a link names gets the results.
        if path.name in ("", "..") or os.path.islink(path):
            path = Path(os.path.realpath(path))
        if not path.name:
            raise CommandError(f"{str(path)!r} is the root of a disk: give --out the name of a folder in it.")
        place = cls(path, force, resume)
        place.check()
        return place

    @property
    def state(self) -> Path:
        """What a stopped run leaves."""
        return self.out.with_name(f"{self.out.name}.unfinished")

    @property
    def fits(self) -> Path:
        """Finished learners."""
        return self.state / "fits"

    def _check_state(self) -> None:
        """Refuse a folder for unfinished work that is not ours, or holds what is not ours.

        Nothing in it could be removed safely. It is ours if it belongs to this user, has our mark (a file
        that is locked while a run writes), and all names in it are ones that we give.
        """
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
        our_folders = {
            self.fits: _is_fit,
            self.state / RESULTS: _is_result,
            self.state / REPLACED: _is_result,
        }
        stranger_paths = [path for path in _strangers(self.state, MARK.__eq__) if path not in our_folders]
        if not (self.state / MARK).exists():
            stranger_paths = [self.state / name for name in os.listdir(self.state)]
        for folder, is_ours in our_folders.items():
            if os.path.lexists(folder):
                stranger_paths += _strangers(folder, is_ours) if _is_folder(folder) else [folder]
        if stranger_paths:
            raise CommandError(f"{str(min(stranger_paths))!r} was not put there by coterie: {remedy}")

    def has_fits(self) -> bool:
        """Tell whether a stopped run has left finished learners."""
        return _is_folder(self.fits) and any(_FIT.fullmatch(name) for name in os.listdir(self.fits))

    def _check_out(self) -> None:
        """Refuse an output folder with files that are not ours, or results that may not be replaced.

        Results go with ``--force``; finished learners of a stopped run need ``--resume`` or ``--force``.
        """
        if os.path.lexists(self.out) and not _is_folder(self.out):
            raise CommandError(f"{str(self.out)!r} is a file: give --out the name of a folder.")
        names = sorted(os.listdir(self.out)) if _is_folder(self.out) else []
        stranger_paths = _strangers(self.out, _is_result) if names else []
        if stranger_paths:
            raise CommandError(
                f"The folder {str(self.out)!r} holds {stranger_paths[0].name!r}, which is not a result of "
                "coterie: give --out another folder."
            )
        if names and not self.force:
            raise CommandError(
                f"The folder {str(self.out)!r} has results already: give --out another folder, or replace "
                "them with --force."
            )
        if self.has_fits() and not (self.resume or self.force):
            raise CommandError(
                f"A fit that was stopped has left its finished learners in {str(self.state)!r}: go on with "
                "--resume, or begin again with --force."
            )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the run's folder; refuse if another process writes the same results now."""
        try:
            with locked(self.state / MARK):
                yield
        except LockedError as error:
            raise CommandError(
                f"{error} writes to {str(self.out)!r} at this moment: wait until it has ended, or give --out "
                "another folder."
            ) from None

    def check(self) -> None:
        """Refuse to overwrite anything but results of ours, and these only by force; remove nothing."""
        with disk_errors(self.out):
            self._check_state()
            if (self.state / MARK).exists():
                with self._locked():
                    self._bring_back()
            self._check_out()

    def _bring_back(self) -> None:
        """Undo a replacement that was killed between its two steps: old results return to their place."""
        if _is_folder(self.state / REPLACED):
            # Nothing is lost with an empty folder that somebody has made since.
            with suppress(OSError):
                self.out.rmdir()
            if not os.path.lexists(self.out):
                os.rename(self.state / REPLACED, self.out)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other runs out of this folder while results are made, by a lock.

        What was checked earlier is checked once more under the lock, for another run may have ended
        since. At the end unfinished results are removed; finished learners stay for ``--resume``.
        """
        with disk_errors(self.out):
            self._check_state()
            with self._locked():
                try:
                    self._bring_back()
                    self._check_out()
                    yield
                finally:
                    self._leave()
            if sys.platform == "win32":
                # Windows removes no file that is open, and so none that another run holds.
                self._remove_mark()

    def _leave(self) -> None:
        """Remove what is not finished; the mark goes last, and stays with finished learners.

        The order matters: old results that were moved aside are brought back before anything is
        removed, and without the mark the folder would not be known as ours.
        """
        with suppress(OSError):
            self._bring_back()
            _remove(self.state / RESULTS, _is_result)
            _remove(self.state / REPLACED, _is_result)
            remove_stale(self.fits)
            # Refused where finished learners are left.
            with suppress(OSError):
                self.fits.rmdir()
            self._remove_mark()

    def _remove_mark(self) -> None:
        """Remove the state folder with its lock file, if nothing else is in it."""
        with suppress(OSError):
            if os.listdir(self.state) == [MARK]:
                (self.state / MARK).unlink()
                self.state.rmdir()

    def forget_fits(self) -> None:
        """Remove finished learners."""
        _remove(self.fits, _is_fit)

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a new folder to write results to, and put it into its place once all of them are there.

        After an error the old results are still there, untouched. The run must hold its lock (`held`).
        """
        results = self.state / RESULTS
        with disk_errors(self.out):
            _remove(results, _is_result)
            results.mkdir()
            # Files are written by `coterie._files`, which waits until the disk has them.
            yield results
            self._put()
            sync_folder(self.out.parent)

    def _put(self) -> None:
        """Put the new results into their place: whoever looks finds the old ones or these.

        On Linux the two folders change places in one step, and the old results are then where the new ones
        were. Elsewhere it takes two, and `_bring_back` undoes the first if the second was never made.
        """
        results, replaced = self.state / RESULTS, self.state / REPLACED
        if not os.path.lexists(self.out):
            os.rename(results, self.out)
            return
        os.chmod(results, stat.S_IMODE(self.out.stat().st_mode))
        if not exchange(results, self.out):
            _remove(replaced, _is_result)
            os.rename(self.out, replaced)
            os.rename(results, self.out)
