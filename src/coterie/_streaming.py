"""Rows that do not fit into memory: each learner is read when its turn comes.

Select reads a learner's rows, chooses and fits its model on all of them, and keeps a random part of the rows
with their honest residuals: as many as the memory allows. Exchange, Cluster and Collaborate work on what was
kept; what a coterie predicts with is the average of its members' models, which have seen all rows. Where
everything fits, nothing is left out and the answer is that of ``fit``.

On a Dask cluster the workers read: rows stay where they lie, and models with the part that is kept come back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from coterie._joining import admit_learners
from coterie._options import listed
from coterie._rows import Learners, Standardization, gather_learners
from coterie._seeds import as_entropy
from coterie._tables import column_names
from coterie.candidates import candidates_per_learner
from coterie.engines import counted, resolve_engine
from coterie.how_many import check_n_clusters
from coterie.kernels.fitting import choose_candidate, quiet_fits
from coterie.stages.select import FEWEST_ROWS, fit_job, selection_of

Array = NDArray[Any]

# What Python and the libraries take before the first row is read.
BASE = 500 * 2**20
# Copies of the kept rows at the height of a fit, in double precision: measured, with room to spare.
COPIES = 16
# Copies of a learner's rows while it is read and its candidates are fitted.
COPIES_AT_WORK = 6
# Fewer rows of a learner than this tell too little of it.
FEWEST_KEPT = 50
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


class RowSource(Protocol):
    """Where one learner's rows lie. Sources travel to workers: they are small, and can be pickled."""

    @property
    def n_rows(self) -> int:
        """Number of rows, as far as is known without reading them."""
        ...

    def read(self, most: int) -> tuple[Any, Any]:
        """Return X and y of the learner, of many rows ``most`` at random places."""
        ...


def memory_in_bytes(memory: Any) -> int:
    """Return an amount of memory as a number of bytes.

    Parameters
    ----------
    memory : int or str
        Bytes, or a text such as ``"2GiB"`` or ``"500 MB"``; units are powers of 1,024.

    Returns
    -------
    int
        Bytes.
    """
    given = str(memory).strip()
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(?:i?B)?", given, re.IGNORECASE)
    amount = 0 if match is None else int(float(match[1]) * _UNITS[match[2].upper()])
    if isinstance(memory, bool) or amount <= 0:
        raise ValueError(f"An amount of memory is a number with a unit, such as '2GiB'. Got {memory!r}.")
    return amount


@dataclass(frozen=True)
class SourceJob:
    """A learner to be read and to select.

    Parameters
    ----------
    learner : object
        Its id.
    source : RowSource
        Where its rows lie.
    candidates : dict of str to estimator
        What it chooses from.
    splitter : scikit-learn splitter or None
        As for Select.
    standardize : bool
        Whether its rows are standardised first.
    entropy : int
        Of everything random.
    least : int
        With fewer rows it selects nothing.
    kept : int
        Rows that are kept at most.
    most : int
        Rows that are read at most.
    """

    learner: Any
    source: RowSource
    candidates: dict[str, Any] = field(repr=False)
    splitter: Any
    standardize: bool
    entropy: int
    least: int
    kept: int
    most: int


@dataclass(frozen=True)
class Read:
    """What is kept of a learner.

    Parameters
    ----------
    rows : Learners
        Some of its rows, or all.
    n_rows : int
        How many were read.
    names : list of str or None
        Of the predictors.
    units : Standardization or None
        Where rows were standardised: by what.
    fitted : Fitted or None
        What it chose; its residuals are those of the kept rows. None: it has too few rows.
    folds : ndarray
        Which fold held each kept row out.
    training : ndarray
        Which of the kept rows each fold trained on.
    """

    rows: Learners
    n_rows: int
    names: list[str] | None
    units: Any = None
    fitted: Any = None
    folds: Array = field(default_factory=lambda: np.zeros(0, dtype=int))
    training: Array = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))


def select_from_source(job: SourceJob) -> Read:
    """Read a learner, let it select, and keep some of its rows.

    Parameters
    ----------
    job : SourceJob
        Which learner.

    Returns
    -------
    Read
        What is kept.
    """
    X, y = job.source.read(job.most)
    names = column_names(X)
    whole = gather_learners(X, y, caller="fit_sources")
    whole = replace(whole, ids=np.array([job.learner]))
    if len(whole.y) < max(job.least, FEWEST_ROWS):
        return Read(whole, len(whole.y), names)
    units = None
    if job.standardize:
        whole, units = whole.standardized()
    fit = fit_job(whole, 0, job.candidates, job.splitter, job.entropy)
    with quiet_fits():
        fitted = choose_candidate(fit)
    kept = np.arange(len(whole.y))
    if len(kept) > job.kept:
        generator = np.random.default_rng([fit.seed, job.kept])
        kept = np.sort(generator.choice(len(kept), job.kept, replace=False))
    mask = np.isin(np.arange(len(whole.y)), kept)
    fitted = replace(fitted, residuals=fitted.residuals[kept])
    return Read(whole.only(mask), len(whole.y), names, units, fitted, fit.folds[kept], fit.training[:, kept])


