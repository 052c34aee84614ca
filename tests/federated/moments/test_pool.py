"""Lines and losses from moments are those from rows, and noise is told from them."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from coterie.federated.moments import open_moments
from coterie.federated.moments.noise import noise_scale, noisy
from coterie.federated.moments.pool import fit_lines, losses_of, pool_of
from coterie.federated.tables import Promise

from .conftest import draw_sites


def test_lines_from_exact_moments_are_those_from_rows_in_any_units():
    drawn = draw_sites(n_learners=3, n_truths=1)
    # Columns far from zero, in units of their own.
    shift, size = np.array([1000.0, -5.0, 0.0]), np.array([0.01, 30.0, 1.0])
    messages, rows = [], []
    for site in drawn.sites:
        X, y = drawn.of(site)
        X = shift + size * X
        rows.append((X, y + 7))
        messages.append(open_moments(X, y + 7, site=site, columns=("a", "b", "c"), target="y", seed=0))
    pool = pool_of(messages)
    X, y = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    line = fit_lines(pool.moments.sum(axis=0), 0.0)
    Z = np.column_stack([np.ones(len(X)), X])
    wanted = Z @ np.linalg.lstsq(Z, y, rcond=None)[0]
    assert pool.units.predictions(line, X) == pytest.approx(wanted, abs=1e-4)
    lost = losses_of(line[None], pool.moments).sum() * pool.units.half[-1] ** 2
    assert lost == pytest.approx(np.sum((y - wanted) ** 2), rel=1e-4)


def test_directions_that_do_not_stand_out_of_the_noise_do_not_count():
    promise = Promise(1.0, 1e-6)
    drawn = noisy(np.zeros((200, 5, 5)), promise, Random(0).randrange)
    lines = fit_lines(drawn, noise_scale(promise))
    assert np.abs(lines).max() < 2
    assert np.abs(fit_lines(drawn, 0.0)).max() > 10
    # What stands out far stays what it is.
    clear = np.diag([1e6, 1e6, 1e6, 1e6, 1.0])
    clear[-1, 0] = clear[0, -1] = 5e5
    assert fit_lines(clear, noise_scale(promise)) == pytest.approx([0.5, 0, 0, 0], abs=1e-5)


def test_nobody_weighs_much_more_than_the_site_in_the_middle():
    drawn = draw_sites(n_learners=5, n_truths=1)
    liar = replace(
        drawn.messages[0], halves=tuple(tuple(1e9 * v for v in h) for h in drawn.messages[0].halves)
    )
    pool = pool_of([liar, *drawn.messages[1:]])
    sizes = np.trace(pool.moments, axis1=1, axis2=2)
    assert sizes[0] <= 2 * np.median(sizes)
    assert pool.bounded.tolist() == [True, False, False, False, False]
    assert pool.n_rows[0] <= 2 * np.median(pool.n_rows)


def test_an_empty_cluster_has_a_line_of_zeros():
    assert fit_lines(np.zeros((4, 4)), 0.0).tolist() == [0.0, 0.0, 0.0]
