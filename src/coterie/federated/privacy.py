"""Numbers blurred so that one row hardly shows in them: clipping, then Gaussian noise, epsilon stated.

Two tables are neighbours when one row of one is replaced; how many rows there are is known to all. The noise
is that of the analytic Gaussian mechanism (Balle and Wang, 2018), which holds for every epsilon. It is drawn
from the system's entropy, never from the seed of the fit: whoever knows the seed could take it off again.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr

from coterie._arrays import Array
from coterie.federated.messages import Blur, ProtocolError


def check_blur(blur: Blur) -> Blur:
    """Refuse what promises nothing."""
    good = 0 < blur.epsilon < 1e3 and 0 < blur.delta < 0.1 and 0 < blur.clip < 1e50
    if not good:
        raise ProtocolError(
            "Epsilon, delta and clip must be positive, delta below 0.1 and epsilon below 1000."
        )
    return blur


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
    >>> from coterie.federated.privacy import gaussian_scale
    >>> round(gaussian_scale(1.0, 1e-6, 1.0), 2)
    4.22
    """
    if _delta_of(1e6, epsilon) > delta:
        raise ProtocolError("No noise of a sensible size keeps this promise: take a larger epsilon or delta.")
    ratio = brentq(lambda log: _delta_of(np.exp(log), epsilon) - delta, np.log(1e-3), np.log(1e6))
    # The root is good to rounding; a hair more noise keeps the promise.
    return float(sensitivity * np.exp(ratio) * (1 + 1e-9))


def blurred_coefficients(
    w: Array, b: float, blur: Blur, generator: np.random.Generator
) -> tuple[Array, float]:
    """Return the slopes, of shape (p,), and the intercept, clipped in norm and blurred.

    One row may turn the clipped vector about: the sensitivity is twice the norm, whatever fitted the model.
    """
    whole = np.append(w, b)
    norm = float(np.linalg.norm(whole))
    if norm > blur.clip:
        whole = whole * (blur.clip / norm)
    scale = gaussian_scale(blur.epsilon, blur.delta, 2 * blur.clip)
    blurred = whole + generator.normal(0.0, scale, len(whole))
    return blurred[:-1], float(blurred[-1])


def blurred_means(squares: Array, blur: Blur, generator: np.random.Generator) -> Array:
    """Return mean squared residuals, of shape (M,) and not negative, each square clipped, blurred.

    ``squares``, of shape (M, n), are those of M models that are known to all. One row moves each mean by at
    most clip / n, so the sensitivity of all of them together is sqrt(M) clip / n.
    """
    n_models, n_rows = squares.shape
    scale = gaussian_scale(blur.epsilon, blur.delta, np.sqrt(n_models) * blur.clip / n_rows)
    means = np.minimum(squares, blur.clip).mean(axis=1)
    blurred: Array = np.maximum(means + generator.normal(0.0, scale, n_models), 0.0)
    return blurred


def noise_of_level(level: float, blur: Blur, n_models: int, n_rows: int) -> float:
    """Return the sampling variance of the log of a blurred level, from what is known to all."""
    scale = gaussian_scale(blur.epsilon, blur.delta, np.sqrt(n_models) * blur.clip / n_rows)
    # Squares of Gaussian residuals: the log of their mean has the variance 2 / n.
    return float(2 / n_rows + (scale / level) ** 2)
