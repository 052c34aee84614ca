"""Settings that strain a rule for the number of clusters, a function each.

Unless said otherwise: thirty learners of sixty rows, five predictors N(0, 1), coefficients N(0, 1) per truth,
noise of variance one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.signal import lfilter
from scipy.stats import norm

from coterie.datasets.simulated import Simulation, learner_names, make_linear_learners

Generator = np.random.Generator
Float = NDArray[np.float64]


def _linear(rng: Generator, n_truths: int, **changes: object) -> Simulation:
    """Draw learners with linear truths and the usual settings, some of which ``changes`` replaces."""
    settings = {"n_learners": 30, "n_features": 5, "noise_variance": 1.0, **changes}
    return make_linear_learners(n_truths=n_truths, random_state=rng, **settings)  # type: ignore[arg-type]


def _with_noise(data: Simulation, noise: Float) -> Simulation:
    """Return the data with another noise added to the same signal; ``noise`` has shape (n_rows,)."""
    return replace(data, y=data.signal + noise)


def _uneven_noise(rng: Generator, n_truths: int) -> Simulation:
    """Draw learners whose noise has standard deviations from 0.3 to 3, a factor of ten."""
    standard_deviations = rng.permutation(np.geomspace(0.3, 3, 30))
    return _linear(rng, n_truths, noise_variance=standard_deviations**2)


def _outliers(rng: Generator, n_truths: int) -> Simulation:
    """Draw learners with outliers: of two rows in a hundred, the noise is twenty times as large."""
    data = _linear(rng, n_truths)
    noise = data.y - data.signal
    return _with_noise(data, np.where(rng.random(len(noise)) < 0.02, 20 * noise, noise))


def _wild_cells(rng: Generator, n_truths: int) -> Simulation:
    """Put one to five wild values, such as 9999, into one learner's rows, in one predictor or in y."""
    data = _linear(rng, n_truths)
    rows = 60 * rng.integers(30) + rng.choice(60, rng.integers(1, 6), replace=False)
    wild_values = rng.choice([9999.0, 999.0, 1e6, 1e12]) * rng.choice([-1.0, 1.0], len(rows))
    cells = np.column_stack([data.X, data.y])
    cells[rows, rng.integers(6)] = wild_values
    return replace(data, X=cells[:, :5].copy(), y=cells[:, 5].copy())


def _heavy_tails(rng: Generator, n_truths: int) -> Simulation:
    """Draw learners whose noise has Student's t distribution with three degrees of freedom."""
    data = _linear(rng, n_truths)
    return _with_noise(data, rng.standard_t(3, len(data.y)))


def _uneven_sizes(rng: Generator, n_truths: int) -> Simulation:
    """Draw four learners of 500 rows, and 26 of 15 to 25 rows."""
    return _linear(rng, n_truths, n_rows=np.r_[np.full(4, 500), rng.integers(15, 26, 26)])


def _lone_learners(rng: Generator) -> Simulation:
    """Draw clusters of 27, two and one learners."""
    return _linear(rng, 3, labels=np.r_[np.zeros(27, int), 1, 1, 2])


def _tiny(rng: Generator, n_truths: int) -> Simulation:
    """Draw 40 learners of 8 to 12 rows each."""
    return _linear(rng, n_truths, n_learners=40, n_rows=rng.integers(8, 13, 40))


def _weak(rng: Generator, n_rows: int) -> Simulation:
    """Draw two truths that differ by 0.5 in one of ten coefficients: hard to tell apart."""
    first = rng.standard_normal(10)
    second = first + np.r_[0.5, np.zeros(9)]
    return _linear(rng, 2, coefficients=np.array([first, second]), n_rows=n_rows)


def _continuum(rng: Generator) -> Simulation:
    """Draw learners whose coefficients scatter around one centre: there are no clusters (truth None)."""
    centre = rng.standard_normal(5)
    coefficients = centre + 0.5 * rng.standard_normal((30, 5))
    data = _linear(rng, 30, coefficients=coefficients)
    return replace(data, truth=None)


