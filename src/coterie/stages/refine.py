"""Refine: learners move to the cluster whose model predicts them better, until nothing moves.

Each cluster's collaborative model is scored on every learner, leaving out the learner's own contribution.
A learner moves to the cluster that predicts it best. Ten rounds at most; a labelling seen before ends the
search; the labelling with the lowest mean loss, in units of noise, is kept, so that a right partition is not
spoilt. Asking for moves to gain more than their standard error (``noise_factor``) was measured to find fewer
right partitions at low signal: learners that start in the wrong cluster then stay there.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.kernels.together import TogetherLosses, whole_losses

Array = NDArray[Any]

ROUNDS = 10
# Rounds without a better labelling after which the rest of them would only shuffle learners about.
STALE_ROUNDS = 2


def labelling_score(losses: TogetherLosses, labels: Array) -> float:
    """Return the mean over learners of the loss with their own cluster, in units of their noise."""
    whole = whole_losses(losses, labels)
    mine = whole[labels, np.arange(len(labels))]
    return float(np.mean(mine / losses.noise))


def refine_labels(
    losses: TogetherLosses, labels: Array, *, rounds: int = ROUNDS, noise_factor: float = 0.0
) -> tuple[Array, float]:
    """Move learners to the clusters that predict them best.

    Parameters
    ----------
    losses : TogetherLosses
        Answers what each cluster loses on each learner.
    labels : ndarray of shape (L,)
        Where to start.
    rounds : int, default=10
        Rounds at most.
    noise_factor : float, default=0.0
        A move must gain more than this many standard errors, paired over the learner's rows.

    Returns
    -------
    labels : ndarray of shape (L,)
        The best labelling seen; clusters may have become empty.
    score : float
        Its mean loss in units of noise.
    """
    everybody = np.arange(len(labels))
    best, best_score = labels, np.inf
    seen: set[bytes] = set()
    stale = 0
    for _ in range(rounds):
        seen.add(labels.tobytes())
        whole = whole_losses(losses, labels)
        score = float(np.mean(whole[labels, everybody] / losses.noise))
        stale = 0 if score < best_score * (1 - 1e-3) else stale + 1
        if score < best_score - 1e-12:
            best, best_score = labels, score
        if stale > STALE_ROUNDS:
            break
        nearest = whole.argmin(axis=0)
        if noise_factor > 0 and (nearest != labels).any():
            stay, go = np.repeat(labels[:, None], 2, 1), np.repeat(nearest[:, None], 2, 1)
            gain, error = losses.paired_t(labels, stay, labels, go)
            nearest = np.where(gain > noise_factor * error, nearest, labels)
        if (nearest == labels).all() or nearest.tobytes() in seen:
            break
        labels = nearest
    return best, best_score
