"""How all displays look: one palette, one way to write a learner's name, one way to open an axis."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from coterie.regressor import CoterieRegressor

Array = NDArray[Any]

# Okabe and Ito's colours without black and yellow (the one is our ink, the other vanishes on white), then
# Tol's wine and indigo: they stay apart under the three kinds of colour blindness.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#882255", "#332288")
# Beyond the palette its colours return with another shape.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
# What is not a cluster is drawn without colour, so that a colour always means a cluster.
INK = "#222222"
QUIET = "#8C8C8C"
FAINT = "#E3E3E3"

LONGEST_NAME = 24
# A span of more than this factor is drawn on a log scale.
WIDE = 30.0


def cluster_colour(label: int) -> str:
    """Return the colour of a cluster, the same in every display; what is in no cluster has none."""
    if label < 0:
        return QUIET
    return PALETTE[label % len(PALETTE)]


def cluster_marker(label: int) -> str:
    """Return the shape of a cluster's points."""
    return MARKERS[max(label, 0) // len(PALETTE) % len(MARKERS)]


def shown_name(learner: object, longest: int = LONGEST_NAME) -> str:
    """Return a learner's id as a short printable text.

    A long name loses its middle, not its end: names often differ in their last characters only.
    """
    value = learner.item() if isinstance(learner, np.generic) else learner
    text = " ".join(str(value).split())
    text = "".join(
        character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text
    )
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 3
    head = longest - 1 - tail
    return text[:head].rstrip() + "\N{HORIZONTAL ELLIPSIS}" + text[len(text) - tail :].lstrip()


def shown_names(learner_ids: Iterable[object]) -> list[str]:
    """Return the ids as short printable texts."""
    return [shown_name(learner) for learner in learner_ids]


def counted(count: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def fitted(model: Any, display: type) -> CoterieRegressor:
    """Return the model after a check that it is a `CoterieRegressor` and fitted."""
    if not isinstance(model, CoterieRegressor):
        kind = isinstance(model, type)
        given = f"the class {model.__name__} itself" if kind else type(model).__name__
        raise TypeError(f"{display.__name__}.from_estimator takes a fitted CoterieRegressor. Got {given}.")
    check_is_fitted(model)
    return model


def same_length(display: type, **columns: Array) -> None:
    """Refuse columns that do not run over the same learners."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise ValueError(f"The arguments of {display.__name__} must have one entry per learner. Got {found}.")


def pyplot() -> Any:
    """Import matplotlib's pyplot, or say how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError('Drawing needs matplotlib: pip install "coterie[plot]".') from error
    return plt


def open_axis(ax: Any, size: tuple[float, float]) -> Any:
    """Return the axis given, or one on a new figure."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(figsize=size, layout="constrained")
    return ax


def styled(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """Return our look of points or lines with the user's changes, whichever alias they are spelt by."""
    from matplotlib.cbook import normalize_kwargs
    from matplotlib.collections import PathCollection

    changes = normalize_kwargs(given, PathCollection)
    if "c" in changes:
        changes["color"] = changes.pop("c")
    return {**normalize_kwargs(defaults, PathCollection), **changes}


def calm(ax: Any) -> None:
    """Take away what an axis does not need."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(QUIET)
    ax.tick_params(color=QUIET, labelcolor=INK)
    ax.set_axisbelow(True)


def name_size(inches: float, count: int) -> float:
    """Return a font size at which so many names fit into so many inches, as far as it stays legible."""
    return float(np.clip(0.75 * 72 * inches / max(count, 1), 4.0, 8.5))


def axis_inches(ax: Any) -> tuple[float, float]:
    """Return the width and height of an axis."""
    box = ax.get_window_extent()
    dpi = ax.get_figure().dpi
    return box.width / dpi, box.height / dpi


def integer_ticks(axis: Any) -> None:
    """Let ticks stand at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    axis.set_major_locator(MaxNLocator(nbins=14, integer=True, min_n_ticks=1))


def plain_log_ticks(axis: Any, low: float, high: float) -> None:
    """Write the ticks of a log scale as plain numbers, and enough of them in a narrow span too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    span = high / low
    if span < 4:
        axis.set_major_locator(MaxNLocator(5))
    else:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < 1000 else (1,), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def is_wide(values: Array) -> bool:
    """Say whether the positive values span so much that a linear scale would hide most of them."""
    positive = values[np.isfinite(values) & (values > 0)]
    return len(positive) > 0 and bool(positive.max() > WIDE * positive.min())
