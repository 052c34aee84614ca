"""What a report is about: a fitted model, a partition of a matrix of losses, or what sites concluded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie._text import shown_name
from coterie.estimator import CoterieEstimator
from coterie.federated import Conclusion
from coterie.fit.record import Fit
from coterie.method.exchange import exchange_from_losses
from coterie.records import Exchange, Partition
from coterie.summary import summarize

# A name on a page may be long, not endless.
LONGEST_NAME = 200


def full_name(learner: object) -> str:
    """Return a learner's id as a printable text."""
    return shown_name(learner, LONGEST_NAME)


def full_names(learners: Any) -> list[str]:
    """Return learners' ids as printable texts."""
    return [full_name(learner) for learner in learners]


def finite_list(values: Any, digits: int = 6) -> list[float | None]:
    """Return numbers as JSON knows them: rounded to so many digits, None for what is not finite."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, float).tolist()]


@dataclass(frozen=True)
class Subject:
    """The parts of a report's subject, None where it has no such part.

    A conclusion has nothing but itself. ``exchange`` has the learners of ``partition``, in its order.
    """

    partition: Partition | None = None
    exchange: Exchange | None = None
    model: CoterieEstimator | None = None
    conclusion: Conclusion | None = None

    @property
    def found(self) -> Fit | Partition | Conclusion:
        """The whole of it, as `coterie.summary` takes it."""
        found = self.partition or self.conclusion if self.model is None else self.model.record_
        assert found is not None
        return found

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The answer, as `coterie.summary` gives it."""
        return summarize(self.found)

    @property
    def stability(self) -> Any:
        """What the bootstrap found, or None where there was none."""
        return getattr(self.model, "stability_", None)

    def why_missing(self, what: str) -> str:
        """Say why something that only a fitted model has is missing."""
        if self.conclusion is not None:
            return f"{what} are not known here: a conclusion of sites holds their coteries and gains only."
        return f"{what} need the learners' rows; this report was made from a matrix of losses alone."


def as_subject(found: Any, losses: Any = None) -> Subject:
    """Take apart what a report can be made from; ``losses`` are those that a partition was made from."""
    if isinstance(found, CoterieEstimator):
        check_is_fitted(found)
        if losses is not None:
            raise ValueError("A fitted model has its own losses: pass losses= with a Partition only.")
        return Subject(found.partition_, found.exchange_.aligned_to(found.partition_.learner_ids), found)
    if isinstance(found, Conclusion):
        if losses is not None:
            raise ValueError("A conclusion has no losses to show: pass losses= with a Partition only.")
        return Subject(conclusion=found)
    if not isinstance(found, Partition):
        kind = f"the class {found.__name__} itself" if isinstance(found, type) else type(found).__name__
        raise TypeError(
            "Report takes a fitted CoterieRegressor, the Partition of cluster_learners, or the Conclusion of "
            f"federated sites. Got {kind}."
        )
    if losses is None:
        return Subject(found)
    if not isinstance(losses, Exchange):
        named = getattr(losses, "columns", None) is not None
        losses = exchange_from_losses(losses, None if named else found.learner_ids)
    if len(losses.learner_ids) != len(found.learner_ids):
        raise ValueError(
            f"The losses of {len(losses.learner_ids)} learners do not fit a partition of "
            f"{len(found.learner_ids)}: pass the matrix that it was made from."
        )
    return Subject(found, losses.aligned_to(found.learner_ids))
