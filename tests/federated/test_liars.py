"""What one site states of itself is not believed beyond the median, and what it objects to has to be so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.datasets import make_linear_learners
from coterie.federated import predict, score, wire
from coterie.federated.protocol import _with_strangers_known

from .conftest import Sites, ask_all, make_sites

HONEST = 11


@pytest.fixture(scope="module")
def twelve():
    """Twelve sites of three truths; the last one will lie in the coterie of the first truth."""
    labels = [*(place % 3 for place in range(HONEST)), 0]
    data = make_linear_learners(12, 3, n_rows=60, n_features=6, labels=labels, random_state=0)
    return data, make_sites(data)


def excess(data, sites, found):
    """Return how far predictions of the honest sites of the first truth are from the signal."""
    X = np.random.default_rng(1).normal(size=(300, 6))
    signal, names = X @ data.coefficients[0], data.learner_ids.tolist()[:HONEST:3]
    return np.mean([np.mean((predict(X, site, sites.shares, found) - signal) ** 2) for site in names])


@pytest.mark.parametrize("stated", [{"n_rows": 100_000}, {"noise": 0.05}, {"n_rows": 599, "noise": 0.11}])
def test_a_shifted_model_does_little_harm_whatever_its_site_states(twelve, stated):
    data, sites = twelve
    liar = data.learner_ids.tolist()[-1]
    affine = [wire.unpack(each.model, 6).affine for each in sites.shares[:HONEST:3]]
    slopes, intercept = (np.mean([part[k] for part in affine], axis=0) for k in (0, 1))
    slopes[0] += 0.5
    n_rows = stated.get("n_rows", 60)
    model = wire.pack_affine(slopes, float(intercept))
    shares = [*sites.shares[:-1], replace(sites.shares[-1], model=model, n_rows=n_rows)]
    members = list(sites.sites.values())
    lie = score(members[-1], shares)
    own = replace(lie.losses[liar], value=shares[-1].error)
    lie = replace(
        lie,
        losses={**lie.losses, liar: own},
        noise=lie.noise * stated.get("noise", 1.0),
        half_sizes=(n_rows - n_rows // 2, n_rows // 2),
    )
    lying = Sites(sites.sites, shares, [*(score(site, shares) for site in members[:-1]), lie])
    honest = sites.without(liar)
    honest = replace(honest, scores=[score(site, honest.shares) for site in honest.sites.values()])
    without = ask_all(honest)
    found = ask_all(lying)
    assert [found.labels[site] for site in honest.sites] == [without.labels[site] for site in honest.sites]
    assert excess(data, lying, found) <= 1.4 * excess(data, honest, without)


def test_an_objection_that_its_own_losses_contradict_is_a_lie(sites):
    liar = sites.shares[2].site

    def change(answer):
        if answer.site != liar:
            return answer
        return replace(answer, pairings=tuple((1e30, 0.0) for _ in answer.pairings))

    found = ask_all(sites, reply=lambda question, rounds: [change(a) for a in sites.replies(question)])
    assert set(found.left_out) == {liar}
    assert "another difference" in found.left_out[liar]


def test_a_site_that_no_model_suits_is_known_by_its_own_model():
    losses = np.full((4, 4), 2.0)
    losses[:, 3] = [1e9, 1e9, 1e9, 0.1]
    known = _with_strangers_known(losses, np.ones(4))
    assert known[:, 3].tolist() == [2.0, 2.0, 2.0, 0.1]
    assert (known[:, :3] == losses[:, :3]).all()


def test_three_who_say_that_all_models_are_useless_take_no_coteries():
    labels = [*(place % 3 for place in range(9)), 0, 0, 0]
    data = make_linear_learners(12, 3, n_rows=60, n_features=6, labels=labels, random_state=0)
    sites, liars = make_sites(data), data.learner_ids.tolist()[-3:]
    scores = []
    for lie in sites.scores:
        if lie.site in liars:
            others = {
                site: loss if site == lie.site else replace(loss, value=1e90)
                for site, loss in lie.losses.items()
            }
            lie = replace(lie, losses=others)
        scores.append(lie)
    labels = ask_all(replace(sites, scores=scores)).labels
    truth = dict(zip(data.learner_ids.tolist(), data.truth.tolist(), strict=True))
    honest = [site for site in truth if site not in liars]
    assert len({(truth[site], labels[site]) for site in honest}) == 3
    assert len({labels[site] for site in honest}) == 3
