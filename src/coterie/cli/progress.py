"""How far a command has come: bars with the time left on a terminal, plain lines elsewhere.

Both go to stderr, so that stdout holds results alone.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from coterie.cli.errors import CommandError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Seconds between two lines of one stage.
_SECONDS_BETWEEN_LINES = 10.0
# What is done in a stage of a fit. Select: each learner chooses its model by cross-validation. Exchange:
# losses
# of everybody's models on everybody's rows. Bootstrap: rows are drawn again, to see who stays where.
WORDS = {
    "Select": "models of each learner",
    "Exchange": "every model on the rows of all",
    "Cluster": "numbers of coteries",
    "Collaborate": "models of several learners",
    "Bootstrap": "how sure the coteries are",
    "Write": "results and report",
}


def duration(seconds: float) -> str:
    """Return a time in words that a person reads."""
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


class PlainLines:
    """Lines for a log: a begin and an end of each stage, and between them how far it is and what is left."""

    def __init__(self, stream: TextIO, between: float = _SECONDS_BETWEEN_LINES) -> None:
        self._stream, self._between = stream, between
        self._begun: dict[str, float] = {}
        self._finished: set[str] = set()
        self._last = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Note that ``done`` of ``total`` jobs of a stage are done; write a line at its begin and end.

        In between, a line is written every ``between`` seconds, with the time left at the speed so
        far. Stages without words in `WORDS` have no line at their begin.
        """
        now = time.monotonic()
        if stage not in self._begun and stage in WORDS:
            self._line(f"{stage}: {WORDS[stage]} ...", now)
        stage_begun = self._begun.setdefault(stage, now)
        seconds_passed = now - stage_begun
        if done == total:
            if stage not in self._finished:
                self._line(f"{stage}: {total} of {total}, {duration(seconds_passed)}", now)
            self._finished.add(stage)
        elif now - max(self._last, stage_begun) >= self._between:
            time_left = f", about {duration(seconds_passed / done * (total - done))} left" if done else ""
            self._line(f"{stage}: {done} of {total}, {duration(seconds_passed)} so far{time_left}", now)

    def _line(self, text: str, now: float) -> None:
        """Write a line, and note when."""
        self._last = now
        self._stream.write(f"{text}\n")
        self._stream.flush()


class Bars:
    """A bar per stage, with the time that is left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` jobs of a stage are done, in a bar of its own."""
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total, words=WORDS.get(stage, ""))
        self._progress.update(self._tasks[stage], completed=done, total=total)


@contextmanager
def progress_bars() -> Iterator[None]:
    """Show the progress of the stages run inside on stderr: bars on a terminal, plain lines in a log."""
    from coterie.engines import watch

    if not sys.stderr.isatty():
        with watch(PlainLines(sys.stderr)):
            yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns: list[Any] = [
        TextColumn("{task.description:<12}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[words]}"),
    ]
    with Progress(*columns, console=Console(stderr=True)) as progress, watch(Bars(progress)):
        yield


@contextmanager
def gathered_warnings(notes: list[str], *, strict: bool = False) -> Iterator[None]:
    """Add the warnings of the code inside to ``notes``, each sentence once, instead of printing them.

    ``strict``: rows unlike those of the fit are an error.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    if strict:
        from coterie.rows.outside import OutsideFitWarning

        outside_fit = [str(one.message) for one in caught if issubclass(one.category, OutsideFitWarning)]
        if outside_fit:
            raise CommandError(f"{' '.join(dict.fromkeys(outside_fit))} Without --strict this is a note.")
    texts = dict.fromkeys(str(warning.message) for warning in caught)
    notes.extend(text for text in texts if text not in notes)
