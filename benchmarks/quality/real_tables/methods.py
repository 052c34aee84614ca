"""What a user could do with such a table: every method by its name, and how it is fitted."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from boosted import fit_catboost, fit_hist, fit_lightgbm
from mixed import fit_gpboost, fit_merf
from plain import (
    FOREST,
    RIDGE,
    fit_alone,
    fit_centred,
    fit_global,
    fit_grouped,
    fit_hierarchical,
    fit_stacked,
)
from sklearn.base import clone

from coterie import CoterieRegressor
from coterie.persistence import save

OURS, OURS_FAST = "coterie", "coterie, effort fast"


class Model(Protocol):
    """A fitted method."""

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions of rows of these learners."""


@dataclass(frozen=True)
class Ours:
    """coterie as it comes."""

    model: CoterieRegressor

    def predict(self, X: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Return predictions."""
        return self.model.predict(X, groups=groups)

    def saved(self) -> bytes:
        """Return the saved model, without the rows."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.coterie"
            save(self.model, path, rows=False)
            return path.read_bytes()


def _fit_ours(X, y, groups, effort: str = "full") -> Ours:
    return Ours(CoterieRegressor(effort=effort).fit(X, y, groups=groups))


@dataclass(frozen=True)
class Method:
    """How to fit one method, and what it needs.

    `unseen` tells whether it predicts learners without training rows, as the official folds ask.
    """

    fit: Callable[[np.ndarray, np.ndarray, np.ndarray], Any]
    package: str | None = None
    unseen: bool = False

    def missing(self) -> str | None:
        """Return why the method cannot be run here, or None."""
        if self.package is None or find_spec(self.package) is not None:
            return None
        return f"{self.package} is not installed (install coterie's extra 'bench')"


SMALL_FOREST = clone(FOREST).set_params(n_estimators=50)

# In the order in which they are run: the cheap ones first.
METHODS: dict[str, Method] = {
    "HistGradientBoosting with id": Method(fit_hist, unseen=True),
    "LightGBM with id": Method(fit_lightgbm, "lightgbm", unseen=True),
    "LightGBM with id and level": Method(partial(fit_lightgbm, level=True), "lightgbm", unseen=True),
    "CatBoost with id": Method(fit_catboost, "catboost", unseen=True),
    "GPBoost, random intercepts": Method(fit_gpboost, "gpboost", unseen=True),
    "alone": Method(fit_alone),
    "global (ridge)": Method(partial(fit_global, model=RIDGE), unseen=True),
    "global (forest)": Method(partial(fit_global, model=FOREST), unseen=True),
    "centred global (ridge)": Method(partial(fit_centred, model=RIDGE)),
    "centred global (forest)": Method(partial(fit_centred, model=FOREST)),
    "alone and global stacked": Method(fit_stacked),
    "scikit-lego grouped (ridge)": Method(partial(fit_grouped, model=RIDGE), "sklego"),
    "scikit-lego grouped (forest)": Method(partial(fit_grouped, model=SMALL_FOREST), "sklego"),
    "scikit-lego hierarchical (ridge)": Method(fit_hierarchical, "sklego"),
    "MERF": Method(fit_merf, "merf", unseen=True),
    "GPBoost, random slopes": Method(partial(fit_gpboost, slopes=True), "gpboost", unseen=True),
    OURS: Method(_fit_ours, unseen=True),
    OURS_FAST: Method(partial(_fit_ours, effort="fast"), unseen=True),
}

logging.getLogger("merf").setLevel(logging.WARNING)
