"""The numbers behind each picture: which learners it shows, in which order, and how many are left out.

Each function takes the subject and returns a plain dict of lists, numbers and texts, as JSON knows them. What
a display shows, too, is computed and ordered by that display. The pictures stay legible and quick however
many learners there are: the heat map joins learners of a coterie into blocks, the others show those at both
ends and say how many they leave out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse.linalg import eigsh

from coterie._arrays import Array
from coterie.displays import GainsDisplay, WeightsDisplay
from coterie.displays.loss_heatmap import cluster_order, in_noise
from coterie.displays.membership import own_share
from coterie.method.spectral import is_large
from coterie.records import Exchange, Partition
from coterie.report.subject import Subject, finite_list, full_names
from coterie.summary import learner_columns
from coterie.verdicts.gains import ERRORS

# Beyond this many learners the heat map shows blocks of learners, about so many.
MOST_CELLS = 500
BLOCKS = 250
# Of very many learners the pictures of pairs show about so many.
MOST_SHOWN = 1_000
# Rows of the pictures that have a row per learner.
MOST_GAINS = 60
MOST_MEMBERS = 40
# Who is surer than this has a full bar, which tells nothing; a few are shown all the same.
SURE = 0.995
FEWEST_MEMBERS = 8
# Learners whose distances are no more than rounding have one place on the map.
ALL_ALIKE = 1e-12
# Rounded to this, a logarithm of a loss is right to a tenth of a percent.
LOG_DIGITS = 4


def _blocks(labels: Array) -> list[Array]:
    """Return the learners that share a row of the heat map: one each, or blocks inside a cluster."""
    size = 1 if len(labels) <= MOST_CELLS else -(-len(labels) // BLOCKS)
    clusters = np.split(cluster_order(labels), np.cumsum(np.unique(labels, return_counts=True)[1])[:-1])
    return [block for mine in clusters for block in np.array_split(mine, -(-len(mine) // size))]


def _block_name(names: list[str]) -> str:
    if len(names) <= 3:
        return ", ".join(names)
    return f"{len(names)} learners, {names[0]} to {names[-1]}"


def _block_means(values: Array, blocks: list[Array]) -> Array:
    """Return the mean over blocks of rows and of columns, leaving out what is not finite."""
    order = np.concatenate(blocks)
    starts = np.cumsum([0, *(len(block) for block in blocks[:-1])])
    ordered = values[np.ix_(order, order)]
    known = np.isfinite(ordered)

    def summed(matrix: Array) -> Array:
        return np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1)

    with np.errstate(invalid="ignore"):
        return summed(np.where(known, ordered, 0.0)) / summed(known.astype(float))


def _logarithms(values: Array) -> Array:
    """Return log10; zero counts as the smallest positive value there is."""
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return np.where(np.isfinite(values), 0.0, np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.isfinite(values), np.log10(np.maximum(values, positive.min())), np.nan)


def _between(values: Array, labels: Array) -> dict[str, float | None]:
    """Return the median inside the clusters, without the diagonal, and between them."""
    same = labels[:, None] == labels[None, :]
    away = ~np.eye(len(labels), dtype=bool)
    medians = {}
    for name, cells in (("inside", same & away), ("between", ~same)):
        found = values[cells & np.isfinite(values)]
        medians[name] = float(f"{np.median(found):.4g}") if len(found) else None
    return medians


def _some(subject: Subject) -> tuple[Partition, Exchange | None]:
    """Return partition and exchange of a sample of the learners where all pairs would be too many to see."""
    partition, exchange = subject.partition, subject.exchange
    assert partition is not None
    marks = None if exchange is None else exchange.landmarks
    n = len(partition.labels)
    if marks is not None:
        # All losses are known among landmarks only.
        kept = marks
    elif is_large(n):
        # Nobody's cluster may vanish from the picture.
        firsts = np.unique(partition.labels, return_index=True)[1]
        kept = np.union1d(np.linspace(0, n - 1, MOST_SHOWN).astype(int), firsts)
    else:
        return partition, exchange
    partition = partition.take(kept)
    partition = replace(partition, similarity=np.asarray(partition.similarity))
    return partition, None if exchange is None else exchange.take(kept)


def losses_picture(subject: Subject) -> dict[str, Any]:
    """Return everybody's model on everybody's rows, ordered by cluster; of very many learners a sample's."""
    partition, exchange = _some(subject)
    labels = partition.labels
    if exchange is None:
        values, unit = np.asarray(partition.similarity), "similarity"
        logarithms = values
    else:
        values, unit = exchange.losses, "loss"
        # A matrix of losses alone has no honest noise levels.
        if subject.model is not None and (np.isfinite(exchange.noise) & (exchange.noise > 0)).all():
            values, unit = in_noise(values, exchange.noise), "noise"
        logarithms = _logarithms(values)
    blocks = _blocks(labels)
    names = full_names(partition.learner_ids)
    of_classes = {"error": "Brier score"} if "scores" in subject.summary else {}
    return {
        **of_classes,
        "unit": unit,
        "admitted": subject.summary["n_admitted"],
        "learners": [_block_name([names[p] for p in block]) for block in blocks],
        "clusters": [int(labels[block[0]]) for block in blocks],
        "binned": len(blocks) < len(labels),
        "logarithmic": unit != "similarity",
        "cells": [finite_list(row, LOG_DIGITS) for row in _block_means(logarithms, blocks)],
        **_between(values, labels),
    }


