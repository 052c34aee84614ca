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
    """Return the gap statistic for K = 1 to ``most`` clusters, and its standard error, both of shape (most,).

    The gap is the mean log within-cluster sum of squares of uniform reference points, less that of the
    embedding: it is large where the learners are clustered more tightly than points without clusters.
    """
    generator = np.random.default_rng(evidence.seed)
    gaps, standard_errors = np.empty(evidence.most), np.empty(evidence.most)
    for k in range(1, evidence.most + 1):
        embedding = evidence.spectrum.embedding(max(k, 2))
        lower_corner, upper_corner = embedding.min(axis=0), embedding.max(axis=0)
        n_points = min(len(embedding), REFERENCE_POINTS)
        references = generator.uniform(
            lower_corner, upper_corner, size=(REFERENCES, n_points, embedding.shape[1])
        )
        observed_sum = evidence.within_sums[k - 1]
        # The reference has fewer points than the embedding: its sums are brought to as many points.
        reference_sums = kmeans(references, k, generator, restarts=2)[1] * len(embedding) / n_points
        # Rows have length one. Those that coincide have a sum of squares of zero, whose log is not finite.
        rounding_sum = LIMITS.rounding * len(embedding)
        log_reference_sums = np.log(np.maximum(reference_sums, rounding_sum))
        gaps[k - 1] = log_reference_sums.mean() - np.log(max(observed_sum, rounding_sum))
        # The factor allows for the mean of the references being estimated, too.
        standard_errors[k - 1] = log_reference_sums.std() * np.sqrt(1 + 1 / REFERENCES)
    return gaps, standard_errors


def _first_not_beaten(gaps: Array, errors: Array) -> int:
    """Return the smallest K whose gap is at least the next gap less that gap's standard error.

    This is the rule of Tibshirani and others. If no K meets it, the K with the largest gap is returned. Entry
    k of ``gaps`` and ``errors`` is that of k + 1 clusters.
    """
    good_positions = np.flatnonzero(gaps[:-1] >= gaps[1:] - errors[1:])
    return int(good_positions[0]) + 1 if len(good_positions) else int(gaps.argmax()) + 1


def _largest_step(gaps: Array, errors: Array) -> int:
    """Return the K whose gap rises most above that of K - 1.

    One cluster is returned if no rise exceeds the standard error of the larger K's gap. Entry k of ``gaps``
    and ``errors`` is that of k + 1 clusters.
    """
    rises = np.diff(gaps)
    if not len(rises) or (rises <= errors[1:]).all():
        return 1
    return int(rises.argmax()) + 2


def gap_rules(evidence: Evidence) -> tuple[Curve, Curve]:
    """Choose the number of clusters by the gap statistic, under two rules: ``"gap"`` and ``"gap-jump"``.

    Returns one curve for each rule; the second has rises of the gap instead of the gap itself.
    """
    gaps, standard_errors = gap_curve(evidence)
    n_clusters = np.arange(1, evidence.most + 1)
    first_curve = Curve(
        rule="gap",
        n_clusters=n_clusters,
        values=gaps,
        chosen=_first_not_beaten(gaps, standard_errors),
        criterion="gap to a uniform reference (the first that the next does not beat)",
        spread=standard_errors,
    )
    jump_curve = Curve(
        rule="gap-jump",
        n_clusters=n_clusters,
        values=np.append(np.nan, np.diff(gaps)),
        chosen=_largest_step(gaps, standard_errors),
        criterion="improvement of the gap on one cluster less (higher is better)",
        spread=standard_errors,
    )
    return first_curve, jump_curve
