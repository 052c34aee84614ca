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

from coterie._arrays import Array
from coterie._seeds import generator_for, integer_seed
from coterie.collaboration.nested.families import Family, ModelFit, fit_or_replace, with_more_trees
from coterie.collaboration.nested.guard import guarded, widened
from coterie.collaboration.nested.linear import Moments
from coterie.collaboration.nested.resolutions import Recipe
from coterie.collaboration.nested.traits import traits_of, unexplained_levels, with_traits
from coterie.method.fitting import quiet_fits
from coterie.rows.learners import Learners

_Key = tuple[bytes, str, str, bool]


@dataclass(frozen=True)
class Entry:
    """A shared predictor of the dictionary.

    ``count`` is the number of clusters; one: all learners. y is measured from its learner's mean if
    ``centred``, if ``random_intercept`` from its learner's level that the predictors do not explain.
    If ``uses_traits``, models have the learner's traits as predictors. ``ridge`` is the linear family's
    penalty.
    """

    count: int
    family: Family
    centred: bool
    ridge: float = 0.0
    uses_traits: bool = False
    random_intercept: bool = False

    @property
    def form(self) -> str:
        """What y is measured from."""
        return "random_intercept" if self.random_intercept else "centred" if self.centred else "plain"


@dataclass(frozen=True)
class FittedEntry:
    """A shared predictor, fitted: a model per cluster of ``labels`` (L,), clipped to ``bounds`` (K, 2).

    ``levels`` (L,) is what each learner adds: its mean, where models are centred. ``traits`` (L, T) are those
    that models are told, if any.
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


def _key(members: Array, entry: Entry) -> _Key:
    return members.tobytes(), entry.family.name, entry.form, entry.uses_traits


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
    recipe: Recipe,
    most_rows: int | None,
) -> dict[_Key, Any]:
    """Fit every distinct set of members once per family and form."""
    jobs: dict[_Key, ModelFit] = {}
    for entry in entries:
        assert entry.family.candidate is not None
        for k in range(int(labels[entry.count].max()) + 1):
            members = labels[entry.count] == k
            key = _key(members, entry)
            if key in jobs or not members.any():
                continue
            rows = _thinned(np.flatnonzero(members[learners.owner]), most_rows)
            first = learners.ids[np.flatnonzero(members)[0]]
            seed = integer_seed(generator_for(recipe.seed, f"coterie of {first}"))
            weights = None if learners.weights is None else learners.weights[rows]
            y = targets[entry.form][rows]
            candidate = entry.family.candidate
            if most_rows is None:
                candidate = with_more_trees(candidate)
            X = learners.X[rows]
            if entry.uses_traits:
                assert traits is not None
                X = with_traits(X, traits, learners.owner[rows])
            jobs[key] = ModelFit(candidate, X, y, weights, seed)
    with quiet_fits():
        return dict(zip(jobs, recipe.engine.map(fit_or_replace, list(jobs.values())), strict=True))


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
    recipe: Recipe,
    *,
    most_rows: int | None = None,
) -> list[FittedEntry]:
    """Fit shared predictors on the learners' rows; ``moments`` of these are for the linear family.

    ``labels`` has the cluster of each learner (L,) for every number of clusters. ``most_rows`` bounds the
    rows of a fit; None: all, for models that stay.
    """
    flexible = [entry for entry in entries if entry.family.candidate is not None]
    added = {"plain": np.zeros(len(learners)), "centred": learners.mean_by_learner(learners.scalar_y)}
    if any(entry.random_intercept for entry in flexible):
        added["random_intercept"] = unexplained_levels(learners)
    targets = {form: learners.scalar_y - levels[learners.owner] for form, levels in added.items()}
    forms = {False: moments, True: moments.centred()}
    traits = traits_of(learners, forms[True]) if any(entry.uses_traits for entry in flexible) else None
    models = _flexible_fits(flexible, learners, labels, targets, traits, recipe, most_rows)
    fitted = []
    for entry in entries:
        own = labels[entry.count]
        clusters = [own == k for k in range(int(own.max()) + 1)]
        if entry.family.candidate is not None:
            mine = [models.get(_key(members, entry)) for members in clusters]
            bounds = _ranges(targets[entry.form], own, learners.owner)
            own_traits = traits if entry.uses_traits else None
            fitted.append(FittedEntry(own, tuple(mine), bounds, added[entry.form], own_traits))
            continue
        form = forms[entry.centred]
        vectors = [form.solve(members, entry.ridge) for members in clusters]
        linear = tuple(form.as_model(vector, centred=entry.centred) for vector in vectors)
        if not entry.centred:
            bounds = _ranges(learners.scalar_y, own, learners.owner)
            fitted.append(FittedEntry(own, linear, bounds, np.zeros(len(learners))))
            continue
        values = np.empty(len(learners.y))
        for k, model in enumerate(linear):
            rows = clusters[k][learners.owner]
            values[rows] = learners.X[rows] @ model.coef_ + model.intercept_
        levels = learners.mean_by_learner(learners.scalar_y - values)
        fitted.append(FittedEntry(own, linear, _ranges(values, own, learners.owner), levels))
    return fitted
