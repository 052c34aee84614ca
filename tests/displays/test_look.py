from itertools import combinations

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb

from coterie.displays._look import (
    MARKERS,
    PALETTE,
    QUIET,
    cluster_colour,
    cluster_marker,
    is_wide,
    name_size,
    plain_log_ticks,
    styled,
)

# Machado, Oliveira and Fernandes (2009), full severity, in linear RGB.
SIGHT = {
    "usual": np.eye(3),
    "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritanopia": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def lab(linear: np.ndarray) -> np.ndarray:
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.asarray(to_xyz) @ linear / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def linear(colour: str) -> np.ndarray:
    c = np.array(to_rgb(colour))
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_stay_apart_for_everybody(sight: str) -> None:
    seen = [lab(np.clip(np.asarray(SIGHT[sight]) @ linear(c), 0, 1)) for c in (*PALETTE, "white")]
    assert min(np.linalg.norm(a - b) for a, b in combinations(seen, 2)) > 15


def test_more_clusters_than_colours_differ_by_shape() -> None:
    looks = [(cluster_colour(k), cluster_marker(k)) for k in range(len(PALETTE) * len(MARKERS))]
    assert len(set(looks)) == len(looks)
    assert cluster_colour(10**6) in PALETTE
    assert cluster_marker(10**6) in MARKERS


def test_wide() -> None:
    assert is_wide(np.array([1.0, 31.0, 0.0, np.nan]))
    assert not is_wide(np.array([1.0, 29.0, np.inf]))
    assert not is_wide(np.array([0.0, np.nan]))


def test_names_shrink_but_stay_legible() -> None:
    assert name_size(5, 10) > name_size(5, 60) >= 4


def test_changes_may_be_spelt_by_any_alias() -> None:
    look = styled({"linewidths": 1, "edgecolors": "w", "color": "r", "s": 3}, {"lw": 2, "c": "b"})
    assert look == {"linewidth": 2, "edgecolor": "w", "color": "b", "s": 3}


@pytest.mark.parametrize(("low", "high"), [(1.05, 1.6), (0.2, 30.0), (1e-9, 1e12), (1e-100, 1e100)])
def test_log_ticks_are_plain_numbers(low: float, high: float) -> None:
    figure, ax = plt.subplots()
    ax.set_yscale("log")
    ax.set_ylim(low, high)
    plain_log_ticks(ax.yaxis, low, high)
    figure.canvas.draw()
    inside = [
        text.get_text()
        for text, place in zip(ax.get_yticklabels(), ax.get_yticks(), strict=True)
        if low <= place <= high
    ]
    assert 2 <= len(inside) <= 14
    assert all(float(text) for text in inside)


def test_what_is_in_no_cluster_has_no_colour() -> None:
    assert cluster_colour(-1) == QUIET
    assert cluster_marker(-1) == cluster_marker(0)
