"""Finished work is kept on disk, so that a run that was stopped repeats none of it.

Every result is a file named by a digest of its job and of the versions that made it; a job whose file is
there is not run again. The files are pickles, which are fast but run whatever a stranger put into them. So
each is sealed with a key that lies in the user's cache folder and never travels: a file with another seal,
from another user or machine, damaged or forged, is not opened, and its job is run again.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import pickle
import secrets
import threading
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
import sklearn

from coterie.engines.dask import DaskEngine
from coterie.engines.progress import Counted
from coterie.engines.threads import Engine

Job = TypeVar("Job")
Result = TypeVar("Result")

_SEAL = 32


def sealing_key(path: Path) -> bytes:
    """Return the key with which results are sealed, made on first use.

    Parameters
    ----------
    path : Path
        Its file, readable by the user alone.

    Returns
    -------
    bytes
        The key.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        key = path.read_bytes()
        if len(key) == _SEAL:
            return key
        # Cut short by a crash: what it sealed cannot be opened, and is made again.
        path.unlink()
        return sealing_key(path)
    with os.fdopen(handle, "wb") as file:
        key = secrets.token_bytes(_SEAL)
        file.write(key)
    return key


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
    """An engine that keeps the results of some functions on disk.

    Parameters
    ----------
    engine : Engine
        Who runs the jobs.
    folder : Path
        Where results are kept; it is made when the first one is.
    functions : iterable of callable
        Whose results are kept. Their jobs are dataclasses.
    key : bytes
        Seals the files; see `sealing_key`.
    version : str, default=""
        Of the code behind the functions: results of another one are not used.
    """

    def __init__(
        self,
        engine: Engine,
        folder: Path,
        functions: Iterable[Callable[[Any], Any]],
        key: bytes,
        version: str = "",
    ) -> None:
        self._engine, self._folder, self._key, self._version = engine, folder, key, version
        self._functions = tuple(functions)
        self._lock = threading.Lock()
        self.restored = 0

    def _seal(self, name: str, content: bytes) -> bytes:
        # With its name, so that no file can take the place of another.
        return hmac.digest(self._key, f"{self._version}\n{name}\n".encode() + content, "sha256")

    def _read(self, name: str) -> tuple[Any] | None:
        try:
            stored = (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        seal, content = stored[:_SEAL], stored[_SEAL:]
        if not hmac.compare_digest(seal, self._seal(name, content)):
            return None
        return (pickle.loads(content),)

    def _write(self, name: str, result: Any) -> None:
        content = pickle.dumps(result, protocol=pickle.HIGHEST_PROTOCOL)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = self._folder / f".{secrets.token_hex(8)}"
        try:
            temporary.write_bytes(self._seal(name, content) + content)
            os.replace(temporary, self._folder / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    def _run(self, function: Callable[[Any], Any], named: tuple[str, Any]) -> Any:
        name, job = named
        found = self._read(name)
        if found is not None:
            with self._lock:
                self.restored += 1
            return found[0]
        result = function(job)
        self._write(name, result)
        return result

    def _map_remotely(self, function: Callable[[Any], Any], named: list[tuple[str, Any]]) -> list[Any]:
        """Do the same where workers have other disks: what is kept is read and written here."""
        read = ((place, self._read(name)) for place, (name, _) in enumerate(named))
        found = {place: kept for place, kept in read if kept is not None}
        self.restored += len(found)
        if isinstance(function, Counted):
            counter = function.around(lambda kept: kept)
            for kept in found.values():
                counter(kept)
        missing = [place for place in range(len(named)) if place not in found]
        assert isinstance(self._engine, DaskEngine)
        made = self._engine.map_each(
            function,
            [named[place][1] for place in missing],
            lambda place, result: self._write(named[missing[place]][0], result),
        )
        results = {place: kept[0] for place, kept in found.items()}
        results.update(zip(missing, made, strict=True))
        return [results[place] for place in range(len(named))]

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results in the order of the jobs, those that are kept without running anything."""
        plain = function.function if isinstance(function, Counted) else function
        if plain not in self._functions:
            return self._engine.map(function, jobs)
        listed, known = list(jobs), dict[int, str]()
        named = [(_digest(plain, job, known), job) for job in listed]
        if isinstance(self._engine, DaskEngine):
            return self._map_remotely(function, named)
        run: Callable[[Any], Any] = partial(self._run, plain)
        # A result that is read counts as a step done, too.
        return self._engine.map(function.around(run) if isinstance(function, Counted) else run, named)
