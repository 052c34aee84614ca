import matplotlib.pyplot as plt
import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.displays import EmbeddingDisplay
from coterie.displays.embedding import _telling_pairs


def clusters(ax: object) -> dict[str, np.ndarray]:
    return {points.get_label(): np.asarray(points.get_offsets()) for points in ax.collections}


def test_what_is_drawn_is_the_frame() -> None:
    embedding = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
    display = EmbeddingDisplay(embedding, labels=[0, 0, 1], learner_ids=["a", "b", "c"]).plot()
    drawn = clusters(display.ax_)
    assert list(drawn) == ["cluster 0 (2 learners)", "cluster 1 (1 learner)"]
    frame = display.frame()
    rows = np.column_stack([frame["column_0"], frame["column_1"]])
    np.testing.assert_array_equal(np.concatenate(list(drawn.values())), rows)
    np.testing.assert_array_equal(rows, embedding)
    assert frame["learner"].tolist() == ["a", "b", "c"]
    assert frame["cluster"].tolist() == [0, 0, 1]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == list(drawn)


def test_one_cluster_is_drawn_over_the_learners() -> None:
    display = EmbeddingDisplay(np.ones((5, 1)), labels=np.zeros(5)).plot()
    display.figure_.canvas.draw()
    (points,) = clusters(display.ax_).values()
    np.testing.assert_array_equal(points, np.column_stack([np.arange(1, 6), np.ones(5)]))
    assert list(display.frame()) == ["learner", "cluster", "column_0"]


def test_a_column_that_is_the_same_for_all_is_not_drawn() -> None:
    angles = np.array([0.0, 2.1, 4.2])
    centres = np.column_stack([np.full(3, 0.6), 0.8 * np.cos(angles), 0.8 * np.sin(angles)])
    labels = np.repeat([0, 1, 2], 4)
    assert _telling_pairs(centres[labels], labels, most=3) == [(1, 2)]
    display = EmbeddingDisplay(centres[labels], labels=labels).plot()
    assert display.ax_.get_xlabel() == "column 1 of the embedding"
    assert display.ax_.get_ylabel() == "column 2 of the embedding"


def test_more_pairs_are_drawn_where_two_columns_cannot_show_all_clusters() -> None:
    labels = np.arange(5)
    pairs = _telling_pairs(np.eye(5), labels, most=3)
    assert pairs[0] == (0, 1)
    # Three clusters lie at the origin of the first pair; the second tells all of them apart.
    assert len(pairs) == 2
    assert not {0, 1} & set(pairs[1])
    display = EmbeddingDisplay(np.eye(5), labels=labels).plot()
    assert display.ax_.shape == (2,)
    for ax, (across, up) in zip(display.ax_, pairs, strict=True):
        drawn = np.concatenate(list(clusters(ax).values()))
        np.testing.assert_array_equal(drawn, np.eye(5)[:, [across, up]])
    _, given = plt.subplots()
    assert display.plot(ax=given).ax_ is given


def test_there_are_at_most_three_panels() -> None:
    assert len(_telling_pairs(np.eye(30), np.arange(30), most=3)) == 3


def test_columns_may_be_chosen() -> None:
    display = EmbeddingDisplay(np.eye(4), labels=[0, 1, 2, 3]).plot(columns=(3, 1))
    np.testing.assert_array_equal(np.concatenate(list(clusters(display.ax_).values())), np.eye(4)[:, [3, 1]])
    assert display.ax_.get_xlabel() == "column 3 of the embedding"


@pytest.mark.parametrize("columns", [(0, 2), (-1, 0), (0,), (0, 1, 1)])
def test_columns_that_do_not_exist(columns: tuple) -> None:
    display = EmbeddingDisplay(np.eye(2), labels=[0, 1])
    with pytest.raises(ValueError, match=r"must name two columns of the embedding, 0 to 1. Got \("):
        display.plot(columns=columns)
    assert not plt.get_fignums()


@pytest.mark.parametrize("n_clusters", [2, 12, 60])
def test_two_hundred_learners(n_clusters: int) -> None:
    rng = np.random.default_rng(0)
    labels = np.arange(200) % n_clusters
    embedding = np.eye(n_clusters)[labels] + 0.05 * rng.normal(size=(200, n_clusters))
    display = EmbeddingDisplay(embedding, labels=labels).plot()
    display.figure_.canvas.draw()
    legend = np.ravel(display.ax_)[-1].get_legend()
    assert len(legend.get_texts()) == min(n_clusters, 24)
    assert legend.get_title().get_text() == ("the first 24 of 60" if n_clusters == 60 else "")


def test_learners_in_one_place() -> None:
    display = EmbeddingDisplay(np.ones((6, 2)), labels=[0, 0, 0, 1, 1, 1]).plot()
    display.figure_.canvas.draw()


def test_from_estimator(model: CoterieRegressor) -> None:
    frame = EmbeddingDisplay.from_estimator(model).frame()
    rows = np.column_stack([frame[f"column_{k}"] for k in range(3)])
    np.testing.assert_array_equal(rows, model.partition_.embedding)
    assert frame["learner"].tolist() == model.partition_.learner_ids.tolist()
    assert frame["cluster"].tolist() == model.partition_.labels.tolist()


def test_arrays_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"Got embedding 2, labels 3, learner_ids 3\."):
        EmbeddingDisplay(np.eye(2), labels=[0, 0, 1])
