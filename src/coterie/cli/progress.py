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

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

# Seconds between two lines of one stage.
_BETWEEN_LINES = 10.0


class PlainLines:
    """Lines for a log: a stage's begin and end, and every `between` seconds how far it has come."""

    def __init__(self, stream: TextIO, between: float = _BETWEEN_LINES) -> None:
        self._stream, self._between = stream, between
        self._begun: dict[str, float] = {}
        self._finished: set[str] = set()
        self._last = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tell how far a stage has come."""
        now = time.monotonic()
        begun = self._begun.setdefault(stage, now)
        if done == total:
            if stage not in self._finished:
                self._line(f"{stage}: {total} of {total}, {now - begun:.1f} s", now)
            self._finished.add(stage)
        elif now - max(self._last, begun) >= self._between:
            self._line(f"{stage}: {done} of {total}, {now - begun:.0f} s so far", now)

    def _line(self, text: str, now: float) -> None:
        self._last = now
        self._stream.write(f"{text}\n")
        self._stream.flush()


class Bars:
    """A bar per stage, with the time that is left."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Tell how far a stage has come."""
        if stage not in self._tasks:
            self._tasks[stage] = self._progress.add_task(stage, total=total)
        self._progress.update(self._tasks[stage], completed=done, total=total)


@contextmanager
def shown_progress() -> Iterator[None]:
    """Show the progress of what is run inside, on stderr."""
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
    ]
    with Progress(*columns, console=Console(stderr=True)) as progress, watch(Bars(progress)):
        yield


@contextmanager
def gathered_warnings(notes: list[str]) -> Iterator[None]:
    """Add what the library warns of inside to the notes, each sentence once, instead of printing it."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        yield
    texts = dict.fromkeys(str(warning.message) for warning in caught)
    notes.extend(text for text in texts if text not in notes)
