"""What a learner may expect to gain, from the evidence of all learners.

A learner with few rows knows its own gain badly. A normal model across learners says what such a learner may
expect: the logarithm of the error alone over the error with others has a mean that depends on the number of
rows, and a spread between learners. Both are integrated out, so that a spread that is estimated as zero does
not make anybody sure.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.stats import norm

from coterie._arrays import Array

# Spreads between learners that are weighed against each other, as logarithms; zero is one of them.
SPREADS = np.r_[0.0, np.geomspace(0.003, 1.5, 24)]
# A priori the mean and its slope in 1 / n are normal with this standard deviation.
PRIOR_SPREAD = 1.0
# Of the learners who are told the same, this share may be told so wrongly.
FALSE_DISCOVERIES = 0.1
# Nobody is told anything that is wrong with a larger chance, however sure the others are.
LARGEST_CHANCE = 0.25
# The probability of the interval in which a gain is expected.
COVERAGE = 0.9


@dataclass(frozen=True)
class Expected:
    """What learners may expect, as log ratios of the error alone to the error with others.

    All are of shape (L,): ``mean`` and ``spread`` of the posterior, ``low`` and ``high`` of its interval. The
    ``chance_of_loss`` is that of a ratio below zero, ``chance_of_no_harm`` that of one above some bound.
    """

    mean: Array
    spread: Array
    low: Array
    high: Array
    chance_of_loss: Array
    chance_of_no_harm: Array


@dataclass(frozen=True)
class GainModel:
    """The model across learners, fitted.

    ``weights`` (S,) are the probabilities of `SPREADS`. For each of these, ``coefficients`` (S, 2) and
    ``covariances`` (S, 2, 2) are of the mean and of its slope in 1 / n, which is centred and scaled by
    ``typical``, the mean of 1 / n. ``decay`` says how fast errors alone fall with more rows, and ``variance``
    how much the typical learner's rows differ; see `learning`.
    """

    weights: Array
    coefficients: Array = field(repr=False)
    covariances: Array = field(repr=False)
    typical: float
    decay: float = 0.0
    variance: float = 1.0

    def design(self, n_rows: Array) -> Array:
        """Return the mean's and the slope's part in what learners with so many rows may expect, (L, 2)."""
        return np.column_stack([np.ones(len(n_rows)), 1 / n_rows / self.typical - 1])

    def _averaged(self, values: Array) -> Array:
        """Return the mean over spreads of values (S, L), summed row by row for one learner as for many."""
        averages: Array = np.cumsum(self.weights[:, None] * values, axis=0)[-1]
        return averages

    def expect(
        self,
        ratios: Array,
        errors: Array,
        n_rows: Array,
        harm: Array | float = 0.0,
        luck: Array | float = 0.0,
    ) -> Expected:
        """Return what learners may expect whose log ratios (L,) were measured with standard errors (L,).

        Others harm a learner whose log ratio is below ``harm`` (L,). ``luck`` (L,) is the standard deviation
        of what a learner gets about what learners like it get on average; the interval allows for it.
        """
        design, squares = self.design(n_rows), errors * errors
        tau = (SPREADS * SPREADS)[:, None]
        prior = self.coefficients[:, :1] * design[:, 0] + self.coefficients[:, 1:] * design[:, 1]
        slope = design[:, 1]
        unsure = self.covariances[:, :1, 0] + slope * (
            2 * self.covariances[:, :1, 1] + slope * self.covariances[:, 1:, 1]
        )
        share = np.divide(tau, tau + squares, out=np.zeros((len(tau), len(squares))), where=tau > 0)
        means = prior + share * (ratios - prior)
        variances = share * squares + (1 - share) ** 2 * unsure
        mean = self._averaged(means)
        spread = np.sqrt(np.maximum(self._averaged(variances + means * means) - mean * mean, 0.0))
        spreads = np.sqrt(np.maximum(variances, 1e-300))
        loss = self._averaged(norm.cdf(0.0, means, spreads))
        no_harm = self._averaged(norm.sf(harm, means, spreads))
        spread = np.sqrt(spread * spread + luck * luck)
        margin = norm.isf((1 - COVERAGE) / 2) * spread
        return Expected(mean, spread, mean - margin, mean + margin, loss, no_harm)


def fit_gain_model(
    ratios: Array, errors: Array, n_rows: Array, decay: float = 0.0, variance: float = 1.0
) -> GainModel:
    """Fit the model to log ratios (L,) with standard errors (L,) of learners with so many rows (L,).

    Learners are sorted first: the last bit must not depend on their order.
    """
    order = np.lexsort((n_rows, errors, ratios))
    ratios, errors, n_rows = ratios[order], errors[order], n_rows[order]
    typical = float(np.mean(1 / n_rows)) if len(n_rows) else 1.0
    empty = GainModel(np.zeros(0), np.zeros((0, 2)), np.zeros((0, 2, 2)), typical, decay, variance)
    design = empty.design(n_rows)
    likelihoods, coefficients, covariances = [], [], []
    for spread in SPREADS:
        variances = spread * spread + errors * errors
        weighted = design / variances[:, None]
        precision = design.T @ weighted + np.eye(2) / PRIOR_SPREAD**2
        covariance = np.linalg.inv(precision)
        found = covariance @ (weighted.T @ ratios)
        left = ratios @ (ratios / variances) - found @ precision @ found
        likelihoods.append(-0.5 * (np.log(variances).sum() + np.linalg.slogdet(precision)[1] + left))
        coefficients.append(found)
        covariances.append(covariance)
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    each = weights / weights.sum(), np.array(coefficients), np.array(covariances)
    return GainModel(*each, typical, decay, variance)


NOTHING_MEASURED = fit_gain_model(np.zeros(0), np.zeros(0), np.zeros(0))


def discoveries(chances: Array, rate: float = FALSE_DISCOVERIES) -> Array:
    """Tell for whom something holds, given the chance (L,) for each that it does not.

    The mean chance among those for whom it is said to hold is at most ``rate``, and nobody's is above a
    quarter.
    """
    order = np.argsort(chances, kind="stable")
    so_far = np.cumsum(chances[order]) / np.arange(1, len(chances) + 1)
    holds = np.zeros(len(chances), dtype=bool)
    holds[order[(so_far <= rate) & (chances[order] <= LARGEST_CHANCE)]] = True
    return holds
