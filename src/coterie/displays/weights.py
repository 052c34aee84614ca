"""From whom does each learner take: itself, its coterie, all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._arrays import Array
from coterie.collaboration.nested import NestedForm
from coterie.displays._base import Display
from coterie.displays._look import learner_rows, legend_above, rows_size, stacked_bars
from coterie.estimator import CoterieEstimator

# Colours mean clusters; sources are greys, from alone (dark) to all (light).
DARKEST, LIGHTEST = 0.15, 0.88


class WeightsDisplay(Display):
    """What each learner takes from itself, from its coterie and from all.

    ``from_estimator`` needs a model fitted with ``collaboration="auto"`` and shows the learners that shaped
    the clusters.

    Parameters
    ----------
    learner_ids : array-like of shape (L,)
        The learners.
    shares : array-like of shape (L, R)
        Weights, which sum to one in each row.
    share_names : sequence of str
        Names of the R sources, from alone to all.

    Examples
    --------
    >>> from coterie.displays import WeightsDisplay
    >>> display = WeightsDisplay(["a", "b"], [[0.2, 0.8], [0.9, 0.1]], ("alone", "all"))
    >>> display.frame()["learner"].tolist()
    ['b', 'a']
    """

    def __init__(self, learner_ids: ArrayLike, shares: ArrayLike, share_names: Sequence[str]) -> None:
        self.learner_ids: Array = np.asarray(learner_ids)
        self.shares: Array = np.asarray(shares, dtype=float)
        self.share_names = tuple(share_names)
        self._check_lengths(learner_ids=self.learner_ids, shares=self.shares)
        if self.shares.ndim != 2 or self.shares.shape[1] != len(self.share_names):
            raise ValueError(
                f"The shares of WeightsDisplay must have a column for each of the {len(self.share_names)} "
                f"share_names. Got the shape {self.shares.shape}."
            )

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a model fitted with collaboration='auto'; other forms have no weights."""
        form = model.collaboration_
        if not isinstance(form, NestedForm):
            raise ValueError(
                f"The model was fitted with collaboration={form.method!r}, which has no weights to show: "
                "fit it with collaboration='auto'."
            )
        return cls(form.learner_ids, form.shares, form.share_names)

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, from the top of the picture down.

        Returns
        -------
        dict of str to ndarray
            Column ``learner`` and a column per source, a row per learner; who takes most from
            itself, then from the finest coteries, comes first.
        """
        # Rounded, so that learners who share their weights keep the order given.
        keys = -np.round(self.shares, 6)
        order = np.lexsort(keys.T[::-1])
        columns = {name: self.shares[order, index] for index, name in enumerate(self.share_names)}
        return {"learner": self.learner_ids[order], **columns}

    def _size(self) -> tuple[float, float]:
        return rows_size(7.0, len(self.learner_ids))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw a bar per learner, cut by the weights of the sources, from alone (dark) to all (light).

        A source is the learner's own model, that of its coterie, or that of all learners.
        """
        table = self.frame()
        learners = table.pop("learner")
        greys = np.linspace(DARKEST, LIGHTEST, max(len(self.share_names), 2))
        looks = {name: {"color": str(grey), "linewidth": 0} for grey, name in zip(greys, table, strict=False)}
        stacked_bars(ax, np.column_stack(list(table.values())), looks, kwargs)
        ax.set_xlabel("weight in the learner's predictions")
        learner_rows(ax, learners, "who relies most on itself at the top")
        legend_above(ax, min(len(self.share_names), 6), handletextpad=0.4, columnspacing=1.0)
