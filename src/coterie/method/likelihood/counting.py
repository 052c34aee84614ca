"""How many clusters: the smallest K that no other beats.

Starts come from merging learners. A short run of each start finds a labelling; empty clusters are dropped,
and each distinct labelling that is not hopeless is finished in all forms of T and Omega.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coterie._arrays import Array
from coterie.method.likelihood.bound import Forms, Mixture, Moments, State, improve, without_own
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

BY_COORDINATE = Forms(shared_spread=False)


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
        return labels_of(self.best.state.responsibilities)


def labels_of(R: Array) -> Array:
    """Return the likeliest cluster of each learner, numbered in order of appearance."""
    _, first, labels = np.unique(R.argmax(axis=1), return_index=True, return_inverse=True)
    return np.asarray(np.argsort(np.argsort(first))[labels])


def _best(mixtures: Sequence[Mixture]) -> Mixture:
    return max(mixtures, key=lambda m: m.bound)


class Search:
    """The search for K, from moments alone. ``extra`` are labellings to start from, too."""

    def __init__(self, moments: Moments, most: int, extra: Sequence[Array] = ()) -> None:
        self.moments, self.most, self.extra = moments, most, extra
        own, tau = starting_variances(moments), first_precisions(moments)
        self.everybody = improve(moments, one_cluster(moments, own["all"], tau))
        self.tau = self.everybody.state.noise_precision
        self.level = improve(moments, one_cluster(moments, own["level"], self.tau))
        start = one_cluster(moments, self.everybody.state.own_variance, self.tau)
        self.by_coordinate = improve(moments, start, BY_COORDINATE)
        self.single = _best([self.level, self.everybody, self.by_coordinate])
        self.spread = self.single is not self.level

    @property
    def _usual(self) -> float:
        """The average learner's variance of estimation."""
        gram = (self.moments.gram * self.tau[:, None, None]).mean(axis=0)
        return len(gram) / float(np.trace(gram))

    def _start(self, labels: Array, own: Array, cluster: Array) -> State:
        K = int(labels.max()) + 1
        R = RULES.start_label * np.eye(K)[labels] + (1 - RULES.start_label) / K
        return State(R, cluster, own, self.single.state.common_precision, self.tau)

    def _tree(self, own: Array) -> Tree:
        spread = self.everybody.state.own_variance
        cluster = np.maximum(spread, RULES.start_cluster * self._usual)
        rest = without_own(self.moments, self.tau, own)
        left = rest.cross - rest.gram @ self.everybody.common
        return Tree(merge(rest.gram, left, cluster), own, cluster)

    def _starts(self) -> Iterator[State]:
        forms = [self.level.state.own_variance]
        if self.spread:
            # Clusters with a spread inside: a part of the spread of all is the clusters' own.
            forms.append(self.everybody.state.own_variance / RULES.part)
        for own in forms:
            tree = self._tree(own)
            for K in range(self.most, 1, -1):
                yield self._start(tree.labels[K], own, tree.cluster_variance)
            for labels in self.extra:
                yield self._start(labels, own, tree.cluster_variance)

    def _short_runs(self, starts: Iterator[State]) -> dict[tuple[int, ...], tuple[float, State]]:
        """Return the distinct labellings that short runs find, each with its bound and its state."""
        result: dict[tuple[int, ...], tuple[float, State]] = {}
        for start in starts:
            mixture = improve(self.moments, start, rounds=RULES.short_rounds)
            R = mixture.state.responsibilities
            labels = labels_of(R)
            K = int(labels.max()) + 1
            key = tuple(labels.tolist())
            if K > 1 and (key not in result or mixture.bound > result[key][0]):
                R = R[:, np.unique(R.argmax(axis=1))]
                R = R / R.sum(axis=1, keepdims=True)
                result[key] = mixture.bound, mixture.state._replace(responsibilities=R)
        return result

    def _merged(self, state: State) -> Iterator[State]:
        """Merge the clusters of a labelling one by one, and start from there."""
        labels = state.responsibilities.argmax(axis=1)
        K = int(labels.max()) + 1
        rest = without_own(self.moments, state.noise_precision, state.own_variance)
        left = rest.cross - rest.gram @ self.everybody.common
        R = np.eye(K)[labels]
        clusters = (R.T @ rest.gram.reshape(len(R), -1)).reshape(K, *rest.gram.shape[1:])
        if K > 2:
            fewer = merge(clusters, R.T @ left, state.cluster_variance)
            for k in range(K - 1, 1, -1):
                yield self._start(fewer[k][labels], state.own_variance, state.cluster_variance)

    def _finished(self, state: State) -> Mixture:
        result = [improve(self.moments, state, Forms(shared_relevance=shared)) for shared in (True, False)]
        if self.spread:
            shared = result[0].bound > result[1].bound
            for single, form in ((self.everybody, True), (self.by_coordinate, False)):
                start = state._replace(own_variance=single.state.own_variance / RULES.part)
                result.append(improve(self.moments, start, Forms(shared, form)))
        return _best(result)

    def run(self) -> CountedCalls:
        """Return the best mixture of each K, and the smallest K that no other beats."""
        result = {1: self.single}
        short = self._short_runs(self._starts() if self.most > 1 else iter(()))
        if short:
            best = max(short.values(), key=lambda run: run[0])[1]
            short |= {k: v for k, v in self._short_runs(self._merged(best)).items() if k not in short}
        by_count: dict[int, list[tuple[float, State]]] = {}
        for key, run in short.items():
            by_count.setdefault(max(key) + 1, []).append(run)
        top = max([self.single.bound, *(run[0] for run in short.values())])
        for K, runs in by_count.items():
            runs = sorted(runs, key=lambda run: -run[0])[:2]
            finished = [self._finished(state) for bound, state in runs if bound > top - RULES.hopeless]
            finished = [m for m in finished if m.occupied == K]
            if finished:
                result[K] = _best(finished)
        top = max(m.bound for m in result.values())
        chosen = min(K for K, m in result.items() if m.bound >= top - RULES.nats)
        return CountedCalls(dict(sorted(result.items())), chosen)

    def given(self, found: CountedCalls, K: int) -> CountedCalls:
        """Return the best mixture of a given number of clusters, whatever the bounds say."""
        mixtures = dict(found.mixtures)
        if K not in mixtures:
            tree = self._tree(self.level.state.own_variance)
            start = self._start(tree.labels[K], tree.own_variance, tree.cluster_variance)
            runs = [improve(self.moments, start, rounds=n) for n in (RULES.long_rounds, 1)]
            # The first round's labels are those of the start.
            mixtures[K] = next((m for m in runs if m.occupied == K), runs[-1])
        return CountedCalls(dict(sorted(mixtures.items())), K)

    def probe(self) -> Mixture:
        """Return the best of one cluster and of the labels given, after short runs."""
        cluster = np.full(len(self.moments.kinds), RULES.start_own * self._usual)
        starts = [self._start(labels, self.level.state.own_variance, cluster) for labels in self.extra]
        return _best([self.single, *(improve(self.moments, s, rounds=RULES.short_rounds) for s in starts)])


