"""Learners that are read one by one."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import coterie.fit.out_of_core as streaming
from coterie import CoterieRegressor
from coterie.candidates import make_candidates
from coterie.datasets import make_linear_learners, make_stress
from coterie.engines import ThreadEngine
from coterie.engines.checkpoints import CheckpointEngine
from coterie.fit.out_of_core import memory_in_bytes, select_from_source
from coterie.persistence.results import ResultCodec

DATA = make_linear_learners(9, n_truths=3, n_rows=80, n_features=3, random_state=0)


@dataclass(frozen=True)
class Held:
    """A source that holds its rows, and keeps a list of who was read."""

    learner: str
    X: Any
    y: Any
    read_by: tuple[list[str], ...] = ()

    @property
    def n_rows(self) -> int:
        return len(self.y)

    def read(self, most: int) -> tuple[Any, Any]:
        for log in self.read_by:
            log.append(self.learner)
        return self.X[:most], self.y[:most]


def sources(data: Any = DATA, *, log: list[str] | None = None) -> dict[str, Held]:
    logs = () if log is None else (log,)
    return {
        str(name): Held(str(name), data.X[data.groups == name], data.y[data.groups == name], logs)
        for name in data.learner_ids
    }


def assert_same(one: CoterieRegressor, other: CoterieRegressor) -> None:
    assert list(one.gains_) == list(other.gains_)
    for name, column in one.gains_.items():
        if column.dtype.kind == "f":
            assert_allclose(column, other.gains_[name], err_msg=name)
        else:
            assert column.tolist() == other.gains_[name].tolist(), name


SMALL = make_linear_learners(9, n_truths=3, n_rows=30, n_features=2, random_state=2)
# Ids in another order than that of their text, and rows of different learners mixed.
ORDER = np.random.default_rng(0).permutation(len(SMALL.y))
ROWS = SMALL.X[ORDER], SMALL.y[ORDER], SMALL.groups[ORDER]
IDS = list(dict.fromkeys(ROWS[2].tolist()))


class Folds:
    """A splitter of one's own: three blocks."""

    def split(self, X: Any, y: Any = None, groups: Any = None) -> Any:
        yield from KFold(3).split(X)


def own_sources(X: Any, y: Any, groups: Any) -> dict[Any, Held]:
    return {i: Held(i, X[groups == i], y[groups == i]) for i in dict.fromkeys(groups.tolist())}


def assert_equal_records(one: Any, other: Any, where: str = "") -> None:
    """Compare records field by field, numbers up to rounding; models are compared by what they predict."""
    if is_dataclass(one):
        for name in (f.name for f in fields(one) if f.name not in ("models", "fold_models", "source")):
            assert_equal_records(getattr(one, name), getattr(other, name), f"{where}.{name}")
    elif isinstance(one, Mapping):
        assert list(one) == list(other), where
        for name, part in one.items():
            assert_equal_records(part, other[name], f"{where}[{name!r}]")
    elif isinstance(one, tuple):
        assert len(one) == len(other), where
        for place, part in enumerate(one):
            assert_equal_records(part, other[place], f"{where}[{place}]")
    elif isinstance(one, (float, np.ndarray)) and np.asarray(one).dtype.kind == "f":
        assert_allclose(one, other, rtol=1e-6, atol=1e-9, err_msg=where)
    else:
        assert np.array_equal(one, other), where


def assert_same_answer(streamed: CoterieRegressor, whole: CoterieRegressor) -> None:
    assert streamed.n_clusters_ == whole.n_clusters_
    assert streamed.learner_labels_.tolist() == whole.learner_labels_.tolist()
    for name in ("selection_", "exchange_", "partition_", "collaboration_", "cluster_fit_", "gains_"):
        assert_equal_records(getattr(streamed, name), getattr(whole, name), name)
    for name in ("stability_", "admission_", "learner_ids_", "min_rows_", "n_features_in_"):
        assert_equal_records(getattr(streamed, name), getattr(whole, name), name)
    assert_allclose(streamed.exchange_.losses, whole.exchange_.losses)


