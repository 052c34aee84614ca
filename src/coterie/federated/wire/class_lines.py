"""Logistic models on the wire: the coefficients of a line for each class, and how lines become probabilities.

The body says how many classes there are, which of them the model has seen, and which link it has. Then come
its lines in float64: none for a model of one class, one for two classes, else one for each.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

from coterie._arrays import Array
from coterie.federated.wire.envelope import MAX_CLASSES, WireError, unreadable
from coterie.kernels.logistic import LogisticForm

# Number of classes and the softmax flag.
_HEAD = struct.Struct("<II")
# Whether log-odds become probabilities by a softmax, else by a logistic function for each class.
SOFTMAX_FLAGS = (False, True)


@dataclass(frozen=True, eq=False)
class ClassLines:
    """Lines (m, p + 1) of a model that knows the classes ``seen``, numbers among ``n_classes``."""

    lines: Array
    seen: Array
    softmax: bool
    n_classes: int

    @classmethod
    def of(cls, form: LogisticForm, n_classes: int) -> ClassLines:
        """Return the lines of a logistic model that was fitted to numbers of classes."""
        lines = np.column_stack([form.coefficients, form.intercepts])
        return cls(lines, form.classes.astype(int), form.softmax, n_classes)

    @classmethod
    def of_one(cls, seen: int, n_features: int, n_classes: int) -> ClassLines:
        """Return the model of rows that have one class only."""
        return cls(np.empty((0, n_features + 1)), np.array([seen]), False, n_classes)

    def predict(self, X: Array) -> Array:
        """Return the probabilities of all classes for rows (n, p), of shape (n, n_classes).

        Classes that the model has not seen have probability nought.
        """
        probabilities = np.zeros((len(X), self.n_classes))
        if len(self.seen) == 1:
            probabilities[:, self.seen] = 1.0
            return probabilities
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            log_odds = X @ self.lines[:, :-1].T + self.lines[:, -1]
            if len(self.seen) == 2:
                # The only line gives the log-odds of the second class.
                second = 1 / (1 + np.exp(-log_odds[:, 0]))
                probabilities[:, self.seen] = np.column_stack([1 - second, second])
            elif self.softmax:
                exponentials = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
                probabilities[:, self.seen] = exponentials / exponentials.sum(axis=1, keepdims=True)
            else:
                # Every line may give nought to its class: a tiny number keeps the sum positive.
                one_vs_rest = np.maximum(1 / (1 + np.exp(-log_odds)), np.finfo(float).tiny)
                probabilities[:, self.seen] = one_vs_rest / one_vs_rest.sum(axis=1, keepdims=True)
        return probabilities

    def to_bytes(self) -> bytes:
        """Return the body of a model on the wire: header, a byte for each class, and coefficients in float64.

        The byte says whether the model has seen the class.
        """
        if not np.isfinite(self.lines).all():
            raise WireError(
                "The model has a coefficient that is not a finite number: leave this candidate out."
            )
        seen_flags = np.isin(np.arange(self.n_classes), self.seen).astype("u1")
        return (
            _HEAD.pack(self.n_classes, int(self.softmax))
            + seen_flags.tobytes()
            + self.lines.astype("<f8").tobytes()
        )


def classes_of(body: bytes) -> int:
    """Return how many classes a model of classes says it knows; it stands first in every such body."""
    if len(body) < 4:
        raise unreadable("is cut short")
    return int(struct.unpack_from("<I", body)[0])


def read_class_lines(body: bytes, n_features: int, n_classes: int) -> ClassLines:
    """Read what `ClassLines.to_bytes` of a peer wrote; refuse everything else that may have come.

    ``n_features`` and ``n_classes`` are what the reader expects.
    """
    if len(body) < _HEAD.size + n_classes:
        raise unreadable("is cut short")
    _, softmax_flag = _HEAD.unpack_from(body)
    seen_flags = np.frombuffer(body, dtype="u1", count=n_classes, offset=_HEAD.size)
    seen = np.flatnonzero(seen_flags)
    if softmax_flag not in SOFTMAX_FLAGS or not set(seen_flags.tolist()) <= {0, 1} or not len(seen):
        raise unreadable("holds lines of classes that do not fit each other")
    # One class needs no line, two need one, more need one each.
    n_lines = {1: 0, 2: 1}.get(len(seen), len(seen))
    coefficient_bytes = body[_HEAD.size + n_classes :]
    if len(coefficient_bytes) != 8 * n_lines * (n_features + 1):
        raise unreadable(f"does not hold {n_lines} lines of {n_features + 1} coefficients")
    lines = np.frombuffer(coefficient_bytes, dtype="<f8").astype(np.float64).reshape(n_lines, n_features + 1)
    if not np.isfinite(lines).all():
        raise unreadable("has a coefficient that is not a finite number")
    return ClassLines(lines, seen, bool(softmax_flag), n_classes)


def check_n_classes(n_classes: int) -> int:
    """Return a number of classes; refuse one that no message may have."""
    if not 2 <= n_classes <= MAX_CLASSES:
        raise WireError(f"A model of classes knows 2 to {MAX_CLASSES} of them. Got {n_classes}.")
    return n_classes
