"""How far the work has come: stages report it to a watcher.

Nothing is printed here. Without a watcher a report costs one look-up.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from coterie.engines.threads import Engine

Job = TypeVar("Job")
Result = TypeVar("Result")

# Told the name of the stage, how many of its steps are done, and how many there are at most.
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def watch(listener: Listener) -> Iterator[None]:
    """Tell a listener of the progress of everything that is run inside.

    It may be called from several threads, one at a time.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report(stage: str, done: int, total: int) -> None:
    """Tell the listener, if there is one, that ``done`` of ``total`` steps of a stage are done."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


class Steps:
    """Counts the steps of a stage that is made of several kinds of work."""

    def __init__(self, stage: str, total: int) -> None:
        self._stage, self._total, self._done = stage, total, 0
        report(stage, 0, total)

    def done(self, n_steps: int = 1) -> None:
        """Report that ``n_steps`` more steps are done, never more than the total."""
        self._done = min(self._done + n_steps, self._total)
        report(self._stage, self._done, self._total)

    def finish(self) -> None:
        """Report that all steps are done."""
        self.done(self._total)


def _itself(value: Any) -> Any:
    """Return the argument; it unpickles plain functions, and counts results."""
    return value


class CountedCalls:
    """A function that reports every one of its `total` jobs that it has finished."""

    def __init__(
        self, function: Callable[[Any], Any], stage: str, total: int, listener: Listener, steps: Any = None
    ) -> None:
        """Remember the function, how many calls are expected, and who listens."""
        self.function = function
        self._stage, self._total, self._listener = stage, total, listener
        # Functions that are counted with each other have the count and its lock in common.
        shared: tuple[Any, Any] = steps or (itertools.count(1), threading.Lock())
        self._steps, self._lock = shared

    def __call__(self, job: Any) -> Any:
        """Run a job, tell the listener that one more step is done, and return the result."""
        result = self.function(job)
        with self._lock:
            self._listener(self._stage, next(self._steps), self._total)
        return result

    def __reduce__(self) -> Any:
        """Pickle as the plain function: in another process no listener can be reached."""
        return _itself, (self.function,)

    def around(self, function: Callable[[Any], Any]) -> CountedCalls:
        """Return another counted function that shares the count of finished jobs with this one."""
        return CountedCalls(function, self._stage, self._total, self._listener, (self._steps, self._lock))


def uncounted(function: Callable[[Any], Any]) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return the plain function, and a function that counts one finished job when called with its result.

    An engine that runs jobs in other processes calls the second here for each result that comes back.
    Where the function was not counted, the second does nothing but return its argument.
    """
    if isinstance(function, CountedCalls):
        return function.function, function.around(_itself)
    return function, _itself


class _CountedEngine:
    """An engine that tells a listener of each finished job, as a step of a stage."""

    def __init__(self, engine: Engine, stage: str, listener: Listener) -> None:
        self._engine, self._stage, self._listener = engine, stage, listener

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results in the order of the jobs."""
        job_list = list(jobs)
        self._listener(self._stage, 0, len(job_list))
        results = self._engine.map(
            CountedCalls(function, self._stage, len(job_list), self._listener), job_list
        )
        self._listener(self._stage, len(job_list), len(job_list))
        return results


def counted(engine: Engine, stage: str) -> Engine:
    """Return an engine that reports its finished jobs as steps of a stage; itself if nobody listens."""
    listener = _listener.get()
    return engine if listener is None else _CountedEngine(engine, stage, listener)
