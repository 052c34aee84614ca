"""How learners predict with nested coteries: guarded models, weights, a correction of one's own."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import OwnRows, linear_values
from coterie.collaboration.nested.guard import guarded, widened
from coterie.collaboration.nested.traits import with_traits
from coterie.records import BY_LEARNER, Collaboration
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class NestedCollaboration(Collaboration):
    """What nested coteries hand on: how each learner predicts, and what it takes from whom.

    A prediction is the weighted sum of the models' predictions, each kept within the bounds of its
    model, plus a correction x'w + b, kept within bounds of its own. The first fields, up to
    ``residuals``, are those of `coterie.records.Collaboration`.

    Parameters
    ----------
    bounds : ndarray of shape (len(models), 2)
        What each model's predictions are clipped to.
    corrections : ndarray of shape (M, p + 1)
        Slopes and intercept that go with each row of ``weights``.
    correction_bounds : ndarray of shape (M, 2)
        What each correction is clipped to.
    form : {"pooled", "average"}
        What shared predictors are: models of pooled rows, or averages of the learners' models.
    plain_residuals : tuple of ndarray
        Honest residual of each row under the plain predictor of its cluster, with nothing of its own.
    alone_residuals : tuple of ndarray
        Honest residual of each row under the learner's own model, by the same folds.
    all_residuals : tuple of ndarray
        Honest residual of each row under one model of all learners, by the same folds.
    all_weights : ndarray of shape (len(models),)
        What that one is made of.
    share_names : tuple of str
        The resolutions: ``"alone"``, ``"12 coteries"``, ..., ``"all"``.
    shares : ndarray of shape (L, len(share_names))
        How much each learner takes from each resolution; rows sum to one.
    shrinkage : float
        Pseudo-rows of the average learner that each learner's own rows were weighed against; infinite
        where everybody has the same weights.
    n_fits : int
        Models fitted to learn the weights, and to predict with.
    newcomer_ratios : ndarray of shape (2,)
        Variance of offsets and of slopes among the learners of a cluster, in units of the noise.
    traits : ndarray of shape (M, T)
        What describes the learner of each row of ``weights``; zero for newcomers, who take nothing from
        models with traits.
    uses_traits : ndarray of bool, shape (len(models),)
        Which models have the traits as predictors beside those of the row.
    units : ndarray of shape (p,)
        Common units of the predictors, in which slopes are measured.
    noise : float
        Typical noise level.
    """

    bounds: Array = field(repr=False)
    corrections: Array = field(repr=False)
    correction_bounds: Array = field(repr=False)
    form: str
    plain_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    alone_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_weights: Array = field(repr=False)
    share_names: tuple[str, ...]
    shares: Array = field(metadata=BY_LEARNER)
    shrinkage: float
    n_fits: int
    newcomer_ratios: Array = field(repr=False)
    traits: Array = field(repr=False)
    uses_traits: Array = field(repr=False)
    units: Array = field(repr=False)
    noise: float

    @property
    def by_pooled_rows(self) -> bool:
        """Whether a newcomer to a cluster predicts with a model of its members' pooled rows."""
        return self.form == "pooled"

    @property
    def cluster_residuals(self) -> tuple[Array, ...] | None:
        """Honest residuals under what the members of a cluster share."""
        return self.plain_residuals

    @property
    def taken(self) -> dict[str, Array]:
        """How much each learner takes from itself, from its coterie at each resolution, and from all."""
        names = (f"from_{name.replace(' ', '_')}" for name in self.share_names)
        return dict(zip(names, self.shares.T, strict=True))

    def with_all(self) -> Collaboration:
        """Return how everybody would predict with one model of all learners."""
        used = np.flatnonzero(self.all_weights)
        return Collaboration(
            learner_ids=self.learner_ids,
            method="global",
            models=tuple(self.models[position] for position in used),
            names=tuple(self.names[position] for position in used),
            weights=self.all_weights[None, used],
            weight_rows=np.zeros(len(self.weight_rows), dtype=int),
            newcomer_weight_rows=np.zeros(len(self.newcomer_weight_rows), dtype=int),
            residuals=self.all_residuals,
        )

    def with_newcomers(self, newcomers: Learners, labels: Array) -> tuple[NestedCollaboration, Array]:
        """Add newcomers, whose rows no model here has seen; return the record, and their rows of ``weights``.

        Each predicts with its cluster of ``labels``, and with an offset and slopes of its own.
        """
        joined = self.newcomer_weight_rows[labels]
        corrections, bounds = self.corrections[joined].copy(), self.correction_bounds[joined].copy()
        residuals = newcomers.y - self.predict_columns(newcomers.X, joined[newcomers.owner])
        for place in range(len(newcomers)):
            span = newcomers.span(place)
            own = OwnRows.of(newcomers.X[span], self.units, self.noise)
            found = own.coefficients(residuals[span], self.newcomer_ratios[None])[0]
            corrections[place, : len(found) - 1] += found[:-1]
            corrections[place, -1] += found[-1]
            bounds[place] = widened(linear_values(newcomers.X[span], corrections[place, None])[:, 0])
        weight_rows = len(self.weights) + np.arange(len(newcomers))
        added = replace(
            self,
            weights=np.vstack([self.weights, self.weights[joined]]),
            corrections=np.vstack([self.corrections, corrections]),
            correction_bounds=np.vstack([self.correction_bounds, bounds]),
            traits=np.vstack([self.traits, self.traits[joined]]),
        )
        return added, weight_rows

    def predict_columns(self, X: Array, weight_rows: Array) -> Array:
        """Predict the one column of the response, of shape (N, 1), each row in its own way."""
        corrections, limits = self.corrections[weight_rows], self.correction_bounds[weight_rows]
        own = np.einsum("np,np->n", X, corrections[:, :-1]) + corrections[:, -1]
        prediction: Array = np.clip(own, limits[:, 0], limits[:, 1])
        used, places = np.unique(weight_rows, return_inverse=True)
        # Each model predicts once, for the rows of all who take something from it.
        for position in np.flatnonzero(self.weights[used].any(axis=0)):
            share = self.weights[used, position][places]
            mine = np.flatnonzero(share)
            rows = (
                with_traits(X[mine], self.traits, weight_rows[mine])
                if self.uses_traits[position]
                else X[mine]
            )
            part = guarded(self.models[position], rows, self.bounds[position])
            prediction[mine] += share[mine] * part
        return prediction[:, None]
