"""Classes in messages: labels as texts, and what a site's share says of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.averaging import own_bounds_of
from coterie.federated.codec import ProtocolError
from coterie.federated.messages import Share
from coterie.loss import SQUARED_ERROR, BrierScore, Loss
from coterie.rows.labels import class_labels, class_numbers


def label_text(label: Any) -> str:
    """Return a class label as messages name it: 1.0 as "1", so that integer and float labels agree."""
    value = label.item() if isinstance(label, np.generic) else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def class_names(labels: Sequence[Any]) -> tuple[str, ...]:
    """Return the distinct classes as texts, in the order of the labels; refuse fewer than two.

    Two labels with the same text, such as 1 and "1", are refused, too: messages could not tell them apart.
    """
    names = tuple(label_text(label) for label in np.unique(class_labels(labels, "make_site")).tolist())
    if len(names) < 2 or len(set(names)) < len(names):
        raise ProtocolError(f"Sites need two classes with names that differ. Got {list(names)}.")
    return names


def class_codes(y: Any, classes: Sequence[str], caller: str) -> Array:
    """Return the code of each row's class, of shape (n,): its index among ``classes``.

    ``y`` has labels of any type. ``caller`` names the function in errors.
    """
    texts = np.array([label_text(label) for label in class_labels(y, caller).tolist()], dtype=object)
    return class_numbers(texts, np.array(classes, dtype=object), caller)


def loss_of(classes: Sequence[str]) -> Loss:
    """Return the loss of a response: the Brier score for classes, the squared error without any."""
    return BrierScore(len(classes)) if classes else SQUARED_ERROR


def response_moments(shares: Sequence[Share]) -> tuple[Array, Array]:
    """Return the means (L, C) and variances (L,) of the responses of L sites.

    C is 1 for numbers and two classes, else the number of classes. An indicator of a class has mean p and
    variance p (1 - p); variances are summed over the columns.
    """
    classes = shares[0].classes if shares else ()
    if not classes:
        means = np.array([[share.response_mean] for share in shares])
        return means, np.array([share.response_variance for share in shares])
    shares_of_classes = np.array([share.class_shares for share in shares])
    # Two classes need one indicator, that of the second class.
    indicator_means = shares_of_classes[:, 1:] if len(classes) == 2 else shares_of_classes
    return indicator_means, (indicator_means * (1 - indicator_means)).sum(axis=1)


def class_bounds(shares: Sequence[Share]) -> Array:
    """Return the smallest and largest probability that each site's model may state, of shape (L, 2).

    They depend on its number of rows: a few rows cannot show that a class is almost certain.
    """
    return own_bounds_of(loss_of(shares[0].classes), np.array([share.n_rows for share in shares]))
