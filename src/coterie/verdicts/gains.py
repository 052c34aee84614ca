"""Does it pay? Each learner's error alone, with its coterie and with all, on rows that no model had seen.

The three are measured on the same split of the rows and by models that were fitted on about the same share of
them, so that they can be compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.loss import SQUARED_ERROR, Loss
from coterie.records import Collaboration, Partition, Selection
from coterie.rows.ids import positions_of
from coterie.rows.learners import Learners, Standardization
from coterie.verdicts.admission import Admission, joined_ids, second_clusters
from coterie.verdicts.bootstrap import Stability
from coterie.verdicts.cluster_fit import ClusterFit
from coterie.verdicts.verdict import BAD_MODEL, FEW_ROWS, decide

# The columns of errors: alone, with the coterie, with all. Each has its standard error beside it, *_se.
ERRORS = ("error_alone", "error_with", "error_all")

# Errors below this share of the noise level are rounding: nothing can be gained on them.
ROUNDING = 1e-6


class Gains(dict[str, Array]):
    """A table as a dict of columns, one entry per learner, as scikit-learn's ``cv_results_`` is.

    ``pandas.DataFrame(gains)`` and ``polars.DataFrame(gains)`` take it as it is; printing shows it.
    """

    def joined(self, other: Gains) -> Gains:
        """Return the rows of this table followed by those of another; what those lack is NaN."""
        unknown = np.full(len(other["learner"]), np.nan)
        joined = {
            name: np.concatenate([self[name], other.get(name, unknown)]) for name in self if name != "learner"
        }
        return Gains(learner=joined_ids(self["learner"], other["learner"]), **joined)

    def of(self, learner_ids: Iterable[Any]) -> Gains:
        """Return the rows of some learners, in the order given."""
        rows = positions_of(learner_ids, self["learner"].tolist())
        return Gains({name: column[rows] for name, column in self.items()})

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


def _counted(residuals: Array, weights: Array | None, loss: Loss) -> tuple[Array, Array]:
    """Return the losses of rows that could be measured, and their weights, scaled to mean one."""
    known = np.isfinite(residuals).all(axis=1)
    losses = loss.by_row(residuals[known])
    share = np.ones(len(losses)) if weights is None else weights[known]
    return losses, share / share.mean() if len(share) else share


def _standard_error(deviations: Array, weights: Array) -> float:
    """Return the standard error of a weighted mean from the deviations from it."""
    n = len(deviations)
    if n < 2:
        return np.nan
    return float(np.sqrt(np.sum((weights * deviations) ** 2) / (n - 1) / n))


def error_and_spread(
    residuals: Array, weights: Array | None = None, loss: Loss = SQUARED_ERROR
) -> tuple[float, float]:
    """Return the mean loss of residuals of shape (n, C) and its standard error; NaN where none is known."""
    losses, share = _counted(residuals, weights, loss)
    if not len(losses):
        return np.nan, np.nan
    mean = float(np.mean(share * losses))
    return mean, _standard_error(losses - mean, share)


def gain_of(alone: Array, coterie: Array, rounding: Array) -> Array:
    """Return 1 - coterie / alone, zero where both errors are no more than rounding of the response."""
    nothing = (alone <= rounding) & (coterie <= rounding)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(nothing, 0.0, 1 - coterie / alone)


def gain_spread(
    alone: Array, coterie: Array, weights: Array | None, rounding: float, loss: Loss = SQUARED_ERROR
) -> float:
    """Return the standard error of the gain, paired over rows, by the delta method."""
    known = (np.isfinite(alone) & np.isfinite(coterie)).all(axis=1)
    weights = None if weights is None else weights[known]
    mine, share = _counted(alone[known], weights, loss)
    theirs, _ = _counted(coterie[known], weights, loss)
    if not len(mine):
        return np.nan
    error_alone, error_coterie = np.mean(share * mine), np.mean(share * theirs)
    if error_alone <= rounding:
        return 0.0 if error_coterie <= rounding else np.nan
    return _standard_error((theirs - error_coterie / error_alone * mine) / error_alone, share)


def _table(
    described: dict[str, Array],
    residuals: Sequence[tuple[Array, ...]],
    learners: Learners,
    units: Standardization | None,
    noise: Array,
    inflation: float,
) -> Gains:
    """Return the columns that describe learners, and the errors and gains that residuals show.

    ``residuals`` has those alone, with the coterie and with all, by learner in the order of the columns.
    """
    table, wider = Gains(described), np.sqrt(inflation)
    order = positions_of(table["learner"].tolist(), learners.ids.tolist())
    weights = [None if learners.weights is None else learners.weights[learners.span(j)] for j in order]
    # The units of newcomers stand behind those of the learners before them.
    unit = np.ones(len(order)) if units is None else units.spread_y[-len(learners) :][order]
    scaled = [[u * part for u, part in zip(unit, parts, strict=True)] for parts in residuals]
    for name, parts in zip(ERRORS, scaled, strict=True):
        weighted = zip(parts, weights, strict=True)
        errors = np.array([error_and_spread(*each, learners.loss) for each in weighted])
        table[name], table[f"{name}_se"] = errors[:, 0], errors[:, 1] * wider
    rounding = ROUNDING * noise * unit**2
    table["gain"] = gain_of(table["error_alone"], table["error_with"], rounding)
    paired = zip(scaled[0], scaled[1], weights, rounding, strict=True)
    spreads = [gain_spread(*each, learners.loss) for each in paired]
    table["gain_se"] = np.array(spreads) * wider
    return table


def measure_gains(
    selection: Selection,
    partition: Partition,
    coterie: Collaboration,
    everybody: Collaboration,
    learners: Learners,
    cluster_fit: ClusterFit,
    stability: Stability | None = None,
    units: Standardization | None = None,
    bad_model: Array | None = None,
) -> Gains:
    """Compare learning alone, with the coterie and with all, and say what to do.

    All records are of the same learners in the same order, but for ``learners``, who hold their rows.
    ``everybody`` is the collaboration with all. With ``units``, where rows were standardised inside each
    learner, errors are in the units of the response. ``bad_model`` (L,) tells whose model disagrees with
    everybody though its data do not.

    Returns
    -------
    Gains
        Columns ``learner``, ``cluster``, ``model``, ``n_rows``; ``error_alone``, ``error_with``,
        ``error_all`` (mean squared errors, held out: alone, with the coterie, with all) with their
        standard errors; ``gain``, the share of the error alone that the coterie saves, and ``gain_se``;
        ``verdict``, ``reason``, ``membership``, ``second_cluster``; what each takes from whom, where
        the collaboration says so.
    """
    labels, taken = partition.labels, coterie.taken
    described = {
        "learner": selection.learner_ids,
        "cluster": labels,
        "model": np.array(selection.names),
        "n_rows": selection.n_rows,
    }
    residuals = selection.residuals, coterie.residuals, everybody.residuals
    table = _table(described, residuals, learners, units, selection.noise, selection.inflation)
    membership = np.full(len(labels), np.nan)
    if stability is not None:
        membership = stability.membership[np.arange(len(labels)), labels]
    by_itself = taken["from_alone"] > 1 - 1e-9 if "from_alone" in taken else False
    table = with_verdicts(table, cluster_fit, membership, bad_model, by_itself)
    table.update(taken)
    return table


def with_verdicts(
    table: Gains,
    cluster_fit: ClusterFit,
    membership: Array,
    bad_model: Array | None = None,
    by_itself: Array | bool = False,
) -> Gains:
    """Add to a table of errors and gains what to do, and how sure it is.

    ``membership`` (L,) says how sure clusters are, NaN where not known; ``bad_model`` (L,) whose model
    disagrees with everybody though its data do not; ``by_itself`` (L,) who predicts by its own model alone,
    because with others it did worse.
    """
    company = np.bincount(table["cluster"])[table["cluster"]] - 1
    fits = np.asarray(cluster_fit.fits.any(axis=1))
    verdicts, reasons = decide(table["gain"], table["gain_se"], company, fits, by_itself)
    if bad_model is not None:
        both = np.array([f"{reason}; {BAD_MODEL}" if reason else BAD_MODEL for reason in reasons.tolist()])
        reasons = np.where(bad_model, both, reasons)
    table["verdict"], table["reason"] = verdicts, reasons
    table["membership"], table["second_cluster"] = membership, cluster_fit.nearest_other
    return table


def newcomer_gains(
    newcomers: Learners,
    own: Selection | None,
    admission: Admission,
    coterie: Collaboration,
    everybody: Collaboration,
    company: Array,
    units: Standardization | None = None,
) -> Gains:
    """Compare the same for newcomers, on whose rows no model of a coterie was fitted.

    ``own`` has their own models, in the same order; None: they have too few rows, and the error alone, the
    gain and its standard error are NaN. ``company`` (K,) counts the learners in each cluster. The columns are
    those of `measure_gains`. Where no cluster fits, the cluster is -1, the error with the coterie is that of
    the nearest one, and the membership is NaN.
    """
    unknown = tuple(np.full((size, newcomers.y.shape[1]), np.nan) for size in newcomers.sizes)
    residuals = [unknown if own is None else own.residuals]
    for collaboration in (coterie, everybody):
        weight_rows = collaboration.newcomer_weight_rows[admission.nearest][newcomers.owner]
        left = newcomers.y - collaboration.predict_columns(newcomers.X, weight_rows)
        residuals.append(tuple(np.split(left, newcomers.offsets[1:-1])))
    return _placed_gains(newcomers, own, admission, residuals, company, units)


def few_gains(
    small: Learners,
    admission: Admission,
    residuals: tuple[tuple[Array, ...], tuple[Array, ...]],
    company: Array,
    units: Standardization | None = None,
) -> Gains:
    """Return the same for learners whose few rows were pooled with the others'.

    ``residuals`` has their honest residuals with others, and under what all learners share.
    """
    unknown = tuple(np.full((size, small.y.shape[1]), np.nan) for size in small.sizes)
    return _placed_gains(small, None, admission, [unknown, *residuals], company, units)


def _placed_gains(
    newcomers: Learners,
    own: Selection | None,
    admission: Admission,
    residuals: Sequence[tuple[Array, ...]],
    company: Array,
    units: Standardization | None,
) -> Gains:
    """Return the table of learners that were placed when the clusters were known."""
    n = len(newcomers)
    described = {
        "learner": newcomers.ids,
        "cluster": admission.labels,
        "model": np.array([""] * n if own is None else own.names),
        "n_rows": newcomers.sizes,
    }
    noise = np.zeros(n) if own is None else own.noise
    inflation = 1.0 if own is None else own.inflation
    table = _table(described, residuals, newcomers, units, noise, inflation)
    fits = admission.labels >= 0
    # Who joins no cluster gains nothing by the nearest one.
    gain = np.where(fits, table["gain"], 0.0)
    table["verdict"], reasons = decide(gain, table["gain_se"], company[admission.nearest], fits)
    table["reason"] = reasons if own is not None else np.full(n, FEW_ROWS)
    nearest = admission.probabilities[np.arange(n), admission.nearest]
    table["membership"] = np.where(fits, nearest, np.nan)
    table["second_cluster"] = second_clusters(admission)
    return table
