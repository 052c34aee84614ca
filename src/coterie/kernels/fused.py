"""S times vectors in one GPU kernel: losses, exponential and product without ever leaving the chip.

The two matrix products of a tile run on tensor cores in half precision with error compensation: every
feature is split into a half-precision number and the half-precision rest, and three of the four products are
summed in single precision. What is lost is of the order of 2^-22 of the terms, as in single precision.
Columns of features are first scaled so that models and learners share the range; that changes no product. The
product with the vectors is split in the same way.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from coterie.kernels.matrix_free import PairFeatures

# Learners on a side of a tile, features taken at once, tiles that one program walks along, and vectors
# multiplied at once: the width that a tensor core takes.
TILE = (128, 32, 16, 16)
SIDE, DEPTH, WALK, WIDTH = TILE


@triton.jit
def _rest(values, halves):  # type: ignore[no-untyped-def]
    """Return, in half precision, what rounding the values to half precision has left over."""
    return (values - halves.to(tl.float32)).to(tl.float16)


@triton.jit  # type: ignore[untyped-decorator]
def _times_kernel(  # type: ignore[no-untyped-def]
    models,
    models_rest,
    learners,
    learners_rest,
    errors,
    vectors,
    product,
    n,
    scale,
    FEATURES: tl.constexpr,
    WIDTH: tl.constexpr,
    SIDE: tl.constexpr,
    DEPTH: tl.constexpr,
    WALK: tl.constexpr,
):
    """Add S times the vectors to ``product``, for a walk of tiles along one row of tiles.

    A tile has ``SIDE`` learners on a side; only tiles on and right of the diagonal are computed, and each one
    right of it also serves its mirror image. ``models`` and ``learners`` (n, FEATURES) are in half precision,
    their ``_rest`` the rounding errors; ``vectors`` and ``product`` (n, WIDTH) are in single precision.
    """
    # One dimension of programs: the second one of a grid ends at 65,535, eight million learners.
    # A walk is a few neighbouring tiles in one row of tiles, which one program works through.
    walks_per_row = tl.cdiv(tl.cdiv(n, SIDE), WALK)
    row_tile = tl.program_id(0) // walks_per_row
    first_tile = (tl.program_id(0) % walks_per_row) * WALK
    width = tl.arange(0, WIDTH)
    if first_tile + WALK > row_tile:
        rows = row_tile * SIDE + tl.arange(0, SIDE)
        in_rows = rows < n
        row_errors = tl.load(errors + rows, mask=in_rows, other=0.0)
        row_vectors = tl.load(
            vectors + rows[:, None] * WIDTH + width[None, :], mask=in_rows[:, None], other=0.0
        )
        row_halves = row_vectors.to(tl.float16)
        row_rests = _rest(row_vectors, row_halves)
        row_product = tl.zeros((SIDE, WIDTH), dtype=tl.float32)
        end_tile = tl.minimum(first_tile + WALK, tl.cdiv(n, SIDE))
        for column_tile in range(tl.maximum(first_tile, row_tile), end_tile):
            columns = column_tile * SIDE + tl.arange(0, SIDE)
            in_columns = columns < n
            losses_of_rows = tl.zeros((SIDE, SIDE), dtype=tl.float32)
            losses_of_columns = tl.zeros((SIDE, SIDE), dtype=tl.float32)
            for first_feature in range(0, FEATURES, DEPTH):
                depth = first_feature + tl.arange(0, DEPTH)
                by_row = rows[:, None].to(tl.int64) * FEATURES + depth[None, :]
                by_column = columns[None, :].to(tl.int64) * FEATURES + depth[:, None]
                row_models = tl.load(models + by_row, mask=in_rows[:, None], other=0.0)
                row_models_rest = tl.load(models_rest + by_row, mask=in_rows[:, None], other=0.0)
                column_learners = tl.load(learners + by_column, mask=in_columns[None, :], other=0.0)
                column_learners_rest = tl.load(learners_rest + by_column, mask=in_columns[None, :], other=0.0)
                losses_of_rows = tl.dot(row_models, column_learners, losses_of_rows)
                losses_of_rows = tl.dot(row_models, column_learners_rest, losses_of_rows)
                losses_of_rows = tl.dot(row_models_rest, column_learners, losses_of_rows)
                row_learners = tl.load(learners + by_row, mask=in_rows[:, None], other=0.0)
                row_learners_rest = tl.load(learners_rest + by_row, mask=in_rows[:, None], other=0.0)
                column_models = tl.load(models + by_column, mask=in_columns[None, :], other=0.0)
                column_models_rest = tl.load(models_rest + by_column, mask=in_columns[None, :], other=0.0)
                losses_of_columns = tl.dot(row_learners, column_models, losses_of_columns)
                losses_of_columns = tl.dot(row_learners, column_models_rest, losses_of_columns)
                losses_of_columns = tl.dot(row_learners_rest, column_models, losses_of_columns)
            column_errors = tl.load(errors + columns, mask=in_columns, other=0.0)
            # `coterie.loss.dissimilarity` in Triton's words, which cannot call it; the tests compare the two.
            dissimilarities = tl.abs(losses_of_rows - column_errors[None, :]) + tl.abs(
                losses_of_columns - row_errors[:, None]
            )
            similarity = tl.exp(-scale * dissimilarities)
            similarity = tl.where(rows[:, None] == columns[None, :], 1.0, similarity)
            similarity = tl.where(in_rows[:, None] & in_columns[None, :], similarity, 0.0)
            offsets = columns[:, None] * WIDTH + width[None, :]
            column_vectors = tl.load(vectors + offsets, mask=in_columns[:, None], other=0.0)
            column_halves = column_vectors.to(tl.float16)
            similarity_halves = similarity.to(tl.float16)
            similarity_rests = _rest(similarity, similarity_halves)
            # Sums over many tiles are taken outside the tensor cores, which cut digits off as they add.
            tile_product = tl.dot(similarity_halves, column_halves)
            tile_product = tl.dot(similarity_halves, _rest(column_vectors, column_halves), tile_product)
            row_product += tl.dot(similarity_rests, column_halves, tile_product)
            if column_tile > row_tile:
                column_product = tl.dot(tl.trans(similarity_halves), row_halves)
                column_product = tl.dot(tl.trans(similarity_halves), row_rests, column_product)
                column_product = tl.dot(tl.trans(similarity_rests), row_halves, column_product)
                tl.atomic_add(product + offsets, column_product, mask=in_columns[:, None], sem="relaxed")
        tl.atomic_add(
            product + rows[:, None] * WIDTH + width[None, :],
            row_product,
            mask=in_rows[:, None],
            sem="relaxed",
        )


def _halves(features: Any) -> tuple[Any, Any]:
    """Return features (n, F) as half-precision numbers and the half-precision rests of rounding.

    Columns of zeros are added up to a multiple of the features that the kernel takes at once.
    """
    n, n_features = features.shape
    padded = torch.zeros(n, -(-n_features // DEPTH) * DEPTH, device=features.device, dtype=features.dtype)
    padded[:, :n_features] = features
    rounded = padded.half()
    return rounded, (padded - rounded).half()


class FusedTimes:
    """Multiplies S with vectors on a GPU; the features are in single precision on a CUDA device.

    ``width`` is the number of vectors multiplied at once, a multiple of what a tensor core takes; None: 16,
    or 32 where there are more, which was measured to take less time than two sweeps.
    """

    def __init__(self, features: PairFeatures, width: int | None = None) -> None:
        """Split the features into half-precision numbers and rests, on the GPU.

        Each column is first multiplied in models and divided in learners so that both have the same largest
        entry. Products stay the same, and neither side leaves the narrow range of half precision.
        """
        self._width = width
        # Largest entry of each column, of models and of learners; zero would be divided by.
        largest = features.models.abs().amax(0), features.learners.abs().amax(0)
        tiny = torch.finfo(torch.float32).tiny
        balance = (largest[1].clamp_min(tiny) / largest[0].clamp_min(tiny)).sqrt()
        balance = torch.where((largest[0] > 0) & (largest[1] > 0), balance, torch.ones_like(balance))
        self._models = _halves(features.models * balance)
        self._learners = _halves(features.learners / balance)
        self._errors, self._scale = features.errors, float(features.scale)

    def __call__(self, vectors: Any) -> Any:
        """Return S times vectors (L, k), a few columns at a time."""
        count = vectors.shape[1]
        width = self._width or (WIDTH if count <= WIDTH else 2 * WIDTH)
        products = [self._times(vectors[:, k : k + width], width) for k in range(0, count, width)]
        return torch.cat(products, 1)

    def _times(self, vectors: Any, width: int) -> Any:
        """Return S times at most ``width`` vectors (L, k), in one launch of the kernel.

        Columns are scaled into the range of half precision before, and back afterwards.
        """
        n, count = vectors.shape
        # The largest entry becomes 1,024 in half precision, whose neighbour is one less: far from both ends.
        largest = 1 / torch.finfo(torch.float16).eps
        size = vectors.abs().amax(0).clamp_min(torch.finfo(torch.float32).tiny) / largest
        padded = torch.zeros(n, width, device=vectors.device)
        padded[:, :count] = vectors / size
        product = torch.zeros_like(padded)
        tiles = triton.cdiv(n, SIDE)
        _times_kernel[(triton.cdiv(tiles, WALK) * tiles,)](
            *self._models,
            *self._learners,
            self._errors,
            padded,
            product,
            n,
            self._scale,
            self._models[0].shape[1],
            width,
            SIDE,
            DEPTH,
            WALK,
            num_warps=8,
            num_stages=3,
        )
        return product[:, :count] * size
