"""A small network whose weights can be taken out and put in, as federated averaging needs it."""

from __future__ import annotations

import numpy as np
from sklearn.neural_network import MLPRegressor

HIDDEN = 8
Weights = list[np.ndarray]


def first_weights(n_features: int, seed: int) -> Weights:
    """Return the weights that everybody starts from."""
    random = np.random.default_rng(seed)
    shapes = [(n_features, HIDDEN), (HIDDEN, 1), (HIDDEN,), (1,)]
    return [random.normal(scale=0.3, size=shape) for shape in shapes]


def with_weights(weights: Weights, X: np.ndarray, y: np.ndarray) -> MLPRegressor:
    """Return a network with these weights."""
    network = MLPRegressor(
        hidden_layer_sizes=(HIDDEN,), activation="tanh", learning_rate_init=0.01, alpha=0.0, random_state=0
    )
    # scikit-learn makes room for the weights when it first sees rows.
    network.partial_fit(X, y)
    network.coefs_, network.intercepts_ = [w.copy() for w in weights[:2]], [w.copy() for w in weights[2:]]
    return network


def trained(weights: Weights, X: np.ndarray, y: np.ndarray, epochs: int) -> Weights:
    """Return the weights after some epochs on a site's rows."""
    network = with_weights(weights, X, y)
    for _ in range(epochs):
        network.partial_fit(X, y)
    return [*network.coefs_, *network.intercepts_]


def loss(weights: Weights, X: np.ndarray, y: np.ndarray) -> float:
    """Return the mean squared error on a site's rows."""
    return float(np.mean((with_weights(weights, X, y).predict(X) - y) ** 2))
