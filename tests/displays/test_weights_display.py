import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.displays import WeightsDisplay

NAMES = ("alone", "3 coteries", "all")
SHARES = np.array([[0.1, 0.2, 0.7], [0.6, 0.4, 0.0], [0.1, 0.9, 0.0], [0.1, 0.2, 0.7]])


def test_what_is_drawn_is_the_frame() -> None:
    display = WeightsDisplay(["a", "b", "c", "d"], SHARES, NAMES).plot()
    display.figure_.canvas.draw()
    frame = display.frame()
    assert frame["learner"].tolist() == ["b", "c", "a", "d"]
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == frame["learner"].tolist()
    ends = np.zeros(4)
    for bars, name in zip(display.ax_.containers, NAMES, strict=True):
        assert bars.get_label() == name
        np.testing.assert_allclose([bar.get_x() for bar in bars], ends)
        np.testing.assert_allclose([bar.get_width() for bar in bars], frame[name])
        ends += frame[name]
    np.testing.assert_allclose(ends, 1)
    bottom, top = display.ax_.get_ylim()
    assert bottom > top


def test_the_user_s_look_wins() -> None:
    display = WeightsDisplay(["a"], [[1.0]], ("alone",)).plot(height=0.3)
    assert display.ax_.patches[0].get_height() == 0.3


@pytest.mark.parametrize(("n_learners", "named"), [(60, True), (61, False)])
def test_names_stand_while_there_is_room(n_learners: int, named: bool) -> None:
    display = WeightsDisplay(np.arange(n_learners), np.full((n_learners, 2), 0.5), ("alone", "all")).plot()
    assert len(display.ax_.get_yticks()) == (n_learners if named else 0)


def test_shares_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match=r"a column for each of the 2 share_names\. Got the shape \(4, 3\)"):
        WeightsDisplay(["a", "b", "c", "d"], SHARES, ("alone", "all"))
    with pytest.raises(ValueError, match=r"one entry per learner"):
        WeightsDisplay(["a"], SHARES, NAMES)


def test_only_nested_coteries_have_weights_to_show() -> None:
    data = make_linear_learners(n_learners=4, n_truths=2, n_rows=20, random_state=0)
    model = CoterieRegressor(candidates=["lr"], n_clusters=2, collaboration="pooled")
    model.fit(data.X, data.y, groups=data.groups)
    with pytest.raises(ValueError, match=r"fitted with collaboration='pooled', .* collaboration='auto'\."):
        WeightsDisplay.from_estimator(model)
