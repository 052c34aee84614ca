from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from coterie import select_models
from coterie.kernels.limits import Limits
from coterie.method.refine.pooled import PooledLosses
from coterie.rows.learners import gather_learners


def rows(n_learners: int = 16, n: int = 40, apart: float = 0.0, noise: Any = None, seed: int = 0):
    """Rows of learners who follow one truth, or two that differ by ``apart`` in every coefficient."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 3))
    e = rng.normal(size=len(owner)) if noise is None else noise(rng, owner)
    return X, X.sum(axis=1) + apart * np.where(owner % 2, 0.5, -0.5) * X.sum(axis=1) + e, owner


def comparison_of(data, **options: Any) -> tuple[float, float]:
    learners = gather_learners(*data, caller="test", **options)
    selection = select_models(learners, candidates=["ridge"]).aligned_to(learners.ids)
    return PooledLosses(learners, selection).one_truth_test(0)


def heavy(rng: np.random.Generator, owner: np.ndarray) -> np.ndarray:
    return rng.standard_t(2.5, len(owner))


def uneven(rng: np.random.Generator, owner: np.ndarray) -> np.ndarray:
    return rng.normal(size=len(owner)) * np.geomspace(0.2, 5, int(owner.max()) + 1)[owner]


@pytest.mark.parametrize("noise", [None, heavy, uneven], ids=["normal", "heavy", "uneven"])
def test_one_truth_does_not_surprise(noise: Callable[..., Any] | None) -> None:
    found = np.array([comparison_of(rows(noise=noise, seed=seed)) for seed in range(12)])
    # One in a hundred does, and more than one of twelve hardly ever.
    assert np.sum(found[:, 0] > 0) <= 1


def test_two_truths_do_and_the_share_that_they_explain_is_told() -> None:
    weak, strong = comparison_of(rows(apart=0.5)), comparison_of(rows(apart=2.0))
    assert weak[0] > 4
    assert strong[0] > weak[0]
    # Of the one model's residuals of variance 1 + 3 the second truth is three quarters, of 1 + 3/16 a sixth.
    assert strong[1] == pytest.approx(0.75, abs=0.08)
    assert weak[1] == pytest.approx(3 / 19, abs=0.06)


def test_neither_units_nor_names_matter() -> None:
    X, y, owner = rows(apart=0.5)
    first = comparison_of((X, y, owner))
    assert comparison_of((X * [1, 10, 1e-3], 5 + 100 * y, owner)) == pytest.approx(first, rel=0.02)
    assert comparison_of((X, y, owner)) == first


def test_a_wild_row_is_no_second_truth() -> None:
    X, y, owner = rows()
    y[5] += 1000.0
    assert comparison_of((X, y, owner))[0] < 4


def test_too_few_learners_or_rows_say_nothing() -> None:
    assert np.isnan(comparison_of(rows(n_learners=2))).all()
    X, y, owner = rows(n_learners=3, n=4)
    assert np.isnan(comparison_of((np.hstack([X, X**2]), y, owner))).all()


def test_a_response_without_noise_is_no_surprise() -> None:
    X, y, owner = rows(noise=lambda rng, owner: np.zeros(len(owner)))
    deviations, gain = comparison_of((X, y, owner))
    assert gain < 1e-3 or deviations < 4


def test_weights_of_rows_count() -> None:
    X, y, owner = rows()
    odd = (owner % 2 == 1) & (np.arange(len(y)) % 2 == 1)
    y[odd] -= 3 * X[odd, 0]
    assert comparison_of((X, y, owner))[0] > 4
    # Rows of the second truth weigh next to nothing: there is one truth left.
    assert comparison_of((X, y, owner), sample_weight=np.where(odd, 1e-9, 1.0))[0] < 4


def test_draws_end_where_one_explains_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    import coterie.method.n_clusters.one_truth as module

    searches: list[int] = []
    real = module.lowest_loss

    def counted(G: Any, c: Any, ridge: Any, n_clusters: int, seed: int) -> float:
        searches.append(n_clusters)
        return real(G, c, ridge, n_clusters, seed)

    monkeypatch.setattr(module, "lowest_loss", counted)
    assert comparison_of(rows(seed=3)) == (0.0, 0.0)
    assert len(searches) < 1 + module.DRAWS / 2
    searches.clear()
    assert comparison_of(rows(apart=0.3))[0] > 0
    assert len(searches) == 1 + module.DRAWS


def test_rows_that_a_splitter_cut_are_not_taken_for_independent() -> None:
    from sklearn.model_selection import KFold

    learners = gather_learners(*rows(apart=2.0), caller="test")
    selection = select_models(learners, candidates=["ridge"], splitter=KFold(4)).aligned_to(learners.ids)
    assert selection.dependent
    assert np.isnan(PooledLosses(learners, selection).one_truth_test(0)).all()


def test_more_than_can_be_searched_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.method.refine.pooled.LIMITS", Limits(numbers=20 * 16 * 4**2 - 1))
    assert np.isnan(comparison_of(rows(apart=2.0))).all()
