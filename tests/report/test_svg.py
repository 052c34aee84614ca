from xml.etree import ElementTree

import pytest

from coterie.report.svg import PlotFrame, drawing, element, log_ticks, point, text, tick_text, ticks


def test_texts_and_attributes_are_escaped():
    drawn = drawing(10, 10, 'a "label" <b>', text("<script>", x=1.0), element("g", data_x="<&"))
    root = ElementTree.fromstring(drawn)
    assert root.get("aria-label") == 'a "label" <b>'
    assert root[0].text == "<script>"
    assert root[1].get("data-x") == "<&"


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-3.2, 71.0), (1e-5, 2e-5), (990, 1012), (5, 5)])
def test_ticks_are_few_and_inside(low, high):
    found = ticks(low, high)
    assert 1 <= len(found) <= 5
    assert all(low - 1e-9 <= tick <= high + 1e-9 for tick in found)


@pytest.mark.parametrize(("low", "high"), [(0.5, 20.0), (1e-6, 1e8), (1.0, 1.5)])
def test_ticks_of_a_log_scale_are_few_and_inside(low, high):
    found = log_ticks(low, high)
    assert 1 < len(found) <= 6
    assert all(low <= tick <= high for tick in found)


def test_ticks_are_written_short():
    minus = "\N{MINUS SIGN}"
    assert [tick_text(value) for value in (0.0, 1920.0, 15000.0, -0.25, 2e7, 1e-5)] == [
        *("0", "1920", "15,000", f"{minus}0.25", "2e7", f"1e{minus}5")
    ]


def test_a_frame_keeps_what_it_shows_inside():
    frame = PlotFrame([1.0, 5.0], [10.0, 1000.0], log=True)
    assert frame.x(1.0) == frame.LEFT
    assert frame.y(10.0) > frame.y(100.0) > frame.y(1000.0)
    flat = PlotFrame([3.0, 3.0], [2.0, 2.0])
    assert flat.LEFT < flat.x(3.0) < flat.width
    assert flat.TOP < flat.y(2.0) < flat.height


def test_points_have_shapes():
    assert point(1, 2, 3, "o").startswith("<circle")
    assert point(1, 2, 3, "s").startswith("<path")
