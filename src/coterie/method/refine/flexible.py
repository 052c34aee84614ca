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
    """Return the group (L,) of each learner among about sqrt(L) groups whose models agree.

    Groups are by average linkage on the dissimilarity v. All learners are in one where no two would be
    together, or where learners are too many for all pairs. Groups show which family of models, lines or
    forests, pays on pooled rows, before there are clusters.
    """
    n_learners = len(exchange.learner_ids)
    one_group = np.zeros(n_learners, dtype=np.int64)
    if n_learners < 3 or avoids_pairs(exchange):
        return one_group
    groups = linkage_labels(exchange.dissimilarity, int(np.ceil(np.sqrt(n_learners)))).astype(np.int64)
    return groups if len(np.unique(groups)) < n_learners else one_group


def _is_curve(candidate: Any, learners: Learners) -> bool:
    """Tell whether a candidate gives a flexible model: anything that is not linear, nor linear in log-odds.

    It is fitted on the rows of the learner with the most rows; False if that fails. Only a fitted model
    shows whether it is linear: a search over parameters may choose either.
    """
    largest_span = learners.span(int(learners.sizes.argmax()))
    try:
        with quiet_fits():
            target = learners.loss.target(learners.y[largest_span]).copy()
            fitted = fit_model(seeded_copy(candidate, 0), learners.X[largest_span].copy(), target)
    except Exception:
        return False
    return not is_line(fitted, learners.n_features)


def has_curve(
    learners: Learners, selection: Selection, candidates: Sequence[Mapping[str, Any]] | None
) -> bool:
    """Tell whether some candidate that no learner chose is a flexible model.

    On few rows linear models often win; on the pooled rows of many learners a flexible one may yet pay.
    ``candidates`` are each learner's; None: only what learners chose. Candidates that fail do not count.
    """
    not_chosen = {
        name: candidate
        for candidates_of in candidates or ()
        for name, candidate in candidates_of.items()
        if name not in selection.names
    }
    return any(_is_curve(candidate, learners) for candidate in not_chosen.values())


def quick_forest(loss: Loss = SQUARED_ERROR) -> Any:
    """Return an unfitted forest of few trees with random cuts, for pooled rows of clusters.

    It fits thousands of rows in milliseconds whatever the learners' own models cost, and expresses steps,
    curves and interactions alike. A numeric response is standardised, because trees stop at an absolute
    impurity; classes get a forest that votes.
    """
    forest = RandomCuts(FLEXIBLE.trees, min_samples_leaf=FLEXIBLE.leaf, random_state=0)
    if loss.bounds is not None:
        return VotingForest(forest)
    return TransformedTargetRegressor(forest, transformer=StandardScaler())
