from itertools import pairwise

import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.displays import GainsDisplay


@pytest.fixture
def gains() -> dict[str, np.ndarray]:
    return {
        "learner": np.array(["a", "small", "b", "worse"]),
        "cluster": np.array([0, 1, 1, 0]),
        "error_alone": np.array([2.0, np.nan, 4.0, 1.0]),
        "error_with": np.array([1.0, 0.5, 1.0, 1.5]),
        "error_all": np.array([3.0, 3.0, 3.0, 3.0]),
        "gain": np.array([0.5, np.nan, 0.75, -0.5]),
        "verdict": np.array(["left aside"] * 4),
    }


def table_of(n_learners: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    alone, coterie = rng.uniform(1, 3, size=(2, n_learners))
    return {
        "learner": np.arange(n_learners),
        "cluster": np.arange(n_learners) % 10,
        "error_alone": alone,
        "error_with": coterie,
        "error_all": 2 * alone,
        "gain": 1 - coterie / alone,
    }


def points_on(ax: object) -> dict[str, dict[int, float]]:
    """Error by row, for each kind of points."""
    drawn: dict[str, dict[int, float]] = {"alone": {}, "with all": {}, "coterie": {}}
    for points in ax.collections:
        label = points.get_label()
        kind = "coterie" if label.startswith("cluster") else label
        if kind in drawn:
            # Beneath the mask of a point without error its row is still known.
            drawn[kind] |= {int(row): error for error, row in np.ma.getdata(points.get_offsets())}
    return drawn


def test_what_is_drawn_is_the_frame(gains: dict[str, np.ndarray]) -> None:
    display = GainsDisplay(gains).plot()
    display.figure_.canvas.draw()
    frame = display.frame()
    assert frame["learner"].tolist() == ["b", "a", "worse", "small"]
    assert list(frame) == [
        *("learner", "cluster", "error_alone", "error_with", "error_all", "gain", "verdict")
    ]
    drawn = points_on(display.ax_)
    for kind, column in (("alone", "error_alone"), ("coterie", "error_with"), ("with all", "error_all")):
        np.testing.assert_array_equal([drawn[kind][row] for row in range(4)], frame[column])
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == frame["learner"].tolist()
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    assert [text.get_text() for text in display.ax_.texts] == [
        "+75%",
        "+50%",
        "\N{MINUS SIGN}50%",
        "\N{EN DASH}",
        "gain",
    ]


def test_a_line_joins_alone_and_coterie(gains: dict[str, np.ndarray]) -> None:
    display = GainsDisplay(gains).plot()
    segments = display.ax_.collections[0].get_segments()
    assert [segment.tolist() for segment in segments if len(segment)] == [
        [[4, 0], [1, 0]],
        [[2, 1], [1, 1]],
        [[1, 2], [1.5, 2]],
    ]


@pytest.mark.parametrize(("n_learners", "named"), [(1, True), (60, True), (61, False), (200, False)])
def test_names_stand_while_there_is_room(n_learners: int, named: bool) -> None:
    display = GainsDisplay(table_of(n_learners)).plot()
    display.figure_.canvas.draw()
    assert len(display.ax_.get_yticks()) == (n_learners if named else 0)
    assert bool(display.ax_.texts) == named
    drawn = points_on(display.ax_)
    assert {len(rows) for rows in drawn.values()} == {n_learners}


def test_names_do_not_overlap() -> None:
    display = GainsDisplay(table_of(60)).plot()
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.get_yticklabels()]
    assert all(upper.y0 >= lower.y1 - 1 for upper, lower in pairwise(boxes))


def test_equal_gains_keep_the_order_given() -> None:
    table = table_of(5) | {"gain": np.zeros(5)}
    assert GainsDisplay(table).frame()["learner"].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(
    ("errors", "scale"),
    [
        ([1.0, 2.0], "linear"),
        ([1.0, 1e9], "log"),
        ([1e-100, 1e100], "log"),
        ([0.0, 1.0], "linear"),
        ([0.0, 0.0], "linear"),
        ([np.nan, np.inf], "linear"),
    ],
)
def test_the_scale_follows_the_errors(errors: list[float], scale: str) -> None:
    columns = {name: np.array(errors) for name in ("error_alone", "error_with", "error_all")}
    display = GainsDisplay({"learner": ["a", "b"], "cluster": [0, 0], **columns, "gain": [0, 0]}).plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_xscale() == scale
    output = np.where(np.isfinite(errors), errors, np.nan)
    np.testing.assert_array_equal(list(points_on(display.ax_)["alone"].values()), output)


def test_an_error_of_zero_has_a_place_beside_wide_ones() -> None:
    columns = {name: np.array([0.0, 0.01, 100.0]) for name in ("error_alone", "error_with", "error_all")}
    table = {"learner": [1, 2, 3], "cluster": [0, 0, 0], **columns, "gain": [0.0, 0.0, 0.0]}
    display = GainsDisplay(table).plot()
    display.figure_.canvas.draw()
    assert display.ax_.get_xscale() == "symlog"
    assert display.ax_.get_xlim()[0] <= 0


def test_odd_names_are_written_as_they_are(odd_names: list[str]) -> None:
    display = GainsDisplay(table_of(12) | {"learner": odd_names, "gain": -np.arange(12.0)}).plot()
    display.figure_.canvas.draw()
    written = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert written[:2] == ["$a_b$", "<script>alert('x…script>"]
    assert not any(text.get_parse_math() for text in display.ax_.get_yticklabels())


def test_from_estimator_has_the_admitted_too(model: CoterieRegressor) -> None:
    display = GainsDisplay.from_estimator(model).plot()
    display.figure_.canvas.draw()
    frame = display.frame()
    assert len(frame["learner"]) == 13
    assert np.isnan(frame["error_alone"][-1])
    place = {learner: p for p, learner in enumerate(model.gains_["learner"].tolist())}
    order = [place[learner] for learner in frame["learner"].tolist()]
    for name, column in frame.items():
        np.testing.assert_array_equal(column, model.gains_[name][order])


def test_tables_that_do_not_fit(gains: dict[str, np.ndarray]) -> None:
    with pytest.raises(ValueError, match=r"needs the column 'error_all'\."):
        GainsDisplay({name: column for name, column in gains.items() if name != "error_all"})
    with pytest.raises(ValueError, match=r"Got learner 4, cluster 1, "):
        GainsDisplay(gains | {"cluster": [0]})
