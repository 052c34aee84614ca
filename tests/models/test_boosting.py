import numpy as np
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_info

from coterie.models.boosting import BoostedTrees


def _openmp_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"]


def test_they_are_the_trees_of_scikit_learn_and_threads_are_as_before():
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(200, 3)), rng.random(200)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=200)
    before = _openmp_threads()
    ours, theirs = (
        kind(max_iter=20, early_stopping=False, random_state=0).fit(X, y, sample_weight=weight)
        for kind in (BoostedTrees, HistGradientBoostingRegressor)
    )
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X))
    assert _openmp_threads() == before


def test_one_thread_fits_and_predicts(monkeypatch):
    seen = []
    for name in ("fit", "predict"):
        whole = getattr(HistGradientBoostingRegressor, name)

        def spied(self, *rows, whole=whole, **options):
            seen.append(_openmp_threads())
            return whole(self, *rows, **options)

        monkeypatch.setattr(HistGradientBoostingRegressor, name, spied)
    X = np.arange(40.0).reshape(-1, 1)
    BoostedTrees(max_iter=2).fit(X, X[:, 0]).predict(X)
    assert len(seen) == 2
    assert all(threads == [1] * len(threads) for threads in seen)
