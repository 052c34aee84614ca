"""Numbers in cells."""

import numpy as np
import pytest

from reproductions.harness.cells import cell, column, mean_and_error, ratio_and_error


def test_a_column_takes_the_records_asked_for():
    records = [{"b": 1, "x": 2.0}, {"b": 2, "x": 3.0}, {"b": 1, "x": 4.0}]
    assert column(records, "x", b=1).tolist() == [2.0, 4.0]


def test_the_error_of_a_mean():
    assert mean_and_error(np.array([1.0, 3.0])) == (2.0, pytest.approx(1.0))
    assert np.isnan(mean_and_error(np.array([1.0]))[1])


def test_a_ratio_that_never_varies_has_no_error():
    bottom = np.array([1.0, 2.0, 5.0])
    assert ratio_and_error(bottom / 2, bottom) == (0.5, pytest.approx(0.0))


def test_the_error_of_a_ratio_is_that_of_many_draws():
    generator = np.random.default_rng(0)
    bottom = generator.normal(4, 1, size=(2000, 50))
    top = 0.5 * bottom + generator.normal(1, 0.5, size=bottom.shape)
    estimates = np.array([ratio_and_error(t, b) for t, b in zip(top, bottom, strict=True)])
    assert estimates[:, 1].mean() == pytest.approx(estimates[:, 0].std(), rel=0.1)


def test_an_unknown_error_is_not_written():
    assert cell((1.0, float("nan")), 1) == "1.0"
