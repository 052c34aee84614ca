"""Who belongs together, how many, and when that is not clear."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.metrics import adjusted_rand_score

from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_linear_learners, make_stress
from coterie.method.likelihood.answer import Likelihood, answer_learners
from coterie.method.likelihood.counting import Search
from coterie.method.likelihood.features import make_features
from coterie.method.likelihood.moments import Rows, add_up
from coterie.method.likelihood.rules import RULES
from coterie.rows.learners import gather_learners

Table = tuple[Any, Any, Any]
# A failing case is not made simpler: that takes minutes.
FEW = settings(
    max_examples=6,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],
)


def answer(X: Any, y: Any, groups: Any, **options: Any) -> Likelihood:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        learners = gather_learners(X, y, groups, caller="test")
    return answer_learners(learners, options.pop("most", min(8, len(learners))), **options)


def two_truths(L: int = 8, n: int = 25, p: int = 2, seed: int = 0) -> Table:
    truths = np.outer([1.0, -1.0], np.linspace(1, 2, p))
    truth = np.arange(L) % 2
    data = make_linear_learners(L, 2, n, p, 0.5, coefficients=truths, labels=truth, random_state=seed)
    return data.X, data.y, np.repeat(np.arange(L) + 10, n)


@pytest.mark.parametrize(
    ("setting", "seed"),
    [
        ("one truth", 0),
        ("27, 2 and 1 learners", 0),
        ("sizes 15 to 500, three truths", 0),
        ("AR(1) noise .8, three truths", 0),
        ("wild cells of one learner, three truths", 0),
        pytest.param("twelve truths, 60 learners", 0, marks=pytest.mark.slow),
        pytest.param("two truths, a sine apart", 0, marks=pytest.mark.slow),
    ],
)
def test_stress_settings_are_exact_and_clear(setting: str, seed: int) -> None:
    data = make_stress(setting, 1000 + seed)
    found = answer(data.X, data.y, data.groups, most=16)
    assert adjusted_rand_score(data.truth, found.labels) == 1
    assert found.clear


def test_responsibilities_say_how_surely() -> None:
    found = answer(*two_truths())
    assert_allclose(found.responsibilities.sum(axis=1), 1)
    assert (found.responsibilities.max(axis=1) > 0.99).all()
    noisy = make_linear_learners(16, 2, 12, 2, 6.0, labels=np.arange(16) % 2, random_state=3)
    unsure = answer(noisy.X, noisy.y, noisy.groups, given=2).responsibilities.max(axis=1)
    assert unsure.min() < 0.9


def test_gradual_differences_in_one_slope_are_no_coteries() -> None:
    rng = np.random.default_rng(0)
    owner, lines = np.repeat(np.arange(30), 100), np.tile([1.0, -1.0, 0.5], (30, 1))
    lines[:, 1] += 0.4 * rng.standard_normal(30)
    X = rng.standard_normal((3000, 3))
    found = answer(X, (X * lines[owner]).sum(axis=1) + rng.standard_normal(3000), owner)
    assert found.labels.max() == 0
    assert not found.clear
    assert found.differs.tolist() == [1]
    assert "column 1" in found.why


def test_gradual_differences_along_one_direction_are_no_coteries() -> None:
    rng = np.random.default_rng(0)
    owner, lines = np.repeat(np.arange(30), 100), 1 + 0.4 * rng.standard_normal((30, 1)) * np.ones(6)
    X = rng.standard_normal((3000, 6))
    found = answer(X, (X * lines[owner]).sum(axis=1) + rng.standard_normal(3000), owner)
    assert found.labels.max() == 0
    assert found.why == "the learners differ gradually in a direction of the slopes"
    assert_allclose(np.abs(found.direction[:6]), 1 / np.sqrt(6), atol=0.1)


def test_coteries_with_a_spread_inside_are_found() -> None:
    rng = np.random.default_rng(1)
    owner, truth = np.repeat(np.arange(24), 100), np.arange(24) % 2
    lines = np.array([[1.0, 0.0, 1.0], [-0.5, 1.0, 1.0]])[truth] + 0.15 * rng.standard_normal((24, 3))
    X = rng.standard_normal((2400, 3))
    found = answer(X, (X * lines[owner]).sum(axis=1) + rng.standard_normal(2400), owner + 10)
    assert found.labels.tolist() == truth.tolist()
    y_spread = np.sqrt((X * lines[owner]).sum(axis=1).var() + 1)
    spread = y_spread * np.sqrt(found.mixture.state.own_variance[:3].mean())
    assert spread == pytest.approx(0.15, abs=0.05)


def test_one_weak_slope_is_undecided_and_named() -> None:
    data = make_stress("one of 10 coefficients differs by .5, 60 rows", 1001)
    found = answer(data.X, data.y, data.groups)
    assert not found.clear
    assert found.differs.tolist() == [0]
    assert adjusted_rand_score(data.truth, found.labellings[2]) > 0.8


def test_a_given_number_is_taken() -> None:
    rows = two_truths()
    for count in (3, 8):
        found = answer(*rows, given=count)
        assert len(set(found.labels.tolist())) == count
        assert found.clear


@FEW
@given(seed=st.integers(0, 100), shift=st.floats(-1e3, 1e3), scale=st.floats(1e-3, 1e3))
def test_names_order_units_and_a_constant_change_nothing(seed: int, shift: float, scale: float) -> None:
    X, y, groups = two_truths(L=6, seed=seed)
    before = dict(zip(range(10, 16), answer(X, y, groups).labels.tolist(), strict=True))
    order = np.random.default_rng(seed).permutation(6)
    new = order[groups - 10] + 10
    rows = np.argsort(new, kind="stable")
    after = answer(X[rows] * scale - 3, (y[rows] + shift) * scale, new[rows]).labels
    moved = [after[order[j]] for j in range(6)]
    assert adjusted_rand_score(list(before.values()), moved) == 1


@FEW
@given(seed=st.integers(0, 100), who=st.integers(0, 7))
def test_a_twin_lands_with_its_twin(seed: int, who: int) -> None:
    X, y, groups = two_truths(seed=seed)
    its = groups == who + 10
    labels = answer(np.r_[X, X[its]], np.r_[y, y[its]], np.r_[groups, np.full(its.sum(), 99)]).labels
    assert labels[who] == labels[8]


def _noiseless() -> Table:
    X, _, groups = two_truths()
    return X, X @ [1.0, 2.0] * np.where(groups % 2, 1, -1), groups


def _changed(column: int | None = None, value: float = 5.0, learner: int | None = None) -> Table:
    X, y, groups = two_truths()
    rows = slice(None) if learner is None else groups == learner
    if column is None:
        y[rows] = value
    else:
        X[rows, column] = value
    return X, y, groups


def _one_row() -> Table:
    X, y, groups = two_truths()
    kept = (groups != 10) | (np.arange(len(groups)) == 0)
    return X[kept], y[kept], groups[kept]


STRANGE: dict[str, Table] = {
    "noiseless responses": _noiseless(),
    "duplicated columns": (np.repeat(two_truths()[0], 2, axis=1), *two_truths()[1:]),
    "more features than rows": two_truths(n=6, p=10),
    "a learner of one row": _one_row(),
    "learners of one row": two_truths(n=1),
    "a constant predictor": _changed(0),
    "a constant response": _changed(),
    "a learner with a constant response": _changed(learner=12),
    "a learner with constant predictors": _changed(1, learner=12),
    "one learner": tuple(part[:25] for part in two_truths()),  # type: ignore[dict-item]
    "two learners": tuple(part[:50] for part in two_truths()),  # type: ignore[dict-item]
    "large numbers": (two_truths()[0] * 1e100, two_truths()[1] * 1e60, two_truths()[2]),
    "small numbers": (two_truths()[0] * 1e-30, two_truths()[1] * 1e-60, two_truths()[2]),
}


@pytest.mark.parametrize("name", STRANGE)
def test_strange_rows_have_an_answer_and_no_warning(name: str) -> None:
    found = answer(*STRANGE[name])
    assert np.isfinite(found.responsibilities).all()
    assert np.isfinite(list(found.bounds.values())).all()
    assert np.isfinite(found.mixture.means).all()


def test_a_larger_number_must_not_be_worse_on_rows_left_out() -> None:
    """With lognormal predictors and noise that grows, the lines' bound of two clusters is higher."""
    rng = np.random.default_rng(1001)
    X = rng.lognormal(0, 1, (6000, 5))
    noise = rng.standard_normal(6000) * (0.3 + X[:, 0])
    y = X @ rng.standard_normal(5) + noise
    rows = Rows(make_features(X, curved=False), (y - np.median(y)) / y.std(), np.arange(0, 6001, 200))
    found = Search(add_up(rows), 4).run()
    assert found.mixtures[2].bound > found.mixtures[1].bound + RULES.nats
    assert found.chosen == 1


