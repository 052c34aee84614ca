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

# Losses kept in memory at a time. Beyond it neighbouring rows of a learner are resampled together, in blocks.
MAX_LOSSES_HELD = 10_000_000
MIN_BLOCKS = 10
# Stands for the infinite loss of a cluster without members: nought times infinity would be NaN.
LOSS_OF_EMPTY_CLUSTER = 1e300


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
    """Return how often the bootstrap draws each row, of shape (n_rows, n_replicates).

    Each replicate draws n_rows rows with replacement. Sums of losses over its rows are a matrix product with
    these counts.
    """
    drawn_rows = generator.integers(n_rows, size=(n_replicates, n_rows))
    # Each replicate counts in a range of numbers of its own, so that one call counts for all.
    numbered_apart = drawn_rows + n_rows * np.arange(n_replicates)[:, None]
    counts = np.bincount(numbered_apart.ravel(), minlength=n_rows * n_replicates)
    return counts.reshape(n_replicates, n_rows).T.astype(float)


def _block_starts(sizes: Array, max_blocks: int, inflation: float = 1.0) -> tuple[Array, Array]:
    """Cut R runs of ``sizes`` (R,) rows, which stand one after the other, into blocks to be resampled.

    Return the row at which each block starts, and the number of blocks of each run (R,). If neighbouring rows
    depend on each other, ``inflation`` is the variance of a mean over that of independent rows. There are
    then fewer blocks, as many as independent rows with the same information.
    """
    n_blocks = np.minimum(np.ceil(sizes / inflation).astype(int), max_blocks)
    run_starts = np.cumsum(sizes) - sizes
    starts_by_run = [
        run_start + np.arange(n) * size // max(n, 1)
        for run_start, size, n in zip(run_starts, sizes, n_blocks, strict=True)
    ]
    return np.concatenate(starts_by_run).astype(int), n_blocks


def _losses_of_labelling(losses: LocalLosses, labels: Array, block_starts: Array) -> tuple[Array, Array]:
    """Return losses of a labelling's K clusters: sums (K, n_blocks) over blocks, and held-out losses (N,).

    Halves are each learner's rows in two parts: one judges what the other chose. The held-out loss of a row
    is that of the cluster that predicts the other half of its learner's rows best. ``labels`` (L,) are the
    clusters, ``block_starts`` the rows at which blocks of neighbours begin.
    """
    by_cluster_and_row = np.minimum(losses.by_row(labels), LOSS_OF_EMPTY_CLUSTER)
    # For each half (last axis) the cluster that is best on the other one.
    picks = losses.on_halves(labels).argmin(axis=0)[:, ::-1]
    pick_of_row = picks[losses.learners.owner, losses.second]
    held_out_losses = by_cluster_and_row[pick_of_row, np.arange(by_cluster_and_row.shape[1])]
    return np.add.reduceat(by_cluster_and_row, block_starts, axis=1), held_out_losses


def _resampled_halves(
    blocks: Array, counts: Array, ids: Array, n_replicates: int, entropy: int
) -> Iterator[Array]:
    """Yield for each learner the bootstrap sums of losses over the two halves of its rows, (2, M, B).

    M is the number of clusters of all labellings together, B that of replicates. ``blocks`` (M, n_blocks) are
    losses in blocks of rows; ``counts`` (2 L,) has the number of blocks of each learner's first and second
    half. A learner's draws derive from ``entropy`` and its id, and do not depend on who else is there.
    """
    ends = np.cumsum(counts).reshape(-1, 2)
    for j, learner in enumerate(ids.tolist()):
        generator = generator_for(entropy, f"bootstrap of {learner}")
        sums_by_half = np.zeros((2, len(blocks), n_replicates))
        for half in (0, 1):
            n_blocks = int(counts[2 * j + half])
            if n_blocks:
                span = slice(ends[j, half] - n_blocks, ends[j, half])
                sums_by_half[half] = blocks[:, span] @ resampled_counts(n_blocks, n_replicates, generator)
        yield sums_by_half


def _held_out_ratios(halves: Array, sizes: Array, noise: float) -> Array:
    """Return a learner's mean held-out loss over its noise in each replicate, of shape (B,).

    ``halves`` (2, K, B) are sums of losses of K clusters over its halves of ``sizes`` (2,) rows. Each half is
    scored by the cluster that is best on the other half: choice and score are of different rows. ``noise`` is
    the learner's usual loss, so that learners in different units can be averaged.
    """
    picks = halves.argmin(axis=1)
    replicates = np.arange(halves.shape[-1])
    held_out_sums = sum(halves[half, picks[1 - half], replicates] for half in (0, 1))
    ratios: Array = held_out_sums / sizes.sum() / noise
    return ratios


