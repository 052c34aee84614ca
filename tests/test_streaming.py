"""Learners that are read one by one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

import coterie._streaming as streaming
from coterie import CoterieRegressor
from coterie._streaming import memory_in_bytes, select_from_source
from coterie.candidates import make_candidates
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine
from coterie.engines.checkpoints import CheckpointEngine
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


@pytest.mark.parametrize(
    "options",
    [
        {"candidates": "linear"},
        {"candidates": ["rf"], "n_clusters": 3, "collaboration": "pooled"},
        {"candidates": "lr", "standardize": "learner"},
        {"candidates": {str(name): "lr" for name in DATA.learner_ids}},
    ],
)
def test_where_everything_fits_the_answer_is_that_of_fit(options: dict) -> None:
    streamed = CoterieRegressor(**options).fit_sources(sources())
    whole = CoterieRegressor(**options).fit(DATA.X, DATA.y, groups=DATA.groups)
    assert_same(streamed, whole)
    new = DATA.X[:5], DATA.groups[:5]
    assert_allclose(streamed.predict(new[0], groups=new[1]), whole.predict(new[0], groups=new[1]))


def test_models_see_all_rows_and_the_rest_a_part_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "rows_kept", lambda *_: 30)
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
    learner = model._shaping
    first = learner.span(0)
    place = [np.flatnonzero((row == DATA.X).all(axis=1))[0] for row in learner.X[first]]
    expected = dict(
        zip(np.flatnonzero(DATA.groups == learner.ids[0]), whole.selection_.residuals[0], strict=True)
    )
    assert_allclose(model.selection_.residuals[0], [expected[p] for p in place])


@pytest.mark.parametrize("n_truths", [1, 3])
def test_clusters_of_a_part_of_the_rows_are_those_of_all(
    monkeypatch: pytest.MonkeyPatch, n_truths: int
) -> None:
    # Many predictors and small coteries: models of the kept rows would be far worse than models of all.
    data = make_linear_learners(12, n_truths=n_truths, n_rows=1500, n_features=40, random_state=1)
    whole = CoterieRegressor("lr").fit_sources(sources(data))
    monkeypatch.setattr(streaming, "rows_kept", lambda *_: 90)
    model = CoterieRegressor("lr").fit_sources(sources(data))
    assert whole.n_clusters_ == model.n_clusters_ == n_truths
    assert set(model.gains_["verdict"].tolist()) == {"collaborate"}
    assert_allclose(model.gains_["alone"].mean(), whole.gains_["alone"].mean(), rtol=0.15)
    if n_truths == 1:
        # The coterie is everybody.
        assert_allclose(model.gains_["coterie"], model.gains_["all"])


def test_who_leaves_takes_nothing_of_the_comparison_along(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "rows_kept", lambda *_: 30)
    model = CoterieRegressor("lr", n_clusters=1).fit_sources(sources())
    model.remove([str(DATA.learner_ids[0])])
    # Still averages of models that have seen all rows, for the coterie as for everybody.
    assert model.collaboration_.method == "average"
    assert_allclose(model.gains_["coterie"], model.gains_["all"])


def test_what_stands_before_a_line_may_bend_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(streaming, "rows_kept", lambda *given: asked.append(given[3]) or 1000)
    for candidate in (LinearRegression(), make_pipeline(PolynomialFeatures(), Ridge())):
        CoterieRegressor({"line": candidate}, n_clusters=3).fit_sources(sources())
    assert asked == [True, False]


def test_pooled_models_of_a_part_of_the_rows_are_named_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "rows_kept", lambda *_: 30)
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
    assert streaming.rows_kept(memory, np.array(sizes), 3, True) == kept
    # Models without coefficients predict every row of everybody.
    assert streaming.rows_kept(memory, np.array(sizes), 3, False) < kept


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