def _principal(columns: Array) -> tuple[Array, float]:
    """Return the two leading principal columns, and the share of the spread that they hold."""
    centred = columns - columns.mean(axis=0)
    left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    wide = np.zeros((len(columns), 2))
    kept = min(2, len(sizes))
    wide[:, :kept] = left[:, :kept] * sizes[:kept]
    total = float((sizes**2).sum())
    return wide, float((sizes[:kept] ** 2).sum()) / total if total > 0 else 1.0


def _scaled(similarity: Array) -> Array:
    """Return places whose distances are those of the models: classical scaling of the dissimilarity v.

    v is close to twice the squared distance of two models, and its logarithm keeps far learners from
    pressing all others into a point; log(1 + v) of squared distances is one again (Schoenberg).
    """
    similarity = np.maximum(similarity, np.finfo(float).tiny)
    squares = np.log1p(-np.log(np.minimum(similarity, 1.0)))
    rows = squares.mean(axis=1)
    products = -0.5 * (squares - rows[:, None] - rows[None, :] + rows.mean())
    n = len(products)
    if np.abs(products).max() < ALL_ALIKE:
        return np.zeros((n, 2))
    if n < 4:
        sizes, vectors = np.linalg.eigh(products)
    else:
        # A fixed start makes the digits the same every time.
        start = np.random.default_rng(0).normal(size=n)
        sizes, vectors = eigsh(products, k=2, which="LA", v0=start)
    order = np.argsort(-sizes)[:2]
    places = np.zeros((n, 2))
    places[:, : len(order)] = vectors[:, order] * np.sqrt(np.maximum(sizes[order], 0.0))
    # An eigenvector has no sign of its own.
    signs = np.sign(places[np.abs(places).argmax(axis=0), [0, 1]])
    return places * np.where(signs == 0, 1.0, signs)


def _apart(embedding: Array, labels: Array) -> Array:
    """Return how clearly each learner lies: 1 on its cluster's centre, 0 half-way to the next one."""
    centres = np.array([embedding[labels == label].mean(axis=0) for label in range(labels.max() + 1)])
    distances = np.linalg.norm(embedding[:, None, :] - centres[None, :, :], axis=2)
    everybody = np.arange(len(labels))
    own = distances[everybody, labels]
    distances[everybody, labels] = np.inf
    other = distances.min(axis=1)
    clear: Array = (other - own) / np.maximum(np.maximum(own, other), np.finfo(float).tiny)
    return clear


