import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.displays import MembershipDisplay
from coterie.displays._look import cluster_colour

PROBABILITIES = [[0.6, 0.4], [0.0, 1.0], [0.9, 0.1], [np.nan, np.nan], [0.5, 0.5]]
LABELS = [0, 1, 0, 1, -1]


def test_learners_stand_by_cluster_and_by_how_sure_they_are() -> None:
    frame = MembershipDisplay(PROBABILITIES, labels=LABELS, learner_ids=list("abcde")).frame()
    assert frame["learner"].tolist() == list("ccaabbddee")
    assert frame["cluster"].tolist() == [0, 0, 0, 0, 1, 1, 1, 1, -1, -1]
    assert frame["other"].tolist() == [0, 1] * 5
    assert frame["probability"][:6].tolist() == [0.9, 0.1, 0.6, 0.4, 0.0, 1.0]


def test_bars_are_as_long_as_probabilities() -> None:
    display = MembershipDisplay(PROBABILITIES, labels=LABELS).plot()
    bars = display.ax_.patches
    assert len(bars) == 10
    assert [bar.get_width() for bar in bars[:5]] == [0.9, 0.6, 0.0, 0.0, 0.5]
    assert bars[0].get_facecolor()[:3] == pytest.approx(_rgb(cluster_colour(0)))
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == ["2", "0", "1", "3", "4"]


def _rgb(colour: str) -> tuple[float, ...]:
    from matplotlib.colors import to_rgb

    return to_rgb(colour)


def test_everybody_is_in_the_picture(model: CoterieRegressor) -> None:
    frame = MembershipDisplay.from_estimator(model).frame()
    assert set(frame["learner"].tolist()) == set(model.learner_ids_.tolist())
    assert len(frame["learner"]) == 13 * 3


def test_many_learners_have_no_names() -> None:
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.ones(12), size=100)
    display = MembershipDisplay(shares, labels=shares.argmax(axis=1)).plot()
    assert not display.ax_.get_yticklabels()
    assert "100 learners" in display.ax_.get_ylabel()
    assert display.ax_.get_legend() is None
    display.figure_.canvas.draw()


def test_odd_names_are_drawn(odd_names: list[str]) -> None:
    display = MembershipDisplay(np.ones((12, 1)), labels=[0] * 12, learner_ids=odd_names).plot()
    display.figure_.canvas.draw()


def test_without_a_bootstrap_there_is_nothing_to_draw() -> None:
    data = make_linear_learners(4, n_truths=2, random_state=0)
    model = CoterieRegressor(["lr"], n_clusters=2, n_bootstrap=0).fit(data.X, data.y, groups=data.groups)
    with pytest.raises(ValueError, match="fit it with n_bootstrap above 0"):
        MembershipDisplay.from_estimator(model)


def test_a_column_per_cluster_is_needed() -> None:
    with pytest.raises(ValueError, match="must have a column per cluster"):
        MembershipDisplay([[1.0], [1.0]], labels=[0, 1])