OPTIONS: list[dict[str, Any]] = [
    {"order": None},
    {},
    {"candidates": "linear"},
    {"candidates": {i: "lr" if n % 2 else ["ridge"] for n, i in enumerate(IDS)}},
    {"candidates": RandomForestRegressor(3), "n_clusters": 3, "collaboration": "pooled"},
    *({"n_clusters": rule} for rule in ("held-out", "gap", "gap-jump", "eigengap", "penalty", "cv", 1, 3)),
    {"max_clusters": 2},
    *({"scale": scale} for scale in ("median", 0.5)),
    *({"refine": refine} for refine in ("average", None)),
    *({"collaboration": method} for method in ("pooled", "average", "local", "global")),
    {"refine": "average", "refine_rounds": 3},
    {"refine": "average", "collaboration": "average"},
    {"nested_folds": 2},
    {"robust": True},
    {"standardize": "learner"},
    *({"min_rows": 20, "small_learners": what} for what in ("admit", "drop")),
    {"min_rows": 20, "standardize": "learner", "splitter": KFold(3)},
    *({"splitter": splitter} for splitter in (KFold(2), Folds(), ShuffleSplit(3), TimeSeriesSplit(3))),
    {"splitter": KFold(3), "collaboration": "pooled"},
    {"splitter": KFold(3), "refine": "average"},
    {"n_bootstrap": 0},
    {"random_state": 7},
    {"random_state": np.random.RandomState(5)},
    {"n_jobs": 2},
    {"engine": ThreadEngine()},
    {"landmarks": 4, "candidates": KNeighborsRegressor(3)},
    {"landmarks": "auto"},
    {"device": "cpu"},
    {"unknown_learners": "raise"},
    {"effort": "fast"},
    {"time": True},
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=[f"{place}-{'-'.join(options)}" for place, options in enumerate(OPTIONS)]
)
def test_where_everything_fits_the_answer_is_that_of_fit(options: dict[str, Any]) -> None:
    options = {"candidates": "lr", "n_bootstrap": 4} | options
    X, y, groups = ROWS
    if "min_rows" in options:
        # Two learners have too few rows.
        place = np.array([np.sum(groups[:row] == groups[row]) for row in range(len(y))])
        kept = ~np.isin(groups, IDS[1:3]) | (place < 5)
        X, y, groups = X[kept], y[kept], groups[kept]
    one, other = (CoterieRegressor(**copy.deepcopy(options)) for _ in range(2))
    streamed, whole = one.fit_sources(own_sources(X, y, groups)), other.fit(X, y, groups=groups)
    assert_same_answer(streamed, whole)
    known = np.isin(groups, whole.learner_ids_)
    predictions = [m.predict(X[known], groups=groups[known]) for m in (streamed, whole)]
    assert_allclose(*predictions)


def test_every_option_is_among_those_that_are_tried() -> None:
    # The last one is refused in a sentence.
    tried = {name for options in OPTIONS for name in options} | {"group_column", "log_target"}
    assert tried == set(CoterieRegressor().get_params(deep=False))


def test_a_column_of_ids_and_tables_change_nothing() -> None:
    X, y, groups = ROWS
    table = pandas.DataFrame(X, columns=["a", "b"])
    whole = CoterieRegressor("lr", group_column="who").fit(table.assign(who=groups), y)
    streamed = CoterieRegressor("lr", group_column="who").fit_sources(own_sources(table, y, groups))
    assert_same_answer(streamed, whole)
    assert_allclose(*(m.predict(table.assign(who=groups)) for m in (streamed, whole)))