def map_picture(subject: Subject) -> dict[str, Any]:
    """Return where the learners lie: in the space of the clustering, and by the distances of their models."""
    partition, _ = _some(subject)
    labels, embedding = partition.labels, partition.embedding
    clustered, share = _principal(embedding)
    apart = None
    if partition.n_clusters > 1:
        apart = finite_list(_apart(embedding, labels), 3)
    models = _scaled(np.asarray(partition.similarity))
    return {
        "learners": full_names(partition.learner_ids),
        "clusters": labels.tolist(),
        "embedding": [finite_list(clustered[:, 0]), finite_list(clustered[:, 1])],
        "embedding_columns": int(embedding.shape[1]),
        "embedding_share": round(share, 4),
        "distances": [finite_list(models[:, 0]), finite_list(models[:, 1])],
        "apart": apart,
        "admitted": subject.summary["n_admitted"],
    }


def both_ends(count: int, most: int) -> list[int]:
    """Return positions from both ends of a sorted list, at most so many; all where they are few."""
    if count <= most:
        return list(range(count))
    return [*range(most - most // 2), *range(count - most // 2, count)]


def gains_picture(subject: Subject) -> dict[str, Any] | None:
    """Return the errors with the coterie and with all against the error alone, the largest gain first."""
    if subject.summary["pays"] is None:
        return None
    table = GainsDisplay(learner_columns(subject.found)).frame()
    count = len(table["gain"])
    measured = np.isfinite(table["gain"]) & (table["error_alone"] > 0)
    table = {name: column[measured] for name, column in table.items()}
    n = len(table["gain"])
    shown = {name: column[both_ends(n, MOST_GAINS)] for name, column in table.items()}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        everybody = shown["error_all"] / shown["error_alone"]
    return {
        "learners": full_names(shown["learner"]),
        "clusters": shown["cluster"].astype(int).tolist(),
        "coterie": finite_list(1 - shown["gain"]),
        "spread": finite_list(shown["gain_se"]) if "gain_se" in shown else None,
        "all": finite_list(everybody),
        "errors": {name: finite_list(shown[name]) for name in ERRORS},
        "measured": n,
        "left_out": n - len(shown["gain"]),
        "not_measured": count - n,
    }


def membership_picture(subject: Subject) -> dict[str, Any] | None:
    """Return how often each learner falls into each cluster, the least sure first."""
    stability, partition = subject.stability, subject.partition
    if stability is None or partition is None:
        return None
    probabilities = np.asarray(stability.membership, float)
    label = dict(zip(partition.learner_ids.tolist(), partition.labels.tolist(), strict=True))
    labels = np.array([label[learner] for learner in stability.learner_ids.tolist()])
    own = own_share(probabilities, labels)
    count = int(np.clip((own < SURE).sum(), FEWEST_MEMBERS, MOST_MEMBERS))
    order = np.argsort(own, kind="stable")[:count]
    return {
        "learners": full_names(stability.learner_ids[order]),
        "clusters": labels[order].tolist(),
        "own": finite_list(own[order], 4),
        "membership": [finite_list(probabilities[p], 4) for p in order],
        "sure": int((own >= 0.95).sum()),
        "n_learners": len(own),
        "n_replicates": int(stability.n_replicates),
        "left_out": len(own) - len(order),
    }


def weights_picture(subject: Subject) -> dict[str, Any] | None:
    """Return what each learner's predictions are made of, those that take most from themselves first."""
    nested: Any = None if subject.model is None else subject.model.collaboration_
    names = getattr(nested, "share_names", None)
    if not names:
        return None
    table = WeightsDisplay(nested.learner_ids, nested.shares, names).frame()
    learners = table.pop("learner")
    shares = np.column_stack(list(table.values()))
    shown = both_ends(len(shares), MOST_MEMBERS)
    return {
        "learners": full_names(learners[shown]),
        "names": list(names),
        "shares": [finite_list(row, 4) for row in shares[shown]],
        "mean": finite_list(shares.mean(axis=0), 4),
        "left_out": len(shares) - len(shown),
    }
