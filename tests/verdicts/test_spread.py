import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.verdicts.spread import Residuals, Scales, Spread, learn_scales, learn_spread


def residuals(values: np.ndarray, owner: np.ndarray, clusters: np.ndarray, x: np.ndarray | None = None):
    x = np.zeros(len(values)) if x is None else x
    return Residuals(values, owner, clusters, np.column_stack([x, np.zeros(len(x))]), np.ones(len(values)))


def learners(spreads: np.ndarray, n_rows: int, seed: int = 0, clusters: np.ndarray | None = None):
    owner = np.repeat(np.arange(len(spreads)), n_rows)
    values = np.random.default_rng(seed).standard_normal(len(owner)) * spreads[owner]
    return residuals(values, owner, np.zeros(len(spreads), dtype=int) if clusters is None else clusters)


def test_a_scale_is_the_mean_of_own_and_pseudo_rows() -> None:
    scales = Scales(np.array([1.0, 4.0]), pseudo_rows=2.0)
    # No rows: the centre; ten of mean 7: (2 * 1 + 70) / 12; outside all clusters the last centre.
    assert_allclose(scales.of(np.array([0, 0, -1]), np.array([0, 10, 0]), np.array([0, 70, 0])), [1, 6, 4])


def test_each_row_is_left_out_of_its_own_scale() -> None:
    rows = residuals(np.array([1.0, -3.0, 5.0]), np.array([0, 0, 1]), np.zeros(2, dtype=int))
    found = Scales(np.array([2.0, 2.0]), 1.0).without_each(rows, np.abs(rows.values))
    assert_allclose(found, [(2 + 3) / 2, (2 + 1) / 2, 2])


def test_scales_are_shrunken_as_far_as_learners_are_alike() -> None:
    alike, unlike = learners(np.ones(40), 10), learners(np.geomspace(0.05, 20, 40), 10)
    assert learn_scales(alike, np.abs(alike.values)).pseudo_rows >= 64
    assert learn_scales(unlike, np.abs(unlike.values)).pseudo_rows <= 2


def test_coteries_have_scales_of_their_own() -> None:
    clusters = np.repeat([0, 1], 20)
    rows = learners(np.where(clusters == 0, 1.0, 10.0), 6, clusters=clusters)
    centres = learn_scales(rows, np.abs(rows.values)).centres
    assert 5 < centres[1] / centres[0] < 20
    assert centres[0] < centres[2] < centres[1]


def test_learners_of_zeros_and_without_residuals_have_a_scale() -> None:
    rows = residuals(np.array([0.0, 0.0, 2.0, -2.0]), np.array([0, 0, 1, 1]), np.zeros(3, dtype=int))
    scales = learn_scales(rows, np.abs(rows.values))
    found = scales.of(rows.clusters, *rows.sums(np.abs(rows.values)))
    assert np.isfinite(found).all()
    assert (found > 0).all()
    nothing = residuals(np.zeros(4), rows.owner, rows.clusters)
    assert (learn_scales(nothing, np.zeros(4)).centres > 0).all()


def test_the_scatter_may_depend_on_the_row() -> None:
    rng = np.random.default_rng(0)
    x, owner = rng.random(2_000), np.repeat(np.arange(20), 100)
    rows = residuals(rng.standard_normal(2_000) * (0.2 + 2 * x), owner, np.zeros(20, dtype=int), x)
    spread, factors, others = learn_spread(rows, rows.features, 0)
    assert spread.power > 0
    assert np.corrcoef(factors, 0.2 + 2 * x)[0, 1] > 0.9
    assert_allclose(others, factors)
    assert_allclose(spread.at(rows.features), factors, rtol=0.8)


def test_noise_does_not_make_the_scatter_depend_on_the_row() -> None:
    rng = np.random.default_rng(0)
    found = []
    for seed in range(20):
        rows = learners(np.ones(10), 60, seed)
        rows = residuals(rows.values, rows.owner, rows.clusters, rng.random(600))
        found.append(learn_spread(rows, rows.features, 0)[0].power)
    assert np.count_nonzero(found) <= 1


@pytest.mark.parametrize("n", [1, 50])
def test_few_rows_tell_nothing_of_it(n: int) -> None:
    rows = residuals(np.ones(n), np.zeros(n, dtype=int), np.zeros(1, dtype=int))
    spread, factors, _ = learn_spread(rows, rows.features, 0)
    assert spread.model is None
    assert (factors == 1).all()
    assert_allclose(Spread().at(rows.features), 1)
