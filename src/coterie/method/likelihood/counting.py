"""How many clusters: the smallest K that no other beats.

Starts come from merging learners. A short run of each start finds a labelling; empty clusters are dropped,
and each distinct labelling that is not hopeless is finished in all forms of T and Omega.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from coterie._arrays import Array
from coterie.method.likelihood.bound import Forms, Mixture, Moments, State, improve, times, without_own
from coterie.method.likelihood.features import LINEAR, make_features
from coterie.method.likelihood.moments import (
    Added,
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
    """The mixtures that were found, by their number of clusters, and the number that was chosen.

    ``surely`` says by how many standard errors the chosen number predicts rows left out better than one does.
    """

    mixtures: dict[int, Mixture]
    chosen: int
    surely: float = 0.0

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


def _softened(labels: Array) -> Array:
    # Probabilities (L, K) close to the labels, so that no other label is impossible from the start.
    K = int(labels.max()) + 1
    return np.asarray(RULES.start_label * np.eye(K)[labels] + (1 - RULES.start_label) / K)


def left_out_loss(mixture: Mixture, halves: tuple[Moments, Moments]) -> Array:
    """Return each learner's squared error on one half of its rows, in units of noise, by the other half.

    Labels and lines are found on one half only; variances are those of the mixture. The result (L,) is the
    sum over both halves, so that the rows that judge have chosen neither label nor line.
    """
    state, loss = mixture.state, np.zeros(len(halves[0].n_rows))
    for seen, unseen in (halves, halves[::-1]):
        rest = without_own(seen, state.noise_precision, state.own_variance)
        start = state
        if len(mixture.means) > 1:
            left = rest.cross - rest.gram @ mixture.common
            labels = merge(rest.gram, left, state.cluster_variance)[len(mixture.means)]
            start = state._replace(responsibilities=_softened(labels))
        result = improve(seen, start, Forms(learn=False), rounds=RULES.short_rounds)
        lines = result.state.responsibilities @ result.means
        lines += state.own_variance * (rest.cross - times(rest.gram, lines))
        squares = unseen.square + ((times(unseen.gram, lines) - 2 * unseen.cross) * lines).sum(axis=1)
        loss += state.noise_precision * squares
    return loss


class Search:
    """The search for K, from moments alone. ``extra`` are labellings to start from, too."""

    def __init__(self, added: Added, most: int, extra: Sequence[Array] = ()) -> None:
        # One cluster in three forms of the own departures: of the level only, one variance for a kind of
        # columns, one for each column. The best is `single`, against which more clusters must win.
        moments = added.moments
        self.moments, self.halves, self.most, self.extra = moments, added.halves, most, extra
        own, tau = starting_variances(moments), first_precisions(moments)
        self.everybody = improve(moments, one_cluster(moments, own["all"], tau))
        self.tau = self.everybody.state.noise_precision
        self.level = improve(moments, one_cluster(moments, own["level"], self.tau))
        start = one_cluster(moments, self.everybody.state.own_variance, self.tau)
        self.by_coordinate = improve(moments, start, BY_COORDINATE)
        self.single = _best([self.level, self.everybody, self.by_coordinate])
        self.spread = self.single is not self.level

    def directed(self) -> tuple[Mixture, Moments]:
        """One cluster whose learners differ along one direction most, and the moments with that direction.

        Gradual differences along one line can look like clusters; so this is the rival of several. It
        is the single cluster as it is where there is no spread, or where the direction explains no more.
        """
        moments, state = self.moments, self.everybody.state
        linear = moments.kinds == LINEAR
        if not self.spread or linear.sum() < 2:
            return self.single, moments
        departures = state.own_variance * (moments.cross - moments.gram @ self.everybody.common)
        # The first right singular vector: the direction in which departures are largest.
        direction = np.linalg.svd(np.where(linear, departures, 0.0), full_matrices=False)[2][0]
        moments = moments.with_direction(direction)
        own = np.r_[state.own_variance, state.own_variance[linear].sum()]
        result = [
            improve(moments, one_cluster(moments, own, self.tau), Forms(False, form))
            for form in (True, False)
        ]
        better = _best(result).bound > self.single.bound + RULES.nats
        return (_best(result), moments) if better else (self.single, self.moments)

    @property
    def _usual(self) -> float:
        """The average learner's variance of estimation."""
        gram = (self.moments.gram * self.tau[:, None, None]).mean(axis=0)
        return len(gram) / float(np.trace(gram))

    def _start(self, labels: Array, own: Array, cluster: Array) -> State:
        # A start from labels (L,), with variances (d,) of own departures and of clusters.
        return State(_softened(labels), cluster, own, self.single.state.common_precision, self.tau)

    def _tree(self, own: Array) -> Tree:
        # Merge learners into ever fewer clusters, where their own departures have the variance `own` (d,).
        spread = self.everybody.state.own_variance
        cluster = np.maximum(spread, RULES.start_cluster * self._usual)
        rest = without_own(self.moments, self.tau, own)
        left = rest.cross - rest.gram @ self.everybody.common
        return Tree(merge(rest.gram, left, cluster), own, cluster)

    def _starts(self) -> Iterator[State]:
        # Learners of a cluster share a line up to the level; or, where learners spread, up to departures.
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
        """Return the distinct labellings that short runs find, each with its bound and its state.

        The key is the labels of all learners. Columns of clusters that are nobody's likeliest are dropped.
        """
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
        """Merge the clusters of a labelling one by one, and yield a start for each number down to two."""
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
        # Long runs from a state, in all forms of the clusters' and the own variances: the best counts.
        result = [improve(self.moments, state, Forms(shared_relevance=shared)) for shared in (True, False)]
        if self.spread:
            shared = result[0].bound > result[1].bound
            for single, form in ((self.everybody, True), (self.by_coordinate, False)):
                start = state._replace(own_variance=single.state.own_variance / RULES.part)
                result.append(improve(self.moments, start, Forms(shared, form)))
        return _best(result)

    def run(self) -> CountedCalls:
        """Return the best mixture of each K, and the smallest K that no other beats.

        Short runs find labellings, also from the best one's clusters merged. Of each K the two best are
        finished by long runs, unless hopelessly behind; a run that loses a cluster does not count for K.
        """
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
        return self._smallest_unbeaten(dict(sorted(result.items())))

    def _smallest_unbeaten(self, mixtures: dict[int, Mixture]) -> CountedCalls:
        """Choose the smallest K that no other beats by nats without being worse on rows left out.

        Where the model is wrong, bounds grow with the rows: then only rows left out tell. ``mixtures`` are by
        number of clusters, the smallest first.
        """
        losses: dict[int, Array] = {}

        def gain(k: int, K: int) -> float:
            """Return by how many standard errors k predicts rows left out better than K."""
            for each in {k, K} - set(losses):
                losses[each] = left_out_loss(mixtures[each], self.halves)
            better = losses[K] - losses[k]
            error = float(better.std()) * np.sqrt(len(better))
            return float(better.sum()) / error if error > 0 else 0.0

        def beaten(K: int) -> bool:
            # A rival must lead in the bound, and may not be worse on rows left out by a standard error.
            ahead = [k for k, m in mixtures.items() if m.bound > mixtures[K].bound + RULES.nats]
            return any(gain(k, K) > -RULES.worse for k in sorted(ahead, key=lambda k: -mixtures[k].bound))

        chosen = next(K for K in mixtures if not beaten(K))
        return CountedCalls(mixtures, chosen, gain(chosen, 1) if chosen > 1 else 0.0)

    def given(self, found: CountedCalls, K: int) -> CountedCalls:
        """Return the best mixture of a given number of clusters, whatever the bounds say.

        If the search found none of K clusters, one is made from merged learners.
        """
        mixtures = dict(found.mixtures)
        if K not in mixtures:
            tree = self._tree(self.level.state.own_variance)
            start = self._start(tree.labels[K], tree.own_variance, tree.cluster_variance)
            runs = [improve(self.moments, start, rounds=n) for n in (RULES.long_rounds, 1)]
            # The first round's labels are those of the start.
            mixtures[K] = next((m for m in runs if m.occupied == K), runs[-1])
        return CountedCalls(dict(sorted(mixtures.items())), K)

    def probe(self) -> Mixture:
        """Return the best of one cluster and of the labels given, after short runs.

        This cheap look decides whether a whole search with these features can pay.
        """
        cluster = np.full(len(self.moments.kinds), RULES.start_own * self._usual)
        starts = [self._start(labels, self.level.state.own_variance, cluster) for labels in self.extra]
        return _best([self.single, *(improve(self.moments, s, rounds=RULES.short_rounds) for s in starts)])


