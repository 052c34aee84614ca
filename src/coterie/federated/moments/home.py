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

    ``weights`` (1 + M,) are of its own model and of ``lines`` (M, p + 1). Errors are mean squared errors out
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
    lines: Array = field(repr=False)
    units: Units = field(repr=False)
    bounds: Array = field(repr=False)

    @property
    def own(self) -> float:
        """How much of a prediction is the own model's."""
        return float(self.weights[0])

    def predict(self, X: Any) -> Array:
        """Predict rows (n, p) of the site."""
        rows = np.asarray(X, dtype=float)
        alone = guarded(self.model, rows, np.array([-np.inf, np.inf]))
        shared = np.clip(self.units.predictions(self.lines, rows), *self.bounds)
        predicted: Array = self.weights @ np.vstack([alone, shared])
        return predicted


def _own_rows(party: Party, pooled: Pooled, schema: bytes) -> Array:
    """Return the site's rows (n, p + 2) as its message counts them."""
    X, y = party.learners.X, party.learners.scalar_y
    if schema:
        return bounded_rows(X, y, schema_from(schema))
    units = pooled.pool.units
    return np.column_stack([units.rows(X), (y - units.middle[-1]) / units.half[-1]])


def _lines(others: list[tuple[Array, float]], own: Array) -> Array:
    """Return the lines (M, p + 1) of the others' moments with the site's own."""
    found = [fit_lines(share * moments + own, share * noise) for moments, noise in others for share in SHARES]
    return np.array(found).reshape(-1, len(own) - 1)


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
    selection, learners, units = party.selection, party.learners, pooled.pool.units
    if len(units.middle) != learners.n_features + 1:
        raise ProtocolError(f"The rows of {party.site!r} have other columns than its moments.")
    others = pooled.others(party.site)
    rows = _own_rows(party, pooled, schema)
    y, folds, alone = learners.scalar_y, selection.folds[0], selection.residuals[0]
    n_lines = len(others) * len(SHARES)
    residuals = np.column_stack([alone, np.full((len(y), n_lines), np.nan)])
    ahead = [np.flatnonzero(folds == fold) for fold in np.unique(folds[folds >= 0])]
    for held in ahead:
        kept = np.setdiff1d(np.arange(len(y)), held)
        lines = _lines(others, rows[kept].T @ rows[kept])
        bounds = widened(y[kept])
        residuals[held, 1:] = (y[held] - np.clip(units.predictions(lines, learners.X[held]), *bounds)).T
    known = np.isfinite(residuals).all(axis=1)
    grams = np.array([residuals[held[known[held]]].T @ residuals[held[known[held]]] for held in ahead])
    whole = grams.sum(axis=0)
    weights = simplex_weights(np.concatenate([whole[None], whole - grams]))
    shared = np.full_like(alone, np.nan)
    for held, mine in zip(ahead, weights[1:], strict=True):
        shared[held, 0] = residuals[held] @ mine
    error_alone, error_with = (error_and_spread(part[known])[0] for part in (alone, shared))
    found = _expected(alone[known], shared[known], selection.inflation, len(y)) if others else None
    gain = low = high = None
    if found is None:
        verdict, reason = NO_DIFFERENCE, NO_ERROR if others else NO_COMPANY
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
        lines=_lines(others, rows.T @ rows),
        units=units,
        bounds=np.array(widened(y)),
    )
