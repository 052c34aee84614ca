"""Rows that do not fit into memory: each learner is read when its turn comes.

Select reads a learner's rows, chooses and fits its model on all of them, and keeps a random part of the rows
with their out-of-fold residuals: as many as the memory allows. Exchange and Cluster work on what was kept.
Where rows were left out, clusters predict with averages of models, which have seen all rows: a model of the
kept rows would be compared with models of more. Where everything fits, the answer is that of ``fit``.

On a Dask cluster the workers read: rows stay where they lie, and models with the part that is kept come back.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np
from joblib import effective_n_jobs

from coterie._arrays import Array
from coterie._options import brief, listed
from coterie.candidates import candidates_per_learner
from coterie.collaboration.nested.families import by_least_squares
from coterie.engines import Engine, counted, resolve_engine
from coterie.fit.admit import candidates_for
from coterie.fit.options import Options
from coterie.fit.record import Fit
from coterie.fit.run import fit_selected, rows_were_left_out
from coterie.loss import SQUARED_ERROR, Loss
from coterie.method.fitting import choose_candidate, quiet_fits
from coterie.method.order import SerialScore, rows_depend, serial_score
from coterie.method.search import check_n_clusters
from coterie.method.select import BLOCKS, check_splitter, fit_job, selection_of
from coterie.rows.ids import id_array, positions_of, sorting_text
from coterie.rows.learners import Learners, Standardization, gather_learners
from coterie.rows.tables import column_names
from coterie.rows.threshold import FEWEST_ROWS, enough_rows, rows_needed
from coterie.rows.wild import column_limits, warn_of
from coterie.verdicts import Gains

# Bytes that Python and the libraries take
# before the first row is read.
BASE = 500 * 2**20
# Copies of the kept rows at the height of a fit, in double precision: measured, with room to spare.
COPIES = 16
# Copies of a learner's rows while it is read and its candidates are fitted.
COPIES_AT_WORK = 6
# Tables of every model's prediction of every kept row, where models have no coefficients.
PREDICTION_TABLES = 4
# Fewer rows of a learner than this tell too little of it.
FEWEST_ROWS_READ = 50
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class RowSource(Protocol):
    """Where one learner's rows lie. Sources travel to workers: they are small, and can be pickled."""

    @property
    def n_rows(self) -> int:
        """Number of rows, as far as is known without reading them."""
        ...

    def read(self, most: int) -> tuple[Any, Any]:
        """Read the learner.

        Parameters
        ----------
        most : int
            Largest number of rows to read. If the learner has more, they are drawn at random.

        Returns
        -------
        X : array-like or table of shape (n, p)
            Predictors.
        y : array-like of shape (n,)
            Response.
        """
        ...


def memory_in_bytes(memory: Any) -> int:
    """Return a number, or a text such as ``"2GiB"`` or ``"500 MB"``, as bytes; units are powers of 1,024."""
    text = str(memory).strip()
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", text, re.IGNORECASE)
    amount = 0 if match is None else int(float(match[1]) * _UNITS[match[2].upper()])
    if isinstance(memory, bool) or amount <= 0:
        raise ValueError(f"An amount of memory is a number with a unit, such as '2GiB'. Got {brief(memory)}.")
    return amount


@dataclass(frozen=True)
class SourceJob:
    """A learner to be read and to select.

    Of its rows, ``most`` are read and ``kept`` are kept at most; with ``enough`` of them it is not small,
    whatever the others have. Beyond ``limits`` of shape (2, p + 1) cells are wild and their rows set aside;
    None: not known yet. ``standardize`` says that its rows are standardised first.
    """

    learner: Any
    source: RowSource
    candidates: dict[str, Any] = field(repr=False)
    splitter: Any
    standardize: bool
    entropy: int
    kept: int
    most: int
    enough: int = FEWEST_ROWS
    limits: Any = field(default=None, repr=False)
    loss: Loss = SQUARED_ERROR


