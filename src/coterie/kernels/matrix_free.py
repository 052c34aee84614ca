"""The spectrum of the similarity without the similarity: tiles are made, used and forgotten.

The top eigenvectors of D^-1/2 S D^-1/2 are found from products of S with blocks of vectors. A Nystrom
subspace from a sample of learners comes first; one pass over all pairs then gives the exact degrees and the
operator on that subspace, a Rayleigh-Ritz step its eigenpairs with their residuals, which say whether another
pass is needed; a further pass adds the residuals to the subspace. The same code runs on NumPy arrays and, on
a CPU or a GPU, on torch tensors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie.dissimilarity import dissimilarity
from coterie.kernels.limits import LIMITS

# NumPy arrays or torch tensors: both have the operations that are used here.
Tensor = Any
Product = Callable[[Tensor], Tensor]

# Extra vectors: they take up what the start has missed.
SPARE = 8


def namespace(array: Tensor) -> Any:
    """Return the module whose functions take this array: ``numpy`` or ``torch``."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def spans(n: int, block: int) -> Iterator[slice]:
    """Cut positions into runs."""
    return (slice(start, min(start + block, n)) for start in range(0, n, block))


class Similarity(ABC):
    """A matrix of similarities that need not exist. Tiles have ``block`` learners on a side."""

    block: int

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Number of learners, twice."""

    @abstractmethod
    def tile(self, rows: Any, columns: Any) -> Tensor:
        """Return the similarities between some learners and others, given by slices or positions."""

    def asarray(self, values: Any) -> Tensor:
        """Return numbers or positions as an array of the kind and on the device of the tiles."""
        return np.asarray(values)

    def times(self, vectors: Tensor) -> Tensor:
        """Return S times a block of vectors, each tile made once for both its sides."""
        product = namespace(vectors).zeros_like(vectors)
        every = list(spans(self.shape[0], self.block))
        for index, rows in enumerate(every):
            for columns in every[index:]:
                similarity = self.tile(rows, columns)
                product[rows] += similarity @ vectors[columns]
                if columns is not rows:
                    product[columns] += similarity.T @ vectors[rows]
        return product


@dataclass(frozen=True)
class PairFeatures(Similarity):
    """Losses as inner products: model i loses ``models[i] @ learners[j]`` on learner j.

    Both features have the shape (L, F), ``errors`` (L,) is each model's loss on its own learner, ``scale``
    the factor a of S = exp(-a v). ``product`` multiplies S with a block of vectors; None: by tiles of
    ``block`` learners on a side.
    """

    models: Tensor
    learners: Tensor
    errors: Tensor
    scale: float
    product: Product | None = None
    block: int = 4096

    @property
    def shape(self) -> tuple[int, int]:
        """Number of learners, twice."""
        return len(self.errors), len(self.errors)

    def asarray(self, values: Any) -> Tensor:
        """Return numbers or positions as an array of the kind and on the device of the features."""
        if isinstance(self.errors, np.ndarray):
            return np.asarray(values)
        return namespace(self.errors).asarray(values, device=self.errors.device)

    def tile(self, rows: Any, columns: Any) -> Tensor:
        """Return the similarities between some learners and others."""
        xp = namespace(self.errors)
        there = self.models[rows] @ self.learners[columns].T
        back = self.learners[rows] @ self.models[columns].T
        apart = dissimilarity(there, back, self.errors[rows][:, None], self.errors[columns])
        return xp.exp(-self.scale * apart)

    def times(self, vectors: Tensor) -> Tensor:
        """Return S times a block of vectors."""
        return super().times(vectors) if self.product is None else self.product(vectors)


@dataclass(frozen=True)
class TopPairs:
    """Top eigenpairs of D^-1/2 S D^-1/2, the largest of the ``values`` (M,) first.

    ``vectors`` have the shape (L, M), ``degrees`` (L,) are the row sums of S, ``plain_values`` (M,) the
    largest eigenvalues of S itself within the same subspace. ``residuals`` (M,) are the norms of operator
    times vector minus value times vector, ``residual`` the largest of the pairs that were waited for, in so
    many ``passes`` over all pairs. An extended spectrum took none, and knows no residuals.
    """

    values: Tensor
    vectors: Tensor
    degrees: Tensor
    plain_values: Tensor
    residuals: Tensor | None = None
    residual: float = 0.0
    passes: int = 0


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Decompose a small symmetric matrix in double precision."""
    xp = namespace(matrix)
    double = xp.asarray(matrix, dtype=xp.float64)
    values, vectors = xp.linalg.eigh((double + double.T) / 2)
    return values, vectors


