from copy import copy
from dataclasses import replace

import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.displays import EigenvaluesDisplay


def test_what_is_drawn_is_the_frame() -> None:
    display = EigenvaluesDisplay([1.0, 0.9, 0.2, -1e-17], n_clusters=2).plot()
    frame = display.frame()
    points = display.ax_.collections[0]
    drawn = np.column_stack([frame["position"], frame["eigenvalue"]])
    np.testing.assert_array_equal(points.get_offsets(), drawn)
    assert frame["position"].tolist() == [1, 2, 3, 4]
    assert frame["kept"].tolist() == [True, True, False, False]
    first, second, third, _ = (tuple(colour) for colour in points.get_facecolor())
    assert first == second != third


@pytest.mark.parametrize(("n_clusters", "words"), [(1, "1 cluster"), (2, "2 clusters"), (5, "5 clusters")])
def test_the_number_of_clusters_is_marked(n_clusters: int, words: str) -> None:
    display = EigenvaluesDisplay([1.0, 0.9], n_clusters=n_clusters).plot()
    display.figure_.canvas.draw()
    mark = [line for line in display.ax_.lines if np.allclose(line.get_xdata(), n_clusters + 0.5)]
    assert len(mark) == 1
    assert display.ax_.texts[0].get_text() == words
    assert display.ax_.get_xlim()[1] > n_clusters + 0.5
    text, axis = display.ax_.texts[0].get_window_extent(), display.ax_.get_window_extent()
    assert axis.x0 <= text.x0
    assert text.x1 <= axis.x1 or n_clusters == 1


def test_ticks_are_whole_numbers() -> None:
    display = EigenvaluesDisplay(np.linspace(1, 0, 21), n_clusters=3).plot()
    ticks = display.ax_.get_xticks()
    np.testing.assert_array_equal(ticks, np.round(ticks))


def test_from_estimator(model: CoterieRegressor) -> None:
    frame = EigenvaluesDisplay.from_estimator(model).frame()
    np.testing.assert_array_equal(frame["eigenvalue"], model.partition_.eigenvalues)
    assert frame["kept"].sum() == model.n_clusters_ == 3


def test_a_learner_that_stands_alone_has_no_part_in_the_spectrum(model: CoterieRegressor) -> None:
    labels = model.partition_.labels.copy()
    labels[0] = 3
    other = copy(model)
    other.record_ = replace(model.record_, partition=replace(model.partition_, labels=labels))
    assert other.partition_.n_clusters == 4
    assert EigenvaluesDisplay.from_estimator(other).frame()["kept"].sum() == 3


def test_keywords_reach_the_points() -> None:
    display = EigenvaluesDisplay([1.0, 0.9], n_clusters=1).plot(c="red", s=9, lw=2)
    points = display.ax_.collections[0]
    assert points.get_sizes().tolist() == [9]
    assert points.get_facecolor().tolist() == [[1, 0, 0, 1]]
