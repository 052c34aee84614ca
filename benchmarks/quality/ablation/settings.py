"""The simulated learners of the other benchmarks under one name each: how_many, peers and one_truth."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from coterie.datasets import make_linear_learners
from coterie.rows.learners import Learners, gather_learners

QUALITY = Path(__file__).resolve().parents[1]
LINEAR, DEFAULT = ["ridge", "lasso"], "default"
QUADRATIC = {"one quadratic truth": 1, "two quadratic truths": 2}


def sibling(folder: str, name: str) -> ModuleType:
    """Import a module of another benchmark, whose own imports look into its folder."""
    known = f"{folder}_{name}"
    if known not in sys.modules:
        sys.path.append(str(QUALITY / folder))
        spec = spec_from_file_location(known, QUALITY / folder / f"{name}.py")
        module = sys.modules[known] = module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[known]


HOW_MANY = sibling("how_many", "run")
PEERS = sibling("peers", "settings")
ONE_TRUTH = sibling("one_truth", "run")


@dataclass(frozen=True)
class Rows:
    """Rows of all learners as they came, and the true partition where there is one."""

    X: Any
    y: Any
    groups: Any
    truth: Any
    standardize: bool = False

    def gathered(self) -> Learners:
        """Return the learners as the benchmark that they come from gathers them."""
        learners = gather_learners(self.X, self.y, self.groups, caller="benchmark")
        return learners.standardized()[0] if self.standardize else learners


def _curved(setting: str) -> bool:
    return "curved" in setting or "apart" in setting


def quadratic(n_truths: int, seed: int) -> Rows:
    """Draw truths that are quadratic forms: a user's own candidate fits them, trees and lines do not."""
    rng = np.random.default_rng(seed)
    owner, truth = np.repeat(np.arange(20), 60), np.arange(20) % n_truths
    X, forms = rng.normal(size=(1200, 5)), rng.normal(size=(n_truths, 5, 5))
    y = np.einsum("rp,rpq,rq->r", X, forms[truth[owner]], X) + 0.3 * rng.normal(size=1200)
    return Rows(X, y, owner, truth)


def pairs(seed: int) -> Rows:
    """Draw ten learners of five truths, two of each."""
    truth = np.repeat(np.arange(5), 2)
    data = make_linear_learners(10, 5, 30, n_features=6, noise_variance=1.0, labels=truth, random_state=seed)
    return Rows(data.X, data.y, data.groups, data.truth)


def candidates_of(kind: str) -> Any:
    """Return what learners choose from."""
    if kind == "polynomial":
        return [make_pipeline(PolynomialFeatures(2), RidgeCV(np.logspace(-4, 1, 8)))]
    return LINEAR if kind == "linear" else DEFAULT


def settings() -> list[tuple[str, str, str]]:
    """Return benchmark, setting and candidates of all that is drawn."""
    found = []
    for folder, names in (("how_many", HOW_MANY.SETTINGS), ("peers", PEERS.SETTINGS)):
        for name in names:
            # Curved truths cannot be found by lines: nothing is learned from trying.
            found += [] if _curved(name) else [(folder, name, "linear")]
            found.append((folder, name, "default"))
    found += [("one_truth", name, "linear") for name in ONE_TRUTH.SETTINGS]
    found.append(("own", "five pairs of learners", "linear"))
    return found + [("own", name, "polynomial") for name in QUADRATIC]


def draw(folder: str, setting: str, seed: int) -> Rows:
    """Draw a setting of a benchmark."""
    if folder == "how_many":
        data = HOW_MANY.SETTINGS[setting](seed)
        return Rows(data.X, data.y, data.groups, data.truth, setting.startswith("Simulation 1"))
    if folder == "peers":
        data = PEERS.draw(setting, seed).train
        return Rows(data.X, data.y, data.groups, data.truth, PEERS.SETTINGS[setting].standardize)
    if folder == "own" and setting not in QUADRATIC:
        return pairs(seed)
    if folder == "own":
        return quadratic(QUADRATIC[setting], seed)
    X, y, owner = ONE_TRUTH.draw(setting, seed)
    return Rows(X, y, owner, np.zeros(owner.max() + 1, dtype=int))
