"""How learners predict classes with nested coteries: a mixture and a pool, then recalibration."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.calibration import recalibrated
from coterie.collaboration.classes.lines import ClassRows, effects_of, log_odds, probabilities
from coterie.collaboration.classes.pool import from_logarithms, logarithms
from coterie.collaboration.classes.views import Directions
from coterie.collaboration.nested.guard import guarded_columns, widened
from coterie.collaboration.nested.line import Ratios
from coterie.collaboration.nested.record import NestedForm
from coterie.kernels.losses import predict_rows
from coterie.loss import SQUARED_ERROR
from coterie.records import BY_LEARNER
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class PredictorScale:
    """Common units of predictors: their mean ``centre`` and standard deviation ``spread``, of shape (p,).

    Predictors are clipped to ``low`` and ``high`` (p,) before they enter a line, which would run away far
    from the rows of the fit.
    """

    centre: Array
    spread: Array
    low: Array
    high: Array

    @classmethod
    def of(cls, X: Array) -> PredictorScale:
        """Return units in which rows (N, p) have mean zero and variance one; constant columns keep theirs."""
        spread = X.std(axis=0)
        return cls(X.mean(axis=0), np.where(spread > 0, spread, 1.0), *widened(X))

    def rows(self, X: Array) -> Array:
        """Return rows in these units, a column of ones behind them."""
        return np.column_stack(
            [(np.clip(X, self.low, self.high) - self.centre) / self.spread, np.ones(len(X))]
        )


@dataclass(frozen=True)
class ClassNewcomers:
    """How newcomers are described, and weigh the members.

    ``common`` (C, 1, q) and ``coterie_common`` (C, K, q) are lines of all and of the coteries, ``ratios`` and
    ``coterie_ratios`` say how far learners depart from them. ``weights`` (M,) are common weights of the
    models that need no id, ``line_weights`` (2,) those of the lines.
    """

    common: Array = field(repr=False)
    coterie_common: Array = field(repr=False)
    ratios: tuple[Ratios, ...]
    coterie_ratios: tuple[Ratios, ...]
    directions: Directions
    weights: Array
    line_weights: Array


@dataclass(frozen=True)
class NestedClasses(NestedForm):
    """What nested coteries hand on for classes: how each learner predicts, and what it takes from whom.

    A prediction is the weighted sum of the probabilities of models and of two lines. Learners of the fit
    predict with the mean of that and of a pool, whose logarithms are the weighted sum of theirs. It is
    recalibrated where that pays. The first fields, up to ``residuals``, are those of
    `coterie.records.Collaboration`; weights of models and of lines together sum to one.

    Parameters
    ----------
    line_weights : ndarray of shape (W, 2)
        Weights of the line of all and of the coterie's line, for each row of ``weights``.
    log_weights : ndarray of shape (W, len(models))
        Weights of models in the pool, for each row of ``weights``; none for who has no pool.
    log_line_weights : ndarray of shape (W, 2)
        Weights of the two lines in it.
    lines : ndarray of shape (W, C, p + 1)
        Line of all with what is the learner's own, in common units.
    coterie_lines : ndarray of shape (W, C, p + 1)
        Line of its coterie with what is the learner's own there.
    scale : PredictorScale
        The common units.
    kinds : tuple of str
        What each model answers: ``"own"``, ``"trees"`` and ``"cuts"`` probabilities, ``"beside"`` and
        ``"beside coterie"`` what is added to the log-odds of a line.
    context : ndarray of shape (W, T)
        Descriptions: what models may see of the learner of each row of ``weights``; NaN is what is not known.
    mask : ndarray of bool, shape (len(models), T)
        Which columns of ``context`` each model sees, beside the predictors of the row.
    takes_line : ndarray of bool, shape (len(models),)
        Which models see the log-odds of the line, too.
    calibration : ndarray of shape (n_classes,) or None
        Slope and levels of recalibration; None: none.
    plain_residuals, all_residuals : tuple of ndarray
        Out-of-fold residuals of rows under what their coterie shares, and under what all learners share.
    all_row : int
        The row of ``weights`` that predicts with what all learners share; so predicts an unseen learner.
    share_names : tuple of str
        Whom learners take from.
    shares : ndarray of shape (L, len(share_names))
        How much each learner takes from each of them; rows sum to one.
    shrinkage : float
        Pseudo-rows of the average learner that each learner's own rows were weighed against.
    n_fits : int
        Models fitted to learn the weights, and to predict with.
    newcomers : ClassNewcomers or None
        How newcomers are described, and weigh the models; None where there is one learner.
    """

    line_weights: Array = field(repr=False)
    log_weights: Array = field(repr=False)
    log_line_weights: Array = field(repr=False)
    lines: Array = field(repr=False)
    coterie_lines: Array = field(repr=False)
    scale: PredictorScale = field(repr=False)
    kinds: tuple[str, ...]
    context: Array = field(repr=False)
    mask: Array = field(repr=False)
    takes_line: Array = field(repr=False)
    calibration: Array | None
    plain_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    all_row: int
    share_names: tuple[str, ...]
    shares: Array = field(metadata=BY_LEARNER)
    shrinkage: float
    n_fits: int
    newcomers: ClassNewcomers | None = field(repr=False)

    def with_newcomers(self, newcomers: Learners, labels: Array) -> tuple[NestedClasses, Array]:
        """Add newcomers, on whose rows no model was fitted; return the record and their rows of ``weights``.

        ``labels`` (M,) gives the coterie that each newcomer joins. They weigh the models as the average
        learner does; their lines depart from the coterie's by shrunken effects of their own rows. They have
        no pool: its weights are zero. The record itself stays as it is.
        """
        rule, weight_rows = self.newcomers, len(self.weights) + np.arange(len(newcomers))
        if rule is None:
            return self, self.newcomer_weight_rows[labels]
        weights = np.ones(len(newcomers.y)) if newcomers.weights is None else newcomers.weights
        Z = self.scale.rows(newcomers.X)
        rows = ClassRows(
            Z=Z, Y=newcomers.y, weights=weights, owner=newcomers.owner, n_learners=len(newcomers)
        )
        one_cluster = np.zeros(len(newcomers), dtype=int)
        departures = effects_of(rows, rule.common, one_cluster, rule.ratios)
        coterie_departures = effects_of(rows, rule.coterie_common, labels, rule.coterie_ratios)
        # What models may see of a newcomer: numbers that describe it, and its coterie. Its id is unknown:
        # NaN.
        context = np.full((len(newcomers), self.context.shape[1]), np.nan)
        numbers = rule.directions.numbers(departures)
        context[:, : numbers.shape[1]] = numbers
        if rule.coterie_common.shape[1] > 1:
            context[:, numbers.shape[1]] = labels
        added = replace(
            self,
            weights=np.vstack([self.weights, np.tile(rule.weights, (len(newcomers), 1))]),
            line_weights=np.vstack([self.line_weights, np.tile(rule.line_weights, (len(newcomers), 1))]),
            log_weights=np.pad(self.log_weights, ((0, len(newcomers)), (0, 0))),
            log_line_weights=np.pad(self.log_line_weights, ((0, len(newcomers)), (0, 0))),
            lines=np.concatenate([self.lines, (rule.common[:, one_cluster] + departures).transpose(1, 0, 2)]),
            coterie_lines=np.concatenate(
                [self.coterie_lines, (rule.coterie_common[:, labels] + coterie_departures).transpose(1, 0, 2)]
            ),
            context=np.vstack([self.context, context]),
        )
        return added, weight_rows

    def predict_columns(self, X: Array, weight_rows: Array) -> Array:
        """Predict the columns of the response, (N, C), for rows X (N, p).

        ``weight_rows`` (N,) says which row of ``weights`` predicts each row: that of its learner or
        coterie. Lines and models are added to a mixture of probabilities and to a pool of their
        logarithms, then recalibrated.
        """
        Z = self.scale.rows(X)
        line = log_odds(Z, self.lines[weight_rows])
        mixture = np.zeros((len(X), self.loss.n_columns))
        logs = np.zeros_like(self.loss.from_columns(mixture))

        def add(rows: Array, chances: Array, share: Array, log_share: Array) -> None:
            """Add a model's probabilities for some rows to the mixture and to the pool, which are changed.

            ``share`` and ``log_share`` (N,) are the weights of the model for all rows, in either of them.
            """
            mixture[rows] += share[rows, None] * chances
            logs[rows] += log_share[rows, None] * logarithms(self.loss.from_columns(chances))

        # The line of all learners, then that of the coterie.
        for index in (0, 1):
            share, log_share = (
                self.line_weights[weight_rows, index],
                self.log_line_weights[weight_rows, index],
            )
            used_positions = np.flatnonzero(share + log_share)
            lines_of_rows = self.coterie_lines if index else self.lines
            add(
                used_positions,
                probabilities(log_odds(Z[used_positions], lines_of_rows[weight_rows[used_positions]])),
                share,
                log_share,
            )
        distinct_rows, index_of_row = np.unique(weight_rows, return_inverse=True)
        # Each model predicts once, for the rows of all who take something from it.
        for position in np.flatnonzero((self.weights + self.log_weights)[distinct_rows].any(axis=0)).tolist():
            share, log_share = (
                array[distinct_rows, position][index_of_row] for array in (self.weights, self.log_weights)
            )
            used_positions = np.flatnonzero(share + log_share)
            rows, mask = [X[used_positions]], self.mask[position]
            if mask.any():
                rows.append(self.context[weight_rows[used_positions]][:, mask])
            if self.takes_line[position]:
                rows.append(line[used_positions])
            features = rows[0] if len(rows) == 1 else np.column_stack(rows)
            base_log_odds = line[used_positions]
            if self.kinds[position] == "beside coterie":
                base_log_odds = log_odds(Z[used_positions], self.coterie_lines[weight_rows[used_positions]])
            add(used_positions, self._part(position, features, base_log_odds), share, log_share)
        prediction = self._with_pool(mixture, logs, weight_rows)
        if self.calibration is None:
            return prediction
        return self.loss.columns(recalibrated(self.loss.from_columns(prediction), self.calibration))

    def _with_pool(self, mixture: Array, logs: Array, weight_rows: Array) -> Array:
        """Return the mean of the mixture and the pool, (N, C), or the mixture for rows without a pool.

        ``mixture`` (N, C) are probabilities, and is changed; ``logs`` (N, K) are the pool's
        logarithms.
        """
        has_pool = np.asarray(np.column_stack([self.log_weights, self.log_line_weights]).any(axis=1))
        selected = np.flatnonzero(has_pool[weight_rows])
        if len(selected):
            pooled = self.loss.columns(from_logarithms(logs[selected]))
            mixture[selected] = (mixture[selected] + pooled) / 2
        return mixture

    def _part(self, position: int, features: Array, base: Array) -> Array:
        """Return the probabilities (n, C) of the model at ``position`` for rows of ``features`` (n, T).

        ``base`` (n, C) are the log-odds of the line, for models that add to them.
        """
        model = self.models[position]
        if self.kinds[position].startswith("beside"):
            added_log_odds = np.column_stack(
                [predict_rows(boosted, features, SQUARED_ERROR)[:, 0] for boosted in model.estimators_]
            )
            return probabilities(base + added_log_odds)
        return guarded_columns(model, features, np.array(self.loss.bounds), self.loss)
