"""Choosing a candidate on rows that are partly held out: for one learner, or for rows that were pooled.

This is the arithmetic of the paper's Select. The same function serves a learner's own rows and the pooled
rows of a coterie, with the same split of the rows, so that the two are compared on equal terms.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from coterie._arrays import Array
from coterie._seeds import seeded_copy
from coterie.loss import SQUARED_ERROR, Loss
from coterie.models.classes import OneClass


@dataclass(frozen=True)
class FitJob:
    """Rows, how they are split, and the candidates to choose from.

    ``owner`` is named in errors. ``X`` has the shape (n, p), ``y`` (n, C). ``folds`` of shape (n,) says which
    fold holds each row out, -1 for rows that none does; ``training`` of shape (F, n) which rows each fold
    trains on; ``scored`` on which folds candidates compete. ``seed`` is for candidates whose
    ``random_state`` is not set.
    """

    owner: str
    X: Array = field(repr=False)
    y: Array = field(repr=False)
    folds: Array = field(repr=False)
    training: Array = field(repr=False)
    scored: tuple[int, ...]
    candidates: dict[str, BaseEstimator] = field(repr=False)
    seed: int
    weights: Array | None = field(default=None, repr=False)
    loss: Loss = SQUARED_ERROR


@dataclass(frozen=True)
class Fitted:
    """The chosen candidate and what is known of it.

    ``model`` was fitted on all n rows, and ``error`` is its mean loss there. ``held_out_error`` is the mean
    loss on the scored folds, by models that were not fitted on these rows; ``candidate_errors`` has the same
    for every candidate. Where there was a choice, ``candidate_losses`` has the losses of rows (n,) behind
    these errors.

    ``residuals`` of shape (n, C) are out of fold, by ``fold_models``. ``failures`` names the candidates that
    were dropped, and why.
    """

    name: str
    model: Any
    error: float
    held_out_error: float
    candidate_errors: dict[str, float]
    candidate_losses: dict[str, Array]
    residuals: Array
    fold_models: tuple[Any, ...]
    failures: dict[str, str]


@contextmanager
def quiet_fits() -> Iterator[None]:
    """Silence the warnings of many small fits, inside a ``with`` block.

    Select fits every candidate on halves of few rows. Those that warn of no convergence or of an
    ill-conditioned matrix mostly lose the competition, so that their warnings tell the user nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", LinAlgWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"sklearn|numpy|scipy")
        warnings.filterwarnings("ignore", message=".*R\\^2 score is not well-defined.*")
        # Rows of one learner may hold nearly as many classes as there are rows.
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than")
        yield


def weight_parameter(estimator: Any) -> str | None:
    """Return the name under which an estimator's ``fit`` takes sample weights, or None if it takes none.

    A pipeline passes weights on as ``<last step>__sample_weight``; a transformed target and a search over
    parameters take what their inner estimator takes.
    """
    if isinstance(estimator, Pipeline):
        name, last_step = estimator.steps[-1]
        inner = weight_parameter(last_step)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(estimator, TransformedTargetRegressor):
        inside = LinearRegression() if estimator.regressor is None else estimator.regressor
        return weight_parameter(inside)
    if isinstance(estimator, (GridSearchCV, RandomizedSearchCV)):
        return weight_parameter(estimator.estimator)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def fit_model(model: Any, X: Array, y: Array, weights: Array | None = None) -> Any:
    """Fit a model to rows X (n, p) and a target y (n,), with weights (n,) where the model takes them.

    Returns what ``fit`` returns, or the model itself where ``fit`` returns nothing, as some regressors do. A
    target of integer class codes that are all the same gets a `OneClass` model instead.
    """
    if y.dtype.kind == "i" and (y == y[0]).all():
        # Integers are codes of classes. Most classifiers refuse rows of a single class.
        return OneClass().fit(X, y)
    weight_name = None if weights is None else weight_parameter(model)
    fitted = model.fit(X, y) if weight_name is None else model.fit(X, y, **{weight_name: weights})
    return model if fitted is None else fitted


def fit_candidate(candidate: Any, job: FitJob, rows: Array) -> Any:
    """Fit a fresh copy of a candidate on some of the job's rows, given by positions or a mask.

    The copy is seeded with the job's seed where the candidate's ``random_state`` is not set.
    """
    weights = None if job.weights is None else job.weights[rows]
    target = job.loss.target(job.y[rows])
    return fit_model(seeded_copy(candidate, job.seed), job.X[rows], target, weights)


