"""A cluster of two processes on this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.tree import DecisionTreeRegressor

from coterie import CoterieClassifier, CoterieRegressor, _version
from coterie.engines import resolve_engine, watch
from coterie.engines.checkpoints import CheckpointEngine
from coterie.engines.dask import ClusterError, DaskEngine, check_workers, connect, shared_parts
from coterie.fit import out_of_core as _streaming
from coterie.method.fitting import choose_candidate
from coterie.persistence.results import ResultCodec

distributed = pytest.importorskip(
    "distributed", reason="dask.distributed is not installed: pip install '.[distributed]'"
)

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": 0}
    with (
        distributed.LocalCluster(2, processes=True, **options) as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@dataclass(frozen=True)
class Job:
    number: int
    table: Any
    word: str = "same"


def rows(seed: int = 0) -> tuple[Any, Any, Any]:
    """Steps at two places."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(10), 24)
    X = rng.uniform(-1, 1, size=(240, 1))
    y = 3.0 * (X[:, 0] > np.array([-0.5, 0.5])[groups % 2]) + 0.2 * rng.normal(size=240)
    return X, y, groups


def model(**options: Any) -> CoterieRegressor:
    trees = {"tree": DecisionTreeRegressor(max_depth=2)}
    return CoterieRegressor(trees, 2, collaboration="pooled", n_bootstrap=0, **options)


def test_results_come_in_the_order_of_the_jobs(client: Any) -> None:
    assert resolve_engine(client).map(abs, [-3, 2, -1]) == [3, 2, 1]
    assert resolve_engine(client).map(abs, []) == []


def test_what_jobs_share_travels_once(client: Any) -> None:
    table = np.arange(5.0)
    jobs = [(number, table) for number in range(4)]
    assert list(shared_parts(jobs)) == [1]
    assert DaskEngine(client).map(lambda job: float(job[0] + job[1].sum()), jobs) == [10, 11, 12, 13]
    records = [Job(number, table) for number in range(3)]
    assert list(shared_parts(records)) == ["table"]
    assert shared_parts(records[:1]) == {}
    assert shared_parts([Job(1, table), Job(2, table.copy())]) == {}


def test_an_error_in_a_job_is_raised_here(client: Any) -> None:
    with pytest.raises(ZeroDivisionError):
        resolve_engine(client).map(lambda number: 1 / number, [1, 0])


def test_a_worker_that_dies_costs_nothing_but_time(client: Any, tmp_path: Path) -> None:
    died = tmp_path / "died"

    def dies_once(job: Any) -> Any:
        if job[0] == 3 and not died.exists():
            died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return job[0] + job[1].sum()

    table = np.ones(3)
    assert DaskEngine(client).map(dies_once, [(number, table) for number in range(8)]) == list(range(3, 11))
    assert died.exists()


def test_a_fit_survives_a_worker_killed_in_the_exchange(client: Any) -> None:
    X, y, groups = rows()
    here = model().fit(X, y, groups=groups)
    killed = []

    def kill(stage: str, done: int, total: int) -> None:
        if stage == "Exchange" and done == 2 and not killed:
            pid = next(iter(client.run(os.getpid).values()))
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    with watch(kill):
        there = model(engine=client).fit(X, y, groups=groups)
    assert killed
    assert there.learner_labels_.tolist() == here.learner_labels_.tolist()
    assert np.array_equal(there.exchange_.losses, here.exchange_.losses)
    assert np.array_equal(there.predict(X, groups), here.predict(X, groups))


@pytest.mark.parametrize("collaboration", ["auto", "pooled"])
def test_a_fit_of_classes_is_that_of_this_machine(client: Any, collaboration: str) -> None:
    X, y, groups = rows()
    labels = np.where(y > 1, "high", "low")
    options = {"candidates": ["rf", "logistic"], "collaboration": collaboration, "effort": "fast"}
    here = CoterieClassifier(**options).fit(X, labels, groups=groups)
    there = CoterieClassifier(**options, engine=client).fit(X, labels, groups=groups)
    assert there.learner_labels_.tolist() == here.learner_labels_.tolist()
    np.testing.assert_allclose(there.predict_proba(X, groups), here.predict_proba(X, groups), atol=1e-12)


def test_the_current_client_is_meant_by_the_name(client: Any) -> None:
    engine = resolve_engine("dask")
    assert isinstance(engine, DaskEngine)
    assert engine.client is client


def test_a_stopped_fit_repeats_no_finished_learner(client: Any, tmp_path: Path) -> None:
    X, y, groups = rows()

    def engine() -> CheckpointEngine:
        return CheckpointEngine(DaskEngine(client), tmp_path, [choose_candidate], ResultCodec(), "1")

    def stop(stage: str, done: int, total: int) -> None:
        if stage == "Select" and done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watch(stop):
        model(engine=engine()).fit(X, y, groups=groups)
    again = engine()
    fitted = model(engine=again).fit(X, y, groups=groups)
    assert 4 <= again.restored <= 10
    assert fitted.learner_labels_.tolist() == model().fit(X, y, groups=groups).learner_labels_.tolist()


