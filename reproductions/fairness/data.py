"""The learners of the fairness experiment."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from coterie._options import check_count
from coterie.datasets import Simulation
from coterie.datasets.simulated import learner_names


@dataclass(frozen=True, eq=False)
class FairnessLearners(Simulation):
    """Learners that differ by the value of a sensitive variable.

    `sensitive`, of shape (n_learners,), has the value of each learner. It is never in `X`.
    """

    sensitive: NDArray[np.float64] = field(kw_only=True)


def make_fairness(
    b: float = 1.0,
    n_learners: int = 50,
    n_rows: int = 50,
    random_state: int | np.random.Generator | None = 0,
) -> FairnessLearners:
    """Draw the paper's fairness example: learners that differ by a sensitive value.

    Y = X1 + 2 X2 - 2 X3 + 2 X4 + b R_i + noise, with X ~ N(0, I_4), noise ~ N(0, 1) and
    R_i ~ N(0, 1) drawn once per learner. R is kept in `sensitive` and is not a predictor. The
    learners form a continuum, so there are no true labels.

    Parameters
    ----------
    b : float, default=1.0
        Weight of the sensitive variable.
    n_learners : int, default=50
        Number of learners, L.
    n_rows : int, default=50
        Number of rows of each learner.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    FairnessLearners
        The learners, with `coefficients` and `sensitive`; `truth` is None.

    Examples
    --------
    >>> simulation = make_fairness(b=2.0, n_learners=5, n_rows=10)
    >>> simulation.X.shape, simulation.sensitive.shape
    ((50, 4), (5,))
    """
    check_count(n_learners, "n_learners")
    check_count(n_rows, "n_rows")
    if not np.isfinite(b):
        raise ValueError(f"The 'b' argument of make_fairness must be finite. Got {b}.")
    rng = np.random.default_rng(random_state)
    sensitive = rng.standard_normal(n_learners)
    X = rng.standard_normal((n_learners * n_rows, 4))
    beta = np.array([[1.0, 2.0, -2.0, 2.0]])
    signal = X @ beta[0] + b * np.repeat(sensitive, n_rows)
    ids = learner_names(n_learners)
    return FairnessLearners(
        X=X,
        y=signal + rng.standard_normal(len(signal)),
        groups=np.repeat(ids, n_rows),
        truth=None,
        learner_ids=ids,
        signal=signal,
        noise_variance=np.ones(n_learners),
        coefficients=beta,
        sensitive=sensitive,
    )
