from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import LogNorm, Normalize

from coterie import CoterieRegressor, cluster_learners
from coterie.displays import LossHeatmapDisplay
from coterie.displays._crowds import BLOCKS
from coterie.displays.loss_heatmap import colour_limits

LOSSES = [[1.0, 9.0, 2.0], [8.0, 1.0, 7.0], [2.0, 9.0, 3.0]]
# Learners 0 and 2 share a cluster.
LABELS = [0, 1, 0]
ORDERED = [[1.0, 2.0, 9.0], [2.0, 3.0, 9.0], [8.0, 7.0, 1.0]]


def names_on(axis: object) -> list[str]:
    return [text.get_text() for text in axis.get_ticklabels()]


def colour_of(display: LossHeatmapDisplay, row: int, column: int) -> tuple[float, ...]:
    image = display.ax_.images[0]
    return tuple(image.to_rgba(image.get_array())[row, column])


def test_learners_are_ordered_by_cluster_then_as_given() -> None:
    display = LossHeatmapDisplay(LOSSES, labels=LABELS, learner_ids=["a", "b", "c"]).plot()
    assert display.ax_.images[0].get_array().tolist() == ORDERED
    assert names_on(display.ax_.yaxis) == names_on(display.ax_.xaxis) == ["a", "c", "b"]
    frame = display.frame()
    assert frame["loss"].tolist() == np.ravel(ORDERED).tolist()
    assert frame["model"].tolist() == ["a"] * 3 + ["c"] * 3 + ["b"] * 3
    assert frame["learner"].tolist() == ["a", "c", "b"] * 3
    assert frame["model_cluster"].tolist() == [0] * 6 + [1] * 3
    assert frame["learner_cluster"].tolist() == [0, 0, 1] * 3
    assert "loss_per_noise" not in frame


def test_a_boundary_stands_between_clusters() -> None:
    display = LossHeatmapDisplay(LOSSES, labels=LABELS).plot()
    ends = [line.get_xydata().tolist() for line in display.ax_.lines]
    assert [[0, 1.5], [1, 1.5]] in ends
    assert [[1.5, 0], [1.5, 1]] in ends
    assert len(ends) == 2
    assert {text.get_text() for text in display.ax_.texts} == {"cluster 0", "cluster 1"}


def test_units_of_noise_are_those_of_the_target_learner() -> None:
    display = LossHeatmapDisplay(LOSSES, labels=LABELS, noise=[1.0, 2.0, 10.0]).plot(per_noise=True)
    expected = (np.array(ORDERED) / [1.0, 10.0, 2.0]).tolist()
    assert display.ax_.images[0].get_array().tolist() == expected
    assert display.frame()["loss_per_noise"].tolist() == np.ravel(expected).tolist()
    assert display.colorbar_.ax.get_ylabel() == "mean squared error / noise of the learner"


def test_a_learner_without_noise_has_no_unit() -> None:
    display = LossHeatmapDisplay(LOSSES, labels=LABELS, noise=[1.0, 0.0, 1.0]).plot(per_noise=True)
    assert np.isnan(display.frame()["loss_per_noise"].reshape(3, 3)[:, 2]).all()
    display.figure_.canvas.draw()


def test_the_scale_is_logarithmic_and_labelled() -> None:
    display = LossHeatmapDisplay(LOSSES, labels=LABELS).plot()
    norm = display.ax_.images[0].norm
    assert isinstance(norm, LogNorm)
    assert (norm.vmin, norm.vmax) == (1.0, 9.0)
    assert display.colorbar_.ax.get_ylabel() == "mean squared error"


def test_zeros_have_the_lowest_colour_and_non_finite_ones_grey() -> None:
    losses = np.array([[0.0, 5.0, 1.0], [5.0, np.nan, np.inf], [1.0, 2.0, 3.0]])
    display = LossHeatmapDisplay(losses, labels=[0, 0, 0]).plot()
    display.figure_.canvas.draw()
    lowest = colour_of(display, 0, 2)
    assert colour_of(display, 0, 0) == lowest
    assert colour_of(display, 0, 1) != lowest
    grey = colour_of(display, 1, 1)
    assert grey == colour_of(display, 1, 2)
    assert grey[0] == grey[1] == grey[2]
    assert display.colorbar_.extend == "min"
    np.testing.assert_array_equal(display.frame()["loss"], losses.ravel())


@pytest.mark.parametrize("loss", [0.0, 1.0, 1e-150, 1e150, np.nan, np.inf])
def test_equal_losses_still_make_a_picture(loss: float) -> None:
    display = LossHeatmapDisplay(np.full((4, 4), loss), labels=[0, 0, 1, 1]).plot()
    display.figure_.canvas.draw()
    assert len({colour_of(display, i, j) for i in range(4) for j in range(4)}) == 1