def _largest(values: Tensor, count: int) -> Tensor:
    """Return the positions of the last eigenvalues, the very last first; all where there are fewer."""
    order = np.arange(len(values) - 1, max(len(values) - count, 0) - 1, -1)
    xp = namespace(values)
    return order if xp is np else xp.asarray(order, device=values.device)


def nystrom_root(similarity: Similarity, landmarks: Tensor) -> Tensor:
    """Return R, of as many rows as landmarks: S is approximately T R R' T', T being everybody beside them."""
    among = similarity.tile(landmarks, landmarks)
    xp = namespace(among)
    values, vectors = _eigh(among)
    kept = values > 1e-5 * values[-1]
    return xp.asarray(vectors[:, kept] / xp.sqrt(values[kept]), dtype=among.dtype)


def nystrom_pairs(similarity: Similarity, landmarks: Tensor, count: int, block: int = 4096) -> TopPairs:
    """Extend the spectrum of some learners, the ``landmarks``, to everybody by Nystrom's approximation.

    Only tiles beside the landmarks are computed, of ``block`` learners. The vectors are orthonormal; there
    are fewer than ``count`` where the sample spans fewer.
    """
    root = nystrom_root(similarity, landmarks)
    xp, kind = namespace(root), root.dtype
    # Tiles are made three times rather than kept: of ten million learners they would fill any memory.
    every = list(spans(similarity.shape[0], block))
    total = sum(similarity.tile(rows, landmarks).sum(0) for rows in every)
    degrees, gram, plain = [], 0.0, 0.0
    for rows in every:
        extended = similarity.tile(rows, landmarks) @ root
        plain = plain + xp.asarray(extended.T @ extended, dtype=xp.float64)
        # A learner's similarity with itself is one, so that no degree is less.
        degree = xp.clip(extended @ (total @ root), 1.0, None)
        extended = extended / xp.sqrt(degree)[:, None]
        degrees.append(degree)
        gram = gram + xp.asarray(extended.T @ extended, dtype=xp.float64)
    values, vectors = _eigh(gram)
    top = _largest(values, count)
    scaled = vectors[:, top] / xp.sqrt(xp.clip(values[top], 1e-12, None))
    turned = root @ xp.asarray(scaled, dtype=kind)
    parts = [
        similarity.tile(rows, landmarks) @ turned / xp.sqrt(degree)[:, None]
        for rows, degree in zip(every, degrees, strict=True)
    ]
    return TopPairs(
        xp.asarray(values[top], dtype=kind),
        xp.concatenate(parts, 0),
        xp.concatenate(degrees, 0),
        xp.asarray(_eigh(plain)[0][top], dtype=kind),
    )


def _whitening(gram: Tensor, kind: Any) -> Tensor:
    """Return coefficients that make a basis orthonormal; directions that are rounding are left out."""
    xp = namespace(gram)
    # Vectors of very different lengths must not hide each other: of a million learners, the ones are long.
    lengths = xp.sqrt(xp.asarray(xp.diagonal(gram), dtype=xp.float64))
    lengths = xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    values, vectors = _eigh(gram / (lengths[:, None] * lengths))
    kept = values > (1e-12 if kind == xp.float64 else 1e-6) * values[-1]
    return vectors[:, kept] / xp.sqrt(values[kept]) / lengths[:, None]


