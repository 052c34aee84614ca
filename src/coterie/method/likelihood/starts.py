"""Starts: learners are merged greedily, always the two clusters whose union loses the least evidence.

Very many learners are first put into groups by k-means, and the groups are merged.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from coterie._arrays import Array
from coterie.kernels.kmeans import kmeans

# Pairs that are scored at once.
PAIRS = 2000
# Groups of learners that stand for very many: all pairs of them are scored.
GROUPS = 150


class Tree(NamedTuple):
    """Labels of the learners for each number of clusters, and where they came from."""

    labels: dict[int, Array]
    own_variance: Array
    cluster_variance: Array


def _evidence(P: Array, c: Array, variance: Array) -> Array:
    """Return the log evidence (M,) of clusters with moments P (M, d, d), c (M, d), against d_k = 0.

    P and c are sums X'X and X'y in units of noise. d_k, by which a cluster's line departs from the common
    one, has a normal prior with ``variance`` (d,) and is integrated out.
    """
    d, out = len(variance), np.empty(len(P))
    for start in range(0, len(P), PAIRS):
        block = slice(start, start + PAIRS)
        F = np.eye(d) + P[block] * variance
        towards = np.linalg.solve(F, c[block, :, None])[:, :, 0]
        out[block] = 0.5 * (c[block] * variance * towards).sum(axis=1) - 0.5 * np.linalg.slogdet(F)[1]
    return out


def _grouped(P: Array, c: Array, variance: Array) -> Array:
    """Return a group (L,) of like learners for each of very many, by k-means of their own departures.

    A departure is in units of the prior's spread, and shrunken where a learner's rows say little of it.
    """
    departures = np.empty(c.shape)
    for start in range(0, len(P), PAIRS):
        block = slice(start, start + PAIRS)
        F = np.eye(len(variance)) + P[block] * variance
        departures[block] = np.sqrt(variance) * np.linalg.solve(F, c[block, :, None])[:, :, 0]
    groups = kmeans(departures[None], GROUPS, np.random.default_rng(0), restarts=1)[0][0]
    return np.asarray(np.unique(groups, return_inverse=True)[1])


def merge(P: Array, c: Array, variance: Array) -> dict[int, Array]:
    """Return labels (L,) for every number of clusters from L, or from a number of groups, down to two.

    ``P`` (L, d, d) and ``c`` (L, d) are learners' sums X'X and X'y in units of noise. In each step those two
    clusters become one whose union has the highest evidence beside that of the two apart.
    """
    if len(P) > 2 * GROUPS:
        groups = _grouped(P, c, variance)
        order = np.argsort(groups, kind="stable")
        first = np.searchsorted(groups[order], np.arange(groups.max() + 1))
        sums = np.array([P[part].sum(axis=0) for part in np.split(order, first[1:])])
        merged = merge(sums, np.add.reduceat(c[order], first), variance)
        return {K: labels[groups] for K, labels in merged.items()}
    P, c, L = P.copy(), c.copy(), len(P)
    labels, live = np.arange(L), list(range(L))
    alone = _evidence(P, c, variance)
    # gains[i, j], i < j, is that of a union; minus infinity stands for pairs that are none or no more.
    gains = np.full((L, L), -np.inf)
    first, second = np.triu_indices(L, 1)
    for start in range(0, len(first), PAIRS):
        a, b = first[start : start + PAIRS], second[start : start + PAIRS]
        gains[a, b] = _evidence(P[a] + P[b], c[a] + c[b], variance) - alone[a] - alone[b]
    result = {L: labels.copy()}
    while len(live) > 2:
        # Cluster j goes into cluster i, whose moments are then those of the union.
        i, j = divmod(int(gains.argmax()), L)
        P[i] += P[j]
        c[i] += c[j]
        labels[labels == j] = i
        live.remove(j)
        gains[j], gains[:, j] = -np.inf, -np.inf
        alone[i] = _evidence(P[i : i + 1], c[i : i + 1], variance)[0]
        others = np.array([k for k in live if k != i])
        gain = _evidence(P[others] + P[i], c[others] + c[i], variance) - alone[others] - alone[i]
        gains[np.minimum(others, i), np.maximum(others, i)] = gain
        result[len(live)] = np.unique(labels, return_inverse=True)[1]
    return result
