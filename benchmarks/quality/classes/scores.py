"""What probabilities are worth: means over learners, and how well calibrated they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

# Nobody is infinitely wrong.
SUREST = 1e-6
BINS = 15


def calibration_error(probabilities: Any, codes: Any) -> float:
    """Return the expected calibration error of the class that is thought most likely, in equal bins."""
    sure, right = probabilities.max(axis=1), probabilities.argmax(axis=1) == codes
    bins = np.minimum((sure * BINS).astype(int), BINS - 1)
    gaps = [abs(sure[bins == b].sum() - right[bins == b].sum()) for b in range(BINS)]
    return float(sum(gaps) / len(codes))


def scores(probabilities: Any, y: Any, groups: Any) -> dict[str, float]:
    """Return log loss, Brier score, accuracy and AUC, means over learners, and the calibration error."""
    classes, codes = np.unique(y, return_inverse=True)
    hits = np.eye(len(classes))[codes]
    mine = np.clip(probabilities[np.arange(len(codes)), codes], SUREST, 1)
    rows = {
        "log_loss": -np.log(mine),
        "brier": ((probabilities - hits) ** 2).sum(axis=1),
        "accuracy": (probabilities.argmax(axis=1) == codes).astype(float),
    }
    learners = np.unique(groups)
    found = {
        name: float(np.mean([part[groups == learner].mean() for learner in learners]))
        for name, part in rows.items()
    }
    if len(classes) == 2:
        areas = [
            roc_auc_score(codes[groups == j], probabilities[groups == j, 1])
            for j in learners
            if len(set(codes[groups == j].tolist())) == 2
        ]
        found["auc"] = float(np.mean(areas))
    return {**found, "calibration_error": calibration_error(probabilities, codes)}
