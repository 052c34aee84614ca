"""Does it pay? Each learner's error alone, with its coterie and with all, on rows that no model had seen.

The three are measured on the same split of the rows and by models that were fitted on about the same share of
them, so that they can be compared.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.records import Collaboration, Partition, Selection

Array = NDArray[Any]


class Gains(dict[str, Array]):
    """A table as a dict of columns, one entry per learner, as scikit-learn's ``cv_results_`` is.

    ``pandas.DataFrame(gains)`` and ``polars.DataFrame(gains)`` take it as it is; printing shows it.
    """

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
    table = Gains(
        learner=selection.learner_ids,
        cluster=partition.labels,
        model=np.array(selection.names),
        n_rows=selection.n_rows,
    )
    columns = {
        "alone": selection.residuals,
        "coterie": coterie.residuals,
        "all": everybody.residuals,
    }
    for name, residuals in columns.items():
        errors = np.array([error_and_spread(r) for r in residuals])
        table[name], table[f"{name}_se"] = errors[:, 0], errors[:, 1]
    table["gain"] = gain_of(table["alone"], table["coterie"])
    return table


def gain_of(alone: Array, coterie: Array) -> Array:
    """Return 1 - coterie / alone, zero where both are zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        gain = 1 - coterie / alone
    return np.where((alone == 0) & (coterie == 0), 0.0, gain)
