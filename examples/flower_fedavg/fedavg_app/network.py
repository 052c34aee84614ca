"""A small network whose weights can be taken out and put in, as federated averaging needs it."""

from __future__ import annotations

import numpy as np
from sklearn.metrics import log_loss
from sklearn.neural_network import MLPClassifier, MLPRegressor

HIDDEN = 8
Weights = list[np.ndarray]
Network = MLPRegressor | MLPClassifier


def first_weights(n_features: int, seed: int, n_classes: int = 0) -> Weights:
    """Return the weights that everybody starts from; without classes the response is a number."""
    random, n_outputs = np.random.default_rng(seed), n_classes if n_classes > 2 else 1
    shapes = [(n_features, HIDDEN), (HIDDEN, n_outputs), (HIDDEN,), (n_outputs,)]
    return [random.normal(scale=0.3, size=shape) for shape in shapes]


def with_weights(weights: Weights, X: np.ndarray, y: np.ndarray, n_classes: int) -> Network:
    """Return a network with these weights; classes are numbered."""
    kind = MLPClassifier if n_classes else MLPRegressor
    network = kind(
        hidden_layer_sizes=(HIDDEN,), activation="tanh", learning_rate_init=0.01, alpha=0.0, random_state=0
    )
    # scikit-learn makes room for the weights when it first sees rows; a site need not have seen every class.
    network.partial_fit(X, y, **({"classes": range(n_classes)} if n_classes else {}))
    network.coefs_, network.intercepts_ = [w.copy() for w in weights[:2]], [w.copy() for w in weights[2:]]
    return network


def trained(weights: Weights, X: np.ndarray, y: np.ndarray, epochs: int, n_classes: int) -> Weights:
    """Return the weights after some epochs on a site's rows."""
    network = with_weights(weights, X, y, n_classes)
    for _ in range(epochs):
        network.partial_fit(X, y)
    return [*network.coefs_, *network.intercepts_]


def loss(weights: Weights, X: np.ndarray, y: np.ndarray, n_classes: int) -> float:
    """Return the mean squared error on a site's rows, or the log loss of classes."""
    network = with_weights(weights, X, y, n_classes)
    if n_classes:
        return float(log_loss(y, network.predict_proba(X), labels=range(n_classes)))
    return float(np.mean((network.predict(X) - y) ** 2))
