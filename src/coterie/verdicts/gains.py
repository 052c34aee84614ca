"""Does it pay? Each learner's error alone, with others and with all, on rows that no model had seen.

Clusters, models and weights are made without the rows that judge them. The error alone is that of a model of
all the learner's rows (`learning`); gains and verdicts come from a model across learners (`gain_model`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested import NestedForm
from coterie.loss import SQUARED_ERROR, Loss
from coterie.records import Collaboration, OwnResiduals, Partition, Selection, share_of_rows
from coterie.rows.ids import positions_of
from coterie.rows.learners import Learners, Standardization
from coterie.verdicts.admission import Admission, second_clusters
from coterie.verdicts.bootstrap import Stability
from coterie.verdicts.cluster_fit import ClusterFit
from coterie.verdicts.gain_model import ExpectedGains, GainModel, expect_gains
from coterie.verdicts.learning import ComparedErrors, compare, decay_of, reached_with_all
from coterie.verdicts.table import Gains
from coterie.verdicts.verdict import (
    BY_ITSELF,
    FEW_ROWS,
    NO_COMPANY,
    NO_DIFFERENCE,
    NO_ERROR,
    NOBODY_ELSE,
    ONE_CLASS,
    OUTSIDE,
    STAY_ALONE,
    TOO_FEW_ROWS,
    judge,
    reason_for,
    with_remarks,
)

# The columns of errors: alone, with the coterie, with all. Each has its standard error beside it, *_se.
ERRORS = ("error_alone", "error_with", "error_all")
# The columns of what others are expected to save.
GAINS = ("gain", "gain_se", "gain_low", "gain_high")

# Errors below this share of the noise level are rounding: nothing can be gained on them.
ROUNDING = 1e-6


def _counted(residuals: Array, weights: Array | None, loss: Loss) -> tuple[Array, Array]:
    """Return the losses (m,) of the m rows of ``residuals`` (n, C) that are finite, and their weights (m,).

    Weights are scaled to the mean one, so that a weighted loss is in the units of a plain one.
    """
    held_out = np.isfinite(residuals).all(axis=1)
    losses = loss.by_row(residuals[held_out])
    row_weights = np.ones(len(losses)) if weights is None else weights[held_out]
    return losses, row_weights / row_weights.mean() if len(row_weights) else row_weights


def _standard_error(deviations: Array, weights: Array) -> float:
    """Return the standard error of a weighted mean from the n deviations from it; NaN for fewer than two."""
    n = len(deviations)
    if n < 2:
        return np.nan
    return float(np.sqrt(np.sum((weights * deviations) ** 2) / (n - 1) / n))


def error_and_spread(
    residuals: Array, weights: Array | None = None, loss: Loss = SQUARED_ERROR
) -> tuple[float, float]:
    """Return the weighted mean loss of residuals (n, C) and its standard error; NaN where none is finite."""
    losses, row_weights = _counted(residuals, weights, loss)
    if not len(losses):
        return np.nan, np.nan
    mean = float(np.mean(row_weights * losses))
    return mean, _standard_error(losses - mean, row_weights)


def _errors(
    described: dict[str, Array],
    residuals: Sequence[tuple[Array, ...]],
    learners: Learners,
    units: Standardization | None,
    inflation: float,
) -> Gains:
    """Return the table of ``described`` columns with each learner's errors and their standard errors.

    ``residuals`` has three tuples, alone, with others and with all, with an array (n_j, C) for each learner
    in the order of the columns. Standard errors are wider by the square root of ``inflation``, for rows that
    depend on each other. With ``units`` errors are in the units of the response.
    """
    table, inflation_of_error = Gains(described), np.sqrt(inflation)
    order = positions_of(table["learner"].tolist(), learners.ids.tolist())
    weights = _weights(learners, order)
    # The units of newcomers stand behind those of the learners before them.
    unit_of_y = np.ones(len(order)) if units is None else units.spread_y[-len(learners) :][order]
    for name, of_learners in zip(ERRORS, residuals, strict=True):
        in_units_of_y = (unit * part for unit, part in zip(unit_of_y, of_learners, strict=True))
        errors_and_spreads = np.array(
            [error_and_spread(part, w, learners.loss) for part, w in zip(in_units_of_y, weights, strict=True)]
        )
        table[name], table[f"{name}_se"] = (
            errors_and_spreads[:, 0],
            errors_and_spreads[:, 1] * inflation_of_error,
        )
    return table


def _weights(learners: Learners, order: Array) -> list[Array | None]:
    """Return the weights (n_j,) of the rows of learners at some positions; None for rows that count alike."""
    return [None if learners.weights is None else learners.weights[learners.span(j)] for j in order]


def _with_expected(table: Gains, expected: ExpectedGains, measured: Array) -> None:
    """Add the columns of gains to ``table``, which is changed; NaN for learners not ``measured`` (L,).

    ``expected`` has log ratios of the error alone to that with others, of the measured learners only. A gain
    is the share of the error alone that others save: one minus exp of minus the log ratio.
    """
    columns = {
        "gain": 1 - np.exp(-expected.mean),
        "gain_se": np.exp(-expected.mean) * expected.spread,
        "gain_low": 1 - np.exp(-expected.low),
        "gain_high": 1 - np.exp(-expected.high),
    }
    for name, of_measured in columns.items():
        table[name] = np.full(len(measured), np.nan)
        table[name][measured] = of_measured


def of_one_class(learners: Learners) -> Array:
    """Tell which learners' rows have one class, of shape (L,); responses in numbers have none."""
    if learners.loss.bounds is None:
        return np.zeros(len(learners), dtype=bool)
    spans = (learners.y[learners.span(j)] for j in range(len(learners)))
    return np.array([bool((rows == rows[0]).all()) for rows in spans])


