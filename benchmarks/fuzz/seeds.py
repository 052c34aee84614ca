"""Good files of every kind, small ones, from which fuzzing starts."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.ensemble import (
    BaggingRegressor,
    GradientBoostingClassifier,
    GradientBoostingRegressor,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    VotingRegressor,
)
from sklearn.linear_model import LinearRegression, PoissonRegressor, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, PolynomialFeatures, StandardScaler

from coterie.federated import wire
from coterie.federated.messages import (
    Answer,
    AveragedSite,
    JudgingQuestion,
    MixingQuestion,
    Pairing,
    PeerLoss,
    Products,
    Question,
    Score,
    Share,
    Verdict,
    encode,
    question_key,
)
from coterie.models.classes import OneClass, VotingForest
from coterie.models.forest import QuickForest
from coterie.models.logistic import QuickLogistic

N_FEATURES, N_CLASSES = 3, 3


def rows(n: int = 30) -> np.ndarray:
    """Return rows of N_FEATURES predictors."""
    return np.random.default_rng(0).normal(size=(n, N_FEATURES))


def models() -> list[bytes]:
    """Return payloads of linear models, trees, networks and mixtures."""
    X = rows()
    y = np.abs(X[:, 0] + X[:, 1] * X[:, 2]) + 1
    seed = {"random_state": 0}
    families: list[Any] = [
        LinearRegression(),
        RandomForestRegressor(3, max_depth=3, **seed),
        GradientBoostingRegressor(n_estimators=3, max_depth=2, **seed),
        HistGradientBoostingRegressor(max_iter=2, min_samples_leaf=5, **seed),
        make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(3,), max_iter=5, **seed)),
        make_pipeline(MinMaxScaler(clip=True), PolynomialFeatures(2), Ridge()),
        make_pipeline(StandardScaler(), PoissonRegressor()),
        VotingRegressor([("a", Ridge()), ("b", RandomForestRegressor(2, max_depth=2, **seed))]),
        BaggingRegressor(Ridge(), n_estimators=2, max_features=2, **seed),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [wire.pack(model.fit(X, y), N_FEATURES) for model in families]


def class_models() -> list[bytes]:
    """Return payloads of logistic models, forests, boosted trees and networks for N_CLASSES classes."""
    X = rows(90)
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2], [-0.5, 0.5]).astype(float)
    seed = {"random_state": 0}
    families: list[Any] = [
        QuickLogistic(),
        VotingForest(QuickForest(3, max_depth=3, **seed)),
        RandomForestClassifier(3, max_depth=3, **seed),
        HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5, **seed),
        GradientBoostingClassifier(n_estimators=2, max_depth=2, **seed),
        make_pipeline(StandardScaler(), MLPClassifier(hidden_layer_sizes=(3,), max_iter=5, **seed)),
    ]
    some = [VotingForest(QuickForest(3, max_depth=3, **seed)), OneClass()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = [model.fit(X, y) for model in families]
        part = [some[0].fit(X[y > 0], y[y > 0]), some[1].fit(X[y > 1], y[y > 1])]
        return [wire.pack(model, N_FEATURES, N_CLASSES) for model in (*whole, *part)]


def messages() -> list[bytes]:
    """Return one message of every kind that sites send each other before the end."""
    model = models()[0]
    share = Share(
        "north",
        20,
        0.5,
        1.0,
        2.0,
        ("a", "b", "c"),
        "y",
        "lr",
        model,
        ("lr",),
        0,
        {"coterie": "0"},
        (1.0,) * 3,
    )
    losses = {"north": PeerLoss(share.sha, 0.5), "south": PeerLoss("bb", None)}
    members = (AveragedSite("north", share.sha, 1.0, 0.7), AveragedSite("south", "bb", 2.0, 0.6))
    pairing = Pairing((0, 1), ((0, 0), (1, 1)), (0, 0), ((0, 0), (0, 0)))
    mixing = MixingQuestion(((0, 0),), (((0.1, 0.0),), ((0.1, 1.0),)))
    judging = JudgingQuestion((0, 0), mixing, ((((0.5, 0.5, 0.0),) * 3,) * 2))
    question = Question(members, (1.0, 1.0, 0.0), ((0, 0), (0, 1)), (pairing,), mixing, judging)
    errors = ((1.0, 0.1), (0.9, 0.1), (2.0, 0.1))
    measured = (1.2, 1.0, 0.9, 20, 0.3, 0.2, False, 1.0)
    line, limits = (0.1, 0.0, 0.0, -0.2), (-1.0, 1.0)
    verdict = Verdict(((-0.1, 0.2),), (0.1, 0.2), (0.0, 0.1), errors, *measured, (1.0,), line, limits, limits)
    products = Products((((5.0, 1.0, 1.0), (1.0, 4.0, 2.0), (1.0, 2.0, 4.0)),) * 2, (10.0, 10.0))
    halves = (((0.5, 0.4),), ((0.5, 0.4), (None, 0.3)))
    grids = (((0.0, -1.0), (-2.0, -3.0)),) * 2
    answer = Answer("north", question_key(question), halves, grids, ((0.1, 0.2),), products, verdict)
    score = Score("north", share.sha, losses, 0.7, 0.01, (10, 10))
    return [encode(message) for message in (share, score, question, answer)]
