"""Gaussian noise on second moments: as little as the promise allows.

Two tables are neighbours when one row of one is replaced; how many rows there are is known to all. A row z of
length one at most adds zz' to the moments of one of the halves. Replacing it moves them by the square root of
two at most, in Euclidean length of all entries. The noise is that of the analytic Gaussian mechanism (Balle
and Wang, 2018), which holds for every epsilon. It is drawn from the system's entropy, never from the seed of
the fit: whoever knows the seed could take it off again.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from coterie._arrays import Array
from coterie.federated.messages import ProtocolError
from coterie.federated.tables import Promise

# How far one row can move the moments: the largest length of zz' - ww', where z and w have length one.
SENSITIVITY = float(np.sqrt(2.0))


def check_promise(promise: Promise) -> Promise:
    """Refuse what promises nothing."""
    if not (0 < promise.epsilon < 1e3 and 0 < promise.delta < 0.1):
        raise ProtocolError(
            "Epsilon and delta must be positive, delta below 0.1 and epsilon below 1000. "
            f"Got {promise.epsilon:g} and {promise.delta:g}."
        )
    return promise


def _delta_of(ratio: float, epsilon: float) -> float:
    """Return the delta of noise with this standard deviation in units of the sensitivity."""
    upper = log_ndtr(0.5 / ratio - epsilon * ratio)
    lower = epsilon + log_ndtr(-0.5 / ratio - epsilon * ratio)
    return float(np.exp(upper) - np.exp(lower))


def gaussian_scale(epsilon: float, delta: float, sensitivity: float) -> float:
    """Return the smallest standard deviation of noise that makes numbers (epsilon, delta)-private.

    ``sensitivity`` is how far, in Euclidean length, one row can move the numbers.

    Examples
    --------
    >>> from coterie.federated.moments.noise import gaussian_scale
    >>> round(gaussian_scale(1.0, 1e-6, 1.0), 2)
    4.22
    """
    if _delta_of(1e6, epsilon) > delta:
        raise ProtocolError("No noise of a sensible size keeps this promise: take a larger epsilon or delta.")
    ratio = brentq(lambda log: _delta_of(np.exp(log), epsilon) - delta, np.log(1e-3), np.log(1e6))
    # The root is good to rounding; a hair more noise keeps the promise.
    return float(sensitivity * np.exp(ratio) * (1 + 1e-9))


def noise_scale(promise: Promise | None) -> float:
    """Return the standard deviation of the noise on the diagonal of moments; zero without a promise.

    Beside the diagonal it is less by the square root of two, for each entry there stands twice in the matrix.
    """
    if promise is None:
        return 0.0
    check_promise(promise)
    return gaussian_scale(promise.epsilon, promise.delta, SENSITIVITY)


def noisy(moments: Array, promise: Promise, generator: np.random.Generator) -> Array:
    """Return symmetric moments (..., q, q) of rows of length one at most with noise on them.

    A row may be part of one of the matrices only.
    """
    scale, size = noise_scale(promise), moments.shape[-1]
    drawn = generator.normal(0.0, scale, moments.shape)
    above = np.triu(drawn, 1) / np.sqrt(2.0)
    blurred: Array = moments + above + np.swapaxes(above, -1, -2) + drawn * np.eye(size)
    return blurred
