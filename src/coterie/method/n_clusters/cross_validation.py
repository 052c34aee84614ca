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

    The curve has the error on the second half for each number of clusters.
    """
    first = learners.only(np.concatenate([training[0] for training in selection.training]))
    second = learners.only(np.concatenate(selection.folds) == 0)
    models = tuple(by_fold[0] for by_fold in selection.fold_models)
    errors = own_errors(models, first)
    halves = replace(selection, models=models, errors=errors, n_rows=first.sizes)
    exchange = cross_evaluate(halves, first, engine=engine).aligned_to(evidence.exchange.learner_ids)
    trial = replace(evidence, exchange=exchange)
    averages = model_averages(models, second, engine)
    counts = np.arange(1, evidence.most + 1)
    values, spread = np.empty(len(counts)), np.empty(len(counts))
    for index, k in enumerate(counts):
        labels = trial.labels(int(k))
        weights = membership(labels, int(labels.max()) + 1, first.sizes.astype(float))
        weights = weights[weights.sum(axis=1) > 0]
        labels = np.unique(labels, return_inverse=True)[1]
        predictions = averages.predict(weights / weights.sum(axis=1, keepdims=True))
        predicted = predictions[labels[second.owner], np.arange(len(second.owner))]
        by_learner = second.mean_losses(second.y - predicted)
        values[index] = by_learner.mean()
        spread[index] = by_learner.std(ddof=1) / np.sqrt(len(by_learner)) if len(by_learner) > 1 else 0
    return Curve(
        rule="cv",
        n_clusters=counts,
        values=values,
        chosen=int(counts[np.nanargmin(values)]) if np.isfinite(values).any() else 1,
        criterion="mean squared error on the other half of the rows (lower is better)",
        spread=spread,
    )
