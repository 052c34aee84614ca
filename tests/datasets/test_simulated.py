import dataclasses
import math

import numpy as np
import pytest

from coterie.datasets import (
    Simulation,
    friedman2,
    friedman3,
    make_fairness,
    make_linear_learners,
    make_simulation1,
    make_simulation2,
)

SMALL = {
    "linear": lambda seed: make_linear_learners(n_rows=5, random_state=seed),
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
    for field in dataclasses.fields(Simulation):
        one, two = getattr(first, field.name), getattr(again, field.name)
        assert (one is None and two is None) or np.array_equal(one, two)
    assert not np.array_equal(first.X, other.X)
    assert not np.array_equal(first.y, other.y)


def test_a_generator_is_taken_and_moves_on() -> None:
    rng = np.random.default_rng(0)
    first, second = make_linear_learners(random_state=rng), make_linear_learners(random_state=rng)
    assert np.array_equal(first.X, make_linear_learners(random_state=0).X)
    assert not np.array_equal(first.X, second.X)


def test_linear_signal_is_each_learners_own_formula() -> None:
    simulation = make_linear_learners(n_learners=5, n_truths=2, n_rows=[3, 1, 4, 1, 5])
    assert simulation.truth.tolist() == [0, 1, 0, 1, 0]
    numbers = row_learners(simulation)
    assert np.bincount(numbers).tolist() == [3, 1, 4, 1, 5]
    for x, signal, learner in zip(simulation.X, simulation.signal, numbers, strict=True):
        beta = simulation.coefficients[[0, 1, 0, 1, 0][learner]]
        assert math.isclose(signal, sum(b * v for b, v in zip(beta, x, strict=True)))


def test_linear_takes_coefficients_and_labels() -> None:
    simulation = make_linear_learners(
        n_learners=3,
        n_rows=2,
        coefficients=[[1.0, 0.0], [0.0, 10.0]],
        labels=[1, 1, 0],
        noise_variance=0.0,
    )
    X = simulation.X
    assert X.shape == (6, 2)
    assert np.allclose(simulation.y, np.r_[10 * X[:4, 1], X[4:, 0]])
    assert simulation.truth.tolist() == [1, 1, 0]


def test_linear_noise_has_the_variance_asked_for() -> None:
    n = 20_000
    simulation = make_linear_learners(n_learners=3, n_rows=n, n_features=2, noise_variance=[0.25, 1.0, 9.0])
    found = (simulation.y - simulation.signal).reshape(3, n).var(axis=1)
    # The sample variance of normal noise has the relative standard error sqrt(2 / n).
    assert np.abs(found / [0.25, 1.0, 9.0] - 1).max() < 5 * math.sqrt(2 / n)
    assert np.abs(simulation.X.var(axis=0) - 1).max() < 5 * math.sqrt(2 / (3 * n))
    assert np.abs(simulation.X.mean(axis=0)).max() < 5 / math.sqrt(3 * n)


def test_linear_defaults() -> None:
    simulation = make_linear_learners()
    assert simulation.X.shape == (1800, 6)
    assert simulation.coefficients.shape == (3, 6)
    assert np.array_equal(simulation.noise_variance, np.full(30, 6 / 16))
    noise = simulation.y - simulation.signal
    assert noise.var() == pytest.approx(6 / 16, rel=5 * math.sqrt(2 / 1800))


def test_noise_only_scales_with_its_variance() -> None:
    quiet = make_linear_learners(noise_variance=1.0)
    loud = make_linear_learners(noise_variance=4.0)
    assert np.array_equal(quiet.X, loud.X)
    assert np.allclose(2 * (quiet.y - quiet.signal), loud.y - loud.signal)


def test_the_record_does_not_change_with_its_inputs() -> None:
    variance, beta = np.ones(4), np.ones((2, 3))
    simulation = make_linear_learners(4, noise_variance=variance, coefficients=beta)
    variance[:], beta[:] = 7.0, 7.0
    assert (simulation.noise_variance == 1).all()
    assert (simulation.coefficients == 1).all()


def test_coefficients_are_standard_normal() -> None:
    beta = make_linear_learners(n_learners=1, n_truths=200, n_features=100, n_rows=1).coefficients
    assert abs(beta.mean()) < 5 / math.sqrt(beta.size)
    assert abs(beta.var() - 1) < 5 * math.sqrt(2 / beta.size)


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


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"n_learners": 0}, r"'n_learners' argument of make_linear_learners .* at least 1\. Got 0"),
        ({"n_truths": 0}, r"'n_truths' argument .* Got 0\."),
        ({"n_features": 0}, r"'n_features' argument .* Got 0\."),
        ({"n_rows": [1, 2]}, r"'n_rows' .* one entry per learner \(30\)\. Got shape \(2,\)\."),
        ({"n_rows": 0}, r"'n_rows' .* whole numbers of at least 1\. Got \[0\.0\]\."),
        ({"n_rows": 2.5}, r"'n_rows' .* whole numbers .* Got \[2\.5\]\."),
        ({"noise_variance": -1.0}, r"'noise_variance' .* not negative\. Got \[-1\.0\]\."),
        ({"noise_variance": math.nan}, r"'noise_variance' .* finite .* Got \[nan\]\."),
        ({"noise_variance": [1.0]}, r"'noise_variance' .* one entry per learner \(30\)\."),
        ({"labels": [0, 1]}, r"'labels' .* one entry per learner \(30\)\. Got shape \(2,\)\."),
        ({"labels": [3] * 30}, r"'labels' .* integers from 0 to 2, .* Got \[3\]\."),
        ({"labels": [0.5] * 30}, r"'labels' .* integers from 0 to 2, .* Got \[0\.5\]\."),
        ({"coefficients": [1.0, 2.0]}, r"'coefficients' .* \(n_truths, n_features\)\. Got \(2,\)"),
    ],
)
def test_linear_errors_are_a_sentence(arguments: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        make_linear_learners(**arguments)


def test_other_errors_are_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"'snr' argument of make_simulation1 .* Got 0\."):
        make_simulation1(snr=0)
    with pytest.raises(ValueError, match=r"'n_features' argument of make_simulation1 .* Got 0\."):
        make_simulation1(n_features=0)
    with pytest.raises(ValueError, match=r"'n_rows' argument of make_simulation2 .* Got 0\."):
        make_simulation2(n_rows=0)
    with pytest.raises(ValueError, match=r"'n_features' argument .* at least 4"):
        make_simulation2(n_features=3)
    with pytest.raises(ValueError, match=r"'n_rows' argument of make_fairness .* Got 0\."):
        make_fairness(n_rows=0)
    with pytest.raises(ValueError, match=r"'b' argument of make_fairness must be finite\. Got inf"):
        make_fairness(b=math.inf)
