"""The options of a fit: one frozen record, checked once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import brief, check_count, check_option, listed
from coterie.candidates import ForClasses
from coterie.collaboration.forms import METHODS
from coterie.kernels.devices import check_device
from coterie.loss import SQUARED_ERROR, Loss
from coterie.method.forecasts import Forecasts
from coterie.method.landmarks import how_many_landmarks
from coterie.method.refine.moves import REFINE, ROUNDS_OF_AVERAGES
from coterie.method.search import OR_A_NUMBER, RULES
from coterie.method.select import ORDERS
from coterie.method.spectral import check_scale
from coterie.rows.threshold import FEWEST_ROWS, enough_rows, rows_needed

SMALL_LEARNERS = ("admit", "drop", "raise")
UNKNOWN_LEARNERS = ("warn", "raise")
EFFORTS = ("full", "fast")
FAST_CANDIDATES, FAST_CLASS_CANDIDATES = ("ridge",), ("logistic",)
FAST_FOLDS = 3
# More cost time and memory, and tell nothing.
MOST_FOLDS, MOST_REPLICATES = 1000, 100_000
# Learners that shape the clusters where most have fewer than 2p + 5 rows: more cost time, and tell little.
MOST_SHAPING = 200


@dataclass(frozen=True)
class Options:
    """How to fit; each field is the option of the estimators of the same name, but for the loss."""

    candidates: Any = None
    n_clusters: Any = "auto"
    max_clusters: int | None = None
    scale: Any = "noise"
    refine: str | None = "pooled"
    refine_rounds: int | None = None
    collaboration: str = "auto"
    nested_folds: int = 4
    robust: bool = False
    standardize: str | None = None
    small_learners: str = "admit"
    min_rows: Any = "auto"
    splitter: Any = None
    order: str | None = "auto"
    time: Any = None
    log_target: bool = False
    n_bootstrap: int = 100
    engine: Any = None
    n_jobs: int | None = None
    landmarks: Any = None
    device: str = "auto"
    unknown_learners: str = "warn"
    effort: str = "full"
    loss: Loss = SQUARED_ERROR

    @property
    def chosen_candidates(self) -> Any:
        """What learners choose from; with little effort, the default is a ridge alone, or a logistic one."""
        if self.loss.bounds is not None:
            fast = self.candidates is None and self.effort == "fast"
            return ForClasses(FAST_CLASS_CANDIDATES if fast else self.candidates)
        if self.candidates is not None:
            return self.candidates
        return FAST_CANDIDATES if self.effort == "fast" else "default"

    @property
    def held_out_by(self) -> Any:
        """The splitter that holds out rows, if any: the user's, or blocks of the later rows in time order."""
        return Forecasts(self.n_folds) if self.splitter is None and self.time is not None else self.splitter

    @property
    def moves(self) -> int:
        """How often learners are moved at most. Sites that answer by messages pay a visit for each."""
        usual = ROUNDS_OF_AVERAGES if self.refine == "average" else REFINE.rounds
        return usual if self.refine_rounds is None else self.refine_rounds

    @property
    def trees(self) -> str:
        """Which trees of pooled rows take part: the cheapest with little effort and default candidates."""
        return "fast" if self.effort == "fast" and self.candidates is None else "full"

    @property
    def n_folds(self) -> int:
        """The folds on which nested coteries learn their weights; fewer with little effort."""
        return min(self.nested_folds, FAST_FOLDS) if self.effort == "fast" else self.nested_folds

    @property
    def n_replicates(self) -> int:
        """How often rows are resampled; not at all with little effort."""
        return 0 if self.effort == "fast" else self.n_bootstrap

    def check(self) -> None:
        """Refuse an option that is not known, in one sentence.

        It runs once, when a fit starts: later stages take the options as they are.
        """
        check_option(self.collaboration, "collaboration", ("auto", *METHODS))
        check_count(self.nested_folds, "nested_folds", least=2, most=MOST_FOLDS)
        check_option(self.small_learners, "small_learners", SMALL_LEARNERS)
        check_option(self.unknown_learners, "unknown_learners", UNKNOWN_LEARNERS)
        check_option(self.effort, "effort", EFFORTS)
        check_option(self.standardize, "standardize", ("learner", None))
        check_option(self.robust, "robust", (True, False))
        check_option(self.order, "order", ORDERS)
        check_option(self.log_target, "log_target", (True, False))
        if not (self.time is None or self.time is True or isinstance(self.time, str)):
            raise ValueError(
                "The 'time' option must be the name of a column of X, True where rows are in time order, or "
                f"None. Got {brief(self.time)}."
            )
        check_option(self.refine, "refine", ("pooled", "average", "likelihood", None))
        if self.refine_rounds is not None:
            check_count(self.refine_rounds, "refine_rounds")
        if isinstance(self.n_clusters, str):
            check_option(self.n_clusters, "n_clusters", RULES, alternative=OR_A_NUMBER)
        else:
            check_count(self.n_clusters, "n_clusters")
        if not (isinstance(self.min_rows, str) and self.min_rows == "auto"):
            check_count(self.min_rows, "min_rows", least=FEWEST_ROWS)
        if self.max_clusters is not None:
            check_count(self.max_clusters, "max_clusters")
        check_count(self.n_bootstrap, "n_bootstrap", least=0, most=MOST_REPLICATES)
        check_scale(self.scale)
        check_device(self.device)
        if self.landmarks is not None:
            how_many_landmarks(self.landmarks, 1)

    def split_by_size(self, ids: Array, sizes: Array, n_features: int) -> tuple[Array, int]:
        """Return who has too few rows to shape the clusters, of shape (L,), and how many rows that takes.

        ``ids`` (L,) are for errors, ``sizes`` (L,) numbers of rows. Refuse if nobody has enough, or if the
        options refuse small learners.
        """
        needed = rows_needed(sizes, n_features, self.min_rows)
        small: Array = sizes < needed
        if self.min_rows == "auto" and needed < enough_rows(n_features):
            # Nobody's own model tells much. The largest learners shape the clusters, the others join them.
            largest = np.argsort(-sizes, kind="stable")
            small[largest[MOST_SHAPING:]] = True
        if small.all():
            raise ValueError(
                f"No learner has the {needed} rows that clustering needs "
                f"(n_samples = {sizes.max()} at most): give the learners more rows"
                + ("." if needed == FEWEST_ROWS else f", or lower min_rows, down to {FEWEST_ROWS}.")
            )
        if small.any() and self.small_learners == "raise":
            raise ValueError(
                f"Too few rows for learner {listed(ids[small])}: fewer than {needed} "
                f"(n_samples = {sizes[small].min()}). "
                "Drop such learners, lower min_rows, or set small_learners='admit'."
            )
        return small, needed
