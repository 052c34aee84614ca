"""How many truths there are among learners of classes: quick forms of runs with many draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie import CoterieClassifier
from coterie.datasets import make_logistic_learners


def found(seeds: range, candidates: Any = "linear", **options: Any) -> tuple[Any, Any]:
    """Return the numbers of clusters, and how well labels agree with the truths."""
    counts, agreement = [], []
    for seed in seeds:
        data = make_logistic_learners(random_state=seed, **options)
        model = CoterieClassifier(candidates, collaboration="local", n_bootstrap=0)
        model.fit(data.X, data.y, groups=data.groups)
        counts.append(model.n_clusters_)
        agreement.append(adjusted_rand_score(data.truth, model.learner_labels_))
    return np.array(counts), np.array(agreement)


def test_three_logistic_truths_are_found() -> None:
    counts, agreement = found(range(16))
    assert np.sum((counts == 3) & (agreement == 1)) >= 14


def test_three_truths_of_three_classes_are_found() -> None:
    counts, agreement = found(range(6), n_classes=3)
    assert np.sum((counts == 3) & (agreement == 1)) >= 5


@pytest.mark.parametrize("share", [None, 0.05])
def test_one_truth_is_one_cluster(share: float | None) -> None:
    counts, _ = found(range(20), n_truths=1, share=share)
    assert np.sum(counts == 1) >= 18


def test_three_curved_truths_are_found_by_forests() -> None:
    counts, agreement = found(range(2), None, curved=True, n_rows=300)
    assert counts.tolist() == [3, 3]
    assert (agreement == 1).all()


@pytest.mark.slow
@pytest.mark.parametrize("share", [None, 0.05])
def test_one_truth_is_one_cluster_in_ninety_five_of_a_hundred_draws(share: float | None) -> None:
    assert np.sum(found(range(100), n_truths=1, share=share)[0] == 1) >= 95
