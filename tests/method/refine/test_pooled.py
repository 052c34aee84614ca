from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.linear_model import LinearRegression

from coterie.kernels.affine import StandardizedColumns
from coterie.method.refine.averages import LARGEST_WEIGHT
from coterie.method.refine.losses import whole_losses
from coterie.method.refine.pooled import (
    RIDGE,
    PooledLosses,
    _most_probable,
    _NoiseMoments,
    log_probability,
    reassigned_labels,
)
from coterie.records import Selection
from coterie.rows.learners import Learners, gather_learners

SMALL_RIDGE = 1e-6
labellings = st.lists(st.integers(0, 3), min_size=5, max_size=5).map(np.array)


def by_hand(learners: Learners, selection: Selection, labels: Any, k: int, j: int) -> Any:
    """Residuals of j's rows under a fit of the members' stacked rows without j, or None."""
    members = [i for i in np.flatnonzero(labels == k) if i != j]
    if not members:
        return None
    frame = StandardizedColumns(learners)
    stacked = np.concatenate([np.arange(len(learners.y))[learners.span(i)] for i in members])
    Z, y = frame.rows(learners.X[stacked]), learners.scalar_y[stacked] - frame.middle
    precision = np.minimum(np.median(1 / selection.noise) ** -1 / selection.noise, LARGEST_WEIGHT)
    precision = precision[learners.owner[stacked]]
    weights = precision if learners.weights is None else precision * learners.weights[stacked]
    # Rows that the learner's own honest model misses by far count less.
    honest = np.concatenate(selection.residuals)[stacked, 0]
    weights = weights * np.minimum(1, selection.clips[learners.owner[stacked]] / honest**2)
    # A ridge is a handful of further rows whose response is zero, fewer where there is little noise.
    ridge = RIDGE * min(1.0, np.sqrt(np.median(selection.noise) / learners.scalar_y.var()))
    Z = np.vstack([Z * np.sqrt(weights)[:, None], np.sqrt(ridge) * np.eye(Z.shape[1])])
    y = np.r_[y * np.sqrt(weights), np.zeros(Z.shape[1])]
    vector = np.linalg.lstsq(Z, y, rcond=None)[0]
    mine = learners.span(j)
    return learners.scalar_y[mine] - frame.middle - frame.rows(learners.X[mine]) @ vector


@pytest.fixture(scope="module", params=[False, True], ids=["plain", "weighted"])
def learners(request: pytest.FixtureRequest, make_learners: Callable[..., Learners]) -> Learners:
    return make_learners(weighted=request.param)


@pytest.fixture(scope="module")
def selection(learners: Learners, select: Callable[..., Selection]) -> Selection:
    return select(learners, [LinearRegression()])


def test_everybody_is_predicted_by_the_pooled_rows_of_the_others(
    learners: Learners,
    selection: Selection,
    rows_by_hand: Callable[..., Any],
    halves_by_hand: Callable[..., Any],
    in_order: Callable[..., Any],
) -> None:
    losses = PooledLosses(learners, selection)

    @settings(max_examples=20, deadline=None, derandomize=True)
    @given(labellings)
    def agrees(labels: Any) -> None:
        n_clusters = int(labels.max()) + 1
        residuals = in_order(losses, losses.residuals(labels, n_clusters)[..., 0])
        expected = partial(by_hand, learners, selection, labels)
        for k in range(n_clusters):
            for j in range(5):
                mine = residuals[k, learners.span(j)]
                explicit = expected(k, j)
                assert np.isnan(mine).all() if explicit is None else np.allclose(mine, explicit)
        rows = rows_by_hand(learners, selection, labels, expected)
        assert np.allclose(losses.on_halves(labels), halves_by_hand(learners, selection, rows))

    agrees()


