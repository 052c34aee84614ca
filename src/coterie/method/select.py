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
    """Split n rows at random into two halves: two folds, each of which holds out what the other trains on.

    Returns the fold (n,) that holds each row out, 0 or 1, and a mask (2, n) of the rows that each fold trains
    on. Fold 0 trains on the smaller half, if n is odd.
    """
    order = generator.permutation(n_rows)
    folds = np.zeros(n_rows, dtype=int)
    folds[order[: n_rows // 2]] = 1
    return folds, np.stack([folds == 1, folds == 0])


def split_with(splitter: Any, X: Array, y: Array, seed: int) -> tuple[Array, Array]:
    """Split the rows of X (n, p) and y by a scikit-learn splitter.

    Returns the fold (n,) that holds each row out, -1 for rows that no fold holds out, and a mask (F, n) of
    the rows that each of the F folds trains on. A splitter without a ``random_state`` of its own gets the
    seed. If several folds hold a row out, the last one counts.
    """
    fresh_splitter = copy.deepcopy(splitter)
    if getattr(fresh_splitter, "random_state", 0) is None:
        fresh_splitter.random_state = seed
    folds, masks = np.full(len(y), -1), []
    for fold, (training_rows, held_out_rows) in enumerate(fresh_splitter.split(X, y)):
        folds[held_out_rows] = fold
        masks.append(np.isin(np.arange(len(y)), training_rows))
    # A splitter that draws with overlap can leave a fold without rows of its own: folds are renumbered.
    kept_folds = np.unique(folds[folds >= 0])
    return np.where(folds >= 0, np.searchsorted(kept_folds, folds), -1), np.array(masks)[kept_folds]


def fit_job(learners: Learners, j: int, candidates: Any, splitter: Any, entropy: int) -> FitJob:
    """Return the job of learner j: its rows, their split into folds, its candidates and its seed.

    The seed derives from the entropy of the whole run and from the learner's id, so that a learner's fit does
    not depend on who else takes part. Without a splitter the rows are split into random halves, and only the
    first half's models compete; with one, candidates compete on all folds.
    """
    own_rows = learners.span(j)
    X, y = learners.X[own_rows], learners.y[own_rows]
    own_generator = generator_for(entropy, learners.ids[j])
    seed = integer_seed(own_generator)
    owner = f"learner {listed([learners.ids[j]])}"
    scored_folds: tuple[int, ...] = (0,)
    if splitter is None:
        folds, training = split_halves(len(y), own_generator)
    else:
        try:
            folds, training = split_with(splitter, X, learners.loss.target(y), seed)
        except Exception as cause:
            raise ValueError(
                f"The splitter {splitter!r} could not split the {len(y)} rows of {owner}: "
                f"{cause} Take one with fewer splits, or raise min_rows."
            ) from cause
        scored_folds = tuple(range(len(training)))
    weights = None if learners.weights is None else learners.weights[own_rows]
    return FitJob(
        owner=owner,
        X=X,
        y=y,
        folds=folds,
        training=training,
        scored=scored_folds,
        candidates=candidates,
        seed=seed,
        weights=weights,
        loss=learners.loss,
    )


def check_splitter(splitter: Any) -> None:
    """Refuse what cannot split rows."""
    splits = callable(getattr(splitter, "split", None)) and not isinstance(splitter, (str, bytes))
    if splitter is not None and not splits:
        raise ValueError(
            f"The 'splitter' option must be None or have a split method, as KFold has. Got {brief(splitter)}."
        )


def _pooled_variance(learners: Learners) -> float:
    """Return the variance of the response of all learners' rows together, from learners' means and variances.

    It sets which noise counts as rounding; see `coterie.method.noise.pooled_variance`.
    """
    starts, sizes = learners.offsets[:-1], learners.sizes
    # Weights of rows do not change what rounding is.
    means = np.add.reduceat(learners.y, starts, axis=0) / sizes[:, None]
    losses = learners.loss.by_row(learners.y - means[learners.owner])
    variances = np.add.reduceat(losses, starts) / sizes
    return pooled_variance(sizes.astype(float), means, variances, learners.loss)


def _warn_of_failures(fitted: Sequence[Fitted], learners: Learners) -> None:
    """Warn once for each candidate that could not be fitted, with the learners concerned and the first cause.

    ``fitted`` holds what was chosen for each learner, in the order of ``learners``.
    """
    positions_by_candidate: dict[str, list[int]] = {}
    for j, choice in enumerate(fitted):
        for candidate_name in choice.failures:
            positions_by_candidate.setdefault(candidate_name, []).append(j)
    for candidate_name, positions in positions_by_candidate.items():
        warnings.warn(
            f"The candidate {candidate_name!r} was dropped for learner {listed(learners.ids[positions])}: "
            f"{fitted[positions[0]].failures[candidate_name]}",
            UserWarning,
            stacklevel=4,  # the caller of `select_models`
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
    """Return the `Selection` of L learners: what each of them chose, and its noise level.

    ``fitted`` holds the L choices, with the out-of-fold residuals of the rows in ``learners``; ``folds`` and
    ``training`` are as in a `Selection`. ``dependent`` says that rows of a learner depend on each other,
    because blocks or a splitter cut them; ``in_order`` that this was found in the order of the rows.
    """
    _warn_of_failures(fitted, learners)
    residuals = tuple(choice.residuals for choice in fitted)
    response_variance = _pooled_variance(learners)
    # Tied: more than half of a learner's responses have one value, as zeros among claims; see `clip_bound`.
    is_tied = np.array([mostly_one_value(learners.y[learners.span(j)]) for j in range(len(learners))])
    clips = clip_bounds(residuals, response_variance, is_tied, learners.loss)
    return Selection(
        learner_ids=learners.ids,
        names=tuple(choice.name for choice in fitted),
        models=tuple(choice.model for choice in fitted),
        errors=np.array([choice.error for choice in fitted]),
        held_out_errors=np.array([choice.held_out_error for choice in fitted]),
        n_rows=learners.sizes,
        candidate_errors=tuple(choice.candidate_errors for choice in fitted),
        candidate_losses=tuple(choice.candidate_losses for choice in fitted),
        residuals=residuals,
        folds=folds,
        training=training,
        fold_models=tuple(choice.fold_models for choice in fitted),
        noise=noise_levels(residuals, clips, response_variance, is_tied, learners.loss),
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
        Models, errors and out-of-fold residuals, in order of the learners' first appearance.

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
    has_few_rows = learners.sizes < FEWEST_ROWS
    if has_few_rows.any():
        raise ValueError(
            f"Learner {listed(learners.ids[has_few_rows])} has fewer than {FEWEST_ROWS} rows "
            f"(n_samples = {learners.sizes[has_few_rows][0]}): leave it out and admit it later."
        )
    entropy = as_entropy(random_state)
    candidate_sets = candidates_per_learner(candidates, learners.ids.tolist())
    runner = resolve_engine(engine, n_jobs)

    def fit_all(row_splitter: Any) -> tuple[list[FitJob], list[Fitted]]:
        """Choose and fit everybody's model, rows being split by one splitter; None: random halves."""
        jobs = [fit_job(learners, j, candidate_sets[j], row_splitter, entropy) for j in range(len(learners))]
        with quiet_fits():
            return jobs, counted(runner, "Select").map(choose_candidate, jobs)

    jobs, fitted = fit_all(splitter)
    in_order = False
    if splitter is None and order is not None:
        choices_and_jobs = zip(fitted, jobs, strict=True)
        in_order = rows_depend(
            serial_score(choice.residuals, job.X, job.y, of_classes=job.loss.bounds is not None)
            for choice, job in choices_and_jobs
        )
        if in_order:
            jobs, fitted = fit_all(BLOCKS)
    folds, training = tuple(job.folds for job in jobs), tuple(job.training for job in jobs)
    dependent = in_order or splitter is not None
    selection_by_id = selection_of(learners, fitted, folds, training, dependent=dependent, in_order=in_order)
    selection: Selection = selection_by_id.take(learners.appearance)
    return selection