def _shifted_linear(rng: Generator) -> Simulation:
    """Draw one linear truth, with predictors whose mean differs between learners (covariate shift).

    The right answer is one cluster: learners have different rows, but the same model.
    """
    data = _linear(rng, 1)
    assert data.coefficients is not None
    learner_of_row = np.repeat(np.arange(30), 60)
    X = data.X + rng.uniform(-2, 2, (30, 5))[learner_of_row]
    signal = X @ data.coefficients[0]
    return replace(data, X=X, signal=signal, y=signal + (data.y - data.signal))


def _circuit(U: Float) -> tuple[Float, Float]:
    """Return resistance and reactance of a circuit, of which Friedman's functions 2 and 3 are made.

    ``U`` has shape (n, 4) or more columns, uniform on (0, 1).
    """
    resistance, frequency = 100 * U[:, 0], np.pi * (40 + 520 * U[:, 1])
    return resistance, frequency * U[:, 2] - 1 / (frequency * (1 + 10 * U[:, 3]))


def _wave(U: Float) -> Float:
    """Return Friedman's first function without its last term, centred and scaled to about variance one."""
    friedman_1: Float = 10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3]
    return (friedman_1 - 13) / 4.5


def _impedance(U: Float) -> Float:
    """Return the impedance of a circuit (Friedman's second function), centred and scaled."""
    return (np.hypot(*_circuit(U)) - 480) / 380


def _phase(U: Float) -> Float:
    """Return the phase of a circuit (Friedman's third function), centred and scaled."""
    resistance, reactance = _circuit(U)
    return (np.arctan(reactance / (resistance + 1e-9)) - 1.35) / 0.3


