"""Flexible models on pooled rows: which candidates are flexible, and the forest that judges clusters by them.

On few rows lines often win though the truth is curved; on the rows of many learners the curve shows. And
learners who see different parts of one curve look like different lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler

from coterie._arrays import Array
from coterie._seeds import seeded_copy
from coterie.kernels.logistic import is_line
from coterie.loss import SQUARED_ERROR, Loss
from coterie.method.fitting import fit_model, quiet_fits
from coterie.method.spectral import avoids_pairs, linkage_labels
from coterie.models.classes import VotingForest
from coterie.models.forest import RandomCuts
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class FlexibleRule:
    """How large flexible models on pooled rows are, and when they search."""

    # If this share of the learners chose a flexible model, flexible models search in any case. Two truths
    # that differ in a product are found in 15 of 16 draws (benchmarks/quality/how_many), and in none if
    # flexible models do not search (benchmarks/quality/ablation).
    share: float = 0.25
    # Of the quick forest, and of any ensemble on pooled rows: enough to tell clusters apart.
    trees: int = 10
    # Rows in a leaf of the quick forest, at least.
    leaf: int = 3
    # More rows than this make a cluster's model slower, not its labels better.
    rows: int = 2_000
    # Solving for more predictors than this, once per learner and labelling, costs more than refitting.
    predictors: int = 150


FLEXIBLE = FlexibleRule()


def neighbourhoods(exchange: Exchange) -> Array:
    """Return about sqrt(L) groups of learners whose models agree, by average linkage on v.

    All are in one group where no two would be, or where there is no tree of all pairs.
    """
    n = len(exchange.learner_ids)
    neighbours = np.zeros(n, dtype=np.int64)
    if n < 3 or avoids_pairs(exchange):
        return neighbours
    groups = linkage_labels(exchange.dissimilarity, int(np.ceil(np.sqrt(n)))).astype(np.int64)
    return groups if len(np.unique(groups)) < n else neighbours


def _is_curve(candidate: Any, learners: Learners) -> bool:
    """Tell whether a candidate, fitted on one learner's rows, is anything but a line; False if it fails."""
    rows = learners.span(int(learners.sizes.argmax()))
    try:
        with quiet_fits():
            target = learners.loss.target(learners.y[rows]).copy()
            fitted = fit_model(seeded_copy(candidate, 0), learners.X[rows].copy(), target)
    except Exception:
        return False
    return not is_line(fitted, learners.n_features)


def has_curve(
    learners: Learners, selection: Selection, candidates: Sequence[Mapping[str, Any]] | None
) -> bool:
    """Tell whether a candidate that nobody chose is flexible: it may yet pay on pooled rows.

    ``candidates`` are each learner's; None: only what learners chose. Candidates that fail do not count.
    """
    others = {
        name: c
        for candidates_of in candidates or ()
        for name, c in candidates_of.items()
        if name not in selection.names
    }
    return any(_is_curve(candidate, learners) for candidate in others.values())


def quick_forest(loss: Loss = SQUARED_ERROR) -> Any:
    """Return the forest that judges clusters of flexible learners: few trees, cut at random.

    It fits thousands of rows in milliseconds whatever the learners' own models cost, and expresses
    steps, curves and interactions alike. The response is standardised: trees stop at an absolute impurity.
    """
    forest = RandomCuts(FLEXIBLE.trees, min_samples_leaf=FLEXIBLE.leaf, random_state=0)
    if loss.bounds is not None:
        return VotingForest(forest)
    return TransformedTargetRegressor(forest, transformer=StandardScaler())