def _own_weights(coterie: Collaboration, labels: Array, n_rows: Array) -> Array:
    """Return the weight (L,) of each learner's own model in what it predicts with others, from 0 to 1.

    ``labels`` (L,) are clusters and ``n_rows`` (L,) numbers of rows. A nested collaboration says the weight;
    in an average it is the share of the cluster's rows, and a pooled model of one learner is its own. With
    weight one, nothing can be gained from others.
    """
    if "from_alone" in coterie.taken:
        return coterie.taken["from_alone"]
    if coterie.method == "average":
        return np.asarray(n_rows / np.bincount(labels, n_rows)[labels], dtype=float)
    only_own = coterie.method == "local" or (coterie.method == "pooled" and np.bincount(labels)[labels] == 1)
    return np.where(only_own, np.ones(len(labels)), 0.0)


def measure_gains(
    selection: Selection,
    own_models: OwnResiduals,
    partition: Partition,
    coterie: Collaboration,
    with_all: Collaboration,
    learners: Learners,
    cluster_fit: ClusterFit,
    stability: Stability | None = None,
    units: Standardization | None = None,
    bad_model: Array | None = None,
) -> tuple[Gains, GainModel]:
    """Compare learning alone, with others and with all, and say what to do.

    All records are of the same learners in the same order, but for ``learners``, who hold their rows.
    ``with_all`` is the collaboration with all. With ``units``, where rows were standardised inside each
    learner, errors are in the units of the response. ``bad_model`` (L,) tells whose model disagrees with
    everybody though its data do not.

    Returns
    -------
    gains : Gains
        Columns ``learner``, ``cluster``, ``model``, ``n_rows``; ``error_alone``, ``error_with``,
        ``error_all`` (mean squared errors, held out: alone with all rows, with others, with all) with their
        standard errors; ``gain``, the share of the error alone that others are expected to save, its
        standard error ``gain_se`` and its interval ``gain_low`` to ``gain_high``; ``verdict``, ``reason``;
        ``fits``, whether some cluster of others describes the learner's data; ``membership``,
        ``second_cluster``; what each takes from whom, where the collaboration says so.
    model : GainModel
        The model across learners, by which newcomers are judged.
    """
    labels, taken = partition.labels, dict(coterie.taken)
    described = {
        "learner": selection.learner_ids,
        "cluster": labels,
        "model": np.array(selection.names),
        "n_rows": selection.n_rows,
    }
    residuals = own_models.residuals, coterie.residuals, with_all.residuals
    table = _errors(described, residuals, learners, units, selection.inflation)
    order = positions_of(selection.learner_ids.tolist(), learners.ids.tolist())
    rounding = ROUNDING * selection.noise
    one_class = of_one_class(learners)[order]

    def comparable(residuals: tuple[Array, ...]) -> list[Array]:
        """Return the residuals, NaN for learners with rows of one class only."""
        # Who has one class has never been wrong alone, which says nothing of rows of another class.
        pairs = zip(residuals, one_class, strict=True)
        return [np.full_like(part, np.nan) if same else part for part, same in pairs]

    early, late = comparable(selection.residuals), comparable(own_models.residuals)
    comparisons = LearnerComparisons(
        *compare(
            early=early,
            own_residuals=late,
            others=comparable(coterie.residuals),
            weights=_weights(learners, order),
            loss=learners.loss,
            rounding=rounding,
        ),
        shares=(share_of_rows(selection), own_models.share),
        inflation=selection.inflation,
        own=_own_weights(coterie, labels, selection.n_rows),
        by_others=coterie.method == "auto",
        bounded=isinstance(coterie, NestedForm) and coterie.of_averages,
        one_class=one_class,
    )
    table["membership"] = np.full(len(labels), np.nan)
    if stability is not None:
        table["membership"] = stability.membership[np.arange(len(labels)), labels]
    model = add_gains(table, comparisons, cluster_fit, bad_model)
    table.update(_used(taken, table["verdict"]))
    return table, model


