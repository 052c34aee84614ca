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

# Grids of the three ratios: variances of offsets and of slopes in units of the noise, and ridges in rows.
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
        """Return what each row's learner predicts by its line, (N,), for rows Z (N, q) of ``owner`` (N,)."""
        values: Array = Z @ self.common + np.einsum("nq,nq->n", Z, self.own[owner])
        return values


def _penalty(ratios: Ratios, size: int) -> Array:
    """Return the ridge penalty of each common coefficient, of shape (size,); the last is the intercept."""
    penalty = np.full(size, ratios.ridge)
    # The intercept is not penalised, but for a trace that keeps the system regular.
    penalty[-1] = 1e-6
    return penalty


def _inner(sums: Sums, ratios: Ratios) -> tuple[Array, Array]:
    """Return the diagonal of D^1/2, (q,), and I + D^1/2 G D^1/2 of each learner, (L, q, q).

    D is the prior variance of a learner's slopes and offset in units of the noise, G its Gram matrix Z'Z.
    The second matrix is what has to be inverted for shrunken effects; it is regular even where G is not.
    """
    assert sums.grams is not None
    prior_roots = np.full(len(sums.total), np.sqrt(ratios.slope))
    prior_roots[-1] = np.sqrt(max(ratios.offset, 1e-9))
    return prior_roots, np.eye(len(prior_roots)) + prior_roots[:, None] * sums.grams * prior_roots


def _offsets_only(sums: Sums, ratios: Ratios) -> tuple[Array, Array, float, float]:
    """Return Z'V^-1Z, Z'V^-1y, y'V^-1y and log|V|, summed over learners, where only offsets vary.

    V is the covariance of a learner's responses in units of the noise: the identity plus the variance of
    its offset. The inverse of such a matrix has a closed form in the learner's sums.
    """
    shrinkage = ratios.offset / (1 + sums.counts * ratios.offset)
    weighted_gram = sums.total - (sums.inputs * shrinkage[:, None]).T @ sums.inputs
    weighted_product = sums.products.sum(axis=0) - sums.inputs.T @ (shrinkage * sums.products[:, -1])
    weighted_square = sums.squares.sum() - float(shrinkage @ sums.products[:, -1] ** 2)
    return (
        weighted_gram,
        weighted_product,
        weighted_square,
        float(np.log1p(sums.counts * ratios.offset).sum()),
    )


def _with_slopes(sums: Sums, ratios: Ratios) -> tuple[Array, Array, float, float]:
    """Return Z'V^-1Z, Z'V^-1y, y'V^-1y and log|V|, summed over learners, where slopes vary as well.

    V is the identity plus Z D Z', with D as in `_inner`. Woodbury's identity needs only the learners'
    Gram matrices Z'Z and products Z'y, not their rows.
    """
    assert sums.grams is not None
    prior_roots, inner = _inner(sums, ratios)
    solved = np.linalg.solve(
        inner,
        np.concatenate([prior_roots[:, None] * sums.grams, (prior_roots * sums.products)[..., None]], axis=2),
    )
    crossed = np.swapaxes(prior_roots[:, None] * sums.grams, 1, 2)
    weighted_gram = (sums.grams - crossed @ solved[..., :-1]).sum(axis=0)
    weighted_product = (sums.products - (crossed @ solved[..., -1:])[..., 0]).sum(axis=0)
    weighted_square = sums.squares.sum() - float(
        np.einsum("lq,lq->", prior_roots * sums.products, solved[..., -1])
    )
    return weighted_gram, weighted_product, weighted_square, float(np.linalg.slogdet(inner)[1].sum())


def own_effects(sums: Sums, common: Array, ratios: Ratios) -> Array:
    """Return how each learner departs from the ``common`` line (q,): shrunken slopes and offset, (L, q).

    These are the best linear unbiased predictions of the random effects, under the variances ``ratios``.
    Slopes are zero where they do not vary.
    """
    effects = np.zeros_like(sums.products)
    if ratios.slope > 0 and sums.grams is not None:
        prior_roots, inner = _inner(sums, ratios)
        residual_products = sums.products - sums.grams @ common
        effects = prior_roots * np.linalg.solve(inner, (prior_roots * residual_products)[..., None])[..., 0]
    else:
        residual_products = sums.products[:, -1] - sums.inputs @ common
        effects[:, -1] = residual_products * ratios.offset / (1 + sums.counts * ratios.offset)
    return effects


def _solved(sums: Sums, ratios: Ratios, noise: float | None = None) -> tuple[Array, float]:
    """Return the common coefficients (q,) and minus twice the log marginal likelihood of the responses.

    It is up to a constant. Where the ``noise`` variance is None, the likelihood is the one at its best
    value.
    """
    with_slopes = ratios.slope > 0 and sums.grams is not None
    weighted_gram, weighted_product, weighted_square, log_determinants = (
        _with_slopes if with_slopes else _offsets_only
    )(sums, ratios)
    penalty = _penalty(ratios, len(weighted_product))
    system = weighted_gram + np.diag(penalty)
    common = np.linalg.solve(system, weighted_product)
    n_rows = sums.counts.sum()
    unexplained = max(weighted_square - float(weighted_product @ common), 1e-12 * max(n_rows, 1.0))
    log_determinants += float(np.linalg.slogdet(system)[1]) - float(np.log(penalty).sum())
    if noise is not None:
        return common, unexplained / noise + log_determinants
    return common, float(n_rows * np.log(unexplained / max(n_rows, 1.0)) + log_determinants)


def fit_line(sums: Sums, ratios: Ratios) -> MixedEffectsLine:
    """Fit the common coefficients by generalised least squares, and each learner's departures from them."""
    common = _solved(sums, ratios)[0]
    return MixedEffectsLine(common, own_effects(sums, common, ratios))


def likely_ratios(parts: Sequence[Sums], *, offsets: bool = True, noise: float | None = None) -> Ratios:
    """Return the variance ratios and the ridge that maximise the marginal likelihood, on grids in turn.

    ``parts`` are sums of groups of learners; each group has a common line of its own and all share the
    ratios. ``noise`` is the noise variance where it is known. If ``offsets`` is false, learners have no
    offsets.
    """
    with_slopes = parts[0].grams is not None and len(parts[0].total) > 1
    grids = {"offset": OFFSETS} if offsets else {}
    grids |= {"slope": SLOPES, "ridge": RIDGES} if with_slopes else {"ridge": RIDGES}
    best = Ratios()
    for _ in range(TURNS):
        for name, grid in grids.items():
            candidates = [replace(best, **{name: float(value)}) for value in grid]
            best = candidates[
                int(
                    np.argmin(
                        [sum(_solved(part, ratios, noise)[1] for part in parts) for ratios in candidates]
                    )
                )
            ]
    return best