def _chosen_numbers(ratios: Array, held_out_losses: Sequence[Array], losses: LocalLosses) -> Array:
    """Return the position of the labelling that the held-out rule chooses in each of B replicates, (B,).

    ``ratios`` (S, L, B) are the mean held-out losses of L learners under S labellings, by `_held_out_ratios`,
    and ``held_out_losses`` those of the rows (N,) of each labelling. The rule takes the labelling with the
    fewest clusters that is not significantly worse than the best, on average and for any learner.
    """
    learners = losses.learners
    starts, sizes = learners.offsets[:-1], learners.sizes
    n_learners = len(learners)
    best_labelling: Array = ratios.mean(axis=1).argmin(axis=0)
    t_quantiles = student.isf(RULE.significance / n_learners, np.maximum(sizes - 1, 1))
    chosen = best_labelling.copy()
    for best in np.unique(best_labelling).tolist():
        replicates = np.flatnonzero(best_labelling == best)
        # From the fewest clusters on, the first labelling that does is taken.
        undecided = np.ones(len(replicates), dtype=bool)
        for smaller in range(best):
            excess = ratios[smaller][:, replicates] - ratios[best][:, replicates]
            spread = excess.std(axis=0, ddof=1) / np.sqrt(n_learners) if n_learners > 1 else 0.0
            near_on_average = excess.mean(axis=0) <= errors_allowed(n_learners) * spread + RULE.negligible
            # The spread over a learner's rows is that of the sample: replicates differ in the mean.
            _, error = paired_excess(
                held_out_losses[smaller], held_out_losses[best], starts, sizes, losses.selection.inflation
            )
            allowed = np.maximum(t_quantiles * error / losses.noise, RULE.negligible)
            nobody_worse = ~(excess > allowed[:, None]).any(axis=0)
            sufficient = undecided & near_on_average & nobody_worse
            chosen[replicates[sufficient]] = smaller
            undecided &= ~sufficient
    return chosen


def bootstrap_losses(
    losses: LocalLosses, labels: Array, labellings: Mapping[int, Array], *, n_replicates: int, entropy: int
) -> Stability:
    """Resample rows inside each learner and ask again who belongs where, and how many clusters there are.

    ``labels`` is the partition (L,) whose stability is asked for. ``labellings`` has the labelling (L,) that
    the fit found for each number of clusters that is not ruled out; empty: the number was given. No model is
    fitted: ``losses`` has what clusters lose by row. Each learner's draws derive from ``entropy`` and from
    its id. The answer is in the order of ``losses``.
    """
    numbers = sorted(labellings)
    all_labellings = [labels, *(labellings[k] for k in numbers)]
    half_sizes = losses.half_sizes.reshape(-1)
    n_clusters_in_all = sum(int(labelling.max()) + 1 for labelling in all_labellings)
    max_blocks = max(MIN_BLOCKS, MAX_LOSSES_HELD // (n_clusters_in_all * len(half_sizes)))
    block_starts, block_counts = _block_starts(half_sizes, max_blocks, losses.selection.inflation)
    block_losses, held_out_losses = zip(
        *(_losses_of_labelling(losses, labelling, block_starts) for labelling in all_labellings), strict=True
    )
    # The clusters of all labellings stand below each other: those of the partition come first.
    ends = np.cumsum([len(of_labelling) for of_labelling in block_losses])
    n_clusters, n_learners = int(ends[0]), len(losses.learners)
    membership = np.empty((n_learners, n_clusters))
    ratios = np.empty((len(numbers), n_learners, n_replicates))
    blocks = np.vstack(block_losses)
    ids = losses.learners.ids
    for j, halves in enumerate(_resampled_halves(blocks, block_counts, ids, n_replicates, entropy)):
        best_clusters = halves[:, :n_clusters].sum(axis=0).argmin(axis=0)
        membership[j] = np.bincount(best_clusters, minlength=n_clusters) / n_replicates
        for index in range(len(numbers)):
            of_labelling = halves[:, ends[index] : ends[index + 1]]
            ratios[index, j] = _held_out_ratios(of_labelling, losses.half_sizes[j], losses.noise[j])
        report("Bootstrap", j + 1, n_learners)
    if not numbers:
        return Stability(ids, membership, np.array([n_clusters]), np.ones(1), n_replicates)
    chosen = _chosen_numbers(ratios, held_out_losses[1:], losses)
    shares = np.bincount(chosen, minlength=len(numbers)) / n_replicates
    return Stability(ids, membership, np.array(numbers), shares, n_replicates)


def _not_ruled_out(clustering: Clustering) -> Mapping[int, Array]:
    """Return the labellings by their number of clusters, without that of one cluster where it is ruled out.

    The held-out rule rules it out where learners differ more than those of one truth would, and says so by a
    ``one_truth_z`` on its curve.
    """
    curve = clustering.partition.curves.get("held-out")
    if curve is None or curve.one_truth_z is None:
        return clustering.labellings
    return {k: labels for k, labels in clustering.labellings.items() if k > 1}


def bootstrap_clustering(clustering: Clustering, *, n_replicates: int, entropy: int) -> Stability:
    """Bootstrap the losses behind a partition of L learners; the answer is in the order of the partition.

    A learner whose model gave no finite losses has none to resample: it keeps its cluster in all replicates.
    """
    partition, indices = clustering.partition, places_of(clustering)
    assert clustering.losses is not None
    of_measured = bootstrap_losses(
        clustering.losses,
        partition.labels[indices],
        _not_ruled_out(clustering),
        n_replicates=n_replicates,
        entropy=entropy,
    )
    apart = np.setdiff1d(np.arange(len(partition.labels)), indices)
    membership = np.zeros((len(partition.labels), partition.n_clusters))
    membership[indices, : of_measured.membership.shape[1]] = of_measured.membership
    membership[apart, partition.labels[apart]] = 1.0
    # Whoever stands apart has a cluster in every replicate.
    n_clusters = of_measured.n_clusters + len(apart)
    return Stability(
        learner_ids=partition.learner_ids,
        membership=membership,
        n_clusters=n_clusters,
        shares=of_measured.shares,
        n_replicates=n_replicates,
    )
