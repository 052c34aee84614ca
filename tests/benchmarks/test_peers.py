"""The peers find what is plain to see, and the comparison's claims hold on a few small draws."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie import CoterieRegressor

FOLDER = Path(__file__).parents[2] / "benchmarks" / "quality" / "peers"
MODULES = [
    "problem",
    "settings",
    "baselines",
    "k_models",
    "ifca",
    "vectors",
    "flexmix",
    "ours",
    "page",
    "run",
    "calibrated",
]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmark's modules, which import each other by their bare names."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield SimpleNamespace(**{name: __import__(name) for name in MODULES})
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def plain(bench: Any) -> tuple[Any, Any]:
    """Nine learners of three lines that lie far apart, and whose is whose."""
    rng = np.random.default_rng(0)
    truth = np.arange(9) % 3
    X = [rng.standard_normal((24, 3)) for _ in truth]
    y = [x @ (4 * np.eye(3)[t]) + 0.5 * rng.standard_normal(24) for x, t in zip(X, truth, strict=True)]
    return bench.problem.Problem(X, y, 3, 5, bench.problem.LINES, seed=0), truth


@pytest.mark.parametrize("peer", ["k_models", "ifca", "vectors"])
def test_every_peer_finds_clusters_that_are_plain_to_see(bench: Any, plain: Any, peer: str) -> None:
    problem, truth = plain
    for answer in getattr(bench, peer).run(problem):
        assert adjusted_rand_score(truth, answer.labels) == 1.0, answer.method


def test_flexmix_finds_them_where_it_is_installed(bench: Any, plain: Any) -> None:
    if bench.flexmix.missing():
        required = os.environ.get("COTERIE_REQUIRE_ALL") == "1"
        pytest.fail(bench.flexmix.missing()) if required else pytest.skip(bench.flexmix.missing())
    problem, truth = plain
    answers = bench.flexmix.run(problem)
    assert [answer.method for answer in answers] == ["flexmix, K given", "flexmix, BIC"]
    assert all(adjusted_rand_score(truth, answer.labels) == 1.0 for answer in answers)


def test_k_models_can_say_that_there_is_one_cluster(bench: Any) -> None:
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((40, 3)) for _ in range(8)]
    y = [x.sum(axis=1) + rng.standard_normal(40) for x in X]
    problem = bench.problem.Problem(X, y, 1, 4, bench.problem.LINES, seed=0)
    assert all(len(set(answer.labels.tolist())) == 1 for answer in bench.k_models.run(problem))


def test_the_test_rows_are_none_of_the_training_rows_and_have_no_noise(bench: Any) -> None:
    drawn = bench.settings.draw("covariate shift, three linear truths", 0)
    assert len(drawn.train.y) == 30 * 60
    assert len(drawn.signal_test) == 30 * bench.settings.TEST_ROWS
    assert not set(drawn.X_test[:, 0]) & set(drawn.train.X[:, 0])
    coefficients = drawn.train.coefficients[drawn.train.truth]
    owner = np.searchsorted(drawn.train.learner_ids, drawn.groups_test)
    assert np.allclose(drawn.signal_test, np.einsum("rp,rp->r", drawn.X_test, coefficients[owner]))


@pytest.mark.parametrize("standardize", [None, "learner"])
def test_stages_in_a_row_are_what_the_estimator_does(bench: Any, standardize: str | None) -> None:
    drawn = bench.settings.draw("four linear truths", 0)
    train = drawn.train
    rows = bench.ours.Rows(train.X, train.y, train.groups, standardize is not None)
    given, auto, *_ = bench.ours.run(rows, drawn.X_test, drawn.groups_test, 4, ["ridge"], "coterie")
    for answer, n_clusters in ((given, 4), (auto, "auto")):
        options = {"n_clusters": n_clusters, "standardize": standardize, "collaboration": "pooled"}
        model = CoterieRegressor(["ridge"], **options)
        model.fit(train.X, train.y, groups=train.groups)
        assert np.array_equal(model.learner_labels_, answer.labels)
        predicted = model.predict(drawn.X_test, groups=drawn.groups_test)
        assert np.allclose(predicted, answer.predictions)


def test_draws_of_one_truth_keep_the_noise_and_peers_still_answer_two(bench: Any) -> None:
    name = "Simulation 1, p=5, SNR 4"
    drawn = bench.settings.draw(name, 0)
    one = bench.calibrated.one_truth(drawn)
    assert set(one.train.truth) == {0}
    assert np.allclose(one.train.y - one.train.signal, drawn.train.y - drawn.train.signal)
    beta = np.linalg.lstsq(one.train.X, one.train.signal)[0]
    assert np.allclose(beta, drawn.train.coefficients[0])
    two = bench.calibrated.silhouettes(name, drawn, 0)
    for kind, (height, labels) in bench.calibrated.silhouettes(name, one, 0).items():
        assert len(set(labels.tolist())) > 1
        assert height < two[kind][0]


QUICK = ["four linear truths", "one linear truth", "Simulation 1, p=5, SNR 16"]


def test_the_claims_hold_on_a_few_draws_and_a_run_is_continued(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The headline is the default candidates'; ridge alone stands in for them, at a fraction of the time.
    monkeypatch.setitem(bench.run.OURS, "ours, linear", ("coterie, linear candidates", ["ridge"]))
    parts = ("baselines", "ours, linear", "vectors", "ifca")
    bench.run.run(QUICK, 1, tmp_path, parts)
    first = (tmp_path / "results.csv").read_text()
    rows = bench.run.run(QUICK, 2, tmp_path, parts)
    assert (tmp_path / "results.csv").read_text().startswith(first)
    rows = [{**row, "method": row["method"].replace(", linear candidates", "")} for row in rows]
    means, draws = bench.page.means_of(rows)
    assert set(draws.values()) == {2}
    assert not bench.page.shortfalls(means, QUICK, bench.page.GIVEN)
    assert not bench.page.shortfalls(means, QUICK, bench.page.UNKNOWN)
    assert means["one linear truth"]["coterie, auto"]["exact"] == 1.0
    for setting in QUICK:
        methods = means[setting]
        assert methods["coterie, auto"]["mse"] < 1.25 * methods["oracle"]["mse"] < methods["alone"]["mse"]
    (tmp_path / "calibrated.csv").write_text("setting,draws,rule\nnoisy,2,0.8\n")
    bench.page.write_page(rows, QUICK, "# head", tmp_path)
    text = (tmp_path / "README.md").read_text()
    assert "in 3 of 3 settings" in text
    assert "| noisy | 2 | 0.80 |" in text
    assert (tmp_path / "peers.svg").stat().st_size > 1000
