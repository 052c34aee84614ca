"""Every number of the likelihood, each with its reason."""

from __future__ import annotations

from typing import NamedTuple


class LikelihoodRules(NamedTuple):
    """What is not learnt from the sums. Nats are natural logarithms of odds: three are odds of twenty."""

    # The logarithm of a variance is known beforehand to a standard deviation of three: a factor of twenty.
    log_variance: float = 9.0
    # A larger K must win by this. Half a charge of noise: the bounds of two starts differ by less than one.
    nats: float = 1.5
    # Below this, K = 1 with a spread is an answer as good. A normal spread of one slope and two coteries are
    # .155 nats a learner apart: six nats for forty learners.
    undecided: float = 10.0
    # Pseudo-counts that draw the variance of a coordinate of b to its family's.
    common_prior: float = 0.3
    # Clusters that are worse on rows left out by a standard error are not taken. Where own lines are precise,
    # two clusters with a spread inside predict no better than one, and are right.
    worse: float = 1.0
    # Clusters are clear if they are better there than one cluster by two standard errors.
    surely: float = 2.0
    # Starts: variances of own departures and of clusters, in units of the average learner's variance of
    # estimation, and the probability of the given label. Any of a decade give the same answers.
    start_own: float = 10.0
    start_cluster: float = 3.0
    start_label: float = 0.95
    # Starts with a spread inside clusters: this part of the spread of all.
    part: float = 4.0
    # Short runs rank the starts, long runs finish the best. Bounds settle to .01 nats.
    short_rounds: int = 12
    long_rounds: int = 60
    tolerance: float = 0.01
    # A labelling that is this far behind after a short run is not finished: long runs add a few nats.
    hopeless: float = 30.0
    # Squared residuals above nine squared noise levels count as nine: three standard deviations, as in
    # Select.
    clip: float = 9.0
    # A learner's noise level counts as this many rows of the median level, before rows are weighed.
    rows_of_the_median: float = 5.0
    # Curved features are searched where they win by this, which random ones do not.
    curved: float = 10.0
    # Clusters of curves that are looked at: each has sixty coefficients and more.
    most_of_curves: int = 12
    # Principal components of a family of curved features. More cost time, and the families are smooth.
    components: int = 24


RULES = LikelihoodRules()