@pytest.mark.parametrize(("n_learners", "named"), [(1, True), (40, True), (41, False), (200, False)])
def test_names_stand_at_the_axes_while_there_is_room(n_learners: int, named: bool) -> None:
    losses = np.random.default_rng(0).uniform(1, 5, size=(n_learners, n_learners))
    display = LossHeatmapDisplay(losses, labels=np.arange(n_learners) % 25).plot()
    display.figure_.canvas.draw()
    assert len(display.ax_.get_xticks()) == len(display.ax_.get_yticks()) == (n_learners if named else 0)
    assert str(n_learners) in display.ax_.get_xlabel() or named


def test_odd_names_are_written_as_they_are(odd_names: list[str]) -> None:
    display = LossHeatmapDisplay(np.ones((12, 12)), labels=[0] * 12, learner_ids=odd_names).plot()
    display.figure_.canvas.draw()
    written = names_on(display.ax_.xaxis)
    assert written[:2] == ["$a_b$", "<script>alert('x…script>"]
    assert not any(text.get_parse_math() for text in display.ax_.get_xticklabels())
    assert not any(text.get_parse_math() for text in display.ax_.get_yticklabels())


def test_names_do_not_overlap() -> None:
    ids = [f"a fairly long name of site {k}" for k in range(40)]
    display = LossHeatmapDisplay(np.ones((40, 40)), labels=[0] * 40, learner_ids=ids).plot()
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))


def test_keywords_reach_the_image() -> None:
    display = LossHeatmapDisplay(LOSSES, labels=LABELS).plot(cmap="magma", vmin=0.5, vmax=20)
    image = display.ax_.images[0]
    assert image.get_cmap().name == "magma"
    assert (image.norm.vmin, image.norm.vmax) == (0.5, 20)
    display.plot(norm=Normalize(0, 10))
    assert (display.ax_.images[0].norm.vmin, display.ax_.images[0].norm.vmax) == (0, 10)
    display.figure_.canvas.draw()


def test_from_estimator_takes_what_was_exchanged(model: CoterieRegressor) -> None:
    display = LossHeatmapDisplay.from_estimator(model)
    frame = display.frame()
    place = {learner: p for p, learner in enumerate(model.exchange_.learner_ids.tolist())}
    rows, columns = ([place[i] for i in frame[name].tolist()] for name in ("model", "learner"))
    np.testing.assert_array_equal(frame["loss"], model.exchange_.losses[rows, columns])
    np.testing.assert_array_equal(frame["model_cluster"], model.partition_.labels[rows])
    np.testing.assert_allclose(frame["loss_per_noise"], frame["loss"] / model.exchange_.noise[columns])
    assert (np.diff(frame["learner_cluster"][:12]) >= 0).all()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"losses": np.ones((2, 3)), "labels": [0, 0]}, r"must be square, .* Got the shape \(2, 3\)\."),
        ({"losses": np.ones((2, 2)), "labels": [0]}, r"one entry per learner. Got losses 2, labels 1"),
        ({"losses": np.ones((2, 2)), "labels": [0, 0], "noise": [1]}, r"Got .*noise 1\."),
    ],
)
def test_arrays_that_do_not_fit(arguments: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        LossHeatmapDisplay(**arguments)


def test_units_of_noise_need_noise() -> None:
    with pytest.raises(ValueError, match=r"pass noise= to LossHeatmapDisplay"):
        LossHeatmapDisplay(LOSSES, labels=LABELS).plot(per_noise=True)
    assert not plt.get_fignums()


def test_two_extreme_cells_do_not_wash_out_the_rest() -> None:
    losses = np.random.default_rng(0).uniform(1, 5, size=(20, 20))
    losses[3, 7], losses[12, 2] = 1e9, 1e-9
    low, high = colour_limits(losses)
    assert 0.05 < low < 1.5
    assert 4 < high < 100
    display = LossHeatmapDisplay(losses, labels=[0] * 20).plot()
    assert display.colorbar_.extend == "both"
    assert display.frame()["loss"].max() == 1e9


def test_many_learners_share_cells_inside_their_cluster_only() -> None:
    labels = np.arange(1201) % 4
    losses = 1.0 + (labels[:, None] - labels[None, :]) ** 2
    display = LossHeatmapDisplay(losses, labels=labels, learner_ids=[f"s{k:04d}" for k in range(1201)])
    table = display.frame()
    n = int(np.sqrt(len(table["loss"])))
    assert n <= BLOCKS + 4
    # Losses inside a cluster are 1: a block over a border would show more.
    np.testing.assert_allclose(np.diag(table["loss"].reshape(n, n)), 1.0)
    assert table["model"][0] == "5 learners, s0000 to s0016"
    assert display.plot().ax_.images[0].get_array().shape == (n, n)


def test_without_losses_dissimilarities_are_shown() -> None:
    partition = cluster_learners(LOSSES, n_clusters=2)
    display = LossHeatmapDisplay.from_partition(partition)
    order = np.argsort(partition.labels, kind="stable")
    output = display.frame()["loss"].reshape(3, 3)
    np.testing.assert_allclose(np.exp(-partition.scale * output), partition.similarity[np.ix_(order, order)])
    assert "loss_per_noise" not in display.frame()
