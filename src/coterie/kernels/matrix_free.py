"""The spectrum of the similarity without the similarity: tiles are made, used and forgotten.

The losses of affine models are inner products of features of the model with features of the learner, so a
tile of S = exp(-a v) is two matrix products and an exponential. Its top eigenvectors are found from products
of S with a block of vectors: a Nystrom subspace from a sample of learners comes first; one pass over all
pairs then gives the exact degrees and the operator on that subspace, a Rayleigh-Ritz step its eigenpairs with
their residual, which says whether another pass is needed. The same code runs on NumPy arrays and, on a CPU or
a GPU, on torch tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

# NumPy arrays or torch tensors: both have the operations that are used here.
Tensor = Any
Product = Callable[[Tensor], Tensor]

# Learners in the sample from which the subspace starts.
LANDMARKS = 1500
# Vectors beyond those asked for: they take up what the start has missed.
SPARE = 8
# Degrees below this are rounding: a learner is at least similar to itself.
SMALLEST_DEGREE = 1e-6


def namespace(array: Tensor) -> Any:
    """Return the module whose functions take this array: ``numpy`` or ``torch``."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def _spans(n: int, block: int) -> Iterator[slice]:
    return (slice(start, min(start + block, n)) for start in range(0, n, block))


@dataclass(frozen=True)
class PairFeatures:
    """Losses as inner products: model i loses ``models[i] @ learners[j]`` on learner j.

    Parameters
    ----------
    models : array of shape (L, F)
        Features of the models.
    learners : array of shape (L, F)
        Features of the learners' rows.
    errors : array of shape (L,)
        Loss of each model on its own learner.
    scale : float
        The factor a of S = exp(-a v).
    """

    models: Tensor
    learners: Tensor
    errors: Tensor
    scale: float

    def tile(self, rows: Any, columns: Any) -> Tensor:
        """Return the similarities between some learners and others."""
        xp = namespace(self.errors)
        there = self.models[rows] @ self.learners[columns].T - self.errors[columns][None, :]
        back = self.learners[rows] @ self.models[columns].T - self.errors[rows][:, None]
        return xp.exp(-self.scale * (xp.abs(there) + xp.abs(back)))

    def times(self, vectors: Tensor, block: int) -> Tensor:
        """Return S times a block of vectors, each tile made once for both its sides."""
        product = namespace(vectors).zeros_like(vectors)
        spans = list(_spans(len(self.errors), block))
        for place, rows in enumerate(spans):
            for columns in spans[place:]:
                similarity = self.tile(rows, columns)
                product[rows] += similarity @ vectors[columns]
                if columns is not rows:
                    product[columns] += similarity.T @ vectors[rows]
        return product


