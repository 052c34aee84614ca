"""Federations whose true errors are known: each kind is a function from a generator to learners."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

Generator = np.random.Generator
Function = Callable[[np.ndarray], np.ndarray]

# Fresh rows of each learner on which true errors are measured.
FRESH = 1_000


@dataclass(frozen=True)
class Noise:
    """Noise of mean zero: standard deviation, and shape of its distribution."""

    spread: float
    shape: str = "normal"

    def draw(self, rng: Generator, n_rows: int) -> np.ndarray:
        """Draw noise."""
        if self.shape == "t3":
            return self.spread * rng.standard_t(3, n_rows) / np.sqrt(3)
        if self.shape == "lognormal":
            values = np.exp(rng.standard_normal(n_rows))
            return self.spread * (values - np.exp(0.5)) / np.sqrt((np.e - 1) * np.e)
        return self.spread * rng.standard_normal(n_rows)


@dataclass(frozen=True)
class Learner:
    """One learner: its truth, its noise, where its predictors are, and how many rows it has."""

    truth: Function
    noise: Noise
    centre: np.ndarray
    n_rows: int

    def predictors(self, rng: Generator, n_rows: int) -> np.ndarray:
        """Draw predictors."""
        return self.centre + rng.standard_normal((n_rows, len(self.centre)))


@dataclass(frozen=True)
class Federation:
    """Rows to learn from, and fresh rows of each learner with the response that is expected of them.

    ``fresh_y`` has noise, ``fresh_signal`` has none; ``noise_variance`` (L,) is that of each learner. Names
    are in the order of the learners.
    """

    names: np.ndarray
    X: np.ndarray
    y: np.ndarray
    groups: np.ndarray
    fresh_X: np.ndarray
    fresh_signal: np.ndarray
    fresh_y: np.ndarray
    fresh_groups: np.ndarray
    noise_variance: np.ndarray


def _gathered(rng: Generator, learners: list[Learner]) -> Federation:
    names = np.array([f"learner {j:02d}" for j in range(len(learners))])
    parts = []
    for learner in learners:
        X, fresh = learner.predictors(rng, learner.n_rows), learner.predictors(rng, FRESH)
        signal = learner.truth(fresh)
        y = learner.truth(X) + learner.noise.draw(rng, learner.n_rows)
        parts.append((X, y, fresh, signal, signal + learner.noise.draw(rng, FRESH)))
    X, y, fresh, signal, noisy = (np.concatenate(part) for part in zip(*parts, strict=True))
    groups = np.repeat(names, [learner.n_rows for learner in learners])
    variance = np.array([learner.noise.spread**2 for learner in learners])
    return Federation(names, X, y, groups, fresh, signal, noisy, np.repeat(names, FRESH), variance)


def _line(slopes: np.ndarray, intercept: float = 0.0) -> Function:
    return lambda X: X @ slopes + intercept


def _lines(rng: Generator, count: int, p: int) -> list[Function]:
    return [_line(rng.standard_normal(p), rng.standard_normal()) for _ in range(count)]


def _learners(
    rng: Generator, truths: list[Function], sizes: np.ndarray, p: int, spreads: float | np.ndarray, shape: str
) -> list[Learner]:
    """Return a learner for each truth of the list, with predictors around a centre of its own."""
    each = np.broadcast_to(spreads, len(truths))
    return [
        Learner(truth, Noise(float(spread), shape), 0.3 * rng.standard_normal(p), int(size))
        for truth, size, spread in zip(truths, sizes, each, strict=True)
    ]


def _shape(rng: Generator) -> tuple[int, int, float]:
    """Draw how many learners there are, how many predictors, and the spread of the noise."""
    return int(rng.integers(10, 41)), int(rng.integers(3, 9)), float(rng.choice([0.5, 1.0, 2.0]))


def _mixed(rng: Generator, n: int, p: int, own: float = 0.2) -> list[Function]:
    """Return truths of n learners: three shared ones, and for a share of them one of their own."""
    shared, own_error = _lines(rng, 3, p), _lines(rng, n, p)
    picks = rng.integers(0, 3, n)
    return [own_error[j] if rng.random() < own else shared[picks[j]] for j in range(n)]


def own_truths(rng: Generator) -> Federation:
    """Everybody has a truth of its own and many rows: nobody gains."""
    n, p, _ = _shape(rng)
    return _gathered(rng, _learners(rng, _lines(rng, n, p), rng.integers(100, 201, n), p, 0.5, "normal"))


def one_truth_few_rows(rng: Generator) -> Federation:
    """All have the same truth and few rows: everybody gains."""
    n, p, spread = _shape(rng)
    sizes = rng.integers(2 * p + 5, 4 * p + 11, n)
    return _gathered(rng, _learners(rng, _lines(rng, 1, p) * n, sizes, p, spread, "normal"))


def many_predictors(rng: Generator) -> Federation:
    """Thirty to forty predictors, and two to three times as many rows.

    Two truths, and a fifth of the learners with one of their own. With few predictors, gains are small beside
    their standard errors, however large a share of the error they are; here they are not.
    """
    n, p, spread = int(rng.integers(10, 26)), int(rng.integers(30, 41)), float(rng.choice([0.5, 1.0, 2.0]))
    shared, own = _lines(rng, 2, p), _lines(rng, n, p)
    truths = [own[j] if rng.random() < 0.2 else shared[k] for j, k in enumerate(rng.integers(0, 2, n))]
    sizes = rng.integers(2 * p + 5, 3 * p, n)
    return _gathered(rng, _learners(rng, truths, sizes, p, spread, "normal"))


def one_truth_many_rows(rng: Generator) -> Federation:
    """All have the same truth, and rows enough to learn it alone: gains are close to zero."""
    n = int(rng.integers(10, 16))
    return _gathered(rng, _learners(rng, _lines(rng, 1, 3) * n, np.full(n, 400), 3, 0.5, "normal"))


def some_gain(rng: Generator) -> Federation:
    """Three shared truths, and a fifth of the learners with one of their own."""
    n, p, spread = _shape(rng)
    return _gathered(rng, _learners(rng, _mixed(rng, n, p), rng.integers(20, 61, n), p, spread, "normal"))


def uneven_sizes(rng: Generator) -> Federation:
    """The same with 8 to 200 rows."""
    n, p, spread = _shape(rng)
    sizes = np.exp(rng.uniform(np.log(8), np.log(200), n))
    return _gathered(rng, _learners(rng, _mixed(rng, n, p), sizes, p, spread, "normal"))


def tiny_learners(rng: Generator) -> Federation:
    """Two truths; half of the learners have 6 to 15 rows, the others 40 to 100."""
    n, p, spread = _shape(rng)
    shared = _lines(rng, 2, p)
    truths = [shared[k] for k in rng.integers(0, 2, n)]
    sizes = np.where(rng.random(n) < 0.5, rng.integers(6, 16, n), rng.integers(40, 101, n))
    return _gathered(rng, _learners(rng, truths, sizes, p, spread, "normal"))


def _attacked(rng: Generator, attack: Callable[[Learner], Learner]) -> Federation:
    n, p, spread = _shape(rng)
    shared = _lines(rng, int(rng.integers(1, 3)), p)
    truths = [shared[k] for k in rng.integers(0, len(shared), n)]
    learners = _learners(rng, truths, rng.integers(20, 81, n), p, spread, "normal")
    bad = rng.permutation(n)[: max(1, n // 5)]
    return _gathered(rng, [attack(each) if j in bad else each for j, each in enumerate(learners)])


def random_responses(rng: Generator) -> Federation:
    """One or two truths; a fifth of the learners send responses that have nothing to do with x."""
    return _attacked(
        rng, lambda each: replace(each, truth=lambda X: np.zeros(len(X)), noise=Noise(2 * each.noise.spread))
    )


def flipped_responses(rng: Generator) -> Federation:
    """One or two truths; a fifth of the learners send responses with the sign changed."""

    def flip(each: Learner) -> Learner:
        return replace(each, truth=lambda X: -each.truth(X))

    return _attacked(rng, flip)


def uneven_noise(rng: Generator) -> Federation:
    """Three shared truths and some of their own; the noise of learners spans a factor of ten."""
    n, p, _ = _shape(rng)
    spreads = np.exp(rng.uniform(np.log(0.3), np.log(3), n))
    return _gathered(rng, _learners(rng, _mixed(rng, n, p), rng.integers(20, 81, n), p, spreads, "normal"))


def heavy_tails(rng: Generator) -> Federation:
    """The same truths with noise from Student's t with three degrees of freedom."""
    n, p, spread = _shape(rng)
    return _gathered(rng, _learners(rng, _mixed(rng, n, p), rng.integers(20, 81, n), p, spread, "t3"))


