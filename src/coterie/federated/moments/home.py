"""What a site learns at home, from its own rows and everybody's moments; nothing of it is sent.

Its dictionary: its own model, and lines at every resolution. A line is fitted on the moments of the others of
a cluster and on the site's own, which count more than the others' by several factors: that moves the pooled
line by an offset and by slopes, as far as the own rows call for it. Weights are learnt out of fold. In
comparisons neither the site's message nor the held-out rows are part of a line.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.guard import guarded, widened
from coterie.collaboration.nested.weights import simplex_weights
from coterie.federated.messages import ProtocolError
from coterie.federated.moments.conclude import Pooled
from coterie.federated.moments.pool import Units, fit_lines
from coterie.federated.moments.schema import schema_from
from coterie.federated.moments.site import bounded_rows
from coterie.federated.peers import Party
from coterie.loss import SQUARED_ERROR
from coterie.verdicts.gain_model import Expected, fit_gain_model
from coterie.verdicts.gains import HALF, ROUNDING, error_and_spread, gain_of, gain_spread
from coterie.verdicts.learning import luck_of
from coterie.verdicts.verdict import (
    NO_COMPANY,
    NO_DIFFERENCE,
    NO_ERROR,
    STAY_ALONE,
    judge,
    reason_for,
)

# What a row of others counts beside one of the site's own.
SHARES = (1.0, 0.1, 0.01)


@dataclass(frozen=True)
class Home:
    """What a site knows at home: how it predicts, and whether that pays.

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

    def predict(self, X: Any) -> Array:
        """Predict rows (n, p) of the site."""
        rows = np.asarray(X, dtype=float)
        alone = guarded(self.model, rows, np.array([-np.inf, np.inf]))
        predicted: Array = self.weights @ np.vstack([alone, self.lines.predict(rows)])
        return predicted


def _own_rows(party: Party, units: Units, schema: bytes) -> Array:
    """Return the site's rows (n, p + 2) as its message counts them."""
    X, y = party.learners.X, party.learners.scalar_y
    if schema:
        return bounded_rows(X, y, schema_from(schema))
    return np.column_stack([units.rows(X), (y - units.middle[-1]) / units.half[-1]])


def _fitted(others: list[tuple[Array, float]], own: Array) -> Array:
    """Return the lines (M, p + 1) of the others' moments with the site's own."""
    found = [fit_lines(share * moments + own, share * noise) for moments, noise in others for share in SHARES]
    return np.array(found).reshape(-1, len(own) - 1)


@dataclass(frozen=True)
class PooledLines:
    """Members of a site's dictionary: lines at every resolution, moved towards its own rows.

    ``out_of_fold`` (n, M) are their predictions of the site's rows, NaN where no fold held a row out.
    ``coefficients`` (M, p + 1) are from all rows. Predictions are kept within ``bounds`` (2,).
    """

    out_of_fold: Array = field(repr=False)
    coefficients: Array = field(repr=False)
    units: Units = field(repr=False)
    bounds: Array

    def predict(self, X: Any) -> Array:
        """Return the lines' predictions of rows (n, p), of shape (M, n)."""
        return np.clip(self.units.predictions(self.coefficients, X), *self.bounds)


def pooled_lines(party: Party, pooled: Pooled, schema: bytes = b"") -> PooledLines:
    """Return the members that everybody's moments add to a site's dictionary.

    Parameters
    ----------
    party : Party
        The site, with the rows that its message was made of.
    pooled : Pooled
        From `conclude_moments`.
    schema : bytes, default=b""
        The schema of the site's message.

    Returns
    -------
    PooledLines
        There are none where no cluster of the site has other members.
    """
    learners, units = party.learners, pooled.pool.units
    if len(units.middle) != learners.n_features + 1:
        raise ProtocolError(f"The rows of {party.site!r} have other columns than its moments.")
    others = pooled.others(party.site)
    rows, y, folds = _own_rows(party, units, schema), learners.scalar_y, party.selection.folds[0]
    out_of_fold = np.full((len(y), len(others) * len(SHARES)), np.nan)
    for fold in np.unique(folds[folds >= 0]):
        held, kept = folds == fold, folds != fold
        lines = _fitted(others, rows[kept].T @ rows[kept])
        out_of_fold[held] = np.clip(units.predictions(lines, learners.X[held]), *widened(y[kept])).T
    return PooledLines(out_of_fold, _fitted(others, rows.T @ rows), units, np.array(widened(y)))


def _expected(alone: Array, shared: Array, inflation: float, n_rows: int) -> tuple[Expected, float] | None:
    """Return what the site may expect of others, and the gain that was measured; None where nothing was."""
    errors = SQUARED_ERROR.mean(alone), SQUARED_ERROR.mean(shared)
    rounding = ROUNDING * float(np.var(alone)) if len(alone) else 0.0
    spread = gain_spread(alone, shared, None, rounding) * inflation**0.5
    gain = float(gain_of(np.array(errors[0]), np.array(errors[1]), np.array(rounding)))
    if not (np.isfinite(spread) and spread > 0 and gain < 1):
        return None
    ratio = np.array([-np.log1p(-gain)])
    error = np.sqrt(1 + 1 / HALF) * np.array([spread]) / (1 - gain)
    size = np.array([float(n_rows)])
    return fit_gain_model(ratio, error, size).expect(ratio, error, size, luck=luck_of(error, HALF)), gain


def at_home(party: Party, pooled: Pooled, schema: bytes = b"") -> Home:
    """Return how a site predicts with the others, and whether it pays.

    Parameters
    ----------
    party : Party
        The site, with the rows that its message was made of.
    pooled : Pooled
        From `conclude_moments`.
    schema : bytes, default=b""
        The schema of the site's message.

    Returns
    -------
    Home
        Never leaves the site.
    """
    selection, y = party.selection, party.learners.scalar_y
    lines = pooled_lines(party, pooled, schema)
    n_lines, alone = len(lines.coefficients), selection.residuals[0]
    residuals = np.column_stack([alone, y[:, None] - lines.out_of_fold])
    known = np.isfinite(residuals).all(axis=1)
    folds = np.where(known, selection.folds[0], -1)
    ahead = [np.flatnonzero(folds == fold) for fold in np.unique(folds[known])]
    grams = np.array([residuals[held].T @ residuals[held] for held in ahead])
    whole = grams.sum(axis=0)
    weights = simplex_weights(np.concatenate([whole[None], whole - grams]))
    shared = np.full_like(alone, np.nan)
    for held, mine in zip(ahead, weights[1:], strict=True):
        shared[held, 0] = residuals[held] @ mine
    error_alone, error_with = (error_and_spread(part[known])[0] for part in (alone, shared))
    found = _expected(alone[known], shared[known], selection.inflation, len(y)) if n_lines else None
    gain = low = high = None
    if found is None:
        verdict, reason = NO_DIFFERENCE, NO_ERROR if n_lines else NO_COMPANY
    else:
        expected = found[0]
        gain, low, high = (
            float(1 - np.exp(-part[0])) for part in (expected.mean, expected.low, expected.high)
        )
        verdict = str(judge(expected)[0])
        reason = reason_for(verdict, gain)
    own_only = verdict == STAY_ALONE or found is None
    return Home(
        site=party.site,
        verdict=verdict,
        reason=reason,
        error_alone=error_alone,
        error_with=error_with,
        gain=gain,
        gain_low=low,
        gain_high=high,
        model=selection.models[0],
        weights=np.r_[1.0, np.zeros(n_lines)] if own_only else weights[0],
        lines=lines,
    )
