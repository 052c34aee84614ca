import plotly.graph_objects as go
import pytest

from coterie import Report
from coterie.displays._look import PALETTE
from coterie.report.figures import draw
from coterie.report.figures.look import THEMES, colour, plotly_text, symbol
from coterie.report.figures.losses import _log_ticks
from coterie.report.figures.rows import MOST_SHARE_TICKS, _share_ticks


def themed(value, theme):
    """Put the colours of a theme into a figure, as the page does."""
    if isinstance(value, str) and value.startswith("@"):
        return theme[value[1:]]
    if isinstance(value, dict):
        untouched = ("x", "y", "z", "text")
        return {key: item if key in untouched else themed(item, theme) for key, item in value.items()}
    return [themed(item, theme) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_plotly_takes_every_figure_as_valid(model, partition, losses, theme):
    for report in (Report(model), Report(partition, losses=losses), Report(partition)):
        for figures in draw(report.summary).values():
            for figure in figures:
                go.Figure(
                    data=themed(figure["data"], THEMES[theme]), layout=themed(figure["layout"], THEMES[theme])
                )


def test_every_colour_has_a_name_in_both_themes():
    assert set(THEMES["light"]) == set(THEMES["dark"])
    assert len({colour(cluster) for cluster in range(len(PALETTE))}) == len(PALETTE)
    assert all(colour(cluster)[1:] in THEMES["light"] for cluster in range(20))


def test_colours_return_with_another_shape():
    looks = {(colour(cluster), symbol(cluster)) for cluster in range(40)}
    assert len(looks) == 40


def test_names_are_text_for_plotly_too(model):
    assert plotly_text("<b>&") == "&lt;b&gt;&amp;"
    heat = draw(Report(model).summary)["losses"][0]
    texts = heat["layout"]["xaxis"]["ticktext"]
    assert not any("<" in text for text in texts)


def test_ticks_of_a_log_scale_are_plain_numbers_inside_it():
    ticks = _log_ticks(-0.4, 1.5)
    assert ticks["ticktext"] == ["0.5", "1", "2", "5", "10", "20"]
    assert _log_ticks(-6, 6)["ticktext"][0] == "1e-06"


@pytest.mark.parametrize(("low", "high"), [(0.9, 1.0), (0.3, 1.0), (0.05, 30.0), (1e-6, 1e8)])
def test_shares_have_few_ticks(low, high):
    assert 1 <= len(_share_ticks(low, high)) <= MOST_SHARE_TICKS
