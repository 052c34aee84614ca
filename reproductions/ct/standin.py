"""A generated table in the shape of the CT slices, for where the real file cannot be had.

It stands in for the file's shape and difficulty, not for its numbers: 97 patients, 53,500 slices, 384
features between 0 and 1, a location between 0 and 100. A feature is a bump over the anatomical position of
a slice. Where that position lies on the scanner's axis differs between three kinds of patients, as it would
between tall and short ones or between two habits of positioning them, and a little from patient to patient.
So the same picture means another location in another kind of patient: one model for all is wrong by the
difference, clusters need not be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Shift along the axis, stretch of it, and share of the patients.
KINDS = ((0.0, 1.0, 0.40), (15.0, 0.95, 0.35), (-15.0, 1.05, 0.25))
# Patients of a kind differ by shifts of this standard deviation.
PATIENT_SHIFT = 3.0
# Features come in blocks, as the sectors of the pictures do; patients differ in how strongly a block shows.
BLOCK = 16
PATIENT_GAIN = 0.1
PIXEL_NOISE = 0.05


@dataclass(frozen=True, eq=False)
class StandIn:
    """A generated table of slices.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Features.
    y : ndarray of shape (n_rows,)
        Location of each slice.
    groups : ndarray of shape (n_rows,)
        Patient of each slice.
    kinds : ndarray of shape (n_patients,)
        Kind of each patient.
    """

    X: Array
    y: Array
    groups: Array
    kinds: Array


def make_standin(
    n_patients: int = 97, n_rows: int = 53_500, n_features: int = 384, random_state: int = 0
) -> StandIn:
    """Generate a table in the shape of the CT slices.

    Parameters
    ----------
    n_patients : int, default=97
        Number of learners.
    n_rows : int, default=53500
        Number of slices of all patients together.
    n_features : int, default=384
        Number of features.
    random_state : int, default=0
        Seed.

    Returns
    -------
    StandIn
        The table.

    Examples
    --------
    >>> from reproductions.ct.standin import make_standin
    >>> table = make_standin(n_patients=5, n_rows=100, n_features=8)
    >>> table.X.shape, len(set(table.groups.tolist()))
    ((100, 8), 5)
    """
    generator = np.random.default_rng(random_state)
    kinds = generator.choice(len(KINDS), n_patients, p=[share for _, _, share in KINDS])
    # Scans differ in length: from half to one and a half of the mean, and none is empty.
    parts = generator.uniform(0.5, 1.5, n_patients)
    sizes = np.maximum(1, np.floor(n_rows * parts / parts.sum()).astype(int))
    sizes[np.argsort(sizes)[: n_rows - sizes.sum()]] += 1
    patient = np.repeat(np.arange(n_patients), sizes)
    start, end = generator.uniform(0, 10, n_patients), generator.uniform(85, 97, n_patients)
    y = start[patient] + (end - start)[patient] * generator.random(n_rows)
    shifts, stretches = (np.array([kind[place] for kind in KINDS]) for place in (0, 1))
    shift = shifts[kinds] + PATIENT_SHIFT * generator.standard_normal(n_patients)
    position = shift[patient] + stretches[kinds][patient] * y
    centres, widths = generator.uniform(-20, 120, n_features), generator.uniform(4, 20, n_features)
    heights = generator.uniform(0.2, 0.9, n_features)
    n_blocks = -(-n_features // BLOCK)
    gains = np.exp(PATIENT_GAIN * generator.standard_normal((n_patients, n_blocks)))
    X = heights * np.exp(-0.5 * ((position[:, None] - centres) / widths) ** 2)
    X *= np.repeat(gains, BLOCK, axis=1)[:, :n_features][patient]
    X += PIXEL_NOISE * generator.standard_normal(X.shape)
    return StandIn(np.clip(X, 0.0, 1.0), y, patient, kinds)
