"""Does it pay: every learner's error alone, with its coterie and with all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._arrays import Array
from coterie._text import MINUS, percent
from coterie.displays import _look
from coterie.displays._base import Display, loss_name_of
from coterie.estimator import CoterieEstimator
from coterie.verdicts.gains import ERRORS

COLUMNS = ("learner", "cluster", *ERRORS, "gain")
# What else is known of a gain, as far as the table has it.
BESIDE = ("gain_se", "gain_low", "gain_high", "verdict")


class GainsDisplay(Display):
    """Error of every learner alone, with its coterie and with all, the largest gain at the top.

    Learners without an error alone, such as those with too few rows, stand at the bottom. ``from_estimator``
    shows all learners, also those admitted.

    Parameters
    ----------
    gains : mapping of str to array-like of shape (L,)
        A table as ``CoterieRegressor.gains_``: columns ``learner``, ``cluster``, ``error_alone``,
        ``error_with``, ``error_all`` and ``gain``, and perhaps ``gain_se``, ``gain_low``, ``gain_high`` and
        ``verdict``. Further columns are left aside.

    Examples
    --------
    >>> from coterie.displays import GainsDisplay
    >>> table = {"learner": ["a", "b"], "cluster": [0, 0], "error_alone": [1.0, 2.0]}
    >>> table |= {"error_with": [0.9, 1.0], "error_all": [3.0, 3.0], "gain": [0.1, 0.5]}
    >>> GainsDisplay(table).frame()["learner"].tolist()
    ['b', 'a']
    """

    # What errors are called; another name where classes are predicted.
    loss_name = "mean squared error"

    def __init__(self, gains: Mapping[str, ArrayLike]) -> None:
        missing = [name for name in COLUMNS if name not in gains]
        if missing:
            raise ValueError(f"The 'gains' argument of GainsDisplay needs the column {missing[0]!r}.")
        known_columns = [*COLUMNS, *(name for name in BESIDE if name in gains)]
        self.gains: dict[str, Array] = {name: np.asarray(gains[name]) for name in known_columns}
        self.gains |= {
            name: self.gains[name].astype(float) for name in known_columns[2:] if name != "verdict"
        }
        self._check_lengths(**self.gains)

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a fitted model."""
        display = cls(model.gains_)
        display.loss_name = loss_name_of(model)
        return display

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, from the top of the picture down.

        Returns
        -------
        dict of str to ndarray
            Columns ``learner``, ``cluster``, ``error_alone``, ``error_with``, ``error_all``, ``gain``
            and, where they were given, ``gain_se``, ``gain_low``, ``gain_high`` and ``verdict``: a row per
            learner.
        """
        # NaN sorts last: who has no error alone has no gain to be ranked by.
        order = np.argsort(-self.gains["gain"], kind="stable")
        return {name: column[order] for name, column in self.gains.items()}

    def _size(self) -> tuple[float, float]:
        return _look.rows_size(7.0, len(self.gains["gain"]))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw a row per learner, the largest gain at the top: three errors as points, the gain as text.

        The errors are those alone, with its coterie, and with all; a line joins the first two.
        """
        table = self.frame()
        # What is not finite has no place on the axis.
        table |= {name: np.where(np.isfinite(table[name]), table[name], np.nan) for name in ERRORS}
        n_learners = len(table["learner"])
        has_names = n_learners <= _look.MOST_NAMES
        heights = np.arange(n_learners)
        line_width = 2 if has_names else 1
        ax.hlines(
            heights,
            table["error_alone"],
            table["error_with"],
            color=_look.FAINT,
            linewidth=line_width,
            zorder=1,
        )
        size = 34 if has_names else max(5.0, 1500 / n_learners)
        self._points(ax, table, heights, size, kwargs)
        self._scale(ax, np.concatenate([table[name] for name in ERRORS]))
        ax.set_xlabel(f"{self.loss_name} on rows not seen (lower is better)")
        size = _look.learner_rows(ax, table["learner"], "the largest gain at the top")
        if has_names:
            gain_texts = [percent(gain, sign=True) for gain in table["gain"].tolist()]
            for text in _look.beside_rows(ax, "gain", gain_texts, 42, size):
                text.set_fontweight("bold" if MINUS in text.get_text() else "normal")
        self._legend(ax)

    def _points(
        self, ax: Any, table: dict[str, Array], rows: Array, size: float, kwargs: dict[str, Any]
    ) -> None:
        """Draw each learner's errors with all, alone and with its coterie.

        ``rows`` has each learner's height on the axis, ``size`` is the area of a point. Errors with
        the coterie have the cluster's colour and shape, the others are grey or hollow.
        """
        common: dict[str, Any] = {"s": size, "linewidths": max(0.6, min(1.2, size / 20)), "zorder": 2}
        all_style = {**common, "marker": "x", "color": _look.QUIET}
        alone_style = {**common, "facecolors": "white", "edgecolors": _look.INK}
        ax.scatter(table["error_all"], rows, label="with all", **_look.styled(all_style, kwargs))
        ax.scatter(table["error_alone"], rows, label="alone", **_look.styled(alone_style, kwargs))
        for label in np.unique(table["cluster"]).tolist():
            in_cluster = table["cluster"] == label
            cluster_style = {
                "s": size,
                "color": _look.cluster_colour(label),
                "marker": _look.cluster_marker(label),
                "zorder": 3,
            }
            errors = table["error_with"][in_cluster]
            ax.scatter(
                errors, rows[in_cluster], label=f"cluster {label}", **_look.styled(cluster_style, kwargs)
            )

    def _scale(self, ax: Any, errors: Array) -> None:
        """Use a log scale where errors span decades; with zeros among them, one that is linear near zero."""
        if not _look.is_wide(errors):
            return
        if (errors <= 0).any():
            # An error of zero has no place on a log scale; below the smallest decade this one is linear.
            decade = 10.0 ** np.floor(np.log10(errors[errors > 0].min()))
            ax.set_xscale("symlog", linthresh=decade, linscale=0.6)
            ax.xaxis.set_major_formatter("{x:g}")
        else:
            ax.set_xscale("log")
            _look.plain_log_ticks(ax.xaxis, float(np.nanmin(errors)), float(np.nanmax(errors)))

    def _legend(self, ax: Any) -> None:
        """Add a legend of the three kinds of points; the first cluster's colour stands for all."""
        from matplotlib.lines import Line2D

        options_by_label: dict[str, dict[str, Any]] = {
            "alone": {"marker": "o", "markerfacecolor": "white", "markeredgecolor": _look.INK},
            "with its coterie (colour: cluster)": {"marker": "o", "color": _look.cluster_colour(0)},
            "with all": {"marker": "x", "color": _look.QUIET},
        }
        common_options: dict[str, Any] = {"linestyle": "none", "markersize": 5.5}
        handles = [
            Line2D([], [], label=label, **marker_options, **common_options)
            for label, marker_options in options_by_label.items()
        ]
        _look.legend_above(ax, 3, handles=handles, handletextpad=0.2)