class Answered(NamedTuple):
    """What was found, in which moments, and by how much K = 1 with a spread beats K = 1 without one."""

    counted: CountedCalls
    moments: Moments
    spread: float


def _answered(search: Search, found: CountedCalls, given: int | None) -> Answered:
    """Let one cluster with a direction stand for one cluster, and decide where it is far ahead.

    A direction is the line in slopes along which learners differ most, gradually instead of in clusters.
    Two truths differ along one direction, too. So it does not win by a few nats; it makes an answer unclear.
    """
    one, moments = search.directed()
    ahead = given is None and one.bound > found.best.bound + RULES.undecided
    found = found._replace(mixtures={**found.mixtures, 1: one}, chosen=1 if ahead else found.chosen)
    known = moments if found.chosen == 1 else search.moments
    return Answered(found, known, one.bound - search.level.bound)


def count_rows(
    X: Array,
    y: Array,
    offsets: Array,
    most: int,
    *,
    weights: Array | None = None,
    given: int | None = None,
    extra: Sequence[Array] = (),
    in_order: bool = False,
) -> Answered:
    """Search lines first, then curved features; these are taken where they win on the same rows and weights.

    ``y`` (N,) is standardised, ``offsets`` (L + 1,) are where learners' rows begin and end, and ``most`` is
    the largest number of clusters. With ``given`` the number of clusters is not searched for. ``extra`` are
    labellings to start from, too. Curves have robust weights of their own, so that lines are searched again
    with these before they lose: bounds can be compared on the same weights only.
    """

    def searched(search: Search) -> CountedCalls:
        result = search.run()
        return result if given is None else search.given(result, given)

    straight = Rows(make_features(X, curved=False), y, offsets, weights)
    search = Search(add_up(straight, in_order=in_order), most, extra)
    result = searched(search)
    bent = Rows(make_features(X, curved=True), y, offsets, weights)
    added = add_up(bent, in_order=in_order)
    labels = [result.labels] if result.chosen > 1 else []
    curved = Search(added, min(most, RULES.most_of_curves), labels)
    if curved.probe().bound < result.best.bound + RULES.curved:
        return _answered(search, result, given)
    other = searched(curved)
    if other.best.bound < result.best.bound + RULES.curved:
        return _answered(search, result, given)
    same = searched(Search(add_up(straight, added.weights, in_order=in_order), most, extra))
    better = other.best.bound > same.best.bound + RULES.nats
    return _answered(curved, other, given) if better else _answered(search, result, given)
