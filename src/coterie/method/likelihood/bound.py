"""The bound: structured variational Bayes for a mixture of mixed lines, from sums over rows.

Learner j has the moments A_j = Z'WZ, a_j = Z'Wy, y'Wy and n_j of its features Z. The model is

    y_j = Z_j (b + d_k(j) + u_j) + e_j,   b ~ N(0, Lambda^-1),   d_k ~ N(0, T^-1),   u_j ~ N(0, Omega^-1),

with noise e_j ~ N(0, I / tau_j) and tau_j ~ Gamma. What all learners share is b, what a cluster shares is
d_k, and u_j is a learner's own departure. Given the labels, (b, d_1, ..., d_K) are jointly normal, and u_j is
integrated out in closed form. Labels and noise precisions have factors of their own. T, Omega, Lambda and the
prior of tau are learnt. A variance in T^-1 or Omega^-1 is charged for being learnt, by Laplace's method.

T and Omega are held as variances, so that zero switches a part off. Then I + P V, with P a precision and V
the diagonal matrix of variances, is all that is ever inverted, and no large number stands for infinity.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import digamma, gammaln, polygamma

from coterie._arrays import Array
from coterie.method.likelihood.features import DIRECTION, LEVEL, LINEAR
from coterie.method.likelihood.rules import RULES

# Entries of the matrices that are worked on at once: 32 MB of doubles.
BLOCK = 2**22
# Below these, differences are rounding: degrees of freedom, sums of squares, variances, noise.
FEWEST_DEGREES, ROUNDING, LEAST_NOISE = 1e-3, 1e-12, 1e-9
LARGEST_VARIANCE = 1e6


class Moments(NamedTuple):
    """Sums over the rows of L learners, whoever added them up.

    ``gram`` (L, d, d) is Z'WZ, ``cross`` (L, d) is Z'Wy, ``square`` (L,) is y'Wy, ``n_rows`` (L,), and
    ``kinds`` (d,) are the kinds of columns. With ``unit_noise`` the moments are in units of the noise, as for
    classes and counts, and the precisions tau_j are one. ``direction`` (d,) is what the last column repeats,
    if it is one.
    """

    gram: Array
    cross: Array
    square: Array
    n_rows: Array
    kinds: Array
    unit_noise: bool = False
    direction: Array | None = None

    @property
    def families(self) -> list[Array]:
        """The positions of the columns of each kind."""
        return [np.flatnonzero(self.kinds == kind) for kind in np.unique(self.kinds)]

    def with_direction(self, direction: Array) -> Moments:
        """Return the moments with one column more: a direction (d,), a weighted sum of the columns.

        Learners that differ along one line of slopes then need one variance for it instead of d.
        """
        E, kinds = np.c_[np.eye(len(direction)), direction], np.r_[self.kinds, DIRECTION]
        gram, cross = E.T @ self.gram @ E, self.cross @ E
        return self._replace(gram=gram, cross=cross, kinds=kinds, direction=direction)


class State(NamedTuple):
    """What is updated in turn.

    ``responsibilities`` (L, K), ``cluster_variance`` (d,) is the diagonal of T^-1, ``own_variance`` (d,) that
    of Omega^-1, ``common_precision`` (d,) that of Lambda, and ``noise_precision`` (L,) is tau.
    """

    responsibilities: Array
    cluster_variance: Array
    own_variance: Array
    common_precision: Array
    noise_precision: Array


class Mixture(NamedTuple):
    """A fitted mixture: the state, the bound of log p(y), and the posterior of the coefficients.

    ``means`` (K, d) and ``covariances`` (K, d, d) are those of b + d_k, ``common`` (d,) the mean of b, and
    ``occupied`` the number of clusters that are the likeliest of some learner.
    """

    state: State
    bound: float
    means: Array
    covariances: Array
    common: Array
    occupied: int


class Forms(NamedTuple):
    """How variances are learnt.

    Whether the slopes share one variance of d_k, whether the columns of a kind share one of u_j, and whether
    anything but labels and lines is learnt.
    """

    shared_relevance: bool = False
    shared_spread: bool = True
    learn: bool = True


PLAIN = Forms()


class Integrated(NamedTuple):
    """Moments of b + d_k with own departures integrated out, in units of noise, and what that adds."""

    gram: Array
    cross: Array
    gained: Array


class Centres(NamedTuple):
    """The joint posterior of b and b + d_k, its log normaliser, and the share of each d_k that is learnt.

    ``learnt`` (K, d) is one minus the ratio of posterior to prior variance.
    """

    common: Array
    common_covariance: Array
    means: Array
    covariances: Array
    evidence: float
    learnt: Array


def times(matrices: Array, vectors: Array) -> Array:
    """Return the products of a stack of matrices with a stack of vectors."""
    return np.asarray((matrices @ vectors[..., None])[..., 0])


def _blocks(n: int, d: int) -> Iterator[slice]:
    # Slices of n matrices (d, d), in runs that bound the memory.
    step = max(1, BLOCK // (d * d))
    return (slice(start, start + step) for start in range(0, n, step))


def without_own(moments: Moments, noise_precision: Array, own_variance: Array) -> Integrated:
    """Integrate the own departures out: with F = (I + tau A V)^-1 the moments become F tau A and F tau a.

    A and a are a learner's sums Z'WZ and Z'Wy, tau its noise precision, and V the diagonal matrix of
    ``own_variance`` (d,). What is left are sums as sure about the cluster's line as departures allow.
    """
    gram = moments.gram * noise_precision[:, None, None]
    cross = moments.cross * noise_precision[:, None]
    gained = np.zeros(len(cross))
    # Columns without a variance have no departures: only the others' are inverted.
    on = np.flatnonzero(own_variance)
    v, everything = own_variance[on], len(on) == len(own_variance)
    for block in _blocks(*cross.shape) if len(on) else ():
        A, a = gram[block], cross[block]
        F = np.linalg.inv(np.eye(len(on)) + A[:, on[:, None], on] * v)
        rows, selected = F @ A[:, on], times(F, a[:, on])
        gained[block] = 0.5 * np.linalg.slogdet(F)[1] + 0.5 * (a[:, on] * v * selected).sum(axis=1)
        if not everything:
            cross[block] = a - times(A[:, :, on] * v, selected)
            gram[block] = A - (A[:, :, on] * v) @ rows
        gram[block, on], gram[block, :, on] = rows, rows.swapaxes(1, 2)
        gram[block] = (gram[block] + gram[block].swapaxes(1, 2)) / 2
        cross[block, on] = selected
    return Integrated(gram, cross, gained)


def centres(P: Array, c: Array, variance: Array, common_precision: Array) -> Centres:
    """Return the posterior of b and of b + d_k, from the clusters' moments P (K, d, d) and c (K, d).

    P are the sums X'X and c the sums X'y of a cluster's learners, in units of noise and without their own
    departures. ``variance`` (d,) is that of d_k, ``common_precision`` (d,) that of b.
    """
    d = len(variance)
    F = np.linalg.inv(np.eye(d) + P * variance)
    V, Ft, FP = variance[:, None] * F, F.swapaxes(1, 2), F @ P
    B = np.diag(common_precision) + FP.sum(axis=0)
    covariance = np.linalg.inv((B + B.T) / 2)
    towards = times(F, c).sum(axis=0)
    b = covariance @ towards
    evidence = towards @ b + (c * times(V, c)).sum() + np.linalg.slogdet(F)[1].sum()
    evidence += np.linalg.slogdet(covariance)[1] + np.log(common_precision).sum()
    spread = np.diagonal(F, axis1=1, axis2=2) + variance * ((FP @ covariance) * FP).sum(axis=2)
    return Centres(b, covariance, Ft @ b + times(V, c), V + Ft @ covariance @ F, 0.5 * evidence, 1 - spread)


def _of_labels(R: Array, towards: Array, counts: Array) -> float:
    """Return what the labels add to the bound: their entropy, expected log probabilities and prior.

    ``R`` (L, K) are the probabilities of each learner's cluster, ``counts`` (K,) their sums plus one, and
    ``towards`` (K,) the expected logarithms of the clusters' shares.
    """
    K = len(counts)
    # Zero times log zero is to be zero: 1e-300 stands in for zero.
    known = R * np.log(np.maximum(R, 1e-300))
    prior = gammaln(counts.sum()) - gammaln(counts).sum() - gammaln(K) + ((counts - 1) * towards).sum()
    occupied = int((R.max(axis=0) > 0.5).sum())
    # Labels may be permuted, but only among clusters that differ.
    permuted = gammaln(K + 1) - gammaln(K - occupied + 1)
    return float(-known.sum() + (R @ towards).sum() - prior + permuted)


def _softmax(scores: Array) -> Array:
    # Less the largest, so that no exponential overflows.
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=1, keepdims=True))


def charge(learnt: Array) -> float:
    """Return the nats that learning one variance costs, by Laplace's method.

    ``learnt`` has the shares of the effects with this variance that are learnt. Half the sum of their squares
    is the information on the variance's logarithm, whose prior is normal.
    """
    return 0.5 * float(np.log1p(RULES.log_variance * 0.5 * (learnt**2).sum()))


def _groups(moments: Moments, *, shared_slopes: bool) -> list[Array]:
    """Return the columns that share a variance of d_k, the departure of a cluster's line: an array per group.

    Each kind of columns is a group; slopes are alone in theirs unless they share one. A direction is in none.
    """
    groups = []
    for family in moments.families:
        kind = moments.kinds[family[0]]
        if kind == DIRECTION:
            continue
        alone = kind == LINEAR and not shared_slopes
        groups += [np.array([i]) for i in family] if alone else [family]
    return groups


def cluster_relevance(centre: Centres, groups: list[Array]) -> tuple[Array, float]:
    """Return the variances (d,) of d_k, one for each group of columns, and what learning them costs in nats.

    A variance says how relevant its columns are for what clusters differ in. It is the sum of squared
    departures over the share of them that is learnt.
    """
    degrees, sizes = centre.learnt.sum(axis=0), ((centre.means - centre.common) ** 2).sum(axis=0)
    variance, price = np.zeros(len(sizes)), 0.0
    # One of the K departures is known from the others.
    free = 1 - 1 / len(centre.means)
    for group in groups:
        learnt = max(float(degrees[group].sum()), FEWEST_DEGREES)
        result = max(float(sizes[group].sum()), ROUNDING) / learnt
        variance[group] = np.clip(result, ROUNDING, LARGEST_VARIANCE)
        price += charge(np.sqrt(free) * centre.learnt[:, group])
    return variance, price


def common_precision(centre: Centres, moments: Moments, before: Array) -> Array:
    """Return the precisions of b; that of the level stays, since responses are standardised.

    A direction has no part in b: its precision stays large. ``before`` (d,) are the present precisions. Each
    is drawn a little to the mean of its kind of columns, because one coefficient says little of its variance.
    """
    precision = before.copy()
    for f in moments.families:
        if moments.kinds[f[0]] not in (LEVEL, DIRECTION):
            degrees = np.maximum(1 - before[f] * np.diag(centre.common_covariance)[f], 0.01)
            sizes, prior = centre.common[f] ** 2, RULES.common_prior
            drawn = np.maximum(sizes + prior * sizes.mean(), ROUNDING)
            precision[f] = np.clip((degrees + prior * degrees.mean()) / drawn, 1e-4, 1 / ROUNDING)
    return precision


def own_variance(
    rest: Integrated, mean: Array, moments: Moments, before: Array, *, shared: bool
) -> tuple[Array, float]:
    """Return the variances (d,) of learners' own departures, and what learning them costs in nats.

    ``rest`` are the moments without departures, ``mean`` (L, d) each learner's expected line, and ``before``
    (d,) the present variances: zero is switched off, and stays off. Columns of a kind may have one in common.
    """
    departures = before * (rest.cross - times(rest.gram, mean))
    learnt = before * np.diagonal(rest.gram, axis1=1, axis2=2)
    variance, price = before.copy(), 0.0
    for family in moments.families:
        for group in [family] if shared else family[:, None]:
            if before[group[0]] > 0:
                degrees = max(float(learnt[:, group].sum()), FEWEST_DEGREES)
                size = max(float((departures[:, group] ** 2).sum()), ROUNDING)
                variance[group] = np.clip(size / degrees, ROUNDING, LARGEST_VARIANCE)
                # A direction has as many numbers as there are slopes.
                numbers = (moments.kinds == LINEAR).sum() if moments.kinds[group[0]] == DIRECTION else 1
                price += numbers * charge(learnt[:, group])
    return variance, price


def squared_residuals(
    moments: Moments, rest: Integrated, tau: Array, v: Array, R: Array, centre: Centres
) -> Array:
    """Return the expected sum (L,) of squared residuals of each learner's rows, from sums alone.

    ``tau`` (L,) are noise precisions, ``v`` (d,) variances of own departures, ``R`` (L, K) probabilities of
    clusters, ``centre`` the clusters' lines. All uncertainty of lines and departures is part of it.
    """
    L, d = rest.cross.shape
    seconds = second_moments(centre)
    scaled = rest.cross * v
    gone = scaled * (tau[:, None] * moments.cross + rest.cross)
    trace = (np.diagonal(rest.gram, axis1=1, axis2=2) * v).sum(axis=1)
    left = np.empty(L)
    for block in _blocks(L, d):
        A = rest.gram[block]
        H, h = A, rest.cross[block]
        if v.any():
            H, h = A - (A * v) @ A, h - times(A, scaled[block])
        fitted = H.reshape(len(A), -1) @ seconds.T - 2 * h @ centre.means.T
        left[block] = (R[block] * fitted).sum(axis=1)
    # What was left out so far, in units of noise: y'y and the part of the departures.
    left += tau * moments.square - gone.sum(axis=1) + trace
    return np.maximum(left / tau, LEAST_NOISE * moments.n_rows)


def second_moments(centre: Centres | Mixture) -> Array:
    """Return E[beta beta'] of each cluster's coefficients, each as one row."""
    m = centre.means
    return np.asarray((m[:, :, None] * m[:, None, :] + centre.covariances).reshape(len(m), -1))


def gamma_prior(mean: Array, mean_log: Array) -> tuple[float, float]:
    """Return the shape and rate under which precisions with these expectations are likeliest.

    The Gamma prior is what learners' noise precisions have in common. ``mean`` (L,) are their expectations,
    ``mean_log`` (L,) those of their logarithms. Of fewer than three learners only the mean is learnt.
    """
    if len(mean) < 3:
        return 1.0, 1.0 / float(mean.mean())
    c = max(float(np.log(mean.mean()) - mean_log.mean()), 1e-3)
    # A start that is right for large shapes.
    shape = 0.5 / c
    for _ in range(6):  # Minka's generalised Newton steps
        slope = -c + np.log(shape) - digamma(shape)
        shape = 1 / (1 / shape + slope / (shape - shape * shape * polygamma(1, shape)))
    shape = float(np.clip(shape, 0.3, 300.0))
    return shape, shape / float(mean.mean())


class Noise:
    """The noise precisions tau of all learners, and the Gamma prior that they share.

    ``mean_log`` (L,) are expectations of log tau, ``prior`` is the prior's shape and rate, and
    ``divergence`` (L,) what departing from the prior costs each learner in the bound, in nats.
    """

    def __init__(self, moments: Moments, tau: Array) -> None:
        self.moments, self.tau, self.mean_log = moments, tau, np.log(tau)
        self.prior = 1.0, 1.0 / float(tau.mean())
        self.divergence = np.zeros(len(tau))

    def update(self, squares: Array) -> None:
        """Learn the precisions, and the prior from them, from expected sums (L,) of squared residuals.

        ``tau``, ``mean_log``, ``prior`` and ``divergence`` change in place.
        """
        half = self.moments.n_rows / 2
        # Twice: the second time under the prior that the first one's precisions make likeliest.
        for final in (False, True):
            shape, rate = self.prior
            shapes, rates = shape + half, rate + squares / 2
            self.tau, self.mean_log = shapes / rates, digamma(shapes) - np.log(rates)
            if not final:
                self.prior = gamma_prior(self.tau, self.mean_log)
        self.divergence = (
            half * digamma(shapes)
            - gammaln(shapes)
            + gammaln(shape)
            + shape * (np.log(rates) - np.log(rate))
            + shapes * (rate - rates) / rates
        )

    @property
    def evidence(self) -> float:
        """What the noise adds to the bound."""
        if self.moments.unit_noise:
            return 0.0
        rows = self.moments.n_rows * (self.mean_log - np.log(2 * np.pi)) - self.tau * self.moments.square
        return float((0.5 * rows - self.divergence).sum())


def improve(moments: Moments, start: State, forms: Forms = PLAIN, *, rounds: int | None = None) -> Mixture:
    """Update each part in turn until the bound settles, or for a number of rounds.

    This is variational Bayes: probabilities of labels, lines of clusters, variances and noise are each made
    the best for the others as they are. The bound of the log likelihood says how good the whole is.
    """
    L, d = moments.cross.shape
    # R (L, K) has probabilities of clusters; T and v (d,) are variances of d_k and of own departures.
    R, T, v, precision, _ = start
    K, rounds = R.shape[1], RULES.long_rounds if rounds is None else rounds
    groups = _groups(moments, shared_slopes=forms.shared_relevance)
    noise, last, price, own_price = Noise(moments, start.noise_precision), -np.inf, 0.0, 0.0
    rest = without_own(moments, noise.tau, v)
    for step in range(rounds):
        flat = rest.gram.reshape(L, -1)
        centre = centres((R.T @ flat).reshape(K, d, d), R.T @ rest.cross, T, precision)
        counts = 1 + R.sum(axis=0)
        towards = digamma(counts) - digamma(counts.sum())
        evidence = noise.evidence + rest.gained.sum() + centre.evidence + _of_labels(R, towards, counts)
        # The prices are what learning variances costs, in nats: see `charge`.
        bound = float(evidence - price - own_price)
        result = State(R, T, v, precision, noise.tau)
        if step > 5 and abs(bound - last) < RULES.tolerance:
            break
        last = bound
        if K > 1:
            R = _softmax(rest.cross @ centre.means.T - 0.5 * flat @ second_moments(centre).T + towards)
        # The first round makes labels only, with the variances and the noise of the start.
        if step == 0 or not forms.learn:
            continue
        if K > 1:
            T, price = cluster_relevance(centre, groups)
        precision = common_precision(centre, moments, precision)
        before = v
        if v.any():
            v, own_price = own_variance(rest, R @ centre.means, moments, v, shared=forms.shared_spread)
        if not moments.unit_noise:
            noise.update(squared_residuals(moments, rest, noise.tau, before, R, centre))
        rest = without_own(moments, noise.tau, v)
    occupied = int((result.responsibilities.max(axis=0) > 0.5).sum())
    return Mixture(result, bound, centre.means, centre.covariances, centre.common, occupied)
