"""Lines bend at the same places at all sites, and nowhere where nothing could be seen there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.federated import ProtocolError, decode, encode
from coterie.federated.moments import knots_for, open_moments
from coterie.federated.moments.bends import usual_knots
from coterie.federated.moments.pool import unpacked
from coterie.federated.moments.site import bent

COLUMNS = ("level", "mark", "constant")
KNOTS = ((8.0, 12.0), (), ())


def rows_of(seed, n_rows=40):
    generator = np.random.default_rng(seed)
    X = np.column_stack(
        [10 + 3 * generator.normal(size=n_rows), generator.integers(0, 2, n_rows), np.full(n_rows, 5.0)]
    )
    return X, X @ [1.0, 2.0, 0.0]


def message_of(seed, **more):
    return open_moments(*rows_of(seed), site=f"site {seed}", columns=COLUMNS, target="y", seed=0, **more)


def test_a_row_says_how_far_it_is_above_each_knot():
    X = np.array([[7.0, 1.0, 5.0], [9.0, 0.0, 5.0], [14.0, 1.0, 5.0]])
    assert bent(X, ()).tolist() == X.tolist()
    assert bent(X, KNOTS)[:, :3].tolist() == X.tolist()
    assert bent(X, KNOTS)[:, 3:].tolist() == [[0.0, 0.0], [0.25, 0.0], [1.5, 0.5]]


def test_knots_stand_around_the_middle_of_what_varies():
    messages = [message_of(seed) for seed in range(9)]
    level, mark, constant = knots_for(messages, messages[0])
    assert (mark, constant) == ((), ())
    assert level == pytest.approx([7, 9, 11, 13], abs=0.6)
    # One site in other units moves them little.
    X, y = rows_of(9)
    wild = open_moments(X * 1e6, y, site="wild", columns=COLUMNS, target="y", seed=0)
    assert knots_for([*messages, wild], messages[0])[0] == pytest.approx(level, abs=0.6)
    # Who has other columns has no say.
    other = replace(message_of(1, knots=((0.0, 1.0), (), ())), columns=("a", "b", "c"))
    assert knots_for([*messages, other], messages[0]) == (level, mark, constant)


def test_what_most_have_is_taken():
    straight, ours = message_of(0), [message_of(seed, knots=KNOTS) for seed in (1, 2)]
    late = message_of(3, knots=((7.0, 9.0), (), ()))
    assert usual_knots([straight, late, *ours]) == KNOTS == knots_for([straight, late, *ours], straight)
    assert usual_knots([straight]) == ()


def test_knots_that_would_single_out_rows_are_not_taken():
    straight = [message_of(seed) for seed in range(5)]
    ours = knots_for(straight, straight[0])
    far, many = ((10.0, 40.0), (), ()), (tuple(np.linspace(8, 12, 50).tolist()), (), ())
    for knots in (far, many):
        prying = message_of(5, knots=knots)
        assert knots_for([*straight, prying], straight[0])[0] == pytest.approx(ours[0], abs=0.6)


def test_too_many_columns_do_not_bend():
    X = np.random.default_rng(0).normal(size=(90, 26))
    names = tuple(f"x{k}" for k in range(26))
    wide = open_moments(X, X[:, 0], site="a", columns=names, target="y", seed=0)
    assert knots_for([wide], wide) == ()


def test_the_moments_of_the_columns_themselves_are_the_same():
    straight, more = message_of(0), message_of(0, knots=KNOTS)
    assert unpacked(more) == pytest.approx(unpacked(straight))
    assert unpacked(more, bent=True).shape == (2, 7, 7)
    assert decode(encode(more)) == more


@pytest.mark.parametrize(
    "knots", [((1.0, 2.0),), ((1.0,), (), ()), ((2.0, 1.0), (), ()), ((1.0, 1.0), (), ())]
)
def test_knots_that_fit_no_columns_are_refused(knots):
    with pytest.raises(ProtocolError, match="knots"):
        replace(message_of(0), knots=knots)
    with pytest.raises(ProtocolError, match="do not fit"):
        replace(message_of(0, knots=KNOTS), knots=())
