"""The two ends and the best one could do: each learner alone, one model for all, the true clusters."""

from __future__ import annotations

import numpy as np
from problem import Answer, Problem


def run(problem: Problem, truth: np.ndarray) -> list[Answer]:
    """Return the labellings that need no search."""
    return [
        Answer("oracle", truth, 0.0),
        Answer("alone", np.arange(problem.n_learners), 0.0),
        Answer("global", np.zeros(problem.n_learners, dtype=int), 0.0),
    ]
