"""Work on a Dask cluster: jobs travel to workers, what jobs share travels once, small results come back.

A worker may die in the middle. What it was doing is done again by another one, and what lay on it alone is
sent again from here. dask.distributed is spoken in this file only, and imported when it is needed.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from coterie._options import brief
from coterie._version import __version__
from coterie.engines.progress import uncounted
from coterie.engines.threads import undivided

Job = TypeVar("Job")
Result = TypeVar("Result")

# How often what was lost with a worker is sent again before the cluster is given up.
ATTEMPTS = 5
# Seconds to wait for a scheduler to answer.
PATIENCE = 10

_log = logging.getLogger(__name__)


class ClusterError(ValueError):
    """A Dask cluster that cannot do the work, said in one sentence."""


def _import_distributed() -> Any:
    """Import dask.distributed; if it is missing, say which extra brings it."""
    try:
        import distributed
    except ImportError as error:
        raise ClusterError(
            "The engine 'dask' needs dask.distributed: install coterie's extra 'distributed'."
        ) from error
    return distributed


def check_address(address: str) -> None:
    """Raise unless a text is an address of a scheduler, such as ``tcp://host:8786``.

    Without the check, dask would try any text, and log what it tries.
    """
    # A name or an IPv4 address, or an IPv6 address in brackets; ports are from 1 to 65,535.
    host_pattern = r"(?:[\w.-]+|\[[0-9a-fA-F:.%]+\])"
    match = re.fullmatch(rf"(?:(?:tcp|tls|ws|wss|ucx)://)?{host_pattern}:([0-9]{{1,5}})", address)
    if match is None or not 0 < int(match[1]) < 2**16:
        raise ClusterError(
            f"{brief(address)} is no address of a Dask scheduler: give one such as tcp://HOST:8786."
        )


def connect(address: str) -> Any:
    """Return a client of the scheduler at an address such as ``tcp://host:8786``."""
    distributed = _import_distributed()
    check_address(address)
    try:
        return distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        raise ClusterError(
            f"No Dask scheduler answers at {address!r}: start one with 'dask scheduler', or check the "
            "address."
        ) from error


def check_workers(client: Any) -> None:
    """Raise unless the cluster has workers and all have this version of the package.

    Another version may compute something else, or fail in the middle with an error that says nothing.
    """
    # A function of ours could not be sent to a worker without the package; builtins can.
    try:
        version_of_worker = client.run(eval, "__import__('coterie').__version__", on_error="return")
    except (OSError, TimeoutError) as error:
        raise ClusterError("The Dask cluster does not answer: check its scheduler and workers.") from error
    if not version_of_worker:
        raise ClusterError("The Dask cluster has no workers: start some with 'dask worker'.")
    for worker, version in sorted(version_of_worker.items()):
        if isinstance(version, ModuleNotFoundError):
            raise ClusterError(
                f"The Dask worker {worker} does not have coterie: install coterie {__version__} there."
            )
        if isinstance(version, Exception):
            raise ClusterError(f"The Dask worker {worker} cannot import coterie: {version}")
        if version != __version__:
            raise ClusterError(
                f"The Dask worker {worker} has coterie {version}, here it is {__version__}: install the same."
            )


def _parts(job: Any) -> dict[Any, Any]:
    """Return the parts of a job: a record's fields by name, or a tuple's items by position; else none."""
    if is_dataclass(job):
        return {field.name: getattr(job, field.name) for field in fields(job)}
    return dict(enumerate(job)) if isinstance(job, tuple) else {}


def shared_parts(jobs: Sequence[Any]) -> dict[Any, Any]:
    """Return the parts that are the very same object in all jobs, by name or position.

    They are sent to the workers once instead of with every job. Numbers and texts are left out, as they
    cost nothing. Jobs are records or tuples of one kind.
    """
    if len(jobs) < 2:
        return {}
    shared = _parts(jobs[0])
    for job in jobs[1:]:
        parts_of_job = _parts(job)
        shared = {
            name: part for name, part in shared.items() if name in parts_of_job and parts_of_job[name] is part
        }
    small_types = (type(None), bool, int, float, str)
    return {name: part for name, part in shared.items() if not isinstance(part, small_types)}


