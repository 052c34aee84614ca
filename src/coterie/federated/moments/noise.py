"""Exact noise on second moments: integers from the system's entropy, as much as the promise asks for.

Two tables are neighbours when one row of one is replaced; how many rows there are is known to all. What is
protected is never computed with in floating point, for the last bits of a rounded sum tell what was added.

**The grid.** A row z of length one at most becomes integers k = round(UNIT z) before anything is summed. Of q
numbers, rounding moves the row by sqrt(q) / 2 at most. As q is at most 10,002, k is no longer than UNIT + 64,
which is LENGTH. A row that is longer nevertheless counts as zeros: the bound is checked on the integers.

**The sensitivity.** A row is in one half only, and adds the integers kk' to its moments. If a row with the
integers l replaces it, the squared distance of kk' and ll' is |k|^4 + |l|^4 - 2 (k'l)^2 <= 2 LENGTH^4. In
units of UNIT^2, one row moves the moments by sqrt(2) (1 + 64 / UNIT)^2 at most. So rounding adds 0.012
percent to the square root of two.

**The noise.** Each entry gets discrete Gaussian noise (Canonne, Kamath and Steinke, 2020, "The discrete
Gaussian for differential privacy"). Its variance parameter is V on the diagonal. Beside the diagonal it is
V / 2, for such an entry stands twice in the matrix and is sent once. An integer that moves by d under noise
of the parameter V satisfies zero-concentrated differential privacy with rho = d^2 / (2 V), and the rhos of
all entries add up. So the whole message has rho = 2 LENGTH^4 / (2 V).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from secrets import randbelow
from typing import Any

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from coterie._arrays import Array
from coterie.federated.messages import ProtocolError
from coterie.federated.tables import Promise

# What a length of one is on the grid of integers, and the longest that a row is there. Squares have 40 bits:
# sums in floating point are exact up to 8,192, and rounded without harm beyond, for noise is on them then.
UNIT = 2**20
LENGTH = UNIT + 64
# Rows whose products are added in 64 bits: each is below 2^41.
MOST_ADDED = 2**21
# Smallest rho that noise of a sensible size has: its standard deviation is a million times the sensitivity.
MIN_RHO = 0.5e-12

# Returns an integer from zero to below the one that is given, all alike.
Below = Callable[[int], int]


def check_promise(promise: Promise) -> Promise:
    """Return a promise of differential privacy; refuse one that protects nothing or cannot be kept."""
    if not (0 < promise.epsilon < 1e3 and 0 < promise.delta < 0.1):
        raise ProtocolError(
            "Epsilon and delta must be positive, delta below 0.1 and epsilon below 1000. "
            f"Got {promise.epsilon:g} and {promise.delta:g}."
        )
    return promise


def log_delta(rho: float, epsilon: float) -> float:
    """Return the logarithm of the smallest delta that follows from rho-concentrated privacy.

    That is Corollary 13 of Canonne, Kamath and Steinke (2020), a minimum over the order alpha of a Renyi
    divergence. Each order proves a delta, so that a search that stops early promises less, never too much.
    """

    def proven(log_over: float) -> float:
        """Return the log of the delta that the order alpha = 1 + exp(log_over) proves."""
        over = math.exp(log_over)
        alpha = 1 + over
        return over * (alpha * rho - epsilon) - log_over - alpha * math.log1p(1 / over)

    # The best order is near (epsilon + rho) / (2 rho), where the first term is smallest.
    log_near_best = math.log(max((epsilon - rho) / (2 * rho), 0.0) + 1 / math.sqrt(rho))
    minimum = minimize_scalar(
        proven, bounds=(log_near_best - 12, log_near_best + 12), method="bounded", options={"xatol": 1e-10}
    )
    return float(minimum.fun)


def largest_rho(epsilon: float, delta: float) -> float:
    """Return the largest rho so that rho-concentrated privacy is (epsilon, delta)-private.

    Examples
    --------
    >>> from coterie.federated.moments.noise import largest_rho
    >>> round(largest_rho(1.0, 1e-6), 4)
    0.0244
    """
    # Rho measures how much is given away, and delta grows with it: the largest rho means the least noise.
    wanted_log_delta = math.log(delta)
    if log_delta(MIN_RHO, epsilon) > wanted_log_delta:
        raise ProtocolError("No noise of a sensible size keeps this promise: take a larger epsilon or delta.")
    bracket = math.log(MIN_RHO), math.log(4 * epsilon + 4 * -wanted_log_delta)
    log_rho_root = brentq(
        lambda log_rho: log_delta(math.exp(log_rho), epsilon) - wanted_log_delta, *bracket, xtol=1e-12
    )
    # The root is right up to rounding. A slightly smaller rho, so slightly more noise, surely keeps the
    # promise.
    return math.exp(log_rho_root) * (1 - 1e-9)


@cache
def noise_variance(promise: Promise) -> int:
    """Return the variance parameter V of the noise on the diagonal, in squared units of the integer grid.

    It is even, so that V / 2, the one beside the diagonal, is an integer too.
    """
    check_promise(promise)
    rho = Fraction(largest_rho(promise.epsilon, promise.delta))
    return 2 * math.ceil(LENGTH**4 / (2 * rho))


def noise_scale(promise: Promise | None) -> float:
    """Return the standard deviation of the noise on the diagonal of moments; zero without a promise.

    Beside the diagonal it is less by the square root of two, for each entry there stands twice in the matrix.
    """
    return 0.0 if promise is None else math.sqrt(noise_variance(promise)) / UNIT**2


def _happens(numerator: int, denominator: int, below: Below) -> bool:
    """Return true with the probability exp(-numerator / denominator), without floating point.

    It is Algorithm 1 of Canonne et al. (2020). ``below`` draws a random integer below its argument. Each
    whole unit of the exponent is a factor exp(-1), drawn by a call of its own.
    """
    while numerator > denominator:
        if not _happens(1, 1, below):
            return False
        numerator -= denominator
    n_draws = 1
    while below(denominator * n_draws) < numerator:
        n_draws += 1
    return n_draws % 2 == 1


def _laplace(scale: int, below: Below) -> int:
    """Return discrete Laplace noise x, with probability proportional to exp(-abs(x) / scale).

    It is Algorithm 2 of Canonne et al. (2020).
    """
    while True:
        size = below(scale)
        if not _happens(size, scale, below):
            continue
        while _happens(1, 1, below):
            size += scale
        negative = below(2) == 1
        # Zero with a minus is drawn again: zero would come twice as often otherwise.
        if size or not negative:
            return -size if negative else size


def discrete_gaussian(variance: int, below: Below) -> int:
    """Return an integer x with a probability proportional to exp(-x^2 / (2 variance)).

    It is Algorithm 3 of Canonne et al. (2020): a draw of Laplace noise is kept or rejected. Integers alone
    are computed with, so that the probabilities are these and no others.
    """
    scale = math.isqrt(variance) + 1
    while True:
        candidate = _laplace(scale, below)
        if _happens((abs(candidate) * scale - variance) ** 2, 2 * variance * scale * scale, below):
            return candidate


def on_grid(rows: Array) -> Array:
    """Return rows (n, q), whose length is at most one, in units of 1 / `UNIT` as integers.

    A row that is longer than `LENGTH` after rounding becomes zeros: the noise is enough for shorter ones
    only.
    """
    integers: Array = np.rint(UNIT * rows).astype(np.int64)
    integers[(integers * integers).sum(axis=1) > LENGTH * LENGTH] = 0
    return integers


def summed(rows: Array) -> Array:
    """Return the second moments (q, q) of rows of integers (n, q), exact, as integers of Python."""
    size = rows.shape[1]
    moments: Array = np.zeros((size, size), dtype=object)
    for start in range(0, len(rows), MOST_ADDED):
        block = rows[start : start + MOST_ADDED]
        moments = moments + (block.T @ block).astype(object)
    return moments


def noisy(moments: Any, promise: Promise, below: Below | None = None) -> Array:
    """Return moments (..., q, q), given as sums of grid integers, with discrete Gaussian noise on each entry.

    A row may be part of one of the matrices only. The result is symmetric and in units of length one.
    ``below`` draws integers, by default from the system's entropy; it is for tests.
    """
    draw, variance = below or randbelow, noise_variance(promise)
    moments = np.asarray(moments, dtype=object)
    noisy_moments, size = np.zeros(moments.shape), moments.shape[-1]
    for index in np.ndindex(noisy_moments.shape[:-2]):
        for i in range(size):
            for j in range(i, size):
                # Entries beside the diagonal stand twice in the matrix and are drawn once: half of the
                # variance does.
                variance_of_entry = variance if i == j else variance // 2
                entry = int(moments[(*index, i, j)]) + discrete_gaussian(variance_of_entry, draw)
                noisy_moments[(*index, i, j)] = noisy_moments[(*index, j, i)] = entry / UNIT**2
    return noisy_moments
