"""The shared predictors: resolution by family, plain and centred, fitted on some rows and asked about others.

Plain models predict y from x among the members of a cluster. Centred ones predict how far y is from its
learner's mean: levels that differ between members then need no explaining by x, which matters where members
are few or levels far apart. All resolutions have centred models; the chosen clusters and all together have
plain ones as well. Flexible models of all together are fitted once more with the learners' traits as
predictors, and once more to y less the levels that the predictors do not explain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from coterie._seeds import generator_for, integer_seed, seeded_copy
from coterie.collaboration.nested.families import Family, with_more_trees
from coterie.collaboration.nested.guard import guarded, widened
from coterie.collaboration.nested.levels import unexplained_levels
from coterie.collaboration.nested.linear import Moments
from coterie.collaboration.nested.traits import traits_of, with_traits
from coterie.engines import Engine
from coterie.method.fitting import fit_model, quiet_fits
from coterie.rows.learners import Learners

Array = NDArray[Any]
_Key = tuple[bytes, str, str, bool]


@dataclass(frozen=True)
class Entry:
    """A shared predictor of the dictionary.

    Parameters
    ----------
    count : int
        Number of clusters; one: all together.
    family : Family
        What its clusters fit.
    centred : bool
        Whether y is measured from its learner's mean.
    ridge : float, default=0.0
        Penalty of the linear family.
    told : bool, default=False
        Whether models are told the traits of the learner that a row belongs to.
    levelled : bool, default=False
        Whether y is measured from its learner's level that the predictors do not explain.
    """

    count: int
    family: Family
    centred: bool
    ridge: float = 0.0
    told: bool = False
    levelled: bool = False

    @property
    def form(self) -> str:
        """What y is measured from."""
        return "levelled" if self.levelled else "centred" if self.centred else "plain"


@dataclass(frozen=True)
class FittedEntry:
    """A shared predictor, fitted.

    Parameters
    ----------
    labels : ndarray of shape (L,)
        Cluster of each learner.
    models : tuple of estimators
        One per cluster.
    bounds : ndarray of shape (K, 2)
        What each model's predictions are clipped to.
    levels : ndarray of shape (L,)
        What each learner adds: its mean, where models are centred.
    traits : ndarray of shape (L, T) or None, default=None
        Of each learner, where models are told.
    """

    labels: Array
    models: tuple[Any, ...]
    bounds: Array
    levels: Array
    traits: Array | None = None

    def predict(self, X: Array, owner: Array) -> Array:
        """Predict rows of shape (n, p) that belong to the learners ``owner``."""
        prediction = np.empty(len(X))
        clusters = self.labels[owner]
        if self.traits is not None:
            X = with_traits(X, self.traits, owner)
        for k in np.unique(clusters):
            mine = clusters == k
            prediction[mine] = guarded(self.models[k], X[mine], self.bounds[k])
        return prediction + self.levels[owner]


@dataclass(frozen=True)
class _ClusterFit:
    candidate: BaseEstimator
    X: Array
    y: Array
    weights: Array | None
    seed: int


def _constant(level: float, n_features: int) -> Any:
    from sklearn.linear_model import LinearRegression

    model = LinearRegression()
    model.coef_, model.intercept_, model.n_features_in_ = np.zeros(n_features), level, n_features
    return model


def _fit_cluster(job: _ClusterFit) -> Any:
    try:
        return fit_model(seeded_copy(job.candidate, job.seed), job.X, job.y, job.weights)
    except Exception:  # a family may fail on few rows: the mean stands in, and weighs what it deserves
        return _constant(float(job.y.mean()), job.X.shape[1])


def _key(members: Array, entry: Entry) -> _Key:
    return members.tobytes(), entry.family.name, entry.form, entry.told


def _thinned(rows: Array, most: int | None) -> Array:
    if most is None or len(rows) <= most:
        return rows
    thinned: Array = rows[np.linspace(0, len(rows) - 1, most).astype(int)]
    return thinned


def _flexible_fits(
    entries: Sequence[Entry],
    learners: Learners,
    labels: Mapping[int, Array],
    targets: Mapping[str, Array],
    traits: Array | None,
    entropy: int,
    engine: Engine,
    most_rows: int | None,
) -> dict[_Key, Any]:
    """Fit every distinct set of members once per family and form."""
    jobs: dict[_Key, _ClusterFit] = {}
    for entry in entries:
        assert entry.family.candidate is not None
        for k in range(int(labels[entry.count].max()) + 1):
            members = labels[entry.count] == k
            key = _key(members, entry)
            if key in jobs or not members.any():
                continue
            rows = _thinned(np.flatnonzero(members[learners.owner]), most_rows)
            first = learners.ids[np.flatnonzero(members)[0]]
            seed = integer_seed(generator_for(entropy, f"coterie of {first}"))
            weights = None if learners.weights is None else learners.weights[rows]
            y = targets[entry.form][rows]
            candidate = entry.family.candidate
            if most_rows is None:
                candidate = with_more_trees(candidate)
            X = learners.X[rows]
            if entry.told:
                assert traits is not None
                X = with_traits(X, traits, learners.owner[rows])
            jobs[key] = _ClusterFit(candidate, X, y, weights, seed)
    with quiet_fits():
        return dict(zip(jobs, engine.map(_fit_cluster, list(jobs.values())), strict=True))


def _ranges(values: Array, labels: Array, owner: Array) -> Array:
    """Return the range of row values in each cluster, widened; zero where a cluster is empty."""
    bounds = np.zeros((int(labels.max()) + 1, 2))
    for k in np.unique(labels):
        bounds[k] = widened(values[labels[owner] == k])
    return bounds


def fit_entries(
    entries: Sequence[Entry],
    learners: Learners,
    labels: Mapping[int, Array],
    moments: Moments,
    *,
    entropy: int,
    engine: Engine,
    most_rows: int | None = None,
) -> list[FittedEntry]:
    """Fit shared predictors.

    Parameters
    ----------
    entries : sequence of Entry
        What to fit.
    learners : Learners
        On whose rows.
    labels : mapping of int to ndarray of shape (L,)
        Cluster of each learner for every number of clusters.
    moments : Moments
        Of these rows, for the linear family.
    entropy : int
        Seed.
    engine : Engine
        Who fits.
    most_rows : int or None, default=None
        Rows of a fit at most; None: all, for models that stay.

    Returns
    -------
    list of FittedEntry
        In the order of ``entries``.
    """
    flexible = [entry for entry in entries if entry.family.candidate is not None]
    added = {"plain": np.zeros(len(learners)), "centred": learners.mean_by_learner(learners.y)}
    if any(entry.levelled for entry in flexible):
        added["levelled"] = unexplained_levels(learners)
    targets = {form: learners.y - levels[learners.owner] for form, levels in added.items()}
    forms = {False: moments, True: moments.centred()}
    traits = traits_of(learners, forms[True]) if any(entry.told for entry in flexible) else None
    models = _flexible_fits(flexible, learners, labels, targets, traits, entropy, engine, most_rows)
    fitted = []
    for entry in entries:
        own = labels[entry.count]
        clusters = [own == k for k in range(int(own.max()) + 1)]
        if entry.family.candidate is not None:
            mine = [models.get(_key(members, entry)) for members in clusters]
            bounds = _ranges(targets[entry.form], own, learners.owner)
            told = traits if entry.told else None
            fitted.append(FittedEntry(own, tuple(mine), bounds, added[entry.form], told))
            continue
        form = forms[entry.centred]
        vectors = [form.solve(members, entry.ridge) for members in clusters]
        linear = tuple(form.as_model(vector, centred=entry.centred) for vector in vectors)
        if not entry.centred:
            bounds = _ranges(learners.y, own, learners.owner)
            fitted.append(FittedEntry(own, linear, bounds, np.zeros(len(learners))))
            continue
        values = np.empty(len(learners.y))
        for k, model in enumerate(linear):
            rows = clusters[k][learners.owner]
            values[rows] = learners.X[rows] @ model.coef_ + model.intercept_
        levels = learners.mean_by_learner(learners.y - values)
        fitted.append(FittedEntry(own, linear, _ranges(values, own, learners.owner), levels))
    return fitted
