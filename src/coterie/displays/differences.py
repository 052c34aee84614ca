"""Why two clusters differ: how far apart their models are along each predictor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from coterie._arrays import Array
from coterie.displays._base import Display, fitted
from coterie.displays._look import FAINT, INK, beside_rows, cluster_colour, name_rows
from coterie.verdicts import Differences, compare_clusters

MOST_PREDICTORS = 20


class DifferencesDisplay(Display):
    """Difference of two clusters' predictions along each predictor, the most important at the top.

    A cell is a bin of the predictor, from its lowest values on the left to its highest on the right, bins of
    about as many rows. Its colour is that of the cluster which predicts more there.

    Parameters
    ----------
    differences : Differences
        What `coterie.verdicts.compare_clusters` returned.

    Attributes
    ----------
    colorbar_ : matplotlib Colorbar
        The scale of the colours.
    """

    colorbar_: Any

    def __init__(self, differences: Differences) -> None:
        if not isinstance(differences, Differences):
            raise TypeError(
                f"DifferencesDisplay takes what compare_clusters returned. Got {type(differences).__name__}."
            )
        self.differences = differences

    @classmethod
    def from_estimator(cls, model: Any, first: int = 0, second: int = 1) -> Self:
        """Compare two clusters of a fitted model.

        Parameters
        ----------
        model : CoterieRegressor or CoterieClassifier
            Fitted, with its rows and more than one cluster.
        first : int, default=0
            A cluster.
        second : int, default=1
            Another.

        Returns
        -------
        DifferencesDisplay
            Ready to be drawn.
        """
        if fitted(model, cls).n_clusters_ < 2:
            raise ValueError("The model has one cluster only: there are no differences to draw.")
        return cls(compare_clusters(model, first, second))

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, from the top of the picture down.

        Returns
        -------
        dict of str to ndarray
            Columns ``predictor``, ``importance``, ``from``, ``to``, ``difference`` and ``rows``: a row per
            predictor and bin.
        """
        differences = self.differences
        order = np.argsort(-differences.importance, kind="stable")
        n_bins = differences.profile.shape[1]
        return {
            "predictor": np.repeat(differences.predictors[order], n_bins),
            "importance": np.repeat(differences.importance[order], n_bins),
            "from": differences.edges[order, :-1].ravel(),
            "to": differences.edges[order, 1:].ravel(),
            "difference": differences.profile[order].ravel(),
            "rows": differences.counts[order].ravel(),
        }

    def _size(self) -> tuple[float, float]:
        return 6.5, 1.9 + 0.28 * min(max(len(self.differences.predictors), 3), MOST_PREDICTORS)

    def _draw(self, ax: Any, kwargs: dict[str, Any]) -> None:
        """Draw the mean difference along each predictor as a row of coloured cells, a cell per bin.

        The colour is that of the cluster which predicts more; white is no difference. At the right
        stands the share of the difference that depends on the predictor.
        """
        from matplotlib.colors import LinearSegmentedColormap

        differences = self.differences
        first, second = differences.clusters
        order = np.argsort(-differences.importance, kind="stable")[:MOST_PREDICTORS]
        profile = differences.profile[order]
        colours = [cluster_colour(second), "#FFFFFF", cluster_colour(first)]
        largest_difference = float(np.nanmax(np.abs(profile))) or 1.0
        default_options: dict[str, Any] = {
            "aspect": "auto",
            "cmap": LinearSegmentedColormap.from_list("difference", colours).with_extremes(bad=FAINT),
            "vmin": -largest_difference,
            "vmax": largest_difference,
            "interpolation": "nearest",
        }
        image = ax.imshow(profile, **{**default_options, **kwargs})
        size = name_rows(ax, differences.predictors[order])
        ax.set_xticks([0, profile.shape[1] - 1], labels=["lowest values", "highest values"])
        ax.tick_params(length=0, labelcolor=INK)
        ax.spines[:].set_visible(False)
        beside_rows(
            ax,
            "share",
            [f"{min(share, 1.0):.0%}" for share in differences.importance[order].tolist()],
            34,
            size,
        )
        ax.set_title(f"where clusters {first} and {second} disagree", fontsize="medium", loc="left")
        self.colorbar_ = ax.figure.colorbar(image, ax=ax, shrink=0.9, pad=0.14)
        self.colorbar_.outline.set_visible(False)
        quantity = "prediction of" if differences.label is None else f"probability of {differences.label!r}:"
        self.colorbar_.set_label(f"{quantity} cluster {first} minus cluster {second}")
