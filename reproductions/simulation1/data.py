"""The learners of Simulation 1."""

from __future__ import annotations

import numpy as np

from coterie.datasets import Simulation, make_linear_learners


def make_simulation1(
    n_features: int = 20,
    snr: float = 16,
    random_state: int | np.random.Generator | None = 0,
) -> Simulation:
    """Draw the paper's Simulation 1: two linear truths, ten learners each.

    Twenty learners of 50 rows; Y = beta' X + noise with X ~ N(0, I_p), beta_1 for the first ten
    learners and beta_2 for the others, both ~ N(0, I_p), and noise ~ N(0, p^2 / SNR). The paper
    calls this ratio the signal-to-noise ratio, though the expected squared norm of beta is p.

    Parameters
    ----------
    n_features : int, default=20
        Number of predictors, p; the paper takes 5, 10 and 20.
    snr : float, default=16
        The paper's signal-to-noise ratio; it takes 2^0, ..., 2^7.
    random_state : int, numpy.random.Generator or None, default=0
        Seed of the draw; None draws a new one.

    Returns
    -------
    Simulation
        The learners, with `truth` and `coefficients`.

    Examples
    --------
    >>> simulation = make_simulation1(n_features=5, snr=16)
    >>> simulation.X.shape, float(simulation.noise_variance[0])
    ((1000, 5), 1.5625)
    """
    if not 0 < snr < np.inf:
        raise ValueError(f"The 'snr' argument of make_simulation1 must be positive and finite. Got {snr}.")
    return make_linear_learners(
        n_learners=20,
        n_truths=2,
        n_rows=50,
        n_features=n_features,
        noise_variance=n_features**2 / snr,
        labels=np.repeat([0, 1], 10),
        random_state=random_state,
    )