def _with(job: Any, parts: dict[Any, Any]) -> Any:
    """Return a copy of a job, a record or a tuple, with some parts replaced, given by name or position."""
    if not parts:
        return job
    if isinstance(job, tuple):
        return tuple(parts.get(index, part) for index, part in enumerate(job))
    return replace(job, **parts)


def _run(function: Callable[[Any], Any], job: Any, names: tuple[Any, ...], *parts: Any) -> Any:
    """Run one job on a worker; ``parts`` are the shared parts of the job, which ``names`` names."""
    return undivided(function, _with(job, dict(zip(names, parts, strict=True))))


class DaskEngine:
    """Maps functions over jobs on a Dask cluster whose workers have this version of the package."""

    def __init__(self, client: Any) -> None:
        check_workers(client)
        self.client = client

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results in the order of the jobs."""
        return self.map_each(function, list(jobs), lambda index, result: None)

    def map_each(
        self,
        function: Callable[[Job], Result],
        jobs: Sequence[Job],
        received: Callable[[int, Result], None],
    ) -> list[Result]:
        """Return the results in the order of the jobs; `received` gets the index and the result of each.

        Jobs that were lost with a worker are sent again, at most `ATTEMPTS` times in all. The
        function is one of a module, so that workers can import it.
        """
        plain_function, count_result = uncounted(function)
        shared = shared_parts(jobs)
        results: dict[int, Any] = {}

        def keep(index: int, result: Any) -> None:
            """Keep the result of one job, hand it on and count it as a step."""
            results[index] = result
            received(index, result)
            count_result(result)

        for attempt in range(ATTEMPTS):
            missing_indices = [index for index in range(len(jobs)) if index not in results]
            if not missing_indices:
                break
            if attempt:
                _log.info("%d jobs were lost with a worker and are sent again.", len(missing_indices))
            self._attempt(plain_function, {index: jobs[index] for index in missing_indices}, shared, keep)
        if len(results) < len(jobs):
            raise ClusterError(
                f"The Dask cluster lost {len(jobs) - len(results)} jobs {ATTEMPTS} times: its workers die; "
                "give them more memory, or run the work here."
            )
        return [results[index] for index in range(len(jobs))]

    def _attempt(
        self,
        function: Callable[[Any], Any],
        jobs: dict[int, Any],
        shared: dict[Any, Any],
        keep: Callable[[int, Any], None],
    ) -> None:
        """Send jobs once, and hand each result to ``keep`` with its index; skip jobs lost with a worker.

        ``shared`` parts travel to all workers once, and jobs without them.
        """
        distributed = _import_distributed()
        worker_lost = (distributed.KilledWorker, CancelledError, distributed.comm.CommClosedError)
        names = tuple(shared)
        try:
            shared_objects = [shared[name] for name in names]
            remote_parts = (
                self.client.scatter(shared_objects, broadcast=True, hash=False) if shared_objects else []
            )
            # None stands for the shared parts, which `_run` puts back on the worker.
            slim_jobs = [_with(job, dict.fromkeys(names)) for job in jobs.values()]
            futures = [
                self.client.submit(_run, function, job, names, *remote_parts, pure=False) for job in slim_jobs
            ]
            index_of_key = {future.key: index for future, index in zip(futures, jobs, strict=True)}
            for future in distributed.as_completed(futures, loop=self.client.loop):
                try:
                    result = future.result()
                except worker_lost:
                    continue
                keep(index_of_key[future.key], result)
        except worker_lost as error:
            _log.info("A worker was lost: %s", error)


def dask_engine(engine: Any) -> DaskEngine:
    """Return the engine of a Dask client; the name ``"dask"`` stands for dask's current client."""
    distributed = _import_distributed()
    if not isinstance(engine, str):
        return DaskEngine(engine)
    try:
        client = distributed.Client.current()
    except ValueError as error:
        raise ClusterError(
            "The engine 'dask' needs a client: make one with distributed.Client(...) before fit, or pass it "
            "as the engine."
        ) from error
    return DaskEngine(client)
