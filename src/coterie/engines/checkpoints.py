"""Finished work is kept on disk, so that a run that was stopped repeats none of it.

Every result is a file named by a digest of its job and of the versions that made it; a job whose file is
there is not run again. How a result becomes a file is up to a codec, which must not run code from the file.
A file that is damaged is not used, and its job is run again. So is a job whose result cannot be kept.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, Protocol, TypeVar

import joblib
import numpy as np
import sklearn

from coterie._files import write_whole
from coterie.engines.dask import DaskEngine
from coterie.engines.progress import CountedCalls, uncounted
from coterie.engines.threads import Engine

Job = TypeVar("Job")
Result = TypeVar("Result")

_CHECKSUM = 32


class Codec(Protocol):
    """Turns results into bytes and back, without running what a stranger put into them."""

    def dump(self, result: Any) -> bytes | None:
        """Return a result as bytes; None where it cannot be kept."""
        ...

    def load(self, content: bytes) -> Any:
        """Return the result; any exception means that the bytes hold none."""
        ...


def _digest(function: Callable[[Any], Any], job: Any, known: dict[int, str]) -> str:
    """Name a job by all that its result depends on; ``known`` saves hashing what jobs share."""
    parts = [f"{function.__module__}.{function.__qualname__}", sklearn.__version__, np.__version__]
    for field in fields(job):
        value = getattr(job, field.name)
        if isinstance(value, np.ndarray):
            parts.append(joblib.hash(value))
        else:
            if id(value) not in known:
                known[id(value)] = joblib.hash(value)
            parts.append(known[id(value)])
    return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()


class CheckpointEngine:
    """An engine that keeps the results of some functions on disk; their jobs are dataclasses.

    The folder is made when the first result is kept. Results of another version of the code are not used, nor
    any that is there already where the engine is `fresh`: new ones take their place.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        functions: Iterable[Callable[[Any], Any]],
        codec: Codec,
        version: str = "",
        *,
        fresh: bool = False,
    ) -> None:
        """Remember where results are kept, and of which functions."""
        self._engine, self._folder, self._codec = engine, folder, codec
        self._version, self._fresh = version, fresh
        self._functions = tuple(functions)
        self._lock = threading.Lock()
        self.restored = 0
        self.not_kept = 0

    def _checksum(self, name: str, content: bytes) -> bytes:
        """Return the checksum of a file's name, content and version."""
        # With its name, so that no file can take the place of another.
        return hashlib.sha256(f"{self._version}\n{name}\n".encode() + content).digest()

    def _read(self, name: str) -> tuple[Any] | None:
        """Return a stored result in a tuple, None if there is none that is whole."""
        if self._fresh:
            return None
        try:
            stored = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        content = stored[_CHECKSUM:]
        if stored[:_CHECKSUM] != self._checksum(name, content):
            return None
        try:
            return (self._codec.load(content),)
        # Whatever is wrong with the file: the job is run again.
        except Exception:
            return None

    def _write(self, name: str, result: Any) -> None:
        """Store a result in a file with its checksum."""
        content = self._codec.dump(result)
        if content is None:
            with self._lock:
                self.not_kept += 1
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Not synced: the checksum tells a file that a power cut has torn.
        with write_whole(self._folder / name, sync=False, tidy=False) as file:
            file.write(self._checksum(name, content) + content)

    def _run(self, function: Callable[[Any], Any], named: tuple[str, Any]) -> Any:
        """Run one job and store its result."""
        name, job = named
        result = function(job)
        self._write(name, result)
        return result

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results in the order of the jobs, those that are kept without running anything."""
        plain, count = uncounted(function)
        if plain not in self._functions:
            return self._engine.map(function, jobs)
        listed, known = list(jobs), dict[int, str]()
        names = [_digest(plain, job, known) for job in listed]
        read = ((index, self._read(name)) for index, name in enumerate(names))
        results = {index: kept[0] for index, kept in read if kept is not None}
        self.restored += len(results)
        # A result that is read counts as a step done, too.
        for kept in results.values():
            count(kept)
        missing = [index for index in range(len(listed)) if index not in results]
        if isinstance(self._engine, DaskEngine):
            # Workers have other disks: what comes back is written here.
            made = self._engine.map_each(
                function,
                [listed[index] for index in missing],
                lambda index, result: self._write(names[missing[index]], result),
            )
        else:
            run: Callable[[Any], Any] = partial(self._run, plain)
            run = function.around(run) if isinstance(function, CountedCalls) else run
            made = self._engine.map(run, [(names[index], listed[index]) for index in missing])
        results.update(zip(missing, made, strict=True))
        return [results[index] for index in range(len(listed))]
