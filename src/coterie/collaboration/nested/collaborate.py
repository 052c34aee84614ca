"""Nested coteries: nobody has to know beforehand whether alone, clusters or one global model is right."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import check_count, check_option
from coterie._seeds import as_entropy
from coterie.candidates import candidates_per_learner
from coterie.collaboration.nested.averages import average_dictionary
from coterie.collaboration.nested.folds import Folds, block_folds, random_folds, selected_folds
from coterie.collaboration.nested.guard import guarded, widened
from coterie.collaboration.nested.parties import RowParty
from coterie.collaboration.nested.pooled import fit_dictionary, response_units
from coterie.collaboration.nested.record import NestedCollaboration
from coterie.collaboration.nested.resolutions import Recipe, refit_alone, share_names
from coterie.collaboration.nested.shared import Dictionary
from coterie.collaboration.nested.weighing import Mixture, agree, correction_bounds, mix
from coterie.engines import report, resolve_engine
from coterie.method.noise import smallest_level
from coterie.records import Exchange, Partition, Selection
from coterie.rows.learners import Learners, gather_learners

log = logging.getLogger(__name__)

FORMS = ("pooled", "average")


def _alone(learners: Learners, folds: Folds, models: Sequence[tuple[Any, ...]]) -> tuple[Array, Array]:
    """Return the bounds (L, 2) of everybody's own model, and its predictions out of fold, of shape (N,)."""
    bounds = np.array([widened(learners.scalar_y[learners.span(j)]) for j in range(len(learners))])
    predictions = np.full(len(learners.y), np.nan)
    for fold, own in enumerate(models):
        for j in range(len(learners)):
            span = learners.span(j)
            ahead = np.flatnonzero(folds.held_out[span] == fold) + span.start
            kept = np.flatnonzero(folds.training[fold, span]) + span.start
            if len(ahead):
                limits = np.array(widened(learners.scalar_y[kept]))
                predictions[ahead] = guarded(own[j], learners.X[ahead], limits)
    return bounds, predictions


def _parties(
    learners: Learners, selection: Selection, folds: Folds, alone: Array, shared: Array
) -> list[RowParty]:
    smallest = smallest_level(learners.loss.variance(learners.y))
    parties = []
    for j in range(len(learners)):
        span = learners.span(j)
        parties.append(
            RowParty(
                X=learners.X[span],
                y=learners.scalar_y[span],
                folds=folds.held_out[span],
                n_folds=len(folds),
                alone=alone[span],
                shared=shared[span],
                noise=float(selection.noise[j]),
                weights=None if learners.weights is None else learners.weights[span],
                smallest=smallest,
            )
        )
    return parties


def _shares(mixtures: Sequence[Mixture], dictionary: Dictionary) -> Array:
    places = {count: place + 1 for place, count in enumerate((*dictionary.counts, 1))}
    shares = np.zeros((len(mixtures), len(places) + 1))
    for j, mixture in enumerate(mixtures):
        shares[j, 0] = mixture.alone
        for shared, weight in zip(dictionary.shared, mixture.shared, strict=True):
            shares[j, places[shared.count]] += weight
    return shares


def _best_plain(learners: Learners, dictionary: Dictionary, count: int) -> int:
    """Return the plain predictor at a resolution that loses least, each learner in units of its variance."""
    plain = [
        p
        for p, s in enumerate(dictionary.shared)
        if s.count == count and not s.levels.any() and not s.uses_traits
    ]
    seen = np.isfinite(dictionary.out_of_fold[:, plain]).all(axis=1)
    unit = response_units(learners)[learners.owner]
    squares = (learners.y - dictionary.out_of_fold[:, plain]) ** 2 / unit[:, None]
    return plain[int(squares[seen].mean(axis=0).argmin())]


def _weights_of(j: int, mixture: Mixture, dictionary: Dictionary, n_models: int) -> tuple[Array, Array]:
    """Return the weights of one learner over all models, and its correction with the levels it adds."""
    weights, correction = np.zeros(n_models), mixture.correction.copy()
    weights[j] = mixture.alone
    for shared, weight in zip(dictionary.shared, mixture.shared, strict=True):
        if weight > 0:
            positions, parts = shared.terms_of(j)
            weights[positions] += weight * parts
            correction[-1] += weight * shared.levels[j]
    return weights, correction


def _joined_weights(members: Array, predictor: int | None, dictionary: Dictionary, n_models: int) -> Array:
    """Return the weights of who joins a cluster: its members' plain predictor, or their models."""
    weights = np.zeros(n_models)
    if predictor is None:
        weights[members] = 1 / len(members)
    else:
        shared = dictionary.shared[predictor]
        positions, parts = shared.terms[shared.labels[members[0]]]
        weights[positions] = parts
    return weights


def _only_one(learners: Learners, selection: Selection) -> NestedCollaboration:
    """Return how a learner predicts who has nobody to learn with: as it would alone, and unguarded."""
    nothing = np.zeros((1, learners.n_features + 1))
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
        corrections=nothing,
        correction_bounds=np.zeros((1, 2)),
        form="pooled",
        plain_residuals=selection.residuals,
        alone_residuals=selection.residuals,
        all_residuals=selection.residuals,
        all_weights=np.ones(1),
        share_names=("alone",),
        shares=np.ones((1, 1)),
        shrinkage=np.inf,
        n_fits=0,
        newcomer_ratios=np.zeros(2),
        traits=np.zeros((1, 0)),
        uses_traits=np.zeros(1, dtype=bool),
        units=np.ones(learners.n_features),
        noise=float(selection.noise[0]),
    )


