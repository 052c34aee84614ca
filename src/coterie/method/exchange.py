"""Exchange: everybody's model on everybody's rows.

E[i, j] is the mean squared error of learner i's model on learner j's rows. Affine models meet second
moments in one matrix product and their losses are computed tile by tile when needed; every other model
predicts once on blocks of concatenated rows. A matrix of losses that somebody else computed is an exchange,
too.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from coterie._options import listed
from coterie._seeds import as_entropy
from coterie.engines import counted, resolve_engine
from coterie.kernels.affine import AffineLosses, affine_matrix
from coterie.kernels.losses import DenseTiles, loss_matrix
from coterie.method.landmarks import how_many_landmarks, landmark_losses
from coterie.records import Exchange, LossTiles, Selection
from coterie.rows.learners import gather_learners
from coterie.rows.tables import as_table


def exchange_from_losses(losses: Any, learner_ids: Any = None) -> Exchange:
    """Return the exchange of a precomputed matrix of losses; its diagonal gives errors and noise levels.

    ``losses`` of shape (L, L) is an array or a table; entry (i, j) is the mean loss of learner i's model on
    learner j's rows. ``learner_ids`` default to the columns of a table, else to 0 to L - 1. A learner whose
    model has a loss that is not finite is marked as isolated.
    """
    table = as_table(losses)
    if learner_ids is None and table is not None:
        learner_ids = list(table.columns)
        model_names = getattr(losses, "index", None)
        if model_names is not None and set(model_names) == set(learner_ids):
            # pandas names the models too: their order need not be that of the learners.
            losses = losses.loc[learner_ids]
            table = as_table(losses)
        elif model_names is not None and not all(isinstance(name, int) for name in model_names):
            raise ValueError(
                "The index of the table of losses must name the same learners as its columns: "
                f"{listed(set(model_names) ^ set(learner_ids))} stands in one of them only."
            )
    matrix = np.asarray(losses if table is None else table.to_numpy(), dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(
            "A precomputed matrix of losses must be square, models by learners. "
            f"Got the shape {matrix.shape}."
        )
    ids = np.arange(len(matrix)) if learner_ids is None else np.asarray(learner_ids)
    if len(ids) != len(matrix):
        raise ValueError(f"{len(ids)} learner ids do not fit {len(matrix)} learners: pass one each.")
    if len(set(ids.tolist())) < len(ids):
        repeated_ids = [i for i in dict.fromkeys(ids.tolist()) if ids.tolist().count(i) > 1]
        raise ValueError(f"Learner ids must differ: {listed(repeated_ids)} stands for several learners.")
    if (matrix < 0).any():
        raise ValueError("Losses must not be negative: pass mean squared errors, not scores.")
    is_finite = np.isfinite(matrix).all(axis=1)
    if not is_finite.any():
        raise ValueError("Every row of the matrix of losses has entries that are not finite.")
    errors = matrix.diagonal().copy()
    return Exchange(
        learner_ids=ids,
        source=DenseTiles(matrix),
        errors=errors,
        noise=np.where(is_finite, errors, np.nan),
        isolated=~is_finite,
    )


def cross_evaluate(
    selection: Selection,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    robust: bool = False,
    landmarks: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    engine: Any = None,
    n_jobs: int | None = None,
) -> Exchange:
    """Evaluate every learner's model on every learner's rows.

    Parameters
    ----------
    selection : Selection
        What `select_models` returned for these rows.
    X : array-like or table of shape (N, p)
        Predictors of all learners.
    y : array-like of shape (N,)
        Response.
    groups : array-like of shape (N,), str, or None, default=None
        Learner id of each row, or the name of the column of X that holds it.
    robust : bool, default=False
        Clip squared residuals at nine squared robust standard deviations of the learner's noise.
    landmarks : int, "auto" or None, default=None
        Exchange with this number of landmark learners only, in both directions: 2 L m evaluations in place of
        L^2. Losses between others are NaN. ``"auto"``: 120 where there are more than
        1,000 learners. Affine models need none: their losses have a closed form.
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows.
    random_state : int, RandomState or None, default=0
        For the choice of landmarks.
    engine : {None, "threads", "dask"}, a Dask client or an object with ``map``, default=None
        Who runs the predictions.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Exchange
        Losses and dissimilarities, in order of the learners' first appearance.

    Examples
    --------
    >>> from coterie import cross_evaluate, select_models
    >>> from coterie.datasets import make_linear_learners
    >>> data = make_linear_learners(n_learners=4, n_truths=2, random_state=0)
    >>> rows = dict(y=data.y, groups=data.groups)
    >>> selection = select_models(data.X, **rows, candidates="linear")
    >>> exchange = cross_evaluate(selection, data.X, **rows)
    >>> bool(exchange.losses[0, 2] < exchange.losses[0, 1])
    True
    """
    learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="cross_evaluate")
    aligned_selection: Selection = selection.aligned_to(learners.ids)
    vectors, is_affine = affine_matrix(aligned_selection.models, learners.n_features)
    n_landmarks = how_many_landmarks(landmarks, len(learners))
    loss_tiles: LossTiles
    if is_affine.all() and not robust:
        loss_tiles = affine_losses = AffineLosses(vectors, learners)
        errors, is_finite = aligned_selection.errors, affine_losses.finite
    else:
        clips = aligned_selection.clips if robust and learners.loss.bounds is None else None
        runner = counted(resolve_engine(engine, n_jobs), "Exchange")
        if n_landmarks is not None:
            seed = as_entropy(random_state) % 2**32
            loss_tiles, errors = landmark_losses(
                aligned_selection, learners, n_landmarks, runner, clips=clips, seed=seed
            )
            is_finite = np.isfinite(loss_tiles.to_marks).all(axis=1) & np.isfinite(errors)
            is_finite[loss_tiles.marks] &= np.isfinite(loss_tiles.from_marks).all(axis=1)
        else:
            losses = loss_matrix(aligned_selection.models, learners, runner, clips)
            is_finite = np.asarray(np.isfinite(losses).all(axis=1))
            loss_tiles, errors = DenseTiles(losses), losses.diagonal().copy()
    if not is_finite.all():
        warnings.warn(
            f"The model of learner {listed(learners.ids[~is_finite])} gave losses that are not finite; "
            "it is kept apart from the clusters.",
            UserWarning,
            stacklevel=2,
        )
    exchange = Exchange(
        learner_ids=learners.ids,
        source=loss_tiles,
        errors=errors,
        noise=aligned_selection.noise,
        isolated=~is_finite,
    )
    return exchange.take(learners.appearance)
