"""Why this number of clusters: the curve of every rule, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import fill
from typing import Any, Self

import numpy as np

from coterie._arrays import Array
from coterie._options import check_option
from coterie._text import counted
from coterie.displays import _look
from coterie.displays._base import Display
from coterie.estimator import CoterieEstimator
from coterie.records import Curve
from coterie.summary import deciding_first

COLUMNS = 3
# Characters of the criterion on a line above a panel.
LINE = 44
# Criteria that are losses, and can span decades; a drop or a gap on a log scale would mislead.
LOSSES = ("held-out", "cv")


def _finite(values: Array) -> Array:
    """Return values with NaN in place of infinities, which matplotlib would leave no room for."""
    return np.where(np.isfinite(values), values, np.nan)


def on_log_scale(rule: str, values: Array) -> bool:
    """Say whether a rule's curve is drawn on a log scale: positive losses that span decades."""
    return rule in LOSSES and _look.is_wide(values) and not (values <= 0).any()


class ClusterCountDisplay(Display):
    """The curve of every rule for the number of clusters, with each rule's choice marked.

    Parameters
    ----------
    curves : mapping of str to Curve
        Every rule's curve, by the rule's name.
    rule : str or None, default=None
        The rule that decided. None, or a name that is not among the curves: the number was given.
    n_clusters : int or None, default=None
        The number of clusters that was taken.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of Axes
        Where ``plot`` drew: an array, one axis per rule, where ``plot`` was given neither axis nor rule.

    Examples
    --------
    >>> import numpy as np
    >>> from coterie.displays import ClusterCountDisplay
    >>> from coterie.records import Curve
    >>> curve = Curve("eigengap", np.array([1, 2, 3]), np.array([0.1, 0.9, 0.2]), 2, "drop to the next")
    >>> ClusterCountDisplay({"eigengap": curve}).frame()["chosen"].tolist()
    [False, True, False]
    """

    def __init__(
        self, curves: Mapping[str, Curve], *, rule: str | None = None, n_clusters: int | None = None
    ) -> None:
        self.curves = dict(curves)
        self.rule = rule
        self.n_clusters = n_clusters

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a fitted model."""
        partition = model.partition_
        return cls(partition.curves, rule=partition.rule, n_clusters=partition.n_clusters)

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, one rule after the other.

        Returns
        -------
        dict of str to ndarray
            Columns ``rule``, ``n_clusters``, ``value``, ``spread`` (NaN where the rule has none),
            ``chosen`` (the rule's own choice) and ``decided`` (the rule decided), a row per rule and number
            of clusters.
        """
        names = deciding_first(self.curves, self.rule)
        rows = []
        for name, curve in ((name, self.curves[name]) for name in names):
            spreads = np.full(len(curve.values), np.nan) if curve.spread is None else curve.spread
            for k, value, standard_error in zip(curve.n_clusters, curve.values, spreads, strict=True):
                rows.append((name, k, value, standard_error, k == curve.chosen, name == self.rule))
        types = {"rule": str, "n_clusters": int, "value": float, "spread": float}
        types |= {"chosen": bool, "decided": bool}
        return {name: np.array([row[index] for row in rows], types[name]) for index, name in enumerate(types)}

    def plot(self, ax: Any = None, *, rule: str | None = None, **kwargs: Any) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw one rule's curve. None: a new figure.
        rule : str or None, default=None
            The rule to draw. None: without ``ax``, every rule on an axis of its own; with ``ax``, the rule
            that decided.
        **kwargs : dict
            For the curves, passed to ``Axes.errorbar``.

        Returns
        -------
        ClusterCountDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        if not self.curves:
            raise ValueError(
                "There is no curve to draw: the 'curves' argument of ClusterCountDisplay is empty."
            )
        if rule is None and ax is not None:
            if self.rule not in self.curves:
                names = ", ".join(repr(name) for name in self.curves)
                raise ValueError(
                    f"No rule decided, so one axis can not show which: pass rule=, one of {names}."
                )
            rule = self.rule
        if rule is None:
            return self._plot_all(kwargs)
        check_option(rule, "rule", self.curves)
        ax = _look.open_axis(ax, (4.6, 3.6))
        self._draw_rule(ax, rule, kwargs)
        ax.set_xlabel("number of clusters")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _plot_all(self, kwargs: dict[str, Any]) -> Self:
        """Draw the curves of all rules side by side on a new figure, the rule that decided first."""
        names = deciding_first(self.curves, self.rule)
        # Four fit better two by two.
        n_columns = 2 if len(names) == 4 else min(COLUMNS, len(names))
        n_rows = -(-len(names) // n_columns)
        size = (3.7 * n_columns + 0.3, 2.9 * n_rows + 0.5)
        figure, grid = _look.pyplot().subplots(
            n_rows, n_columns, figsize=size, squeeze=False, layout="constrained"
        )
        axes = grid.ravel()
        for ax, name in zip(axes, names, strict=False):
            self._draw_rule(ax, name, kwargs)
        for ax in axes[len(names) :]:
            ax.remove()
        for panel, ax in enumerate(axes[: len(names)]):
            if panel + n_columns >= len(names):
                ax.set_xlabel("number of clusters")
        heading = self._heading()
        if heading:
            figure.suptitle(heading, color=_look.INK, x=0.01, ha="left")
        self.ax_, self.figure_ = axes[: len(names)], figure
        return self

    def _heading(self) -> str:
        """Return the figure's heading: the number of clusters and the rule that decided it."""
        if self.n_clusters is None:
            return ""
        how = f"decided by {self.rule}" if self.rule in self.curves else "as requested"
        return f"{counted(self.n_clusters, 'cluster')}, {how}"

    def _draw_rule(self, ax: Any, name: str, kwargs: dict[str, Any]) -> None:
        """Draw a rule's criterion against the number of clusters, and mark the number it chose.

        Above the axis stand the rule's name with its choice, and below it the criterion in words (what the
        rule compares, such as the drop of an eigenvalue). ``kwargs`` are the user's options for
        ``Axes.errorbar``.
        """
        curve = self.curves[name]
        criterion_values = _finite(np.asarray(curve.values, dtype=float))
        spread = None if curve.spread is None else _finite(np.asarray(curve.spread, dtype=float))
        counts = np.asarray(curve.n_clusters)
        ax.axvline(curve.chosen, color=_look.FAINT, linewidth=7, solid_capstyle="butt", zorder=1)
        default_options: dict[str, Any] = {
            "color": _look.QUIET,
            "ecolor": _look.QUIET,
            "elinewidth": 1,
            "capsize": 2,
            "linewidth": 1.3,
            "marker": "o",
            "markersize": 3.5,
            "zorder": 2,
        }
        ax.errorbar(counts, criterion_values, yerr=spread, **_look.styled(default_options, kwargs))
        chosen = counts == curve.chosen
        ax.plot(counts[chosen], criterion_values[chosen], "o", color=_look.INK, markersize=8, zorder=4)
        if on_log_scale(name, criterion_values):
            ax.set_yscale("log")
            _look.plain_log_ticks(ax.yaxis, np.nanmin(criterion_values), np.nanmax(criterion_values))
        ax.set_xlim(counts.min() - 0.6, counts.max() + 0.6)
        _look.integer_ticks(ax.xaxis)
        criterion = fill(curve.criterion, LINE)
        title = ax.set_title(criterion, loc="left", fontsize="small", color=_look.INK, parse_math=False)
        # A text has one weight, so the rule's name is a text of its own, on top of the title.
        ax.annotate(
            f"{name}: {curve.chosen}",
            (0, 1),
            xycoords=title,
            xytext=(0, 3),
            textcoords="offset points",
            fontweight="bold",
            color=_look.INK,
            annotation_clip=False,
            parse_math=False,
        )
        _look.calm(ax)
