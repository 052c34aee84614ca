from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold
from sklearn.neighbors import KNeighborsRegressor

from coterie import cluster_learners, collaborate, cross_evaluate, select_models
from coterie.collaboration.forms import average_weights
from coterie.datasets import make_linear_learners
from coterie.records import Collaboration, Partition, Selection

SIZES = [20, 25, 30, 35, 40, 45]
DATA = make_linear_learners(6, n_rows=SIZES, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)
ROWS = {"X": DATA.X, "y": DATA.y, "groups": DATA.groups}
OWNER = np.repeat(np.arange(6), SIZES)
TRUTH = DATA.truth


def selected(candidates: Any = ("lr",), **options: Any) -> tuple[Selection, Partition]:
    candidates = list(candidates) if isinstance(candidates, tuple) else candidates
    selection = select_models(**ROWS, candidates=candidates, **options)
    return selection, cluster_learners(cross_evaluate(selection, **ROWS), n_clusters=2)


def made(method: str, candidates: Any = ("lr",), **options: Any) -> Collaboration:
    selection, partition = selected(candidates)
    candidates = list(candidates) if isinstance(candidates, tuple) else candidates
    return collaborate(selection, partition, **ROWS, method=method, candidates=candidates, **options)


def predict(collaboration: Collaboration) -> Any:
    """Predict everybody's rows, each with the way of the learner who holds it."""
    return collaboration.predict(DATA.X, collaboration.weight_rows[OWNER])


def test_the_six_learners_fall_into_their_truths() -> None:
    _, partition = selected()
    assert partition.labels.tolist() == TRUTH.tolist() == [0, 1, 0, 1, 0, 1]


def test_a_cluster_without_members_has_no_weights_and_warns_nobody() -> None:
    weights = average_weights(np.array([10, 30]), np.array([0, 2]))
    assert weights[[0, 2]].tolist() == [[1.0, 0.0], [0.0, 1.0]]
    assert np.isnan(weights[1]).all()


def test_average_weights_are_the_shares_of_the_rows() -> None:
    collaboration = made("average")
    expected = np.array([[20, 0, 30, 0, 40, 0], [0, 25, 0, 35, 0, 45]])
    assert np.array_equal(collaboration.weights, expected / expected.sum(axis=1, keepdims=True))
    assert collaboration.weight_rows.tolist() == [0, 1, 0, 1, 0, 1]
    assert collaboration.newcomer_weight_rows.tolist() == [0, 1]
    assert collaboration.method == "average"


def test_average_predictions_are_the_weighted_average_of_the_members_predictions() -> None:
    selection, _ = selected()
    parts = np.array([model.predict(DATA.X) for model in selection.models])
    even = (20 * parts[0] + 30 * parts[2] + 40 * parts[4]) / 90
    odd = (25 * parts[1] + 35 * parts[3] + 45 * parts[5]) / 105
    assert_allclose(predict(made("average")), np.where(TRUTH[OWNER] == 0, even, odd))


@pytest.mark.parametrize("candidates", [("lr",), ("knn",)])
def test_average_residuals_leave_out_what_the_own_model_has_seen(candidates: Any) -> None:
    selection, _ = selected(candidates)
    collaboration = made("average", candidates)
    for j, learner in enumerate(DATA.learner_ids):
        mine = DATA.groups == learner
        members = np.flatnonzero(TRUTH[j] == TRUTH)
        parts = {i: selection.models[i].predict(DATA.X[mine]) for i in members}
        parts[j] = DATA.y[mine] - selection.residuals[j][:, 0]
        sizes = np.array(SIZES)[members]
        average = sum(n * parts[i] for n, i in zip(sizes, members, strict=True)) / sizes.sum()
        assert_allclose(collaboration.residuals[j][:, 0], DATA.y[mine] - average, atol=1e-10)