def skewed_noise(rng: Generator) -> Federation:
    """The same truths with lognormal noise."""
    n, p, spread = _shape(rng)
    return _gathered(rng, _learners(rng, _mixed(rng, n, p), rng.integers(20, 81, n), p, spread, "lognormal"))


def nearly_the_same(rng: Generator) -> Federation:
    """One truth from which everybody departs a little: averages help some learners and harm others."""
    n, p, spread = _shape(rng)
    centre, apart = rng.standard_normal(p), float(rng.choice([0.05, 0.15, 0.3])) * spread
    truths = [_line(centre + apart * rng.standard_normal(p), apart * rng.standard_normal()) for _ in range(n)]
    sizes = np.exp(rng.uniform(np.log(15), np.log(200), n))
    return _gathered(rng, _learners(rng, truths, sizes, p, spread, "normal"))


def _curve(rng: Generator, p: int) -> Function:
    a, b, c = rng.permutation(p)[:3]
    angle, slopes = rng.uniform(0, 2 * np.pi), 0.5 * rng.standard_normal(p)
    return lambda X: 2 * np.sin(1.5 * X[:, a] + angle) + X[:, b] * np.abs(X[:, c]) + X @ slopes


def curved(rng: Generator) -> Federation:
    """Two shared curved truths, and a fifth of the learners with one of their own."""
    n, p, spread = _shape(rng)
    shared = [_curve(rng, p) for _ in range(2)]
    truths = [_curve(rng, p) if rng.random() < 0.2 else shared[k] for k in rng.integers(0, 2, n)]
    return _gathered(rng, _learners(rng, truths, rng.integers(40, 151, n), p, 0.5 * spread, "normal"))


KINDS: dict[str, Callable[[Generator], Federation]] = {
    "own truths, many rows": own_truths,
    "one truth, few rows": one_truth_few_rows,
    "one truth, many rows": one_truth_many_rows,
    "many predictors": many_predictors,
    "some gain": some_gain,
    "uneven sizes": uneven_sizes,
    "tiny learners": tiny_learners,
    "random responses": random_responses,
    "flipped responses": flipped_responses,
    "uneven noise": uneven_noise,
    "Student t3 noise": heavy_tails,
    "lognormal noise": skewed_noise,
    "nearly the same": nearly_the_same,
    "curved truths": curved,
}


def federation(kind: str, draw: int) -> Federation:
    """Return one draw of a kind; the same numbers give the same federation."""
    return KINDS[kind](np.random.default_rng([zlib.crc32(kind.encode()), draw]))