@dataclass(frozen=True)
class LearnerComparisons:
    """What is known of L learners' errors, from rows that are here or from what sites answered.

    ``compared`` are those who could be compared, who are ``measured`` (L,); those who are ``exact`` (L,) have
    no error. Models behind the errors have seen two ``shares`` of the rows. ``inflation`` is the factor for
    rows that depend on each other, ``own`` (L,) the weight of the own model in what is predicted with others,
    and ``by_others`` tells whether more than the own cluster takes part in that. Where they are ``bounded``,
    no learner counts for more than a multiple of what is typical. Learners whose rows have ``one_class`` (L,)
    cannot be compared; None: nobody is known to be one of them.
    """

    compared: ComparedErrors
    measured: Array
    exact: Array
    shares: tuple[float, float]
    inflation: float | Array
    own: Array
    by_others: bool
    bounded: bool = False
    one_class: Array | None = None

    @property
    def inflation_of_measured(self) -> float | Array:
        """The factor of those who could be compared."""
        return self.inflation[self.measured] if isinstance(self.inflation, np.ndarray) else self.inflation


def add_gains(
    table: Gains, found: LearnerComparisons, cluster_fit: ClusterFit, bad_model: Array | None = None
) -> GainModel:
    """Add gains and verdicts to a ``table`` of L learners, which is changed; return the model behind them.

    The table has errors of models fitted on a share of the rows, and the column "membership", which moves
    behind. Errors are first brought to what models of all rows would reach. The gain model then says from
    everybody's evidence what each may expect.
    """
    compared, measured, exact, own_weights = found.compared, found.measured, found.exact, found.own
    if found.bounded:
        compared = compared.within_reach()
    labels, share, membership = table["cluster"], found.shares[1], table.pop("membership")
    decay = decay_of(compared, found.shares)
    by_itself = own_weights > 1 - 1e-9
    ratio_alone = reached_with_all(table["n_rows"], share, decay)
    # The part of a prediction with others that is the own model's becomes better with all rows, too.
    ratio_with = 1 - own_weights * own_weights * (1 - ratio_alone)
    for name, ratio in (("error_alone", ratio_alone), ("error_with", ratio_with)):
        for column in (name, f"{name}_se"):
            table[column] = table[column] * ratio
    for ending in ("", "_se"):
        # Who is by itself predicts with others as it does alone, wherever the folds had put it.
        table[f"error_with{ending}"][by_itself] = table[f"error_alone{ending}"][by_itself]
    change_of_log_ratio = (np.log(ratio_alone) - np.log(ratio_with))[measured]
    log_ratios = np.log(compared.own / compared.others) + change_of_log_ratio
    standard_errors = compared.errors(share, found.inflation_of_measured, compared.typical)
    with_others = ~by_itself[measured]
    fits = np.asarray(cluster_fit.fits.any(axis=1))
    expected, model = expect_gains(
        ratios=log_ratios[with_others],
        errors=standard_errors[with_others],
        relative_distances=compared.relative_distances[with_others],
        n_rows=compared.n_rows[with_others],
        fits=fits[measured][with_others],
        harm=change_of_log_ratio[with_others],
        decay=decay,
        variance=compared.typical,
    )
    measured = measured & ~by_itself
    _with_expected(table, expected, measured)
    for column in GAINS:
        table[column][by_itself | exact] = 0.0
    n_companions = np.bincount(labels)[labels] - 1
    # The first case that holds decides.
    cases = [
        (np.full(len(labels), len(labels) == 1), STAY_ALONE, NOBODY_ELSE),
        (by_itself & (n_companions == 0) & (not found.by_others), NO_DIFFERENCE, NO_COMPANY),
        (by_itself, NO_DIFFERENCE, BY_ITSELF),
        (exact, NO_DIFFERENCE, NO_ERROR),
    ]
    if found.one_class is not None:
        cases.append((found.one_class, NO_DIFFERENCE, ONE_CLASS))
        fits = fits | found.one_class
    table["verdict"], table["reason"] = _verdicts_and_reasons(
        gain=table["gain"],
        expected=expected,
        # A loss by more than one standard error on the learner's own rows.
        surely_lost=log_ratios[with_others] < -standard_errors[with_others],
        measured=measured,
        cases=cases,
    )
    table["reason"] = with_remarks(table["reason"], fits | (len(labels) == 1), bad_model)
    table["fits"], table["membership"] = fits, membership
    table["second_cluster"] = cluster_fit.nearest_other
    return model


