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

# Eigenvectors searched for beyond those asked for: they take up what the start has missed.
SPARE = 8


def namespace(array: Tensor) -> Any:
    """Return the module whose functions take this array: ``numpy`` or ``torch``."""
    if isinstance(array, np.ndarray):
        return np
    import torch

    return torch


def spans(n: int, block: int) -> Iterator[slice]:
    """Yield slices that cut the positions 0 to n - 1 into runs of ``block``, the last one shorter."""
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
        """Return S times vectors (L, k), tile by tile, without storing S.

        S is symmetric: each tile on or above the diagonal is made once and also serves the tile opposite.
        """
        product = namespace(vectors).zeros_like(vectors)
        runs = list(spans(self.shape[0], self.block))
        for index, rows in enumerate(runs):
            for columns in runs[index:]:
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
        """Return the similarities between some learners and others, given by slices or positions."""
        xp = namespace(self.errors)
        losses_of_rows = self.models[rows] @ self.learners[columns].T
        losses_of_columns = self.learners[rows] @ self.models[columns].T
        dissimilarities = dissimilarity(
            losses_of_rows, losses_of_columns, self.errors[rows][:, None], self.errors[columns]
        )
        return xp.exp(-self.scale * dissimilarities)

    def times(self, vectors: Tensor) -> Tensor:
        """Return S times vectors (L, k), by ``product`` where there is one, else by tiles."""
        return super().times(vectors) if self.product is None else self.product(vectors)


@dataclass(frozen=True)
class TopPairs:
    """Top eigenpairs of D^-1/2 S D^-1/2, the largest of the ``values`` (M,) first.

    ``vectors`` have the shape (L, M), ``degrees`` (L,) are the row sums of S, ``plain_values`` (M,) the
    largest eigenvalues of S itself within the same subspace. ``residuals`` (M,) are the norms of operator
    times vector minus value times vector, ``residual`` is the largest of the pairs that had to be precise.
    ``passes`` is the number of products with all pairs that this took: none for a Nystrom extension, which
    knows no residuals.
    """

    values: Tensor
    vectors: Tensor
    degrees: Tensor
    plain_values: Tensor
    residuals: Tensor | None = None
    residual: float = 0.0
    passes: int = 0


def _eigh(matrix: Tensor) -> tuple[Tensor, Tensor]:
    """Return eigenvalues (k,), ascending, and eigenvectors (k, k) of a small symmetric matrix.

    Both are in double precision, whatever that of the matrix; rounding may have left it a little unsymmetric.
    """
    xp = namespace(matrix)
    in_double = xp.asarray(matrix, dtype=xp.float64)
    eigenvalues, vectors = xp.linalg.eigh((in_double + in_double.T) / 2)
    return eigenvalues, vectors


def _largest(values: Tensor, count: int) -> Tensor:
    """Return the positions of the ``count`` largest of ascending eigenvalues, the largest first.

    All are returned where there are fewer.
    """
    positions = np.arange(len(values) - 1, max(len(values) - count, 0) - 1, -1)
    xp = namespace(values)
    return positions if xp is np else xp.asarray(positions, device=values.device)


def nystrom_root(similarity: Similarity, landmarks: Tensor) -> Tensor:
    """Return R (m, r) such that S is approximately T R R' T', by Nystrom's approximation.

    T (L, m) has the similarities of everybody with the m landmarks. R is the inverse square root of the
    landmarks' own similarities, without directions that are rounding.
    """
    landmark_similarity = similarity.tile(landmarks, landmarks)
    xp = namespace(landmark_similarity)
    eigenvalues, vectors = _eigh(landmark_similarity)
    is_kept = eigenvalues > 1e-5 * eigenvalues[-1]
    return xp.asarray(vectors[:, is_kept] / xp.sqrt(eigenvalues[is_kept]), dtype=landmark_similarity.dtype)


