"""Running an experiment: the replications that are missing, then the table, the figures and the README.

The seed of a replication derives from the run's seed and the replication's number alone, and inside a
replication there is one thread: neither the number of processes nor an interruption changes a number.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from coterie._options import check_count
from coterie._version import __version__
from reproductions.harness.experiment import Experiment, Record, Table
from reproductions.harness.figures import check_drawing
from reproductions.harness.files import (
    JOURNAL,
    RESULTS,
    SECONDS,
    SETTINGS,
    Replication,
    append_to_journal,
    differences,
    flat_records,
    plain,
    read_finished,
    read_results,
    read_settings,
    settings_text,
    write_atomically,
    write_finished,
)
from reproductions.harness.pages import readme_text

logger = logging.getLogger(__name__)

# Told of every finished replication: how many are finished, of how many, and which one.
Progress = Callable[[int, int, Replication | None], None]


@dataclass(frozen=True)
class Run:
    """What is to be run, and where it is written.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    out : Path
        The folder that holds the folder of the experiment.
    quick : bool, default=False
        Run the quick settings and the quick number of replications.
    replications : int or None, default=None
        How many; None: the experiment's own number.
    seed : int, default=0
        From which the replications' seeds derive.
    n_jobs : int, default=1
        Number of processes.
    force : bool, default=False
        Throw away what the folder holds and begin anew.
    """

    experiment: Experiment
    out: Path
    quick: bool = False
    replications: int | None = None
    seed: int = 0
    n_jobs: int = 1
    force: bool = False

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return self.out / self.experiment.name

    @property
    def settings(self) -> dict[str, Any]:
        """What is run."""
        changes = self.experiment.quick_settings if self.quick else {}
        return {**self.experiment.settings, **changes}

    @property
    def wanted(self) -> int:
        """Number of replications asked for."""
        if self.replications is not None:
            return check_count(self.replications, "replications")
        return self.experiment.quick_replications if self.quick else self.experiment.replications

    @property
    def stamp(self) -> dict[str, Any]:
        """What the numbers belong to: results with another stamp are never mixed with these."""
        return {
            "experiment": self.experiment.name,
            "seed": check_count(self.seed, "seed", least=0),
            "settings": self.settings,
            "version": __version__,
        }


@dataclass(frozen=True)
class Outcome:
    """What a run has left.

    Parameters
    ----------
    folder : Path
        With results, figures and README.
    tables : tuple of Table
        To be printed.
    records : tuple of mapping
        The numbers, as in ``results.csv``.
    seconds : tuple of float
        Processor time of each replication.
    figures : tuple of Path
        The figures' files.
    """

    folder: Path
    tables: tuple[Table, ...]
    records: tuple[Record, ...]
    seconds: tuple[float, ...]
    figures: tuple[Path, ...]


def replication_seed(seed: int, number: int) -> int:
    """Return the seed of a replication: a function of the run's seed and the number alone."""
    return int(np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1)[0])


def _replicate(
    function: Callable[[int, Mapping[str, Any]], list[Record]],
    number: int,
    seed: int,
    settings: Mapping[str, Any],
) -> Replication:
    start = time.process_time()
    # One thread here, however many processes there are: sums of floats depend on how they are divided.
    with threadpool_limits(1), parallel_config(backend="sequential"):
        try:
            records = function(seed, settings)
        except Exception as cause:
            raise RuntimeError(
                f"Replication {number}, with the seed {seed}, failed: {type(cause).__name__}: {cause}"
            ) from cause
    kept = tuple({name: plain(value) for name, value in record.items()} for record in records)
    return Replication(number, time.process_time() - start, kept)


def _run_missing(run: Run, missing: list[int]) -> Iterator[Replication]:
    jobs = [(number, replication_seed(run.seed, number)) for number in missing]
    if run.n_jobs == 1 or len(jobs) == 1:
        for number, seed in jobs:
            yield _replicate(run.experiment.replicate, number, seed, run.settings)
        return
    parallel = Parallel(n_jobs=run.n_jobs, backend="loky", batch_size=1, return_as="generator_unordered")
    yield from parallel(
        delayed(_replicate)(run.experiment.replicate, number, seed, run.settings) for number, seed in jobs
    )


