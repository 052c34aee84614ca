"""Predictors in awkward units, and every family that can travel, fitted on them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    BaggingRegressor,
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
    StackingRegressor,
    VotingRegressor,
)
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.linear_model import PoissonRegressor, RANSACRegressor, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler
from sklearn.tree import DecisionTreeRegressor
from threadpoolctl import threadpool_limits

from coterie.candidates import KNOWN

N_FEATURES = 5
# Plain numbers, a population, a tiny ratio, seconds since 1970, a year.
UNITS = np.array([1.0, 1e3, 1e-3, 1e6, 5.0])
CENTRES = np.array([0.0, 1e5, 0.0, 1.7e9, 2020.0])


def in_units(Z: np.ndarray) -> np.ndarray:
    return Z * UNITS + CENTRES


def families() -> dict[str, Any]:
    """Every way of predicting that travels as ONNX, unfitted."""
    few = {"random_state": 0}
    network = {"max_iter": 30, "hidden_layer_sizes": (6, 4), **few}
    scaled = StandardScaler()
    return {
        "rf": KNOWN["rf"]().set_params(regressor__n_estimators=10, regressor__random_state=0),
        "gb": KNOWN["gb"]().set_params(regressor__n_estimators=20, regressor__random_state=0),
        "nn": KNOWN["nn"](),
        "tree": DecisionTreeRegressor(**few),
        "one leaf": DecisionTreeRegressor(max_depth=1, min_samples_leaf=60, **few),
        "extra trees": ExtraTreesRegressor(5, **few),
        "plain forest": RandomForestRegressor(5, **few),
        "scaled forest": make_pipeline(scaled, RandomForestRegressor(5, **few)),
        "boosting without init": GradientBoostingRegressor(n_estimators=5, init="zero", **few),
        "histogram boosting": HistGradientBoostingRegressor(max_iter=10, min_samples_leaf=5, **few),
        "histogram boosting of counts": HistGradientBoostingRegressor(loss="poisson", max_iter=5, **few),
        "bagging": BaggingRegressor(Ridge(), n_estimators=3, max_features=3, **few),
        "tanh": make_pipeline(scaled, MLPRegressor(activation="tanh", **network)),
        "logistic": make_pipeline(scaled, MLPRegressor(activation="logistic", **network)),
        "identity": make_pipeline(scaled, MLPRegressor(activation="identity", **network)),
        "polynomial": make_pipeline(scaled, PolynomialFeatures(3), Ridge()),
        "components": make_pipeline(scaled, PCA(2), RandomForestRegressor(3, **few)),
        "selected": make_pipeline(SelectKBest(f_regression, k=2), RandomForestRegressor(3, **few)),
        "clipped": make_pipeline(MinMaxScaler(clip=True), Ridge()),
        "counts": make_pipeline(scaled, PoissonRegressor()),
        "logarithm": TransformedTargetRegressor(
            make_pipeline(scaled, Ridge()), func=np.log1p, inverse_func=np.expm1
        ),
        "voting": VotingRegressor(
            [("a", make_pipeline(scaled, Ridge())), ("b", RandomForestRegressor(3, **few))], weights=[1, 2]
        ),
        "stacking": StackingRegressor(
            [("a", make_pipeline(scaled, Ridge())), ("b", RandomForestRegressor(3, **few))],
            final_estimator=Ridge(),
            passthrough=True,
            cv=2,
        ),
        "ransac": make_pipeline(scaled, RANSACRegressor(**few)),
        "searched": GridSearchCV(DecisionTreeRegressor(**few), {"max_depth": [2, 3]}, cv=2),
    }


@pytest.fixture(scope="session", autouse=True)
def onnx_is_here() -> None:
    for name in ("onnx", "onnxruntime"):
        pytest.importorskip(name, reason=f"models travel by {name}: install coterie's extra 'federated'")


@pytest.fixture(scope="session")
def table() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(7)
    Z = random.normal(size=(60, N_FEATURES))
    y = 1e5 + 300 * (np.sin(2 * Z[:, 0]) + Z[:, 1] * Z[:, 3] + Z[:, 4]) + random.normal(size=60)
    return in_units(Z), y


@pytest.fixture(scope="session")
def fitted(table: tuple[np.ndarray, np.ndarray]) -> dict[str, Any]:
    X, y = table
    # One thread: these fits are small, and threads of several test processes wait for each other.
    with threadpool_limits(1), warnings.catch_warnings():
        # Thirty steps are enough here, whether or not the networks have converged.
        warnings.simplefilter("ignore")
        return {name: model.fit(X, y) for name, model in families().items()}
