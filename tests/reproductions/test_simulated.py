"""The learners that three of the experiments draw."""

import dataclasses
import math

import numpy as np
import pytest

from coterie.datasets import Simulation
from reproductions.fairness.data import make_fairness
from reproductions.simulation1.data import make_simulation1
from reproductions.simulation2.data import make_simulation2
from reproductions.simulation2.friedman import friedman2, friedman3

SMALL = {
    "simulation1": lambda seed: make_simulation1(n_features=5, random_state=seed),
    "simulation2": lambda seed: make_simulation2(n_rows=5, n_features=8, random_state=seed),
    "fairness": lambda seed: make_fairness(n_rows=5, random_state=seed),
}


def row_learners(simulation: Simulation) -> np.ndarray:
    """Number of each row's learner, found by its name alone."""
    position = {name: i for i, name in enumerate(simulation.learner_ids.tolist())}
    return np.array([position[name] for name in simulation.groups.tolist()])


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_records_are_consistent(make) -> None:
    simulation = make(0)
    n_rows, n_learners = len(simulation.y), len(simulation.learner_ids)
    assert simulation.X.shape[0] == len(simulation.groups) == len(simulation.signal) == n_rows
    assert simulation.noise_variance.shape == (n_learners,)
    assert simulation.truth is None or simulation.truth.shape == (n_learners,)
    assert len({len(name) for name in simulation.learner_ids.tolist()}) == 1
    # Contiguous rows, in the order of learner_ids: the numbers never step back.
    numbers = row_learners(simulation)
    assert (np.diff(numbers) >= 0).all()
    assert set(numbers.tolist()) == set(range(n_learners))
    with pytest.raises(dataclasses.FrozenInstanceError):
        simulation.X = simulation.y


@pytest.mark.parametrize("make", SMALL.values(), ids=SMALL)
def test_the_seed_decides(make) -> None:
    first, again, other = make(3), make(3), make(4)
    for field in dataclasses.fields(first):
        one, two = getattr(first, field.name), getattr(again, field.name)
        assert (one is None and two is None) or np.array_equal(one, two)
    assert not np.array_equal(first.X, other.X)
    assert not np.array_equal(first.y, other.y)


@pytest.mark.parametrize(("p", "snr", "variance"), [(5, 16, 25 / 16), (20, 1, 400.0), (10, 128, 0.78125)])
def test_simulation1_is_as_in_the_paper(p: int, snr: float, variance: float) -> None:
    simulation = make_simulation1(n_features=p, snr=snr)
    assert simulation.X.shape == (1000, p)
    assert np.bincount(row_learners(simulation)).tolist() == [50] * 20
    assert simulation.truth.tolist() == [0] * 10 + [1] * 10
    assert np.array_equal(simulation.noise_variance, np.full(20, variance))
    beta1, beta2 = simulation.coefficients
    assert np.allclose(simulation.signal[:500], simulation.X[:500] @ beta1)
    assert np.allclose(simulation.signal[500:], simulation.X[500:] @ beta2)
    noise = simulation.y - simulation.signal
    assert noise.var() == pytest.approx(variance, rel=5 * math.sqrt(2 / 1000))


def test_simulation2_is_as_in_the_paper() -> None:
    simulation = make_simulation2()
    assert simulation.X.shape == (2000, 500)
    assert np.bincount(row_learners(simulation)).tolist() == [100] * 20
    assert simulation.truth.tolist() == [0] * 10 + [1] * 10
    assert np.array_equal(simulation.signal[:1000], friedman2(simulation.X[:1000]))
    assert np.array_equal(simulation.signal[1000:], friedman3(simulation.X[1000:]))
    noise = simulation.y - simulation.signal
    assert noise.var() == pytest.approx(0.01, rel=5 * math.sqrt(2 / 2000))
    assert np.array_equal(simulation.noise_variance, np.full(20, 0.01))


def test_fairness_is_as_in_the_paper() -> None:
    simulation = make_fairness(b=3.0)
    X, sensitive = simulation.X, simulation.sensitive
    assert X.shape == (2500, 4)
    assert sensitive.shape == (50,)
    assert simulation.truth is None
    own = sensitive[row_learners(simulation)]
    expected = X[:, 0] + 2 * X[:, 1] - 2 * X[:, 2] + 2 * X[:, 3] + 3.0 * own
    assert np.allclose(simulation.signal, expected)
    noise = simulation.y - simulation.signal
    assert noise.var() == pytest.approx(1.0, rel=5 * math.sqrt(2 / 2500))
    assert (simulation.noise_variance == 1).all()


def test_fairness_keeps_the_sensitive_value_out_of_the_predictors() -> None:
    simulation = make_fairness(n_learners=400, n_rows=20)
    own = simulation.sensitive[row_learners(simulation)]
    correlation = [abs(np.corrcoef(column, own)[0, 1]) for column in simulation.X.T]
    assert max(correlation) < 5 / math.sqrt(len(own))
    assert abs(simulation.sensitive.var() - 1) < 5 * math.sqrt(2 / 400)


def test_fairness_changes_with_b_by_the_sensitive_value_alone() -> None:
    none, some = make_fairness(b=0.0), make_fairness(b=2.0)
    assert np.allclose(some.y - none.y, 2.0 * np.repeat(none.sensitive, 50))


def test_other_errors_are_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"'snr' argument of make_simulation1 .* Got 0\."):
        make_simulation1(snr=0)
    with pytest.raises(ValueError, match=r"'n_features' argument .* Got 0\."):
        make_simulation1(n_features=0)
    with pytest.raises(ValueError, match=r"'n_rows' option .* Got 0\."):
        make_simulation2(n_rows=0)
    with pytest.raises(ValueError, match=r"'n_features' argument .* at least 4"):
        make_simulation2(n_features=3)
    with pytest.raises(ValueError, match=r"'n_rows' option .* Got 0\."):
        make_fairness(n_rows=0)
    with pytest.raises(ValueError, match=r"'b' argument of make_fairness must be finite\. Got inf"):
        make_fairness(b=math.inf)