def test_a_learner_loses_less_with_those_of_its_own_truth(learners: Learners, selection: Selection) -> None:
    losses = PooledLosses(learners, selection)
    whole = whole_losses(losses, np.array([0, 1, 0, 1, 0]))
    assert whole.argmin(axis=0).tolist() == [0, 1, 0, 1, 0]


def test_the_unit_of_the_response_changes_nothing(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    learners = make_learners()
    labels = np.array([0, 1, 0, 1, 0])
    ratios = []
    for unit in (1.0, 1e-6, 1e6):
        rows = replace(learners, y=unit * (learners.y + 3))
        losses = PooledLosses(rows, select(rows, [LinearRegression()]))
        ratios.append(whole_losses(losses, labels) / losses.noise)
    assert np.allclose(ratios[1], ratios[0])
    assert np.allclose(ratios[2], ratios[0])


def test_more_predictors_than_rows_and_duplicated_columns_have_an_answer(
    in_order: Callable[..., Any],
) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 20))
    X[:, 1] = X[:, 0]
    learners = gather_learners(X, X[:, 0] + rng.normal(size=12), np.repeat([0, 1, 2], 4), caller="test")
    ones = np.ones(3)
    selection = Selection(
        learner_ids=learners.ids,
        names=("lr",) * 3,
        models=(None,) * 3,
        errors=ones,
        held_out_errors=ones,
        n_rows=learners.sizes,
        candidate_errors=({},) * 3,
        candidate_losses=({},) * 3,
        residuals=(np.ones((4, 1)),) * 3,
        folds=(np.arange(4) % 2,) * 3,
        training=(np.ones((2, 4), dtype=bool),) * 3,
        fold_models=((),) * 3,
        noise=ones,
        clips=np.full(3, np.inf),
    )
    labels = np.zeros(3, dtype=int)
    losses = PooledLosses(learners, selection)
    residuals = in_order(losses, losses.residuals(labels, 1)[..., 0])
    for j in range(3):
        assert np.allclose(residuals[0, learners.span(j)], by_hand(learners, selection, labels, 0, j))


def test_the_others_are_still_seen_behind_a_wide_learner_without_noise(
    make_learners: Callable[..., Learners], select: Callable[..., Selection], in_order: Callable[..., Any]
) -> None:
    learners = make_learners()
    X = learners.X.copy()
    X[learners.span(0)] *= 1e3
    wide = replace(learners, X=X)
    exact = replace(select(wide, [LinearRegression()]), noise=np.array([1e-10, 1.0, 1.0, 1.0, 1.0]))
    labels = np.zeros(5, dtype=int)
    losses = PooledLosses(wide, exact)
    mine = in_order(losses, losses.residuals(labels, 1)[..., 0])[0, wide.span(0)]
    assert np.allclose(mine, by_hand(wide, exact, labels, 0, 0), rtol=1e-3)


def moments(X, y, owner):
    """Second moments of every learner's rows with a column of ones."""
    rows = [np.column_stack([np.ones(np.sum(owner == j)), X[owner == j]]) for j in np.unique(owner)]
    responses = [y[owner == j] for j in np.unique(owner)]
    G = np.array([Z.T @ Z for Z in rows])
    c = np.array([Z.T @ r[:, None] for Z, r in zip(rows, responses, strict=True)])
    return G, c, np.array([r @ r for r in responses])


def reassign(data, labels, closed=()):
    G, c, squares = moments(*data)
    ridge = SMALL_RIDGE * np.eye(G.shape[-1])
    open_to = np.ones((max(labels) + 1, len(G)), dtype=bool)
    open_to[:, list(closed)] = False
    return reassigned_labels(G, c, squares, len(data[1]), ridge, np.array(labels), open_to)


def two_truths(n_learners=8, n=20, noise=0.5, seed=0):
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 2))
    slopes = np.where(owner % 2, -1.0, 1.0)
    return X, slopes * X[:, 0] + noise * rng.normal(size=len(owner)), owner