class TestAsAnOption:
    """``refine="likelihood"`` of the stage and of the estimator."""

    def test_the_estimator_takes_it(self) -> None:
        X, y, groups = two_truths()
        model = CoterieRegressor(candidates="linear", refine="likelihood", n_bootstrap=5)
        model.fit(X, y, groups=groups)
        partition = model.record_.partition
        assert partition.labels.tolist() == [0, 1] * 4
        assert partition.rule == "likelihood"
        assert partition.curves["likelihood"].chosen == 2
        assert np.isfinite(model.predict(X, groups=groups)).all()

    def test_a_number_or_another_rule_may_choose(self) -> None:
        X, y, groups = two_truths()
        selection = select_models(X, y, groups, candidates="ridge")
        exchange = cross_evaluate(selection, X, y, groups)
        for n_clusters, rule in ((3, "given"), ("eigengap", "eigengap"), ("held-out", "held-out")):
            found = cluster_learners(
                exchange, X, y, groups, selection=selection, refine="likelihood", n_clusters=n_clusters
            )
            assert found.rule == rule
            assert n_clusters != 3 or found.n_clusters == 3

    def test_unclear_coteries_are_said(self) -> None:
        data = make_stress("one of 10 coefficients differs by .5, 60 rows", 1001)
        selection = select_models(data.X, data.y, data.groups, candidates="ridge")
        exchange = cross_evaluate(selection, data.X, data.y, data.groups)
        found = cluster_learners(
            exchange, data.X, data.y, data.groups, selection=selection, refine="likelihood"
        )
        assert not found.clear
        assert found.notes[-1].startswith("No clear coteries: 2 coteries and gradual differences in column 0")

    def test_it_needs_rows(self) -> None:
        with pytest.raises(ValueError, match="needs the learners' rows: pass X, y, groups and selection"):
            cluster_learners(np.eye(3), refine="likelihood")
