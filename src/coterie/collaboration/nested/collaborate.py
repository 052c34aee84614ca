"""Nested coteries: nobody has to know beforehand whether alone, clusters or one global model is right."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import check_count, check_option, listed
from coterie._seeds import as_entropy
from coterie.candidates import candidates_per_learner
from coterie.collaboration.nested.averaging import nest_averages
from coterie.collaboration.nested.families import by_least_squares
from coterie.collaboration.nested.folds import joined_folds
from coterie.collaboration.nested.own import OwnByFold, folds_of, own_by_fold
from coterie.collaboration.nested.pooled import fit_dictionary
from coterie.collaboration.nested.record import AverageNewcomers, NestedCollaboration
from coterie.collaboration.nested.resolutions import Recipe, labels_without_fold
from coterie.collaboration.nested.stacking import (
    assemble,
    plausible_columns,
    response_variances,
    row_scales,
    weigh,
)
from coterie.collaboration.nested.views import PooledTable
from coterie.engines import Steps, resolve_engine
from coterie.method.refine.moves import REFINE
from coterie.records import Exchange, OwnResiduals, Partition, Selection
from coterie.rows.learners import Learners, gather_learners, joined_learners

log = logging.getLogger(__name__)

FORMS = ("pooled", "average")


@dataclass(frozen=True)
class FewRows:
    """Learners with too few rows for a model of their own, and the clusters (M,) they were placed into."""

    learners: Learners
    labels: Array = field(repr=False)


def _only_one(learners: Learners, selection: Selection) -> NestedCollaboration:
    """Return how the only learner predicts: with its own model, without bounds, as it would alone.

    Corrections are what a learner adds to a prediction from others: here zeros stand in for them.
    """
    no_correction = np.zeros((1, learners.n_features + 1))
    return NestedCollaboration(
        learner_ids=learners.ids,
        method="auto",
        models=selection.models,
        names=selection.names,
        weights=np.ones((1, 1)),
        weight_rows=np.zeros(1, dtype=int),
        newcomer_weight_rows=np.zeros(1, dtype=int),
        residuals=selection.residuals,
        bounds=np.array([[-np.inf, np.inf]]),
        corrections=no_correction,
        correction_bounds=np.zeros((1, 2)),
        limits=np.tile([[-np.inf], [np.inf]], (1, learners.n_features)),
        plausible=np.array([[-np.inf, np.inf]]),
        form="pooled",
        plain_residuals=selection.residuals,
        all_residuals=selection.residuals,
        all_row=0,
        share_names=("alone",),
        shares=np.ones((1, 1)),
        shrinkage=np.inf,
        n_fits=0,
        context=np.zeros((1, 0)),
        mask=np.zeros((1, 0), dtype=bool),
        newcomers=AverageNewcomers(np.zeros(2), np.ones(learners.n_features), float(selection.noise[0])),
    )


def _nest_pooled(
    learners: Learners,
    selection: Selection,
    labels: Array,
    own: OwnByFold,
    few: FewRows | None,
    trees: str,
    levels: bool,
    recipe: Recipe,
    steps: Steps,
) -> tuple[NestedCollaboration, Array]:
    """Return how learners mix their own models with models of pooled rows.

    Return also the out-of-fold residuals (M, 2) of the rows of learners with ``few`` rows: of their
    mixture, and of what all learners share. ``labels`` (L,) are the chosen clusters, and ``own`` has the
    own models by fold.
    """
    all_learners, shaping = learners, np.ones(len(learners), dtype=bool)
    folds, own_predictions = own.folds, own.predictions[:, 0]
    if few is not None:
        all_learners = joined_learners(learners, few.learners)
        shaping = np.arange(len(all_learners)) < len(learners)
        labels = np.r_[labels, few.labels]
        folds = joined_folds(folds, few.learners, recipe.seed, in_order=selection.in_order)
        own_predictions = np.r_[own_predictions, np.full(len(few.learners.y), np.nan)]

    def labels_without(fold: int) -> Array:
        """Return the clusters (L,) made again without the rows that a fold holds out."""
        return labels_without_fold(learners, selection, own.folds.training[fold], own.models[fold], recipe)

    table = PooledTable.of(all_learners, shaping, labels, folds, labels_without, levels=levels)
    own_predictions = table.units.response(own_predictions)
    variances = response_variances(table)
    scales = row_scales(table, variances)
    dictionary = fit_dictionary(table, own_predictions, scales, trees, recipe.engine, recipe.seed, steps)
    clipped_predictions = plausible_columns(table, dictionary.out_of_fold)
    stacked_weights = weigh(table, dictionary, clipped_predictions, own_predictions, variances)
    nested = assemble(table, selection, own.bounds, dictionary, stacked_weights)
    residuals_of_both = (
        np.column_stack([stacked_weights.residuals, table.rows.y - dictionary.plain[:, 0]]) * table.units.size
    )
    return nested, residuals_of_both[len(learners.y) :]


@dataclass(frozen=True)
class NestedResult:
    """Nested coteries, and out-of-fold residuals of own models and of learners with few rows.

    ``own`` has the residuals of the learners' own models. The others are of learners with few rows, one
    array for each: ``few_residuals`` under their mixture, ``few_all_residuals`` under what all learners
    share. ``few_weight_rows`` (M,) are their rows of the collaboration's weights.
    """

    collaboration: NestedCollaboration
    own: OwnResiduals
    few_residuals: tuple[Array, ...] = field(default=(), repr=False)
    few_all_residuals: tuple[Array, ...] = field(default=(), repr=False)
    few_weight_rows: Array = field(default_factory=lambda: np.zeros(0, dtype=int))


def nest_learners(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    candidates: Any,
    recipe: Recipe,
    *,
    form: str = "pooled",
    n_folds: int = 4,
    splitter: Any = None,
    few: FewRows | None = None,
    trees: str = "full",
    levels: bool = True,
) -> NestedResult:
    """Return how each learner mixes its own model, its coterie's and everybody's; see `nest_coteries`.

    Records and ``labels`` (L,), the chosen clusters, are in the order of ``learners``. The rows of
    learners with ``few`` rows are pooled with the others'.

    ``trees`` are ``"full"`` or ``"fast"``; ``"full"`` has none where all candidates are linear by least
    squares. ``levels`` is false where each learner's response has been centred: the mean of some of its
    rows would then reveal that of the others.
    """
    if len(learners) == 1 and few is None:
        bounds = np.array([[-np.inf, np.inf]])
        return NestedResult(
            _only_one(learners, selection), OwnResiduals(learners.ids, selection.residuals, 0.5, bounds)
        )
    candidate_sets = candidates_per_learner(candidates, learners.ids.tolist())
    for name, offered in zip(selection.names, candidate_sets, strict=True):
        if name not in offered:
            raise ValueError(
                f"A learner chose {name!r}, which is not among the candidates {listed(offered)}: pass "
                "nest_coteries the candidates that select_models was given."
            )
    folds = folds_of(learners, selection, n_folds, splitter, recipe.seed)
    steps = Steps("Collaborate", 2 * len(folds) + 2)
    own = own_by_fold(learners, selection, folds, candidate_sets, recipe, steps.done)
    if form == "average":
        nested = nest_averages(learners, selection, exchange, labels, own, recipe)
        steps.finish()
        return NestedResult(nested, own.judged(learners))
    if trees == "full" and all(
        by_least_squares(candidate)
        for learner_candidates in candidate_sets
        for candidate in learner_candidates.values()
    ):
        trees = "none"
    elif not levels:
        trees = "without levels"
    nested, few_residuals = _nest_pooled(learners, selection, labels, own, few, trees, levels, recipe, steps)
    log.info(
        "Nested coteries: %d models of pooled rows and %d of single learners fitted over %d folds.",
        nested.n_fits,
        len(learners) * len(folds),
        len(folds),
    )
    steps.finish()
    own_residuals = own.judged(learners)
    if few is None:
        return NestedResult(nested, own_residuals)
    residuals_by_learner = [
        tuple(np.split(residual_column[:, None], few.learners.offsets[1:-1]))
        for residual_column in few_residuals.T
    ]
    return NestedResult(
        collaboration=nested,
        own=own_residuals,
        few_residuals=residuals_by_learner[0],
        few_all_residuals=residuals_by_learner[1],
        few_weight_rows=len(learners) + np.arange(len(few.learners)),
    )


def nest_coteries(
    selection: Selection,
    exchange: Exchange,
    partition: Partition,
    X: Any,
    y: Any = None,
    groups: Any = None,
    *,
    form: str = "pooled",
    n_folds: int = 4,
    splitter: Any = None,
    candidates: Any = None,
    scale: Any = "noise",
    refine: str | None = "pooled",
    refine_rounds: int = REFINE.rounds,
    robust: bool = False,
    landmarks: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    engine: Any = None,
    n_jobs: int | None = None,
) -> NestedCollaboration:
    """Mix learning alone, with a coterie and with all, as held-out rows tell.

    Parameters
    ----------
    selection : Selection
        What `select_models` returned for these rows.
    exchange : Exchange
        What `cross_evaluate` returned.
    partition : Partition
        What `cluster_learners` returned.
    X, y, groups : array-like
        The rows of all learners, as for `coterie.collaborate`.
    form : {"pooled", "average"}, default="pooled"
        Shared predictors are models of pooled rows, or averages of the learners' models, which need
        nobody else's rows.
    n_folds : int, default=4
        Folds of the rows on which weights are learnt. Each costs about as much as fitting the coteries once.
        They are blocks of neighbouring rows if the selection found that these depend on each other.
    splitter : scikit-learn splitter or None, default=None
        The one that `select_models` was given: its folds are then used instead of random ones.
    candidates : str, list, dict or None, default=None
        As for `select_models`. Where all of them are linear by least squares, no trees take part.
    scale, refine, refine_rounds : optional
        As for `cluster_learners`; with them the partition is made again without each fold.
    robust, landmarks : optional
        As for `cross_evaluate`.
    sample_weight, random_state, engine, n_jobs : optional
        As for `coterie.collaborate`; the seed is that of folds and models.

    Returns
    -------
    NestedCollaboration
        How each learner, and a newcomer to each cluster, predicts.

    Examples
    --------
    >>> import coterie
    >>> from coterie.datasets import make_linear_learners
    >>> from coterie.collaboration.nested import nest_coteries
    >>> data = make_linear_learners(n_learners=6, n_truths=2, random_state=0)
    >>> rows = dict(X=data.X, y=data.y, groups=data.groups)
    >>> selection = coterie.select_models(**rows, candidates="linear")
    >>> exchange = coterie.cross_evaluate(selection, **rows)
    >>> partition = coterie.cluster_learners(exchange, **rows, selection=selection)
    >>> nested = nest_coteries(selection, exchange, partition, **rows, candidates="linear")
    >>> nested.share_names
    ('alone', 'coterie', 'all adapted')
    """
    check_option(form, "form", FORMS)
    check_count(n_folds, "n_folds", least=2)
    learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="nest_coteries")
    labels = partition.aligned_to(learners.ids).labels
    seed, runner = as_entropy(random_state), resolve_engine(engine, n_jobs)
    nested = nest_learners(
        learners,
        selection.aligned_to(learners.ids),
        exchange.aligned_to(learners.ids),
        labels,
        candidates,
        Recipe(
            chosen=int(labels.max()) + 1,
            scale=scale,
            refine=refine,
            robust=robust,
            seed=seed,
            engine=runner,
            landmarks=landmarks,
            rounds=refine_rounds,
        ),
        form=form,
        n_folds=n_folds,
        splitter=splitter,
    )
    return nested.collaboration.take(learners.appearance)
