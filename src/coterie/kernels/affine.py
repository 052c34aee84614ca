"""Losses of affine models without predicting: second moments once per learner, then one product.

An affine model is a vector w~ = (w, b). With Z = (X, 1) and the moments G_j = Z'Z/n, c_j = Z'y/n,
s_j = y'y/n of learner j, its loss there is w~'G_j w~ - 2 w~'c_j + s_j: an inner product of features of the
model with features of the learner. Where the loss is tiny against these terms the difference cancels,
and the residuals themselves are used.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import linear_model
from sklearn.compose import TransformedTargetRegressor
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.svm import LinearSVR

from coterie._arrays import Array
from coterie.kernels.limits import LIMITS, half_the_digits
from coterie.rows.learners import Learners

Affine = tuple[Array, float]

# Ways to predict that are x'w + b. A subclass that keeps its parent's way is affine too, one that has a
# way of its own is not; generalised linear models have coefficients and a way of their own. Named are the
# families that others derive from: Lasso is an ElasticNet, LassoLars and LarsCV are Lars.
AFFINE_PREDICTIONS = {
    family.predict
    for family in (
        linear_model.ARDRegression,
        linear_model.BayesianRidge,
        linear_model.ElasticNet,
        linear_model.ElasticNetCV,
        linear_model.HuberRegressor,
        linear_model.Lars,
        linear_model.LinearRegression,
        LinearSVR,
        linear_model.OrthogonalMatchingPursuit,
        linear_model.OrthogonalMatchingPursuitCV,
        linear_model.QuantileRegressor,
        linear_model.Ridge,
        linear_model.RidgeCV,
        linear_model.SGDRegressor,
        linear_model.TheilSenRegressor,
    )
}


def scaler_form(step: Any) -> tuple[Any, Any] | None:
    """Return (centre, spread) if a fitted transformer maps x to (x - centre) / spread, else None.

    Centre and spread are numbers, or arrays (p,) with one value per predictor. A scaler that clips is not
    affine.
    """
    if type(step) is StandardScaler:
        return step.mean_ if step.with_mean else 0.0, step.scale_ if step.with_std else 1.0
    if type(step) is RobustScaler:
        return step.center_ if step.with_centering else 0.0, step.scale_ if step.with_scaling else 1.0
    if type(step) is MinMaxScaler and not step.clip:
        return -step.min_ / step.scale_, 1.0 / step.scale_
    if type(step) is MaxAbsScaler and not getattr(step, "clip", False):
        return 0.0, step.scale_
    return None


def affine_form(model: Any, n_features: int) -> Affine | None:
    """Return the coefficients w (p,) and the intercept b if the fitted model predicts x'w + b, else None.

    Known are scikit-learn's linear models, pipelines of scalers and these, and standardised targets around
    them. The coefficients are for predictors as given, not as scaled. A class that overrides ``predict`` is
    not taken for linear.
    """
    if type(model) is Pipeline:
        form = affine_form(model.steps[-1][1], n_features)
        # From the last scaler to the first: each is undone in the coefficients.
        for _, step in reversed(model.steps[:-1]):
            scaler = (0.0, 1.0) if step in (None, "passthrough") else scaler_form(step)
            if form is None or scaler is None:
                return None
            w = form[0] / scaler[1]
            form = w, form[1] - float(np.sum(w * scaler[0]))
        return form
    if type(model) is TransformedTargetRegressor:
        form = affine_form(model.regressor_, n_features)
        scaler = scaler_form(model.transformer_)
        if form is None or scaler is None:
            return None
        centre, spread = (float(np.ravel(part)[0]) for part in scaler)
        return form[0] * spread, form[1] * spread + centre
    if getattr(type(model), "predict", None) not in AFFINE_PREDICTIONS:
        return None
    w = np.asarray(model.coef_, dtype=float)
    b = np.ravel(np.asarray(model.intercept_, dtype=float))
    if w.shape != (n_features,) or b.size != 1:
        return None
    return w, float(b[0])


def affine_matrix(models: Sequence[Any], n_features: int) -> tuple[Array, Array]:
    """Return the coefficients (w, b) of M models as rows of an array (M, p + 1), and which models are affine.

    Rows of models that are not affine are NaN; the second array is a mask (M,).
    """
    vectors = np.full((len(models), n_features + 1), np.nan)
    for i, model in enumerate(models):
        form = affine_form(model, n_features)
        if form is not None:
            vectors[i, :-1], vectors[i, -1] = form
    return vectors, np.isfinite(vectors).all(axis=1)


# If a predictor spreads this many times as far over all rows as in the typical learner, the latter is its
# unit: one learner that lives far away would make everybody's slopes tiny beside a ridge.
FAR_SPREAD = 10.0


def _typical(learners: Learners) -> tuple[Array, Array]:
    """Return the median learner's mean of each predictor, and the median distance of learners' rows from it.

    Both have the shape (p,). The distance of a learner is the root mean square over its rows; learners with
    none in a predictor are left out there. Unlike a mean over all rows, medians ignore a learner in other
    units.
    """
    # Some of very many learners, evenly spaced, show what is typical.
    learners = learners.take(np.unique(np.linspace(0, len(learners) - 1, LIMITS.many).astype(int)))
    starts, sizes = learners.offsets[:-1], learners.sizes[:, None]
    median_means = np.median(np.add.reduceat(learners.X, starts, axis=0) / sizes, axis=0)
    mean_squares = np.add.reduceat((learners.X - median_means) ** 2, starts, axis=0) / sizes
    distances = np.sqrt(np.where(mean_squares > 0, mean_squares, np.nan))
    is_constant = np.isnan(distances).all(axis=0)
    distances[:, is_constant] = 0.0
    return median_means, np.nanmedian(distances, axis=0)


class StandardizedColumns:
    """Predictors centred and scaled by all rows together, with a column of ones behind them.

    Moments are accurate when the columns are of one size. The same map serves everybody, so that a model
    keeps its predictions: `vectors` brings w~ into the frame. ``middle`` of shape (C,) is the mean response.
    """

    def __init__(self, learners: Learners) -> None:
        """Find centre and spread of each predictor, and the mean of each column of the response.

        They are those of all rows together. For a predictor whose spread is dominated by a few learners far
        away, the typical learner's are taken instead.
        """
        self.centre = learners.X.mean(axis=0)
        spread = learners.X.std(axis=0)
        if len(learners) > 2 and spread.any():
            typical_centre, typical_spread = _typical(learners)
            is_far = (spread > FAR_SPREAD * typical_spread) & (typical_spread > 0)
            self.centre, spread = (
                np.where(is_far, typical_centre, self.centre),
                np.where(is_far, typical_spread, spread),
            )
        self.spread = np.where(spread > 0, spread, 1.0)
        self.middle: Array = learners.y.mean(axis=0)

    def rows(self, X: Array) -> Array:
        """Return Z (n, p + 1): the rows X (n, p) centred and scaled, with a column of ones behind them."""
        Z = np.empty((len(X), X.shape[1] + 1))
        np.subtract(X, self.centre, out=Z[:, :-1])
        Z[:, :-1] /= self.spread
        Z[:, -1] = 1.0
        return Z

    def vectors(self, vectors: Array) -> Array:
        """Return models (w, b) of shape (M, p + 1) with coefficients for standardised predictors.

        Their predictions are then of the response less its mean, ``middle``. Only one column of the response
        is meant.
        """
        standardized = np.empty_like(vectors)
        standardized[:, :-1] = vectors[:, :-1] * self.spread
        standardized[:, -1] = vectors[:, -1] + vectors[:, :-1] @ self.centre - self.middle[0]
        return standardized


def second_moments(Z: Array, y: Array, learners: Learners) -> tuple[Array, Array, Array]:
    """Return the means of X'X (L, d, d), X'y (L, d, C) and y'y (L,) over each learner's rows.

    ``Z`` (N, d) are predictors and ``y`` (N, C) is the response; y'y is summed over columns. Rows count by
    their weights. From these, the squared loss of any linear model on any learner follows without its rows.
    """
    n_learners, d = len(learners), Z.shape[1]
    G, c, s = np.empty((n_learners, d, d)), np.empty((n_learners, d, y.shape[1])), np.empty(n_learners)
    for j in range(len(learners)):
        span = learners.span(j)
        predictors, response = Z[span], y[span]
        weighted_predictors = (
            predictors if learners.weights is None else predictors * learners.weights[span, None]
        )
        G[j], c[j] = weighted_predictors.T @ predictors, weighted_predictors.T @ response
        weighted_response = response if learners.weights is None else response * learners.weights[span, None]
        s[j] = response.ravel() @ weighted_response.ravel()
    sizes = learners.sizes
    return G / sizes[:, None, None], c / sizes[:, None, None], s / sizes


def _model_features(vectors: Array) -> Array:
    """Return features (M, F) of models (M, d) whose products with learners' features are losses.

    A loss w'Gw - 2 w'c + s is an inner product: of (products of w, -2 w, 1) with (upper triangle of G, c, s).
    Products off the diagonal count twice, because the triangle has each pair once.
    """
    upper = np.triu_indices(vectors.shape[1])
    multiplicity = np.where(upper[0] == upper[1], 1.0, 2.0)
    features = np.empty((len(vectors), len(multiplicity) + vectors.shape[1] + 1))
    np.multiply(vectors[:, upper[0]], vectors[:, upper[1]], out=features[:, : len(multiplicity)])
    features[:, : len(multiplicity)] *= multiplicity
    features[:, len(multiplicity) : -1] = -2 * vectors
    features[:, -1] = 1.0
    return features


class AffineLosses:
    """Losses of affine models, vectors (w, b) of shape (M, p + 1), on learners, by second moments.

    These are the means of X'X, X'y and y'y over a learner's rows. Losses are computed tile by tile when they
    are needed, and not kept.
    """

    def __init__(self, vectors: Array, learners: Learners) -> None:
        """Compute the second moments of each learner's rows, in a standardised frame.

        ``vectors`` (M, p + 1) are the models (w, b) for predictors as given.
        """
        self._learners = learners
        # Positions of models and learners that are given out, in order: `take` changes these alone.
        self.rows, self.columns = np.arange(len(vectors)), np.arange(len(learners))
        self._frame = frame = StandardizedColumns(learners)
        self._vectors = frame.vectors(vectors)
        Z = frame.rows(learners.X)
        # A model is one vector: it predicts one column.
        # G (L, d, d), c (L, d, 1) and s (L,): means of X'X, X'y and y'y over each learner's rows.
        G, c, s = second_moments(Z, learners.scalar_y[:, None] - frame.middle, learners)
        d = Z.shape[1]
        # When rows are few against predictors, multiplying rows is cheaper than multiplying moments.
        self._by_moments = d * (d + 1) / 2 + d + 1 < learners.sizes.mean() * d
        if self._by_moments:
            upper = np.triu_indices(d)
            self._learner_features = np.column_stack([G[:, upper[0], upper[1]], c[..., 0], s])
        # Bounds the size of the terms that cancel: |w~|' sqrt(diag G), squared, plus s.
        self._sizes = np.column_stack([np.sqrt(np.diagonal(G, axis1=1, axis2=2)), np.sqrt(s)])

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        return len(self.columns)

    @property
    def finite(self) -> Array:
        """A mask (M,): True for the models whose losses cannot overflow on any learner."""
        with np.errstate(over="ignore", invalid="ignore"):
            largest_predictions = np.abs(self._vectors) @ self._sizes[:, :-1].max(axis=0)
            is_finite: Array = np.isfinite((largest_predictions + self._sizes[:, -1].max()) ** 2)
        return is_finite[self.rows]

    def take(self, positions: Array) -> AffineLosses:
        """Return the losses among some of the learners, one model each, in the order given."""
        taken = copy.copy(self)
        taken.rows, taken.columns = self.rows[positions], self.columns[positions]
        return taken

    def features(self) -> tuple[Array, Array] | None:
        """Return features (L, F) of models and of learners whose inner products are the losses.

        On a GPU, a product of them gives all losses at once. None where losses are cheaper from rows, or so
        small against their terms that single precision would lose them.
        """
        if not self._by_moments:
            return None
        vectors, sizes = self._vectors[self.rows], self._sizes[self.columns]
        models, learners = _model_features(vectors), self._learner_features[self.columns]
        # If the typical own loss is small beside the terms that it is the difference of, digits are lost.
        own_losses = np.einsum("ij,ij->i", models, learners)
        term_sizes = np.einsum("ij,ij->i", np.abs(vectors), sizes[:, :-1]) + sizes[:, -1]
        if np.median(own_losses / np.maximum(term_sizes**2, 1e-300)) < half_the_digits(np.float32):
            return None
        return models, learners

    # Models that overflow are isolated by the caller; a warning for each would say nothing more.
    @np.errstate(over="ignore", invalid="ignore")
    def tile(self, models: Any, learners: Any) -> Array:
        """Return the losses of some models on some learners, given by slices or positions.

        The tile has shape (models, learners). Losses that are tiny against the terms of their formula are
        computed again from residuals.
        """
        vectors, learners = self._vectors[self.rows[models]], self.columns[learners]
        losses = np.empty((len(vectors), len(learners)))
        if not self._by_moments:
            for index, j in enumerate(learners.tolist()):
                losses[:, index] = self._from_rows(vectors, j)
            return losses
        np.matmul(_model_features(vectors), self._learner_features[learners].T, out=losses)
        term_sizes = np.column_stack([np.abs(vectors), np.ones(len(vectors))]) @ self._sizes[learners].T
        np.square(term_sizes, out=term_sizes)
        # A difference that is small against its terms has lost its digits; residuals have not.
        term_sizes *= half_the_digits(np.float64)
        is_cancelled = losses < term_sizes
        for index in np.flatnonzero(is_cancelled.any(axis=0)).tolist():
            cancelled_models = np.flatnonzero(is_cancelled[:, index])
            losses[cancelled_models, index] = self._from_rows(vectors[cancelled_models], learners[index])
        return losses

    def _from_rows(self, vectors: Array, j: int) -> Array:
        """Return the losses (M,) of models, vectors (M, p + 1) in the frame, on the rows of learner j.

        Slower than by moments, but without cancellation.
        """
        span, weights = self._learners.span(j), self._learners.weights
        # Rows are brought into the frame when they are needed: kept, they would double the memory.
        Z, y = self._frame.rows(self._learners.X[span]), self._learners.y[span] - self._frame.middle
        losses_by_row = self._learners.loss.by_row((Z @ vectors.T - y)[..., None])
        if weights is not None:
            losses_by_row *= weights[span, None]
        return np.asarray(losses_by_row.mean(axis=0))
