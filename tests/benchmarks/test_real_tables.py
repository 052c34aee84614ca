"""Every rival runs on a few generated learners, and its error, seconds and size are kept."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from coterie.datasets import local_copy

pytest.importorskip("pandas")

FOLDER = Path(__file__).parents[2] / "benchmarks" / "quality" / "real_tables"
MODULES = [
    "tables",
    "untouched",
    "more_tables",
    "plain",
    "boosted",
    "mixed",
    "methods",
    "measure",
    "ledger",
    "summarise",
    "figure",
    "page",
    "run",
]
FOR_OFFICIAL_FOLDS = [
    "HistGradientBoosting with id",
    "LightGBM with id",
    "LightGBM with id and level",
    "CatBoost with id",
    "GPBoost, random intercepts",
    "GPBoost, random slopes",
    "MERF",
    "global (ridge)",
    "global (forest)",
]
RIVALS = [
    *FOR_OFFICIAL_FOLDS,
    "alone",
    "centred global (ridge)",
    "centred global (forest)",
    "alone and global stacked",
    "scikit-lego grouped (ridge)",
    "scikit-lego grouped (forest)",
    "scikit-lego hierarchical (ridge)",
]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    """The benchmark's modules, which import each other by their bare names, with few rounds."""
    before = {name: sys.modules.pop(name, None) for name in MODULES}
    sys.path.insert(0, str(FOLDER))
    try:
        found = SimpleNamespace(**{name: __import__(name) for name in MODULES})
        found.boosted.MOST_ROUNDS, found.boosted.LEAVES = 40, (7,)
        found.mixed.MOST_ROUNDS, found.mixed.LEAVES, found.mixed.RATES = 20, (7,), (0.05,)
        found.plain.FOREST.set_params(n_estimators=10)
        found.methods.SMALL_FOREST.set_params(n_estimators=10)
        yield found
    finally:
        sys.path.remove(str(FOLDER))
        for name in MODULES:
            sys.modules.pop(name, None)
            if before[name] is not None:
                sys.modules[name] = before[name]


def draw(seed: int = 0, ids: tuple[str, ...] = ("a", "b", "c", "d", "e", "f")) -> dict[str, Any]:
    """Return rows of learners whose levels and first slopes differ.

    LightGBM splits no id off that has fewer than a hundred rows.
    """
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(ids)), 120 if len(ids) < 10 else 10)
    X = rng.standard_normal((len(codes), 3))
    slopes = 1 + codes % 2
    y = 3.0 * (codes % 6) + slopes * X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(len(codes))
    return {"X": X, "y": y, "groups": np.array(ids)[codes]}


@pytest.fixture(scope="module")
def data(bench: Any) -> Any:
    train, test = draw(0), draw(1)
    return bench.tables.Halves(*train.values(), *test.values())


def installed(bench: Any, method: str) -> None:
    why = bench.methods.METHODS[method].missing()
    if why is not None:
        pytest.skip(f"{method} is left out: {why}.")


def test_the_list_of_rivals_is_whole(bench: Any) -> None:
    assert {*RIVALS, "coterie", "coterie, effort fast"} == set(bench.methods.METHODS)


@pytest.mark.parametrize("method", RIVALS)
def test_each_installed_rival_gives_error_seconds_and_size(
    bench: Any, data: Any, method: str, tmp_path: Path
) -> None:
    installed(bench, method)
    outcome = bench.measure.measure(method, data)
    assert outcome.note == ""
    line = bench.ledger.Ledger(tmp_path, tmp_path / "rows").add(("scots", 0, method), data, outcome)
    assert line["cpu_fit"] >= 0
    assert line["cpu_predict"] >= 0
    assert line["size"] > 100
    # All but models that know no learner are far below the variance of the response.
    least = np.var(data.y_test) * (2 if "global (" in method or "hierarchical" in method else 0.3)
    assert line["error"] < least


@pytest.mark.parametrize("method", FOR_OFFICIAL_FOLDS)
def test_a_rival_for_official_folds_predicts_a_learner_without_training_rows(
    bench: Any, data: Any, method: str
) -> None:
    installed(bench, method)
    assert bench.methods.METHODS[method].unseen
    test = draw(2, ("a", "b", "c", "d", "e", "z"))
    mixed = bench.tables.Halves(data.X, data.y, data.groups, *test.values())
    outcome = bench.measure.measure(method, mixed)
    assert outcome.note == ""
    assert np.all(np.isfinite(outcome.prediction))


def test_more_ids_than_scikit_learn_takes_become_levels(bench: Any) -> None:
    rows = draw(0, tuple(f"{i:03d}" for i in range(300)))
    model = bench.boosted.fit_hist(*rows.values())
    assert (model.code, model.level) == (False, True)
    assert np.mean((model.predict(rows["X"], rows["groups"]) - rows["y"]) ** 2) < 0.2 * np.var(rows["y"])


