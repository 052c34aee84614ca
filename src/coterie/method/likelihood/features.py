"""Features of the predictors, made by a map that never sees the response.

The columns are the standardised predictors, a column of ones, and three families of curved features: waves of
single predictors, products, and smooth functions of all. Each family is freed of the columns before it and
kept to its principal components. As the map does not see y, the bounds of lines and of curved features are
bounds of the same likelihood, and can be compared.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._arrays import Array
from coterie.method.likelihood.rules import RULES

# Kinds of columns. Columns of one curved kind share a relevance.
# DIRECTION repeats a direction of the linear ones, for own departures alone.
LINEAR, PRODUCT, LEVEL, WAVE, SMOOTH, DIRECTION = range(6)
# Products of more predictors than this are squares only; waves of more are left out.
FEW_FOR_PRODUCTS, FEW_FOR_WAVES = 12, 30
# Smooth functions are random Fourier features of a normal kernel whose width is .6 of the usual distance.
N_SMOOTH, WIDTH = 60, 0.6
# Components are limited to this many standard deviations, and dropped below this share of the largest.
REACH, LEAST = 6.0, 1e-3


class Features(NamedTuple):
    """Columns of shape (N, d), and the kind of each, of shape (d,)."""

    columns: Array
    kinds: Array


def standardized(values: Array) -> Array:
    """Return columns of mean zero and variance one; a constant column becomes noughts.

    A column is constant if its spread is rounding beside its largest entry.
    """
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    rounding = 1e-12 * np.abs(values).max(axis=0, initial=0.0)
    varied = spread > rounding
    return np.where(varied, centred, 0.0) / np.where(varied, spread, 1.0)


def _families(X: Array) -> list[tuple[int, Array]]:
    # Kind and columns of each family of curved features of standardised predictors X (N, p).
    p = X.shape[1]
    families = []
    if p <= FEW_FOR_WAVES:
        families.append((WAVE, np.concatenate([np.sin(1.5 * X), np.sin(3 * X), np.cos(3 * X)], axis=1)))
    i, j = np.triu_indices(p)
    families.append((PRODUCT, X[:, i] * X[:, j] if p <= FEW_FOR_PRODUCTS else X * X))
    # The mean squared distance of standardised rows is 2p. The directions are the same in every fit.
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((p, N_SMOOTH)) / (WIDTH * np.sqrt(2 * p))
    families.append((SMOOTH, np.cos(X @ directions + rng.uniform(0, 2 * np.pi, N_SMOOTH))))
    return families


def make_features(X: Array, *, curved: bool) -> Features:
    """Return the columns of the lines, and where ``curved`` is true the families of curved features.

    X (N, p) are predictors in any units. Components of curved features have variance one, and those that
    are nearly nothing are left out.
    """
    X = standardized(X)
    n, p = X.shape
    columns, kinds = np.c_[X, np.ones(n)], [LINEAR] * p + [LEVEL]
    for kind, family in _families(X) if curved else []:
        # What earlier columns say already is taken off, so that bounds do not count it twice.
        free = family - columns @ np.linalg.lstsq(columns, family, rcond=None)[0]
        size, axes = np.linalg.eigh(free.T @ free / n)
        kept = np.argsort(-size)[: RULES.components]
        kept = kept[size[kept] > LEAST * max(size[-1], LEAST)]
        components = free @ (axes[:, kept] / np.sqrt(size[kept]))
        columns = np.c_[columns, np.clip(components, -REACH, REACH)]
        kinds += [kind] * len(kept)
    return Features(columns, np.array(kinds))
