"""What a site learns from its own rows and everybody's moments; nothing of it is sent.

Its dictionary: its own model, and lines at every resolution. A line is fitted on the moments of the others of
a cluster and on the site's own, which count more than the others' by several factors: that moves the pooled
line by an offset and by slopes, as far as the own rows call for it. Weights are learnt out of fold: neither
the site's message nor the held-out rows are part of a line, and the site picks its clusters without them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from coterie._arrays import Array
from coterie._seeds import generator_for, integer_seed
from coterie.collaboration.nested.families import ModelFit, fit_or_replace
from coterie.collaboration.nested.folds import Folds
from coterie.collaboration.nested.guard import guarded, widened
from coterie.collaboration.nested.own import folds_of
from coterie.collaboration.nested.weights import simplex_weights
from coterie.federated.messages import ProtocolError
from coterie.federated.moments.conclude import Pooled
from coterie.federated.moments.pool import Pool, PoolUnits, fit_lines, losses_of
from coterie.federated.moments.schema import schema_from
from coterie.federated.moments.site import Knots, bent, bounded_rows
from coterie.federated.peers import Site
from coterie.method.fitting import quiet_fits
from coterie.records import share_of_rows
from coterie.verdicts.gain_model import ExpectedGains, fit_gain_model
from coterie.verdicts.gains import ROUNDING, error_and_spread
from coterie.verdicts.learning import compare, decay_of, reached_with_all
from coterie.verdicts.verdict import BY_ITSELF, NO_COMPANY, NO_DIFFERENCE, STAY_ALONE, judge, reason_for

# How much a row of others counts beside one of the site's own in a fit: a line is fitted for each of these.
ROW_WEIGHTS_OF_OTHERS = (1.0, 0.1, 0.01)
# Many, so that the own model is judged by nearly all rows; the site has time.
N_FOLDS = 10
# Pseudo-rows, at the error of the best member, under which all members are as good and err by themselves: a
# site has few rows to tell ten members or twenty from each other. Without them, real tables were up to 15 %
# worse; from ten to a hundred they are much alike. Under noise members are not alike: there are none then.
PSEUDO_ROWS = 30.0


@dataclass(frozen=True)
class SiteModel:
    """What a site learns from its own rows: how it predicts, and whether that pays.

    ``weights`` (1 + M,) are of its own model and of the ``lines``. Errors are mean squared errors out
    of fold; ``gain`` is the share of the error alone that others are expected to save, ``gain_low`` and
    ``gain_high`` its interval; None where it could not be measured.
    """

    site: str
    verdict: str
    reason: str
    error_alone: float
    error_with: float
    gain: float | None
    gain_low: float | None
    gain_high: float | None
    model: Any = field(repr=False)
    weights: Array
    lines: PooledLines = field(repr=False)

    @property
    def own(self) -> float:
        """How much of a prediction is the own model's."""
        return float(self.weights[0])

    def predict_own(self, X: Any) -> Array:
        """Predict rows (n, p) with the site's own model, within the bounds of its response, of shape (n,)."""
        return guarded(self.model, np.asarray(X, dtype=float), self.lines.bounds)

    def predict(self, X: Any) -> Array:
        """Predict rows (n, p) of the site by a weighted sum of its own model and the lines, of shape (n,)."""
        predictions: Array = self.weights @ np.vstack([self.predict_own(X), self.lines.predict(X)])
        return predictions


def _own_rows(site: Site, units: PoolUnits, schema: bytes, knots: Knots) -> Array:
    """Return the site's rows (1, x, y) in the units of the pool, of shape (n, q).

    With a schema they are also scaled to bounded length, as in the private message; ``knots`` add columns.
    The moments of a fold are Z'Z of its rows Z in this form.
    """
    X, y = bent(site.learners.X, knots), site.learners.scalar_y
    if schema:
        return bounded_rows(X, y, schema_from(schema))
    return np.column_stack([units.rows(X), (y - units.middle[-1]) / units.half[-1]])


def _fitted(resolutions: list[list[tuple[Array, float]]], own_moments: Array) -> Array:
    """Return least-squares lines (M, p + 1) on the site's moments and weighted ones of its nearest cluster.

    ``resolutions`` has, for each number of clusters, each cluster's summed moments (q, q) and their noise.
    The nearest cluster is that whose line has the least loss on ``own_moments`` (q, q). Each resolution gives
    a line for each of `ROW_WEIGHTS_OF_OTHERS`.
    """
    lines = []
    for clusters in resolutions:
        # The site picks its nearest cluster by its own moments, wherever the conclusion put it.
        cluster_lines = np.array([fit_lines(moments, noise) for moments, noise in clusters])
        moments, noise = clusters[int(losses_of(cluster_lines, own_moments[None])[:, 0].argmin())]
        lines += [
            fit_lines(row_weight * moments + own_moments, row_weight * noise)
            for row_weight in ROW_WEIGHTS_OF_OTHERS
        ]
    return np.array(lines).reshape(-1, len(own_moments) - 1)