@dataclass(frozen=True)
class TopPairs:
    """Top eigenpairs of D^-1/2 S D^-1/2.

    Parameters
    ----------
    values : array of shape (M,)
        Eigenvalues, the largest first.
    vectors : array of shape (L, M)
        Eigenvectors.
    degrees : array of shape (L,)
        Row sums of S.
    residual : float
        Largest norm of operator times vector minus value times vector.
    passes : int
        Passes over all pairs that it took.
    """

    values: Tensor
    vectors: Tensor
    degrees: Tensor
    residual: float
    passes: int


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Decompose a small symmetric matrix in double precision."""
    xp = namespace(matrix)
    double = xp.asarray(matrix, dtype=xp.float64)
    values, vectors = xp.linalg.eigh((double + double.T) / 2)
    return values, vectors


def nystrom_start(
    features: PairFeatures, landmarks: Tensor, count: int, block: int
) -> tuple[Tensor, Tensor]:
    """Return approximate top vectors of shape (L, count) and approximate degrees, from some learners.

    Parameters
    ----------
    features : PairFeatures
        Of all learners.
    landmarks : array of int of shape (m,)
        The learners in the sample.
    count : int
        Vectors wanted; fewer come back where the sample spans fewer.
    block : int
        Learners taken together.

    Returns
    -------
    vectors : array of shape (L, count)
        Of length one, nearly.
    degrees : array of shape (L,)
        Approximate row sums of S.
    """
    xp = namespace(features.errors)
    kind = features.errors.dtype
    values, vectors = _eigh(features.tile(landmarks, landmarks))
    kept = values > 1e-5 * values[-1]
    root = xp.asarray(vectors[:, kept] / xp.sqrt(values[kept]), dtype=kind)
    extended = xp.empty_like(features.models[:, :1] * root[:1])
    for rows in _spans(len(features.errors), block):
        extended[rows] = features.tile(rows, landmarks) @ root
    degrees = xp.clip(extended @ extended.sum(0), SMALLEST_DEGREE, None)
    extended = extended / xp.sqrt(degrees)[:, None]
    values, vectors = _eigh(extended.T @ extended)
    top = slice(max(len(values) - count, 0), None)
    scaled = vectors[:, top] / xp.sqrt(xp.clip(values[top], 1e-12, None))
    return extended @ xp.asarray(scaled, dtype=kind), degrees


def _ritz(basis: Tensor, image: Tensor, count: int) -> tuple[Tensor, Tensor, float]:
    """Return the best eigenpairs inside a subspace, largest first, and their largest residual."""
    xp = namespace(basis)
    gram, operator = (xp.asarray(basis.T @ other, dtype=xp.float64) for other in (basis, image))
    lower = xp.linalg.inv(xp.linalg.cholesky(gram))
    values, inside = _eigh(lower @ ((operator + operator.T) / 2) @ lower.T)
    top = xp.asarray(np.arange(len(values) - 1, max(len(values) - count, 0) - 1, -1))
    chosen = xp.asarray((lower.T @ inside)[:, top], dtype=basis.dtype)
    values = xp.asarray(values[top], dtype=basis.dtype)
    vectors = basis @ chosen
    missed = image @ chosen - vectors * values
    return values, vectors, float(xp.sqrt((missed**2).sum(0)).max())


def top_pairs(
    features: PairFeatures,
    count: int,
    *,
    times: Product | None = None,
    block: int = 4096,
    tolerance: float = 1e-4,
    passes: int = 6,
    seed: int = 0,
) -> TopPairs:
    """Find the top eigenpairs of D^-1/2 S D^-1/2 without storing S.

    Parameters
    ----------
    features : PairFeatures
        Losses as inner products.
    count : int
        Eigenpairs wanted.
    times : callable or None, default=None
        Multiplies S with a block of vectors; None: by tiles.
    block : int, default=4096
        Learners on a side of a tile.
    tolerance : float, default=1e-4
        Residual that is small enough.
    passes : int, default=6
        Passes over all pairs at most.
    seed : int, default=0
        For the sample of learners.

    Returns
    -------
    TopPairs
        With the residual that was reached.
    """
    xp = namespace(features.errors)
    n = len(features.errors)
    multiply = times if times is not None else lambda vectors: features.times(vectors, block)
    sample = np.random.default_rng(seed).choice(n, min(n, LANDMARKS), replace=False)
    landmarks = np.sort(sample)
    if xp is not np:
        landmarks = xp.asarray(landmarks, device=features.errors.device)
    start, guessed = nystrom_start(features, landmarks, count + SPARE, block)
    ones = xp.ones_like(features.errors)[:, None]
    image = multiply(xp.concatenate([ones, start / xp.sqrt(guessed)[:, None]], 1))
    degrees = image[:, 0]
    inverse_root = 1.0 / xp.sqrt(degrees)[:, None]
    basis = xp.sqrt(degrees / guessed)[:, None] * start
    image = inverse_root * image[:, 1:]
    for done in range(1, passes + 1):
        values, vectors, residual = _ritz(basis, image, count)
        if residual < tolerance or done == passes:
            break
        basis = xp.linalg.qr(image)[0]
        image = inverse_root * multiply(inverse_root * basis)
    return TopPairs(values, vectors, degrees, residual, done)
