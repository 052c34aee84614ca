"""What a report is about: a fitted model, or a partition made from a matrix of losses alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from coterie.displays._look import shown_name
from coterie.method.precomputed import exchange_from_losses
from coterie.records import Exchange, Partition
from coterie.regressor import CoterieRegressor

Array = NDArray[Any]

# A name on a page may be long, not endless.
LONGEST_NAME = 200


def full_name(learner: object) -> str:
    """Return a learner's id as a printable text."""
    return shown_name(learner, LONGEST_NAME)


@dataclass(frozen=True)
class Subject:
    """The parts of a report's model, None where it has no such part.

    Parameters
    ----------
    partition : Partition
        Who learns with whom.
    exchange : Exchange or None
        Losses of the same learners, in the same order.
    model : CoterieRegressor or None
        The fitted model.
    """

    partition: Partition
    exchange: Exchange | None = None
    model: CoterieRegressor | None = None

    @property
    def gains(self) -> dict[str, Array] | None:
        """The table of gains as columns, a row per learner, newcomers too."""
        return None if self.model is None else dict(self.model.gains_)

    @property
    def names(self) -> list[str]:
        """The names of the learners that shaped the clusters."""
        return [full_name(learner) for learner in self.partition.learner_ids]

    @property
    def n_admitted(self) -> int:
        """How many learners were placed after the clusters had been found."""
        shaping = len(self.partition.learner_ids)
        return 0 if self.model is None else len(self.model.learner_ids_) - shaping

    @property
    def stability(self) -> Any:
        """What the bootstrap found, or None where there was none."""
        return getattr(self.model, "stability_", None)

    def why_no_rows(self, what: str) -> str:
        """Say why something that needs the learners' rows is missing."""
        return f"{what} need the learners' rows; this report was made from a matrix of losses alone."


def as_subject(model: Any, losses: Any = None) -> Subject:
    """Take apart what a report can be made from.

    Parameters
    ----------
    model : CoterieRegressor or Partition
        A fitted model, or what `cluster_learners` made from a matrix of losses.
    losses : Exchange, array-like of shape (L, L) or None, default=None
        The losses that a partition was made from.

    Returns
    -------
    Subject
        With the parts that there are.
    """
    if isinstance(model, CoterieRegressor):
        check_is_fitted(model)
        if losses is not None:
            raise ValueError("A fitted model has its own losses: pass losses= with a Partition only.")
        return Subject(model.partition_, model.exchange_.aligned_to(model.partition_.learner_ids), model)
    if not isinstance(model, Partition):
        kind = f"the class {model.__name__} itself" if isinstance(model, type) else type(model).__name__
        raise TypeError(
            f"Report takes a fitted CoterieRegressor, or the Partition of cluster_learners. Got {kind}."
        )
    if losses is None:
        return Subject(model)
    if not isinstance(losses, Exchange):
        named = getattr(losses, "columns", None) is not None
        losses = exchange_from_losses(losses, None if named else model.learner_ids)
    if len(losses.learner_ids) != len(model.learner_ids):
        raise ValueError(
            f"The losses of {len(losses.learner_ids)} learners do not fit a partition of "
            f"{len(model.learner_ids)}: pass the matrix that it was made from."
        )
    return Subject(model, losses.aligned_to(model.learner_ids))


def finite_list(values: Any, digits: int = 6) -> list[float | None]:
    """Return numbers as JSON knows them: rounded to so many digits, None for what is not finite."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, float).tolist()]
