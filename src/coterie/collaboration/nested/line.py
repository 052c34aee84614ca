"""One line for all learners, from which each may depart by an offset and slopes of its own.

For learner j, y = Z (b + u_j) + e with u_j ~ N(0, s D): the variance of offsets and of slopes, and the ridge
on b, are ratios to the noise s. They maximise the marginal likelihood on a grid, one after the other. All of
it is arithmetic of second moments, so that a line without some fold costs a few small solves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.sums import Sums

OFFSETS = np.r_[0.0, np.logspace(-2.5, 2, 10)]
SLOPES = np.r_[0.0, np.logspace(-3.5, 1, 10)]
RIDGES = np.array([0.1, 1.0, 10.0, 100.0, 1000.0])
# Times that the three ratios are chosen in turn.
TURNS = 2


@dataclass(frozen=True)
class Ratios:
    """Variance of offsets and of slopes in units of the noise, and the ridge on common slopes in rows."""

    offset: float = 0.0
    slope: float = 0.0
    ridge: float = 1.0


@dataclass(frozen=True)
class MixedEffectsLine:
    """Coefficients that all learners share, of shape (q,), and how each departs from them, (L, q)."""

    common: Array
    own: Array

    def values(self, Z: Array, owner: Array) -> Array:
        """Return the line of each row's learner at rows Z of shape (N, q)."""
        values: Array = Z @ self.common + np.einsum("nq,nq->n", Z, self.own[owner])
        return values


def _penalty(ratios: Ratios, size: int) -> Array:
    """Return the ridge penalty of the common coefficients, of shape (size,)."""
    penalty = np.full(size, ratios.ridge)
    # The level of all is free; a trace of a penalty keeps the system regular.
    penalty[-1] = 1e-6
    return penalty


def _inner(sums: Sums, ratios: Ratios) -> tuple[Array, Array]:
    """Return the roots of D, of shape (q,), and I + D^1/2 G D^1/2 of each learner, of shape (L, q, q)."""
    assert sums.grams is not None
    roots = np.full(len(sums.total), np.sqrt(ratios.slope))
    roots[-1] = np.sqrt(max(ratios.offset, 1e-9))
    return roots, np.eye(len(roots)) + roots[:, None] * sums.grams * roots


def _offsets_only(sums: Sums, ratios: Ratios) -> tuple[Array, Array, float, float]:
    """Return X'V^-1X, X'V^-1y, y'V^-1y and log|V| where only offsets vary."""
    shrink = ratios.offset / (1 + sums.counts * ratios.offset)
    matrix = sums.total - (sums.inputs * shrink[:, None]).T @ sums.inputs
    vector = sums.products.sum(axis=0) - sums.inputs.T @ (shrink * sums.products[:, -1])
    square = sums.squares.sum() - float(shrink @ sums.products[:, -1] ** 2)
    return matrix, vector, square, float(np.log1p(sums.counts * ratios.offset).sum())


def _with_slopes(sums: Sums, ratios: Ratios) -> tuple[Array, Array, float, float]:
    """Return the same where slopes vary, too."""
    assert sums.grams is not None
    roots, inner = _inner(sums, ratios)
    solved = np.linalg.solve(
        inner, np.concatenate([roots[:, None] * sums.grams, (roots * sums.products)[..., None]], axis=2)
    )
    across = np.swapaxes(roots[:, None] * sums.grams, 1, 2)
    matrix = (sums.grams - across @ solved[..., :-1]).sum(axis=0)
    vector = (sums.products - (across @ solved[..., -1:])[..., 0]).sum(axis=0)
    square = sums.squares.sum() - float(np.einsum("lq,lq->", roots * sums.products, solved[..., -1]))
    return matrix, vector, square, float(np.linalg.slogdet(inner)[1].sum())


def own_effects(sums: Sums, common: Array, ratios: Ratios) -> Array:
    """Return how each learner departs from the common line, of shape (L, q)."""
    own = np.zeros_like(sums.products)
    if ratios.slope > 0 and sums.grams is not None:
        roots, inner = _inner(sums, ratios)
        residual_products = sums.products - sums.grams @ common
        own = roots * np.linalg.solve(inner, (roots * residual_products)[..., None])[..., 0]
    else:
        residual_products = sums.products[:, -1] - sums.inputs @ common
        own[:, -1] = residual_products * ratios.offset / (1 + sums.counts * ratios.offset)
    return own


def _solved(sums: Sums, ratios: Ratios, noise: float | None = None) -> tuple[Array, float]:
    """Return the common coefficients, and minus twice the log marginal likelihood; None: of unknown noise."""
    slopes = ratios.slope > 0 and sums.grams is not None
    matrix, vector, square, volume = (_with_slopes if slopes else _offsets_only)(sums, ratios)
    penalty = _penalty(ratios, len(vector))
    system = matrix + np.diag(penalty)
    common = np.linalg.solve(system, vector)
    rows = sums.counts.sum()
    unexplained = max(square - float(vector @ common), 1e-12 * max(rows, 1.0))
    volume += float(np.linalg.slogdet(system)[1]) - float(np.log(penalty).sum())
    if noise is not None:
        return common, unexplained / noise + volume
    return common, float(rows * np.log(unexplained / max(rows, 1.0)) + volume)


def fit_line(sums: Sums, ratios: Ratios) -> MixedEffectsLine:
    """Fit the common coefficients, and how each learner departs from them."""
    common = _solved(sums, ratios)[0]
    return MixedEffectsLine(common, own_effects(sums, common, ratios))


def likely_ratios(parts: Sequence[Sums], *, offsets: bool = True, noise: float | None = None) -> Ratios:
    """Return the ratios under which the responses of all parts are most likely, each with its own line.

    ``noise`` is its variance where that is known.
    """
    slopes = parts[0].grams is not None and len(parts[0].total) > 1
    grids = {"offset": OFFSETS} if offsets else {}
    grids |= {"slope": SLOPES, "ridge": RIDGES} if slopes else {"ridge": RIDGES}
    best = Ratios()
    for _ in range(TURNS):
        for name, grid in grids.items():
            tried = [replace(best, **{name: float(value)}) for value in grid]
            best = tried[
                int(np.argmin([sum(_solved(part, one, noise)[1] for part in parts) for one in tried]))
            ]
    return best
