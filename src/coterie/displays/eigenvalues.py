"""The spectrum of the similarity, and how much of it the clusters use."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._arrays import Array
from coterie._text import counted
from coterie.displays._base import Display
from coterie.displays._look import FAINT, INK, QUIET, calm, integer_ticks, styled
from coterie.estimator import CoterieEstimator


class EigenvaluesDisplay(Display):
    """Eigenvalues of the normalised similarity, with the number of clusters marked.

    If there are K clear clusters, K eigenvalues are close to one, and the next one is much smaller.

    Parameters
    ----------
    eigenvalues : array-like of shape (M,)
        In descending order.
    n_clusters : int
        How many of them the clusters use.

    Examples
    --------
    >>> from coterie.displays import EigenvaluesDisplay
    >>> EigenvaluesDisplay([1.0, 0.9, 0.1], n_clusters=2).frame()["kept"].tolist()
    [True, True, False]
    """

    def __init__(self, eigenvalues: ArrayLike, *, n_clusters: int) -> None:
        self.eigenvalues: Array = np.asarray(eigenvalues, dtype=float)
        self.n_clusters = int(n_clusters)

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a fitted model."""
        partition = model.partition_
        # A learner whose losses are not finite has a cluster but no part in the spectrum, so the columns of
        # the embedding are counted, not the clusters.
        return cls(partition.eigenvalues, n_clusters=partition.embedding.shape[1])

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn.

        Returns
        -------
        dict of str to ndarray
            Columns ``position`` (from one), ``eigenvalue`` and ``kept``, a row per eigenvalue.
        """
        position = np.arange(1, len(self.eigenvalues) + 1)
        return {"position": position, "eigenvalue": self.eigenvalues, "kept": position <= self.n_clusters}

    def _size(self) -> tuple[float, float]:
        return 5.5, 3.6

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw the eigenvalues in descending order, with a dashed line after those that the clusters use.

        A large drop at that line says that the learners fall into as many groups.
        """
        table = self.frame()
        colours = np.where(table["kept"], INK, QUIET)
        ax.axhline(0, color=FAINT, linewidth=1, zorder=0)
        ax.plot(table["position"], table["eigenvalue"], color=FAINT, linewidth=1.2, zorder=1)
        points: dict[str, Any] = {"s": np.where(table["kept"], 44, 22), "color": colours, "zorder": 3}
        ax.scatter(table["position"], table["eigenvalue"], **styled(points, kwargs))
        ax.axvline(self.n_clusters + 0.5, color=INK, linewidth=1, linestyle=(0, (4, 3)))
        last_position = max(len(table["position"]), self.n_clusters)
        text_side = -1 if 2 * self.n_clusters > last_position > 1 else 1
        ax.annotate(
            counted(self.n_clusters, "cluster"),
            (self.n_clusters + 0.5, 1),
            xycoords=("data", "axes fraction"),
            xytext=(5 * text_side, -3),
            textcoords="offset points",
            va="top",
            ha="left" if text_side > 0 else "right",
            color=INK,
        )
        ax.set_xlim(0.4, last_position + 0.8)
        ax.margins(y=0.12)
        integer_ticks(ax.xaxis)
        ax.set_xlabel("position, largest first")
        ax.set_ylabel("eigenvalue of the similarity")
        calm(ax)
