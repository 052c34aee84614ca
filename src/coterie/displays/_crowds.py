"""What is shown of very many learners: a sample of them, or blocks of learners inside their clusters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie._arrays import Array
from coterie._text import display_name
from coterie.method.spectral import is_large
from coterie.records import Exchange, Partition

# Beyond this many learners a picture of pairs shows about this many blocks of learners.
MOST_CELLS = 500
BLOCKS = 250
# Of very many learners the pictures of pairs show about this many.
MOST_LEARNERS = 1_000


def cluster_order(labels: Array) -> Array:
    """Return the learners cluster by cluster, inside a cluster as given."""
    return np.argsort(labels, kind="stable")


def blocks_of(labels: Array) -> list[Array]:
    """Split the learners into the blocks that share a row of a picture of pairs.

    ``labels`` has shape (L,). Up to `MOST_CELLS` learners each is a block of its own; beyond that,
    learners of one cluster are joined, about `BLOCKS` blocks in all. The blocks are arrays of learners'
    positions, cluster by cluster, so that clusters stay together.
    """
    block_size = 1 if len(labels) <= MOST_CELLS else -(-len(labels) // BLOCKS)
    members_by_cluster = np.split(
        cluster_order(labels), np.cumsum(np.unique(labels, return_counts=True)[1])[:-1]
    )
    return [
        block
        for members in members_by_cluster
        for block in np.array_split(members, -(-len(members) // block_size))
    ]


def block_name(learners: list[object]) -> object:
    """Return the name of a block of learners: one id, up to three names, or count, first and last."""
    if len(learners) == 1:
        return learners[0]
    names = [display_name(learner) for learner in learners]
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} learners, {names[0]} to {names[-1]}"


def block_means(losses: Array, blocks: list[Array]) -> Array:
    """Return the geometric means of losses (L, L) over blocks of rows and columns, shape (B, B).

    They span decades, so that logarithms are averaged. Entries that are not positive or not finite are
    left out; a cell without any other entry is NaN. ``blocks`` (B) are arrays of learners' positions.
    """
    order = np.concatenate(blocks)
    first_of_block = np.cumsum([0, *(len(block) for block in blocks[:-1])])
    ordered = losses[np.ix_(order, order)]
    usable = np.isfinite(ordered) & (ordered > 0)

    def sums_by_block(matrix: Array) -> Array:
        return np.add.reduceat(np.add.reduceat(matrix, first_of_block, axis=0), first_of_block, axis=1)

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.exp(
            sums_by_block(np.log(np.where(usable, ordered, 1.0))) / sums_by_block(usable.astype(float))
        )


def some_learners(
    partition: Partition, exchange: Exchange | None = None
) -> tuple[Partition, Exchange | None]:
    """Return a partition and its losses for the learners that a picture of pairs can show.

    Few learners are returned as they are. Where all losses are known between landmarks only (the learners
    that all others are compared to), these are kept. Of very many, about `MOST_LEARNERS` at even distances,
    and the first of each cluster, so that no cluster vanishes.
    """
    landmarks = None if exchange is None else exchange.landmarks
    n_learners = len(partition.labels)
    if landmarks is not None:
        # All losses are known among landmarks only.
        positions = landmarks
    elif is_large(n_learners):
        firsts = np.unique(partition.labels, return_index=True)[1]
        positions = np.union1d(np.linspace(0, n_learners - 1, MOST_LEARNERS).astype(int), firsts)
    else:
        return partition, exchange
    partition = partition.take(positions)
    partition = replace(partition, similarity=np.asarray(partition.similarity))
    return partition, None if exchange is None else exchange.take(positions)
