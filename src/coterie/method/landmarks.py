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

    def _positions_among_landmarks(self) -> Array:
        """Return each learner's position among the m landmarks, of shape (L,); -1: it is no landmark."""
        positions = np.full(self.n_learners, -1)
        positions[self.marks] = np.arange(len(self.marks))
        return positions

    def tile(self, models: Any, learners: Any) -> Array:
        """Return the losses of some models on some learners, given by slices or positions.

        The tile has shape (models, learners) and is NaN where neither the model's owner nor the learner is a
        landmark.
        """
        all_learners, landmark_of = np.arange(self.n_learners), self._positions_among_landmarks()
        rows, columns = all_learners[models], all_learners[learners]
        tile = np.full((len(rows), len(columns)), np.nan)
        marked = np.flatnonzero(landmark_of[columns] >= 0)
        tile[:, marked] = self.to_marks[rows][:, landmark_of[columns[marked]]]
        marked = np.flatnonzero(landmark_of[rows] >= 0)
        tile[marked] = self.from_marks[landmark_of[rows[marked]]][:, columns]
        return tile

    def take(self, positions: Array) -> LandmarkTiles:
        """Return the losses among some of the learners, in the order given.

        ``positions`` says which learners; landmarks that are not among them are lost.
        """
        landmark_of = self._positions_among_landmarks()[positions]
        # Positions count among the learners taken from here on.
        new_marks = np.flatnonzero(landmark_of >= 0)
        kept_landmarks = landmark_of[new_marks]
        return LandmarkTiles(
            new_marks,
            self.from_marks[kept_landmarks][:, positions],
            self.to_marks[positions][:, kept_landmarks],
        )


@dataclass(frozen=True)
class _LandmarkJob:
    """One learner's model, the rows of all landmarks, its own rows, and the bounds of their losses."""

    model: Any
    marked: Learners = field(repr=False)
    own: Learners = field(repr=False)
    clips: Array | None = field(repr=False)
    own_clip: Array | None = field(repr=False)


def _losses_on_landmarks(job: _LandmarkJob) -> Array:
    """Return the m losses of one model on the landmarks, followed by the loss on its own learner."""
    losses_on_landmarks = model_losses(job.model, job.marked, job.clips)
    return np.append(losses_on_landmarks, model_losses(job.model, job.own, job.own_clip))


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
    """Choose landmark learners, and return the losses between them and everybody, in both directions.

    Landmarks stand for everybody where there are too many pairs of learners to evaluate all models on all
    rows. Returns the losses with ``count`` landmarks, and each model's loss on its own learner, (L,).
    ``clips`` (L,) bounds the losses of each learner's rows; None: no bound. Landmarks are drawn with
    probabilities that grow with the loss under the best landmark so far, as k-means++ draws centres, so that
    they differ from each other.
    """
    generator = np.random.default_rng(seed)
    n_learners = len(learners)
    marks = np.empty(0, dtype=int)
    losses_from_marks = np.empty((0, n_learners))
    distance_to_nearest = np.ones(n_learners)
    while len(marks) < count:
        # Those whom the landmarks predict perfectly come last, but they may come.
        probabilities = distance_to_nearest + 1e-9
        probabilities[marks] = 0.0
        batch_size = min(math.isqrt(count), count - len(marks))
        batch = generator.choice(n_learners, batch_size, replace=False, p=probabilities / probabilities.sum())
        batch_losses = loss_matrix([selection.models[i] for i in batch.tolist()], learners, engine, clips)
        marks, losses_from_marks = np.append(marks, batch), np.vstack([losses_from_marks, batch_losses])
        with np.errstate(invalid="ignore"):
            excess = np.abs(batch_losses - selection.errors) / selection.noise
        # Saturating: otherwise the wildest learners would be all the landmarks.
        nearest_in_batch = np.where(np.isfinite(excess), excess / (1 + excess), 1.0).min(axis=0)
        distance_to_nearest = np.minimum(distance_to_nearest, nearest_in_batch)
    # Ascending, as `LandmarkTiles.take` gives them out, too.
    order = np.argsort(marks)
    marks, losses_from_marks = marks[order], losses_from_marks[order]
    landmark_learners = learners.take(marks)
    jobs = [
        _LandmarkJob(
            model=selection.models[j],
            marked=landmark_learners,
            own=learners.take(np.array([j])),
            clips=None if clips is None else clips[marks],
            own_clip=None if clips is None else clips[[j]],
        )
        for j in range(n_learners)
    ]
    losses_to_marks_and_own = np.array(engine.map(_losses_on_landmarks, jobs))
    return LandmarkTiles(marks, losses_from_marks, losses_to_marks_and_own[:, :-1]), losses_to_marks_and_own[
        :, -1
    ]
