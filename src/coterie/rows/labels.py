"""Labels of classes: what users call them, and their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from coterie._arrays import Array
from coterie._options import listed
from coterie.rows.numbers import as_array, is_missing


def class_labels(y: Any, caller: str) -> Array:
    """Return the labels of rows, of shape (N,); refuse what is missing, or is no class.

    Labels are texts or whole numbers of one type; other numbers are a regression. ``caller`` is named in
    errors.
    """
    try:
        labels = as_array(y)
    except ValueError as error:
        raise ValueError(f"The 'y' argument of {caller} {error}.") from None
    if labels.ndim == 2 and labels.shape[1] > 1:
        raise ValueError(
            f"The 'y' argument of {caller} has {labels.shape[1]} columns, and a learner has one response: "
            "fit a model for each column. Multi-output is not supported."
        )
    if labels.ndim == 2:
        # As scikit-learn does, with its warning.
        from sklearn.utils.validation import column_or_1d

        labels = column_or_1d(labels, warn=True)
    if labels.ndim != 1:
        raise ValueError(
            f"The 'y' argument of {caller} must have one dimension, one label per row of X. "
            f"Got the shape {labels.shape}."
        )
    if labels.dtype.kind == "O":
        values = labels.tolist()
        missing = np.array([is_missing(value) for value in values], dtype=bool)
        if not missing.any():
            kinds = {isinstance(value, str) for value in values}
            if len(kinds) > 1:
                raise ValueError(
                    f"The 'y' argument of {caller} mixes texts with other labels: give them one type."
                )
            labels = np.array(values)
    else:
        missing = np.isnan(labels) if labels.dtype.kind == "f" else np.zeros(len(labels), dtype=bool)
    if missing.any():
        are = "label is" if missing.sum() == 1 else "labels are"
        raise ValueError(
            f"Input y of {caller} contains NaN: {int(missing.sum())} {are} missing. "
            "Drop the rows without a class."
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError(f"Input y of {caller} contains infinity, which is no class.")
    kind = type_of_target(labels)
    if kind not in ("binary", "multiclass"):
        raise ValueError(
            f"Unknown label type: {kind}. The 'y' argument of {caller} must hold classes; numbers are "
            "fitted by CoterieRegressor."
        )
    return labels


def class_numbers(labels: Array, classes: Array, caller: str) -> Array:
    """Return the position of each row's label among the ``classes``, as float64; refuse unknown labels."""
    known = {label: number for number, label in enumerate(classes.tolist())}
    unknown = [label for label in dict.fromkeys(labels.tolist()) if label not in known]
    if unknown:
        raise ValueError(
            f"The class {listed(unknown)} in y of {caller} was not seen in fit, which knows {listed(known)}."
        )
    return np.array([known[label] for label in labels.tolist()], dtype=float)