@dataclass(frozen=True)
class LearnerRead:
    """What is kept of a learner.

    ``rows`` are some of its rows, or all; None where it has none. ``whole`` are all its rows as they came,
    where all of them are kept. ``n_rows`` were read. ``fitted`` has the residuals of the kept rows; None: it
    has too few rows, or failed, and ``failure`` says why a learner who may be small chose nothing, an error
    where it turns out not to be. ``folds`` and ``training`` are of the kept rows. ``serial`` is what all its
    rows say about the dependence of neighbours, nothing where a splitter cut them. ``extremes`` of shape (2,
    p + 1) are the smallest and largest value of each predictor and of the response, among all rows that were
    read.
    """

    rows: Any
    whole: Any
    n_rows: int
    names: list[str] | None
    units: Any = None
    fitted: Any = None
    folds: Array = field(default_factory=lambda: np.zeros(0, dtype=int))
    training: Array = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    failure: str = ""
    serial: SerialScore = field(default_factory=SerialScore)
    extremes: Array = field(default_factory=lambda: np.zeros((2, 0)))

    def column(self, column: int) -> Array:
        """Return the kept values of a predictor, or of the response behind them, and the extremes of all.

        They are in the units of the table, for finding wild values: standardised ones are brought back.
        """
        learner = self.rows if self.whole is None else self.whole
        last = column == learner.n_features
        if last and learner.loss.bounds is not None:
            # A rare class is no wild value.
            return np.zeros(1)
        values: Array = learner.scalar_y if last else learner.X[:, column]
        if self.whole is not None:
            return values
        if self.units is not None:
            centre = self.units.centre_y[0, 0] if last else self.units.centre_x[0, column]
            values = values * (self.units.spread_y[0] if last else self.units.spread_x[0, column]) + centre
        return np.concatenate([values, self.extremes[:, column]])


def _gathered(job: SourceJob) -> tuple[Learners | None, list[str] | None]:
    """Read a learner's rows and check them; return them (None if there are none) and the columns' names.

    Rows with cells beyond the job's limits are set aside. Errors name the learner.
    """
    X, y = job.source.read(job.most)
    names = column_names(X)
    if not len(y):
        return None, names
    try:
        whole = gather_learners(X, y, limits=job.limits, loss=job.loss, caller="fit_sources")
    except ValueError as error:
        raise ValueError(f"Learner {listed([job.learner])}: {error}") from None
    wild = tuple(replace(cells, learner=job.learner) for cells in whole.wild)
    return replace(whole, ids=id_array([job.learner]), wild=wild), names


def _extremes(learner: Learners) -> Array:
    """Return the smallest and the largest value of each predictor and of the response, (2, p + 1)."""
    return np.array([[*extreme(learner.X, axis=0), extreme(learner.y[:, 0])] for extreme in (np.min, np.max)])


