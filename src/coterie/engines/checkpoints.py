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

_CHECKSUM_BYTES = 32


class Codec(Protocol):
    """Turns results into bytes and back, without running what a stranger put into them."""

    def dump(self, result: Any) -> bytes | None:
        """Return a result as bytes; None where it cannot be kept."""
        ...

    def load(self, content: bytes) -> Any:
        """Return the result; any exception means that the bytes hold none."""
        ...


def _digest(function: Callable[[Any], Any], job: Any, digest_of_id: dict[int, str]) -> str:
    """Return a file name for a job: a digest of the function, the job's fields and the versions of libraries.

    Equal names mean equal results. ``digest_of_id`` saves hashing again the objects that jobs share, by
    their id; arrays are a job's own and are hashed each time.
    """
    hashed_parts = [f"{function.__module__}.{function.__qualname__}", sklearn.__version__, np.__version__]
    for field in fields(job):
        field_value = getattr(job, field.name)
        if isinstance(field_value, np.ndarray):
            hashed_parts.append(joblib.hash(field_value))
        else:
            if id(field_value) not in digest_of_id:
                digest_of_id[id(field_value)] = joblib.hash(field_value)
            hashed_parts.append(digest_of_id[id(field_value)])
    return hashlib.blake2b("\n".join(hashed_parts).encode(), digest_size=16).hexdigest()


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
        """Remember where results are kept, and of which functions.

        ``restored`` counts results read from files, ``not_kept`` those that the codec refused to write;
        the lock guards the latter, as jobs run in threads.
        """
        self._engine, self._folder, self._codec = engine, folder, codec
        self._version, self._fresh = version, fresh
        self._functions = tuple(functions)
        self._lock = threading.Lock()
        self.restored = 0
        self.not_kept = 0

    def _checksum(self, name: str, content: bytes) -> bytes:
        """Return the checksum (32 bytes) of a file's content, its name and the version of the code."""
        # With its name, so that no file can take the place of another.
        return hashlib.sha256(f"{self._version}\n{name}\n".encode() + content).digest()

    def _read(self, name: str) -> tuple[Any] | None:
        """Return a stored result in a tuple, as it may itself be None; None if there is no whole file.

        A damaged file, or one of another version of the code, counts as none: the job is run again.
        """
        if self._fresh:
            return None
        try:
            stored = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        # The checksum finds damage, not forgery: the codec must be safe with any content.
        content = stored[_CHECKSUM_BYTES:]
        if stored[:_CHECKSUM_BYTES] != self._checksum(name, content):
            return None
        try:
            return (self._codec.load(content),)
        # Whatever is wrong with the file: the job is run again.
        except Exception:
            return None

    def _write(self, name: str, result: Any) -> None:
        """Store a result in a file, behind its checksum; count it as not kept where the codec refuses."""
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
        """Run one job, store its result and return it; ``named`` is the file's name and the job."""
        name, job = named
        result = function(job)
        self._write(name, result)
        return result

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results in the order of the jobs; jobs with a stored result are not run again.

        Functions whose results are not kept go to the inner engine as they are.
        """
        plain_function, count_result = uncounted(function)
        if plain_function not in self._functions:
            return self._engine.map(function, jobs)
        job_list, digest_of_id = list(jobs), dict[int, str]()
        names = [_digest(plain_function, job, digest_of_id) for job in job_list]
        read_results = ((index, self._read(name)) for index, name in enumerate(names))
        results = {index: stored[0] for index, stored in read_results if stored is not None}
        self.restored += len(results)
        # A result that is read counts as a step done, too.
        for stored in results.values():
            count_result(stored)
        missing_indices = [index for index in range(len(job_list)) if index not in results]
        if isinstance(self._engine, DaskEngine):
            # Workers have other disks: what comes back is written here.
            new_results = self._engine.map_each(
                function,
                [job_list[index] for index in missing_indices],
                lambda index, result: self._write(names[missing_indices[index]], result),
            )
        else:
            run_and_store: Callable[[Any], Any] = partial(self._run, plain_function)
            run_and_store = (
                function.around(run_and_store) if isinstance(function, CountedCalls) else run_and_store
            )
            new_results = self._engine.map(
                run_and_store, [(names[index], job_list[index]) for index in missing_indices]
            )
        results.update(zip(missing_indices, new_results, strict=True))
        return [results[index] for index in range(len(job_list))]
