"""How many clusters: the smallest K that no other beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coterie._arrays import Array
from coterie.method.likelihood.bound import Forms, Mixture, Moments, State, improve, times, without_own
from coterie.method.likelihood.features import make_features
from coterie.method.likelihood.moments import (
    Rows,
    add_up,
    first_precisions,
    one_cluster,
    starting_variances,
)
from coterie.method.likelihood.rules import RULES
from coterie.method.likelihood.starts import Tree, merge

FREE = Forms(own_prior=RULES.own_prior_free)
TIED, BY_COORDINATE = Forms(shared_relevance=True), Forms()


class CountedCalls(NamedTuple):
    """The mixtures that were found, by their number of clusters, and the number that was chosen."""

    mixtures: dict[int, Mixture]
    chosen: int

    @property
    def best(self) -> Mixture:
        """The chosen mixture."""
        return self.mixtures[self.chosen]

    @property
    def labels(self) -> Array:
        """The likeliest cluster of each learner."""
        return labels_of(self.best)


def labels_of(mixture: Mixture) -> Array:
    """Return the likeliest cluster of each learner, numbered from zero without gaps."""
    likeliest = mixture.state.responsibilities.argmax(axis=1)
    return np.unique(likeliest, return_inverse=True)[1]


def _softened(labels: Array, K: int) -> Array:
    return np.asarray(RULES.start_label * np.eye(K)[labels] + (1 - RULES.start_label) / K)


def _best(mixtures: Sequence[Mixture]) -> Mixture:
    return max(mixtures, key=lambda m: m.bound)


class Search:
    """The search for K, from moments alone."""

    def __init__(self, moments: Moments, most: int, extra: Sequence[Array] = ()) -> None:
        self.moments, self.most, self.extra = moments, most, extra
        self.few = len(moments.kinds) <= RULES.many_coordinates
        own = starting_variances(moments)
        tau = first_precisions(moments)
        self.ones = {name: improve(moments, one_cluster(moments, v, tau)) for name, v in own.items()}
        best = self.ones["all"].state
        self.tau = best.noise_precision
        again = improve(moments, one_cluster(moments, own["none"], self.tau))
        self.ones["none"] = _best([self.ones["none"], again])
        free = one_cluster(moments, best.own_variance, self.tau)
        self.ones["free"] = improve(moments, free, FREE, rounds=150)
        self.single = _best(list(self.ones.values()))
        self.slopes_vary = self._beats_level("all")

    def _beats_level(self, form: str) -> bool:
        return self.ones[form].bound > self.ones["level"].bound + RULES.form

    def _usual(self) -> float:
        gram = (self.moments.gram * self.tau[:, None, None]).mean(axis=0)
        return len(gram) / float(np.trace(gram))

    def _start(self, labels: Array, K: int, own: Array, cluster: Array) -> State:
        precision = self.single.state.common_precision
        return State(_softened(labels, K), cluster, own, precision, self.tau)

    def _tree(self, own: Array) -> Tree:
        all_learners = self.ones["all"]
        cluster = np.maximum(all_learners.state.own_variance, RULES.start_cluster * self._usual())
        rest = without_own(self.moments, self.tau, own)
        left = rest.cross - rest.gram @ all_learners.common
        return Tree(merge(rest.gram, left, cluster), own, cluster)

    def trees(self) -> list[Tree]:
        """Return the trees of merged learners, for each form of own departures that may matter."""
        level = self.ones["level"].state.own_variance
        forms = [("none", np.zeros_like(level)), ("level", level)]
        if not self.few:
            forms = [max(forms, key=lambda form: self.ones[form[0]].bound)]
        starts = [v for _, v in forms]
        if self.slopes_vary and self.few:
            # Clusters with a spread inside: a part of the spread of all is the clusters' own.
            starts += [self.ones["all"].state.own_variance / part for part in (4.0, 40.0)]
        return [self._tree(v) for v in starts]

    def _short(self, trees: Sequence[Tree], K: int) -> list[Mixture]:
        forms = (TIED, BY_COORDINATE) if self.few else (TIED,)
        result = []
        for tree in trees:
            for labels in [tree.labels[K], *[e for e in self.extra if e.max() + 1 == K]]:
                start = self._start(labels, K, tree.own_variance, tree.cluster_variance)
                result += [improve(self.moments, start, f, rounds=RULES.short_rounds) for f in forms]
        return result

    def _merged(self, larger: Mixture, K: int) -> list[Mixture]:
        """Merge two of K + 1 clusters, and start from there."""
        state = larger.state
        tau = state.noise_precision
        gram = self.moments.gram * tau[:, None, None]
        left = tau[:, None] * (self.moments.cross - self.moments.gram @ larger.common)
        R = state.responsibilities
        clusters = (R.T @ gram.reshape(len(R), -1)).reshape(-1, *gram.shape[1:])
        labels = merge(clusters, R.T @ left, state.cluster_variance)[K][R.argmax(axis=1)]
        start = state._replace(responsibilities=_softened(labels, K))
        return [improve(self.moments, start, form) for form in (TIED, BY_COORDINATE)]

    def _finished(self, short: list[Mixture], larger: Mixture | None, K: int) -> Mixture:
        moments, result = self.moments, []
        for mixture in sorted(short, key=lambda m: -m.bound)[:2]:
            result += [improve(moments, mixture.state, form) for form in (TIED, BY_COORDINATE)]
        best = _best(result).state
        if (best.own_variance > 3e-12).any():
            result.append(improve(moments, best, FREE, rounds=100))
        elif self._beats_level("free"):
            free = self.ones["free"].state.own_variance / 3
            result.append(improve(moments, best._replace(own_variance=free), FREE, rounds=100))
        if larger is not None and larger.occupied == K + 1:
            result += self._merged(larger, K)
        if self.slopes_vary:
            all_learners = self.ones["all"].state.own_variance / 3
            result.append(improve(moments, _best(result).state._replace(own_variance=all_learners)))
        if not self.few:
            best = _best(result).state
            other = self.ones["none" if best.own_variance.any() else "level"].state.own_variance
            result.append(improve(moments, best._replace(own_variance=other), rounds=30))
        return _best(result)

    def run(self) -> CountedCalls:
        """Return the best mixture of each K, and the smallest K that no other beats."""
        result = {1: self.single}
        trees = self.trees() if self.most > 1 else []
        short = {K: self._short(trees, K) for K in range(self.most, 1, -1)}
        top = max([self.single.bound, *[m.bound for runs in short.values() for m in runs]])
        for K, runs in short.items():
            best = _best(runs)
            hopeless = best.bound < top - RULES.hopeless
            result[K] = best if hopeless else self._finished(runs, result.get(K + 1), K)
        result = {K: m for K, m in result.items() if m.occupied == K}
        top = max(m.bound for m in result.values())
        chosen = min(K for K, m in result.items() if m.bound >= top - RULES.nats)
        return CountedCalls(dict(sorted(result.items())), chosen)

    def probe(self) -> Mixture:
        """Return the best of one cluster and of the labels given, after short runs."""
        start = starting_variances(self.moments)["level"]
        cluster = np.full(len(start), RULES.start_own * self._usual())
        result = [self.single]
        for labels in self.extra:
            state = self._start(labels, int(labels.max()) + 1, start, cluster)
            result.append(improve(self.moments, state, rounds=RULES.short_rounds))
        return _best(result)


def count(rows_of: tuple[Array, Array, Array], most: int) -> tuple[CountedCalls, Moments]:
    """Lines first; curved features where they win on the same rows and weights."""
    X, y, offsets = rows_of
    lines, w = add_up(Rows(make_features(X, curved=False), y, offsets))
    result = Search(lines, most).run()
    extra = [result.labels] if result.labels.max() else []
    curved, w = add_up(Rows(make_features(X, curved=True), y, offsets))
    search = Search(curved, min(most, 12), extra)
    if search.probe().bound < result.best.bound + RULES.curved:
        return result, lines
    bent = search.run()
    if bent.best.bound < result.best.bound + RULES.curved:
        return result, lines
    same = Search(add_up(Rows(make_features(X, curved=False), y, offsets), w)[0], most).run()
    return (bent, curved) if bent.best.bound > same.best.bound + RULES.form else (result, lines)