def nystrom_pairs(similarity: Similarity, landmarks: Tensor, count: int, block: int = 4096) -> TopPairs:
    """Return the top eigenpairs of everybody's similarity, extended from those of the ``landmarks``.

    By Nystrom's approximation S = T R R' T' (`nystrom_root`), only similarities with the landmarks are
    computed, in tiles of ``block`` learners. The vectors (L, M) are orthonormal; there are fewer than
    ``count`` where the landmarks span fewer.
    """
    root = nystrom_root(similarity, landmarks)
    xp, kind = namespace(root), root.dtype
    # The eigenvalues of F'F are those of FF' = S, where F = T R has few columns.
    # Tiles are made three times rather than kept: of ten million learners they would fill any memory.
    runs = list(spans(similarity.shape[0], block))
    landmark_sums = sum(similarity.tile(rows, landmarks).sum(0) for rows in runs)
    degrees, gram, plain_gram = [], 0.0, 0.0
    for rows in runs:
        factor_rows = similarity.tile(rows, landmarks) @ root
        plain_gram = plain_gram + xp.asarray(factor_rows.T @ factor_rows, dtype=xp.float64)
        # A learner's similarity with itself is one, so that no degree is less.
        degree = xp.clip(factor_rows @ (landmark_sums @ root), 1.0, None)
        factor_rows = factor_rows / xp.sqrt(degree)[:, None]
        degrees.append(degree)
        gram = gram + xp.asarray(factor_rows.T @ factor_rows, dtype=xp.float64)
    eigenvalues, vectors = _eigh(gram)
    top_positions = _largest(eigenvalues, count)
    scaled = vectors[:, top_positions] / xp.sqrt(xp.clip(eigenvalues[top_positions], 1e-12, None))
    vectors_from_landmarks = root @ xp.asarray(scaled, dtype=kind)
    vector_blocks = [
        similarity.tile(rows, landmarks) @ vectors_from_landmarks / xp.sqrt(degree)[:, None]
        for rows, degree in zip(runs, degrees, strict=True)
    ]
    return TopPairs(
        values=xp.asarray(eigenvalues[top_positions], dtype=kind),
        vectors=xp.concatenate(vector_blocks, 0),
        degrees=xp.concatenate(degrees, 0),
        plain_values=xp.asarray(_eigh(plain_gram)[0][top_positions], dtype=kind),
    )


def _whitening(gram: Tensor, kind: Any) -> Tensor:
    """Return coefficients W (k, r) that make a basis of k vectors orthonormal: W' gram W is the identity.

    ``gram`` (k, k) has the inner products of the basis. Directions that are only rounding in the precision
    ``kind`` are left out.
    """
    xp = namespace(gram)
    # Vectors of very different lengths must not hide each other: of a million learners, the ones are long.
    lengths = xp.sqrt(xp.asarray(xp.diagonal(gram), dtype=xp.float64))
    lengths = xp.where(lengths > 0, lengths, xp.ones_like(lengths))
    eigenvalues, vectors = _eigh(gram / (lengths[:, None] * lengths))
    is_kept = eigenvalues > (1e-12 if kind == xp.float64 else 1e-6) * eigenvalues[-1]
    return vectors[:, is_kept] / xp.sqrt(eigenvalues[is_kept]) / lengths[:, None]


def _ritz(operator: Tensor, gram: Tensor, kind: Any, count: int) -> tuple[Tensor, Tensor]:
    """Return the best approximate eigenvalues inside a subspace, and their vectors' coefficients.

    This is the Rayleigh-Ritz step. ``operator`` (k, k) has the products of the basis with its image under the
    operator, ``gram`` (k, k) those of the basis with itself. At most ``count`` pairs are returned, the
    largest eigenvalue first.
    """
    xp = namespace(gram)
    whitening = _whitening(gram, kind)
    operator_in_double = xp.asarray(operator, dtype=xp.float64)
    eigenvalues, vectors = _eigh(whitening.T @ operator_in_double @ whitening)
    top_positions = _largest(eigenvalues, count)
    return xp.asarray(eigenvalues[top_positions], dtype=kind), xp.asarray(
        (whitening @ vectors)[:, top_positions], dtype=kind
    )


