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

    Row i is the model of learner i on everybody. ``learner_ids`` default to the columns of a table, else to 0
    to L - 1.
    """
    table = as_table(losses)
    if learner_ids is None and table is not None:
        learner_ids = list(table.columns)
        names = getattr(losses, "index", None)
        if names is not None and set(names) == set(learner_ids):
            # pandas names the models too: their order need not be that of the learners.
            losses = losses.loc[learner_ids]
            table = as_table(losses)
        elif names is not None and not all(isinstance(name, int) for name in names):
            raise ValueError(
                "The index of the table of losses must name the same learners as its columns: "
                f"{listed(set(names) ^ set(learner_ids))} stands in one of them only."
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
        twice = [i for i in dict.fromkeys(ids.tolist()) if ids.tolist().count(i) > 1]
        raise ValueError(f"Learner ids must differ: {listed(twice)} stands for several learners.")
    if (matrix < 0).any():
        raise ValueError("Losses must not be negative: pass mean squared errors, not scores.")
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.any():
        raise ValueError("Every row of the matrix of losses has entries that are not finite.")
    errors = matrix.diagonal().copy()
    return Exchange(ids, DenseTiles(matrix), errors, np.where(finite, errors, np.nan), ~finite)


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
    chosen: Selection = selection.aligned_to(learners.ids)
    vectors, affine = affine_matrix(chosen.models, learners.n_features)
    count = how_many_landmarks(landmarks, len(learners))
    source: LossTiles
    if affine.all() and not robust:
        source = moments = AffineLosses(vectors, learners)
        errors, finite = chosen.errors, moments.finite
    else:
        clips = chosen.clips if robust and learners.loss.bounds is None else None
        runner = counted(resolve_engine(engine, n_jobs), "Exchange")
        if count is not None:
            seed = as_entropy(random_state) % 2**32
            source, errors = landmark_losses(chosen, learners, count, runner, clips=clips, seed=seed)
            finite = np.isfinite(source.to_marks).all(axis=1) & np.isfinite(errors)
            finite[source.marks] &= np.isfinite(source.from_marks).all(axis=1)
        else:
            losses = loss_matrix(chosen.models, learners, runner, clips)
            finite = np.asarray(np.isfinite(losses).all(axis=1))
            source, errors = DenseTiles(losses), losses.diagonal().copy()
    if not finite.all():
        warnings.warn(
            f"The model of learner {listed(learners.ids[~finite])} gave losses that are not finite; "
            "it is kept apart from the clusters.",
            UserWarning,
            stacklevel=2,
        )
    exchange = Exchange(learners.ids, source, errors, chosen.noise, ~finite)
    return exchange.take(learners.appearance)
