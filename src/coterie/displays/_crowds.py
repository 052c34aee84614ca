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
    """Return the learners that share a row of a picture of pairs: one each, or blocks inside a cluster."""
    size = 1 if len(labels) <= MOST_CELLS else -(-len(labels) // BLOCKS)
    clusters = np.split(cluster_order(labels), np.cumsum(np.unique(labels, return_counts=True)[1])[:-1])
    return [block for mine in clusters for block in np.array_split(mine, -(-len(mine) // size))]


def block_name(learners: list[object]) -> object:
    """Return the name of a block of learners; that of one is its own."""
    if len(learners) == 1:
        return learners[0]
    names = [display_name(learner) for learner in learners]
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} learners, {names[0]} to {names[-1]}"


def block_means(values: Array, blocks: list[Array]) -> Array:
    """Return the geometric mean over blocks of rows and of columns, leaving out what is not positive."""
    order = np.concatenate(blocks)
    starts = np.cumsum([0, *(len(block) for block in blocks[:-1])])
    ordered = values[np.ix_(order, order)]
    known = np.isfinite(ordered) & (ordered > 0)

    def summed(matrix: Array) -> Array:
        return np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.exp(summed(np.log(np.where(known, ordered, 1.0))) / summed(known.astype(float)))


def some_learners(
    partition: Partition, exchange: Exchange | None = None
) -> tuple[Partition, Exchange | None]:
    """Return partition and exchange of a sample of the learners where all pairs would be too many to see."""
    marks = None if exchange is None else exchange.landmarks
    n = len(partition.labels)
    if marks is not None:
        # All losses are known among landmarks only.
        kept = marks
    elif is_large(n):
        # Nobody's cluster may vanish from the picture.
        firsts = np.unique(partition.labels, return_index=True)[1]
        kept = np.union1d(np.linspace(0, n - 1, MOST_LEARNERS).astype(int), firsts)
    else:
        return partition, exchange
    partition = partition.take(kept)
    partition = replace(partition, similarity=np.asarray(partition.similarity))
    return partition, None if exchange is None else exchange.take(kept)
