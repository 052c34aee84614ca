"""Does it pay? Each learner's error alone, with its coterie and with all, on rows that no model had seen.

The three are measured on the same split of the rows and by models that were fitted on about the same share of
them, so that they can be compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie._rows import Learners
from coterie.records import Collaboration, Partition, Selection

Array = NDArray[Any]


# Errors below this share of the noise level are rounding: nothing can be gained on them.
ROUNDING = 1e-6


class Gains(dict[str, Array]):
    """A table as a dict of columns, one entry per learner, as scikit-learn's ``cv_results_`` is.

    ``pandas.DataFrame(gains)`` and ``polars.DataFrame(gains)`` take it as it is; printing shows it.
    """

    def joined(self, other: Gains) -> Gains:
        """Return the rows of this table followed by those of another."""
        joined = {name: np.concatenate([self[name], other[name]]) for name in self}
        ids = [*self["learner"].tolist(), *other["learner"].tolist()]
        if len({type(learner) for learner in ids}) > 1:
            # Numbers beside text would become text, and their owners strangers.
            joined["learner"] = np.array([*ids, None], dtype=object)[:-1]
        return Gains(joined)

    def __str__(self) -> str:
        columns = [[name, *(_cell(value) for value in values)] for name, values in self.items()]
        widths = [max(len(cell) for cell in column) for column in columns]
        lines = (
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
            for row in zip(*columns, strict=True)
        )
        return "\n".join(lines)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def error_and_spread(residuals: Array) -> tuple[float, float]:
    """Return the mean squared residual and its standard error; NaN where there is nothing to measure."""
    squares = residuals[np.isfinite(residuals)] ** 2
    if not len(squares):
        return np.nan, np.nan
    spread = squares.std(ddof=1) / np.sqrt(len(squares)) if len(squares) > 1 else np.nan
    return float(squares.mean()), float(spread)


def gain_of(alone: Array, coterie: Array, rounding: Array) -> Array:
    """Return 1 - coterie / alone, zero where both errors are no more than rounding of the response."""
    nothing = (alone <= rounding) & (coterie <= rounding)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(nothing, 0.0, 1 - coterie / alone)


def _table(
    learners: Array,
    labels: Array,
    names: Array,
    n_rows: Array,
    noise: Array,
    columns: dict[str, tuple[Array, ...]],
) -> Gains:
    table = Gains(learner=learners, cluster=labels, model=names, n_rows=n_rows)
    for name, residuals in columns.items():
        errors = np.array([error_and_spread(r) for r in residuals])
        table[name], table[f"{name}_se"] = errors[:, 0], errors[:, 1]
    table["gain"] = gain_of(table["alone"], table["coterie"], ROUNDING * noise)
    return table


def measure_gains(
    selection: Selection, partition: Partition, coterie: Collaboration, everybody: Collaboration
) -> Gains:
    """Compare learning alone, with the coterie and with all.

    Parameters
    ----------
    selection : Selection
        Each learner's own model.
    partition : Partition
        Of the same learners.
    coterie : Collaboration
        Within the clusters.
    everybody : Collaboration
        With all learners.

    Returns
    -------
    Gains
        Columns ``learner``, ``cluster``, ``model``, ``n_rows``; ``alone``, ``coterie``, ``all`` (mean
        squared errors, held out) with their standard errors; ``gain``, the share of the error alone
        that the coterie saves.
    """
    columns = {"alone": selection.residuals, "coterie": coterie.residuals, "all": everybody.residuals}
    return _table(
        selection.learner_ids,
        partition.labels,
        np.array(selection.names),
        selection.n_rows,
        selection.noise,
        columns,
    )


def newcomer_gains(
    newcomers: Learners,
    own: Selection | None,
    labels: Array,
    coterie: Collaboration,
    everybody: Collaboration,
) -> Gains:
    """Compare the same for newcomers, on whose rows no model of a coterie was fitted.

    Parameters
    ----------
    newcomers : Learners
        Their rows.
    own : Selection or None
        Their own models, in the same order; None: they have too few rows for one.
    labels : ndarray of shape (M,)
        The cluster of each.
    coterie : Collaboration
        Within the clusters.
    everybody : Collaboration
        With all learners.

    Returns
    -------
    Gains
        The columns of `measure_gains`; the error alone is NaN where there is no model.
    """
    nothing = tuple(np.empty(0) for _ in labels)
    columns = {"alone": nothing if own is None else own.residuals}
    for name, together in (("coterie", coterie), ("all", everybody)):
        ways = together.newcomer_ways[labels][newcomers.owner]
        residuals = newcomers.y - together.predict(newcomers.X, ways)
        columns[name] = tuple(np.split(residuals, newcomers.offsets[1:-1]))
    names = np.array([""] * len(labels) if own is None else own.names)
    noise = np.zeros(len(labels)) if own is None else own.noise
    return _table(newcomers.ids, labels, names, newcomers.sizes, noise, columns)
