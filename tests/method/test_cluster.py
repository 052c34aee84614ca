from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.method.exchange import exchange_from_losses
from coterie.method.search import RULES, default_max_clusters
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners, gather_learners

Rows = tuple[Learners, Selection, Exchange, Any]
Blocks = Callable[..., Any]
# Two that agree, one apart.
LOSSES = np.array([[1, 1.1, 9], [1.1, 1, 9], [9, 9, 1]])


@pytest.mark.parametrize(
    ("n", "most"), [(1, 1), (3, 3), (8, 8), (9, 8), (16, 8), (17, 9), (30, 11), (100, 20), (10_000, 20)]
)
def test_two_sqrt_of_the_learners_are_looked_at(n: int, most: int) -> None:
    assert default_max_clusters(n) == most


def test_a_matrix_of_losses_is_clustered() -> None:
    partition = cluster_learners(LOSSES, n_clusters=2)
    assert partition.labels.tolist() == [0, 0, 1]
    assert partition.learner_ids.tolist() == [0, 1, 2]
    assert partition.n_clusters == 2
    assert partition.rule == "given"
    assert partition.scale == 1.0
    assert_allclose(partition.similarity[0], np.exp([0, -0.2, -16]))
    assert_allclose(np.linalg.norm(partition.embedding, axis=1), 1.0)
    assert partition.embedding.shape == (3, 2)
    assert partition.eigenvalues[0] == pytest.approx(1.0)
    assert partition.clear


def test_an_exchange_may_come_as_nested_lists() -> None:
    assert cluster_learners(LOSSES.tolist(), n_clusters=2).labels.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame(LOSSES, columns=["north", "south", "east"]),
        pd.DataFrame(LOSSES, columns=["north", "south", "east"], index=["north", "south", "east"]),
        pl.DataFrame(LOSSES, schema=["north", "south", "east"]),
        pa.table({name: LOSSES[:, j] for j, name in enumerate(["north", "south", "east"])}),
    ],
)
def test_a_table_of_losses_names_its_learners(table: Any) -> None:
    partition = cluster_learners(table, n_clusters=2)
    assert partition.learner_ids.tolist() == ["north", "south", "east"]
    assert partition.labels.tolist() == [0, 0, 1]


def test_names_may_be_given_beside_the_matrix() -> None:
    partition = cluster_learners(LOSSES, n_clusters=2, learner_ids=["b", "a", "c"])
    assert partition.learner_ids.tolist() == ["b", "a", "c"]
    assert partition.labels.tolist() == [0, 0, 1]
    assert_allclose(partition.similarity[0], np.exp([0, -0.2, -16]))


def test_a_table_whose_rows_are_in_another_order_is_put_right_or_refused() -> None:
    table = pd.DataFrame(LOSSES, columns=list("abc"), index=list("abc")).loc[list("cab")]
    try:
        labels = dict(zip("abc", cluster_learners(table, n_clusters=2).labels.tolist(), strict=True))
    except ValueError:
        return
    assert labels["a"] == labels["b"] != labels["c"]


def test_two_learners_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="'b'"):
        cluster_learners(LOSSES, n_clusters=2, learner_ids=["a", "b", "b"])


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_model_whose_losses_are_not_finite_stands_alone(bad: float) -> None:
    losses = np.insert(np.insert(LOSSES, 1, 5.0, axis=0), 1, 5.0, axis=1)
    losses[1, 3] = bad
    partition = cluster_learners(losses, n_clusters=2, learner_ids=list("abcd"))
    assert partition.labels.tolist() == [0, 2, 0, 1]
    assert partition.n_clusters == 3
    assert np.isfinite(partition.similarity).all()
    assert partition.similarity[1].tolist() == [0, 1, 0, 0]
    assert_allclose(np.linalg.norm(partition.embedding, axis=1), 1.0)
    assert partition.notes[-1] == "Learner 'b' stands alone: the losses of its model were not finite."


def test_several_such_models_stand_alone_each() -> None:
    losses = LOSSES.copy()
    losses[0, 2] = losses[2, 0] = np.nan
    partition = cluster_learners(losses)
    assert sorted(partition.labels.tolist()) == [0, 1, 2]
    assert partition.labels[1] == 0