def _check_folder(folder: Path) -> None:
    """Raise where a folder is not there and cannot be made, or cannot be written to."""
    above = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not above.is_dir():
        raise NotADirectoryError(f"{above} is a file, not a folder: give another one by --out.")
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(f"The folder {above} cannot be written to: give another one by --out.")


def _clear(folder: Path) -> None:
    """Remove what an earlier run has left: numbers, page, and the figures that the page shows."""
    page = folder / "README.md"
    shown = page.read_text(encoding="utf-8", errors="replace") if page.is_file() else ""
    figures = [f"{stem}.{kind}" for stem in re.findall(r"\]\((\w+)\.png\)", shown) for kind in ("png", "svg")]
    for name in (RESULTS, SECONDS, JOURNAL, page.name, *figures):
        (folder / name).unlink(missing_ok=True)


def check_run(run: Run) -> None:
    """Raise what can be known before any work: a missing library, missing data, a folder of other settings.

    Parameters
    ----------
    run : Run
        What is to be run.
    """
    check_drawing()
    _ = run.wanted, run.stamp
    _check_folder(run.folder)
    theirs = read_settings(run.folder)
    if not run.force:
        if theirs == {}:
            raise FileExistsError(
                f"{run.folder / SETTINGS}, which says what the results there belong to, cannot be read: "
                "give --force to overwrite them, or another folder by --out."
            )
        if theirs is None and any((run.folder / name).exists() for name in (RESULTS, JOURNAL)):
            raise FileExistsError(
                f"The folder {run.folder} holds results but no {SETTINGS} that says what they belong to: "
                "give --force to overwrite them, or another folder by --out."
            )
        found = differences(run.stamp, theirs) if theirs is not None else []
        if found:
            raise FileExistsError(
                f"The folder {run.folder} holds results of another run, which differs in "
                f"{'; '.join(found)}: give --force to overwrite them, or another folder by --out."
            )
    if run.experiment.check_data is not None:
        run.experiment.check_data()


def _start(run: Run) -> dict[int, Replication]:
    """Make the folder ready and return the replications that it holds already."""
    run.folder.mkdir(parents=True, exist_ok=True)
    if run.force:
        _clear(run.folder)
    write_atomically(run.folder / SETTINGS, settings_text(run.stamp))
    return read_finished(run.folder)


def _kept(finished: Mapping[int, Replication], wanted: int) -> list[Replication]:
    """Return the replications to report: those wanted, and those that follow them without a gap."""
    count = wanted
    while count in finished:
        count += 1
    return [finished[number] for number in range(count)]


def reproduce(run: Run, progress: Progress | None = None) -> Outcome:
    """Run the replications that are missing, and write everything that the experiment gives.

    Parameters
    ----------
    run : Run
        What to run, and where it is written.
    progress : callable or None, default=None
        Called as ``progress(finished, wanted, replication)``, first with None for the replications that
        the folder holds already.

    Returns
    -------
    Outcome
        Tables, records, times and figures.
    """
    check_run(run)
    finished = _start(run)
    missing = [number for number in range(run.wanted) if number not in finished]
    if missing and finished and run.experiment.check_earlier is not None:
        run.experiment.check_earlier(flat_records(finished.values()), run.settings)
    if progress is not None:
        progress(run.wanted - len(missing), run.wanted, None)
    for place, replication in enumerate(_run_missing(run, missing), 1):
        append_to_journal(run.folder, replication)
        finished[replication.number] = replication
        if progress is not None:
            progress(run.wanted - len(missing) + place, run.wanted, replication)
    kept = _kept(finished, run.wanted)
    write_finished(run.folder, kept)
    # From the file, so that a table is the same whether its numbers were measured now or earlier.
    records = read_results(run.folder / RESULTS)
    tables = run.experiment.tabulate(records, run.settings)
    figures = run.experiment.draw(records, run.settings, run.folder)
    seconds = [replication.seconds for replication in kept]
    page = readme_text(run.experiment, run.stamp, tables, figures, seconds)
    write_atomically(run.folder / "README.md", page)
    logger.info("%s: %d replications in %s", run.experiment.name, len(kept), run.folder)
    return Outcome(run.folder, tuple(tables), tuple(records), tuple(seconds), tuple(figures))
