"""CatBoost with the id, GPBoost with effects of the learner, and flexmix with binomial components."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.preprocessing import StandardScaler
from tables import Split

HERE = Path(__file__).parent
FOLDS = 5
# GPBoost tries these rates and leaves in its own cross-validation.
RATES, LEAVES, MOST_ROUNDS, PATIENCE = (0.1, 0.03), (7, 31), 1000, 20
# Clusters that flexmix tries, and restarts for each.
MOST_CLUSTERS, RESTARTS = 8, 4


def catboost_with_id(split: Split, seed: int) -> Any:
    """Return what CatBoost's defaults predict, rounds by early stopping on a fifth of the rows."""
    from catboost import CatBoostClassifier

    def frame(X: Any, groups: Any) -> pd.DataFrame:
        return pd.DataFrame(X).rename(columns=str).assign(learner=groups)

    X = frame(split.X, split.groups)
    held_out = np.random.default_rng(seed).integers(FOLDS, size=len(X)) == 0
    common = {"random_seed": seed, "thread_count": 1, "allow_writing_files": False, "verbose": False}
    common |= {"cat_features": ["learner"]}
    first = CatBoostClassifier(**common)
    validation = (X[held_out], split.y[held_out])
    first.fit(X[~held_out], split.y[~held_out], eval_set=validation, early_stopping_rounds=PATIENCE)
    rounds = {"iterations": first.get_best_iteration() + 1, "learning_rate": first.learning_rate_}
    model = CatBoostClassifier(**common, **rounds).fit(X, split.y)
    return model.predict_proba(frame(split.X_test, split.groups_test)), {}


def gpboost(split: Split, seed: int) -> Any:
    """Return what trees beside random intercepts predict: rate, leaves and rounds by its own `cv`."""
    import gpboost as gpb

    scale = StandardScaler().fit(split.X)
    X, y = scale.transform(split.X), np.searchsorted(np.unique(split.y), split.y).astype(float)
    fold = np.random.default_rng(seed).integers(FOLDS, size=len(y))
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(FOLDS)]

    def effects() -> Any:
        return gpb.GPModel(group_data=split.groups, likelihood="bernoulli_logit", num_parallel_threads=1)

    tried = []
    for rate in RATES:
        for leaves in LEAVES:
            settings = {"learning_rate": rate, "num_leaves": leaves, "min_data_in_leaf": 10}
            settings |= {"objective": "bernoulli_logit", "verbose": -1, "num_threads": 1, "seed": seed}
            curve = gpb.cv(
                settings,
                gpb.Dataset(X, y, free_raw_data=False),
                gp_model=effects(),
                num_boost_round=MOST_ROUNDS,
                folds=folds,
                metric="binary_logloss",
                early_stopping_rounds=PATIENCE,
                verbose_eval=False,
            )
            means = next(values for name, values in curve.items() if name.endswith("-mean"))
            tried.append((min(means), len(tried), settings, int(np.argmin(means)) + 1))
    _, _, settings, rounds = min(tried)
    booster = gpb.train(settings, gpb.Dataset(X, y), gp_model=effects(), num_boost_round=rounds)
    answer = booster.predict(
        scale.transform(split.X_test), group_data_pred=split.groups_test, pred_latent=False
    )
    found = np.clip(answer["response_mean"], 0, 1)
    return np.column_stack([1 - found, found]), {}


@cache
def has_flexmix() -> bool:
    """Tell whether R and its package flexmix are there."""
    if shutil.which("Rscript") is None:
        return False
    found = subprocess.run(["Rscript", "-e", "library(flexmix)"], capture_output=True, check=False)
    return found.returncode == 0


def flexmix(split: Split, seed: int) -> Any:
    """Return what logistic regressions by cluster predict, weighed by whose the learner probably is."""
    if not has_flexmix():
        raise RuntimeError("R has no flexmix: leave it out (Debian: r-base-core, r-cran-flexmix).")
    scale = StandardScaler().fit(split.X)
    labels = np.unique(split.y)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for name, X, y, groups in (
            ("train", split.X, split.y, split.groups),
            ("test", split.X_test, split.y_test, split.groups_test),
        ):
            table = pd.DataFrame(scale.transform(X), columns=[f"x{c}" for c in range(X.shape[1])])
            # The classes of the rows ahead are not shown.
            codes = np.searchsorted(labels, y) if name == "train" else 0
            table.assign(y=codes, g=groups).to_csv(root / f"{name}.csv", index=False)
        numbers = map(str, (MOST_CLUSTERS, RESTARTS, seed))
        command = ["Rscript", str(HERE / "flexmix.R"), str(root), *numbers]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"flexmix failed: {done.stderr.strip()[-300:]}")
        answers = pd.read_csv(root / "answers.csv")
        clusters = pd.read_csv(root / "clusters.csv")
    found = answers["probability"].to_numpy()
    labels_of = dict(zip(clusters["learner"].astype(str), clusters["cluster"], strict=True))
    known = {"n_clusters": len(set(labels_of.values())), "labels": labels_of}
    return np.column_stack([1 - found, found]), known
