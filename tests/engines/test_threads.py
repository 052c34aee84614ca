import threading
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from joblib import parallel_config

from coterie.engines import ThreadEngine, resolve_engine


def sleep_and_square(job: int) -> int:
    # The first jobs take longest, so that results come in the other order.
    time.sleep(0.002 * (10 - job))
    return job * job


class Reversed:
    """An engine of the user's."""

    def map(self, function: Callable[[Any], Any], jobs: Iterable[Any]) -> list[Any]:
        return [function(job) for job in reversed(list(jobs))][::-1]


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1])
def test_results_keep_the_order_of_the_jobs_whatever_the_number_of_threads(n_jobs: int | None) -> None:
    assert ThreadEngine(n_jobs).map(sleep_and_square, range(10)) == [k * k for k in range(10)]


def test_jobs_may_be_a_generator_or_nothing() -> None:
    assert ThreadEngine(2).map(abs, (k for k in (-1, 2))) == [1, 2]
    assert ThreadEngine(2).map(abs, []) == []


def test_the_work_stays_in_this_process() -> None:
    seen: list[int] = []
    ThreadEngine(2).map(seen.append, range(8))
    assert sorted(seen) == list(range(8))


def test_two_jobs_run_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=5)
    assert sorted(ThreadEngine(2).map(lambda _: both.wait(), range(2))) == [0, 1]


def test_joblib_has_the_last_word() -> None:
    both = threading.Barrier(2, timeout=5)
    with parallel_config("threading", n_jobs=2):
        assert sorted(ThreadEngine().map(lambda _: both.wait(), range(2))) == [0, 1]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_in_a_job_is_not_swallowed(n_jobs: int) -> None:
    with pytest.raises(ZeroDivisionError):
        ThreadEngine(n_jobs).map(lambda job: 1 // job, [1, 0])


@pytest.mark.parametrize("engine", [None, "threads"])
def test_threads_are_the_engine_by_default(engine: Any) -> None:
    resolved = resolve_engine(engine, 2)
    assert isinstance(resolved, ThreadEngine)
    assert resolved.n_jobs == 2


def test_an_object_that_can_map_is_taken_as_it_is() -> None:
    mine = Reversed()
    assert resolve_engine(mine, 2) is mine
    assert resolve_engine(mine).map(sleep_and_square, [1, 2]) == [1, 4]


@pytest.mark.parametrize("engine", ["processes", 3, Reversed, object()])
def test_an_unknown_engine_is_refused(engine: Any) -> None:
    with pytest.raises(
        ValueError, match="The 'engine' option must be None, 'threads', 'dask', a Dask client or an object"
    ):
        resolve_engine(engine)


def warn_without_filters(message: str) -> None:
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.warn(message, UserWarning, stacklevel=1)


def test_the_race_of_scikit_learns_threads_is_not_shown_and_other_warnings_are() -> None:
    race = "`sklearn.utils.parallel.delayed` should be used with `sklearn.utils.parallel.Parallel`"
    with warnings.catch_warnings(record=True) as output:
        before = list(warnings.filters)
        ThreadEngine(2).map(warn_without_filters, [race, "the rows are odd"])
        assert list(warnings.filters) == before
    assert [str(warning.message) for warning in output] == ["the rows are odd"]


@pytest.mark.parametrize("n_jobs", ["all", 0, 1.5, True])
def test_a_number_of_threads_that_is_none_is_refused(n_jobs: Any) -> None:
    with pytest.raises(ValueError, match="'n_jobs' option must be None, a number of threads"):
        resolve_engine(None, n_jobs)


def test_more_threads_than_a_system_starts_are_not_asked_for():
    # With 100,000 threads the command ended in a traceback.
    assert ThreadEngine(100_000).map(abs, range(-300, 0)) == list(range(300, 0, -1))
