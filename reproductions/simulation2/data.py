"""The learners of Simulation 2."""

from __future__ import annotations

import numpy as np

from coterie._options import check_count
from coterie.datasets import Simulation
from coterie.datasets.simulated import learner_names
from reproductions.simulation2.friedman import friedman2, friedman3, friedman_predictors


def make_simulation2(
    n_rows: int = 100,
    n_features: int = 500,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    """Draw the paper's Simulation 2: two of Friedman's functions, ten learners each.

    Twenty learners; Y = f(X) + noise with f = `friedman2` for the first ten and `friedman3` for
    the others, predictors by `friedman_predictors`, and noise ~ N(0, 0.01), a variance.

    Parameters
    ----------
    n_rows : int, default=100
        Number of rows of each learner.
    n_features : int, default=500
        Number of predictors, at least 4; the functions use the first four.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    Simulation
        The learners, with `truth` 0 for Friedman's second function and 1 for his third.

    Examples
    --------
    >>> simulation = make_simulation2(n_rows=10, n_features=8)
    >>> simulation.X.shape, simulation.truth.sum().item()
    ((200, 8), 10)
    """
    check_count(n_rows, "n_rows")
    rng = np.random.default_rng(random_state)
    X = friedman_predictors(20 * n_rows, n_features, rng)
    half = 10 * n_rows
    signal = np.concatenate([friedman2(X[:half]), friedman3(X[half:])])
    variance = np.full(20, 0.01)
    ids = learner_names(20)
    return Simulation(
        X=X,
        y=signal + 0.1 * rng.standard_normal(len(signal)),
        groups=np.repeat(ids, n_rows),
        truth=np.repeat(np.array([0, 1], dtype=np.int64), 10),
        learner_ids=ids,
        signal=signal,
        noise_variance=variance,
    )
