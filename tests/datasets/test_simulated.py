import dataclasses
import math

import numpy as np
import pytest

from coterie.datasets import Simulation, make_linear_learners


def row_learners(simulation: Simulation) -> np.ndarray:
    """Number of each row's learner, found by its name alone."""
    position = {name: i for i, name in enumerate(simulation.learner_ids.tolist())}
    return np.array([position[name] for name in simulation.groups.tolist()])


def test_records_are_consistent() -> None:
    simulation = make_linear_learners(n_rows=5, random_state=0)
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


def test_the_seed_decides() -> None:
    first, again, other = (make_linear_learners(n_rows=5, random_state=seed) for seed in (3, 3, 4))
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