def test_pooled_is_the_candidate_fitted_on_the_stacked_rows_of_the_members() -> None:
    collaboration = made("pooled")
    predictions = predict(collaboration)
    for truth in (0, 1):
        theirs = TRUTH[OWNER] == truth
        model = LinearRegression().fit(DATA.X[theirs], DATA.y[theirs])
        assert_allclose(predictions[theirs], model.predict(DATA.X[theirs]))
    assert collaboration.names == ("lr", "lr")
    assert np.array_equal(collaboration.weights, np.eye(2))


def test_pooled_residuals_come_from_models_that_have_not_seen_the_row() -> None:
    selection, _ = selected()
    collaboration = made("pooled")
    folds = np.concatenate(selection.folds)
    for truth in (0, 1):
        theirs = TRUTH[OWNER] == truth
        for fold in (0, 1):
            train, out = theirs & (folds != fold), theirs & (folds == fold)
            model = LinearRegression().fit(DATA.X[train], DATA.y[train])
            residuals = np.concatenate(collaboration.residuals)[out, 0]
            assert_allclose(residuals, DATA.y[out] - model.predict(DATA.X[out]))


def test_pooled_members_choose_among_the_candidates_of_all_of_them() -> None:
    mapping = {i: ["knn"] if k < 2 else ["lr"] for k, i in enumerate(DATA.learner_ids)}
    selection, partition = selected(mapping)
    assert selection.names == ("knn", "knn", "lr", "lr", "lr", "lr")
    collaboration = collaborate(selection, partition, **ROWS, candidates=mapping)
    assert collaboration.names == ("lr", "lr")


def test_a_learner_alone_in_its_cluster_keeps_its_own_model() -> None:
    selection, _ = selected()
    singles = cluster_learners(cross_evaluate(selection, **ROWS), n_clusters=6)
    assert singles.n_clusters == 6
    collaboration = collaborate(selection, singles, **ROWS, candidates=["lr"])
    own = np.concatenate(
        [m.predict(DATA.X[j == OWNER]) for j, m in enumerate(selection.models)],
    )
    assert_allclose(predict(collaboration), own)
    assert_allclose(np.concatenate(collaboration.residuals)[:, 0], np.concatenate(selection.residuals)[:, 0])


def test_local_is_everybody_s_own_model() -> None:
    selection, _ = selected()
    collaboration = made("local")
    own = np.concatenate([m.predict(DATA.X[j == OWNER]) for j, m in enumerate(selection.models)])
    assert_allclose(predict(collaboration), own)
    assert collaboration.residuals is selection.residuals or np.array_equal(
        np.concatenate(collaboration.residuals)[:, 0], np.concatenate(selection.residuals)[:, 0]
    )


def test_local_newcomers_predict_with_the_average_of_their_coterie() -> None:
    local, average = made("local"), made("average")
    assert_allclose(local.weights[local.newcomer_weight_rows], average.weights)


def test_global_is_one_model_on_all_rows() -> None:
    collaboration = made("global")
    model = LinearRegression().fit(DATA.X, DATA.y)
    assert_allclose(predict(collaboration), model.predict(DATA.X))
    assert collaboration.weight_rows.tolist() == [0] * 6
    assert collaboration.newcomer_weight_rows.tolist() == [0, 0]
    folds = np.concatenate(selected()[0].folds)
    half = LinearRegression().fit(DATA.X[folds == 1], DATA.y[folds == 1])
    residuals = np.concatenate(collaboration.residuals)[folds == 0, 0]
    assert_allclose(residuals, (DATA.y - half.predict(DATA.X))[folds == 0])


@pytest.mark.parametrize("method", ["average", "pooled", "local", "global"])
def test_ways_of_predicting_are_weights_that_sum_to_one(method: str) -> None:
    collaboration = made(method)
    assert_allclose(collaboration.weights.sum(axis=1), 1.0)
    assert np.all(collaboration.weights >= 0)
    assert collaboration.learner_ids.tolist() == DATA.learner_ids.tolist()
    assert [len(r) for r in collaboration.residuals] == SIZES


