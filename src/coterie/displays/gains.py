"""Does it pay: every learner's error alone, with its coterie and with all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.displays._look import (
    FAINT,
    INK,
    QUIET,
    axis_inches,
    calm,
    cluster_colour,
    cluster_marker,
    fitted,
    is_wide,
    name_size,
    open_axis,
    plain_log_ticks,
    same_length,
    shown_names,
    styled,
)
from coterie.verdicts.gains import ERRORS

Array = NDArray[Any]

COLUMNS = ("learner", "cluster", *ERRORS, "gain")
MOST_NAMES = 60


def _percent(gain: float) -> str:
    """Return a gain as a short text; NaN as a dash."""
    if np.isnan(gain):
        return "\N{EN DASH}"
    if gain < -9.99:
        return "< \N{MINUS SIGN}999%"
    whole = round(100 * gain)
    return f"{whole:+d}%".replace("-", "\N{MINUS SIGN}") if whole else "0%"


class GainsDisplay:
    """Error of every learner alone, with its coterie and with all, the largest gain at the top.

    Learners without an error alone, such as those with too few rows, stand at the bottom.

    Parameters
    ----------
    gains : mapping of str to array-like of shape (L,)
        A table as ``CoterieRegressor.gains_``: columns ``learner``, ``cluster``, ``error_alone``,
        ``error_with``, ``error_all`` and ``gain``. Further columns are left aside.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where ``plot`` drew.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

    Examples
    --------
    >>> from coterie.displays import GainsDisplay
    >>> table = {"learner": ["a", "b"], "cluster": [0, 0], "error_alone": [1.0, 2.0]}
    >>> table |= {"error_with": [0.9, 1.0], "error_all": [3.0, 3.0], "gain": [0.1, 0.5]}
    >>> GainsDisplay(table).frame()["learner"].tolist()
    ['b', 'a']
    """

    ax_: Any
    figure_: Any

    def __init__(self, gains: Mapping[str, ArrayLike]) -> None:
        missing = [name for name in COLUMNS if name not in gains]
        if missing:
            raise ValueError(f"The 'gains' argument of GainsDisplay needs the column {missing[0]!r}.")
        self.gains: dict[str, Array] = {name: np.asarray(gains[name]) for name in COLUMNS}
        self.gains |= {name: self.gains[name].astype(float) for name in (*ERRORS, "gain")}
        same_length(type(self), **self.gains)

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the gains from a fitted model.

        Parameters
        ----------
        model : CoterieRegressor
            Fitted.

        Returns
        -------
        GainsDisplay
            Of all learners, also of those admitted, ready to be drawn.
        """
        return cls(fitted(model, cls).gains_)

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, from the top of the picture down.

        Returns
        -------
        dict of str to ndarray
            Columns ``learner``, ``cluster``, ``error_alone``, ``error_with``, ``error_all`` and
            ``gain``, a row per learner.
        """
        # NaN sorts last: who has no error alone has no gain to be ranked by.
        order = np.argsort(-self.gains["gain"], kind="stable")
        return {name: column[order] for name, column in self.gains.items()}

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a row of three points per learner.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw. None: a new figure.
        **kwargs : dict
            For the points, passed to ``Axes.scatter``.

        Returns
        -------
        GainsDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        table = self.frame()
        # What is not finite has no place on the axis.
        table |= {name: np.where(np.isfinite(table[name]), table[name], np.nan) for name in ERRORS}
        n = len(table["learner"])
        named = n <= MOST_NAMES
        ax = open_axis(ax, (7.0, 1.5 + 0.19 * max(n, 4)) if named else (7.0, 8.0))
        rows = np.arange(n)
        ax.hlines(
            rows,
            table["error_alone"],
            table["error_with"],
            color=FAINT,
            linewidth=2 if named else 1,
            zorder=1,
        )
        size = 34 if named else max(5.0, 1500 / n)
        self._points(ax, table, rows, size, kwargs)
        self._scale(ax, np.concatenate([table[name] for name in ERRORS]))
        ax.set_ylim(n - 0.4, -0.6)
        ax.set_xlabel("mean squared error on rows not seen (lower is better)")
        calm(ax)
        if named:
            self._names(ax, table)
        else:
            ax.set_yticks([])
            ax.set_ylabel(f"{n} learners, the largest gain at the top")
        self._legend(ax)
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _points(
        self, ax: Any, table: dict[str, Array], rows: Array, size: float, kwargs: dict[str, Any]
    ) -> None:
        thin = max(0.6, min(1.2, size / 20))
        alone: dict[str, Any] = {
            "s": size,
            "facecolors": "white",
            "edgecolors": INK,
            "linewidths": thin,
            "zorder": 2,
        }
        everybody: dict[str, Any] = {
            "s": size,
            "marker": "x",
            "color": QUIET,
            "linewidths": thin,
            "zorder": 2,
        }
        ax.scatter(table["error_all"], rows, label="with all", **styled(everybody, kwargs))
        ax.scatter(table["error_alone"], rows, label="alone", **styled(alone, kwargs))
        for label in np.unique(table["cluster"]).tolist():
            mine = table["cluster"] == label
            filled: dict[str, Any] = {
                "s": size,
                "color": cluster_colour(label),
                "marker": cluster_marker(label),
                "zorder": 3,
            }
            ax.scatter(
                table["error_with"][mine], rows[mine], label=f"cluster {label}", **styled(filled, kwargs)
            )

    def _scale(self, ax: Any, errors: Array) -> None:
        if not is_wide(errors):
            return
        if (errors <= 0).any():
            # An error of zero has no place on a log scale; below the smallest decade this one is linear.
            decade = 10.0 ** np.floor(np.log10(errors[errors > 0].min()))
            ax.set_xscale("symlog", linthresh=decade, linscale=0.6)
            ax.xaxis.set_major_formatter("{x:g}")
        else:
            ax.set_xscale("log")
            plain_log_ticks(ax.xaxis, float(np.nanmin(errors)), float(np.nanmax(errors)))

    def _names(self, ax: Any, table: dict[str, Array]) -> None:
        n = len(table["learner"])
        size = name_size(axis_inches(ax)[1], n)
        # Names are not mathematics: a dollar sign is a dollar sign.
        ax.set_yticks(range(n), labels=shown_names(table["learner"]), fontsize=size, parse_math=False)
        ax.tick_params(axis="y", length=0)
        # In points from the edge of the axis, so that the texts line up however wide it is.
        beside: dict[str, Any] = {
            "textcoords": "offset points",
            "ha": "right",
            "fontsize": size,
            "annotation_clip": False,
        }
        rows: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "xytext": (42, 0), "va": "center"}
        for row, gain in enumerate(table["gain"].tolist()):
            text = _percent(gain)
            weight = "bold" if "\N{MINUS SIGN}" in text else "normal"
            ax.annotate(text, (1, row), color=INK, fontweight=weight, **rows, **beside)
        ax.annotate("gain", (1, 1), xycoords="axes fraction", xytext=(42, 2), color=QUIET, **beside)

    def _legend(self, ax: Any) -> None:
        from matplotlib.lines import Line2D

        points: dict[str, Any] = {"linestyle": "none", "markersize": 5.5}
        handles = [
            Line2D([], [], marker="o", markerfacecolor="white", markeredgecolor=INK, label="alone", **points),
            Line2D(
                [],
                [],
                marker="o",
                color=cluster_colour(0),
                label="with its coterie (colour: cluster)",
                **points,
            ),
            Line2D([], [], marker="x", color=QUIET, label="with all", **points),
        ]
        look: dict[str, Any] = {
            "ncols": 3,
            "frameon": False,
            "fontsize": "small",
            "borderaxespad": 0.2,
            "handletextpad": 0.2,
        }
        ax.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1.0), **look)
