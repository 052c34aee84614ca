"""Learners that are read one by one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import coterie._streaming as streaming
from coterie import CoterieRegressor
from coterie._streaming import memory_in_bytes, select_from_source
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine
from coterie.engines.checkpoints import CheckpointEngine

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
    monkeypatch.setattr(streaming, "_shares", lambda *_: (30, 1000))
    model = CoterieRegressor("lr").fit_sources(sources())
    whole = CoterieRegressor("lr").fit(DATA.X, DATA.y, groups=DATA.groups)
    assert model.learner_labels_.tolist() == whole.learner_labels_.tolist()
    assert model.gains_["n_rows"].tolist() == [80] * 9
    assert model.selection_.n_rows.tolist() == [30] * 9
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


def test_each_learner_is_read_once_beside_a_look_at_the_first() -> None:
    log: list[str] = []
    CoterieRegressor("lr").fit_sources(sources(log=log))
    assert sorted(log) == sorted([*DATA.learner_ids.tolist(), DATA.learner_ids[0]])


def test_finished_learners_are_not_read_again(tmp_path: Path) -> None:
    def engine() -> CheckpointEngine:
        return CheckpointEngine(ThreadEngine(), tmp_path, [select_from_source], bytes(32))

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
    with pytest.raises(ValueError, match=r"9 learners with 3 predictors need 0\.5 GiB of memory"):
        CoterieRegressor("lr").fit_sources(sources(), memory="300MiB")


def test_no_learners_and_other_predictors_are_refused() -> None:
    with pytest.raises(ValueError, match="There are no learners"):
        CoterieRegressor("lr").fit_sources({})
    odd = sources()
    name = str(DATA.learner_ids[4])
    odd[name] = Held(name, odd[name].X[:, :2], odd[name].y)
    with pytest.raises(ValueError, match=f"predictors of learner '{name}' differ from those of learner"):
        CoterieRegressor("lr").fit_sources(odd)