def _drawn(rng: Generator, X: Float, signal: Float, truth: NDArray[np.int64], noise_sd: float) -> Simulation:
    """Return data of thirty learners with equally many rows: a signal plus normal noise.

    ``signal`` has shape (n_rows,), ``truth`` the true cluster of each learner; ``noise_sd`` is the noise's
    standard deviation.
    """
    ids, y = learner_names(30), signal + noise_sd * rng.standard_normal(len(X))
    return Simulation(X, y, np.repeat(ids, len(X) // 30), truth, ids, signal, np.full(30, noise_sd**2))


def _curved(rng: Generator, n_truths: int, shift: float = 0.0) -> Simulation:
    """Draw learners with up to three curved truths (Friedman's functions) of uniform predictors.

    ``shift`` above zero moves the predictors of each learner by up to as much (covariate shift), before
    they are mapped to (0, 1).
    """
    functions = (_impedance, _phase, _wave)[:n_truths]
    truth = np.arange(30) % n_truths
    learner_of_row = np.repeat(np.arange(30), 100)
    predictor_means = rng.uniform(-shift, shift, (30, 6)) if shift else np.zeros((30, 6))
    normal_predictors = predictor_means[learner_of_row] + rng.standard_normal((len(learner_of_row), 6))
    U = norm.cdf(normal_predictors / np.sqrt(1 + shift**2 / 3))
    signal = np.choose(truth[learner_of_row], [function(U) for function in functions])
    return _drawn(rng, U, signal, truth, 0.4)


def _apart(rng: Generator, difference: Callable[[Float], Float]) -> Simulation:
    """Draw two truths that share a linear term; one adds ``difference(X)``, the other subtracts it."""
    truth = np.arange(30) % 2
    learner_of_row = np.repeat(np.arange(30), 150)
    X = rng.standard_normal((len(learner_of_row), 6))
    signal = X[:, 2] + np.where(truth[learner_of_row] == 1, 1, -1) * difference(X)
    return _drawn(rng, X, signal, truth, 0.61)


def _in_time_order(rng: Generator, n_truths: int, correlation: float) -> Simulation:
    """Draw 80 rows a learner with six predictors, and noise that follows AR(1) from row to row.

    Its variance is the usual one whatever the ``correlation`` of neighbouring rows.
    """
    data = _linear(rng, n_truths, n_rows=80, n_features=6, noise_variance=6 / 16)
    shocks = rng.standard_normal((30, 80)) * np.sqrt(6 / 16)
    shocks[:, 1:] *= np.sqrt(1 - correlation**2)
    return _with_noise(data, lfilter([1.0], [1.0, -correlation], shocks, axis=1).ravel())


def _sorted_rows(rng: Generator, n_truths: int, *, by_response: bool) -> Simulation:
    """Draw learners whose rows are sorted by the first predictor, or by the response."""
    data = _linear(rng, n_truths)
    order = np.lexsort((data.y if by_response else data.X[:, 0], data.groups))
    return replace(
        data, X=data.X[order], y=data.y[order], groups=data.groups[order], signal=data.signal[order]
    )


STRESS_SETTINGS: dict[str, Callable[[Generator], Simulation]] = {
    "one truth": lambda rng: _linear(rng, 1),
    "three truths": lambda rng: _linear(rng, 3),
    "noise .3 to 3, three truths": lambda rng: _uneven_noise(rng, 3),
    "noise .3 to 3, one truth": lambda rng: _uneven_noise(rng, 1),
    "2% outliers x 20, three truths": lambda rng: _outliers(rng, 3),
    "2% outliers x 20, one truth": lambda rng: _outliers(rng, 1),
    "wild cells of one learner, three truths": lambda rng: _wild_cells(rng, 3),
    "wild cells of one learner, one truth": lambda rng: _wild_cells(rng, 1),
    "sizes 15 to 500, three truths": lambda rng: _uneven_sizes(rng, 3),
    "Student t3 noise, three truths": lambda rng: _heavy_tails(rng, 3),
    "27, 2 and 1 learners": _lone_learners,
    "twelve truths, 60 learners": lambda rng: _linear(rng, 12, n_learners=60, n_features=6),
    "8 to 12 rows, one truth": lambda rng: _tiny(rng, 1),
    "one of 10 coefficients differs by .5, 60 rows": lambda rng: _weak(rng, 60),
    "one of 10 coefficients differs by .5, 200 rows": lambda rng: _weak(rng, 200),
    "continuum of truths": _continuum,
    "covariate shift, one linear truth": _shifted_linear,
    "three curved truths": lambda rng: _curved(rng, 3),
    "one curved truth": lambda rng: _curved(rng, 1),
    "covariate shift, one curved truth": lambda rng: _curved(rng, 1, shift=2.0),
    "two truths, a product apart": lambda rng: _apart(rng, lambda X: 2 * X[:, 0] * X[:, 1]),
    "two truths, a step apart": lambda rng: _apart(rng, lambda X: 2 * np.sign(X[:, 0]) * (X[:, 1] > 0)),
    "two truths, a sine apart": lambda rng: _apart(rng, lambda X: 2 * np.sin(3 * X[:, 0])),
    **{
        f"AR(1) noise .{tenths}, {name}": partial(_in_time_order, n_truths=n, correlation=tenths / 10)
        for n, name in ((1, "one truth"), (3, "three truths"))
        for tenths in (5, 7, 8)
    },
    **{
        f"rows sorted by {column}, {name}": partial(_sorted_rows, n_truths=n, by_response=response)
        for column, response in (("a predictor", False), ("the response", True))
        for n, name in ((1, "one truth"), (3, "three truths"))
    },
}


def make_stress(setting: str, random_state: int | Generator | None = 0) -> Simulation:
    """Draw one of the stress settings.

    Parameters
    ----------
    setting : str
        One of the keys of ``STRESS_SETTINGS``.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    Simulation
        The learners; `truth` is None where they do not fall into clusters.

    Examples
    --------
    >>> make_stress("27, 2 and 1 learners").truth.tolist()[-4:]
    [0, 1, 1, 2]
    """
    if setting not in STRESS_SETTINGS:
        known = ", ".join(repr(name) for name in STRESS_SETTINGS)
        raise ValueError(f"The stress setting {setting!r} is not known. Known: {known}.")
    return STRESS_SETTINGS[setting](np.random.default_rng(random_state))
