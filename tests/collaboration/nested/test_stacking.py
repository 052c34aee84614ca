"""How learners weigh the dictionary, seen through a fit: many rows, few rows, none."""

import numpy as np
import pytest

from coterie import CoterieRegressor


def learners_of(sizes, seed=0, slope=2.0, noise=0.3):
    """Rows of learners with levels of their own; all follow one line."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(len(sizes)), sizes)
    levels = 3 * np.random.default_rng(99).normal(size=len(sizes))
    X = rng.normal(size=(len(owner), 2))
    return X, slope * X[:, 0] + levels[owner] + noise * rng.normal(size=len(owner)), owner, levels


@pytest.mark.parametrize("effort", ["full", "fast"])
@pytest.mark.parametrize("sizes", [(40,) * 8 + (1, 3, 6, 12) * 3, (5,) * 40])
def test_tiny_learners_have_levels_of_their_own(sizes, effort):
    X, y, groups, levels = learners_of(sizes)
    model = CoterieRegressor(candidates=None, effort=effort, n_bootstrap=0).fit(X, y, groups=groups)
    Xt, yt, owner, _ = learners_of((20,) * len(sizes), seed=1)
    residuals = yt - model.predict(Xt, groups=owner)
    errors = np.bincount(owner, residuals**2) / 20
    tiny = np.asarray(sizes) <= 12
    # One line for all with a level of each learner's own is the truth; the response varies by 13.
    by_rows = 0.6 + 2 * np.var(levels) / (1 + 3 * np.asarray(sizes))
    assert errors[tiny].mean() < by_rows[tiny].mean()
    assert set(model.gains_["learner"]) == set(range(len(sizes)))


def test_an_unseen_learner_is_predicted_by_what_all_share():
    X, y, groups, _ = learners_of((30,) * 10)
    model = CoterieRegressor(candidates="linear", n_bootstrap=0).fit(X, y, groups=groups)
    with pytest.warns(UserWarning, match="'somebody' was not seen in fit"):
        stranger = model.predict(X[:5], groups=["somebody"] * 5)
    everybody = y.mean() + 2 * (X[:5, 0] - X[:, 0].mean())
    assert np.abs(stranger - everybody).max() < 1.0
    model.set_params(unknown_learners="raise").fit(X, y, groups=groups)
    with pytest.raises(ValueError, match="was not seen in fit"):
        model.predict(X[:5], groups=["somebody"] * 5)


@pytest.mark.filterwarnings("ignore::coterie.OutsideFitWarning")
def test_what_is_predicted_stays_plausible():
    X, y, groups, _ = learners_of((40,) * 6 + (4,))
    model = CoterieRegressor(n_bootstrap=0).fit(X, y, groups=groups)
    low, high = y.min(), y.max()
    margin = 0.31 * (high - low)
    far = np.array([[1e6, 0.0], [-1e6, 1e6], [0.0, -1e6]])
    for learner in range(7):
        predicted = model.predict(far, groups=[learner] * 3)
        assert (predicted > low - margin).all()
        assert (predicted < high + margin).all()