def test_the_level_of_a_row_does_not_know_the_row(bench: Any) -> None:
    groups, fold = np.array(["a", "a", "b", "b"]), np.array([0, 1, 0, 1])
    first = bench.boosted.out_of_fold_level(groups, np.array([0.0, 1.0, 2.0, 3.0]), fold)
    other = bench.boosted.out_of_fold_level(groups, np.array([9.0, 1.0, 2.0, 3.0]), fold)
    assert first[0] == other[0]
    assert first[1] != other[1]


def test_a_missing_rival_is_left_out_with_a_sentence(bench: Any, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setitem(bench.methods.METHODS, "MERF", bench.methods.Method(None, "no_such_package"))
    assert bench.run.available(["MERF", "alone"]) == ["alone"]
    said = capsys.readouterr().out
    assert said == "MERF is left out: no_such_package is not installed (install coterie's extra 'bench').\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_run_past_its_limit_is_stopped_and_one_that_fails_says_why(
    bench: Any, data: Any, monkeypatch: Any
) -> None:
    def forever(X: Any, y: Any, groups: Any) -> None:
        while True:
            pass

    def fails(X: Any, y: Any, groups: Any) -> None:
        raise ValueError("no such rows")

    def dies(X: Any, y: Any, groups: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def interrupted(X: Any, y: Any, groups: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    for name, fit, note in (
        ("forever", forever, "stopped after 1 s of processor"),
        ("fails", fails, "ValueError: no such rows"),
        ("dies", dies, f"its process ended with {-signal.SIGKILL}"),
    ):
        monkeypatch.setitem(bench.methods.METHODS, name, bench.methods.Method(fit))
        outcome = bench.measure.measure_within(1, name, data)
        assert outcome.prediction is None
        assert outcome.note == note
    monkeypatch.setitem(bench.methods.METHODS, "interrupted", bench.methods.Method(interrupted))
    with pytest.raises(SystemExit, match="interrupted was interrupted; the next run continues"):
        bench.measure.measure_within(1, "interrupted", data)
    assert bench.measure.measure_within(60, "global (ridge)", data).size > 0


def test_kept_results_are_read_again_and_shown(bench: Any, data: Any, tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    noise = np.random.default_rng(0).standard_normal(len(data.y_test))
    outcome = bench.measure.Outcome
    for method, scale in (("alone", 1.0), ("MERF", 2.0), ("coterie", 0.5)):
        prediction = data.y_test + scale * noise
        bench.ledger.Ledger(tmp_path, rows).add(
            ("scots", 0, method), data, outcome(prediction, 1.0, 0.5, 1000)
        )
    stopped = outcome(None, note="stopped after 300 s of processor")
    ledger = bench.ledger.Ledger(tmp_path, rows)
    ledger.add(("scots", 0, "GPBoost, random slopes"), data, stopped)
    assert len(ledger.lines) == 4
    results = bench.summarise.Results.read(tmp_path)
    ratio, best = results.ratio("scots", "coterie")
    assert best == "alone"
    assert ratio == pytest.approx(0.25)
    assert results.paired("scots", "coterie", "alone") < -2
    assert results.lines["scots", 0, "MERF"]["worse_by_2_se"] == 6
    bench.page.write_page(FOLDER / "README.head.md", tmp_path)
    page = (tmp_path / "README.md").read_text()
    assert "coterie has the lowest error on 1 of 1 tables" in page
    assert "stopped" in page
    assert (tmp_path / "figure.png").is_file()


@pytest.mark.parametrize(("table", "most"), [("cheese", 0.97), ("school_ilea", 0.97)])
@pytest.mark.parametrize("effort", ["coterie", "coterie, effort fast"])
def test_coterie_is_ahead_of_what_everybody_tries_first(
    bench: Any, table: str, most: float, effort: str
) -> None:
    if local_copy("", f"{table}.parquet") is None:
        missing = f"COTERIE_DATA is not set to a folder that has {table}.parquet"
        if os.environ.get("COTERIE_REQUIRE_ALL") == "1":
            pytest.fail(missing)
        pytest.skip(missing)
    split = bench.more_tables.split(table, 0)
    errors = {}
    for method in (effort, "HistGradientBoosting with id"):
        outcome = bench.measure.measure(method, split)
        errors[method] = bench.more_tables.error(table, split, (outcome.prediction - split.y_test) ** 2)
    # .94 and .95 of it in the committed results.
    assert errors[effort] <= most * errors["HistGradientBoosting with id"]
