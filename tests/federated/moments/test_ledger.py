"""The ledger knows rows again, however they come, and adds up what they spend."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.datasets.files import data_home
from coterie.federated import ProtocolError
from coterie.federated.moments import Column
from coterie.federated.moments.ledger import send_once
from coterie.federated.tables import Promise

from .conftest import make_schema

SCHEMA = make_schema(2)
PROMISE = Promise(1.0, 1e-6)


@pytest.fixture
def rows():
    generator = np.random.default_rng(0)
    return generator.normal(size=(30, 2)), generator.normal(size=30)


def send(X, y, *, site="a", schema=SCHEMA, promise=PROMISE, **more):
    return send_once(X, y, site=site, schema=schema, promise=promise, **more)


def test_the_same_rows_get_the_same_message_and_spend_nothing(rows):
    first, account = send(*rows)
    assert (account.epsilon, account.delta, account.known, account.again) == (1.0, 1e-6, 0, False)
    again, account = send(*rows)
    assert again == first
    assert (account.epsilon, account.known, account.again) == (1.0, 30, True)


def test_sorted_and_renamed_rows_are_the_same_rows(rows):
    X, y = rows
    first, _ = send(X, y)
    order = np.argsort(y)
    second, account = send(X[order], y[order], site="another")
    assert second == replace(first, site="another")
    assert account.epsilon == 1.0


def test_a_few_more_rows_are_refused_unless_wanted_and_then_add_up(rows):
    X, y = rows
    send(X[:25], y[:25])
    with pytest.raises(ProtocolError, match=r"25 of the 30 rows .* epsilon 2 in all"):
        send(X, y)
    _, account = send(X, y, again=True)
    assert (account.epsilon, account.delta, account.known) == (2.0, 2e-6, 25)
    # Five rows were part of one message only: the account is that of the row that has spent most.
    _, account = send(X[25:], y[25:], again=True)
    assert account.epsilon == 2.0
    # Fewer rows than before are rows that were there before.
    with pytest.raises(ProtocolError, match="10 of the 10 rows"):
        send(X[:10], y[:10])


def test_another_promise_or_schema_is_another_message(rows):
    send(*rows)
    with pytest.raises(ProtocolError, match="epsilon 4 in all"):
        send(*rows, promise=Promise(3.0, 1e-6))
    wider = make_schema(2, half=3.0)
    with pytest.raises(ProtocolError, match="epsilon 2 in all"):
        send(*rows, schema=wider)


def test_a_line_of_the_table_is_known_where_the_columns_have_changed(rows):
    X, y = rows
    lines = [f"line {k}" for k in range(30)]
    send(X, y, lines=lines)
    fewer = replace(SCHEMA, columns=(Column("x0", low=-2, high=2),))
    with pytest.raises(ProtocolError, match="30 of the 30 rows"):
        send(X[:, :1], y, schema=fewer, lines=lines[::-1])
    # Without the lines nothing is left to know them by, which the guide says.
    _, account = send(X[:, :1], y, schema=fewer)
    assert account.known == 0


def test_other_rows_have_an_account_of_their_own(rows):
    X, y = rows
    send(X[:15], y[:15])
    _, account = send(X[15:], y[15:])
    assert (account.epsilon, account.known) == (1.0, 0)


def test_the_ledger_does_not_hold_rows_or_hashes_that_anybody_could_look_up(rows):
    send(*rows)
    key = data_home() / "spent" / "key"
    assert key.stat().st_mode & 0o077 == 0
    (entry,) = (data_home() / "spent").glob("*.json")
    kept = entry.read_bytes()
    key.unlink()
    for path in (data_home() / "spent").glob("*.json"):
        path.unlink()
    send(*rows)
    (entry,) = (data_home() / "spent").glob("*.json")
    # Another key gives other hashes of the same rows.
    assert entry.read_bytes() != kept


def test_a_damaged_ledger_is_not_taken_for_nothing_spent(rows):
    send(*rows)
    (entry,) = (data_home() / "spent").glob("*.json")
    entry.write_text("{")
    with pytest.raises(ProtocolError, match="spends epsilon again"):
        send(*rows)
