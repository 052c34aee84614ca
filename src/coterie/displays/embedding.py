"""Where the learners lie in the space in which they are clustered."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._arrays import Array
from coterie.displays import _look
from coterie.displays._base import Display, ids_or_positions
from coterie.estimator import CoterieEstimator

# Pairs of columns are looked for among this many leading ones.
MOST_COLUMNS = 12
MOST_PANELS = 3
# Rows have length one: centres this far apart are seen to be apart, and further apart is no better.
SEEN_APART = 0.3
# A longer legend says no more: colours and shapes repeat.
MOST_ENTRIES = 24


def _telling_pairs(embedding: Array, labels: Array, most: int) -> list[tuple[int, int]]:
    """Choose up to ``most`` pairs of columns of an embedding (L, K) that show the clusters apart.

    The embedding has a row per learner, its place among the top eigenvectors of the similarity.

    The leading column of a connected graph has one sign for all learners and shows little, so that the
    first two columns are often not the ones to look at.

    Pairs are chosen one after the other (greedily). Each is the one that adds most to the distances
    between the clusters' centres that the pairs before it show; distances above `SEEN_APART` count no
    more. The choice ends when a pair adds little.
    """
    clusters = np.unique(labels)
    centres = np.array([embedding[labels == label].mean(axis=0) for label in clusters])
    width = min(embedding.shape[1], MOST_COLUMNS)
    all_pairs = list(combinations(range(width), 2))
    cluster_pairs = np.triu_indices(len(clusters), 1)
    # One squared distance per pair of clusters and column: those of two columns add up.
    squared_distances = (centres[:, None, :width] - centres[None, :, :width])[cluster_pairs] ** 2
    distances = np.sqrt(np.array([squared_distances[:, list(pair)].sum(axis=1) for pair in all_pairs]))
    distances_shown = np.zeros(len(squared_distances))
    pairs: list[tuple[int, int]] = []
    while len(pairs) < most:
        total_shown = np.minimum(np.maximum(distances, distances_shown), SEEN_APART).sum(axis=1)
        # Rounding keeps the choice from hanging on the last digits where pairs are equally good.
        best = int(np.lexsort((-distances.sum(axis=1).round(6), -total_shown.round(6)))[0])
        gain_of_best = total_shown[best] - np.minimum(distances_shown, SEEN_APART).sum()
        if pairs and gain_of_best < SEEN_APART / 2:
            break
        pairs.append(all_pairs[best])
        distances_shown = np.maximum(distances_shown, distances[best])
    return pairs


class EmbeddingDisplay(Display):
    """Learners as rows of the top eigenvectors, coloured by cluster.

    Two columns are drawn against each other: those in which the clusters are seen apart, and up to two more
    pairs where one pair cannot show all of them. With one cluster there is one column only, which is drawn
    over the learners in their order. ``from_estimator`` shows the learners that shaped the clusters.

    Parameters
    ----------
    embedding : array-like of shape (L, K)
        A row per learner.
    labels : array-like of shape (L,)
        Cluster of each learner.
    learner_ids : array-like of shape (L,) or None, default=None
        Names of the learners. None: 0 to L - 1.

    Attributes
    ----------
    ax_ : matplotlib Axes or ndarray of Axes
        Where ``plot`` drew: an array where it drew more than one pair of columns.

    Examples
    --------
    >>> from coterie.displays import EmbeddingDisplay
    >>> display = EmbeddingDisplay([[1, 0], [1, 0], [0, 1]], labels=[0, 0, 1])
    >>> list(display.frame())
    ['learner', 'cluster', 'column_0', 'column_1']
    """

    def __init__(
        self, embedding: ArrayLike, *, labels: ArrayLike, learner_ids: ArrayLike | None = None
    ) -> None:
        self.embedding: Array = np.asarray(embedding, dtype=float)
        self.labels: Array = np.asarray(labels, dtype=int)
        self.learner_ids = ids_or_positions(learner_ids, len(self.labels))
        self._check_lengths(embedding=self.embedding, labels=self.labels, learner_ids=self.learner_ids)

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a fitted model."""
        partition = model.partition_
        return cls(partition.embedding, labels=partition.labels, learner_ids=partition.learner_ids)

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, and the columns that ``plot`` leaves out.

        Returns
        -------
        dict of str to ndarray
            Columns ``learner``, ``cluster``, ``column_0`` to ``column_{K-1}``, a row per learner.
        """
        columns = {f"column_{k}": self.embedding[:, k] for k in range(self.embedding.shape[1])}
        return {"learner": self.learner_ids, "cluster": self.labels, **columns}

    def _pairs(self, columns: Sequence[int] | None, most: int) -> list[tuple[int, int]]:
        """Return the pairs of columns to draw: the given one, or those that separate the clusters best.

        Returned are at most ``most`` pairs; none where the embedding has one column.
        """
        embedding_width = self.embedding.shape[1]
        if columns is not None:
            if len(columns) != 2 or not all(0 <= c < embedding_width for c in columns):
                raise ValueError(
                    "The 'columns' option must name two columns of the embedding, 0 to "
                    f"{embedding_width - 1}. Got {columns!r}."
                )
            return [(columns[0], columns[1])]
        return _telling_pairs(self.embedding, self.labels, most) if embedding_width > 1 else []

    def plot(self, ax: Any = None, *, columns: tuple[int, int] | None = None, **kwargs: Any) -> Self:
        """Draw the learners.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw one pair of columns. None: a new figure.
        columns : tuple of two int or None, default=None
            The columns of the embedding to draw. None: those in which the clusters are seen apart.
        **kwargs : dict
            For the points, passed to ``Axes.scatter``.

        Returns
        -------
        EmbeddingDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        pairs = self._pairs(columns, MOST_PANELS if ax is None else 1)
        n_panels = max(len(pairs), 1)
        is_own_figure = ax is None
        if ax is None:
            size = (3.5 * n_panels + 2.2, 3.9)
            _, axes = _look.pyplot().subplots(1, n_panels, figsize=size, squeeze=False, layout="constrained")
            axes = axes.ravel()
        else:
            axes = np.array([_look.open_axis(ax, (0, 0))], dtype=object)
        for panel, pair in zip(axes, pairs, strict=False):
            panel.axhline(0, color=_look.FAINT, linewidth=1, zorder=0)
            panel.axvline(0, color=_look.FAINT, linewidth=1, zorder=0)
            across, up = (self.embedding[:, column] for column in pair)
            _look.cluster_points(panel, across, up, self.labels, kwargs)
            panel.set_xlabel(f"column {pair[0]} of the embedding")
            panel.set_ylabel(f"column {pair[1]} of the embedding")
            # Rows have length one, so that the columns have one unit.
            panel.set_aspect("equal", adjustable="datalim")
        if not pairs:
            self._only_column(axes[0], kwargs)
        self._legend(axes[-1], is_own_figure)
        self.ax_, self.figure_ = axes if n_panels > 1 else axes[0], axes[0].figure
        return self

    def _only_column(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw an embedding of one column (one cluster) against the learners' position."""
        ax.axhline(0, color=_look.FAINT, linewidth=1, zorder=0)
        positions = np.arange(1, len(self.labels) + 1)
        _look.cluster_points(ax, positions, self.embedding[:, 0], self.labels, kwargs)
        ax.set_xlim(0.4, len(self.labels) + 0.6)
        _look.integer_ticks(ax.xaxis)
        ax.set_xlabel("learner, in order")
        ax.set_ylabel("the only column of the embedding")

    def _legend(self, ax: Any, own_figure: bool) -> None:
        """Add a legend of the clusters, at most `MOST_ENTRIES`; beside the axis if the figure is our own."""
        handles, texts = ax.get_legend_handles_labels()
        title = None
        if len(handles) > MOST_ENTRIES:
            title = f"the first {MOST_ENTRIES} of {len(handles)}"
            handles, texts = handles[:MOST_ENTRIES], texts[:MOST_ENTRIES]
        legend_options: dict[str, Any] = {
            "frameon": False,
            "fontsize": "small",
            "title": title,
            "title_fontsize": "small",
        }
        if own_figure:
            # Beside the axis it can cover no learner.
            legend_options |= {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "borderaxespad": 0.0}
        ax.legend(handles, texts, **legend_options)