@pytest.mark.parametrize(
    "options",
    [
        {"splitter": KFold(5)},
        {"candidates": {i: "lr" for n, i in enumerate(IDS) if n != 4}},
        {"candidates": {i: KNeighborsRegressor(2 if n != 4 else 3) for n, i in enumerate(IDS)}},
    ],
    ids=["splitter", "mapping", "candidate"],
)
def test_a_small_learner_need_not_select(options: dict[str, Any]) -> None:
    X, y, groups = ROWS
    kept = groups != IDS[4]
    kept[np.flatnonzero(~kept)[:4]] = True
    X, y, groups = X[kept], y[kept], groups[kept]
    one, other = (CoterieRegressor(**({"candidates": "lr", "n_bootstrap": 0} | options)) for _ in range(2))
    streamed, whole = one.fit_sources(own_sources(X, y, groups)), other.fit(X, y, groups=groups)
    assert_same_answer(streamed, whole)
    # Where it is to shape the clusters, it has to.
    for model in (one, other):
        model.set_params(min_rows=4)
    with pytest.raises(ValueError) as refused:
        other.fit(X, y, groups=groups)
    with pytest.raises(ValueError) as streaming_refused:
        one.fit_sources(own_sources(X, y, groups))
    assert str(streaming_refused.value) == str(refused.value)


def test_what_fit_refuses_is_refused() -> None:
    for splitter in ("kfold", 3):
        with pytest.raises(ValueError, match="must be None or have a split method"):
            CoterieRegressor("lr", splitter=splitter).fit_sources(sources())


@pytest.mark.parametrize("standardize", [None, "learner"])
def test_rows_with_wild_cells_are_set_aside_as_in_fit(standardize: str | None) -> None:
    X, y = DATA.X.copy(), DATA.y.copy()
    X[[3, 4], 1], y[200] = -9999, 1e12
    wild, log = replace(DATA, X=X, y=y), []
    options = {"candidates": "lr", "standardize": standardize}
    with pytest.warns(UserWarning, match="set aside") as caught:
        streamed = CoterieRegressor(**options).fit_sources(sources(wild, log=log))
    with pytest.warns(UserWarning, match="set aside") as as_in_fit:
        whole = CoterieRegressor(**options).fit(X, y, groups=DATA.groups)
    assert_same(streamed, whole)
    assert streamed.partition_.notes == whole.partition_.notes
    assert [str(w.message) for w in caught] == [str(w.message) for w in as_in_fit]
    # Only those with a wild cell are read twice; the first also for its columns.
    assert sorted(log) == sorted([*DATA.learner_ids.tolist(), "learner 00", "learner 00", "learner 02"])


def test_a_wild_cell_among_rows_that_are_not_kept_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 50)
    for row in range(80, 88):
        X = DATA.X.copy()
        X[row, 0] = 1e9
        model = CoterieRegressor("lr", n_clusters=3, standardize="learner")
        with pytest.warns(UserWarning, match="1 cell far from all others"):
            model.fit_sources(sources(replace(DATA, X=X)))
        assert model.gains_["n_rows"].tolist() == [80, 79, *[80] * 7]


def test_models_see_all_rows_and_the_rest_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 30)
    model = CoterieRegressor("lr").fit_sources(sources())
    whole = CoterieRegressor("lr").fit(DATA.X, DATA.y, groups=DATA.groups)
    assert model.learner_labels_.tolist() == whole.learner_labels_.tolist()
    assert model.gains_["n_rows"].tolist() == [80] * 9
    assert model.selection_.n_rows.tolist() == [80] * 9
    assert [len(residuals) for residuals in model.selection_.residuals] == [30] * 9
    for mine, theirs in zip(model.selection_.models, whole.selection_.models, strict=True):
        assert_allclose(mine.coef_, theirs.coef_)
    assert model.collaboration_.method == "average"
    # The part that is kept is drawn by the learner's own seed, with the residuals that belong to it.
    again = CoterieRegressor("lr").fit_sources(sources())
    assert_same(model, again)
    learner = model.record_.learners
    first = learner.span(0)
    place = [np.flatnonzero((row == DATA.X).all(axis=1))[0] for row in learner.X[first]]
    expected = dict(
        zip(np.flatnonzero(DATA.groups == learner.ids[0]), whole.selection_.residuals[0][:, 0], strict=True)
    )
    assert_allclose(model.selection_.residuals[0][:, 0], [expected[p] for p in place])


