"""Everybody's model on everybody's rows, learners ordered by cluster."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from coterie._arrays import Array
from coterie._text import display_name
from coterie.displays._base import Display, by_reference, ids_or_positions, loss_name_of
from coterie.displays._crowds import block_means, block_name, blocks_of, some_learners
from coterie.displays._look import (
    INK,
    NEAR,
    axis_inches,
    cluster_colour,
    name_rows,
    open_axis,
    plain_log_ticks,
)
from coterie.estimator import CoterieEstimator
from coterie.records import Exchange, Partition

MOST_NAMES = 40
# A cluster narrower than these shares of the axis has no room for its number, or for the word before it.
NARROWEST = 0.025
ROOM_FOR_WORD = 0.16
# Width of the bands in the clusters' colours, as a share of the axis.
BAND = 0.022
NOT_FINITE = "#BDBDBD"
# Cells beyond the whiskers of a box plot have the colour of the scale's end.
WHISKER = 1.5
# Logarithms this near are the same.
EQUAL = 1e-3


def colour_limits(values: Array) -> tuple[float, float] | None:
    """Return the ends (low, high) of a logarithmic colour scale, or None when no value is positive.

    The ends are the whiskers of a box plot of the logarithms, or the extreme values where these lie
    inside. So a few extreme cells do not wash out all others; they get the colour of the nearer end.
    """
    positive = values[np.isfinite(values) & (values > 0)]
    if not len(positive):
        return None
    logs = np.log(positive)
    lower_quartile, upper_quartile = np.quantile(logs, (0.25, 0.75))
    whisker_length = max(WHISKER * (upper_quartile - lower_quartile), EQUAL)
    log_low, log_high = lower_quartile - whisker_length, upper_quartile + whisker_length
    # Equal losses still need a scale to stand on.
    if np.ptp(logs) < EQUAL:
        return float(positive.min() / 2), float(positive.max() * 2)
    lowest = positive.min() if log_low <= logs.min() else np.exp(log_low)
    return float(lowest), float(positive.max() if log_high >= logs.max() else np.exp(log_high))


def in_noise(losses: Array, noise: Array) -> Array:
    """Divide losses (models by learners, shape (L, L)) by the noise level of the learner in each column.

    So errors of learners with loud and with quiet responses can be compared.
    """
    # A learner without noise has no unit: its column is left empty.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(noise > 0, losses / noise, np.nan)


class LossHeatmapDisplay(Display):
    """Losses of everybody's model on everybody's rows, as colours on a log scale.

    Learners are ordered by cluster and, inside a cluster, as given. Clusters show as blocks of small losses
    on the diagonal. A loss of zero has the colour of the smallest positive one; a loss that is not finite is
    grey. The few most extreme losses have the colour of the scale's end. Beyond 500 learners a cell is the
    typical loss of a block of learners. ``from_estimator`` shows the learners that shaped the clusters, of
    very many a sample.

    Parameters
    ----------
    losses : array-like of shape (L, L)
        Row i is the model of learner i on everybody.
    labels : array-like of shape (L,)
        Cluster of each learner.
    learner_ids : array-like of shape (L,) or None, default=None
        Names of the learners. None: 0 to L - 1.
    noise : array-like of shape (L,) or None, default=None
        Noise level of each learner; where given, losses can be drawn in units of it.

    Attributes
    ----------
    colorbar_ : matplotlib Colorbar
        The scale of the colours.

    Examples
    --------
    >>> from coterie.displays import LossHeatmapDisplay
    >>> display = LossHeatmapDisplay([[1, 9, 2], [9, 1, 9], [2, 9, 1]], labels=[0, 1, 0])
    >>> display.frame()["learner"][:3].tolist()
    [0, 2, 1]
    """

    colorbar_: Any

    # What errors are called; another name where classes are predicted.
    loss_name = "mean squared error"

    def __init__(
        self,
        losses: ArrayLike,
        *,
        labels: ArrayLike,
        learner_ids: ArrayLike | None = None,
        noise: ArrayLike | None = None,
    ) -> None:
        self.losses: Array = np.asarray(losses, dtype=float)
        self.labels: Array = np.asarray(labels, dtype=int)
        self.learner_ids = ids_or_positions(learner_ids, len(self.labels))
        self.noise: Array | None = None if noise is None else np.asarray(noise, dtype=float)
        columns = {"losses": self.losses, "labels": self.labels, "learner_ids": self.learner_ids}
        self._check_lengths(**columns, **({} if self.noise is None else {"noise": self.noise}))
        if self.losses.shape != (len(self.labels), len(self.labels)):
            raise ValueError(
                f"The 'losses' argument of {type(self).__name__} must be square, models by learners. "
                f"Got the shape {self.losses.shape}."
            )

        self._blocks = blocks_of(self.labels)

    @classmethod
    def _of(cls, model: CoterieEstimator) -> Self:
        """Make the display from a fitted model."""
        display = cls.from_partition(
            model.partition_, model.exchange_.aligned_to(model.partition_.learner_ids)
        )
        display.loss_name = loss_name_of(model)
        return display

    @classmethod
    def from_partition(
        cls, partition: Partition, exchange: Exchange | None = None, *, with_noise: bool = True
    ) -> Self:
        """Take the numbers from a partition.

        Parameters
        ----------
        partition : Partition
            Of the learners.
        exchange : Exchange or None, default=None
            The losses that it was made from. None: its dissimilarities are shown.
        with_noise : bool, default=True
            Whether the noise levels of the exchange are known.

        Returns
        -------
        LossHeatmapDisplay
            Ready to be drawn.
        """
        partition, exchange = some_learners(partition, exchange)
        learners: dict[str, Any] = {"labels": partition.labels, "learner_ids": partition.learner_ids}
        if exchange is not None:
            return cls(exchange.losses, noise=exchange.noise if with_noise else None, **learners)
        with np.errstate(divide="ignore"):
            display = cls(np.abs(np.log(np.asarray(partition.similarity))) / partition.scale, **learners)
        display.loss_name = "dissimilarity"
        return display

    def _per_noise(self) -> Array:
        """Return the losses (L, L) divided by the learners' noise levels; refuse if they are not known."""
        if self.noise is None:
            raise ValueError(
                "Losses in units of noise need the learners' noise levels: pass noise= to LossHeatmapDisplay."
            )
        return in_noise(self.losses, self.noise)

    def _cells(self, values: Array) -> Array:
        """Return what is drawn of a matrix (L, L): its entries in the learners' order, or means of blocks."""
        if len(self._blocks) < len(self.labels):
            return block_means(values, self._blocks)
        order = np.concatenate(self._blocks)
        cells: Array = values[np.ix_(order, order)]
        return cells

    @property
    def _row_labels(self) -> Array:
        """Cluster of each row of the picture: that of the first learner of its block."""
        return self.labels[[block[0] for block in self._blocks]]

    def frame(self) -> dict[str, Array]:
        """Return the numbers that are drawn, row by row of the picture.

        Returns
        -------
        dict of str to ndarray
            Columns ``model`` (whose model), ``learner`` (on whose rows), ``model_cluster``,
            ``learner_cluster``, ``loss`` and, where noise levels are known, ``loss_per_noise``: a row per
            cell of the picture.
        """
        ids, labels, n = self.learner_ids, self._row_labels, len(self._blocks)
        names = ids[np.concatenate(self._blocks)]
        if n < len(ids):
            names = np.array([block_name(ids[block].tolist()) for block in self._blocks])
        names = by_reference(names)
        table = {
            "model": np.repeat(names, n),
            "learner": np.tile(names, n),
            "model_cluster": np.repeat(labels, n),
            "learner_cluster": np.tile(labels, n),
            "loss": self._cells(self.losses).ravel(),
        }
        if self.noise is not None:
            table["loss_per_noise"] = self._cells(self._per_noise()).ravel()
        return table

    def plot(self, ax: Any = None, *, per_noise: bool = False, **kwargs: Any) -> Self:
        """Draw the losses.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw. None: a new figure.
        per_noise : bool, default=False
            Divide each loss by the noise level of the learner on whose rows it was measured.
        **kwargs : dict
            For the image, passed to ``Axes.imshow``: ``cmap``, ``vmin``, ``vmax``, ``norm`` and so on.

        Returns
        -------
        LossHeatmapDisplay
            Itself, with ``ax_``, ``figure_`` and ``colorbar_``.
        """
        cells = self._cells(self._per_noise() if per_noise else self.losses)
        ax = self.ax_ = open_axis(ax, self._size())
        self.figure_ = ax.figure
        image = ax.imshow(cells, **self._colours(cells, kwargs))
        self._boundaries(ax, self._row_labels)
        self._axes_of_learners(ax, self.learner_ids[np.concatenate(self._blocks)])
        self.colorbar_ = self._colorbar(image, cells)
        unit = f"{self.loss_name} / noise of the learner" if per_noise else self.loss_name
        self.colorbar_.set_label(unit)
        return self

    def _size(self) -> tuple[float, float]:
        """Return width and height in inches of a figure with room for all learners and their names."""
        n = len(self.labels)
        longest = max(len(display_name(learner)) for learner in self.learner_ids)
        room = 0.065 * longest if n <= MOST_NAMES else 0.2
        side = float(np.clip(1.8 + 0.13 * n, 2.6, 6.0)) + room
        return side + 1.7, side + 0.7

    def _colours(self, cells: Array, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the options of ``Axes.imshow``: a log scale of colours, and what the user chose instead.

        ``cells`` are the losses to draw, for the limits of the scale. Cells that are not finite are
        grey.
        """
        from matplotlib import colormaps
        from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

        fading = LinearSegmentedColormap.from_list("near", [NEAR, "#FFFFFF"])
        options: dict[str, Any] = {"interpolation": "nearest", "cmap": fading, **kwargs}
        options["cmap"] = colormaps.get_cmap(options["cmap"]).with_extremes(bad=NOT_FINITE)
        if options.get("norm") is None:
            positive_limits = colour_limits(cells)
            low, high = positive_limits or (0.0, 1.0)
            low, high = options.pop("vmin", None) or low, options.pop("vmax", None) or high
            # Clipping puts zeros at the lower end of the colours; a log norm alone would leave them out.
            options["norm"] = LogNorm(low, high, clip=True) if positive_limits else Normalize(low, high)
        return options

    def _colorbar(self, image: Any, cells: Array) -> Any:
        """Add the colour bar and return it; pointed ends show that cells (B, B) lie beyond the scale."""
        from matplotlib.colors import LogNorm

        logarithmic = isinstance(image.norm, LogNorm)
        low, high = image.norm.vmin, image.norm.vmax
        extend = {(True, False): "min", (False, True): "max", (True, True): "both"}.get(
            (bool((cells < low).any()), bool((cells[np.isfinite(cells)] > high).any())), "neither"
        )
        colorbar = self.figure_.colorbar(image, ax=self.ax_, extend=extend, shrink=0.9, pad=0.05)
        colorbar.outline.set_visible(False)
        if logarithmic:
            plain_log_ticks(colorbar.ax.yaxis, image.norm.vmin, image.norm.vmax)
        return colorbar

    def _boundaries(self, ax: Any, labels: Array) -> None:
        """Draw lines between clusters, and above and beside the image a band in each cluster's colour.

        ``labels`` has the cluster of each row of the picture, sorted by cluster. Wide enough bands
        are annotated with the cluster's number. Bands are placed in shares of the axis, just outside of it.
        """
        from matplotlib.patches import Rectangle

        n_rows = len(labels)
        clusters, first_rows, sizes = np.unique(labels, return_index=True, return_counts=True)
        for first_row in first_rows[1:].tolist():
            ax.axhline(first_row - 0.5, color="white", linewidth=1.2)
            ax.axvline(first_row - 0.5, color="white", linewidth=1.2)
        for label, first_row, n_in_cluster in zip(
            clusters.tolist(), first_rows.tolist(), sizes.tolist(), strict=True
        ):
            band_options: dict[str, Any] = {
                "facecolor": cluster_colour(label),
                "edgecolor": "white",
                "linewidth": 0.8,
            }
            band_options |= {"clip_on": False, "transform": ax.transAxes}
            left, width = first_row / n_rows, n_in_cluster / n_rows
            # From the top of the picture down, as the rows of the matrix run.
            ax.add_patch(Rectangle((left, 1.008), width, BAND, **band_options))
            ax.add_patch(Rectangle((1.008, 1 - left - width), BAND, width, **band_options))
            if width >= NARROWEST:
                caption = f"cluster {label}" if width >= ROOM_FOR_WORD else str(label)
                text_place: dict[str, Any] = {
                    "xy": (left + width / 2, 1.008 + BAND),
                    "xycoords": "axes fraction",
                }
                text_place |= {
                    "xytext": (0, 2),
                    "textcoords": "offset points",
                    "ha": "center",
                    "va": "bottom",
                }
                ax.annotate(caption, **text_place, color=INK, fontsize="small")

    def _axes_of_learners(self, ax: Any, learners: Array) -> None:
        """Label the axes, models down and rows across, with names of up to `MOST_NAMES` learners."""
        n = len(learners)
        ax.spines[:].set_visible(False)
        ax.set_ylabel("model of")
        ax.set_xlabel("on the rows of")
        if n > MOST_NAMES:
            ax.set_xticks([])
            ax.set_yticks([])
            ax.set_ylabel(f"model of each of {n} learners")
            ax.set_xlabel(f"on the rows of each of {n} learners")
            return
        size = name_rows(ax, learners, min(axis_inches(ax)))
        names = [display_name(learner) for learner in learners]
        ax.set_xticks(range(n), labels=names, rotation=90, fontsize=size, parse_math=False)
        ax.tick_params(length=0, labelcolor=INK)
