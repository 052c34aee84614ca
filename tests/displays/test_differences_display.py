import numpy as np
import pytest
from matplotlib.colors import to_rgb

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.displays import DifferencesDisplay
from coterie.displays._look import cluster_colour
from coterie.verdicts import compare_clusters

DATA = make_linear_learners(6, n_rows=40, coefficients=[[1.0, 2, 0], [1.0, -2, 0]], random_state=0)


@pytest.fixture(scope="module")
def two() -> CoterieRegressor:
    model = CoterieRegressor(["lr"], n_clusters=2, n_bootstrap=0)
    return model.fit(DATA.X, DATA.y, groups=DATA.groups)


def test_the_most_important_predictor_stands_at_the_top(two: CoterieRegressor) -> None:
    display = DifferencesDisplay.from_estimator(two)
    frame = display.frame()
    n_bins = display.differences.profile.shape[1]
    assert frame["predictor"][:n_bins].tolist() == ["x1"] * n_bins
    assert len(frame["predictor"]) == 3 * n_bins
    np.testing.assert_allclose(frame["difference"][:n_bins], display.differences.profile[1])
    names = [text.get_text() for text in display.plot().ax_.get_yticklabels()]
    assert names[0] == "x1"


def test_colours_are_those_of_the_clusters(two: CoterieRegressor) -> None:
    image = DifferencesDisplay.from_estimator(two).plot().ax_.images[0]
    assert image.norm.vmin == -image.norm.vmax
    np.testing.assert_allclose(image.cmap(0.0)[:3], to_rgb(cluster_colour(1)), atol=0.01)
    np.testing.assert_allclose(image.cmap(1.0)[:3], to_rgb(cluster_colour(0)), atol=0.01)


def test_clusters_may_be_chosen(model: CoterieRegressor) -> None:
    display = DifferencesDisplay.from_estimator(model, 2, 1)
    assert display.differences.clusters == (2, 1)
    assert "clusters 2 and 1" in display.plot().ax_.get_title(loc="left")


def test_one_cluster_differs_from_nothing(lonely: CoterieRegressor) -> None:
    with pytest.raises(ValueError, match="has one cluster only"):
        DifferencesDisplay.from_estimator(lonely)


def test_it_takes_differences_only(two: CoterieRegressor) -> None:
    assert DifferencesDisplay(compare_clusters(two, 0, 1)).frame()
    with pytest.raises(TypeError, match=r"takes what compare_clusters returned\. Got dict"):
        DifferencesDisplay({})
