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
    """Return the lines of a fitted logistic model, or of a pipeline of scalers and one; else None."""
    if type(model) is Pipeline:
        form = logistic_form(model.steps[-1][1], n_features)
        for _, step in reversed(model.steps[:-1]):
            scaler = (0.0, 1.0) if step in (None, "passthrough") else scaler_form(step)
            if form is None or scaler is None:
                return None
            lines = form.coefficients / scaler[1]
            moved = form.intercepts - np.sum(lines * scaler[0], axis=1)
            form = replace(form, coefficients=lines, intercepts=moved)
        return form
    answers = getattr(type(model), "predict_proba", None)
    if answers not in LOGISTIC_ANSWERS:
        return None
    one_by_one = isinstance(model, QuickLogistic) or (
        getattr(model, "multi_class", None) == "ovr" or getattr(model, "solver", None) == "liblinear"
    )
    lines = np.asarray(model.coef_, dtype=float)
    if lines.shape[1:] != (n_features,):
        return None
    return LogisticForm(
        lines, np.broadcast_to(model.intercept_, len(lines)), np.asarray(model.classes_), not one_by_one
    )


def is_line(model: Any, n_features: int) -> bool:
    """Tell whether a fitted model is a line, or a line behind a link."""
    return affine_form(model, n_features) is not None or logistic_form(model, n_features) is not None


def _stacked(forms: Sequence[LogisticForm], n_classes: int, n_columns: int) -> Array:
    """Return the lines of models as columns, of shape (p + 1, M * C); -inf: a class is never predicted."""
    n_features = forms[0].coefficients.shape[1]
    lines = np.zeros((len(forms), n_columns, n_features + 1))
    for index, form in enumerate(forms):
        if n_columns == 1:
            lines[index, 0] = np.append(form.coefficients[0], form.intercepts[0])
            continue
        lines[index, :, -1] = -np.inf
        selected = form.classes.astype(int)
        if len(selected) == 2:
            # Nought against the line: the same log-odds.
            lines[index, selected[0], -1] = 0.0
            lines[index, selected[1]] = np.append(form.coefficients[0], form.intercepts[0])
        else:
            lines[index, selected] = np.column_stack([form.coefficients, form.intercepts])
    return lines.reshape(len(forms) * n_columns, -1).T


def _linked(values: Array, softmax: bool) -> Array:
    """Turn log-odds (n, M, C) into probabilities, in place."""
    if softmax and values.shape[2] > 1:
        values -= values.max(axis=2, keepdims=True)
        np.exp(values, out=values)
    else:
        np.negative(values, out=values)
        np.exp(values, out=values)
        values += 1.0
        np.reciprocal(values, out=values)
        if values.shape[2] == 1:
            return values
        # All lines may be sure that it is not their class.
        np.maximum(values, np.finfo(float).tiny, out=values, where=values > 0)
    values /= values.sum(axis=2, keepdims=True)
    return values


@np.errstate(over="ignore", invalid="ignore", under="ignore")
def _losses(forms: Sequence[LogisticForm], softmax: bool, learners: Learners) -> Array:
    """Return mean losses of shape (M, L) of models with the same link."""
    n_columns = learners.y.shape[1]
    columns = _stacked(forms, learners.y.shape[1], n_columns)
    losses = np.empty((len(forms), len(learners)))
    # Blocks that stay near the processor: a pass over them costs less than one over everything.
    most = max(1, LIMITS.numbers // (16 * columns.shape[1]))
    for j in range(len(learners)):
        span, total = learners.span(j), np.zeros(len(forms))
        for start in range(span.start, span.stop, most):
            rows = slice(start, min(start + most, span.stop))
            values = learners.X[rows] @ columns[:-1] + columns[-1]
            probabilities = _linked(values.reshape(-1, len(forms), n_columns), softmax)
            probabilities -= learners.y[rows, None, :]
            by_row = learners.loss.by_row(probabilities)
            if learners.weights is not None:
                by_row *= learners.weights[rows, None]
            total += by_row.sum(axis=0)
        losses[:, j] = total / learners.sizes[j]
    return losses


def logistic_losses(forms: Sequence[LogisticForm], learners: Learners) -> Array:
    """Return the mean losses of shape (M, L) of logistic models on learners."""
    losses = np.empty((len(forms), len(learners)))
    link = np.array([form.softmax or len(form.classes) == 2 for form in forms])
    for softmax in (True, False):
        selected = np.flatnonzero(link == softmax)
        if len(selected):
            losses[selected] = _losses([forms[i] for i in selected.tolist()], softmax, learners)
    return losses
