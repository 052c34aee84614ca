"""Peers that give each learner a vector and cluster the vectors: coefficients, and CLoVE-like losses.

The number of clusters is by the silhouette, which knows no single cluster.
"""

from __future__ import annotations

import time
import warnings

import numpy as np
from problem import Answer, Array, Problem
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_score


def loss_vectors(problem: Problem) -> Array:
    """Return the losses of everybody's models on each learner's rows, a row per learner."""
    models = [problem.fit(np.array([j])) for j in range(problem.n_learners)]
    rows, cuts = np.vstack(problem.X), np.cumsum([len(y) for y in problem.y])
    squares = (np.concatenate(problem.y) - np.array([model.predict(rows) for model in models])) ** 2
    means = np.add.reduceat(squares, np.r_[0, cuts[:-1]], axis=1) / np.diff(np.r_[0, cuts])
    return np.sqrt(means.T)


def _clustered(vectors: Array, k: int, seed: int) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return KMeans(k, n_init=10, random_state=seed).fit_predict(vectors)


def best_by_silhouette(vectors: Array, most: int, seed: int) -> Array:
    """Return the labels with the highest silhouette among two and more clusters."""
    tried = [_clustered(vectors, k, seed) for k in range(2, most + 1)]
    return max(tried, key=lambda labels: silhouette_score(vectors, labels))


KINDS = {"k-means on coefficients": lambda problem: problem.coefficients, "CLoVE-like": loss_vectors}


def run(problem: Problem) -> list[Answer]:
    """Return both peers' partitions, K given and by the silhouette."""
    answers = []
    for name, make in KINDS.items():
        start = time.perf_counter()
        vectors = make(problem)
        made = time.perf_counter() - start
        for suffix, cluster in (
            ("K given", lambda v: _clustered(v, problem.n_clusters, problem.seed)),
            ("silhouette", lambda v: best_by_silhouette(v, problem.most, problem.seed)),
        ):
            start = time.perf_counter()
            labels = cluster(vectors)
            answers.append(Answer(f"{name}, {suffix}", labels, made + time.perf_counter() - start))
    return answers