def _fresh(residuals: Tensor, basis: Tensor, degrees: Tensor, white: Tensor) -> Tensor:
    """Return the directions in the residuals that the basis does not span yet, to enlarge the subspace.

    ``residuals`` and ``basis`` have L rows, ``white`` makes the basis orthonormal in the inner product
    weighted by ``degrees``. The directions are orthonormal in it, too.
    """
    xp, kind = namespace(basis), basis.dtype
    white = xp.asarray(white, dtype=kind)
    # Projected off twice: once leaves rounding of the size of the basis.
    for _ in range(2):
        residuals = residuals - basis @ (white @ (white.T @ (basis.T @ (degrees * residuals))))
    lengths = xp.sqrt((degrees * residuals**2).sum(0))
    residuals = residuals[:, lengths > 0] / lengths[lengths > 0]
    own_whitening = _whitening(residuals.T @ (degrees * residuals), kind)
    return residuals @ xp.asarray(own_whitening, dtype=kind)


def _in_front(values: Tensor, count: int) -> int:
    """Return how many eigenvalues lie in front of the largest drop among the first ``count``.

    ``values`` descend. The eigenvalues behind the drop say little about clusters.
    """
    # After the last eigenvalue comes zero.
    next_values = namespace(values).zeros_like(values)
    next_values[:-1] = values[1:]
    return int((values - next_values)[:count].argmax()) + 1


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
    """Find the ``count`` top eigenpairs of D^-1/2 S D^-1/2 without storing S.

    A subspace is enlarged by one product of S with vectors at a time, until the residuals are below
    ``tolerance`` or after ``passes`` products. Only the first ``needed`` pairs must be that precise, and
    always those in front of the largest drop of the eigenvalues: those behind it converge late and say little
    about clusters.

    ``seed`` draws the sample of learners for the start, a Nystrom approximation by tiles of ``block``
    learners.
    """
    n = similarity.shape[0]
    sample = np.random.default_rng(seed).choice(n, min(n, LIMITS.many), replace=False)
    nystrom = nystrom_pairs(similarity, similarity.asarray(np.sort(sample)), count + SPARE, block)
    start_vectors, approximate_degrees = nystrom.vectors, nystrom.degrees
    xp, kind = namespace(start_vectors), start_vectors.dtype
    # The ones give the exact degrees, and with them the first eigenvector.
    basis = xp.concatenate(
        [xp.ones_like(approximate_degrees)[:, None], start_vectors / xp.sqrt(approximate_degrees)[:, None]], 1
    )
    image = similarity.times(basis)
    degrees = xp.clip(image[:, :1], 1.0, None) + 0.0
    root_degrees = xp.sqrt(degrees)
    for n_passes in range(1, passes + 1):
        operator, gram = basis.T @ image, basis.T @ (degrees * basis)
        eigenvalues, ritz_coefficients = _ritz(operator, gram, kind, count + SPARE)
        residual_vectors = image @ ritz_coefficients / degrees - (basis @ ritz_coefficients) * eigenvalues
        residuals = xp.sqrt((degrees * residual_vectors**2).sum(0))
        n_precise = min(max(needed, _in_front(eigenvalues, count)), len(eigenvalues))
        residual = float(residuals[:n_precise].max())
        if n_passes == passes or residual < tolerance:
            break
        new_directions = _fresh(residual_vectors, basis, degrees, _whitening(gram, kind))
        basis = xp.concatenate([basis, new_directions], 1)
        image = xp.concatenate([image, similarity.times(new_directions)], 1)
    plain_values, _ = _ritz(operator, basis.T @ basis, kind, count)
    # The basis is in units of D^-1/2: back to eigenvectors of the normalised similarity.
    vectors = root_degrees * (basis @ ritz_coefficients[:, :count])
    return TopPairs(
        values=eigenvalues[:count],
        vectors=vectors,
        degrees=degrees[:, 0],
        plain_values=plain_values,
        residuals=residuals[:count],
        residual=residual,
        passes=n_passes,
    )
