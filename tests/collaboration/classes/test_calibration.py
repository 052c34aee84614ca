"""Recalibration mends what is too bold, and leaves alone what is right."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import softmax

from coterie.collaboration.classes.calibration import learn_calibration, recalibrated


def drawn(n_classes: int, boldness: float, level: float = 0.0, n: int = 3000):
    rng = np.random.default_rng(0)
    logs = rng.normal(size=(n, n_classes))
    truth = softmax(logs, axis=1)
    codes = (rng.random(n)[:, None] > np.cumsum(truth, axis=1)).sum(axis=1)
    logs[:, -1] += level
    return softmax(boldness * logs, axis=1), codes, truth


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize(("boldness", "level"), [(2.5, 0.0), (0.4, 0.0), (1.0, 1.0)])
def test_wrong_probabilities_are_mended(n_classes: int, boldness: float, level: float) -> None:
    probabilities, codes, truth = drawn(n_classes, boldness, level)
    folds = np.arange(len(codes)) % 4
    calibration, mended = learn_calibration(probabilities, codes, np.ones(len(codes)), folds, 4)
    assert calibration is not None
    assert_allclose(calibration[0], 1 / boldness, rtol=0.15)
    assert_allclose(recalibrated(probabilities, calibration).sum(axis=1), 1)
    assert np.abs(mended - truth).mean() < 0.3 * np.abs(probabilities - truth).mean()


@pytest.mark.parametrize("n_classes", [2, 4])
def test_right_ones_are_left_alone(n_classes: int) -> None:
    probabilities, codes, _ = drawn(n_classes, 1.0)
    calibration, same = learn_calibration(
        probabilities, codes, np.ones(len(codes)), np.arange(len(codes)) % 4, 4
    )
    assert calibration is None
    assert same is probabilities
