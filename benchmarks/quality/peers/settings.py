"""The simulated learners on which the peers are compared.

Every draw has more rows than the learners are given: the last rows of each learner are for the test, whose
response is the truth without noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from problem import FORESTS, LINES, Family

from coterie.datasets import Simulation, make_linear_learners, make_stress

TEST_ROWS = 40
# Curved draws have a hundred rows a learner, or 150.
CURVED_TEST_ROWS = 20

Generator = np.random.Generator


@dataclass(frozen=True)
class Setting:
    """How learners are drawn, and what all methods know of them."""

    draw: Callable[[Generator], Simulation]
    n_clusters: int
    family: Family = LINES
    standardize: bool = False
    test_rows: int = TEST_ROWS


def _linear(
    rng: Generator, n_learners: int, n_truths: int, n_rows: object = 60, **more: object
) -> Simulation:
    options = {"n_features": 5, "noise_variance": 1.0, **more}
    rows = np.asarray(n_rows) + TEST_ROWS
    return make_linear_learners(n_learners, n_truths, rows, random_state=rng, **options)


def _simulation1(p: int, snr: int) -> Setting:
    """Return the paper's Simulation 1, with rows for the test."""
    more = {"n_features": p, "noise_variance": p**2 / snr, "labels": np.repeat([0, 1], 10)}
    return Setting(lambda rng: _linear(rng, 20, 2, 50, **more), 2, standardize=True)


def _one_large(rng: Generator) -> Simulation:
    return _linear(rng, 30, 3, np.r_[1000, np.full(29, 20)])


def _uneven_noise(rng: Generator, n_truths: int) -> Simulation:
    spread = rng.permutation(np.geomspace(0.3, 3, 30))
    return _linear(rng, 30, n_truths, noise_variance=spread**2)


def _heavy_tails(rng: Generator) -> Simulation:
    data = _linear(rng, 30, 3)
    return replace(data, y=data.signal + rng.standard_t(3, len(data.y)))


def _outliers(rng: Generator) -> Simulation:
    data = _linear(rng, 30, 3)
    noise = data.y - data.signal
    return replace(data, y=data.signal + np.where(rng.random(len(noise)) < 0.02, 20 * noise, noise))


def _shifted(rng: Generator, n_truths: int) -> Simulation:
    """Move each learner's predictors; all of them stay within two standard deviations of each other's."""
    data = _linear(rng, 30, n_truths)
    owner = np.repeat(np.arange(30), 60 + TEST_ROWS)
    X = data.X + rng.uniform(-2, 2, (30, 5))[owner]
    signal = np.einsum("rp,rp->r", X, data.coefficients[data.truth[owner]])
    return replace(data, X=X, signal=signal, y=signal + (data.y - data.signal))


def _curved(name: str, n_clusters: int) -> Setting:
    return Setting(lambda rng: make_stress(name, rng), n_clusters, FORESTS, test_rows=CURVED_TEST_ROWS)


SETTINGS: dict[str, Setting] = {
    **{
        f"Simulation 1, p={p}, SNR {snr}": _simulation1(p, snr)
        for p in (5, 10, 20)
        for snr in (1, 2, 4, 8, 16, 32, 64, 128)
    },
    "four linear truths": Setting(lambda rng: _linear(rng, 20, 4, 50, n_features=4), 4),
    "ten linear truths": Setting(lambda rng: _linear(rng, 50, 10), 10),
    "one linear truth": Setting(lambda rng: _linear(rng, 30, 1), 1),
    "one learner of 1,000 rows, 29 of 20": Setting(_one_large, 3),
    "noise .3 to 3, three truths": Setting(lambda rng: _uneven_noise(rng, 3), 3),
    "noise .3 to 3, one truth": Setting(lambda rng: _uneven_noise(rng, 1), 1),
    "Student t3 noise, three truths": Setting(_heavy_tails, 3),
    "2% outliers x 20, three truths": Setting(_outliers, 3),
    "covariate shift, one linear truth": Setting(lambda rng: _shifted(rng, 1), 1),
    "covariate shift, three linear truths": Setting(lambda rng: _shifted(rng, 3), 3),
    "one curved truth": _curved("one curved truth", 1),
    "three curved truths": _curved("three curved truths", 3),
    "covariate shift, one curved truth": _curved("covariate shift, one curved truth", 1),
    **{
        f"two truths, a {kind} apart": _curved(f"two truths, a {kind} apart", 2)
        for kind in ("product", "step", "sine")
    },
}


@dataclass(frozen=True)
class Draw:
    """Rows to learn from, rows to predict, and the truth."""

    train: Simulation
    X_test: np.ndarray
    groups_test: np.ndarray
    signal_test: np.ndarray


def draw(name: str, seed: int) -> Draw:
    """Draw a setting and keep the last rows of each learner for the test."""
    setting = SETTINGS[name]
    data = setting.draw(np.random.default_rng(1000 + seed))
    sizes = np.unique(data.groups, return_counts=True)[1]
    from_end = np.concatenate([np.arange(size, 0, -1) for size in sizes])
    kept = from_end <= setting.test_rows
    train = replace(
        data, X=data.X[~kept], y=data.y[~kept], groups=data.groups[~kept], signal=data.signal[~kept]
    )
    return Draw(train, data.X[kept], data.groups[kept], data.signal[kept])
