"""Where results go: whole or not at all, and what a stopped run leaves beside them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from coterie.cli.errors import CommandError

OUTPUTS = (
    "labels.csv",
    "gains.csv",
    "losses.csv",
    "summary.json",
    "model.coterie",
    "report.html",
    "learners.csv",
)


def disk_error(error: OSError, path: Path) -> CommandError:
    """Turn an error of the disk into a sentence."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return CommandError(
            f"No space is left on the disk of {str(path)!r}: free some, or give --out another place."
        )
    cause = error.strerror or str(error)
    return CommandError(f"{str(path)!r} cannot be written ({cause}): give --out another place.")


def cache_error(error: OSError, path: Path) -> CommandError:
    """Turn an error of the cache's disk into a sentence."""
    return CommandError(
        f"The cache {str(path)!r} cannot be used ({error.strerror or error}): free some space there, or name "
        "another folder in the environment variable COTERIE_CACHE."
    )


@dataclass(frozen=True)
class Workplace:
    """The folder of a run's results, and the one beside it that holds what is not finished.

    Parameters
    ----------
    out : Path
        Where the results will be.
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

    def check(self, *, force: bool, resume: bool) -> None:
        """Refuse to overwrite anything but results of ours, and these only by force.

        Parameters
        ----------
        force : bool
            Replace results, and forget a run that was stopped.
        resume : bool
            Go on with a run that was stopped.
        """
        if self.state.is_symlink() or (self.state.exists() and not self.state.is_dir()):
            raise CommandError(
                f"{str(self.state)!r} is a file or a link, and a folder of that name holds unfinished work: "
                "remove it, or give --out another name."
            )
        if self.out.exists() and not self.out.is_dir():
            raise CommandError(f"{str(self.out)!r} is a file: give --out the name of a folder.")
        found = sorted(path.name for path in self.out.iterdir()) if self.out.exists() else []
        strange = [name for name in found if name not in OUTPUTS]
        if strange:
            raise CommandError(
                f"The folder {str(self.out)!r} holds {strange[0]!r}, which is not a result of coterie: "
                "give --out another folder."
            )
        if found and not force:
            raise CommandError(
                f"The folder {str(self.out)!r} has results already: give --out another folder, or replace "
                "them with --force."
            )
        if self.state.exists() and not (resume or force):
            raise CommandError(
                f"A fit that was stopped has left its finished learners in {str(self.state)!r}: go on with "
                "--resume, or begin again with --force."
            )
        if self.state.exists() and not resume:
            shutil.rmtree(self.state)

    def discard(self, *, finished_learners: bool) -> None:
        """Remove what is not finished; finished learners only where asked."""
        shutil.rmtree(self.state / "results", ignore_errors=True)
        if finished_learners:
            shutil.rmtree(self.fits, ignore_errors=True)
        # Refused by a folder that is not empty: there are finished learners in it.
        for folder in (self.fits, self.state):
            with suppress(OSError):
                folder.rmdir()

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a folder to write results to, and put it into its place once all are there.

        Yields
        ------
        Path
            A new folder.
        """
        results = self.state / "results"
        try:
            shutil.rmtree(results, ignore_errors=True)
            results.mkdir(parents=True)
            yield results
            if self.out.exists():
                # Moved away in one step: whoever looks finds the old results, or the new ones.
                old = self.state / "replaced"
                os.replace(self.out, old)
                os.replace(results, self.out)
                shutil.rmtree(old)
            else:
                os.replace(results, self.out)
        except OSError as error:
            raise disk_error(error, self.out) from error
        finally:
            shutil.rmtree(results, ignore_errors=True)
