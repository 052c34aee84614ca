"""The last bits of a message say nothing of a row; the full audit is a benchmark, and its outcome is here."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from coterie.federated.moments.noise import UNIT

AUDIT = Path(__file__).parents[2] / "benchmarks" / "federated" / "last_bits.txt"


@pytest.fixture(scope="module")
def messages(last_bits):
    """Return messages of both tables of the worst pair."""
    return [last_bits.drawn(place, 60, 12) for place in range(2)]


def test_a_message_of_either_table_has_numbers_of_one_grid(messages):
    for drawn in messages:
        scaled = drawn * UNIT**2
        assert (scaled == np.rint(scaled)).all()
        # Odd and even ones come alike: the last bit is noise.
        places = np.triu_indices(drawn.shape[-1])
        odd = (scaled[:, :, places[0], places[1]] % 2).mean()
        assert abs(odd - 0.5) < 0.03


def test_messages_prove_no_more_than_was_claimed(messages, last_bits):
    epsilon, _ = last_bits.proven(*map(last_bits.statistics, messages))
    assert epsilon <= last_bits.PROMISE.epsilon


@pytest.mark.slow
def test_more_messages_prove_no_more(last_bits):
    found = [last_bits.statistics(last_bits.drawn(place, 1500, 12)) for place in range(2)]
    assert last_bits.proven(*found)[0] <= last_bits.PROMISE.epsilon


def test_the_audit_finds_a_leak_where_there_is_one(last_bits):
    generator = np.random.default_rng(0)
    size = last_bits.PREDICTORS + 2
    found = []
    for place in range(2):
        row = np.zeros(size)
        row[[slice(1, -1), slice(-1, None)][place]] = 1.0
        row /= np.linalg.norm(row)
        # Noise in floating point, less of it than is claimed so that few messages show it.
        noise = np.triu(generator.normal(0, 0.6, (600, 2, size, size)))
        drawn = noise + np.swapaxes(np.triu(noise, 1), -1, -2)
        drawn[np.arange(600), generator.integers(0, 2, 600)] += np.outer(row, row)
        found.append(last_bits.statistics(drawn))
    epsilon, name = last_bits.proven(*found)
    assert epsilon > 2.5
    assert "no multiples" in name


def test_the_committed_audit_of_twenty_thousand_messages_proves_no_more_than_was_claimed():
    now, before = AUDIT.read_text().split("\n\n", 1)
    assert "20000 messages" in now
    assert all(float(value) <= 1 for value in re.findall(r"proven .*: epsilon ([0-9.]+)", now))
    assert max(float(value) for value in re.findall(r"proven .*: epsilon ([0-9.]+)", before)) > 5