@pytest.mark.parametrize("n_truths", [1, 3])
def test_clusters_of_a_part_of_the_rows_are_those_of_all(
    monkeypatch: pytest.MonkeyPatch, n_truths: int
) -> None:
    # Many predictors and small coteries: models of the kept rows would be far worse than models of all.
    data = make_linear_learners(12, n_truths=n_truths, n_rows=1500, n_features=40, random_state=1)
    whole = CoterieRegressor("lr").fit_sources(sources(data))
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 90)
    model = CoterieRegressor("lr").fit_sources(sources(data))
    assert whole.n_clusters_ == model.n_clusters_ == n_truths
    # Ninety rows are too few to be sure of a gain of three per cent. Nobody is sent alone.
    assert "stay alone" not in model.gains_["verdict"].tolist()
    assert_allclose(model.gains_["error_alone"].mean(), whole.gains_["error_alone"].mean(), rtol=0.15)
    if n_truths == 1:
        # The coterie is everybody.
        assert_allclose(model.gains_["error_with"], model.gains_["error_all"])


def test_who_leaves_takes_nothing_of_the_comparison_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 30)
    model = CoterieRegressor("lr", n_clusters=1).fit_sources(sources())
    model.remove([str(DATA.learner_ids[0])])
    # Still averages of models that have seen all rows, for the coterie as for everybody.
    assert model.collaboration_.method == "average"
    assert_allclose(model.gains_["error_with"], model.gains_["error_all"])


def test_what_stands_before_a_line_may_bend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[bool] = []
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *given: calls.append(given[3]) or 1000)
    for candidate in (LinearRegression(), make_pipeline(PolynomialFeatures(), Ridge())):
        CoterieRegressor({"line": candidate}, n_clusters=3).fit_sources(sources())
    assert calls == [True, False]


def test_pooled_models_of_a_part_of_the_rows_are_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 30)
    with pytest.warns(UserWarning, match="pooled models were fitted on 30 rows of each learner at most"):
        CoterieRegressor("lr", collaboration="pooled").fit_sources(sources())


@pytest.mark.parametrize(
    ("sizes", "kept"),
    [
        # Room for 600 rows in all: everybody whole, shared out evenly, small ones leave theirs to the others.
        ([200, 200, 200], 200),
        ([1000, 1000, 1000], 200),
        ([100, 1000, 1000], 250),
        ([60, 60, 10_000], 480),
    ],
)
def test_what_small_learners_leave_over_goes_to_the_large_ones(sizes: list[int], kept: int) -> None:
    memory = streaming.BASE + 2 * 8 * streaming.COPIES * 4 * 600
    assert streaming.rows_per_learner(memory, np.array(sizes), 3, True) == kept
    # Models without coefficients predict every row of everybody.
    assert streaming.rows_per_learner(memory, np.array(sizes), 3, False) < kept


def test_nothing_as_long_as_the_rows_stays_behind_a_model() -> None:
    source = sources()[str(DATA.learner_ids[0])]
    job = streaming.SourceJob("a", source, make_candidates("lr"), None, False, 0, 30, 1000)
    read = select_from_source(job)
    for model in (read.fitted.model, *read.fitted.fold_models):
        assert model.coef_.base is None or len(model.coef_.base) == len(model.coef_)


def test_each_learner_is_read_once_beside_a_look_at_the_first() -> None:
    log: list[str] = []
    CoterieRegressor("lr").fit_sources(sources(log=log))
    assert sorted(log) == sorted([*DATA.learner_ids.tolist(), DATA.learner_ids[0]])


def test_finished_learners_are_not_read_again(tmp_path: Path) -> None:
    def engine() -> CheckpointEngine:
        return CheckpointEngine(ThreadEngine(), tmp_path, [select_from_source], ResultCodec())

    first = CoterieRegressor("lr", engine=engine()).fit_sources(sources())
    later = engine()
    assert_same(first, CoterieRegressor("lr", engine=later).fit_sources(sources()))
    assert later.restored == 9


