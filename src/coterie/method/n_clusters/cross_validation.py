"""Cross-validation, the paper's proposal: cluster on one half of each learner's rows, score on the other.

The models fitted on the first half of the rows during Select are exchanged among those rows and clustered;
for each K the second half is predicted by the average of the cluster's models, weighted by rows. Chosen is
the K with the lowest mean squared error over learners.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.engines import Engine
from coterie.kernels.losses import own_errors
from coterie.method.exchange import cross_evaluate
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.refine.averages import membership, model_averages
from coterie.records import Curve, Selection
from coterie.rows.learners import Learners


def cross_validated(evidence: Evidence, learners: Learners, selection: Selection, engine: Engine) -> Curve:
    """Choose the number of clusters by half-half cross-validation inside every learner.

    Models of the first halves of the rows are exchanged and clustered; clusters then predict the second
    halves by averages of their members' models. The curve has, for each K, the mean over learners of the loss
    on the second half, and its standard error.

    ``selection`` is what Select left: each learner's model, chosen by cross-validation, with its folds of
    rows and the models fitted without each fold. If no K has a finite loss, one cluster is chosen.
    """
    # Fold 0 is held out as the second half; the model without it was fitted on the first half.
    first_halves = learners.only(np.concatenate([training[0] for training in selection.training]))
    second_halves = learners.only(np.concatenate(selection.folds) == 0)
    models = tuple(models_by_fold[0] for models_by_fold in selection.fold_models)
    errors = own_errors(models, first_halves)
    selection_on_first = replace(selection, models=models, errors=errors, n_rows=first_halves.sizes)
    # Exchange again, on first halves: the loss of everybody's model on everybody's rows.
    exchange_on_first = cross_evaluate(selection_on_first, first_halves, engine=engine).aligned_to(
        evidence.exchange.learner_ids
    )
    evidence_on_first = replace(evidence, exchange=exchange_on_first)
    averages = model_averages(models, second_halves, engine)
    n_clusters = np.arange(1, evidence.most + 1)
    mean_losses, standard_errors = np.empty(len(n_clusters)), np.empty(len(n_clusters))
    for index, k in enumerate(n_clusters):
        labels = evidence_on_first.labels(int(k))
        weights = membership(labels, int(labels.max()) + 1, first_halves.sizes.astype(float))
        # Empty clusters go, and labels are renumbered to fit the rows that are left.
        weights = weights[weights.sum(axis=1) > 0]
        labels = np.unique(labels, return_inverse=True)[1]
        predictions = averages.predict(weights / weights.sum(axis=1, keepdims=True))
        own_cluster_predictions = predictions[
            labels[second_halves.owner], np.arange(len(second_halves.owner))
        ]
        losses_by_learner = second_halves.mean_losses(second_halves.y - own_cluster_predictions)
        mean_losses[index] = losses_by_learner.mean()
        standard_errors[index] = (
            losses_by_learner.std(ddof=1) / np.sqrt(len(losses_by_learner))
            if len(losses_by_learner) > 1
            # A single learner has no standard error: zero stands in.
            else 0
        )
    return Curve(
        rule="cv",
        n_clusters=n_clusters,
        values=mean_losses,
        chosen=int(n_clusters[np.nanargmin(mean_losses)]) if np.isfinite(mean_losses).any() else 1,
        criterion="mean squared error on the other half of the rows (lower is better)",
        spread=standard_errors,
    )
