"""How learners predict with nested coteries: guarded models, weights, a line of one's own."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.effects import OwnRows, linear_values
from coterie.collaboration.nested.guard import guarded, widened
from coterie.collaboration.nested.newcomers import PooledNewcomers
from coterie.records import BY_LEARNER, Collaboration
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class AverageNewcomers:
    """How newcomers depart from the average of their coterie's models: an offset and slopes, shrunken.

    ``ratios`` (2,) are the variances of offsets and slopes in units of ``noise``; ``units`` (p,) are common
    units of the predictors.
    """

    ratios: Array
    units: Array
    noise: float


class NestedForm(Collaboration):
    """What every form of nested coteries knows of whom learners take from, whatever it predicts.

    Its forms have these fields; see `NestedCollaboration`.
    """

    plain_residuals: tuple[Array, ...]
    all_residuals: tuple[Array, ...]
    all_row: int
    share_names: tuple[str, ...]
    shares: Array

    @property
    def of_averages(self) -> bool:
        """Whether shared predictors are averages of the learners' models."""
        return False

    @property
    def by_pooled_rows(self) -> bool:
        """Whether a newcomer to a cluster predicts with a model of its members' pooled rows."""
        return not self.of_averages

    @abstractmethod
    def with_newcomers(self, newcomers: Learners, labels: Array) -> tuple[Self, Array]:
        """Add newcomers, whose rows no model has seen; return the record, and their rows of ``weights``."""

    @property
    def cluster_residuals(self) -> tuple[Array, ...] | None:
        """Out-of-fold residuals under what the members of a cluster share."""
        return self.plain_residuals

    @property
    def taken(self) -> dict[str, Array]:
        """How much each learner takes from itself, from its coterie and from all."""
        names = (f"from_{name.replace(' ', '_')}" for name in self.share_names)
        return dict(zip(names, self.shares.T, strict=True))

    def with_all(self) -> Self:
        """Return how everybody would predict with what all learners share."""
        return replace(
            self,
            method="global",
            weight_rows=np.full(len(self.weight_rows), self.all_row),
            newcomer_weight_rows=np.full(len(self.newcomer_weight_rows), self.all_row),
            residuals=self.all_residuals,
        )


