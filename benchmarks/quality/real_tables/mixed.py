"""Trees and forests beside random effects of the learner. The response is standardised for all of them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from plain import FOREST
from sklearn.base import clone

FOLDS = 5
# GPBoost divides its gradients by the noise variance, so no single rate suits all tables.
RATES = (0.05, 0.01, 0.003)
LEAVES = (7, 31)
MOST_ROUNDS = 1000
PATIENCE = 20
# Seconds of processor after which GPBoost's cross-validation stops and takes the best that it has seen.
TUNING = 60.0
# Steps of the covariance parameters in one round with slopes; they go on from the round before.
STEPS = 5


@dataclass(frozen=True)
class PredictorScale:
    """Means and standard deviations of the training rows' predictors and response."""

    centre: np.ndarray
    spread: np.ndarray
    mean: float
    deviation: float

    @classmethod
    def of(cls, X: np.ndarray, y: np.ndarray) -> PredictorScale:
        """Return the scale of these rows; what does not vary keeps its unit."""
        spread, deviation = X.std(axis=0), float(y.std())
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0), float(y.mean()), deviation or 1.0)

    def predictors(self, X: np.ndarray) -> np.ndarray:
        """Return standardised predictors."""
        return (X - self.centre) / self.spread

    def response(self, y: np.ndarray) -> np.ndarray:
        """Return the standardised response."""
        return (y - self.mean) / self.deviation

    def back(self, y: np.ndarray) -> np.ndarray:
        """Return predictions in the response's own unit."""
        return self.mean + self.deviation * np.asarray(y)


@dataclass(frozen=True)
class GPBoosted:
    """A GPBoost model and the scale of its training rows."""

    booster: Any
    scale: PredictorScale
    slopes: bool

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions; the effect of a learner without training rows is zero."""
        rows = self.scale.predictors(X)
        at = {"group_rand_coef_data_pred": rows} if self.slopes else {}
        answer = self.booster.predict(rows, group_data_pred=groups, pred_latent=False, **at)
        return self.scale.back(answer["response_mean"])

    def saved(self) -> bytes:
        """Return the model in the format of GPBoost, without the raw rows."""
        return self.booster.model_to_string(save_raw_data=False).encode()


def _stop_at(deadline: float) -> Callable[[Any], None]:
    """Return a callback that ends a cross-validation when the processor's clock passes the deadline."""
    from gpboost.callback import EarlyStopException

    def stop(state: Any) -> None:
        if time.process_time() > deadline:
            raise EarlyStopException(state.iteration, state.evaluation_result_list)

    return stop


def _tuned(rows: np.ndarray, y: np.ndarray, effects: Callable[[], Any]) -> tuple[dict[str, Any], int]:
    """Return GPBoost's settings and rounds by its own cross-validation, as far as the time allows."""
    import gpboost as gpb

    fold = np.random.default_rng(0).integers(FOLDS, size=len(y))
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(FOLDS)]
    deadline = time.process_time() + TUNING
    best, found = math.inf, None
    for leaves, rate in product(LEAVES, RATES):
        if found is not None and time.process_time() > deadline:
            break
        settings = {"learning_rate": rate, "num_leaves": leaves, "min_data_in_leaf": 10}
        settings |= {"verbose": -1, "num_threads": 1, "seed": 0}
        scores = gpb.cv(
            settings,
            gpb.Dataset(rows, y, free_raw_data=False),
            gp_model=effects(),
            num_boost_round=MOST_ROUNDS,
            folds=folds,
            metric="mse",
            early_stopping_rounds=PATIENCE,
            verbose_eval=False,
            callbacks=[_stop_at(deadline)],
        )
        means = next(values for name, values in scores.items() if name.endswith("-mean"))
        if min(means) < best:
            best, found = min(means), (settings, int(np.argmin(means)) + 1)
    if found is None:
        raise RuntimeError("GPBoost's cross-validation gave no finite error.")
    return found


def fit_gpboost(X, y, groups, slopes: bool = False) -> GPBoosted:
    """Fit boosted trees with random intercepts, or with random slopes of all predictors as well."""
    import gpboost as gpb

    scale = PredictorScale.of(X, y)
    rows, response = scale.predictors(X), scale.response(y)
    options: dict[str, Any] = {}
    if slopes:
        options = {"group_rand_coef_data": rows, "ind_effect_group_rand_coef": [1] * rows.shape[1]}

    def effects() -> Any:
        model = gpb.GPModel(group_data=groups, likelihood="gaussian", num_parallel_threads=1, **options)
        if slopes:
            model.set_optim_params({"maxit": STEPS})
        return model

    settings, rounds = _tuned(rows, response, effects)
    booster = gpb.train(settings, gpb.Dataset(rows, response), gp_model=effects(), num_boost_round=rounds)
    return GPBoosted(booster, scale, slopes)


@dataclass(frozen=True)
class Merf:
    """A mixed-effects random forest with random intercepts."""

    model: Any
    scale: PredictorScale

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions; a learner without training rows has no effect of its own."""
        return self.scale.back(self.model.predict(X, np.ones((len(X), 1)), pd.Series(groups)))


def fit_merf(X, y, groups) -> Merf:
    """Fit MERF with fifty trees and ten iterations."""
    from merf import MERF

    scale = PredictorScale.of(X, y)
    model = MERF(clone(FOREST).set_params(n_estimators=50), max_iterations=10)
    model.fit(X, np.ones((len(X), 1)), pd.Series(groups), scale.response(y))
    return Merf(model, scale)
