"""Choosing a candidate on rows that are partly held out: for one learner, or for rows that were pooled.

This is the arithmetic of the paper's Select. The same function serves a learner's own rows and the pooled
rows of a coterie, with the same split of the rows, so that the two are compared on equal terms.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgWarning
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from coterie._seeds import seeded_copy

Array = NDArray[Any]


@dataclass(frozen=True)
class FitJob:
    """Rows, how they are split, and the candidates to choose from.

    Parameters
    ----------
    owner : str
        Who the rows belong to; named in errors.
    X : ndarray of shape (n, p)
        Predictors.
    y : ndarray of shape (n,)
        Response.
    folds : ndarray of shape (n,)
        The fold that holds each row out; -1 for rows that are never held out.
    training : ndarray of bool, shape (F, n)
        The rows that each fold trains on.
    scored : tuple of int
        The folds on which candidates compete.
    candidates : dict of str to estimator
        Unfitted.
    seed : int
        For candidates whose ``random_state`` is not set.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.
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


@dataclass(frozen=True)
class Fitted:
    """The chosen candidate and what is known of it.

    Parameters
    ----------
    name : str
        The chosen candidate.
    model : estimator
        It, fitted on all rows.
    error : float
        Its mean squared error on all rows.
    held_out_error : float
        Its mean squared error on the scored folds, where it had not seen the rows.
    candidate_errors : dict of str to float
        The latter for every candidate.
    residuals : ndarray of shape (n,)
        Honest residuals.
    fold_models : tuple of estimators
        The models behind them.
    failures : dict of str to str
        Candidates that were dropped, and why.
    """

    name: str
    model: Any
    error: float
    held_out_error: float
    candidate_errors: dict[str, float]
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
    """Fit a model, with weights of the rows where it takes them.

    Parameters
    ----------
    model : estimator
        Unfitted.
    X : ndarray of shape (n, p)
        Predictors.
    y : ndarray of shape (n,)
        Response.
    weights : ndarray of shape (n,) or None, default=None
        Sample weights.

    Returns
    -------
    estimator
        What ``fit`` returns; the model itself where ``fit`` returns nothing, as some regressors do.
    """
    name = None if weights is None else weight_parameter(model)
    fitted = model.fit(X, y) if name is None else model.fit(X, y, **{name: weights})
    return model if fitted is None else fitted


def fit_candidate(candidate: Any, job: FitJob, rows: Array) -> Any:
    """Fit a fresh copy of a candidate on some rows."""
    weights = None if job.weights is None else job.weights[rows]
    return fit_model(seeded_copy(candidate, job.seed), job.X[rows], job.y[rows], weights)


def _residuals(model: Any, job: FitJob, rows: Array) -> Array:
    prediction = np.asarray(model.predict(job.X[rows]), dtype=float)
    if prediction.shape not in ((len(rows),), (len(rows), 1)):
        raise ValueError(f"predicted the shape {prediction.shape} for {len(rows)} rows")
    if not np.isfinite(prediction).all():
        raise ValueError("predicted values that are not finite")
    residuals: Array = job.y[rows] - prediction.reshape(-1)
    return residuals


def _mean_square(residuals: Array, job: FitJob, rows: Array) -> float:
    weights = None if job.weights is None else job.weights[rows]
    return float(np.average(residuals**2, weights=weights))


def _fold_fit(candidate: BaseEstimator, job: FitJob, fold: int) -> tuple[Any, Array, Array]:
    held_out = np.flatnonzero(job.folds == fold)
    model = fit_candidate(candidate, job, np.flatnonzero(job.training[fold]))
    return model, held_out, _residuals(model, job, held_out)


def choose_candidate(job: FitJob) -> Fitted:
    """Let the candidates compete on held-out rows and refit the winner on all rows.

    Parameters
    ----------
    job : FitJob
        What to fit.

    Returns
    -------
    Fitted
        The winner. A candidate that raises or predicts values that are not finite is dropped.

    Raises
    ------
    ValueError
        When no candidate is left, naming the owner and the causes.
    """
    failures: dict[str, str] = {}
    fits: dict[str, dict[int, tuple[Any, Array, Array]]] = {}
    errors: dict[str, float] = {}
    for name, candidate in job.candidates.items():
        try:
            fits[name] = {fold: _fold_fit(candidate, job, fold) for fold in job.scored}
            errors[name] = float(np.mean([_mean_square(r, job, rows) for _, rows, r in fits[name].values()]))
        except Exception as cause:  # any candidate may fail in any way
            failures[name] = f"{type(cause).__name__}: {cause}"
    everything = np.arange(len(job.y))
    for name in sorted(errors, key=errors.__getitem__):
        candidate, mine = job.candidates[name], fits[name]
        try:
            for fold in range(len(job.training)):
                if fold not in mine:
                    mine[fold] = _fold_fit(candidate, job, fold)
            model = fit_candidate(candidate, job, everything)
            fitted = _residuals(model, job, everything)
        except Exception as cause:
            failures[name] = f"{type(cause).__name__}: {cause}"
            continue
        residuals = np.full(len(job.y), np.nan)
        for _, rows, values in mine.values():
            residuals[rows] = values
        return Fitted(
            name=name,
            model=model,
            error=_mean_square(fitted, job, everything),
            held_out_error=errors[name],
            candidate_errors={n: e for n, e in errors.items() if n not in failures},
            residuals=residuals,
            fold_models=tuple(mine[fold][0] for fold in sorted(mine)),
            failures=failures,
        )
    causes = "; ".join(f"{name}: {cause}" for name, cause in failures.items())
    raise ValueError(
        f"No candidate could be fitted for {job.owner} ({causes}). Give it other candidates or more rows."
    )
