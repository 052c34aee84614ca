"""From what the parties answer to how each of them predicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import best_ratios, linear_values, slope_units
from coterie.collaboration.nested.guard import widened
from coterie.collaboration.nested.parties import RowParty
from coterie.collaboration.nested.weights import Weights, learn_weights


@dataclass(frozen=True)
class Agreement:
    """What the parties agree on.

    ``units`` (p,) are common units of the predictors. ``ratios`` (2, E, 2) are variances of offsets and
    slopes of each shared model, with an offset only and with both. ``weights`` run over the columns: alone,
    shared with an offset, shared with offset and slopes.
    """

    units: Array
    ratios: Array
    weights: Weights


def agree(parties: Sequence[RowParty]) -> Agreement:
    """Ask the parties and learn the weights; who has the rows applies them."""
    units = slope_units(np.array([party.spreads() for party in parties]))
    likelihoods = np.sum([party.likelihoods(units) for party in parties], axis=0)
    ratios = np.stack([best_ratios(likelihoods, slopes=slopes) for slopes in (False, True)])
    answers = [party.grams(units, ratios) for party in parties]
    weights = learn_weights(np.array([gram for gram, _ in answers]), np.array([n for _, n in answers]))
    return Agreement(units, ratios, weights)


@dataclass(frozen=True)
class Mixture:
    """How one learner predicts.

    ``alone`` is the weight of its own model, ``shared`` (E,) those of the shared models; ``correction``
    (p + 1,) are slopes and intercept of its own; ``residuals`` (n,) are honest: weights were learnt without
    the row's fold.
    """

    alone: float
    shared: Array
    correction: Array
    residuals: Array


def mix(party: RowParty, agreement: Agreement, place: int) -> Mixture:
    """Apply what was agreed to the rows of the learner at a place among the parties."""
    columns = party.columns(agreement.units, agreement.ratios)
    held_out = agreement.weights.held_out[:, place]
    residuals = party.y - np.einsum("nc,nc->n", columns, held_out[np.maximum(party.folds, 0)])
    weights = agreement.weights.personal[place]
    n_shared = party.shared.shape[1]
    parts = weights[1:].reshape(2, n_shared)
    coefficients = party.coefficients(agreement.units, agreement.ratios)
    correction = np.einsum("ve,vep->p", parts, coefficients)
    return Mixture(float(weights[0]), parts.sum(axis=0), correction, residuals)


def correction_bounds(X: Array, correction: Array) -> tuple[float, float]:
    """Return what a correction is clipped to: its range on the learner's rows, with a margin."""
    low, high = widened(linear_values(X, correction[None])[:, 0])
    return float(low), float(high)