def _shares(memory: int, n_learners: int, n_features: int, n_threads: int) -> tuple[int, int]:
    """Return how many rows of each learner are kept, and how many are read, at most."""
    row = 8 * (n_features + 1)
    room = (memory - BASE) // 2
    kept, most = room // (COPIES * row * n_learners), room // (COPIES_AT_WORK * row * n_threads)
    fewest = max(FEWEST_KEPT, 2 * n_features + 5)
    if kept < fewest:
        needed = BASE + 2 * COPIES * row * n_learners * fewest
        raise ValueError(
            f"{n_learners} learners with {n_features} predictors need {needed / 2**30:.1f} GiB of memory: "
            f"{fewest} rows of each are the least. Got {memory / 2**30:.1f} GiB."
        )
    return int(kept), int(max(most, fewest))


def _together(parts: list[Read]) -> Learners:
    """Return the kept rows of all learners, whose ids are sorted by their text."""
    ids = np.concatenate([part.rows.ids for part in parts])
    sizes = [len(part.rows.y) for part in parts]
    return Learners(
        ids=ids,
        X=np.concatenate([part.rows.X for part in parts]),
        y=np.concatenate([part.rows.y for part in parts]),
        offsets=np.r_[0, np.cumsum(sizes)],
        rows=np.arange(sum(sizes)),
        appearance=np.arange(len(ids)),
    )


def _check_names(parts: list[Read], learners: list[Any]) -> None:
    for part, learner in zip(parts, learners, strict=True):
        if part.names != parts[0].names or part.rows.n_features != parts[0].rows.n_features:
            raise ValueError(
                f"The predictors of learner {listed([learner])} differ from those of learner "
                f"{listed(learners[:1])}: give all learners the same, in the same order."
            )


def _read_all(model: Any, sources: Mapping[Any, RowSource], memory: int, entropy: int) -> list[Read]:
    """Let everybody be read and select, in order of the ids' texts."""
    order = sorted(sources, key=lambda learner: f"{learner}\0{type(learner).__name__}")
    head, _ = sources[order[0]].read(FEWEST_ROWS)
    validate_data(model, head, skip_check_array=True)
    n_features = int(np.shape(head)[1])
    kept, most = _shares(memory, len(order), n_features, effective_n_jobs(model.n_jobs))
    sizes = np.array([sources[learner].n_rows for learner in order])
    how = (model.splitter, bool(model.standardize), entropy, model._threshold(sizes, n_features), kept, most)
    sets = candidates_per_learner(model.candidates, order)
    jobs = [
        SourceJob(learner, sources[learner], some, *how) for learner, some in zip(order, sets, strict=True)
    ]
    parts = counted(resolve_engine(model.engine, model.n_jobs), "Select").map(select_from_source, jobs)
    _check_names(parts, order)
    return parts


def fit_sources(model: Any, sources: Mapping[Any, RowSource], memory: Any) -> None:
    """Fit a model to learners who are read one by one.

    Parameters
    ----------
    model : CoterieRegressor
        Its options say how.
    sources : mapping of learner id to RowSource
        Where the rows lie.
    memory : int or str
        What the fit may take.
    """
    if not sources:
        raise ValueError("There are no learners: fit_sources takes {learner id: source, ...}.")
    entropy = as_entropy(model.random_state)
    parts = _read_all(model, sources, memory_in_bytes(memory), entropy)
    learners = _together(parts)
    # The part that is kept has rows enough wherever the whole had.
    small = model._find_small(learners)
    large = [part for part, few in zip(parts, small, strict=True) if not few]
    check_n_clusters(model.n_clusters, len(large))
    shaping = learners.take(np.flatnonzero(~small))
    fitted, units = [part.fitted for part in large], [part.units for part in large]
    selection = selection_of(
        shaping, fitted, tuple(part.folds for part in large), tuple(part.training for part in large)
    )
    joined = reduce(Standardization.joined, units) if model.standardize else None
    thinned = any(part.n_rows > len(part.rows.y) for part in large)
    model._fit_selected(selection, shaping, joined, model.n_clusters, entropy, thinned=thinned)
    if small.any() and model.small_learners == "admit":
        admit_learners(model, learners.take(np.flatnonzero(small)))
        model._show_in_order(learners.ids.tolist())
    read = {learner: part.n_rows for learner, part in zip(learners.ids.tolist(), parts, strict=True)}
    model.gains_["n_rows"] = np.array([read[learner] for learner in model.gains_["learner"].tolist()])