@pytest.mark.parametrize("method", ["average", "pooled", "local", "global"])
def test_a_model_that_memorises_its_rows_has_honest_residuals(method: str) -> None:
    selection, partition = selected([KNeighborsRegressor(1)])
    collaboration = collaborate(
        selection, partition, **ROWS, method=method, candidates=[KNeighborsRegressor(1)]
    )
    assert np.abs(np.concatenate(collaboration.residuals)[:, 0]).min() > 0


@pytest.mark.parametrize("method", ["average", "pooled", "local", "global"])
def test_the_order_of_the_rows_of_different_learners_does_not_matter(method: str) -> None:
    selection, partition = selected()
    straight = collaborate(selection, partition, **ROWS, method=method, candidates=["lr"])
    order = np.argsort(-OWNER, kind="stable")
    turned = collaborate(
        selection,
        partition,
        DATA.X[order],
        DATA.y[order],
        groups=DATA.groups[order],
        method=method,
        candidates=["lr"],
    )
    assert turned.learner_ids.tolist() == DATA.learner_ids[::-1].tolist()
    there = turned.predict(DATA.X, turned.weight_rows[5 - OWNER])
    assert np.array_equal(there, predict(straight))


def test_pooled_models_weight_the_rows_where_they_can() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 4, len(DATA.y))
    selection = select_models(**ROWS, candidates=["lr"], sample_weight=weight)
    _, partition = selected()
    collaboration = collaborate(selection, partition, **ROWS, candidates=["lr"], sample_weight=weight)
    # Weights are shares inside a learner: one with heavy rows does not count for more than its rows.
    means = np.bincount(OWNER, weight) / np.bincount(OWNER)
    theirs = TRUTH[OWNER] == 0
    inside = (weight / means[OWNER])[theirs]
    model = LinearRegression().fit(DATA.X[theirs], DATA.y[theirs], sample_weight=inside)
    assert_allclose(predict(collaboration)[theirs], model.predict(DATA.X[theirs]))


def test_pooled_models_compete_on_all_folds_of_a_splitter() -> None:
    selection, partition = selected(splitter=KFold(3))
    collaboration = collaborate(selection, partition, **ROWS, candidates=["lr"])
    folds = np.concatenate(selection.folds)
    theirs = TRUTH[OWNER] == 1
    train, out = theirs & (folds != 2), theirs & (folds == 2)
    model = LinearRegression().fit(DATA.X[train], DATA.y[train])
    residuals = np.concatenate(collaboration.residuals)[out, 0]
    assert_allclose(residuals, DATA.y[out] - model.predict(DATA.X[out]))


def test_an_unknown_method_lists_the_known_ones() -> None:
    selection, partition = selected()
    with pytest.raises(ValueError, match=r"'pooled', 'average', 'local', 'global'. Got 'mean'"):
        collaborate(selection, partition, **ROWS, method="mean")


def test_rows_of_learners_without_a_selection_are_refused() -> None:
    selection, partition = selected()
    with pytest.raises(ValueError, match="knows nothing of learner 'stranger'"):
        collaborate(selection, partition, DATA.X, DATA.y, groups=["stranger"] * len(DATA.y))


class Modest(RegressorMixin, BaseEstimator):
    """A line through a few rows; many are too many for it."""

    def fit(self, X: Any, y: Any) -> Any:
        if len(y) > 45:
            raise ValueError("too many rows")
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.line_.predict(X)


def test_a_coterie_leaves_out_a_candidate_that_fails_on_its_rows() -> None:
    candidates = {"modest": Modest(), "knn": KNeighborsRegressor(2)}
    selection, partition = selected(candidates)
    assert set(selection.names) == {"modest"}
    assert collaborate(selection, partition, **ROWS, candidates=candidates).names == ("knn", "knn")


def test_a_coterie_all_of_whose_candidates_fail_is_named_with_the_causes() -> None:
    selection, partition = selected([Modest()])
    with pytest.raises(
        ValueError, match=r"for the coterie of learner 'learner 00'.*modest: ValueError: too many rows"
    ):
        collaborate(selection, partition, **ROWS, candidates=[Modest()])