def _ritz(operator: Tensor, gram: Tensor, kind: Any, count: int) -> tuple[Tensor, Tensor]:
    """Return the best eigenvalues inside a subspace, largest first, and their coefficients in its basis."""
    xp = namespace(gram)
    white = _whitening(gram, kind)
    inside = xp.asarray(operator, dtype=xp.float64)
    values, turned = _eigh(white.T @ inside @ white)
    top = _largest(values, count)
    return xp.asarray(values[top], dtype=kind), xp.asarray((white @ turned)[:, top], dtype=kind)


def _fresh(residuals: Tensor, basis: Tensor, degrees: Tensor, white: Tensor) -> Tensor:
    """Return the directions in the residuals that the basis has not, orthonormal under the degrees."""
    xp, kind = namespace(basis), basis.dtype
    white = xp.asarray(white, dtype=kind)
    for _ in range(2):
        residuals = residuals - basis @ (white @ (white.T @ (basis.T @ (degrees * residuals))))
    lengths = xp.sqrt((degrees * residuals**2).sum(0))
    residuals = residuals[:, lengths > 0] / lengths[lengths > 0]
    own = _whitening(residuals.T @ (degrees * residuals), kind)
    return residuals @ xp.asarray(own, dtype=kind)


def _in_front(values: Tensor, count: int) -> int:
    """Return how many eigenvalues lie in front of the largest drop among the first ones."""
    # Zero lies behind the last there is.
    behind = namespace(values).zeros_like(values)
    behind[:-1] = values[1:]
    return int((values - behind)[:count].argmax()) + 1


def top_pairs(
    similarity: Similarity,
    count: int,
    *,
    needed: int = 1,
    block: int = 4096,
    tolerance: float = 1e-4,
    passes: int = 4,
    seed: int = 0,
) -> TopPairs:
    """Find the top eigenpairs of D^-1/2 S D^-1/2 without storing S, with the residuals that were reached.

    Waited for, until their residuals are below ``tolerance``, are ``needed`` pairs and always those in front
    of the largest drop of the eigenvalues: behind it lies the bulk, which comes late and says little.
    ``seed`` is for the sample of learners in the start, which takes ``block`` learners together.
    """
    n = similarity.shape[0]
    sample = np.random.default_rng(seed).choice(n, min(n, LIMITS.many), replace=False)
    begun = nystrom_pairs(similarity, similarity.asarray(np.sort(sample)), count + SPARE, block)
    start, guessed = begun.vectors, begun.degrees
    xp, kind = namespace(start), start.dtype
    # The ones give the exact degrees, and with them the first eigenvector.
    basis = xp.concatenate([xp.ones_like(guessed)[:, None], start / xp.sqrt(guessed)[:, None]], 1)
    image = similarity.times(basis)
    degrees = xp.clip(image[:, :1], 1.0, None) + 0.0
    root = xp.sqrt(degrees)
    for done in range(1, passes + 1):
        operator, gram = basis.T @ image, basis.T @ (degrees * basis)
        values, inside = _ritz(operator, gram, kind, count + SPARE)
        missed = image @ inside / degrees - (basis @ inside) * values
        residuals = xp.sqrt((degrees * missed**2).sum(0))
        waited = min(max(needed, _in_front(values, count)), len(values))
        residual = float(residuals[:waited].max())
        if done == passes or residual < tolerance:
            break
        fresh = _fresh(missed, basis, degrees, _whitening(gram, kind))
        basis = xp.concatenate([basis, fresh], 1)
        image = xp.concatenate([image, similarity.times(fresh)], 1)
    plain, _ = _ritz(operator, basis.T @ basis, kind, count)
    vectors = root * (basis @ inside[:, :count])
    return TopPairs(values[:count], vectors, degrees[:, 0], plain, residuals[:count], residual, done)