def select_from_source(job: SourceJob) -> LearnerRead:
    """Read a learner, let it select its model on all rows that were read, and keep a random part of them.

    Workers run this, so that only the part that is kept travels. A learner with fewer rows than any model
    needs, or one that may turn out to be small and whose models fail, comes back with its rows only.
    """
    whole, names = _gathered(job)
    if whole is None:
        return LearnerRead(None, None, 0, names)
    n = len(whole.y)
    extremes = _extremes(whole)
    if n < FEWEST_ROWS:
        return LearnerRead(whole, whole, n, names, extremes=extremes)
    rows, units = whole.standardized() if job.standardize else (whole, None)
    try:
        fit = fit_job(rows, 0, job.candidates, job.splitter, job.entropy)
        with quiet_fits():
            fitted = choose_candidate(fit)
    except ValueError as error:
        if n >= job.enough:
            raise
        return LearnerRead(whole, whole, n, names, failure=str(error), extremes=extremes)
    serial = SerialScore() if job.splitter is not None else serial_score(fitted.residuals, rows.X, rows.y)
    kept = np.arange(n)
    if n > job.kept:
        generator = np.random.default_rng([fit.seed, job.kept])
        kept = np.sort(generator.choice(n, job.kept, replace=False))
    # Who turns out to be small among the others is admitted with its rows as they came.
    as_they_came = whole if n <= job.kept else None
    kept_rows = rows if n <= job.kept else rows.only(np.isin(np.arange(n), kept))
    # A copy: behind the coefficients of least squares the solver keeps an array as long as the rows.
    losses = {name: by_row[kept] for name, by_row in fitted.candidate_losses.items()}
    fitted = copy.deepcopy(replace(fitted, residuals=fitted.residuals[kept], candidate_losses=losses))
    folds, training = fit.folds[kept], fit.training[:, kept]
    return LearnerRead(
        rows=kept_rows,
        whole=as_they_came,
        n_rows=n,
        names=names,
        units=units,
        fitted=fitted,
        folds=folds,
        training=training,
        serial=serial,
        extremes=extremes,
    )


def rows_per_learner(memory: int, sizes: Array, n_features: int, affine: bool) -> int:
    """Return how many rows of a learner are kept at most, where the fit may take ``memory`` bytes.

    ``sizes`` (L,) are the learners' numbers of rows. What small learners leave over goes to the large ones.
    ``affine`` says that all models are known to be affine (linear with an intercept), and need no table of
    predictions. Half of the memory is for the kept rows and their copies.
    """
    n_learners = len(sizes)
    bytes_per_row = 8 * (COPIES * (n_features + 1) + (0 if affine else PREDICTION_TABLES * n_learners))
    rows_in_memory = (memory - BASE) // 2 // bytes_per_row
    min_rows = max(FEWEST_ROWS_READ, enough_rows(n_features))
    needed_rows = int(np.minimum(sizes, min_rows).sum())
    if rows_in_memory < needed_rows:
        needed_mebibytes = (BASE + 2 * bytes_per_row * (needed_rows + 1)) / 2**20
        raise ValueError(
            f"{n_learners} learners with {n_features} predictors need {np.ceil(needed_mebibytes):.0f} MiB of "
            f"memory: {min_rows} rows of each are the least. Got {memory / 2**20:.0f} MiB."
        )
    sorted_sizes = np.sort(sizes)
    rows_of_smaller = np.r_[0, np.cumsum(sorted_sizes)[:-1]]
    # For each learner by size the cap at which all smaller ones are whole and the others share the rest. The
    # largest of these caps is the one that uses all of the memory.
    caps = (rows_in_memory - rows_of_smaller) // (n_learners - np.arange(n_learners))
    return int(max(min_rows, min(sorted_sizes[-1], caps.max())))


