"""Losses of logistic models on everybody's rows: one product for many models, without ``predict_proba``.

A logistic model is a line, or a line for each class, and a link. Lines of all models meet a block of rows in
one product; the link and the loss are applied in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline

from coterie._arrays import Array
from coterie.kernels.affine import affine_form, scaler_form
from coterie.kernels.limits import LIMITS
from coterie.models.logistic import QuickLogistic
from coterie.rows.learners import Learners

# Ways to answer that are lines behind a link.
LOGISTIC_ANSWERS = (QuickLogistic.predict_proba, LogisticRegression.predict_proba)


@dataclass(frozen=True)
class LogisticForm:
    """Lines (C', p) with intercepts (C',), and the numbers of the classes that the model has seen.

    Two classes have one line, the log-odds of the second. ``softmax`` says how several lines become
    probabilities: by exponentials that sum to one, or by normalised chances of each against the rest.
    """

    coefficients: Array = field(repr=False)
    intercepts: Array = field(repr=False)
    classes: Array
    softmax: bool


def logistic_form(model: Any, n_features: int) -> LogisticForm | None:
    """Return the coefficients of a fitted logistic model, or of a pipeline of scalers and one; else None.

    The coefficients are for predictors as given, not as scaled. A class with a ``predict_proba`` of its own
    is not taken for logistic: it may answer otherwise.
    """
    if type(model) is Pipeline:
        form = logistic_form(model.steps[-1][1], n_features)
        for _, step in reversed(model.steps[:-1]):
            scaler = (0.0, 1.0) if step in (None, "passthrough") else scaler_form(step)
            if form is None or scaler is None:
                return None
            lines = form.coefficients / scaler[1]
            shifted_intercepts = form.intercepts - np.sum(lines * scaler[0], axis=1)
            form = replace(form, coefficients=lines, intercepts=shifted_intercepts)
        return form
    predict_proba = getattr(type(model), "predict_proba", None)
    if predict_proba not in LOGISTIC_ANSWERS:
        return None
    is_one_against_rest = isinstance(model, QuickLogistic) or (
        getattr(model, "multi_class", None) == "ovr" or getattr(model, "solver", None) == "liblinear"
    )
    lines = np.asarray(model.coef_, dtype=float)
    if lines.shape[1:] != (n_features,):
        return None
    return LogisticForm(
        coefficients=lines,
        intercepts=np.broadcast_to(model.intercept_, len(lines)),
        classes=np.asarray(model.classes_),
        softmax=not is_one_against_rest,
    )


def is_line(model: Any, n_features: int) -> bool:
    """Tell whether a fitted model's prediction, or the log-odds of its classes, are linear."""
    return affine_form(model, n_features) is not None or logistic_form(model, n_features) is not None


def _stacked(forms: Sequence[LogisticForm], n_classes: int, n_columns: int) -> Array:
    """Return the coefficients and intercepts of M models and C classes as columns (p + 1, M * C).

    One product with rows (n, p) then gives the log-odds of all models. A class that a model has not seen has
    an intercept of -inf: it is never predicted. A response of one column has the log-odds of its second
    class.
    """
    n_features = forms[0].coefficients.shape[1]
    lines = np.zeros((len(forms), n_columns, n_features + 1))
    for index, form in enumerate(forms):
        if n_columns == 1:
            lines[index, 0] = np.append(form.coefficients[0], form.intercepts[0])
            continue
        lines[index, :, -1] = -np.inf
        seen_classes = form.classes.astype(int)
        if len(seen_classes) == 2:
            # Zero for the first class and the line for the second: their difference is the log-odds.
            lines[index, seen_classes[0], -1] = 0.0
            lines[index, seen_classes[1]] = np.append(form.coefficients[0], form.intercepts[0])
        else:
            lines[index, seen_classes] = np.column_stack([form.coefficients, form.intercepts])
    return lines.reshape(len(forms) * n_columns, -1).T


def _linked(scores: Array, softmax: bool) -> Array:
    """Turn scores, the log-odds (n, M, C) of n rows, M models and C classes, into probabilities, in place.

    ``softmax`` says how: by exponentials that sum to one, or by normalised chances of each class against the
    rest. A single column is the chance of the second of two classes.
    """
    if softmax and scores.shape[2] > 1:
        scores -= scores.max(axis=2, keepdims=True)
        np.exp(scores, out=scores)
    else:
        np.negative(scores, out=scores)
        np.exp(scores, out=scores)
        scores += 1.0
        np.reciprocal(scores, out=scores)
        if scores.shape[2] == 1:
            return scores
        # All lines may be sure that it is not their class.
        np.maximum(scores, np.finfo(float).tiny, out=scores, where=scores > 0)
    # Positive numbers by now; as probabilities they sum to one.
    scores /= scores.sum(axis=2, keepdims=True)
    return scores


@np.errstate(over="ignore", invalid="ignore", under="ignore")
def _losses(forms: Sequence[LogisticForm], softmax: bool, learners: Learners) -> Array:
    """Return mean losses (M, L) of M models with the same link on the rows of L learners.

    ``softmax`` is the link, as in `_linked`. Rows are taken in blocks, learner by learner.
    """
    n_columns = learners.y.shape[1]
    stacked_lines = _stacked(forms, learners.y.shape[1], n_columns)
    losses = np.empty((len(forms), len(learners)))
    # Blocks that stay near the processor: a pass over them costs less than one over everything.
    rows_in_block = max(1, LIMITS.numbers // (16 * stacked_lines.shape[1]))
    for j in range(len(learners)):
        own_rows, loss_sums = learners.span(j), np.zeros(len(forms))
        for start in range(own_rows.start, own_rows.stop, rows_in_block):
            rows = slice(start, min(start + rows_in_block, own_rows.stop))
            log_odds = learners.X[rows] @ stacked_lines[:-1] + stacked_lines[-1]
            probabilities = _linked(log_odds.reshape(-1, len(forms), n_columns), softmax)
            # In place: these are residuals from here on.
            probabilities -= learners.y[rows, None, :]
            losses_by_row = learners.loss.by_row(probabilities)
            if learners.weights is not None:
                losses_by_row *= learners.weights[rows, None]
            loss_sums += losses_by_row.sum(axis=0)
        losses[:, j] = loss_sums / learners.sizes[j]
    return losses


def logistic_losses(forms: Sequence[LogisticForm], learners: Learners) -> Array:
    """Return the mean losses (M, L) of M logistic models on the rows of L learners.

    Models are grouped by their link, so that each group takes one product per block of rows.
    """
    losses = np.empty((len(forms), len(learners)))
    # Two classes have one line, their log-odds, whatever the solver: exponentials give the probabilities.
    is_softmax = np.array([form.softmax or len(form.classes) == 2 for form in forms])
    for softmax in (True, False):
        selected = np.flatnonzero(is_softmax == softmax)
        if len(selected):
            losses[selected] = _losses([forms[i] for i in selected.tolist()], softmax, learners)
    return losses
