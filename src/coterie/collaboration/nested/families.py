"""Which candidates are linear by least squares, and a fit that cannot fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import (
    HuberRegressor,
    LinearRegression,
    QuantileRegressor,
    SGDRegressor,
    TheilSenRegressor,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVR

from coterie._arrays import Array
from coterie._seeds import seeded_copy
from coterie.kernels.affine import AFFINE_PREDICTIONS
from coterie.method.fitting import fit_model

# Affine, but not by least squares: fits from sums of squares and products would not do what they do.
_OTHER_LOSSES = (HuberRegressor, LinearSVR, QuantileRegressor, SGDRegressor, TheilSenRegressor)
SCALERS = (StandardScaler, RobustScaler, MinMaxScaler, MaxAbsScaler)


@dataclass(frozen=True)
class ModelFit:
    """A candidate and its rows; ``otherwise``, or else their mean, stands in where the candidate fails."""

    candidate: BaseEstimator
    X: Array
    y: Array
    weights: Array | None
    seed: int
    otherwise: Any = None


def fit_or_replace(job: ModelFit) -> Any:
    """Return the fitted candidate; where fitting fails, the model ``otherwise`` or the mean response.

    A failure on few rows must not stop the fit of all learners; a poor substitute gets little weight.
    """
    try:
        return fit_model(seeded_copy(job.candidate, job.seed), job.X, job.y, job.weights)
    except Exception:  # a family may fail on few rows: what stands in weighs what it deserves
        if job.otherwise is not None:
            return job.otherwise
        model = LinearRegression()
        model.coef_, model.intercept_ = np.zeros(job.X.shape[1]), float(job.y.mean())
        model.n_features_in_ = job.X.shape[1]
        return model


def by_least_squares(candidate: Any) -> bool:
    """Tell whether an unfitted candidate is linear by least squares, with or without a penalty.

    Scalers before it, in a pipeline or for the response, are allowed. Where all candidates are of this
    kind, the user wants lines, and no trees take part.
    """
    if type(candidate) is Pipeline:
        steps = [step for _, step in candidate.steps[:-1]]
        only_scalers = all(step in (None, "passthrough") or type(step) in SCALERS for step in steps)
        return only_scalers and by_least_squares(candidate.steps[-1][1])
    if type(candidate) is TransformedTargetRegressor:
        inner_regressor = LinearRegression() if candidate.regressor is None else candidate.regressor
        return type(candidate.transformer) in SCALERS and by_least_squares(inner_regressor)
    is_affine = getattr(type(candidate), "predict", None) in AFFINE_PREDICTIONS
    if not is_affine or isinstance(candidate, _OTHER_LOSSES):
        return False
    return not getattr(candidate, "positive", False) and bool(getattr(candidate, "fit_intercept", True))
