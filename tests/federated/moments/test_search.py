"""Clusters and their number from moments, exact and noisy."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie.federated.moments.pool import pool_of
from coterie.federated.moments.search import held_out_losses, search_clusters

from .conftest import draw_sites


def found(drawn, most=8, **more):
    searched = search_clusters(pool_of(drawn.messages), most, 0, **more)
    return searched, adjusted_rand_score(drawn.data.truth, searched.chosen)


@pytest.mark.parametrize("epsilon", [None, 3.0])
@pytest.mark.parametrize("n_truths", [1, 2, 4])
def test_truths_are_found_and_their_number(epsilon, n_truths):
    n_rows = 60 if epsilon is None else 1500
    drawn = draw_sites(epsilon, n_learners=16, n_truths=n_truths, n_rows=n_rows)
    searched, recovery = found(drawn)
    assert searched.n_clusters == n_truths
    assert recovery == 1.0


def test_a_truth_of_one_site_among_twenty_is_found_by_the_site_itself():
    drawn = draw_sites(n_learners=20, labels=[1, *[0] * 19], n_rows=100)
    searched, recovery = found(drawn)
    assert recovery == 1.0
    assert searched.curve.chosen == 2


def test_a_number_that_is_given_is_kept():
    drawn = draw_sites(n_learners=12, n_truths=3)
    searched, _ = found(drawn, n_clusters=2)
    assert searched.n_clusters == 2
    assert len(np.unique(searched.chosen)) == 2
    assert searched.curve.chosen == 3
    assert set(searched.resolutions) == {1, 2, 4}


def test_held_out_losses_are_the_noise_level_where_clusters_are_right():
    drawn = draw_sites(n_learners=12, n_truths=3, noise_variance=0.5, n_rows=400)
    pool = pool_of(drawn.messages)
    losses = held_out_losses(pool, np.asarray(drawn.data.truth), np.ones(12)) * pool.units.half[-1] ** 2
    assert np.mean(losses) == pytest.approx(0.5, rel=0.1)
    one = held_out_losses(pool, np.zeros(12, dtype=int), np.ones(12)) * pool.units.half[-1] ** 2
    assert np.mean(one) > 1.0
