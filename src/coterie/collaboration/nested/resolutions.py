"""The learners at several resolutions, and the same partitions made again without a fold.

Fine clusters fit the rows that they were found on: their partition has to be made again without the rows on
which they are weighed. Learners' models are fitted again without the fold, exchanged, clustered, and
refined by linear models on pooled rows, whatever families predict in the end; that costs next to nothing
against the fits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._seeds import generator_for, integer_seed
from coterie.collaboration.nested.families import ModelFit, fit_or_replace
from coterie.engines import Engine
from coterie.kernels.losses import predict_rows
from coterie.method.exchange import cross_evaluate
from coterie.method.fitting import quiet_fits
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.n_clusters.held_out import best_refined
from coterie.method.refine.averages import AverageLosses
from coterie.method.refine.flexible import FLEXIBLE
from coterie.method.refine.logistic import LogisticLosses
from coterie.method.refine.losses import ClusterLosses, LocalLosses
from coterie.method.refine.moves import REFINE
from coterie.method.refine.pooled import PooledLosses
from coterie.method.spectral import resolve_scale, tidy_labels
from coterie.records import Exchange, Selection
from coterie.rows.learners import Learners

# Beside everybody alone, the number chosen, and all together.
COUNTS = (12, 6, 3)


def resolution_counts(n_learners: int, chosen: int) -> tuple[int, ...]:
    """Return the numbers of clusters between everybody alone and all together, finest first.

    Beside the chosen number, clusters of fewer than two learners on average are left to learning alone.
    """
    counts = {k for k in COUNTS if 2 * k <= n_learners}
    return tuple(sorted((counts | {chosen}) - {1, n_learners}, reverse=True))


def share_names(counts: Sequence[int]) -> tuple[str, ...]:
    """Return what a reader calls the resolutions."""
    return ("alone", *(f"{k} coteries" for k in counts), "all")


@dataclass(frozen=True)
class Recipe:
    """How the chosen clusters were made, so that they can be made again.

    ``chosen`` is their number; from ``seed`` all randomness derives; ``engine`` runs the work; learners move
    in ``rounds`` rounds at most. The others are options of `cluster_learners` and `cross_evaluate`.
    """

    chosen: int
    scale: Any
    refine: str | None
    robust: bool
    seed: int
    engine: Engine
    landmarks: Any = None
    rounds: int = REFINE.rounds


def _choice(chosen: str, losses: dict[str, Array], training: Array, weights: Array | None) -> str:
    """Return the name of the candidate with the smallest mean loss on the ``training`` rows (n,).

    ``losses`` has the out-of-fold losses (n,) of each candidate and ``weights`` (n,) weigh rows. If no
    loss is known, it is the candidate ``chosen`` by all rows.
    """
    is_counted = training & np.isfinite(list(losses.values())).all(axis=0) if losses else training
    if not losses or not is_counted.any():
        return chosen
    weights = None if weights is None else weights[is_counted]
    errors = {name: np.average(by_row[is_counted], weights=weights) for name, by_row in losses.items()}
    return min(errors, key=errors.__getitem__)


def names_without(selection: Selection, learners: Learners, training: Array) -> tuple[str, ...]:
    """Return the name of the candidate that each learner would choose by the ``training`` rows (N,) only.

    A choice that has seen a row flatters the chosen candidate on it, so the choice is part of
    cross-validation.
    """
    return tuple(
        _choice(chosen, losses, training[span], None if learners.weights is None else learners.weights[span])
        for chosen, losses, span in zip(
            selection.names,
            selection.candidate_losses,
            map(learners.span, range(len(learners))),
            strict=True,
        )
    )


def refit_own(
    learners: Learners,
    training: Array,
    selection: Selection,
    sets: Sequence[dict[str, Any]],
    recipe: Recipe,
) -> tuple[Any, ...]:
    """Return each learner's own model, chosen and fitted again by the ``training`` rows (N,) only.

    Where a candidate fails on these rows, the learner's model of all rows stands in.
    """
    names, learners = names_without(selection, learners, training), learners.only(training)
    jobs = []
    for learner in range(len(learners)):
        span = learners.span(learner)
        weights = None if learners.weights is None else learners.weights[span]
        # The seed that Select drew for this learner.
        seed = integer_seed(generator_for(recipe.seed, learners.ids[learner]))
        candidate = sets[learner][names[learner]]
        jobs.append(
            ModelFit(
                candidate=candidate,
                X=learners.X[span],
                y=learners.loss.target(learners.y[span]),
                weights=weights,
                seed=seed,
                otherwise=selection.models[learner],
            )
        )
    with quiet_fits():
        return tuple(recipe.engine.map(fit_or_replace, jobs))


def selection_without(
    selection: Selection, learners: Learners, training_rows: Array, models: Any
) -> Selection:
    """Return the selection restricted to the ``training_rows`` (N,), with ``models`` fitted on these.

    Residuals stay out of fold: they and the folds are those of the rows that are left.
    """
    masks = np.split(training_rows, learners.offsets[1:-1])
    folds = [of_learner[mask] for of_learner, mask in zip(selection.folds, masks, strict=True)]
    training = [of_learner[:, mask] for of_learner, mask in zip(selection.training, masks, strict=True)]
    residuals = [of_learner[mask] for of_learner, mask in zip(selection.residuals, masks, strict=True)]
    training_learners = learners.only(training_rows)
    errors = []
    for j, model in enumerate(models):
        span = training_learners.span(j)
        with np.errstate(over="ignore", invalid="ignore"):
            errors.append(
                training_learners.loss.mean(
                    training_learners.y[span]
                    - predict_rows(model, training_learners.X[span], training_learners.loss)
                )
            )
    return replace(
        selection,
        models=tuple(models),
        errors=np.array(errors),
        n_rows=training_learners.sizes,
        candidate_losses=({},) * len(training_learners),
        folds=tuple(folds),
        training=tuple(training),
        residuals=tuple(residuals),
    )


def _labels(
    exchange: Exchange, learners: Learners, selection: Selection, counts: Sequence[int], recipe: Recipe
) -> dict[int, Array]:
    """Return the clusters (L,) of the learners for each number of clusters in ``counts``.

    Spectral clusters are refined by moving learners to the cluster with the smallest loss. It is the loss
    of averages of models, of logistic lines, or of linear models on pooled rows.
    """
    if recipe.refine == "average" or learners.n_features > FLEXIBLE.predictors:
        losses: LocalLosses = AverageLosses.of_all(learners, selection, exchange, recipe.engine)
        local_fit = None
    elif learners.loss.bounds is not None:
        losses = logistic = LogisticLosses(learners, selection)
        local_fit = logistic.local
    else:
        losses = pooled = PooledLosses(learners, selection)
        local_fit = pooled.local
    max_clusters = max((*counts, 1))
    labels = {}
    for n_clusters in counts:
        # Where dissimilarities span decades, the scale of noise leaves one crowd and many singles.
        scale = recipe.scale if n_clusters == recipe.chosen else "median"
        evidence = Evidence(
            exchange, resolve_scale(exchange, scale), max_clusters, recipe.seed, learners.sizes
        )
        is_not_refined = n_clusters == recipe.chosen and recipe.refine is None
        refined_labels = (
            evidence.labels(n_clusters)
            if is_not_refined
            else best_refined(evidence, losses, n_clusters, local_fit, rounds=recipe.rounds)
        )
        labels[n_clusters] = tidy_labels(refined_labels)
    return labels


def labels_at(
    learners: Learners, selection: Selection, counts: Sequence[int], recipe: Recipe
) -> dict[int, Array]:
    """Cluster the learners again by their rows and models: labels (L,) for each number in ``counts``.

    The models in ``selection`` are exchanged first. A learner whose losses are not finite has a cluster
    of its own, numbered after the others.
    """
    if not counts:
        return {}
    with warnings.catch_warnings():
        # Losses that are not finite have been reported when all rows were exchanged.
        warnings.simplefilter("ignore", UserWarning)
        unordered_exchange = cross_evaluate(
            selection,
            learners,
            robust=recipe.robust,
            landmarks=recipe.landmarks,
            random_state=recipe.seed,
            engine=recipe.engine,
        )
    exchange = unordered_exchange.aligned_to(learners.ids)
    finite = np.flatnonzero(~exchange.isolated)
    isolated = np.flatnonzero(exchange.isolated)
    labels_by_count = _labels(
        exchange.take(finite), learners.take(finite), selection.take(finite), counts, recipe
    )
    labels_of_all = {}
    for n_clusters, labels in labels_by_count.items():
        labels_of_all[n_clusters] = np.empty(len(learners), dtype=int)
        labels_of_all[n_clusters][finite] = labels
        labels_of_all[n_clusters][isolated] = labels.max() + 1 + np.arange(len(isolated))
    return labels_of_all


def labels_without_fold(
    learners: Learners, selection: Selection, training: Array, models: tuple[Any, ...], recipe: Recipe
) -> Array:
    """Return the chosen number of clusters, (L,), made again by the ``training`` rows (N,) only.

    ``models`` are the learners' models, fitted on these rows. Clusters that had seen a fold's rows would look
    too good on them.
    """
    training_selection = selection_without(selection, learners, training, models)
    return labels_at(learners.only(training), training_selection, (recipe.chosen,), recipe)[recipe.chosen]


def resolution_evidence(exchange: Exchange, n_rows: Array, seed: int) -> tuple[Evidence, list[int]]:
    """Return the evidence that clusters are made from at several resolutions, and the numbers of clusters.

    A resolution has at least two learners for each cluster on average.
    """
    counts = [k for k in COUNTS if 2 * k <= len(n_rows)]
    # Where dissimilarities span decades, the scale of noise leaves one crowd and many singles.
    return Evidence(exchange, resolve_scale(exchange, "median"), max([1, *counts]), seed, n_rows), counts


def average_labels(
    exchange: Exchange, losses: ClusterLosses, n_rows: Array, seed: int, rounds: int
) -> dict[int, Array]:
    """Cluster the learners at several resolutions, refined by averages of models: labels by number.

    A resolution is a number of clusters, the key of each labelling (L,). All losses are finite, and
    ``losses`` answers for these learners, with rows or by messages. ``rounds`` is how often learners are
    moved at most.
    """
    evidence, counts = resolution_evidence(exchange, n_rows, seed)
    return {k: tidy_labels(best_refined(evidence, losses, k, rounds=rounds)) for k in counts}