@pytest.mark.parametrize(
    ("losses", "sentence"),
    [
        (LOSSES[:2], r"must be square, models by learners. Got the shape \(2, 3\)"),
        (LOSSES[0], r"must be square, models by learners. Got the shape \(3,\)"),
        (np.empty((0, 0)), r"must be square, models by learners. Got the shape \(0, 0\)"),
        (3.0, r"must be square, models by learners. Got the shape \(\)"),
        (LOSSES - 2, "must not be negative: pass mean squared errors, not scores"),
        (np.full((2, 2), np.nan), "Every row .* not finite"),
    ],
)
def test_what_is_no_matrix_of_losses_is_refused(losses: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        cluster_learners(losses)


def test_a_wrong_number_of_names_is_refused() -> None:
    with pytest.raises(ValueError, match="2 learner ids do not fit 3 learners"):
        cluster_learners(LOSSES, learner_ids=["a", "b"])


def test_auto_from_a_matrix_is_eigengap_and_says_so(block_losses: Blocks) -> None:
    losses = block_losses([3, 3], jitter=0.2)
    partition = cluster_learners(losses)
    assert partition.rule == "eigengap"
    assert partition.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert partition.notes[0].startswith("The number of clusters is by eigengap")
    assert cluster_learners(losses, n_clusters="eigengap").notes == ()


@pytest.mark.parametrize("rule", ["held-out", "cv"])
def test_rules_that_need_rows_are_refused_from_a_matrix(rule: str) -> None:
    with pytest.raises(ValueError, match=f"rule '{rule}' needs the learners' rows.*'eigengap', 'gap'"):
        cluster_learners(LOSSES, n_clusters=rule)


@pytest.mark.parametrize("rule", ["eigengap", "gap", "gap-jump", "penalty"])
def test_other_rules_work_from_a_matrix(rule: str, block_losses: Blocks) -> None:
    partition = cluster_learners(block_losses([5, 3], between=4.0, jitter=0.2), n_clusters=rule)
    assert partition.rule == rule
    assert partition.labels.tolist() == [0] * 5 + [1] * 3
    assert set(partition.curves) == {"eigengap", "gap", "gap-jump", "penalty"}
    assert partition.curves[rule].chosen == 2


@pytest.mark.parametrize("rule", ["auto", "held-out", "eigengap", "gap-jump", "cv"])
def test_every_rule_that_can_finds_three_easy_clusters(three_truths: Rows, rule: str) -> None:
    # The first-K rule of the gap and the penalty do not always see three clusters of one size.
    learners, selection, exchange, truth = three_truths
    partition = cluster_learners(exchange, learners, selection=selection, n_clusters=rule)
    assert partition.rule == {"auto": "held-out"}.get(rule, rule)
    assert np.array_equal(partition.labels, truth)


def test_a_number_is_taken_as_it_is(three_truths: Rows) -> None:
    learners, selection, exchange, truth = three_truths
    partition = cluster_learners(exchange, learners, selection=selection, n_clusters=np.int64(3))
    assert partition.rule == "given"
    assert np.array_equal(partition.labels, truth)
    one = cluster_learners(exchange, learners, selection=selection, n_clusters=1)
    assert one.labels.tolist() == [0] * 12
    assert one.embedding.shape == (12, 1)


@pytest.mark.parametrize("rule", RULES)
def test_all_rules_show_their_curves_whichever_decides(three_truths: Rows, rule: str) -> None:
    learners, selection, exchange, _ = three_truths
    curves = cluster_learners(exchange, learners, selection=selection, n_clusters=rule).curves
    assert set(curves) == set(RULES) - {"auto"}
    for name, curve in curves.items():
        assert curve.rule == name
        assert curve.n_clusters[0] == 1
        assert curve.chosen in curve.n_clusters
        assert len(curve.values) == len(curve.n_clusters)
        assert curve.criterion


def test_the_largest_number_looked_at_may_be_set(three_truths: Rows) -> None:
    learners, selection, exchange, _ = three_truths
    partition = cluster_learners(exchange, learners, selection=selection, max_clusters=2)
    assert all(curve.n_clusters.tolist() == [1, 2] for curve in partition.curves.values())
    assert partition.n_clusters == 2
    # Two is where the search ended, not where the learners fall apart.
    assert not partition.clear
    assert "more clusters would predict still better" in partition.notes[0]


def test_a_number_beyond_the_largest_looked_at_is_still_taken() -> None:
    assert cluster_learners(LOSSES, n_clusters=3, max_clusters=1).n_clusters == 3


@pytest.mark.parametrize("most", [0, -1, 1.5, "two"])
def test_a_largest_number_that_is_no_count_is_refused(most: Any) -> None:
    with pytest.raises(ValueError, match="'max_clusters' option must be an integer of at least 1"):
        cluster_learners(LOSSES, max_clusters=most)


@pytest.mark.parametrize("count", [0, -2, 1.0, None, True])
def test_a_number_of_clusters_that_is_no_count_is_refused(count: Any) -> None:
    with pytest.raises(ValueError, match=r"'n_clusters' option must be an integer of at least 1. Got"):
        cluster_learners(LOSSES, n_clusters=count)


def test_more_clusters_than_learners_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must not exceed the number of learners \(3\). Got 4"):
        cluster_learners(LOSSES, n_clusters=4)


def test_an_unknown_rule_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=", ".join(f"'{rule}'" for rule in RULES)):
        cluster_learners(LOSSES, n_clusters="elbow")


