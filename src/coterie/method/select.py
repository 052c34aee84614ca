"""Select: every learner lets its candidates compete on rows that they have not seen.

The learner's rows are split at random into halves; each candidate is fitted on the first half and scored
on the second; the best one is refitted on all rows. It becomes the learner's model f_i, with its fitted
error e_i. The chosen candidate's residuals from both directions of the split are kept: no row was seen by
the model that predicts it, so they measure the learner's noise.

If these residuals show that neighbouring rows depend on each other, as in time order, random halves are not
independent of each other. Learners then select again, with the first and the second half of their rows.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from coterie._arrays import Array
from coterie._options import brief, check_option, listed
from coterie._seeds import as_entropy, generator_for, integer_seed
from coterie.candidates import candidates_per_learner
from coterie.engines import counted, resolve_engine
from coterie.method.fitting import FitJob, Fitted, choose_candidate, quiet_fits
from coterie.method.noise import clip_bounds, mostly_one_value, noise_levels, pooled_variance
from coterie.method.order import rows_depend, serial_score, variance_inflation
from coterie.records import Selection
from coterie.rows.learners import Learners, gather_learners
from coterie.rows.threshold import FEWEST_ROWS
from coterie.rows.wild import warn_of

# Rows that depend on each other in their order are split into their first and their second half.
BLOCKS = KFold(2)
ORDERS = ("auto", None)


def split_halves(n_rows: int, generator: np.random.Generator) -> tuple[Array, Array]:
    """Return the fold that holds each row out, and the rows that each of the two folds trains on.

    Fold 0 trains on the smaller half and holds out the rest.
    """
    order = generator.permutation(n_rows)
    folds = np.zeros(n_rows, dtype=int)
    folds[order[: n_rows // 2]] = 1
    return folds, np.stack([folds == 1, folds == 0])


def split_with(splitter: Any, X: Array, y: Array, seed: int) -> tuple[Array, Array]:
    """Return the same for a scikit-learn splitter; rows that no fold holds out have the fold -1."""
    own = copy.deepcopy(splitter)
    if getattr(own, "random_state", 0) is None:
        own.random_state = seed
    folds, training = np.full(len(y), -1), []
    for fold, (train, held_out) in enumerate(own.split(X, y)):
        folds[held_out] = fold
        training.append(np.isin(np.arange(len(y)), train))
    # A splitter that draws with overlap can leave a fold without rows of its own.
    kept = np.unique(folds[folds >= 0])
    return np.where(folds >= 0, np.searchsorted(kept, folds), -1), np.array(training)[kept]


def fit_job(learners: Learners, j: int, candidates: Any, splitter: Any, entropy: int) -> FitJob:
    """Return what learner j has to fit: its rows, split by its own seed, and its candidates."""
    span = learners.span(j)
    X, y = learners.X[span], learners.y[span]
    generator = generator_for(entropy, learners.ids[j])
    seed = integer_seed(generator)
    owner = f"learner {listed([learners.ids[j]])}"
    scored: tuple[int, ...] = (0,)
    if splitter is None:
        folds, training = split_halves(len(y), generator)
    else:
        try:
            folds, training = split_with(splitter, X, learners.loss.target(y), seed)
        except Exception as cause:
            raise ValueError(
                f"The splitter {splitter!r} could not split the {len(y)} rows of {owner}: "
                f"{cause} Take one with fewer splits, or raise min_rows."
            ) from cause
        scored = tuple(range(len(training)))
    weights = None if learners.weights is None else learners.weights[span]
    return FitJob(owner, X, y, folds, training, scored, candidates, seed, weights, learners.loss)


def check_splitter(splitter: Any) -> None:
    """Refuse what cannot split rows."""
    splits = callable(getattr(splitter, "split", None)) and not isinstance(splitter, (str, bytes))
    if splitter is not None and not splits:
        raise ValueError(
            f"The 'splitter' option must be None or have a split method, as KFold has. Got {brief(splitter)}."
        )


def _pooled_variance(learners: Learners) -> float:
    """Return the variance of the response inside learners, pooled."""
    starts, sizes = learners.offsets[:-1], learners.sizes
    # Weights of rows do not change what rounding is.
    means = np.add.reduceat(learners.y, starts, axis=0) / sizes[:, None]
    losses = learners.loss.by_row(learners.y - means[learners.owner])
    variances = np.add.reduceat(losses, starts) / sizes
    return pooled_variance(sizes.astype(float), means, variances, learners.loss)


def _warn_of_failures(fitted: Sequence[Fitted], learners: Learners) -> None:
    """Warn of candidates that could not be fitted, and for which learners."""
    dropped: dict[str, list[int]] = {}
    for j, result in enumerate(fitted):
        for name in result.failures:
            dropped.setdefault(name, []).append(j)
    for name, positions in dropped.items():
        warnings.warn(
            f"The candidate {name!r} was dropped for learner {listed(learners.ids[positions])}: "
            f"{fitted[positions[0]].failures[name]}",
            UserWarning,
            stacklevel=4,
        )


def selection_of(
    learners: Learners,
    fitted: Sequence[Fitted],
    folds: tuple[Array, ...],
    training: tuple[Array, ...],
    *,
    dependent: bool = False,
    in_order: bool = False,
) -> Selection:
    """Put together what the learners chose, and say how noisy each of them is.

    ``fitted`` has the honest residuals of the rows in ``learners``; ``folds`` and ``training`` are as in a
    `Selection`. ``dependent`` says that rows of a learner depend on each other, because blocks or a splitter
    cut them; ``in_order`` that this was found in the order of the rows.
    """
    _warn_of_failures(fitted, learners)
    residuals = tuple(result.residuals for result in fitted)
    variance = _pooled_variance(learners)
    tied = np.array([mostly_one_value(learners.y[learners.span(j)]) for j in range(len(learners))])
    clips = clip_bounds(residuals, variance, tied, learners.loss)
    return Selection(
        learner_ids=learners.ids,
        names=tuple(result.name for result in fitted),
        models=tuple(result.model for result in fitted),
        errors=np.array([result.error for result in fitted]),
        held_out_errors=np.array([result.held_out_error for result in fitted]),
        n_rows=learners.sizes,
        candidate_errors=tuple(result.candidate_errors for result in fitted),
        candidate_losses=tuple(result.candidate_losses for result in fitted),
        residuals=residuals,
        folds=folds,
        training=training,
        fold_models=tuple(result.fold_models for result in fitted),
        noise=noise_levels(residuals, clips, variance, tied, learners.loss),
        clips=clips,
        dependent=dependent,
        in_order=in_order,
        inflation=variance_inflation(residuals, folds) if dependent else 1.0,
    )


def select_models(
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    candidates: Any = None,
    splitter: Any = None,
    order: str | None = "auto",
    sample_weight: Any = None,
    random_state: Any = 0,
    engine: Any = None,
    n_jobs: int | None = None,
) -> Selection:
    """Select a model for every learner.

    Parameters
    ----------
    X : array-like or table of shape (N, p)
        Predictors of all learners.
    y : array-like of shape (N,)
        Response.
    groups : array-like of shape (N,), str, or None, default=None
        Learner id of each row, or the name of the column of X that holds it. None: one learner.
    candidates : str, list, dict or None, default=None
        As for `CoterieRegressor`.
    splitter : scikit-learn splitter or None, default=None
        Holds out rows that are not independent, such as blocks in time. None: random halves, or blocks where
        ``order`` finds that rows depend on each other.
    order : {"auto", None}, default="auto"
        ``"auto"``: test whether neighbouring rows of a learner depend on each other, as rows in time order
        do, and hold out blocks if so. None: rows are taken as independent.
    sample_weight : array-like of shape (N,) or None, default=None
        Weights of the rows, for the candidates that take them.
    random_state : int, RandomState or None, default=0
        Seed; each learner's randomness derives from it and from the learner's id.
    engine : {None, "threads", "dask"}, a Dask client or an object with ``map``, default=None
        Who runs the fits.
    n_jobs : int or None, default=None
        Number of threads.

    Returns
    -------
    Selection
        Models, errors and honest residuals, in order of the learners' first appearance.

    Examples
    --------
    >>> from coterie import select_models
    >>> from coterie.datasets import make_linear_learners
    >>> data = make_linear_learners(n_learners=3, n_truths=1, random_state=0)
    >>> selection = select_models(data.X, data.y, groups=data.groups, candidates="linear")
    >>> len(selection.models)
    3
    """
    learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="select_models")
    if learners is not X:
        warn_of(learners.wild)
    check_splitter(splitter)
    check_option(order, "order", ORDERS)
    small = learners.sizes < FEWEST_ROWS
    if small.any():
        raise ValueError(
            f"Learner {listed(learners.ids[small])} has fewer than {FEWEST_ROWS} rows "
            f"(n_samples = {learners.sizes[small][0]}): leave it out and admit it later."
        )
    entropy = as_entropy(random_state)
    sets = candidates_per_learner(candidates, learners.ids.tolist())
    runner = resolve_engine(engine, n_jobs)

    def fit_all(how: Any) -> tuple[list[FitJob], list[Fitted]]:
        """Choose and fit everybody's model with one way of splitting rows."""
        jobs = [fit_job(learners, j, sets[j], how, entropy) for j in range(len(learners))]
        with quiet_fits():
            return jobs, counted(runner, "Select").map(choose_candidate, jobs)

    jobs, fitted = fit_all(splitter)
    in_order = False
    if splitter is None and order is not None:
        parts = zip(fitted, jobs, strict=True)
        in_order = rows_depend(
            serial_score(result.residuals, job.X, job.y, of_classes=job.loss.bounds is not None)
            for result, job in parts
        )
        if in_order:
            jobs, fitted = fit_all(BLOCKS)
    folds, training = tuple(job.folds for job in jobs), tuple(job.training for job in jobs)
    dependent = in_order or splitter is not None
    chosen = selection_of(learners, fitted, folds, training, dependent=dependent, in_order=in_order)
    selection: Selection = chosen.take(learners.appearance)
    return selection
