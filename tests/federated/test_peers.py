"""A site evaluates everybody's models within one budget, however many names a stranger takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from coterie.federated import make_site, wire
from coterie.federated.peers import evaluate_peers


def test_models_that_appear_later_have_what_the_earlier_ones_left(eight, sites, monkeypatch):
    # Each share had a minute of its own, so ten names of one stranger cost ten minutes.
    mine = eight.groups == sites.shares[0].site
    site = make_site(
        eight.X[mine],
        eight.y[mine],
        site=sites.shares[0].site,
        columns=sites.shares[0].columns,
        candidates=["ridge"],
    )
    given = []

    def slow(models, X, allowance):
        given.append(allowance.seconds)
        return wire.Predictions(np.zeros((len(models), len(X))), {}, min(40.0, allowance.seconds))

    monkeypatch.setattr(wire, "predict_each", slow)
    first, second, third = (replace(share) for share in sites.shares[:3])
    evaluate_peers(site, [first])
    evaluate_peers(site, [first, second])
    evaluate_peers(site, [first, second, third])
    assert given == [60.0, 20.0, 0.0]
