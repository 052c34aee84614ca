import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.displays import ImportanceDisplay


def test_what_is_drawn_is_the_frame(model: CoterieRegressor) -> None:
    display = ImportanceDisplay.from_estimator(model).plot()
    table = display.frame()
    n = len(display.importance.clusters)
    assert len(display.ax_.collections) == n == 3
    for place, points in enumerate(display.ax_.collections):
        np.testing.assert_array_equal(np.asarray(points.get_offsets())[:, 0], table["share"][place::n])
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == table["predictor"][::n].tolist()
    means = table["share"].reshape(-1, n).mean(axis=1)
    assert (np.diff(means) <= 1e-12).all()


def test_some_clusters(model: CoterieRegressor) -> None:
    assert set(ImportanceDisplay.from_estimator(model, [1]).frame()["cluster"].tolist()) == {1}


def test_a_wrong_argument() -> None:
    with pytest.raises(TypeError, match="takes what measure_importance returned"):
        ImportanceDisplay({})
