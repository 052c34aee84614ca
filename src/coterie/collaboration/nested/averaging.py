"""Nested coteries of averages of models: how each learner predicts, put together from what parties answer."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.nested.averages import average_dictionary
from coterie.collaboration.nested.folds import Folds
from coterie.collaboration.nested.own import OwnByFold
from coterie.collaboration.nested.parties import RowParty
from coterie.collaboration.nested.record import AverageNewcomers, NestedCollaboration
from coterie.collaboration.nested.resolutions import Recipe, share_names
from coterie.collaboration.nested.shared import Averages, Shared
from coterie.collaboration.nested.weighing import Mixture, agree, correction_bounds, mix
from coterie.method.noise import smallest_level
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners


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


def _shares(mixtures: Sequence[Mixture], averages: Averages) -> Array:
    places = {count: place + 1 for place, count in enumerate((*averages.counts, 1))}
    shares = np.zeros((len(mixtures), len(places) + 1))
    for j, mixture in enumerate(mixtures):
        shares[j, 0] = mixture.alone
        for shared, weight in zip(averages.shared, mixture.shared, strict=True):
            shares[j, places[shared.count]] += weight
    return shares


def _weights_of(j: int, mixture: Mixture, averages: Averages, n_models: int) -> Array:
    """Return the weights of one learner over all models."""
    weights = np.zeros(n_models)
    weights[j] = mixture.alone
    for shared, weight in zip(averages.shared, mixture.shared, strict=True):
        if weight > 0:
            positions, parts = shared.terms_of(j)
            weights[positions] += weight * parts
    return weights


def _joined(members: Array, shared: Shared | None, n_models: int) -> Array:
    """Return the weights of who joins a cluster: those of its members' average, or of their models alike."""
    weights = np.zeros(n_models)
    if shared is None:
        weights[members] = 1 / len(members)
    else:
        positions, parts = shared.terms[shared.labels[members[0]]]
        weights[positions] = parts
    return weights


def nest_averages(
    learners: Learners,
    selection: Selection,
    exchange: Exchange,
    labels: Array,
    own: OwnByFold,
    recipe: Recipe,
) -> NestedCollaboration:
    """Mix own models and averages of models."""
    folds, bounds, alone = own.folds, own.bounds, own.predictions[:, 0]
    averages = average_dictionary(learners, selection, exchange, labels, own, recipe)
    parties = _parties(learners, selection, folds, alone, averages.out_of_fold)
    agreement = agree(parties)
    mixtures = [mix(party, agreement, j) for j, party in enumerate(parties)]
    n, n_clusters = len(learners), int(labels.max()) + 1
    weights = np.array([_weights_of(j, mixture, averages, n) for j, mixture in enumerate(mixtures)])
    # Where everybody stands alone, who joins somebody predicts with that one's model.
    counts = [shared.count for shared in averages.shared]
    joined = None if n_clusters == n else counts.index(n_clusters)
    shared = None if joined is None else averages.shared[joined]
    newcomers = [_joined(np.flatnonzero(labels == k), shared, n) for k in range(n_clusters)]
    everybody = counts.index(1)
    all_weights = _joined(np.arange(n), averages.shared[everybody], n)
    corrections = np.array([mixture.correction for mixture in mixtures])
    limits = [correction_bounds(party.X, mine) for party, mine in zip(parties, corrections, strict=True)]
    plain = alone if joined is None else averages.out_of_fold[:, joined]
    cuts = learners.offsets[1:-1]
    return NestedCollaboration(
        learner_ids=learners.ids,
        method="auto",
        models=selection.models,
        names=selection.names,
        weights=np.vstack([weights, newcomers, all_weights]),
        weight_rows=np.arange(n),
        newcomer_weight_rows=n + np.arange(n_clusters),
        residuals=tuple(mixture.residuals[:, None] for mixture in mixtures),
        bounds=bounds,
        corrections=np.vstack([corrections, np.zeros((n_clusters + 1, learners.n_features + 1))]),
        correction_bounds=np.vstack([limits, np.zeros((n_clusters + 1, 2))]),
        limits=np.tile([[-np.inf], [np.inf]], (1, learners.n_features)),
        plausible=np.tile([-np.inf, np.inf], (n + n_clusters + 1, 1)),
        form="average",
        plain_residuals=tuple(np.split(learners.y - plain[:, None], cuts)),
        all_residuals=tuple(np.split(learners.y - averages.out_of_fold[:, [everybody]], cuts)),
        all_row=n + n_clusters,
        share_names=share_names(averages.counts),
        shares=_shares(mixtures, averages),
        shrinkage=agreement.weights.shrinkage,
        n_fits=0,
        told=np.zeros((n + n_clusters + 1, 0)),
        sees=np.zeros((n, 0), dtype=bool),
        newcomers=AverageNewcomers(
            np.zeros(2) if joined is None else agreement.ratios[1, joined],
            agreement.units,
            float(np.median(selection.noise)),
        ),
    )
