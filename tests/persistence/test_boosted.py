"""Boosted trees of pooled rows are saved and loaded like everything else."""

import numpy as np

import coterie
from coterie.models.boosting import BoostedTrees


def test_boosted_trees_travel(tmp_path):
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(12), 30)
    X = rng.normal(size=(len(groups), 2))
    X[:, 0] += np.linspace(-3, 3, 12)[groups]
    y = 3 * np.tanh(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(groups))
    model = coterie.CoterieRegressor(candidates=["ridge", "rf"], n_bootstrap=0).fit(X, y, groups=groups)
    inside = [getattr(trees, "regressor_", None) for trees in model.collaboration_.models]
    assert any(isinstance(trees, BoostedTrees) for trees in inside)
    coterie.save(model, tmp_path / "model.coterie")
    loaded = coterie.load(tmp_path / "model.coterie")
    np.testing.assert_array_equal(loaded.predict(X, groups=groups), model.predict(X, groups=groups))