def _residuals(model: Any, job: FitJob, rows: Array) -> Array:
    """Return the residuals (rows, C) of a fitted model on some of the job's rows.

    Raises an error if a prediction is not finite, so that `choose_candidate` drops the candidate.
    """
    prediction = job.loss.predict(model, job.X[rows])
    if not np.isfinite(prediction).all():
        raise ValueError("predicted values that are not finite")
    return job.y[rows] - prediction


def _mean_loss(residuals: Array, job: FitJob, rows: Array) -> float:
    """Return the mean loss of residuals (rows, C) on some of the job's rows, by the rows' weights."""
    return job.loss.mean(residuals, None if job.weights is None else job.weights[rows])


def _fold_fit(candidate: BaseEstimator, job: FitJob, fold: int) -> tuple[Any, Array, Array]:
    """Fit a candidate on the training rows of one fold and predict the rows that the fold holds out.

    Returns the fitted model, the positions of the held-out rows, and the residuals there, of shape (rows, C).
    """
    held_out_rows = np.flatnonzero(job.folds == fold)
    model = fit_candidate(candidate, job, np.flatnonzero(job.training[fold]))
    return model, held_out_rows, _residuals(model, job, held_out_rows)


def _losses_by_row(rows_and_residuals: Iterable[tuple[Array, Array]], job: FitJob) -> Array:
    """Return the out-of-fold loss of each of the job's n rows, NaN where no scored fold holds it out.

    ``rows_and_residuals`` yields, for each fold, the positions of its held-out rows and the residuals there.
    """
    losses = np.full(len(job.y), np.nan)
    for rows, residuals in rows_and_residuals:
        losses[rows] = job.loss.by_row(residuals)
    return losses


def choose_candidate(job: FitJob) -> Fitted:
    """Let the candidates compete on held-out rows, and refit the winner on all rows.

    The candidate with the lowest mean loss over the scored folds wins. For the winner the remaining folds are
    fitted, too, so that each row that some fold holds out gets an out-of-fold residual.

    A candidate that raises an error or predicts values that are not finite is dropped, and the next best one
    is taken. When none is left, a ValueError names the owner of the rows and the causes.
    """
    failures: dict[str, str] = {}
    fits_by_candidate: dict[str, dict[int, tuple[Any, Array, Array]]] = {}
    held_out_errors: dict[str, float] = {}
    for name, candidate in job.candidates.items():
        try:
            fits_by_candidate[name] = {fold: _fold_fit(candidate, job, fold) for fold in job.scored}
            held_out_errors[name] = float(
                np.mean([_mean_loss(r, job, rows) for _, rows, r in fits_by_candidate[name].values()])
            )
        except Exception as cause:  # any candidate may fail in any way
            failures[name] = f"{type(cause).__name__}: {cause}"
    all_rows = np.arange(len(job.y))
    losses_by_candidate = {}
    if len(held_out_errors) > 1:
        held_out_parts = {
            name: [fits_by_candidate[name][fold][1:] for fold in job.scored] for name in held_out_errors
        }
        losses_by_candidate = {
            name: _losses_by_row(rows_and_residuals, job)
            for name, rows_and_residuals in held_out_parts.items()
        }
    # From the best candidate on: the first that can also be fitted on the other folds and on all rows.
    for name in sorted(held_out_errors, key=held_out_errors.__getitem__):
        candidate, fits_by_fold = job.candidates[name], fits_by_candidate[name]
        try:
            for fold in range(len(job.training)):
                if fold not in fits_by_fold:
                    fits_by_fold[fold] = _fold_fit(candidate, job, fold)
            model = fit_candidate(candidate, job, all_rows)
            residuals_on_training = _residuals(model, job, all_rows)
        except Exception as cause:
            failures[name] = f"{type(cause).__name__}: {cause}"
            continue
        residuals = np.full(job.y.shape, np.nan)
        for _, rows, fold_residuals in fits_by_fold.values():
            residuals[rows] = fold_residuals
        return Fitted(
            name=name,
            model=model,
            error=_mean_loss(residuals_on_training, job, all_rows),
            held_out_error=held_out_errors[name],
            candidate_errors={n: e for n, e in held_out_errors.items() if n not in failures},
            candidate_losses={n: rows for n, rows in losses_by_candidate.items() if n not in failures},
            residuals=residuals,
            fold_models=tuple(fits_by_fold[fold][0] for fold in sorted(fits_by_fold)),
            failures=failures,
        )
    causes = "; ".join(f"{name}: {cause}" for name, cause in failures.items())
    raise ValueError(
        f"No candidate could be fitted for {job.owner} ({causes}). Give it other candidates or more rows."
    )
