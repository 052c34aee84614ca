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
    """Return a label as messages name it: a whole number without its point, everything else as text."""
    value = label.item() if isinstance(label, np.generic) else label
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def class_names(labels: Sequence[Any]) -> tuple[str, ...]:
    """Return the names of classes, sorted as the labels are; refuse fewer than two, or two of one name."""
    names = tuple(label_text(label) for label in np.unique(class_labels(labels, "make_site")).tolist())
    if len(names) < 2 or len(set(names)) < len(names):
        raise ProtocolError(f"Sites need two classes with names that differ. Got {list(names)}.")
    return names


def class_codes(y: Any, classes: Sequence[str], caller: str) -> Array:
    """Return the numbers of the classes of some rows."""
    names = np.array([label_text(label) for label in class_labels(y, caller).tolist()], dtype=object)
    return class_numbers(names, np.array(classes, dtype=object), caller)


def loss_of(classes: Sequence[str]) -> Loss:
    """Return the loss of a response with these classes; without any it is a number."""
    return BrierScore(len(classes)) if classes else SQUARED_ERROR


def response_moments(shares: Sequence[Share]) -> tuple[Array, Array]:
    """Return means (L, C) and variances (L,) of the sites' responses, in the columns of their loss."""
    classes = shares[0].classes if shares else ()
    if not classes:
        means = np.array([[share.response_mean] for share in shares])
        return means, np.array([share.response_variance for share in shares])
    whole = np.array([share.class_shares for share in shares])
    columns = whole[:, 1:] if len(classes) == 2 else whole
    return columns, (columns * (1 - columns)).sum(axis=1)


def class_bounds(shares: Sequence[Share]) -> Array:
    """Return what the probabilities of each site's model are kept within, of shape (L, 2)."""
    return own_bounds_of(loss_of(shares[0].classes), np.array([share.n_rows for share in shares]))