def rows_at_once(memory: Any, n_features: int, n_jobs: int | None) -> int:
    """Return how many rows of a learner can be read while as many learners are at work as there are jobs.

    ``memory`` is an amount such as "2GiB". The answer is never below `FEWEST_ROWS_READ`.
    """
    bytes_per_row = 8 * (n_features + 1) * COPIES_AT_WORK * effective_n_jobs(n_jobs)
    return max(int((memory_in_bytes(memory) - BASE) // 2 // bytes_per_row), FEWEST_ROWS_READ)


def _stacked(parts: list[LearnerRead], appearance: Array) -> Learners:
    """Return the kept rows of all learners, whose ids are sorted by their text.

    ``appearance`` (L,) are their positions in the order in which they first appeared.
    """
    sizes = [len(part.rows.y) for part in parts]
    return Learners(
        ids=id_array([part.rows.ids.tolist()[0] for part in parts]),
        X=np.concatenate([part.rows.X for part in parts]),
        y=np.concatenate([part.rows.y for part in parts]),
        offsets=np.r_[0, np.cumsum(sizes)],
        rows=np.arange(sum(sizes)),
        appearance=appearance,
        loss=parts[0].rows.loss,
    )


def _without_wild_rows(
    parts: dict[Any, LearnerRead], jobs: dict[Any, SourceJob], engine: Engine
) -> dict[Any, LearnerRead]:
    """Let learners with a wild cell, far from all others of its column, be read again without its row.

    What is far depends on the columns of all learners: the limits are known only when all have been read. A
    learner alone has nobody to be far from.
    """
    if len(parts) < 2:
        return parts
    n_columns = next(iter(parts.values())).rows.n_features + 1
    columns = (np.concatenate([part.column(k) for part in parts.values()]) for k in range(n_columns))
    limits = column_limits(columns)
    beyond = [
        learner
        for learner, part in parts.items()
        if (part.extremes[0] < limits[0]).any() or (part.extremes[1] > limits[1]).any()
    ]
    again = engine.map(select_from_source, [replace(jobs[learner], limits=limits) for learner in beyond])
    return parts | dict(zip(beyond, again, strict=True))


def _check_names(parts: dict[Any, LearnerRead]) -> None:
    """Refuse learners whose predictors differ."""
    first, head = next(iter(parts.items()))
    for learner, part in parts.items():
        if part.names != head.names or part.rows.n_features != head.rows.n_features:
            raise ValueError(
                f"The predictors of learner {listed([learner])} differ from those of learner "
                f"{listed([first])}: give all learners the same, in the same order."
            )


def first_rows(sources: Mapping[Any, RowSource]) -> Any:
    """Return some predictors of the first learner in canonical order; refuse where there is none."""
    if not sources:
        raise ValueError("There are no learners: fit_sources takes {learner id: source, ...}.")
    return sources[min(sources, key=sorting_text)].read(FEWEST_ROWS_READ)[0]


def _read_all(
    options: Options, sources: Mapping[Any, RowSource], memory: int, n_features: int, seed: int, splitter: Any
) -> tuple[dict[Any, LearnerRead], int]:
    """Let all learners be read and select; return those with rows, and how many were kept of each at most.

    They are in canonical order, by the text of their ids, in which all arithmetic runs. To select is to
    choose a model by cross-validation; ``splitter`` cuts the folds. Learners without rows are left out, with
    a warning.
    """
    order = sorted(sources, key=sorting_text)
    # Whom a mapping does not name may turn out to be small, and needs no candidates then.
    candidates_by_learner = candidates_per_learner(
        candidates_for(options.chosen_candidates, known=order, newcomers=order), order
    )
    affine = all(
        by_least_squares(model) for candidates in candidates_by_learner for model in candidates.values()
    )
    sizes = np.array([sources[learner].n_rows for learner in order])
    least = 0 if options.min_rows == "auto" else int(options.min_rows)
    kept = max(rows_per_learner(memory, sizes, n_features, affine), least)
    # The rows that a learner needs if all others have enough.
    enough = rows_needed(np.array([np.inf]), n_features, options.min_rows)
    max_read = max(rows_at_once(memory, n_features, options.n_jobs), kept)
    jobs = [
        SourceJob(
            learner=learner,
            source=sources[learner],
            candidates=candidates,
            splitter=splitter,
            standardize=bool(options.standardize),
            entropy=seed,
            # A limit that a learner does not reach is no part of its job: resuming would not know it again.
            kept=min(kept, int(size)),
            most=min(max_read, int(size)),
            enough=enough,
            loss=options.loss,
        )
        for learner, candidates, size in zip(order, candidates_by_learner, sizes, strict=True)
    ]
    engine = counted(resolve_engine(options.engine, options.n_jobs), "Select")
    parts = engine.map(select_from_source, jobs)
    with_rows = {learner: part for learner, part in zip(order, parts, strict=True) if part.n_rows}
    empty = [learner for learner in order if learner not in with_rows]
    if empty:
        warnings.warn(
            f"Learner {listed(empty)} has no rows that can be used and was left out.",
            UserWarning,
            stacklevel=5,
        )
    if not with_rows:
        raise ValueError("No learner has a row that can be used: check the sources.")
    _check_names(with_rows)
    return _without_wild_rows(with_rows, dict(zip(order, jobs, strict=True)), engine), kept


def fit_sources(
    options: Options, sources: Mapping[Any, RowSource], memory: Any, *, seed: int, n_features: int
) -> Fit:
    """Fit learners who are read one by one from ``sources``, by id; ``memory`` is what the fit may take.

    If the rows turn out to depend on each other in time, all learners are read again: they select then by
    blocks of neighbouring rows. Random folds would put a row's neighbours on both sides.
    """
    if isinstance(options.time, str) or options.log_target:
        raise ValueError(
            "fit_sources takes no name of a time column and no log_target: sort the rows of each source, "
            "pass time=True, and give the log as the response."
        )
    check_splitter(options.held_out_by)
    read_with = partial(_read_all, options, sources, memory_in_bytes(memory), n_features, seed)
    parts_by_id, max_kept = read_with(options.held_out_by)
    ids_in_order = [learner for learner in sources if learner in parts_by_id]
    appearance = positions_of(ids_in_order, parts_by_id)
    parts = list(parts_by_id.values())
    sizes = np.array([part.n_rows for part in parts])
    small, min_rows = options.split_by_size(id_array(list(parts_by_id)), sizes, parts[0].rows.n_features)
    large = [part for part, few in zip(parts, small, strict=True) if not few]
    in_order = options.order is not None and rows_depend(part.serial for part in large)
    if in_order:
        with warnings.catch_warnings():
            # What there is to say of the sources was said when they were read first.
            warnings.simplefilter("ignore")
            parts = list(read_with(BLOCKS)[0].values())
        large = [part for part, few in zip(parts, small, strict=True) if not few]
    check_n_clusters(options.n_clusters, len(large))
    # Refuses a mapping that does not name all of them.
    candidates_per_learner(options.chosen_candidates, [part.rows.ids.tolist()[0] for part in large])
    # A learner that was taken for small, and is not, needs the model that could not be fitted.
    failure = next((part.failure for part in large if part.fitted is None), None)
    if failure is not None:
        raise ValueError(failure)
    ranks = np.argsort(np.argsort(appearance)[~small], kind="stable")
    wild = tuple(cells for part in parts for cells in part.rows.wild)
    warn_of(wild, stacklevel=5)
    shaping = replace(_stacked(large, ranks), wild=wild)
    selection = selection_of(
        shaping,
        [part.fitted for part in large],
        tuple(part.folds for part in large),
        tuple(part.training for part in large),
        dependent=in_order or options.held_out_by is not None,
        in_order=in_order,
    )
    selection = replace(selection, n_rows=sizes[~small]).take(shaping.appearance)
    units = reduce(Standardization.joined, [part.units for part in large]) if options.standardize else None
    if rows_were_left_out(selection, shaping) and options.collaboration in ("pooled", "global"):
        warnings.warn(
            f"The pooled models were fitted on {max_kept} rows of each learner at most, its own model on all "
            "of them: the gains compare the two.",
            UserWarning,
            stacklevel=4,
        )
    others = None
    if small.any() and options.small_learners == "admit":
        few = [part for part, is_small in zip(parts, small, strict=True) if is_small]
        whole = [replace(part, rows=part.whole) for part in few]
        others = _stacked(whole, np.arange(len(whole)))
    fit = fit_selected(selection, shaping, options, seed=seed, min_rows=min_rows, units=units, small=others)
    if others is not None:
        fit = fit.in_order(ids_in_order)
    n_rows = sizes[positions_of(fit.learner_ids.tolist(), parts_by_id)]
    return replace(fit, gains=Gains({**fit.gains, "n_rows": n_rows}))