def test_an_unknown_refinement_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'pooled', 'average', 'likelihood', None. Got 'median'"):
        cluster_learners(LOSSES, refine="median")


def test_rows_without_a_selection_are_refused(three_truths: Rows) -> None:
    with pytest.raises(ValueError, match="needs the selection beside the rows"):
        cluster_learners(three_truths[2], three_truths[0])


def test_rows_that_lack_a_learner_are_refused_by_name(three_truths: Rows) -> None:
    learners, selection, exchange, _ = three_truths
    fewer = learners.take(np.arange(11))
    with pytest.raises(ValueError, match="learner 11"):
        cluster_learners(exchange, fewer, selection=selection)


@pytest.mark.parametrize("scale", ["noise", "median", 0.5])
def test_every_scale_separates_clean_blocks(scale: Any, block_losses: Blocks) -> None:
    partition = cluster_learners(block_losses([5, 3], between=4.0, jitter=0.2), n_clusters=2, scale=scale)
    assert partition.labels.tolist() == [0] * 5 + [1] * 3
    assert partition.scale > 0


def test_a_graph_that_falls_apart_is_clustered(block_losses: Blocks) -> None:
    losses = block_losses([3, 2, 1], between=1e9)
    losses[5, :5] = losses[:5, 5] = 1e10
    partition = cluster_learners(losses, n_clusters=3)
    assert partition.labels.tolist() == [0, 0, 0, 1, 1, 2]
    assert np.isfinite(partition.embedding).all()
    # Two clusters of three parts: the spectrum cannot tell which to join, the dissimilarities can.
    assert cluster_learners(losses, n_clusters=2).labels.tolist() == [0, 0, 0, 0, 0, 1]


@pytest.mark.parametrize("scale", ["noise", "median"])
def test_learners_without_any_similarity_are_clustered(scale: str) -> None:
    losses = np.full((4, 4), 1e300)
    np.fill_diagonal(losses, 1.0)
    partition = cluster_learners(losses, n_clusters=2, scale=scale)
    assert partition.n_clusters in (1, 2)
    assert np.isfinite(partition.embedding).all()


@pytest.mark.parametrize("level", [0.0, 1.0])
def test_identical_learners_are_one_cluster(level: float) -> None:
    partition = cluster_learners(np.full((5, 5), level))
    assert partition.labels.tolist() == [0] * 5
    assert np.isfinite(partition.eigenvalues).all()


@pytest.mark.parametrize("count", [2, 3])
def test_identical_learners_stay_together_however_many_clusters_are_asked_for(count: int) -> None:
    partition = cluster_learners(np.ones((5, 5)), n_clusters=count)
    assert partition.labels.tolist() == [0] * 5
    assert "stayed without members" in partition.notes[0]


