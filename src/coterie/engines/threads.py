"""Work in the threads of this process.

Threads, not processes: the candidates' own loops release the interpreter lock, and nothing is copied.
``joblib.parallel_config`` still has the last word on the backend.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any, Protocol, TypeVar, cast

from joblib import Parallel, cpu_count, delayed, effective_n_jobs, parallel_config

from coterie._options import brief

Job = TypeVar("Job")
Result = TypeVar("Result")

# The most threads on a machine with fewer cores than that.
MOST_THREADS = 64


class Engine(Protocol):
    """Runs a function over jobs."""

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results in the order of the jobs."""
        ...


def undivided(function: Callable[[Job], Result], job: Job) -> Result:
    """Run a job without workers of its own.

    Threads inside threads crowd the cores, and a forest whose trees are summed by several of them in the
    order of their arrival predicts differently in the last digit from run to run.
    """
    with parallel_config(backend="sequential"):
        return function(job)


# scikit-learn says this when another thread empties the warning filters between two of its own lines.
_RACE = "`sklearn.utils.parallel.delayed` should be used with"


@contextmanager
def _steady_warnings() -> Iterator[None]:
    """Restore the warning filters afterwards, and hide one warning of scikit-learn's own making.

    Threads of scikit-learn change and restore the filters, which all threads share.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_RACE)
        original_show = warnings.showwarning

        def show_others(message: Any, *where: Any, **more: Any) -> None:
            """Show a warning, unless it comes from scikit-learn's race between threads."""
            if not str(message).startswith(_RACE):
                original_show(message, *where, **more)

        # With the filters emptied only what shows a warning can still hold it back.
        warnings.showwarning = show_others
        yield


class ThreadEngine:
    """Threads, through joblib.

    As everywhere in scikit-learn, `n_jobs` None is one unless in a ``joblib.parallel_config`` context.
    """

    def __init__(self, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def map(self, function: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
        """Return the results in the order of the jobs."""
        n_wanted = effective_n_jobs(self.n_jobs)
        if n_wanted == 1:
            return [function(job) for job in jobs]
        # More threads than this gain nothing, and a system does not start more.
        max_threads = max(MOST_THREADS, cpu_count())
        parallel = Parallel(n_jobs=self.n_jobs if n_wanted <= max_threads else max_threads, prefer="threads")
        with _steady_warnings():
            return cast("list[Result]", parallel(delayed(undivided)(function, job) for job in jobs))


def is_client(engine: Any) -> bool:
    """Tell whether an object is a client of a Dask cluster, by its class's name: dask is not imported."""
    return any(
        base_class.__module__.partition(".")[0] == "distributed" and base_class.__name__ == "Client"
        for base_class in type(engine).__mro__
    )


def resolve_engine(engine: Any = None, n_jobs: int | None = None) -> Engine:
    """Return the engine that an option names, or the object itself where it has a method ``map``.

    None means ``n_jobs`` threads; ``"dask"`` is the current client of a Dask cluster. dask is imported only
    when it is wanted, because it is an extra.
    """
    if n_jobs is not None and (isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            "The 'n_jobs' option must be None, a number of threads, or -1 for as many as there are cores. "
            f"Got {brief(n_jobs)}."
        )
    if engine is None or (isinstance(engine, str) and engine == "threads"):
        return ThreadEngine(n_jobs)
    if (isinstance(engine, str) and engine == "dask") or is_client(engine):
        from coterie.engines.dask import dask_engine

        return dask_engine(engine)
    if not isinstance(engine, (str, type)) and callable(getattr(engine, "map", None)):
        return cast("Engine", engine)
    raise ValueError(
        "The 'engine' option must be None, 'threads', 'dask', a Dask client or an object with a map method. "
        f"Got {brief(engine)}."
    )