def test_learners_with_few_rows_are_admitted() -> None:
    few = sources()
    name = str(DATA.learner_ids[4])
    few[name] = Held(name, few[name].X[:6], few[name].y[:6])
    model = CoterieRegressor("lr").fit_sources(few)
    assert model.learner_labels_[4] == model.learner_labels_[1] != model.learner_labels_[0]
    assert model.gains_["n_rows"][4] == 6
    assert len(model.selection_.models) == 8


@pytest.mark.parametrize(
    ("memory", "amount"),
    [(2**30, 2**30), ("2GiB", 2**31), ("1.5 gb", 3 * 2**29), ("500MB", 500 * 2**20), ("7k", 7 * 2**10)],
)
def test_memory_is_given_in_bytes_or_with_a_unit(memory: Any, amount: int) -> None:
    assert memory_in_bytes(memory) == amount


@pytest.mark.parametrize("memory", ["", "much", "-1GiB", "0", 0, True, "2 GiB of it", None])
def test_other_amounts_are_refused(memory: Any) -> None:
    with pytest.raises(ValueError, match="number with a unit, such as '2GiB'"):
        memory_in_bytes(memory)


def test_too_little_memory_is_refused_with_the_amount_that_is_needed() -> None:
    with pytest.raises(ValueError, match=r"9 learners with 3 predictors need 501 MiB of memory"):
        CoterieRegressor("lr").fit_sources(sources(), memory="300MiB")


def test_a_learner_without_usable_rows_is_left_out_and_named() -> None:
    some = sources()
    name = str(DATA.learner_ids[0])
    some[name] = Held(name, some[name].X[:0], some[name].y[:0])
    with pytest.warns(UserWarning, match=f"Learner '{name}' has no rows that can be used"):
        model = CoterieRegressor("lr").fit_sources(some)
    assert name not in model.learner_ids_.tolist()
    assert len(model.learner_ids_) == 8


def test_a_bad_value_is_said_to_be_whose() -> None:
    some = sources()
    name = str(DATA.learner_ids[3])
    spoilt = some[name].X.copy()
    spoilt[2, 1] = np.nan
    some[name] = Held(name, spoilt, some[name].y)
    with pytest.raises(ValueError, match=f"Learner '{name}': .*NaN"):
        CoterieRegressor("lr").fit_sources(some)


def test_ids_keep_their_types_and_their_order() -> None:
    given = list(sources().values())
    ids = [10, 9, "9", ("a", 1), 2.5, 1, 3, 4, 5]
    model = CoterieRegressor("lr").fit_sources(dict(zip(ids, given, strict=True)))
    assert model.learner_ids_.tolist() == ids
    assert model.gains_["learner"].tolist() == ids
    same = np.equal.outer(model.learner_labels_, model.learner_labels_)
    assert (same == np.equal.outer(DATA.truth, DATA.truth)).all()


def test_no_learners_and_other_predictors_are_refused() -> None:
    with pytest.raises(ValueError, match="There are no learners"):
        CoterieRegressor("lr").fit_sources({})
    odd = sources()
    name = str(DATA.learner_ids[4])
    odd[name] = Held(name, odd[name].X[:, :2], odd[name].y)
    with pytest.raises(ValueError, match=f"predictors of learner '{name}' differ from those of learner"):
        CoterieRegressor("lr").fit_sources(odd)


@pytest.mark.parametrize("order", ["auto", None])
def test_rows_in_time_order_are_found_as_fit_finds_them(order: str | None) -> None:
    data = make_stress("AR(1) noise .7, one truth", 1000)
    log: list[str] = []
    model = CoterieRegressor("lr", order=order)
    streamed = clone(model).fit_sources(sources(data, log=log))
    whole = model.fit(data.X, data.y, groups=data.groups)
    assert streamed.selection_.in_order is whole.selection_.in_order is (order == "auto")
    assert streamed.selection_.inflation == whole.selection_.inflation
    assert streamed.partition_.notes == whole.partition_.notes
    assert_same(streamed, whole)
