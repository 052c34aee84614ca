"""What was blurred and sent is sent again in the same words, and what it costs adds up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from coterie.datasets import make_linear_learners
from coterie.datasets.files import data_home
from coterie.federated import ProtocolError
from coterie.federated.messages import Blur
from coterie.federated.sent import blurred_score, blurred_share, epsilon_spent

from .conftest import make_sites

BLUR = Blur(epsilon=1.0, delta=1e-6, clip=2.0)


@pytest.fixture
def site(monkeypatch, tmp_path):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    return make_sites(make_linear_learners(n_learners=2, n_truths=1, n_rows=30, random_state=0))


def test_the_same_is_sent_again_and_costs_nothing(site):
    party = next(iter(site.parties.values()))
    assert epsilon_spent(party) == 0
    first = blurred_share(party, BLUR)
    assert blurred_share(party, BLUR) == first
    assert epsilon_spent(party) == 1
    shares = [first, site.shares[1]]
    scored = blurred_score(party, shares, BLUR)
    assert blurred_score(party, shares[::-1], BLUR) == scored
    assert epsilon_spent(party) == 2


def test_another_epsilon_is_another_message_and_adds_up(site):
    party, other = site.parties.values()
    first = blurred_share(party, BLUR)
    assert blurred_share(party, replace(BLUR, epsilon=3.0)) != first
    assert epsilon_spent(party) == 4
    assert epsilon_spent(other) == 0


def test_a_damaged_record_is_not_taken_for_nothing_sent(site):
    party = next(iter(site.parties.values()))
    blurred_share(party, BLUR)
    (kept,) = data_home().glob("blurred/*/share-*.json")
    kept.write_text("{")
    with pytest.raises(ProtocolError, match="spends epsilon again"):
        blurred_share(party, BLUR)
    with pytest.raises(ProtocolError, match="remove it"):
        epsilon_spent(party)