@dataclass(frozen=True)
class NestedCollaboration(NestedForm):
    """What nested coteries hand on: how each learner predicts, and what it takes from whom.

    A prediction is the weighted sum of the models' predictions, each kept within the bounds of its
    model, plus a line x'w + b, kept within bounds of its own. The first fields, up to
    ``residuals``, are those of `coterie.records.Collaboration`, but weights of models need not sum to one:
    the rest of the weight is in the line.

    Parameters
    ----------
    bounds : ndarray of shape (len(models), 2)
        What each model's predictions are clipped to.
    corrections : ndarray of shape (M, p + 1)
        Slopes and intercept of the line that goes with each row of ``weights``.
    correction_bounds : ndarray of shape (M, 2)
        What each line is clipped to.
    limits : ndarray of shape (2, p)
        What predictors are clipped to before they enter a line.
    form : {"pooled", "average"}
        What shared predictors are: models of pooled rows, or averages of the learners' models.
    plain_residuals : tuple of ndarray
        Out-of-fold residual of each row under what its cluster shares, with nothing of its own.
    all_residuals : tuple of ndarray
        Out-of-fold residual of each row under what all learners share, by the same folds.
    all_row : int
        The row of ``weights`` that predicts with what all learners share; so predicts an unseen learner.
    share_names : tuple of str
        Whom learners take from: ``"alone"``, ``"coterie"``, ``"all"``, ...
    shares : ndarray of shape (L, len(share_names))
        How much each learner takes from each of them; rows sum to one.
    shrinkage : float
        Pseudo-rows of the average learner that each learner's own rows were weighed against; infinite
        where everybody has the same weights.
    n_fits : int
        Models fitted to learn the weights, and to predict with.
    context : ndarray of shape (M, T)
        Descriptions: what models may see of the learner of each row of ``weights``. These are numbers,
        coteries and its id; NaN is what is not known.
    mask : ndarray of bool, shape (len(models), T)
        Which columns of ``context`` each model sees, beside the predictors of the row.
    newcomers : AverageNewcomers or PooledNewcomers
        How newcomers are described, and weigh the models.
    """

    bounds: Array = field(repr=False)
    corrections: Array = field(repr=False)
    correction_bounds: Array = field(repr=False)
    limits: Array = field(repr=False)
    form: str
    plain_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_row: int
    share_names: tuple[str, ...]
    shares: Array = field(metadata=BY_LEARNER)
    shrinkage: float
    n_fits: int
    context: Array = field(repr=False)
    mask: Array = field(repr=False)
    newcomers: AverageNewcomers | PooledNewcomers = field(repr=False)

    @property
    def of_averages(self) -> bool:
        """Whether shared predictors are averages of the learners' models."""
        return self.form == "average"

    def with_newcomers(self, newcomers: Learners, labels: Array) -> tuple[NestedCollaboration, Array]:
        """Add newcomers, on whose rows no model was fitted; return the record and their rows of ``weights``.

        ``labels`` gives the cluster that each newcomer joins. Each predicts with that cluster, and
        with a shrunken offset and slopes of its own.
        """
        assert self.plausible is not None
        coterie_rows = self.newcomer_weight_rows[labels]
        rows_of_newcomers = (
            self._averaged(newcomers, coterie_rows) if isinstance(self.newcomers, AverageNewcomers) else None
        )
        if rows_of_newcomers is None:
            assert isinstance(self.newcomers, PooledNewcomers)
            rows_of_newcomers = self.newcomers.rows_of(
                newcomers, labels, self.context.shape[1], len(self.models)
            )
        weights, corrections, bounds, context, plausible = rows_of_newcomers
        weight_rows = len(self.weights) + np.arange(len(newcomers))
        added = replace(
            self,
            weights=np.vstack([self.weights, weights]),
            corrections=np.vstack([self.corrections, corrections]),
            correction_bounds=np.vstack([self.correction_bounds, bounds]),
            plausible=np.vstack([self.plausible, plausible]),
            context=np.vstack([self.context, context]),
        )
        return added, weight_rows

    def _averaged(self, newcomers: Learners, joined: Array) -> tuple[Array, ...]:
        """Return the rows of all arrays for newcomers that predict with averages of models.

        These are weights, lines, bounds of lines, contexts and plausible ranges. A newcomer takes
        over the row ``joined`` of its coterie, and a shrunken offset and slopes fitted to its
        residuals are added to the line.
        """
        rule = self.newcomers
        assert isinstance(rule, AverageNewcomers)
        corrections, bounds = self.corrections[joined].copy(), self.correction_bounds[joined].copy()
        residuals = newcomers.y - self.predict_columns(newcomers.X, joined[newcomers.owner])
        for newcomer in range(len(newcomers)):
            span = newcomers.span(newcomer)
            own_rows = OwnRows.of(newcomers.X[span], rule.units, rule.noise)
            coefficients = own_rows.coefficients(residuals[span], rule.ratios[None])[0]
            corrections[newcomer, : len(coefficients) - 1] += coefficients[:-1]
            corrections[newcomer, -1] += coefficients[-1]
            bounds[newcomer] = widened(linear_values(newcomers.X[span], corrections[newcomer, None])[:, 0])
        assert self.plausible is not None
        return self.weights[joined], corrections, bounds, self.context[joined], self.plausible[joined]

    def predict_columns(self, X: Array, weight_rows: Array) -> Array:
        """Predict the one column of the response, (N, 1), for rows X (N, p) in the response's own units.

        ``weight_rows`` (N,) says which row of ``weights`` predicts each row: that of its learner or
        coterie. A prediction is the learner's line plus the weighted models, all clipped.
        """
        corrections, bounds = self.corrections[weight_rows], self.correction_bounds[weight_rows]
        clipped_X = np.clip(X, *self.limits)
        line_values = np.einsum("np,np->n", clipped_X, corrections[:, :-1]) + corrections[:, -1]
        prediction: Array = np.clip(line_values, bounds[:, 0], bounds[:, 1])
        distinct_rows, index_of_row = np.unique(weight_rows, return_inverse=True)
        # Each model predicts once, for the rows of all who take something from it.
        for position in np.flatnonzero(self.weights[distinct_rows].any(axis=0)):
            weights_of_model = self.weights[distinct_rows, position][index_of_row]
            used_positions = np.flatnonzero(weights_of_model)
            features, mask = X[used_positions], self.mask[position]
            if mask.any():
                features = np.column_stack([features, self.context[weight_rows[used_positions]][:, mask]])
            model_predictions = guarded(self.models[position], features, self.bounds[position])
            prediction[used_positions] += weights_of_model[used_positions] * model_predictions
        return self._clipped_to_plausible(prediction[:, None], weight_rows)