@dataclass(frozen=True)
class _Lines:
    """Lines in one pool's units, which may bend at knots."""

    coefficients: Array
    units: PoolUnits
    knots: Knots

    def predict(self, X: Any) -> Array:
        """Return predictions of rows (n, p), of shape (M, n)."""
        return self.units.predictions(self.coefficients, bent(X, self.knots))


@dataclass(frozen=True)
class PooledLines:
    """Members of a site's dictionary: lines at every resolution, moved towards its own rows.

    ``out_of_fold`` (n, M) are their predictions of the site's rows, NaN where no fold held a row out.
    ``parts`` are the lines, and those that bend, from all rows. Predictions are kept within ``bounds`` (2,).
    """

    out_of_fold: Array = field(repr=False)
    parts: tuple[_Lines, ...] = field(repr=False)
    bounds: Array

    def __len__(self) -> int:
        return int(self.out_of_fold.shape[1])

    def predict(self, X: Any) -> Array:
        """Return the lines' predictions of rows (n, p), of shape (M, n)."""
        predictions: Array = np.clip(np.vstack([part.predict(X) for part in self.parts]), *self.bounds)
        return predictions


def pooled_lines(site: Site, pooled: Pooled, folds: Array, schema: bytes = b"") -> PooledLines:
    """Return the members that everybody's moments add to a site's dictionary.

    Parameters
    ----------
    site : Site
        The site, with the rows that its message was made of.
    pooled : Pooled
        From `conclude_moments`.
    folds : ndarray of shape (n,)
        Which fold holds each row out; -1 where none does.
    schema : bytes, default=b""
        The schema of the site's message.

    Returns
    -------
    PooledLines
        There are none where no cluster of the site has other members.
    """
    y = site.learners.scalar_y
    if len(pooled.pool.units.middle) != site.learners.n_features + 1:
        raise ProtocolError(f"The rows of {site.name!r} have other columns than its moments.")
    results_by_pool = [_of_pool(site, pooled, pooled.pool, (), folds, schema)]
    if pooled.bends is not None:
        results_by_pool.append(_of_pool(site, pooled, pooled.bends, pooled.knots, folds, schema))
    out_of_fold, parts = zip(*results_by_pool, strict=True)
    return PooledLines(np.hstack(out_of_fold), parts, np.array(widened(y)))


def _of_pool(
    site: Site, pooled: Pooled, pool: Pool, knots: Knots, folds: Array, schema: bytes
) -> tuple[Array, _Lines]:
    """Return the out-of-fold predictions (n, M) of the lines of a pool, and the lines from all rows.

    For a held-out fold, the site's own moments are those of its other rows, and the others' moments are
    without the site's message. So no line has seen the rows that it predicts; rows in no fold stay NaN.
    """
    # For each resolution, a number of clusters, the clusters' summed moments without this site's.
    others, X, y = pooled.others(site.name, pool), site.learners.X, site.learners.scalar_y
    rows = _own_rows(site, pool.units, schema, knots)
    out_of_fold = np.full((len(y), len(others) * len(ROW_WEIGHTS_OF_OTHERS)), np.nan)
    for fold in np.unique(folds[folds >= 0]):
        validation, training = folds == fold, folds != fold
        lines = _Lines(_fitted(others, rows[training].T @ rows[training]), pool.units, knots)
        out_of_fold[validation] = np.clip(lines.predict(X[validation]), *widened(y[training])).T
    return out_of_fold, _Lines(_fitted(others, rows.T @ rows), pool.units, knots)


def _evened(grams: Array, n_rows: Array) -> Array:
    """Return matrices R'R of residuals R (n, C) with a ridge, which pulls weights towards equal ones.

    ``grams`` (..., C, C) belong to C members and ``n_rows`` (...) rows. The ridge is the error of the best
    member times `PSEUDO_ROWS`.
    """
    least_error = np.diagonal(grams, axis1=-2, axis2=-1).min(axis=-1) / n_rows
    regularised: Array = grams + PSEUDO_ROWS * least_error[..., None, None] * np.eye(grams.shape[-1])
    return regularised


def _own_out_of_fold(site: Site, folds: Folds) -> Array:
    """Return the residuals (n, 1) of the site's own model out of fold; NaN where no fold held a row out.

    The model that the site selected is fitted again without each fold.
    """
    learners, model = site.learners, site.selection.models[0]
    X, y = learners.X, learners.scalar_y
    seed = integer_seed(generator_for(site.seed, site.name))
    residuals = np.full((len(y), 1), np.nan)
    with quiet_fits():
        for fold, is_training in enumerate(folds.training):
            held_out = folds.held_out == fold
            fitted = fit_or_replace(ModelFit(clone(model), X[is_training], y[is_training], None, seed, model))
            residuals[held_out, 0] = y[held_out] - guarded(
                fitted, X[held_out], np.array(widened(y[is_training]))
            )
    return residuals


