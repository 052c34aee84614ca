"""What a learner may expect to gain, from the evidence of all learners.

A learner with few rows knows its own gain badly. A model across learners says what such a learner may expect.
Where predictions alone and with others are close to each other, there is little to gain and little to lose.
So the logarithm of the error alone over the error with others is taken to be a share of their mean squared
distance: near one where all of the distance is the learner's own error, near minus one where it is the
others'. The distance that a learner's rows show is uncertain, too; what is used is its geometric mean with
the distance that is typical of as many rows. Shares have a mean and a spread between learners. Both are
integrated out, so that a spread that is estimated as zero does not make anybody sure.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

import numpy as np
from scipy.stats import norm

from coterie._arrays import Array

# Spreads of the share between learners that are weighed against each other; zero is one of them.
SPREADS = np.r_[0.0, np.geomspace(0.003, 1.5, 24)]
# A priori the mean share is normal around zero with this standard deviation: it lies between -1 and 1.
PRIOR_SPREAD = 0.5
# What a learner gets differs by luck from what learners like it get on average. An own model of k parameters
# errs by a chi-squared number with k degrees of freedom over n, which is skewed: how much a learner gains has
# this variance below its mean and above it, where the unit is the distance of the predictions over n.
LUCK_BELOW, LUCK_ABOVE = 2.0, 6.0
# Quantiles of a normal distribution by which averages over it are computed.
QUANTILES = norm.ppf((np.arange(11) + 0.5) / 11)
# The share of wrong verdicts among the learners with the same verdict, at most.
FALSE_DISCOVERIES = 0.1
# The chance that a single verdict is wrong, at most, however sure the others are.
LARGEST_CHANCE = 0.25
# The probability of the interval in which a gain is expected.
COVERAGE = 0.9


@dataclass(frozen=True)
class ExpectedGains:
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

    @classmethod
    def of_groups(cls, parts: list[tuple[Array, ExpectedGains]]) -> ExpectedGains:
        """Put together what groups of learners may expect; each mask (L,) tells who is in the group.

        ``parts`` are pairs of a mask and what its learners expect, in their order; every learner is in one.
        """
        columns = []
        for column_field in fields(cls):
            column = np.zeros(len(parts[0][0]))
            for in_group, of_group in parts:
                column[in_group] = getattr(of_group, column_field.name)
            columns.append(column)
        return cls(*columns)


@dataclass(frozen=True)
class GainModel:
    """The model across learners, fitted.

    ``weights`` (S,) are the probabilities of `SPREADS`. For each of these, ``shares`` (S,) and ``variances``
    (S,) are the posterior mean and variance of the mean share. Predictions of the typical learner are
    ``typical`` / n apart. ``decay`` says how fast errors alone fall with more rows, and ``variance`` how much
    the typical learner's rows differ; see `learning`.
    """

    weights: Array
    shares: Array = field(repr=False)
    variances: Array = field(repr=False)
    typical: float = 0.0
    decay: float = 0.0
    variance: float = 1.0

    def _averaged(self, values: Array) -> Array:
        """Return the mean (L,) over the posterior of the spreads of values (S, L)."""
        # A sum by cumsum has the same last bit for one learner as for many.
        averages: Array = np.cumsum(self.weights[:, None] * values, axis=0)[-1]
        return averages

    def expect(
        self,
        ratios: Array,
        errors: Array,
        relative_distances: Array,
        n_rows: Array,
        harm: Array | float = 0.0,
    ) -> ExpectedGains:
        """Return what learners may expect whose log ratios (L,) were measured with standard errors (L,).

        ``relative_distances`` (L,) is the distance of predictions alone and with others, on ``n_rows`` (L,).
        Others harm a learner whose log ratio is below ``harm`` (L,). For each spread of the share between
        learners, what is expected is the posterior of a normal model; these are averaged over the spreads.
        """
        relative_distances = usual_distance(relative_distances, n_rows, self.typical)
        error_variances, learner_variances = errors * errors, (SPREADS[:, None] * relative_distances) ** 2
        prior_means, prior_variances = (
            self.shares[:, None] * relative_distances,
            self.variances[:, None] * relative_distances * relative_distances,
        )
        # How far the learner's own evidence counts, against what is usual.
        weight_of_evidence = learner_variances / np.maximum(learner_variances + error_variances, 1e-300)
        means = prior_means + weight_of_evidence * (ratios - prior_means)
        variances = weight_of_evidence * error_variances + (1 - weight_of_evidence) ** 2 * prior_variances
        mean = self._averaged(means)
        spread = np.sqrt(np.maximum(self._averaged(variances + means * means) - mean * mean, 0.0))
        # The distance in units of the error alone, a mean over rows.
        luck = relative_distances * np.exp(-ratios / 2) / n_rows
        spread_above = np.sqrt(variances + LUCK_ABOVE * luck)
        no_harm = self._averaged(norm.sf(harm, means, np.maximum(spread_above, 1e-150)))
        normal_quantile = norm.isf((1 - COVERAGE) / 2)
        low = mean - normal_quantile * np.sqrt(spread**2 + LUCK_BELOW * luck)
        high = mean + normal_quantile * np.sqrt(spread**2 + LUCK_ABOVE * luck)
        return ExpectedGains(
            mean=mean,
            spread=(high - low) / (2 * normal_quantile),
            low=low,
            high=high,
            chance_of_loss=chance_of_loss(mean, spread, relative_distances, n_rows),
            chance_of_no_harm=no_harm,
        )


def chance_of_loss(mean: Array, spread: Array, relative_distances: Array, n_rows: Array) -> Array:
    """Return the chance (L,) that a learner's own model happens to be better than what others predict.

    The log ratio that such learners have on average is normal (``mean``, ``spread``). It and the distance of
    the predictions say what own models err, and what others do. How the own model of this learner fares is a
    chi-squared number, with as many degrees of freedom as a model with such an error has parameters. Its cube
    root is nearly normal (Wilson and Hilferty, 1931).
    """
    # One row for each quantile of the log ratio: the chance is the mean over them.
    log_ratios = mean + spread * QUANTILES[:, None]
    own_errors, errors_of_others = (
        np.maximum((relative_distances + log_ratios) / 2, 0.0),
        np.maximum((relative_distances - log_ratios) / 2, 0.0),
    )
    variance = 2 / (9 * np.maximum(n_rows * own_errors, 1e-9))
    cube_root_of_ratio = np.cbrt(errors_of_others / np.maximum(own_errors, 1e-300))
    probabilities = norm.cdf((cube_root_of_ratio - (1 - variance)) / np.sqrt(variance))
    # Others who err by nothing cost nothing.
    chance: Array = np.where(errors_of_others > 0, probabilities, 0.0).mean(axis=0)
    return chance


def usual_distance(relative_distances: Array, n_rows: Array, typical: float) -> Array:
    """Return how far apart (L,) predictions alone and with others are taken to be.

    That is the geometric mean of the distance that the rows show and of the one that is typical of ``n_rows``
    (L,), ``typical`` / n. If nothing is typical, it is what the rows show.
    """
    distance: Array = np.sqrt(relative_distances * (typical / n_rows)) if typical > 0 else relative_distances
    return distance


def fit_gain_model(
    ratios: Array,
    errors: Array,
    relative_distances: Array,
    n_rows: Array,
    decay: float = 0.0,
    variance: float = 1.0,
) -> GainModel:
    """Fit the model to log ratios (L,) with standard errors (L,) and the distances of predictions (L,).

    For each of the `SPREADS` the mean share has a normal posterior, and the marginal likelihood of the ratios
    is the weight of that spread. ``decay`` and ``variance`` are kept as they are.
    """
    # Learners are sorted first: the last bit must not depend on their order.
    order = np.lexsort((n_rows, relative_distances, errors, ratios))
    ratios, errors, relative_distances, n_rows = (
        ratios[order],
        errors[order],
        relative_distances[order],
        n_rows[order],
    )
    typical = float(np.median(relative_distances * n_rows)) if len(relative_distances) else 0.0
    relative_distances = usual_distance(relative_distances, n_rows, typical)
    ratio_variances = (SPREADS[:, None] * relative_distances) ** 2 + errors * errors
    squared_distances = relative_distances * relative_distances
    precisions = (squared_distances / ratio_variances).sum(axis=1) + 1 / PRIOR_SPREAD**2
    mean_shares = (relative_distances * ratios / ratio_variances).sum(axis=1) / precisions
    unexplained = (ratios * ratios / ratio_variances).sum(axis=1) - mean_shares * mean_shares * precisions
    log_likelihoods = -0.5 * (np.log(ratio_variances).sum(axis=1) + np.log(precisions) + unexplained)
    likelihoods = np.exp(log_likelihoods - log_likelihoods.max())
    return GainModel(
        weights=likelihoods / likelihoods.sum(),
        shares=mean_shares,
        variances=1 / precisions,
        typical=typical,
        decay=decay,
        variance=variance,
    )


NOTHING_MEASURED = fit_gain_model(np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(0))


def expect_gains(
    ratios: Array,
    errors: Array,
    relative_distances: Array,
    n_rows: Array,
    fits: Array,
    harm: Array,
    decay: float = 0.0,
    variance: float = 1.0,
) -> tuple[ExpectedGains, GainModel]:
    """Return what learners may expect from what all of them measured, and the model of those who fit.

    Those whose data some cluster of others describes (``fits``, (L,)) gain by others in another way than
    those who are unlike everybody. Each of the two kinds has a model of its own.
    """
    expected_of_groups, models = [], []
    for in_group in (fits, ~fits):
        evidence = ratios[in_group], errors[in_group], relative_distances[in_group], n_rows[in_group]
        models.append(fit_gain_model(*evidence, decay, variance))
        expected_of_groups.append((in_group, models[-1].expect(*evidence, harm[in_group])))
    # Those who fit come first.
    return ExpectedGains.of_groups(expected_of_groups), models[0]


def discoveries(chances: Array, rate: float = FALSE_DISCOVERIES) -> Array:
    """Tell for whom something holds, given the chance (L,) for each that it does not.

    This bounds the Bayesian false discovery rate: the mean chance among those for whom it is said to hold is
    at most ``rate``. Nobody's chance is above `LARGEST_CHANCE`.
    """
    order = np.argsort(chances, kind="stable")
    # The mean chance of the k surest learners, for k = 1, 2, ...: it grows with k.
    mean_chance = np.cumsum(chances[order]) / np.arange(1, len(chances) + 1)
    holds = np.zeros(len(chances), dtype=bool)
    holds[order[(mean_chance <= rate) & (chances[order] <= LARGEST_CHANCE)]] = True
    return holds
