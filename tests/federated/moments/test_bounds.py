"""No site outweighs the others in any direction, and what it says of its own line stays what it is."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.federated.moments.bounds import (
    agreement_weights,
    bound_contributions,
    geometric_median,
    robust_centre,
    scale_rows,
    usual_limit,
)

N_ROWS, D = 60, 4


def moments_of(generator, *, shift=0.0, times=1.0, n_rows=N_ROWS):
    """Return the moments of rows (1, x, y) of one truth; the first slope may be off, and x wide."""
    X = np.column_stack([np.ones(n_rows), times * generator.normal(size=(n_rows, D - 1))])
    y = X @ [1.0, 2.0 + shift, -1.0, 0.0] + 0.5 * generator.normal(size=n_rows)
    rows = np.column_stack([X, y])
    return rows.T @ rows


def twelve(*liars):
    generator = np.random.default_rng(0)
    whole = [moments_of(generator) for _ in range(12 - len(liars))]
    return np.array([*whole, *(moments_of(generator, **liar) for liar in liars)])


WIDE = {"times": np.array([50.0, 1.0, 1.0])}


@pytest.mark.parametrize("liars", [[WIDE], [WIDE] * 3, [{"times": 10.0}], [{"n_rows": 10_000}]])
def test_nobody_counts_more_than_the_limit_in_any_direction(liars):
    moments = twelve(*liars)
    A, n_rows = moments[:, :-1, :-1], moments[:, 0, 0]
    scale, counted = bound_contributions(A, n_rows)
    inside = scale @ A @ scale.swapaxes(1, 2)
    centre, limit = robust_centre(A), usual_limit(D, n_rows)
    above = np.linalg.eigvals(np.linalg.solve(centre, inside)).real.max(axis=1)
    assert above.max() <= limit * (1 + 1e-6)
    # The centre is that of the honest sites, within what chance makes of it.
    honest = robust_centre(A[: 12 - len(liars)])
    assert np.linalg.eigvals(np.linalg.solve(honest, centre)).real.max() < 1.5
    assert counted.max() <= limit * N_ROWS * 1.5
    assert (scale[: 12 - len(liars)] == np.eye(D)).all(axis=(1, 2)).sum() >= 10 - len(liars)


def test_who_is_within_the_limit_is_not_touched():
    moments = twelve()
    scale, counted = bound_contributions(moments[:, :-1, :-1], moments[:, 0, 0], limit=3.0)
    assert (scale == np.eye(D)).all()
    assert (counted == N_ROWS).all()


def test_a_site_that_is_scaled_keeps_its_line_and_its_noise_level():
    moments = twelve({"shift": 0.7, "times": 50.0})
    scale, counted = bound_contributions(moments[:, :-1, :-1], moments[:, 0, 0])
    line = np.linalg.solve(moments[-1, :-1, :-1], moments[-1, :-1, -1])
    share = counted[-1] / N_ROWS
    found = scale_rows(moments[-1], line, scale[-1], share)
    assert np.linalg.solve(found[:-1, :-1], found[:-1, -1]) == pytest.approx(line)
    left = [whole[-1, -1] - whole[-1, :-1] @ line for whole in (moments[-1], found)]
    assert left[1] / counted[-1] == pytest.approx(left[0] / N_ROWS)
    assert np.linalg.eigvalsh(found)[0] > 0


def test_the_geometric_median_is_positive_definite_where_that_of_entries_is_not():
    signs = np.array([[1, 1, -1], [1, -1, 1], [-1, 1, 1]])
    matrices = np.array([0.9 * np.outer(each, each) + 0.1 * np.eye(3) for each in signs])
    assert np.linalg.eigvalsh(np.median(matrices, axis=0))[0] < 0
    assert np.linalg.eigvalsh(geometric_median(matrices))[0] > 0


def weights_of(moments, labels=None, counted=None):
    labels = np.zeros(len(moments), dtype=int) if labels is None else np.array(labels)
    levels = np.full(len(moments), 0.25)
    ones = np.ones(len(moments)) if counted is None else counted
    return agreement_weights(moments[:, :-1, :-1], moments[:, :-1, -1], levels, labels, ones)


def test_who_surely_disagrees_does_not_count():
    weights = weights_of(twelve({"shift": 0.5}))
    assert weights[-1] == 0
    assert weights[:-1].mean() > 0.9


@pytest.mark.parametrize(
    ("liars", "labels"), [([{"shift": 0.7}] * 6, [0] * 12), ([{"shift": 0.7}], [0] * 5 + [1] * 5 + [2] * 2)]
)
def test_where_nobody_can_say_who_is_right_all_count(liars, labels):
    moments = twelve(*liars)
    mine = np.array(labels) == labels[-1]
    assert weights_of(moments, labels)[mine].tolist() == [1.0] * int(mine.sum())


def test_a_level_that_a_site_states_does_not_hide_it():
    moments = twelve({"shift": 0.5})
    levels = np.r_[np.full(11, 0.25), 25.0]
    A, a = moments[:, :-1, :-1], moments[:, :-1, -1]
    found = agreement_weights(A, a, levels, np.zeros(12, dtype=int), np.ones(12))
    assert found[-1] == 0
