from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.method.n_clusters.gap import gap_curve, gap_rules


def first_not_beaten(gaps: Any, errors: Any) -> int:
    """The rule of Tibshirani, Walther and Hastie, in words of its own."""
    for k in range(1, len(gaps)):
        if gaps[k - 1] >= gaps[k] - errors[k]:
            return k
    return int(np.argmax(gaps)) + 1


@pytest.mark.parametrize("between", [3.0, 5.0])
@pytest.mark.parametrize("sizes", [[5, 3], [6, 6], [5, 4, 3]])
def test_both_rules_count_clean_blocks(
    sizes: list[int], between: float, block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    first, jump = gap_rules(evidence_of(block_losses(sizes, between, jitter=0.2)))
    assert (first.rule, jump.rule) == ("gap", "gap-jump")
    assert first.chosen == jump.chosen == len(sizes)


@pytest.mark.parametrize("seed", range(5))
def test_the_answers_follow_from_the_curves(seed: int, evidence_of: Callable[..., Any]) -> None:
    losses = np.random.default_rng(seed).uniform(1, 4, size=(9, 9))
    np.fill_diagonal(losses, 1.0)
    evidence = evidence_of(losses)
    first, jump = gap_rules(evidence)
    gaps, errors = gap_curve(evidence)
    assert_allclose(first.values, gaps)
    assert_allclose(first.spread, errors)
    assert first.chosen == first_not_beaten(gaps, errors)
    assert np.isnan(jump.values[0])
    assert_allclose(jump.values[1:], np.diff(gaps))
    improves = jump.values[1:] > errors[1:]
    assert jump.chosen == (int(np.nanargmax(jump.values)) + 1 if improves.any() else 1)


def test_the_curves_are_the_same_again(
    block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    losses = block_losses([3, 3], jitter=0.2)
    assert np.array_equal(gap_curve(evidence_of(losses)), gap_curve(evidence_of(losses)))


@pytest.mark.parametrize("sizes", [[1], [2], [1, 1], [7], [1, 1, 1, 1]])
def test_curves_are_finite_where_there_is_little_to_see(
    sizes: list[int], block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    first, jump = gap_rules(evidence_of(block_losses(sizes)))
    assert np.isfinite(first.values).all()
    assert np.isfinite(jump.values[1:]).all()
    assert 1 <= first.chosen <= sum(sizes)
    assert 1 <= jump.chosen <= sum(sizes)


def test_one_learner_is_one_cluster(
    block_losses: Callable[..., Any], evidence_of: Callable[..., Any]
) -> None:
    first, jump = gap_rules(evidence_of(block_losses([1])))
    assert first.chosen == jump.chosen == 1
