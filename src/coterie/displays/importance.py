"""Which predictors matter in each cluster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from coterie._arrays import Array
from coterie.displays import _look
from coterie.displays._base import Display, fitted
from coterie.verdicts import Importance, measure_importance

MOST_PREDICTORS = 20


class ImportanceDisplay(Display):
    """Importance of the predictors in each cluster, the most important in the mean at the top.

    Importance is the rise of the error on rows not seen when a predictor is shuffled. It is drawn as a share
    of the sum over the predictors of a cluster. ``importance.shapes`` tells how predictions depend on the
    most important ones.

    Parameters
    ----------
    importance : Importance
        What `coterie.verdicts.measure_importance` returned.
    """

    def __init__(self, importance: Importance) -> None:
        if not isinstance(importance, Importance):
            raise TypeError(
                f"ImportanceDisplay takes what measure_importance returned. Got {type(importance).__name__}."
            )
        self.importance = importance

    @classmethod
    def from_estimator(cls, model: Any, clusters: Sequence[int] | None = None) -> Self:
        """Measure the importance of a fitted model's predictors.

        Parameters
        ----------
        model : CoterieRegressor or CoterieClassifier
            Fitted, with its rows.
        clusters : sequence of int or None, default=None
            The clusters to look at. None: all.

        Returns
        -------
        ImportanceDisplay
            Ready to be drawn.
        """
        return cls(measure_importance(fitted(model, cls), clusters))

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, from the top of the picture down.

        Returns
        -------
        dict of str to ndarray
            Columns ``predictor``, ``cluster``, ``importance`` (as a share of the response's variance),
            ``importance_se`` and ``share`` (of the sum over the cluster's predictors): a row per predictor
            and cluster.
        """
        importance, shares = self.importance, self.importance.shares
        order = np.argsort(-shares.mean(axis=0), kind="stable")
        return {
            "predictor": np.repeat(importance.predictors[order], len(importance.clusters)),
            "cluster": np.tile(importance.clusters, len(order)),
            "importance": importance.importance[:, order].T.ravel(),
            "importance_se": importance.spread[:, order].T.ravel(),
            "share": shares[:, order].T.ravel(),
        }

    def _size(self) -> tuple[float, float]:
        return _look.rows_size(6.5, min(len(self.importance.predictors), MOST_PREDICTORS))

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw a row per predictor, with a point for its share of the importance in each cluster.

        At most `MOST_PREDICTORS` are shown, the most important at the top. ``kwargs`` are the user's
        options for ``Axes.scatter``.
        """
        table, n_clusters = self.frame(), len(self.importance.clusters)
        names = table["predictor"][::n_clusters][:MOST_PREDICTORS]
        for index, cluster in enumerate(self.importance.clusters.tolist()):
            points: dict[str, Any] = {
                "s": 40,
                "color": _look.cluster_colour(cluster),
                "marker": _look.cluster_marker(cluster),
                "label": f"cluster {cluster}",
                "alpha": 0.85,
                "zorder": 3,
            }
            shares = table["share"][index::n_clusters][:MOST_PREDICTORS]
            ax.scatter(shares, range(len(names)), **_look.styled(points, kwargs))
        ax.set_xlim(left=0)
        ax.grid(axis="y", color=_look.FAINT)
        ax.set_xlabel("share of the importance, on rows not seen")
        _look.learner_rows(ax, names, "")
        if n_clusters <= 10:
            _look.legend_above(ax, min(n_clusters, 5), handletextpad=0.2)