@given(st.integers(0, 50), st.floats(0.01, 100.0))
@settings(deadline=None)
def test_the_probability_is_that_of_the_normal_distribution(seed, precision):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(5, 2)), rng.normal(size=5)
    exact = multivariate_normal(np.zeros(5), np.eye(5) + X @ X.T / precision).logpdf(y)
    constant = -0.5 * (y @ y + 5 * np.log(2 * np.pi))
    assert log_probability(X.T @ X, X.T @ y[:, None], precision) + constant == pytest.approx(exact)


def test_right_labels_stay_and_a_learner_in_the_wrong_cluster_moves():
    truth = np.arange(8) % 2
    assert reassign(two_truths(), truth).tolist() == truth.tolist()
    wrong = truth.copy()
    wrong[3] = 0
    assert reassign(two_truths(), wrong).tolist() == truth.tolist()


def test_several_in_the_wrong_cluster_move():
    truth = np.arange(12) % 2
    wrong = truth.copy()
    wrong[[1, 4, 9]] = 1 - wrong[[1, 4, 9]]
    assert reassign(two_truths(12), wrong).tolist() == truth.tolist()


def test_learners_whose_losses_are_clear_stay_whatever_is_probable():
    wrong = np.arange(8) % 2
    wrong[[3, 6]] = 0, 1
    found = reassign(two_truths(), wrong, closed=[3])
    assert found[3] == 0
    assert found[6] == 0


def test_no_cluster_becomes_empty_though_one_truth_needs_no_second():
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(6), 20)
    X = rng.normal(size=(len(owner), 2))
    y = X[:, 0] + rng.normal(size=len(owner))
    for labels in ([0, 0, 0, 0, 0, 1], [0, 1, 0, 1, 0, 1], [0, 1, 2, 2, 2, 2]):
        found = reassign((X, y, owner), labels)
        assert len(set(found.tolist())) == len(set(labels))


@given(st.integers(0, 30))
@settings(deadline=None)
def test_settling_never_makes_the_rows_less_probable(seed):
    rng = np.random.default_rng(seed)
    X, y, owner = two_truths(6, 8, noise=2.0, seed=seed)
    labels = np.r_[0, 1, rng.integers(0, 2, 4)]
    G, c, squares = moments(X, y, owner)
    ridge = SMALL_RIDGE * np.eye(3)
    found = reassigned_labels(G, c, squares, len(y), ridge, labels, np.ones((2, 6), dtype=bool))
    one = np.linalg.solve(G.sum(axis=0) + ridge, c.sum(axis=0))
    # In the units of noise of the start, which are those of the search.
    about = c - G @ one
    sums = _NoiseMoments(G, about).of_clusters(labels, 2)
    fitted = np.linalg.solve(sums[0] + ridge, sums[1])
    residuals = squares - 2 * np.einsum("jdc,dc->j", c, one) + np.einsum("jde,dc,ec->j", G, one, one)
    noise = (residuals.sum() - np.sum(fitted * sums[1])) / (len(y) - 6)
    rows = _NoiseMoments(G / noise, about / noise)
    before, after = (_most_probable(rows, tried, 2)[0] for tried in (labels, found))
    assert after >= before - 1e-9
    # Few learners: all partitions can be looked at, and none that differs in one learner is more probable
    # under the prior that the answer itself prefers.
    best = max(_most_probable(rows, np.array(p), 2)[0] for p in product((0, 1), repeat=6) if 0 < sum(p) < 6)
    assert after <= best + 1e-9


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_units_do_not_matter(factor):
    X, y, owner = two_truths(noise=1.5, seed=3)
    labels = np.array([0, 1, 0, 1, 0, 0, 1, 1])
    assert reassign((X, y, owner), labels).tolist() == reassign((X, factor * y, owner), labels).tolist()


def test_without_noise_the_labels_stay():
    X, y, owner = two_truths(noise=0.0)
    labels = np.arange(8) % 2
    assert reassign((X, y, owner), labels).tolist() == labels.tolist()