class Answered(NamedTuple):
    """What was found, in which moments, and by how much K = 1 with a spread beats K = 1 without one."""

    counted: CountedCalls
    moments: Moments
    spread: float


def _answered(search: Search, found: CountedCalls) -> Answered:
    return Answered(found, search.moments, search.single.bound - search.level.bound)


def count_rows(
    X: Array,
    y: Array,
    offsets: Array,
    most: int,
    *,
    weights: Array | None = None,
    given: int | None = None,
    extra: Sequence[Array] = (),
) -> Answered:
    """Search lines first, then curved features; these are taken where they win on the same rows and weights.

    ``y`` (N,) is standardised. With ``given`` the number of clusters is not searched for.
    """

    def searched(search: Search) -> CountedCalls:
        result = search.run()
        return result if given is None else search.given(result, given)

    straight = Rows(make_features(X, curved=False), y, offsets, weights)
    search = Search(add_up(straight)[0], most, extra)
    result = searched(search)
    bent = Rows(make_features(X, curved=True), y, offsets, weights)
    moments, robust = add_up(bent)
    labels = [result.labels] if result.chosen > 1 else []
    curved = Search(moments, min(most, RULES.most_of_curves), labels)
    if curved.probe().bound < result.best.bound + RULES.curved:
        return _answered(search, result)
    other = searched(curved)
    if other.best.bound < result.best.bound + RULES.curved:
        return _answered(search, result)
    same = searched(Search(add_up(straight, robust)[0], most, extra))
    better = other.best.bound > same.best.bound + RULES.nats
    return _answered(curved, other) if better else _answered(search, result)
