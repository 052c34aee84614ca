"""What a site sends: moments of bounded rows, noisy, and nothing else that depends on them."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.federated import ProtocolError
from coterie.federated.moments import moments_of, open_moments
from coterie.federated.moments.noise import noise_scale
from coterie.federated.moments.pool import unpacked
from coterie.federated.moments.site import bounded_rows
from coterie.federated.tables import Moments, Promise

from .conftest import make_schema

PROMISE = Promise(1.0, 1e-6)
ANYTHING = st.floats(allow_nan=True, allow_infinity=True, width=64)


@given(st.lists(st.tuples(ANYTHING, ANYTHING, ANYTHING), min_size=1, max_size=5))
def test_every_row_has_the_length_one_whatever_it_holds(rows):
    table = np.array(rows)
    bounded = bounded_rows(table[:, :2], table[:, 2], make_schema(2))
    assert np.isfinite(bounded).all()
    lengths = np.linalg.norm(bounded, axis=1)
    assert ((lengths == 0) | (np.abs(lengths - 1) < 1e-12)).all()


def test_a_row_is_scaled_as_a_whole_so_that_lines_stay_lines():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(50, 2)) * 30
    y = X @ [1.0, -2.0] + 3.0
    rows = bounded_rows(X, y, make_schema(2))
    assert np.linalg.norm(rows, axis=1) == pytest.approx(np.ones(50))
    line = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]
    assert rows[:, :-1] @ line == pytest.approx(rows[:, -1])


def test_a_row_without_a_response_counts_as_zeros_and_not_by_its_absence():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(20, 2)), generator.normal(size=20)
    y[3] = np.nan
    found = moments_of(X, y, site="a", schema=make_schema(2), promise=PROMISE)
    assert found.n_rows == 20
    assert bounded_rows(X, y, make_schema(2))[3].tolist() == [0.0, 0.0, 0.0, 0.0]


def test_nothing_but_the_number_of_rows_and_noisy_moments_depends_on_the_rows():
    generator = np.random.default_rng(0)
    schema, found = make_schema(2), []
    for size in (1.0, 100.0):
        X, y = size * generator.normal(size=(20, 2)), generator.normal(size=20)
        found.append(moments_of(X, y, site="a", schema=schema, promise=PROMISE))
    others = [f.name for f in fields(Moments) if f.name != "halves"]
    assert [getattr(found[0], name) for name in others] == [getattr(found[1], name) for name in others]
    # Every number of them has noise on it.
    X, y = np.zeros((20, 2)), np.zeros(20)
    again = np.array([moments_of(X, y, site="a", schema=schema, promise=PROMISE).halves for _ in range(300)])
    scale = noise_scale(PROMISE)
    assert (again.std(axis=0) > scale / 2).all()
    # The noise is not the same twice, and not from a seed.
    assert len(np.unique(again[:, 0, 0])) == 300


def test_exact_moments_are_the_same_for_the_same_rows():
    generator = np.random.default_rng(0)
    X, y = generator.normal(size=(21, 2)), generator.normal(size=21)
    named = {"site": "a", "columns": ("x0", "x1"), "target": "y", "seed": 0}
    first = open_moments(X, y, **named)
    assert open_moments(X, y, **named) == first
    rows = np.column_stack([np.ones(21), X, y])
    assert unpacked(first).sum(axis=0) == pytest.approx(rows.T @ rows)
    assert unpacked(first)[:, 0, 0].tolist() == [11.0, 10.0]
    with pytest.raises(ProtocolError, match="other units"):
        open_moments(X * 1e200, y, **named)
