"""What a fit promises each learner, and what the learner predicts alone and with others.

The benchmark speaks to coterie here and nowhere else. An older version, whose ``predict`` has no ``using``,
is measured, too: its own models are taken from the selection, and what it predicts counts as with others.
"""

from __future__ import annotations

import inspect
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from coterie import CoterieRegressor

FORMS: dict[str, dict[str, str]] = {
    "auto": {},
    "nested averages": {"refine": "average"},
    "average": {"refine": "average", "collaboration": "average"},
}
COLLABORATE, STAY_ALONE, NO_DIFFERENCE = "collaborate", "stay alone", "no clear difference"

# An older version's own models may leave the range of their rows by this share of it, as in nested coteries.
MARGIN = 0.3


@dataclass(frozen=True)
class Promises:
    """A fitted model, and what it told its learners.

    Arrays of shape (L,) are in the order of `learners`. ``compared`` are the learners with an error alone;
    the others are too small for a model of their own. ``measured`` is the logarithm of each learner's
    measured error alone over that with others, before what all learners show is taken into account.
    """

    model: Any
    learners: np.ndarray
    verdict: np.ndarray
    gain: np.ndarray
    low: np.ndarray
    high: np.ndarray
    compared: np.ndarray
    measured: np.ndarray
    ranges: dict[str, tuple[float, float]]

    def own(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Predict rows by their learners' own final models; NaN for learners that are not compared."""
        prediction = np.full(len(X), np.nan)
        mine = np.isin(groups, self.learners[self.compared])
        if not mine.any():
            return prediction
        if takes_using(self.model):
            prediction[mine] = self._using(X[mine], groups[mine], "alone")
            return prediction
        selection = self.model.selection_
        for learner, model in zip(selection.learner_ids.tolist(), selection.models, strict=True):
            rows = groups == learner
            if rows.any():
                scaled = np.ldexp(X[rows], -self.model.record_.exponents)
                prediction[rows] = np.clip(model.predict(scaled), *self.ranges[learner])
        return prediction

    def others(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Predict rows with others, also those of learners that a verdict sends alone."""
        return self._using(X, groups, "others")

    def _using(self, X: np.ndarray, groups: np.ndarray, using: str) -> np.ndarray:
        more = {"using": using} if takes_using(self.model) else {}
        with warnings.catch_warnings(), threadpool_limits(1):
            warnings.simplefilter("ignore")
            return np.asarray(self.model.predict(X, groups=groups, **more), dtype=float)


def takes_using(model: Any) -> bool:
    """Tell whether a model can be asked for its predictions alone and with others."""
    return "using" in inspect.signature(model.predict).parameters


def _range(y: np.ndarray) -> tuple[float, float]:
    margin = MARGIN * float(y.max() - y.min())
    return float(y.min()) - margin, float(y.max()) + margin


def promises(X: np.ndarray, y: np.ndarray, groups: np.ndarray, form: str, candidates: Any) -> Promises:
    """Fit learners in one of `FORMS` and return what they were told; ``candidates`` None are the default."""
    options = {**FORMS[form], "candidates": candidates, "n_bootstrap": 0, "n_jobs": 1}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        model = CoterieRegressor(**options).fit(X, y, groups=groups)
    gains = model.gains_
    own_error, others = (np.asarray(gains[name], dtype=float) for name in ("error_alone", "error_with"))
    learners = np.asarray(gains["learner"]).astype(str)
    unknown = np.full(len(learners), np.nan)
    return Promises(
        model,
        learners,
        np.asarray(gains["verdict"]).astype(str),
        np.asarray(gains["gain"], dtype=float),
        np.asarray(gains.get("gain_low", unknown), dtype=float),
        np.asarray(gains.get("gain_high", unknown), dtype=float),
        np.isfinite(own_error),
        np.log(np.maximum(own_error, 1e-300) / np.maximum(others, 1e-300)),
        {learner: _range(y[groups == learner]) for learner in learners.tolist()},
    )
