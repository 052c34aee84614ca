"""Losses between everybody and a few landmark learners: 2 L m evaluations in place of L^2.

Landmarks are chosen as k-means++ chooses centres, on the losses seen so far: the more the models of the
landmarks lose on a learner, in units of its noise, the likelier it becomes one itself. They come in batches,
each landmark's model predicts everybody's rows as it is chosen, and at the end everybody's model predicts the
landmarks' rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import check_count, check_option
from coterie.engines import Engine
from coterie.kernels.limits import LIMITS
from coterie.kernels.losses import loss_matrix, model_losses
from coterie.records import Selection
from coterie.rows.learners import Learners

# As many as tell 20 clusters apart, and for 5,000 learners a twentieth of all evaluations.
AUTO_LANDMARKS = 120


@dataclass(frozen=True)
class LandmarkTiles:
    """Losses that are known where a landmark is the model's owner or the learner, NaN elsewhere.

    ``marks`` of shape (m,) are the landmarks' positions, ``from_marks`` (m, L) the losses of their models on
    everybody, ``to_marks`` (L, m) those of everybody's models on them.
    """

    marks: Array
    from_marks: Array = field(repr=False)
    to_marks: Array = field(repr=False)

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.to_marks)

    def _place(self) -> Array:
        """Return the position of each learner among the landmarks, -1 for others."""
        index = np.full(self.n_learners, -1)
        index[self.marks] = np.arange(len(self.marks))
        return index

    def tile(self, models: Any, learners: Any) -> Array:
        """Return the losses of some models on some learners, given by slices or positions."""
        all_learners, index = np.arange(self.n_learners), self._place()
        rows, columns = all_learners[models], all_learners[learners]
        tile = np.full((len(rows), len(columns)), np.nan)
        marked = np.flatnonzero(index[columns] >= 0)
        tile[:, marked] = self.to_marks[rows][:, index[columns[marked]]]
        marked = np.flatnonzero(index[rows] >= 0)
        tile[marked] = self.from_marks[index[rows[marked]]][:, columns]
        return tile

    def take(self, positions: Array) -> LandmarkTiles:
        """Return the losses among some of the learners, in the order given."""
        index = self._place()[positions]
        marks = np.flatnonzero(index >= 0)
        kept = index[marks]
        return LandmarkTiles(marks, self.from_marks[kept][:, positions], self.to_marks[positions][:, kept])


@dataclass(frozen=True)
class _MeetJob:
    model: Any
    marked: Learners = field(repr=False)
    own: Learners = field(repr=False)
    clips: Array | None = field(repr=False)
    own_clip: Array | None = field(repr=False)


def _meet(job: _MeetJob) -> Array:
    """Return the losses of a model on the landmarks, and behind them that on its own learner."""
    theirs = model_losses(job.model, job.marked, job.clips)
    return np.append(theirs, model_losses(job.model, job.own, job.own_clip))


def how_many_landmarks(landmarks: Any, n_learners: int) -> int | None:
    """Return the number of landmarks that an option means; None: all losses are computed.

    It is less than the number of learners. ``"auto"`` means 120 where there are more than 1,000 learners.
    """
    if landmarks is None:
        return None
    if isinstance(landmarks, str):
        check_option(landmarks, "landmarks", ("auto", None))
        return AUTO_LANDMARKS if n_learners > LIMITS.many else None
    count = check_count(landmarks, "landmarks", least=2)
    return count if count < n_learners else None


def landmark_losses(
    selection: Selection,
    learners: Learners,
    count: int,
    engine: Engine,
    *,
    clips: Array | None = None,
    seed: int = 0,
) -> tuple[LandmarkTiles, Array]:
    """Choose landmarks and evaluate everybody against them, both ways.

    ``clips`` of shape (L,) bounds the losses of rows. Returns the losses, and each model's loss on its own
    learner, of shape (L,).
    """
    generator = np.random.default_rng(seed)
    n = len(learners)
    marks = np.empty(0, dtype=int)
    rows = np.empty((0, n))
    unlike = np.ones(n)
    while len(marks) < count:
        # Those whom the landmarks predict perfectly come last, but they may come.
        probabilities = unlike + 1e-9
        probabilities[marks] = 0.0
        size = min(math.isqrt(count), count - len(marks))
        batch = generator.choice(n, size, replace=False, p=probabilities / probabilities.sum())
        fresh = loss_matrix([selection.models[i] for i in batch.tolist()], learners, engine, clips)
        marks, rows = np.append(marks, batch), np.vstack([rows, fresh])
        with np.errstate(invalid="ignore"):
            excess = np.abs(fresh - selection.errors) / selection.noise
        # Saturating: otherwise the wildest learners would be all the landmarks.
        nearest = np.where(np.isfinite(excess), excess / (1 + excess), 1.0).min(axis=0)
        unlike = np.minimum(unlike, nearest)
    order = np.argsort(marks)
    marks, rows = marks[order], rows[order]
    marked = learners.take(marks)
    jobs = [
        _MeetJob(
            selection.models[j],
            marked,
            learners.take(np.array([j])),
            None if clips is None else clips[marks],
            None if clips is None else clips[[j]],
        )
        for j in range(n)
    ]
    met = np.array(engine.map(_meet, jobs))
    return LandmarkTiles(marks, rows, met[:, :-1]), met[:, -1]
