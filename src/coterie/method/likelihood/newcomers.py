"""Newcomers: the clusters that they may belong to, and none of these.

A newcomer's sums are judged by each cluster's posterior line, and by a cluster of its own. The prior of the
latter is broad: T plus the spread of b. T alone is closed in every direction in which the known clusters
agree.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.method.likelihood.bound import Integrated, Mixture, Moments, gamma_prior, times, without_own

# The noise level of a newcomer settles in a few turns.
TURNS = 5


def _log_evidence(rest: Integrated, mean: Array, covariance: Array) -> Array:
    """Return the log evidence (M,) of newcomers' sums under lines drawn from a normal distribution.

    ``rest`` are sums X'X and X'y of M newcomers without own departures, ``mean`` (d,) and ``covariance``
    (d, d) those of the lines. Constants that are the same for all lines are left out.
    """
    F = np.linalg.inv(np.eye(len(mean)) + rest.gram @ covariance)
    left = rest.cross - rest.gram @ mean
    gained = 0.5 * (left * (times(F, left) @ covariance)).sum(axis=1) + 0.5 * np.linalg.slogdet(F)[1]
    return np.asarray((rest.cross - 0.5 * rest.gram @ mean) @ mean + gained)


def _noise_precisions(moments: Moments, mixture: Mixture, mean: Array, variance: Array) -> Array:
    """Return the newcomers' noise precisions (M,), from lines of their own and the learners' levels.

    Lines have ``mean`` (d,) and ``variance`` (d,) as prior. The learners' levels are a prior, too, so
    that a newcomer of few rows gets a usual level. Precisions are one where moments are in units of noise.
    """
    known = mixture.state.noise_precision
    if moments.unit_noise:
        return np.ones(len(moments.n_rows))
    shape, rate = gamma_prior(known, np.log(known))
    # From the prior's mean; lines and levels then follow from each other in turn.
    tau = np.full(len(moments.n_rows), shape / rate)
    for _ in range(TURNS):
        gram = moments.gram * tau[:, None, None]
        S = variance[:, None] * np.linalg.inv(np.eye(len(mean)) + gram * variance)
        lines = mean + times(S, tau[:, None] * (moments.cross - moments.gram @ mean))
        squares = moments.square + ((times(moments.gram, lines) - 2 * moments.cross) * lines).sum(axis=1)
        squares += (moments.gram * S).sum(axis=(1, 2))
        tau = (shape + moments.n_rows / 2) / (rate + np.maximum(squares, 0) / 2)
    return tau


def place(mixture: Mixture, newcomers: Moments, direction: Array | None = None) -> Array:
    """Return probabilities of shape (M, K + 1): each cluster's, and last that of none of these.

    ``newcomers`` are the sums of M learners that the mixture has not seen. ``direction`` (d,) is that of the
    learners' moments, if their own departures had one. A cluster's odds grow with its members, as seen in
    fit; none of these counts like a cluster without members.
    """
    newcomers = newcomers if direction is None else newcomers.with_direction(direction)
    state, K = mixture.state, len(mixture.means)
    broad = state.cluster_variance.copy()
    for family in newcomers.families:
        broad[family] += (1 / state.common_precision[family]).mean()
    tau = _noise_precisions(newcomers, mixture, mixture.common, broad + state.own_variance)
    rest = without_own(newcomers, tau, state.own_variance)
    scores = [_log_evidence(rest, mixture.means[k], mixture.covariances[k]) for k in range(K)]
    scores.append(_log_evidence(rest, mixture.common, np.diag(broad)))
    odds = np.array(scores).T + np.log(1 + np.r_[state.responsibilities.sum(axis=0), 0.0])
    odds = np.exp(odds - odds.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))
