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

    ``model`` was fitted on all rows, and ``error`` is its mean loss there; ``held_out_error`` is that on the
    scored folds, where it had not seen the rows, ``candidate_errors`` the same for every candidate and
    ``candidate_losses`` the losses of rows (n,) behind them, where there was a choice.
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
    """Silence what a search over many small fits is bound to say: it is the losers that complain."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", LinAlgWarning)
        warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"sklearn|numpy|scipy")
        warnings.filterwarnings("ignore", message=".*R\\^2 score is not well-defined.*")
        # Rows of one learner may hold nearly as many classes as there are rows.
        warnings.filterwarnings("ignore", message="The number of unique classes is greater than")
        yield


def weight_parameter(estimator: Any) -> str | None:
    """Return the name under which an estimator's ``fit`` takes sample weights, or None."""
    if isinstance(estimator, Pipeline):
        name, last = estimator.steps[-1]
        inner = weight_parameter(last)
        return None if inner is None else f"{name}__{inner}"
    if isinstance(estimator, TransformedTargetRegressor):
        inside = LinearRegression() if estimator.regressor is None else estimator.regressor
        return weight_parameter(inside)
    if isinstance(estimator, (GridSearchCV, RandomizedSearchCV)):
        return weight_parameter(estimator.estimator)
    return "sample_weight" if has_fit_parameter(estimator, "sample_weight") else None


def fit_model(model: Any, X: Array, y: Array, weights: Array | None = None) -> Any:
    """Fit a model to a target of shape (n,), with weights of the rows where it takes them.

    Returns what ``fit`` returns; the model itself where ``fit`` returns nothing, as some regressors do.
    """
    if y.dtype.kind == "i" and (y == y[0]).all():
        # Numbers of classes, and there is one: hardly a classifier would take these rows.
        return OneClass().fit(X, y)
    name = None if weights is None else weight_parameter(model)
    fitted = model.fit(X, y) if name is None else model.fit(X, y, **{name: weights})
    return model if fitted is None else fitted


def fit_candidate(candidate: Any, job: FitJob, rows: Array) -> Any:
    """Fit a fresh copy of a candidate on some rows."""
    weights = None if job.weights is None else job.weights[rows]
    target = job.loss.target(job.y[rows])
    return fit_model(seeded_copy(candidate, job.seed), job.X[rows], target, weights)


def _residuals(model: Any, job: FitJob, rows: Array) -> Array:
    """Return the residuals (n, C) of a model on some rows; refuse predictions that are not finite."""
    prediction = job.loss.predict(model, job.X[rows])
    if not np.isfinite(prediction).all():
        raise ValueError("predicted values that are not finite")
    return job.y[rows] - prediction


def _mean_loss(residuals: Array, job: FitJob, rows: Array) -> float:
    return job.loss.mean(residuals, None if job.weights is None else job.weights[rows])


def _fold_fit(candidate: BaseEstimator, job: FitJob, fold: int) -> tuple[Any, Array, Array]:
    """Fit a candidate without a fold; return it, the fold's rows and the residuals there."""
    held_out = np.flatnonzero(job.folds == fold)
    model = fit_candidate(candidate, job, np.flatnonzero(job.training[fold]))
    return model, held_out, _residuals(model, job, held_out)


def _losses_by_row(scored: Iterable[tuple[Array, Array]], job: FitJob) -> Array:
    """Return the loss of each row, NaN where no fold has scored it."""
    losses = np.full(len(job.y), np.nan)
    for rows, residuals in scored:
        losses[rows] = job.loss.by_row(residuals)
    return losses


def choose_candidate(job: FitJob) -> Fitted:
    """Let the candidates compete on held-out rows and refit the winner on all rows.

    A candidate that raises or predicts values that are not finite is dropped. When none is left, the error
    names the owner and the causes.
    """
    failures: dict[str, str] = {}
    fits: dict[str, dict[int, tuple[Any, Array, Array]]] = {}
    errors: dict[str, float] = {}
    for name, candidate in job.candidates.items():
        try:
            fits[name] = {fold: _fold_fit(candidate, job, fold) for fold in job.scored}
            errors[name] = float(np.mean([_mean_loss(r, job, rows) for _, rows, r in fits[name].values()]))
        except Exception as cause:  # any candidate may fail in any way
            failures[name] = f"{type(cause).__name__}: {cause}"
    everything = np.arange(len(job.y))
    losses = {}
    if len(errors) > 1:
        scored = {name: [fits[name][fold][1:] for fold in job.scored] for name in errors}
        losses = {name: _losses_by_row(parts, job) for name, parts in scored.items()}
    for name in sorted(errors, key=errors.__getitem__):
        candidate, own_fits = job.candidates[name], fits[name]
        try:
            for fold in range(len(job.training)):
                if fold not in own_fits:
                    own_fits[fold] = _fold_fit(candidate, job, fold)
            model = fit_candidate(candidate, job, everything)
            fitted = _residuals(model, job, everything)
        except Exception as cause:
            failures[name] = f"{type(cause).__name__}: {cause}"
            continue
        residuals = np.full(job.y.shape, np.nan)
        for _, rows, values in own_fits.values():
            residuals[rows] = values
        return Fitted(
            name=name,
            model=model,
            error=_mean_loss(fitted, job, everything),
            held_out_error=errors[name],
            candidate_errors={n: e for n, e in errors.items() if n not in failures},
            candidate_losses={n: rows for n, rows in losses.items() if n not in failures},
            residuals=residuals,
            fold_models=tuple(own_fits[fold][0] for fold in sorted(own_fits)),
            failures=failures,
        )
    causes = "; ".join(f"{name}: {cause}" for name, cause in failures.items())
    raise ValueError(
        f"No candidate could be fitted for {job.owner} ({causes}). Give it other candidates or more rows."
    )
