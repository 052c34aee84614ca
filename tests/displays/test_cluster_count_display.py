import matplotlib.pyplot as plt
import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.displays import ClusterCountDisplay
from coterie.displays.cluster_count import on_log_scale
from coterie.records import Curve

COUNTS = np.array([1, 2, 3])


@pytest.fixture
def curves() -> dict[str, Curve]:
    return {
        "eigengap": Curve("eigengap", COUNTS, np.array([0.1, 0.9, 0.2]), 2, "drop (higher is better)"),
        "gap-jump": Curve("gap-jump", COUNTS, np.array([np.nan, -1.0, -2.0]), 1, "step", np.ones(3)),
        "held-out": Curve("held-out", COUNTS, np.array([900.0, 2.0, 1.0]), 3, "loss", np.full(3, 0.1)),
    }


def curve_on(ax: object) -> np.ndarray:
    """The line of the curve: the first that is neither the band nor the mark of the choice."""
    return next(line for line in ax.lines if len(line.get_xdata()) == 3).get_ydata()


def band_on(ax: object) -> float:
    return ax.lines[0].get_xdata()[0]


def test_every_rule_has_an_axis_the_deciding_one_first(curves: dict[str, Curve]) -> None:
    display = ClusterCountDisplay(curves, rule="held-out", n_clusters=3).plot()
    display.figure_.canvas.draw()
    frame = display.frame()
    assert list(dict.fromkeys(frame["rule"].tolist())) == ["held-out", "eigengap", "gap-jump"]
    assert len(display.ax_) == 3
    for ax, name in zip(display.ax_, ["held-out", "eigengap", "gap-jump"], strict=True):
        mine = frame["rule"] == name
        np.testing.assert_array_equal(curve_on(ax), frame["value"][mine])
        assert [band_on(ax)] == frame["n_clusters"][mine & frame["chosen"]].tolist()
        assert ax.get_title(loc="left") == curves[name].criterion
        assert ax.texts[0].get_text() == f"{name}: {curves[name].chosen}"
    assert frame["decided"].tolist() == [True] * 3 + [False] * 6
    assert display.figure_.get_suptitle() == "3 clusters, decided by held-out"


def test_error_bars_stand_where_the_rule_has_a_spread(curves: dict[str, Curve]) -> None:
    display = ClusterCountDisplay(curves, rule="held-out").plot()
    held_out, eigengap, _ = display.ax_
    (bars,) = held_out.collections
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    np.testing.assert_allclose(ends, [[899.9, 900.1], [1.9, 2.1], [0.9, 1.1]])
    assert not eigengap.collections
    frame = display.frame()
    assert np.isnan(frame["spread"][frame["rule"] == "eigengap"]).all()
    assert frame["spread"][:3].tolist() == [0.1] * 3


def test_a_choice_without_a_value_is_marked_by_its_band(curves: dict[str, Curve]) -> None:
    display = ClusterCountDisplay(curves).plot(rule="gap-jump")
    display.figure_.canvas.draw()
    assert band_on(display.ax_) == 1
    mark = display.ax_.lines[-1]
    assert np.isnan(mark.get_ydata()).all()


def test_losses_that_span_decades_are_on_a_log_scale_drops_never(curves: dict[str, Curve]) -> None:
    curves["eigengap"] = Curve("eigengap", COUNTS, np.array([0.001, 9.0, 0.2]), 2, "drop")
    held_out, eigengap, _ = ClusterCountDisplay(curves, rule="held-out").plot().ax_
    assert held_out.get_yscale() == "log"
    assert eigengap.get_yscale() == "linear"


def test_a_named_rule_on_the_axis_given(curves: dict[str, Curve]) -> None:
    _, ax = plt.subplots()
    display = ClusterCountDisplay(curves, rule="held-out").plot(ax=ax, rule="eigengap")
    assert display.ax_ is ax
    np.testing.assert_array_equal(curve_on(ax), curves["eigengap"].values)
    _, other = plt.subplots()
    np.testing.assert_array_equal(curve_on(display.plot(ax=other).ax_), curves["held-out"].values)


def test_an_axis_without_a_rule_when_none_decided(curves: dict[str, Curve]) -> None:
    _, ax = plt.subplots()
    with pytest.raises(ValueError, match=r"pass rule=, one of 'eigengap', 'gap-jump', 'held-out'\."):
        ClusterCountDisplay(curves, rule="given").plot(ax=ax)


def test_an_unknown_rule_lists_the_known_ones(curves: dict[str, Curve]) -> None:
    with pytest.raises(ValueError, match=r"'rule' option must be one of 'eigengap', .* Got 'elbow'\."):
        ClusterCountDisplay(curves).plot(rule="elbow")
    assert not plt.get_fignums()


def test_no_curves() -> None:
    display = ClusterCountDisplay({})
    assert {len(column) for column in display.frame().values()} == {0}
    with pytest.raises(ValueError, match="There is no curve to draw"):
        display.plot()


@pytest.mark.parametrize("n_rules", [1, 2, 4, 5, 6])
def test_only_axes_with_a_curve_remain(n_rules: int) -> None:
    curve = Curve("x", COUNTS, np.full(3, np.nan), 2, "nothing is known $ of _ it", np.full(3, np.inf))
    display = ClusterCountDisplay({f"rule {k}": curve for k in range(n_rules)}, n_clusters=2).plot()
    display.figure_.canvas.draw()
    assert len(display.figure_.axes) == len(display.ax_) == n_rules
    assert display.figure_.get_suptitle() == "2 clusters, as requested"


def test_from_estimator(model: CoterieRegressor) -> None:
    frame = ClusterCountDisplay.from_estimator(model).frame()
    assert set(frame["rule"].tolist()) == set(model.partition_.curves)
    for name, curve in model.partition_.curves.items():
        mine = frame["rule"] == name
        np.testing.assert_array_equal(frame["value"][mine], curve.values)
        np.testing.assert_array_equal(frame["n_clusters"][mine], curve.n_clusters)
        assert frame["n_clusters"][mine & frame["chosen"]].tolist() == [curve.chosen]
    assert set(frame["rule"][frame["decided"]].tolist()) == {"held-out"}


def test_only_positive_losses_that_span_decades_are_on_a_log_scale() -> None:
    wide = np.array([1.0, 40.0, np.nan])
    assert on_log_scale("held-out", wide)
    assert not on_log_scale("gap", wide)
    assert not on_log_scale("cv", np.array([0.0, 1.0, 40.0]))
