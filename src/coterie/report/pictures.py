"""The numbers behind each picture: which learners it shows, in which order, and how many are left out.

Each function takes the subject and returns a plain dict of lists, numbers and texts, as JSON knows them. The
pictures stay legible and quick however many learners there are: the heat map joins learners of a coterie into
blocks, the others show those at both ends and say how many they leave out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from coterie.method.spectral import is_large
from coterie.report.subject import Subject, finite_list, full_name
from coterie.verdicts.gains import ERRORS

Array = NDArray[Any]

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
    blocks = []
    for label in np.unique(labels).tolist():
        mine = np.flatnonzero(labels == label)
        blocks += np.array_split(mine, -(-len(mine) // size))
    return blocks


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


def _some(subject: Subject) -> Subject:
    """Return the subject with a sample of its learners where all pairs would be too many to look at."""
    n = len(subject.partition.labels)
    marks = None if subject.exchange is None else subject.exchange.landmarks
    if marks is not None:
        # All losses are known among landmarks only.
        kept = marks
    elif is_large(n):
        # Nobody's cluster may vanish from the picture.
        firsts = np.unique(subject.partition.labels, return_index=True)[1]
        kept = np.union1d(np.linspace(0, n - 1, MOST_SHOWN).astype(int), firsts)
    else:
        return subject
    exchange = None if subject.exchange is None else subject.exchange.take(kept)
    partition = subject.partition.take(kept)
    partition = replace(partition, similarity=np.asarray(partition.similarity))
    return replace(subject, partition=partition, exchange=exchange)


def losses_picture(subject: Subject) -> dict[str, Any]:
    """Return everybody's model on everybody's rows, ordered by cluster; of very many learners a sample's."""
    n_admitted, subject = subject.n_admitted, _some(subject)
    labels = subject.partition.labels
    if subject.exchange is None:
        values, unit = np.asarray(subject.partition.similarity), "similarity"
        logarithms = values
    else:
        values, unit = subject.exchange.losses, "loss"
        noise = subject.exchange.noise
        # A matrix of losses alone has no honest noise levels.
        if subject.model is not None and (np.isfinite(noise) & (noise > 0)).all():
            values, unit = values / noise, "noise"
        logarithms = _logarithms(values)
    blocks = _blocks(labels)
    names = subject.names
    return {
        "unit": unit,
        "admitted": n_admitted,
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


def _scaled(subject: Subject) -> Array:
    """Return places whose distances are those of the models: classical scaling of the dissimilarity v.

    v is close to twice the squared distance of two models, and its logarithm keeps far learners from
    pressing all others into a point; log(1 + v) of squared distances is one again (Schoenberg).
    """
    similarity = np.maximum(np.asarray(subject.partition.similarity), np.finfo(float).tiny)
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
    n_admitted, subject = subject.n_admitted, _some(subject)
    partition = subject.partition
    labels, embedding = partition.labels, partition.embedding
    clustered, share = _principal(embedding)
    apart = None
    if partition.n_clusters > 1:
        apart = finite_list(_apart(embedding, labels), 3)
    models = _scaled(subject)
    return {
        "learners": subject.names,
        "clusters": labels.tolist(),
        "embedding": [finite_list(clustered[:, 0]), finite_list(clustered[:, 1])],
        "embedding_columns": int(embedding.shape[1]),
        "embedding_share": round(share, 4),
        "distances": [finite_list(models[:, 0]), finite_list(models[:, 1])],
        "apart": apart,
        "admitted": n_admitted,
    }


def curves_picture(subject: Subject) -> dict[str, Any]:
    """Return every rule's curve, that of the rule that decided first."""
    partition = subject.partition
    names = sorted(partition.curves, key=lambda name: name != partition.rule)
    curves = []
    for name in names:
        curve = partition.curves[name]
        curves.append(
            {
                "rule": name,
                "criterion": curve.criterion,
                "n_clusters": np.asarray(curve.n_clusters).astype(int).tolist(),
                "values": finite_list(curve.values),
                "spread": None if curve.spread is None else finite_list(curve.spread),
                "chosen": int(curve.chosen),
                "decided": name == partition.rule,
                "surprise": curve.surprise,
            }
        )
    again = None
    if subject.stability is not None:
        again = {
            "n_clusters": [int(k) for k in subject.stability.n_clusters],
            "shares": finite_list(subject.stability.shares, 4),
            "n_replicates": int(subject.stability.n_replicates),
        }
    return {"rule": partition.rule, "n_clusters": partition.n_clusters, "curves": curves, "again": again}


def both_ends(count: int, most: int) -> list[int]:
    """Return positions from both ends of a sorted list, at most so many.

    Parameters
    ----------
    count : int
        Length of the list.
    most : int
        Positions wanted at most.

    Returns
    -------
    list of int
        All positions where they are few, else the first and the last ones.
    """
    if count <= most:
        return list(range(count))
    return [*range(most - most // 2), *range(count - most // 2, count)]


def gains_picture(subject: Subject) -> dict[str, Any] | None:
    """Return the errors with the coterie and with all against the error alone, the largest gain first."""
    table = subject.gains
    if table is None:
        return None
    alone, gain = np.asarray(table["error_alone"], float), np.asarray(table["gain"], float)
    measured = np.flatnonzero(np.isfinite(gain) & (alone > 0))
    order = measured[np.argsort(-gain[measured], kind="stable")]
    shown = order[both_ends(len(order), MOST_GAINS)]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        everybody = np.asarray(table["error_all"], float) / alone
    spread = table.get("gain_se")
    return {
        "learners": [full_name(table["learner"][p]) for p in shown],
        "clusters": [int(table["cluster"][p]) for p in shown],
        "coterie": finite_list(1 - gain[shown]),
        "spread": None if spread is None else finite_list(spread[shown]),
        "all": finite_list(everybody[shown]),
        "errors": {name: finite_list(table[name][shown]) for name in ERRORS},
        "measured": len(order),
        "left_out": len(order) - len(shown),
        "not_measured": len(gain) - len(order),
    }


def membership_picture(subject: Subject) -> dict[str, Any] | None:
    """Return how often each learner falls into each cluster, the least sure first."""
    stability = subject.stability
    if stability is None:
        return None
    probabilities = np.asarray(stability.membership, float)
    place = {learner: p for p, learner in enumerate(subject.partition.learner_ids.tolist())}
    labels = np.array([subject.partition.labels[place[i]] for i in stability.learner_ids.tolist()])
    own = probabilities[np.arange(len(labels)), labels]
    count = int(np.clip((own < SURE).sum(), FEWEST_MEMBERS, MOST_MEMBERS))
    order = np.argsort(own, kind="stable")[:count]
    return {
        "learners": [full_name(stability.learner_ids[p]) for p in order],
        "clusters": labels[order].tolist(),
        "own": finite_list(own[order], 4),
        "membership": [finite_list(probabilities[p], 4) for p in order],
        "sure": int((own >= 0.95).sum()),
        "n_learners": len(own),
        "n_replicates": int(stability.n_replicates),
        "left_out": len(own) - len(order),
    }


def weights_picture(subject: Subject) -> dict[str, Any] | None:
    """Return what each learner's predictions are made of, those that take most from others first."""
    together: Any = None if subject.model is None else subject.model.collaboration_
    names = getattr(together, "share_names", None)
    if not names:
        return None
    shares = np.asarray(together.shares, float)
    order = np.argsort(shares[:, 0], kind="stable")
    shown = order[both_ends(len(order), MOST_MEMBERS)]
    return {
        "learners": [full_name(together.learner_ids[p]) for p in shown],
        "names": list(names),
        "shares": [finite_list(shares[p], 4) for p in shown],
        "mean": finite_list(shares.mean(axis=0), 4),
        "left_out": len(order) - len(shown),
    }
