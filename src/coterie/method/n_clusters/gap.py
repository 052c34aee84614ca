"""The gap statistic of Tibshirani, Walther and Hastie (2001) on the rows of the embedding.

For each K the rows are those of the K top eigenvectors, scaled to length one. The reference is uniform
over the box that holds them, in the same K columns. The one-column embedding has no spread by construction,
so K = 1 is judged in the two columns of K = 2: there its sum of squares is the total one.

``"gap"`` takes the first K whose gap is at least the next one's less its standard error; ``"gap-jump"`` takes
the K that improves most on K - 1, as the paper describes its rule, and one cluster when no step improves by
more than its standard error.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.kernels.kmeans import kmeans
from coterie.kernels.limits import LIMITS
from coterie.method.n_clusters.evidence import Evidence
from coterie.records import Curve

# Reference sets; their mean and standard error are used.
REFERENCES = 10
# A uniform sum of squares is proportional to the number of points: more of them only cost time.
REFERENCE_POINTS = 250


def gap_curve(evidence: Evidence) -> tuple[Array, Array]:
    """Return the gap for each number of clusters, and its standard error."""
    generator = np.random.default_rng(evidence.seed)
    gaps, errors = np.empty(evidence.most), np.empty(evidence.most)
    for k in range(1, evidence.most + 1):
        rows = evidence.spectrum.embedding(max(k, 2))
        low, high = rows.min(axis=0), rows.max(axis=0)
        n_points = min(len(rows), REFERENCE_POINTS)
        references = generator.uniform(low, high, size=(REFERENCES, n_points, rows.shape[1]))
        observed = evidence.within_sums[k - 1]
        expected = kmeans(references, k, generator, restarts=2)[1] * len(rows) / n_points
        # Rows have length one. Those that coincide have a sum of squares of zero, whose log is not finite.
        smallest = LIMITS.rounding * len(rows)
        logs = np.log(np.maximum(expected, smallest))
        gaps[k - 1] = logs.mean() - np.log(max(observed, smallest))
        errors[k - 1] = logs.std() * np.sqrt(1 + 1 / REFERENCES)
    return gaps, errors


def _first_not_beaten(gaps: Array, errors: Array) -> int:
    """Return the smallest number whose gap is within a standard error of the next one's."""
    enough = np.flatnonzero(gaps[:-1] >= gaps[1:] - errors[1:])
    return int(enough[0]) + 1 if len(enough) else int(gaps.argmax()) + 1


def _largest_step(gaps: Array, errors: Array) -> int:
    """Return the number behind the largest rise of the gap; one if no rise is clear."""
    steps = np.diff(gaps)
    if not len(steps) or (steps <= errors[1:]).all():
        return 1
    return int(steps.argmax()) + 2


def gap_rules(evidence: Evidence) -> tuple[Curve, Curve]:
    """Choose the number of clusters by the gap statistic, under ``"gap"`` and under ``"gap-jump"``."""
    gaps, errors = gap_curve(evidence)
    counts = np.arange(1, evidence.most + 1)
    first = Curve(
        rule="gap",
        n_clusters=counts,
        values=gaps,
        chosen=_first_not_beaten(gaps, errors),
        criterion="gap to a uniform reference (the first that the next does not beat)",
        spread=errors,
    )
    jump = Curve(
        rule="gap-jump",
        n_clusters=counts,
        values=np.append(np.nan, np.diff(gaps)),
        chosen=_largest_step(gaps, errors),
        criterion="improvement of the gap on one cluster less (higher is better)",
        spread=errors,
    )
    return first, jump