def _expected(
    site: Site, own_residuals: Array, shared_residuals: Array, own_weight: float, training_share: float
) -> ExpectedGains | None:
    """Return the gain that the site may expect of the others, with its interval; None where nothing is known.

    ``own_residuals`` and ``shared_residuals`` (n, 1) are out of fold, alone and with others. ``own_weight``
    is that of the own model, and ``training_share`` the share of the rows that each fold trains on. The rules
    are those of a local fit.
    """
    selection, n_rows = site.selection, np.array([float(len(own_residuals))])
    rounding = ROUNDING * selection.noise
    # Residuals of models of half of the rows: with those of more rows, they show how errors fall with rows.
    earlier_residuals = [selection.residuals[0]]
    compared, is_measured, _ = compare(
        earlier_residuals, [own_residuals], [shared_residuals], [None], site.learners.loss, rounding
    )
    # Nothing comparable, or all weight on the own model: others then bring nothing.
    if not is_measured.any() or own_weight > 1 - 1e-9:
        return None
    # How fast the error falls as rows become more.
    decay = decay_of(compared, (share_of_rows(selection), training_share))
    # An own model of all rows is better than one of a fold's training rows, with others in part: the gain
    # shrinks.
    error_ratio_with_all = reached_with_all(n_rows, training_share, decay)
    log_ratio_correction = np.log(error_ratio_with_all) - np.log(
        1 - own_weight * own_weight * (1 - error_ratio_with_all)
    )
    log_ratios = np.log(compared.own / compared.others) + log_ratio_correction
    standard_errors = compared.errors(training_share, selection.inflation, compared.typical)
    evidence = log_ratios, standard_errors, compared.relative_distances, compared.n_rows
    return fit_gain_model(*evidence, decay, compared.typical).expect(*evidence, log_ratio_correction)


def site_model(site: Site, pooled: Pooled, schema: bytes = b"") -> SiteModel:
    """Return how a site predicts with the others, and whether it pays.

    Parameters
    ----------
    site : Site
        The site, with the rows that its message was made of.
    pooled : Pooled
        From `conclude_moments`.
    schema : bytes, default=b""
        The schema of the site's message.

    Returns
    -------
    SiteModel
        Never leaves the site.
    """
    selection, y = site.selection, site.learners.scalar_y
    folds = folds_of(site.learners, selection, N_FOLDS, None, site.seed)
    lines = pooled_lines(site, pooled, folds.held_out, schema)
    n_lines, own_residuals = len(lines), _own_out_of_fold(site, folds)
    # The dictionary's residuals (n, 1 + M): of the own model, then of M lines; weights mix these columns.
    residuals = np.column_stack([own_residuals, y[:, None] - lines.out_of_fold])
    validation_sets = [np.flatnonzero(folds.held_out == fold) for fold in range(len(folds))]
    grams = np.array([residuals[held_out].T @ residuals[held_out] for held_out in validation_sets])
    gram_of_all = grams.sum(axis=0)
    # Weights of all rows come first, for predictions; then those without each fold, for its residuals.
    grams_to_weigh = np.concatenate([gram_of_all[None], gram_of_all - grams])
    n_rows = np.array([float(len(y)), *(float(len(y) - len(held_out)) for held_out in validation_sets)])
    weights = simplex_weights(grams_to_weigh if pooled.pool.scales.any() else _evened(grams_to_weigh, n_rows))
    shared_residuals = np.full_like(own_residuals, np.nan)
    for held_out, fold_weights in zip(validation_sets, weights[1:], strict=True):
        shared_residuals[held_out, 0] = residuals[held_out] @ fold_weights
    error_alone, error_with = (error_and_spread(errors)[0] for errors in (own_residuals, shared_residuals))
    expected_gain = _expected(
        site,
        own_residuals,
        shared_residuals,
        own_weight=float(weights[0, 0]),
        training_share=float(folds.training.mean()),
    )
    # Expected is the log of the error alone over that with others: a gain is 1 - exp(-log).
    gain = low = high = None
    verdict, reason = NO_DIFFERENCE, BY_ITSELF if n_lines else NO_COMPANY
    if expected_gain is not None:
        gain, low, high = (
            float(1 - np.exp(-bound[0]))
            for bound in (expected_gain.mean, expected_gain.low, expected_gain.high)
        )
        verdict = str(judge(expected_gain)[0])
        reason = reason_for(verdict, gain)
    return SiteModel(
        site=site.name,
        verdict=verdict,
        reason=reason,
        error_alone=error_alone,
        error_with=error_with,
        gain=gain,
        gain_low=low,
        gain_high=high,
        model=selection.models[0],
        # Where nothing was measured, or others do harm, all weight is on the own model.
        weights=weights[0] if expected_gain is not None and verdict != STAY_ALONE else np.eye(1 + n_lines)[0],
        lines=lines,
    )
