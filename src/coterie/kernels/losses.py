"""Losses of many models on many learners: affine ones by moments, the rest by blocks of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.engines import Engine
from coterie.kernels.affine import AffineLosses, Frame, affine_matrix
from coterie.kernels.blocks import model_losses, predict_rows
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class _LossJob:
    model: Any
    learners: Learners = field(repr=False)
    clips: Array | None = field(repr=False)


def _losses_of(job: _LossJob) -> Array:
    return model_losses(job.model, job.learners, job.clips)


def loss_matrix(
    models: Sequence[Any], learners: Learners, engine: Engine, clips: Array | None = None
) -> Array:
    """Return the losses of shape (M, L) of M models on L learners, not finite where a model failed.

    ``clips`` of shape (L,) bounds the losses of rows; with bounds there is no closed form.
    """
    vectors, affine = affine_matrix(models, learners.n_features)
    if clips is not None:
        affine = np.zeros_like(affine)
    losses = np.empty((len(models), len(learners)))
    closed = np.flatnonzero(affine)
    if len(closed):
        moments = AffineLosses(vectors[closed], learners)
        losses[closed] = moments.among(np.arange(len(closed)), np.arange(len(learners)))
    rest = np.flatnonzero(~affine)
    jobs = [_LossJob(models[i], learners, clips) for i in rest.tolist()]
    if jobs:
        losses[rest] = engine.map(_losses_of, jobs)
    return losses


def own_errors(models: Sequence[Any], learners: Learners) -> Array:
    """Return the mean squared residual of each model on its own learner's rows, which count by weight."""
    vectors, affine = affine_matrix(models, learners.n_features)
    frame = Frame(learners)
    inside = frame.vectors(np.where(affine[:, None], vectors, 0.0))
    linear = np.einsum("nd,nd->n", frame.rows(learners.X), inside[learners.owner])
    predictions = linear[:, None] + frame.middle
    for j in np.flatnonzero(~affine).tolist():
        span = learners.span(j)
        predictions[span] = predict_rows(models[j], learners.X[span], learners.loss)
    return learners.mean_losses(predictions - learners.y)