def test_workers_read_the_learners_themselves(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed: pip install '.[cli]'")
    from coterie.cli.partitions import find_learners

    X, y, groups = rows()
    table = pl.DataFrame(X, schema=[f"x{i}" for i in range(X.shape[1])]).with_columns(y=y, site=groups)
    table.write_parquet(tmp_path / "sorted.parquet")
    where = {"target": "y", "group": "site", "features": (), "drop": (), "by_file": False, "memory": "1GiB"}
    # As if the rows did not fit, and all of them were kept.
    monkeypatch.setattr(_streaming, "COPIES", 10**9)
    monkeypatch.setattr(_streaming, "rows_per_learner", lambda *_: 10**9)
    found, *_ = find_learners([str(tmp_path / "sorted.parquet")], **where)
    model = CoterieRegressor("lr", engine=client).fit_sources(found.sources)
    whole = CoterieRegressor("lr").fit(table.drop("y", "site"), y, groups=groups.astype(str))
    assert model.learner_labels_.tolist() == whole.learner_labels_.tolist()
    np.testing.assert_allclose(model.gains_["error_with"], whole.gains_["error_with"])


def test_workers_read_the_classes_themselves(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pl = pytest.importorskip("polars", reason="polars is not installed: pip install '.[cli]'")
    from coterie.cli.partitions import find_learners

    X, y, groups = rows()
    labels = np.where(y > 1, "high", "low")
    pl.DataFrame({"x": X[:, 0], "y": labels, "site": groups}).write_parquet(tmp_path / "sorted.parquet")
    where = {"target": "y", "group": "site", "features": (), "drop": (), "by_file": False, "memory": "1GiB"}
    monkeypatch.setattr(_streaming, "COPIES", 10**9)
    monkeypatch.setattr(_streaming, "rows_per_learner", lambda *_: 10**9)
    found, *_ = find_learners([str(tmp_path / "sorted.parquet")], **where, task="auto")
    assert found.classes == ("high", "low")
    for known in (found.classes, None):
        model = CoterieClassifier("linear", engine=client).fit_sources(found.sources, classes=known)
        whole = CoterieClassifier("linear").fit(X, labels, groups=groups.astype(str))
        assert model.learner_labels_.tolist() == whole.learner_labels_.tolist()
        np.testing.assert_allclose(model.gains_["error_with"], whole.gains_["error_with"])


def test_no_scheduler_is_said_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.engines.dask.PATIENCE", 0.5)
    with pytest.raises(ClusterError, match=r"No Dask scheduler answers at 'tcp://127\.0\.0\.1:9'"):
        connect("tcp://127.0.0.1:9")


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        ({}, "has no workers"),
        ({"w": ModuleNotFoundError("coterie")}, "does not have coterie: install coterie"),
        ({"w": OSError("disk")}, "cannot import coterie: disk"),
        ({"v": _version.__version__, "w": "0.0.1"}, r"w has coterie 0\.0\.1, here it is"),
    ],
)
def test_workers_that_cannot_do_the_work_are_refused(answers: Any, sentence: str) -> None:
    with pytest.raises(ClusterError, match=sentence):
        check_workers(SimpleNamespace(run=lambda *args, **kwargs: answers))


def lossy_engine(monkeypatch: pytest.MonkeyPatch, losses: int) -> tuple[DaskEngine, list[list[int]]]:
    """An engine that loses all jobs but the first of those sent, so many times."""
    sent: list[list[int]] = []

    def attempt(_: Any, function: Any, jobs: dict[int, Any], shared: Any, keep: Any) -> None:
        sent.append(list(jobs))
        for place in sent[-1][:1] if len(sent) <= losses else jobs:
            keep(place, function(jobs[place]))

    monkeypatch.setattr(DaskEngine, "_attempt", attempt)
    answers = {"w": _version.__version__}
    return DaskEngine(SimpleNamespace(run=lambda *args, **kwargs: answers)), sent


def test_only_what_was_lost_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, sent = lossy_engine(monkeypatch, losses=2)
    assert engine.map(abs, [-1, -2, -3, -4]) == [1, 2, 3, 4]
    assert sent == [[0, 1, 2, 3], [1, 2, 3], [2, 3]]


def test_a_cluster_that_loses_everything_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, _ = lossy_engine(monkeypatch, losses=99)
    with pytest.raises(ClusterError, match="lost 5 jobs 5 times: its workers die"):
        engine.map(abs, range(10))