def test_one_learner_is_one_cluster() -> None:
    partition = cluster_learners([[2.0]])
    assert partition.labels.tolist() == [0]
    assert partition.embedding.tolist() == [[1.0]]


@pytest.mark.parametrize(("between", "labels"), [(1.0, [0, 0]), (50.0, [0, 1])])
def test_two_learners_are_one_cluster_or_two(between: float, labels: list[int]) -> None:
    assert cluster_learners([[1.0, between], [between, 1.0]]).labels.tolist() == labels


def test_without_noise_learners_are_told_apart_by_their_losses() -> None:
    losses = np.kron(np.array([[0.0, 4.0], [4.0, 0.0]]), np.ones((3, 3)))
    assert cluster_learners(losses, n_clusters=2).labels.tolist() == [0, 0, 0, 1, 1, 1]


@settings(max_examples=20, deadline=None, derandomize=True)
@given(data=st.data())
def test_the_order_of_the_learners_changes_no_learner_s_label(data: Any) -> None:
    n = data.draw(st.integers(2, 7))
    seed = data.draw(st.integers(0, 100))
    order = np.array(data.draw(st.permutations(range(n))))
    losses = np.random.default_rng(seed).uniform(1, 6, size=(n, n))
    np.fill_diagonal(losses, 1.0)
    straight = cluster_learners(losses, n_clusters=2)
    turned = cluster_learners(losses[np.ix_(order, order)], n_clusters=2, learner_ids=order)
    assert np.array_equal(turned.labels, straight.labels[order])
    assert np.array_equal(turned.embedding, straight.embedding[order])
    assert np.array_equal(turned.similarity, straight.similarity[np.ix_(order, order)])


@settings(max_examples=20, deadline=None, derandomize=True)
@given(seed=st.integers(0, 1000), n=st.integers(1, 8), count=st.integers(1, 8))
def test_clusters_are_numbered_from_zero_the_largest_first(seed: int, n: int, count: int) -> None:
    losses = np.random.default_rng(seed).uniform(1, 6, size=(n, n))
    np.fill_diagonal(losses, 1.0)
    sizes = np.bincount(cluster_learners(losses, n_clusters=min(count, n)).labels)
    assert np.all(np.diff(sizes) <= 0)
    assert sizes.min() > 0
    assert len(sizes) <= min(count, n)


def test_learners_of_few_rows_make_the_number_uncertain() -> None:
    rng = np.random.default_rng(0)
    X, groups = rng.normal(size=(40, 4)), np.repeat(np.arange(4), 10)
    y = X[:, 0] + 0.1 * rng.normal(size=40)
    selection = select_models(X, y, groups=groups, candidates=["lr"])
    exchange = cross_evaluate(selection, X, y, groups=groups)
    notes = cluster_learners(exchange, X, y, groups=groups, selection=selection).notes
    assert notes[-1].startswith(
        "The number of clusters is uncertain: 4 of 4 learners hold fewer than 2p + 5 = 13"
    )


def test_an_exchange_from_a_matrix_has_its_diagonal_for_errors_and_noise() -> None:
    exchange = exchange_from_losses([[1.0, 5.0], [6.0, 2.0]])
    assert exchange.errors.tolist() == exchange.noise.tolist() == [1.0, 2.0]
    assert exchange.dissimilarity[0, 1] == abs(5 - 2) + abs(6 - 1)


def test_learners_of_many_rows_in_clear_clusters_are_not_called_unclear() -> None:
    # With many rows a coterie hardly beats a learner's own model, and that is no sign of a continuum.
    for n_rows in (200, 800):
        data = make_linear_learners(12, 3, n_rows=n_rows, random_state=0)
        learners = gather_learners(data.X, data.y, data.groups, caller="test")
        selection = select_models(learners, candidates=["lr"])
        partition = cluster_learners(cross_evaluate(selection, learners), learners, selection=selection)
        assert partition.n_clusters == 3
        assert partition.clear
