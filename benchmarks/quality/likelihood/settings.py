"""The settings: those of `make_stress`, kinds of one truth, and new ones that strain a likelihood.

Unless said otherwise: thirty learners, standard normal predictors and coefficients, noise of variance one.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from coterie.datasets import STRESS_SETTINGS, Simulation, make_linear_learners, make_stress


def _one_truth_benchmark() -> Any:
    """Return the module of the benchmark of one truth, which has the name of the one beside this file."""
    path = Path(__file__).parents[1] / "one_truth" / "run.py"
    spec = importlib.util.spec_from_file_location("one_truth_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ONE_TRUTH_BENCHMARK = _one_truth_benchmark()
ONE_TRUTH, draw_one_truth = ONE_TRUTH_BENCHMARK.SETTINGS, ONE_TRUTH_BENCHMARK.draw

Array = np.ndarray
Generator = np.random.Generator


def simulated(X: Array, signal: Array, noise: Array, owner: Array, truth: Array | None) -> Simulation:
    """Return a simulation of these rows; owners are counted from zero."""
    ids = np.array([f"learner {j:02d}" for j in range(owner.max() + 1)])
    return Simulation(X, signal + noise, ids[owner], truth, ids, signal, np.ones(len(ids)))


def linear(rng: Generator, truth: Array, n_rows: int, p: int, **more: float) -> Simulation:
    """Draw learners of linear truths at a signal-to-noise ratio."""
    K = int(truth.max()) + 1
    return make_linear_learners(
        len(truth), K, n_rows, p, noise_variance=p / more.get("snr", p), labels=truth, random_state=rng
    )


def with_spread(rng: Generator, K: int, n_rows: int) -> Simulation:
    """Draw K truths, and an own spread of .15 in every slope of every learner."""
    owner, truth = np.repeat(np.arange(30), n_rows), np.arange(30) % K
    lines = rng.standard_normal((K, 5))[truth] + 0.15 * rng.standard_normal((30, 5))
    X = rng.standard_normal((len(owner), 5))
    return simulated(X, (X * lines[owner]).sum(axis=1), rng.standard_normal(len(owner)), owner, truth)


def _skewed(rng: Generator, shape: tuple[int, int]) -> Array:
    return rng.exponential(size=shape) - 1


# How slopes of standard deviation .4 vary by learner: no clusters.
CONTINUA: dict[str, tuple[int, Callable[[Generator, tuple[int, int]], Array]]] = {
    "one slope": (1, lambda rng, shape: rng.standard_normal(shape)),
    "two slopes": (2, lambda rng, shape: rng.standard_normal(shape)),
    "all slopes": (8, lambda rng, shape: rng.standard_normal(shape)),
    "all slopes, rank one": (8, lambda rng, shape: rng.standard_normal((shape[0], 1)) * np.ones(shape)),
    "all slopes, Student t3": (8, lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3)),
    "all slopes, skewed": (8, _skewed),
}


def continuum(rng: Generator, kind: str) -> Simulation:
    """Draw 30 learners of 200 rows and eight predictors, some of whose slopes vary by learner."""
    some, departures = CONTINUA[kind]
    owner, lines = np.repeat(np.arange(30), 200), np.tile(rng.standard_normal(8), (30, 1))
    lines[:, :some] += 0.4 * departures(rng, (30, some))
    X = rng.standard_normal((len(owner), 8))
    return simulated(X, (X * lines[owner]).sum(axis=1), rng.standard_normal(len(owner)), owner, None)


def curved_with_shift(rng: Generator, n_rows: int) -> Simulation:
    """Draw one curved truth whose learners have predictors at different places."""
    owner = np.repeat(np.arange(30), n_rows)
    X = rng.standard_normal((len(owner), 4)) + rng.uniform(-1.5, 1.5, (30, 4))[owner]
    signal = np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] ** 2 + X[:, 2] * X[:, 3] + X[:, 2]
    return simulated(X, signal, 0.5 * rng.standard_normal(len(owner)), owner, np.zeros(30, int))


def growing(rng: Generator, n_rows: int) -> Simulation:
    """Draw lognormal predictors, and noise that grows with one of them."""
    owner = np.repeat(np.arange(30), n_rows)
    X = rng.lognormal(0, 1, (len(owner), 5))
    noise = rng.standard_normal(len(owner)) * (0.3 + X[:, 0])
    return simulated(X, X @ rng.standard_normal(5), noise, owner, np.zeros(30, int))


def one_truth(rng: Generator, kind: str) -> Simulation:
    """Draw a kind of one truth of `benchmarks/quality/one_truth`."""
    X, y, owner = draw_one_truth(kind, int(rng.integers(2**31)))
    return simulated(X, y, np.zeros(len(y)), owner, np.zeros(owner.max() + 1, int))


def _halves(L: int) -> Array:
    return np.arange(L) * 2 // L


NEW: dict[str, Callable[[Generator], Simulation]] = {
    **{
        f"{words} truths with a spread, {n} rows": partial(with_spread, K=K, n_rows=n)
        for words, K in (("two", 2), ("three", 3))
        for n in (60, 200, 2000)
    },
    **{f"continuum: {kind}": partial(continuum, kind=kind) for kind in CONTINUA},
    **{f"one curved truth, shifted, {n} rows": partial(curved_with_shift, n_rows=n) for n in (60, 400, 2000)},
    **{f"lognormal x, growing noise, {n} rows": partial(growing, n_rows=n) for n in (60, 200, 1000)},
    "two truths, 12 learners of 30 rows, SNR 1": lambda rng: linear(rng, np.arange(12) % 2, 30, 5, snr=1),
    "three truths, 60 learners of 25 rows, SNR 1": lambda rng: linear(rng, np.arange(60) % 3, 25, 5, snr=1),
    "three truths, 30 learners of 40 rows, SNR 1": lambda rng: linear(rng, np.arange(30) % 3, 40, 5, snr=1),
    "five pairs of ten learners": lambda rng: linear(rng, np.arange(10) % 5, 60, 5),
    **{
        f"Simulation 1, p=20, SNR {snr}": partial(linear, truth=_halves(20), n_rows=50, p=20, snr=snr)
        for snr in (4, 8, 16)
    },
    "one truth, five learners of 60 rows": lambda rng: linear(rng, np.zeros(5, int), 60, 5),
    "one truth, eight learners of 30 rows": lambda rng: linear(rng, np.zeros(8, int), 30, 5),
    "one truth, 30 learners of 40 rows, p=25": lambda rng: linear(rng, np.zeros(30, int), 40, 25),
}

ONE_TRUTH_SETTINGS: dict[str, Callable[[Generator], Simulation]] = {
    f"one truth: {kind}": partial(one_truth, kind=kind) for kind in ONE_TRUTH
}
SETTINGS: dict[str, Callable[[Generator], Simulation]] = {
    **{name: partial(make_stress, name) for name in STRESS_SETTINGS},
    **NEW,
    **ONE_TRUTH_SETTINGS,
}


def drawn(setting: str, seed: int) -> Simulation:
    """Return one draw of a setting."""
    return SETTINGS[setting](np.random.default_rng(1000 + seed))