def _verdicts_and_reasons(
    gain: Array,
    expected: ExpectedGains,
    surely_lost: Array,
    measured: Array,
    cases: list[tuple[Array, str, str]],
) -> tuple[Array, Array]:
    """Return the verdicts and reasons of L learners, as texts (L,).

    Each of the ``cases`` has a mask (L,), a verdict and a reason; the first that holds decides. Of the others
    the ``measured`` (L,) are judged by what is ``expected`` of them, in their order; the rest have too few
    rows. ``surely_lost`` tells which of the measured show a loss on their own rows.
    """
    verdicts, reasons = np.full(len(gain), TOO_FEW_ROWS, dtype=object), np.full(len(gain), FEW_ROWS, object)
    verdicts[measured] = judge(expected, surely_lost)
    for j in np.flatnonzero(measured):
        reasons[j] = reason_for(verdicts[j], float(gain[j]))
    # From the last to the first, so that the first case that holds is written last.
    for holds, verdict, reason in reversed(cases):
        verdicts[holds], reasons[holds] = verdict, reason
    return verdicts.astype(str), reasons.astype(str)


def _used(taken: dict[str, Array], verdicts: Array) -> dict[str, Array]:
    """Return the shares (L,) of each source in what learners predict with, by source.

    ``taken`` has the shares by source under collaboration. Those whose verdict is to stay alone predict with
    their own model: "from_alone" is one, all others zero.
    """
    stays_alone = verdicts == STAY_ALONE
    return {name: np.where(stays_alone, float(name == "from_alone"), share) for name, share in taken.items()}


def newcomer_gains(
    newcomers: Learners,
    own: Selection | None,
    admission: Admission,
    coterie: Collaboration,
    with_all: Collaboration,
    model: GainModel,
    units: Standardization | None = None,
) -> Gains:
    """Return the table of gains of newcomers, on whose rows no model of a coterie was fitted.

    ``own`` has their own models, in the same order; None: they have too few rows, and the error alone and the
    gain are NaN. ``model`` is that of the learners who were there before. The columns are those of
    `measure_gains`. Where no cluster fits, the cluster is -1, the error with others is that of the nearest
    one, and the membership is NaN.
    """
    unknown = tuple(np.full((size, newcomers.y.shape[1]), np.nan) for size in newcomers.sizes)
    residuals = [unknown if own is None else own.residuals]
    for collaboration in (coterie, with_all):
        weight_rows = collaboration.newcomer_weight_rows[admission.nearest][newcomers.owner]
        shared_residuals = newcomers.y - collaboration.predict_columns(newcomers.X, weight_rows)
        residuals.append(tuple(np.split(shared_residuals, newcomers.offsets[1:-1])))
    return _placed_gains(newcomers, own, admission, residuals, model, units)


