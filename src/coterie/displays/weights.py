"""From whom does each learner take: itself, coteries at several resolutions, all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from coterie.collaboration.nested import NestedCollaboration
from coterie.displays._look import (
    axis_inches,
    calm,
    fitted,
    name_size,
    open_axis,
    same_length,
    shown_names,
)

Array = NDArray[Any]

MOST_NAMES = 60
# Colours mean clusters; resolutions are greys, from alone (dark) to all (light).
DARKEST, LIGHTEST = 0.15, 0.88


class WeightsDisplay:
    """What each learner takes from itself, from coteries at several resolutions and from all.

    Parameters
    ----------
    learner_ids : array-like of shape (L,)
        The learners.
    shares : array-like of shape (L, R)
        Weights, which sum to one in each row.
    share_names : sequence of str
        Names of the R resolutions, from alone to all.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Where ``plot`` drew.
    figure_ : matplotlib Figure
        The figure of ``ax_``.

    Examples
    --------
    >>> from coterie.displays import WeightsDisplay
    >>> display = WeightsDisplay(["a", "b"], [[0.2, 0.8], [0.9, 0.1]], ("alone", "all"))
    >>> display.frame()["learner"].tolist()
    ['b', 'a']
    """

    ax_: Any
    figure_: Any

    def __init__(self, learner_ids: ArrayLike, shares: ArrayLike, share_names: Sequence[str]) -> None:
        self.learner_ids: Array = np.asarray(learner_ids)
        self.shares: Array = np.asarray(shares, dtype=float)
        self.share_names = tuple(share_names)
        same_length(type(self), learner_ids=self.learner_ids, shares=self.shares)
        if self.shares.ndim != 2 or self.shares.shape[1] != len(self.share_names):
            raise ValueError(
                f"The shares of WeightsDisplay must have a column for each of the {len(self.share_names)} "
                f"share_names. Got the shape {self.shares.shape}."
            )

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Take the weights from a fitted model.

        Parameters
        ----------
        model : CoterieRegressor
            Fitted with ``collaboration="auto"``.

        Returns
        -------
        WeightsDisplay
            Of the learners that shaped the clusters, ready to be drawn.
        """
        nested = fitted(model, cls).collaboration_
        if not isinstance(nested, NestedCollaboration):
            raise ValueError(
                f"The model was fitted with collaboration={nested.method!r}, which has no weights to show: "
                "fit it with collaboration='auto'."
            )
        return cls(nested.learner_ids, nested.shares, nested.share_names)

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, from the top of the picture down.

        Returns
        -------
        dict of str to ndarray
            Column ``learner`` and a column per resolution, a row per learner; who takes most from
            itself, then from the finest coteries, comes first.
        """
        # Rounded, so that learners who share their weights keep the order given.
        keys = -np.round(self.shares, 6)
        order = np.lexsort(keys.T[::-1])
        columns = {name: self.shares[order, place] for place, name in enumerate(self.share_names)}
        return {"learner": self.learner_ids[order], **columns}

    def plot(self, ax: Any = None, **kwargs: Any) -> Self:
        """Draw a stacked bar per learner.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw. None: a new figure.
        **kwargs : dict
            For the bars, passed to ``Axes.barh``.

        Returns
        -------
        WeightsDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        table = self.frame()
        n = len(self.learner_ids)
        named = n <= MOST_NAMES
        ax = open_axis(ax, (7.0, 1.5 + 0.19 * max(n, 4)) if named else (7.0, 8.0))
        rows, left = np.arange(n), np.zeros(n)
        greys = np.linspace(DARKEST, LIGHTEST, max(len(self.share_names), 2))
        for grey, name in zip(greys, self.share_names, strict=False):
            look = {"color": str(grey), "height": 0.8 if named else 1.0, "linewidth": 0}
            ax.barh(rows, table[name], left=left, label=name, **{**look, **kwargs})
            left = left + table[name]
        ax.set_xlim(0, 1)
        ax.set_ylim(n - 0.4, -0.6)
        ax.set_xlabel("weight in the learner's predictions")
        calm(ax)
        if named:
            size = name_size(axis_inches(ax)[1], n)
            # Names are not mathematics: a dollar sign is a dollar sign.
            ax.set_yticks(rows, labels=shown_names(table["learner"]), fontsize=size, parse_math=False)
            ax.tick_params(axis="y", length=0)
        else:
            ax.set_yticks([])
            ax.set_ylabel(f"{n} learners, who relies most on itself at the top")
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1.0),
            ncols=min(len(self.share_names), 6),
            frameon=False,
            fontsize="small",
            borderaxespad=0.2,
            handletextpad=0.4,
            columnspacing=1.0,
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self
