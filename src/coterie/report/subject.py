"""What a report is about: a fitted model, a partition of a matrix of losses, or what sites concluded."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from coterie._answer import answer_sentences
from coterie._text import display_name
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
    return display_name(learner, LONGEST_NAME)


def full_names(learners: Any) -> list[str]:
    """Return learners' ids as printable texts."""
    return [full_name(learner) for learner in learners]


def finite_list(values: Any, digits: int = 6) -> list[float | None]:
    """Return numbers as JSON knows them: rounded to significant digits, None for what is not finite."""
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in np.asarray(values, float).tolist()]


def _own_view(summary: dict[str, Any], site: str) -> dict[str, Any]:
    """Return the summary of a conclusion as one site's page may show it: with no other site's numbers.

    Sites do not see each other's numbers. Means over all sites are taken out as well, for with few sites they
    would tell the numbers of each. The summary given is not changed.
    """
    own_rows = [row for row in summary["gains"] if row["learner"] == site]
    visible_columns = ("cluster", "n_learners", "learners")
    visible = {
        **summary,
        "coteries": [{name: coterie[name] for name in visible_columns} for coterie in summary["coteries"]],
        "pays": None,
        "by_verdict": [],
        "n_rows": None,
        "does_not_belong": [entry for entry in summary["does_not_belong"] if entry["learner"] == site],
        "gains": own_rows,
    }
    own_answer = f"{full_name(site)}: {own_rows[0]['verdict']}. {own_rows[0]['reason']}"
    return {**visible, "answer": [own_answer, *answer_sentences(visible)]}


@dataclass(frozen=True)
class ReportSubject:
    """The parts of a report's subject, None where it has no such part.

    A conclusion has nothing but itself, and ``site`` where one site's own page is meant. ``exchange`` has the
    learners of ``partition``, in its order.
    """

    partition: Partition | None = None
    exchange: Exchange | None = None
    model: CoterieEstimator | None = None
    conclusion: Conclusion | None = None
    site: str | None = None

    @property
    def found(self) -> Fit | Partition | Conclusion:
        """The whole of it, as `coterie.summary` takes it."""
        subject = self.partition or self.conclusion if self.model is None else self.model.record_
        assert subject is not None
        return subject

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The answer, as `coterie.summary` gives it."""
        recipe = getattr(self.model, "table_", None)
        target = getattr(self.model, "target_name_", "") or None
        summary = summarize(self.found, target=target, unit="" if recipe is None else recipe.unit)
        return summary if self.site is None else _own_view(summary, self.site)

    @property
    def stability(self) -> Any:
        """What the bootstrap found, or None where there was none."""
        return getattr(self.model, "stability_", None)

    def why_missing(self, what: str) -> str:
        """Say why something that only a fitted model has is missing."""
        if self.conclusion is not None:
            return f"{what} are not known here: a conclusion holds coteries, gains and weights only."
        return f"{what} need the learners' rows; this report was made from a matrix of losses alone."


def _check_site(subject: Any, site: str) -> None:
    """Refuse a site's own page where there is no conclusion, or one that does not have the site."""
    if not isinstance(subject, Conclusion):
        raise ValueError("Only a conclusion has pages of single sites: pass site= with a Conclusion.")
    if site not in subject.labels:
        reason = subject.left_out.get(site)
        raise ValueError(
            f"The conclusion has no site {site!r}." if reason is None else f"{site!r} was left out: {reason}"
        )


def as_subject(subject: Any, losses: Any = None, site: str | None = None) -> ReportSubject:
    """Check what a report is to be made from, and return its parts.

    ``subject`` is a fitted model, a partition or a conclusion. ``losses`` are those that a partition was
    made from, and are brought into its order; ``site`` is the one of a conclusion whose page is meant.
    """
    if site is not None:
        _check_site(subject, site)
    if isinstance(subject, CoterieEstimator):
        check_is_fitted(subject)
        if losses is not None:
            raise ValueError("A fitted model has its own losses: pass losses= with a Partition only.")
        return ReportSubject(
            subject.partition_, subject.exchange_.aligned_to(subject.partition_.learner_ids), subject
        )
    if isinstance(subject, Conclusion):
        if losses is not None:
            raise ValueError("A conclusion has no losses to show: pass losses= with a Partition only.")
        return ReportSubject(conclusion=subject, site=site)
    if not isinstance(subject, Partition):
        kind = f"the class {subject.__name__} itself" if isinstance(subject, type) else type(subject).__name__
        raise TypeError(
            "Report takes a fitted CoterieRegressor, the Partition of cluster_learners, or the Conclusion of "
            f"federated sites. Got {kind}."
        )
    if losses is None:
        return ReportSubject(subject)
    if not isinstance(losses, Exchange):
        named = getattr(losses, "columns", None) is not None
        losses = exchange_from_losses(losses, None if named else subject.learner_ids)
    if len(losses.learner_ids) != len(subject.learner_ids):
        raise ValueError(
            f"The losses of {len(losses.learner_ids)} learners do not fit a partition of "
            f"{len(subject.learner_ids)}: pass the matrix that it was made from."
        )
    return ReportSubject(subject, losses.aligned_to(subject.learner_ids))
