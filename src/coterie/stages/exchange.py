"""Exchange: everybody's model on everybody's rows.

E[i, j] is the mean squared error of learner i's model on learner j's rows. Affine models meet second
moments in one matrix product and their losses are computed tile by tile when asked for; every other model
predicts once on blocks of concatenated rows.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from coterie._options import listed
from coterie._rows import gather_learners
from coterie.engines import counted, resolve_engine
from coterie.kernels.affine import AffineLosses, affine_matrix
from coterie.kernels.losses import loss_matrix
from coterie.kernels.tiles import AffineTiles, DenseTiles
from coterie.records import Exchange, LossTiles, Selection


def cross_evaluate(
    selection: Selection,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    robust: bool = False,
    sample_weight: Any = None,
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
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows.
    engine : {None, "threads"} or an object with ``map``, default=None
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
    source: LossTiles
    if affine.all() and not robust:
        moments = AffineLosses(vectors, learners)
        source = AffineTiles(moments)
        errors, finite = chosen.errors, moments.finite
    else:
        clips = chosen.clips if robust else None
        runner = counted(resolve_engine(engine, n_jobs), "Exchange")
        losses = loss_matrix(chosen.models, learners, runner, clips)
        finite = np.asarray(np.isfinite(losses).all(axis=1))
        errors = losses.diagonal().copy()
        source = DenseTiles(losses)
    if not finite.all():
        warnings.warn(
            f"The model of learner {listed(learners.ids[~finite])} gave losses that are not finite; "
            "it is kept apart from the clusters.",
            UserWarning,
            stacklevel=2,
        )
    exchange = Exchange(learners.ids, source, errors, chosen.noise, ~finite)
    return exchange.take(learners.appearance)
