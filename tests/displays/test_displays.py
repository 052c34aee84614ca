"""What all displays share: how they are made, what they refuse, and that importing needs no matplotlib."""

import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge

from coterie import CoterieRegressor, displays

ALL = [getattr(displays, name) for name in displays.__all__]
every_display = pytest.mark.parametrize("display", ALL, ids=displays.__all__)


@every_display
def test_frame_is_a_table(display: type, model: CoterieRegressor) -> None:
    columns = display.from_estimator(model).frame()
    assert len({len(column) for column in columns.values()}) == 1
    in_pandas, in_polars = pd.DataFrame(columns), pl.DataFrame(columns)
    assert list(in_pandas.columns) == in_polars.columns == list(columns)
    assert len(in_pandas) == len(in_polars) > 0


@every_display
def test_plot_returns_itself_on_one_new_figure(display: type, model: CoterieRegressor) -> None:
    made = display.from_estimator(model)
    assert not plt.get_fignums()
    assert made.plot() is made
    assert plt.get_fignums() == [made.figure_.number]
    assert all(ax.figure is made.figure_ for ax in np.ravel(made.ax_))


@every_display
def test_the_axis_given_is_used_and_no_other(display: type, model: CoterieRegressor) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(12, 5))
    made = display.from_estimator(model).plot(ax=axes[1])
    figure.canvas.draw()
    assert made.ax_ is axes[1]
    assert made.figure_ is figure
    assert plt.get_fignums() == [figure.number]
    assert axes[1].has_data()
    assert not axes[0].has_data()


@every_display
def test_drawing_twice_draws_the_same(display: type, model: CoterieRegressor) -> None:
    made = display.from_estimator(model)
    before = {name: column.copy() for name, column in made.frame().items()}
    pictures = []
    for _ in range(2):
        canvas = made.plot().figure_.canvas
        canvas.draw()
        pictures.append(np.asarray(canvas.buffer_rgba()))
    assert np.array_equal(*pictures)
    for name, column in made.frame().items():
        np.testing.assert_array_equal(column, before[name])


@every_display
def test_it_draws_into_a_subfigure(display: type, model: CoterieRegressor) -> None:
    left, _ = plt.figure(figsize=(14, 6), layout="constrained").subfigures(1, 2)
    made = display.from_estimator(model).plot(ax=left.subplots())
    assert made.figure_ is left
    left.canvas.draw()


@every_display
def test_one_learner(display: type, lonely: CoterieRegressor) -> None:
    if display is displays.DifferencesDisplay:
        pytest.skip("one cluster has nothing to differ from; its own tests say what it answers")
    made = display.from_estimator(lonely).plot()
    made.figure_.canvas.draw()


@every_display
def test_nothing_is_clipped(display: type, model: CoterieRegressor) -> None:
    figure = display.from_estimator(model).plot().figure_
    figure.canvas.draw()
    whole, needed = figure.bbox_inches, figure.get_tightbbox()
    slack = 0.02
    assert needed.x0 >= whole.x0 - slack
    assert needed.y0 >= whole.y0 - slack
    assert needed.x1 <= whole.x1 + slack
    assert needed.y1 <= whole.y1 + slack


@every_display
def test_not_fitted(display: type) -> None:
    with pytest.raises(NotFittedError, match="not fitted yet"):
        display.from_estimator(CoterieRegressor())


@every_display
@pytest.mark.parametrize(
    ("thing", "given"),
    [(Ridge(), "Ridge"), (None, "NoneType"), (CoterieRegressor, "the class CoterieRegressor itself")],
)
def test_a_wrong_object(display: type, thing: object, given: str) -> None:
    sentence = rf"^{display.__name__}\.from_estimator takes a fitted CoterieRegressor\. Got {given}\.$"
    with pytest.raises(TypeError, match=sentence):
        display.from_estimator(thing)


@every_display
def test_missing_matplotlib_names_the_extra(
    display: type, model: CoterieRegressor, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = display.from_estimator(model)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert made.frame()
    with pytest.raises(ImportError, match=r"^Drawing needs matplotlib: install coterie's extra 'plot'\.$"):
        made.plot()


def test_the_extra_exists() -> None:
    import tomllib

    project = Path(__file__).parents[2] / "pyproject.toml"
    extras = tomllib.loads(project.read_text())["project"]["optional-dependencies"]
    assert any(need.startswith("matplotlib") for need in extras["plot"])


def test_import_does_not_import_matplotlib() -> None:
    script = (
        "import sys, coterie.displays as d; "
        "d.EigenvaluesDisplay([1.0, 0.5], n_clusters=1).frame(); "
        "print([name for name in sys.modules if name.split('.')[0] in ('matplotlib', 'jinja2')])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_cluster_has_one_colour_in_all_displays(model: CoterieRegressor) -> None:
    def colours(ax: object, prefix: str) -> dict[str, tuple[float, ...]]:
        named = {c.get_label().split(" (")[0]: c for c in ax.collections if c.get_label().startswith(prefix)}
        return {label: tuple(c.get_facecolor()[0][:3]) for label, c in named.items()}

    places = colours(displays.EmbeddingDisplay.from_estimator(model).plot().ax_, "cluster")
    gains = colours(displays.GainsDisplay.from_estimator(model).plot().ax_, "cluster")
    bands = displays.LossHeatmapDisplay.from_estimator(model).plot().ax_.patches
    assert places == gains
    assert len(places) == 3
    assert {patch.get_facecolor()[:3] for patch in bands} == set(places.values())