def few_gains(
    small: Learners,
    admission: Admission,
    residuals: tuple[tuple[Array, ...], tuple[Array, ...]],
    units: Standardization | None = None,
) -> Gains:
    """Return the table of gains of learners whose few rows were pooled with the others'.

    They have no model of their own, so the error alone and the gain are NaN. ``residuals`` has out-of-fold
    residuals (n_j, C) of each learner with others, and under the model that all learners share.
    """
    unknown = tuple(np.full((size, small.y.shape[1]), np.nan) for size in small.sizes)
    return _placed_gains(small, None, admission, [unknown, *residuals], None, units)


def _placed_gains(
    newcomers: Learners,
    own: Selection | None,
    admission: Admission,
    residuals: Sequence[tuple[Array, ...]],
    model: GainModel | None,
    units: Standardization | None,
) -> Gains:
    """Return the table of gains of M learners that were placed when the clusters were known.

    ``residuals`` has three tuples, alone, with others and with all. ``own`` and ``model`` are None where
    newcomers have no models; nothing is compared then, and the verdict is that there are too few rows.
    """
    n = len(newcomers)
    described = {
        "learner": newcomers.ids,
        "cluster": admission.labels,
        "model": np.array([""] * n if own is None else own.names),
        "n_rows": newcomers.sizes,
    }
    table = _errors(described, residuals, newcomers, units, 1.0 if own is None else own.inflation)
    fits, measured = admission.labels >= 0, np.zeros(n, dtype=bool)
    verdicts, reasons = np.full(n, TOO_FEW_ROWS, dtype=object), np.full(n, FEW_ROWS, dtype=object)
    of_nobody = ExpectedGains(*(np.zeros(0) for _ in range(6)))
    if own is None or model is None:
        _with_expected(table, of_nobody, measured)
    else:
        # Who is admitted beside whom makes no difference: what the others' rows tell is in the model.
        share = np.array([training.mean() for training in own.training])
        weights, residuals_alone = _weights(newcomers, np.arange(n)), residuals[0]
        compared, measured, exact = compare(
            early=residuals_alone,
            own_residuals=residuals_alone,
            others=residuals[1],
            weights=weights,
            loss=newcomers.loss,
            rounding=ROUNDING * own.noise,
        )
        ratio_alone = reached_with_all(newcomers.sizes, share, model.decay)
        for name in ("error_alone", "error_alone_se"):
            table[name] = table[name] * ratio_alone
        change_of_log_ratio = np.log(ratio_alone)[measured]
        log_ratios = np.log(compared.own / compared.others) + change_of_log_ratio
        standard_errors = compared.errors(share[measured], own.inflation, model.variance)
        expected = model.expect(
            ratios=log_ratios,
            errors=standard_errors,
            relative_distances=compared.relative_distances,
            n_rows=compared.n_rows,
            harm=change_of_log_ratio,
        )
        _with_expected(table, expected, measured)
        verdicts[exact], reasons[exact] = NO_DIFFERENCE, NO_ERROR
        for column in GAINS:
            table[column][exact] = 0.0
        verdicts[measured] = judge(expected, surely_lost=log_ratios < -standard_errors)
        for j in np.flatnonzero(measured):
            reasons[j] = reason_for(verdicts[j], float(table["gain"][j]))
        # Who joins no cluster predicts alone, whatever the nearest one would bring.
        verdicts[~fits], reasons[~fits] = STAY_ALONE, OUTSIDE
        for column in GAINS:
            table[column][~fits] = np.nan
    table["verdict"], table["reason"] = verdicts.astype(str), reasons.astype(str)
    probability_of_nearest = admission.probabilities[np.arange(n), admission.nearest]
    table["fits"] = fits
    # A single row cannot be resampled.
    table["membership"] = np.where(fits & (newcomers.sizes > 1), probability_of_nearest, np.nan)
    table["second_cluster"] = second_clusters(admission)
    return table