def _assembled(
    learners: Learners,
    selection: Selection,
    labels: Array,
    bounds: Array,
    dictionary: Dictionary,
    parties: Sequence[RowParty],
    form: str,
) -> NestedCollaboration:
    agreement = agree(parties)
    mixtures = [mix(party, agreement, j) for j, party in enumerate(parties)]
    n_clusters, n_models = int(labels.max()) + 1, len(learners) + len(dictionary.models)
    own = [_weights_of(j, mixture, dictionary, n_models) for j, mixture in enumerate(mixtures)]
    # Where everybody stands alone, who joins somebody predicts with that one's model.
    joined = None if n_clusters == len(learners) else _best_plain(learners, dictionary, n_clusters)
    clusters = [np.flatnonzero(labels == k) for k in range(n_clusters)]
    newcomers = [_joined_weights(members, joined, dictionary, n_models) for members in clusters]
    weights = np.array([*(mine for mine, _ in own), *newcomers])
    corrections = np.array([correction for _, correction in own])
    limits = [correction_bounds(party.X, mine) for party, mine in zip(parties, corrections, strict=True)]
    ratios = np.zeros(2) if joined is None else agreement.ratios[1, joined]
    alone = np.concatenate([party.alone for party in parties])
    plain = alone if joined is None else dictionary.out_of_fold[:, joined]
    cuts = learners.offsets[1:-1]
    everybody = _best_plain(learners, dictionary, 1)
    all_weights = _joined_weights(np.arange(len(learners)), everybody, dictionary, n_models)
    traits = np.zeros((len(learners), 0)) if dictionary.traits is None else dictionary.traits
    # Shared models that nobody takes anything from need not be kept: they are a third of the whole.
    kept = np.flatnonzero(
        weights.any(axis=0) | (all_weights > 0) | (np.arange(len(all_weights)) < len(learners))
    )
    models, names = (*selection.models, *dictionary.models), (*selection.names, *dictionary.names)
    uses_traits = np.array([False] * len(learners) + list(dictionary.uses_traits), dtype=bool)
    return NestedCollaboration(
        learner_ids=learners.ids,
        method="auto",
        models=tuple(models[p] for p in kept),
        names=tuple(names[p] for p in kept),
        weights=weights[:, kept],
        weight_rows=np.arange(len(learners)),
        newcomer_weight_rows=len(learners) + np.arange(n_clusters),
        residuals=tuple(mixture.residuals[:, None] for mixture in mixtures),
        bounds=np.vstack([bounds, dictionary.bounds])[kept],
        corrections=np.vstack([corrections, np.zeros((n_clusters, learners.n_features + 1))]),
        correction_bounds=np.vstack([limits, np.zeros((n_clusters, 2))]),
        form=form,
        plain_residuals=tuple(np.split(learners.y - plain[:, None], cuts)),
        alone_residuals=tuple(np.split(learners.y - alone[:, None], cuts)),
        all_residuals=tuple(np.split(learners.y - dictionary.out_of_fold[:, [everybody]], cuts)),
        all_weights=all_weights[kept],
        share_names=share_names(dictionary.counts),
        shares=_shares(mixtures, dictionary),
        shrinkage=agreement.weights.shrinkage,
        n_fits=dictionary.n_fits,
        newcomer_ratios=ratios,
        traits=np.vstack([traits, np.zeros((n_clusters, traits.shape[1]))]),
        uses_traits=uses_traits[kept],
        units=agreement.units,
        noise=float(np.median(selection.noise)),
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
    robust: bool = False,
    landmarks: Any = None,
    sample_weight: Any = None,
    random_state: Any = 0,
    engine: Any = None,
    n_jobs: int | None = None,
) -> NestedCollaboration:
    """Mix learning alone, with coteries at several resolutions and with all, as held-out rows tell.

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
        As for `select_models`; coteries fit the families of all learners' candidates.
    scale, refine : optional
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
    ('alone', '3 coteries', '2 coteries', 'all')
    """
    check_option(form, "form", FORMS)
    check_count(n_folds, "n_folds", least=2)
    learners = gather_learners(X, y, groups, sample_weight=sample_weight, caller="nest_coteries")
    chosen = selection.aligned_to(learners.ids)
    if len(learners) == 1:
        return _only_one(learners, chosen)
    labels = partition.aligned_to(learners.ids).labels
    seed, runner = as_entropy(random_state), resolve_engine(engine, n_jobs)
    recipe = Recipe(int(labels.max()) + 1, scale, refine, robust, seed, runner, landmarks)
    sets = candidates_per_learner(candidates, learners.ids.tolist())
    if splitter is not None:
        folds = selected_folds(chosen)
    elif chosen.in_order:
        folds = block_folds(learners, n_folds)
    else:
        folds = random_folds(learners, n_folds, seed)
    steps = len(folds) + 2
    report("Collaborate", 0, steps)
    own = []
    for kept in folds.training:
        own.append(refit_alone(learners.only(kept), chosen, sets, recipe))
        report("Collaborate", len(own), steps)
    bounds, alone = _alone(learners, folds, own)
    if form == "pooled":
        dictionary = fit_dictionary(learners, chosen, labels, folds, own, sets, recipe)
    else:
        exchanged = exchange.aligned_to(learners.ids)
        dictionary = average_dictionary(learners, chosen, exchanged, labels, folds, bounds, recipe)
    log.info(
        "Nested coteries: %d models of pooled rows and %d of single learners fitted over %d folds.",
        dictionary.n_fits,
        len(learners) * len(folds),
        len(folds),
    )
    report("Collaborate", steps - 1, steps)
    parties = _parties(learners, chosen, folds, alone, dictionary.out_of_fold)
    nested = _assembled(learners, chosen, labels, bounds, dictionary, parties, form)
    report("Collaborate", steps, steps)
    return nested.take(learners.appearance)
