from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.tree import DecisionTreeRegressor

from coterie.datasets import make_linear_learners
from coterie.method.select import select_models
from reproductions.simulation2.remembered import FitMemory, Remembered, unwrapped


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(20, 2))
    return X, X[:, 0] + generator.normal(size=20)


def test_the_same_fit_is_made_once_and_clones_remember_together(rows):
    memory = FitMemory()
    one, other = (clone(Remembered(Ridge(), memory)).fit(*rows) for _ in range(2))
    assert one.fitted_ is other.fitted_
    assert len(memory) == 1
    assert np.array_equal(one.predict(rows[0]), Ridge().fit(*rows).predict(rows[0]))


def test_other_settings_other_rows_and_other_responses_are_other_fits(rows):
    memory = FitMemory()
    X, y = rows
    Remembered(Ridge(), memory).fit(X, y)
    Remembered(Ridge(alpha=2.0), memory).fit(X, y)
    Remembered(Ridge(), memory).fit(X[:10], y[:10])
    Remembered(Ridge(), memory).fit(X, 2 * y)
    assert len(memory) == 4


def test_without_a_memory_it_just_fits(rows):
    X, y = rows
    assert np.array_equal(Remembered(Ridge()).fit(X, y).predict(X), Ridge().fit(X, y).predict(X))


def test_selecting_among_remembered_candidates_is_selecting_among_the_candidates():
    data = make_linear_learners(4, 2, n_rows=30, random_state=0)
    rows = {"y": data.y, "groups": data.groups}
    plain = {"ridge": Ridge(), "tree": DecisionTreeRegressor(max_features=2)}
    memory = FitMemory()
    wrapped = {name: Remembered(candidate, memory) for name, candidate in plain.items()}
    ours = unwrapped(select_models(data.X, **rows, candidates=wrapped))
    theirs = select_models(data.X, **rows, candidates=plain)
    assert ours.names == theirs.names
    assert np.array_equal(ours.noise, theirs.noise)
    assert [type(model) for model in ours.models] == [type(model) for model in theirs.models]
    for one, other in zip(ours.residuals, theirs.residuals, strict=True):
        assert np.array_equal(one, other)
    for one, other in zip(ours.fold_models, theirs.fold_models, strict=True):
        for mine, yours in zip(one, other, strict=True):
            assert np.array_equal(mine.predict(data.X), yours.predict(data.X))
