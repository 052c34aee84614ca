"""How sure are the clusters: rows are resampled inside each learner, losses re-averaged, no model refitted.

In every replicate each learner goes to the cluster whose model, as it stands, predicts its resampled rows
best: the share of replicates is its membership probability. The number of clusters is chosen again by the
held-out rule from the labellings that the fit found for each number. What this tells is how much of the
answer hangs on which rows the learners happen to hold. What it does not tell: how the labellings themselves
would have come out on other rows, for that would take new models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

from coterie._arrays import Array
from coterie._seeds import generator_for
from coterie.engines import report
from coterie.method.cluster import Clustering
from coterie.method.n_clusters.held_out import RULE, errors_allowed
from coterie.method.refine.losses import LocalLosses
from coterie.verdicts.cluster_fit import paired_excess, places_of

# Losses kept at a time. Beyond it neighbouring rows of a learner are resampled together, in blocks.
MOST_ENTRIES = 10_000_000
FEWEST_BLOCKS = 10
# Stands for the infinite loss of a cluster without anybody: nought times infinity would be NaN.
HUGE = 1e300


@dataclass(frozen=True)
class Stability:
    """How often learners keep their cluster and the rule its number when rows are resampled.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        The learners that shaped the clusters.
    membership : ndarray of shape (L, K)
        Share of the replicates in which each cluster predicts the learner best.
    n_clusters : ndarray of shape (M,)
        Numbers of clusters; the one that was given, where one was.
    shares : ndarray of shape (M,)
        Share of the replicates in which the held-out rule chooses each.
    n_replicates : int
        How often rows were resampled.
    """

    learner_ids: Array
    membership: Array
    n_clusters: Array
    shares: Array
    n_replicates: int


def resampled_counts(n_rows: int, n_replicates: int, generator: np.random.Generator) -> Array:
    """Return how often each row is drawn, of shape (n_rows, n_replicates); columns sum to n_rows."""
    drawn = generator.integers(n_rows, size=(n_replicates, n_rows))
    indices = drawn + n_rows * np.arange(n_replicates)[:, None]
    counts = np.bincount(indices.ravel(), minlength=n_rows * n_replicates)
    return counts.reshape(n_replicates, n_rows).T.astype(float)


def _block_starts(sizes: Array, most: int, inflation: float = 1.0) -> tuple[Array, Array]:
    """Cut runs of rows into at most ``most`` blocks each; return their starts, and how many there are.

    If neighbouring rows depend on each other, there are fewer blocks: the number of independent rows that
    hold the same information.
    """
    counts = np.minimum(np.ceil(sizes / inflation).astype(int), most)
    runs = np.cumsum(sizes) - sizes
    pieces = [
        start + np.arange(n) * size // max(n, 1) for start, size, n in zip(runs, sizes, counts, strict=True)
    ]
    return np.concatenate(pieces).astype(int), counts


def _trial(losses: LocalLosses, labels: Array, starts: Array) -> tuple[Array, Array]:
    """Return a labelling's losses in blocks of rows, and by row as each half's pick predicts it."""
    rows = np.minimum(losses.by_row(labels), HUGE)
    picks = losses.on_halves(labels).argmin(axis=0)[:, ::-1]
    chosen = picks[losses.learners.owner, losses.second]
    return np.add.reduceat(rows, starts, axis=1), rows[chosen, np.arange(rows.shape[1])]


def _resampled_halves(
    blocks: Array, counts: Array, ids: Array, n_replicates: int, entropy: int
) -> Iterator[Array]:
    """Yield, learner by learner, sums of losses of shape (2, M, B) over resampled halves of its rows."""
    ends = np.cumsum(counts).reshape(-1, 2)
    for j, learner in enumerate(ids.tolist()):
        generator = generator_for(entropy, f"bootstrap of {learner}")
        halves = np.zeros((2, len(blocks), n_replicates))
        for half in (0, 1):
            n_blocks = int(counts[2 * j + half])
            if n_blocks:
                span = slice(ends[j, half] - n_blocks, ends[j, half])
                halves[half] = blocks[:, span] @ resampled_counts(n_blocks, n_replicates, generator)
        yield halves


def _held_out_ratios(halves: Array, sizes: Array, noise: float) -> Array:
    """Return loss / noise in each replicate: each half is scored by the cluster best on the other half."""
    picks = halves.argmin(axis=1)
    replicates = np.arange(halves.shape[-1])
    total = sum(halves[half, picks[1 - half], replicates] for half in (0, 1))
    ratios: Array = total / sizes.sum() / noise
    return ratios


def _chosen_numbers(ratios: Array, picked: Sequence[Array], losses: LocalLosses) -> Array:
    """Return the position of the smallest sufficient labelling in each replicate, as the rule does.

    ``picked`` has the losses by row of each labelling, as each half's pick predicts it.
    """
    learners = losses.learners
    starts, sizes = learners.offsets[:-1], learners.sizes
    n_learners = len(learners)
    best: Array = ratios.mean(axis=1).argmin(axis=0)
    bound = student.isf(RULE.significance / n_learners, np.maximum(sizes - 1, 1))
    chosen = best.copy()
    for position in np.unique(best).tolist():
        best_clusters = np.flatnonzero(best == position)
        undecided = np.ones(len(best_clusters), dtype=bool)
        for smaller in range(position):
            excess = ratios[smaller][:, best_clusters] - ratios[position][:, best_clusters]
            spread = excess.std(axis=0, ddof=1) / np.sqrt(n_learners) if n_learners > 1 else 0.0
            near = excess.mean(axis=0) <= errors_allowed(n_learners) * spread + RULE.negligible
            # The spread over a learner's rows is that of the sample: replicates differ in the mean.
            pair = picked[smaller], picked[position]
            error = paired_excess(*pair, starts, sizes, losses.selection.inflation)[1]
            allowed = np.maximum(bound * error / losses.noise, RULE.negligible)
            nobody_worse = ~(excess > allowed[:, None]).any(axis=0)
            sufficient = undecided & near & nobody_worse
            chosen[best_clusters[sufficient]] = smaller
            undecided &= ~sufficient
    return chosen


def bootstrap_losses(
    losses: LocalLosses, labels: Array, labellings: Mapping[int, Array], *, n_replicates: int, entropy: int
) -> Stability:
    """Resample rows inside each learner and ask again who belongs where, and how many clusters there are.

    ``labels`` is the partition of all who are labelled. ``labellings`` has the labelling (L,) that the fit
    found for each number of clusters that is not ruled out; empty: the number was given. Each learner's draws
    derive from ``entropy`` and from its id. The answer is in the order of ``losses``.
    """
    numbers = sorted(labellings)
    every = [labels, *(labellings[k] for k in numbers)]
    sizes = losses.half_sizes.reshape(-1)
    n_rows = sum(int(each.max()) + 1 for each in every)
    most = max(FEWEST_BLOCKS, MOST_ENTRIES // (n_rows * len(sizes)))
    starts, counts = _block_starts(sizes, most, losses.selection.inflation)
    each_blocks, picked = zip(*(_trial(losses, each, starts) for each in every), strict=True)
    cuts = np.cumsum([len(blocks) for blocks in each_blocks])
    n_clusters, n_learners = int(cuts[0]), len(losses.learners)
    membership = np.empty((n_learners, n_clusters))
    ratios = np.empty((len(numbers), n_learners, n_replicates))
    blocks = np.vstack(each_blocks)
    ids = losses.learners.ids
    for j, halves in enumerate(_resampled_halves(blocks, counts, ids, n_replicates, entropy)):
        best_clusters = halves[:, :n_clusters].sum(axis=0).argmin(axis=0)
        membership[j] = np.bincount(best_clusters, minlength=n_clusters) / n_replicates
        for index in range(len(numbers)):
            part = halves[:, cuts[index] : cuts[index + 1]]
            ratios[index, j] = _held_out_ratios(part, losses.half_sizes[j], losses.noise[j])
        report("Bootstrap", j + 1, n_learners)
    if not numbers:
        return Stability(ids, membership, np.array([n_clusters]), np.ones(1), n_replicates)
    chosen = _chosen_numbers(ratios, picked[1:], losses)
    shares = np.bincount(chosen, minlength=len(numbers)) / n_replicates
    return Stability(ids, membership, np.array(numbers), shares, n_replicates)


def _not_ruled_out(clustering: Clustering) -> Mapping[int, Array]:
    """Return the labellings without that of one cluster, where one truth does not look like the learners."""
    curve = clustering.partition.curves.get("held-out")
    if curve is None or curve.one_truth_z is None:
        return clustering.labellings
    return {k: labels for k, labels in clustering.labellings.items() if k > 1}


def bootstrap_clustering(clustering: Clustering, *, n_replicates: int, entropy: int) -> Stability:
    """Bootstrap the losses behind a partition; the answer is in its order.

    A learner whose model gave no finite losses keeps its cluster.
    """
    partition, indices = clustering.partition, places_of(clustering)
    assert clustering.losses is not None
    known = bootstrap_losses(
        clustering.losses,
        partition.labels[indices],
        _not_ruled_out(clustering),
        n_replicates=n_replicates,
        entropy=entropy,
    )
    apart = np.setdiff1d(np.arange(len(partition.labels)), indices)
    membership = np.zeros((len(partition.labels), partition.n_clusters))
    membership[indices, : known.membership.shape[1]] = known.membership
    membership[apart, partition.labels[apart]] = 1.0
    # Whoever stands apart has a cluster in every replicate.
    n_clusters = known.n_clusters + len(apart)
    return Stability(partition.learner_ids, membership, n_clusters, known.shares, n_replicates)
