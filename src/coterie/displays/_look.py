"""How all pictures look: one palette for displays and report page, and how an axis is opened and named."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._text import counted, display_name

# Okabe and Ito's colours without black and yellow (the one is our ink, the other vanishes on white), then
# Tol's wine and indigo: they stay apart under the three kinds of colour blindness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#332288")
# Beyond the palette its colours return with another shape.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# What is not a cluster is drawn without colour, so that a colour always means a cluster.
INK = "#222222"
QUIET = "#8C8C8C"
FAINT = "#E3E3E3"
# The shade of small losses; from there it fades to nothing.
NEAR = "#2576BE"

# A span of more than this factor is drawn on a log scale.
WIDE = 30.0
# Learners that have a name beside their row.
MOST_NAMES = 60


def cluster_colour(label: int) -> str:
    """Return the colour of a cluster, the same in every display; what is in no cluster has none."""
    if label < 0:
        return QUIET
    return PALETTE[label % len(PALETTE)]


def cluster_marker(label: int) -> str:
    """Return the shape of a cluster's points."""
    return MARKERS[max(label, 0) // len(PALETTE) % len(MARKERS)]


def pyplot() -> Any:
    """Import matplotlib's pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("Drawing needs matplotlib: install coterie's extra 'plot'.") from error
    return plt


def open_axis(ax: Any, size: tuple[float, float]) -> Any:
    """Return the axis given, or one on a new figure."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax


def styled(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Merge default options of points or lines with the user's, which take precedence.

    matplotlib has several names for one option (``c`` and ``color``, ``lw`` and ``linewidths``), and
    refuses both at once. All are given their full names first.
    """
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import PathCollection

    changes = normalize_kwargs(given, PathCollection)
    if "c" in changes:
        changes["color"] = changes.pop("c")
    return {**normalize_kwargs(defaults, PathCollection), **changes}


def cluster_points(ax: Any, across: Array, up: Array, labels: Array, kwargs: dict[str, Any]) -> None:
    """Draw learners as points in the colours and shapes of their clusters.

    ``across``, ``up`` and ``labels`` have shape (L,). Each cluster is one call of ``Axes.scatter``, so
    that it has an entry in the legend. ``kwargs`` are the user's options and take precedence.
    """
    for label in np.unique(labels).tolist():
        in_cluster = labels == label
        defaults: dict[str, Any] = {
            "s": 44,
            "color": cluster_colour(label),
            "marker": cluster_marker(label),
            "alpha": 0.8,
            "edgecolors": "white",
            "linewidths": 0.6,
            "label": f"cluster {label} ({counted(int(in_cluster.sum()), 'learner')})",
            "zorder": 3,
        }
        ax.scatter(across[in_cluster], up[in_cluster], **styled(defaults, kwargs))
    ax.margins(0.1)
    calm(ax)


def calm(ax: Any) -> None:
    """Take away what an axis does not need."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(color=QUIET, labelcolor=INK)
    ax.set_axisbelow(True)


def name_size(inches: float, count: int) -> float:
    """Return the font size in points at which ``count`` names fit into ``inches``, from 4 to 8.5."""
    return float(np.clip(0.75 * 72 * inches / max(count, 1), 4.0, 8.5))


def axis_inches(ax: Any) -> tuple[float, float]:
    """Return the width and height of an axis in inches, as it is laid out now."""
    box = ax.get_window_extent()
    dpi = ax.get_figure().dpi
    return box.width / dpi, box.height / dpi


def name_rows(ax: Any, names: Iterable[object], inches: float | None = None) -> float:
    """Write learners' names as tick labels of the rows 0, 1, ..., and return their font size.

    ``inches`` is the height that they share, by default that of the axis; more names have smaller
    letters.
    """
    # Names are not mathematics: a dollar sign is a dollar sign.
    texts = [display_name(name) for name in names]
    size = name_size(axis_inches(ax)[1] if inches is None else inches, len(texts))
    ax.set_yticks(range(len(texts)), labels=texts, fontsize=size, parse_math=False)
    ax.tick_params(axis="y", length=0, labelcolor=INK)
    return size


def rows_size(width: float, count: int) -> tuple[float, float]:
    """Return width and height, in inches, of a figure with a row for each of ``count`` learners."""
    return (width, 1.5 + 0.19 * max(count, 4)) if count <= MOST_NAMES else (width, 8.0)


def learner_rows(ax: Any, learners: Array, order: str) -> float:
    """Set up an axis with a row per learner, the first at the top; return the font size of the names.

    With more than `MOST_NAMES` learners, names are left out and the label says how many there are and in
    which ``order``; 0.0 is returned.
    """
    n = len(learners)
    ax.set_ylim(n - 0.4, -0.6)
    calm(ax)
    if n <= MOST_NAMES:
        return name_rows(ax, learners)
    ax.set_yticks([])
    ax.set_ylabel(f"{n} learners, {order}")
    return 0.0


def beside_rows(ax: Any, heading: str, texts: list[str], room: int, size: float) -> list[Any]:
    """Write a text at the right of each row, under a heading, and return matplotlib's annotations.

    ``ax`` must have its rows at 0, 1, ... from the top. ``room`` is the distance of the texts' right end from
    the axis, ``size`` their font size, both in points. So texts line up however wide the axis is.
    """
    common_options: dict[str, Any] = {
        "textcoords": "offset points",
        "ha": "right",
        "fontsize": size,
        "annotation_clip": False,
    }
    rows: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (room, 0), "va": "center"}
    annotations = [
        ax.annotate(text, (1, row), color=INK, **rows, **common_options) for row, text in enumerate(texts)
    ]
    ax.annotate(heading, (1, 1), xycoords="axes fraction", xytext=(room, 2), color=QUIET, **common_options)
    return annotations


def stacked_bars(
    ax: Any, shares: Array, options_by_label: Mapping[str, dict[str, Any]], user_options: dict[str, Any]
) -> None:
    """Draw a horizontal bar per learner, cut into parts of different looks, from left to right.

    ``shares`` has shape (L, R), rows summing to one; ``options_by_label`` has the label and the
    matplotlib options of each of the R parts. ``user_options`` take precedence.
    """
    n_learners = len(shares)
    left_ends = np.zeros(n_learners)
    for widths, (label, options) in zip(shares.T, options_by_label.items(), strict=True):
        height = 0.8 if n_learners <= MOST_NAMES else 1.0
        ax.barh(
            np.arange(n_learners),
            widths,
            left=left_ends,
            **{"height": height, "label": label, **options, **user_options},
        )
        left_ends = left_ends + widths
    ax.set_xlim(0, 1)


def legend_above(ax: Any, columns: int, **look: Any) -> None:
    """Put the legend above an axis, where it covers nothing."""
    common = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "frameon": False, "fontsize": "small"}
    ax.legend(ncols=columns, borderaxespad=0.2, **common, **look)


def integer_ticks(axis: Any) -> None:
    """Let ticks stand at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=14, integer=True, min_n_ticks=1))


def plain_log_ticks(axis: Any, low: float, high: float) -> None:
    """Write the ticks of a log axis as plain numbers (0.5, 20), and enough of them in a narrow span.

    ``low`` and ``high`` are the axis's positive ends; matplotlib alone would write powers of ten, often only
    one.
    """
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    span = high / low
    if span < 4:
        axis.set_major_locator(MaxNLocator(5))
    else:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < 1000 else (1,), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def is_wide(values: Array) -> bool:
    """Say whether positive values span a factor above `WIDE`: a linear scale would hide most of them."""
    positive = values[np.isfinite(values) & (values > 0)]
    return len(positive) > 0 and bool(positive.max() > WIDE * positive.min())
