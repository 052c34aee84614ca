"""Who takes part, who is waited for, and who is left out and why."""

from __future__ import annotations

from dataclasses import replace

from coterie.federated.messages import PeerLoss
from coterie.federated.participants import find_participants


def attend(shares, scores, **options):
    found = find_participants(shares, scores, **options)
    everybody = {share.site for share in shares}
    assert set(found.shares) | set(found.left_out) | set(found.waiting) == everybody
    assert list(found.shares) == list(found.scores) == sorted(found.shares)
    return found


def changed(messages, place, **changes):
    return [replace(m, **changes) if k == place else m for k, m in enumerate(messages)]


def without(mapping, key):
    return {name: value for name, value in mapping.items() if name != key}


def test_everybody_takes_part(sites):
    found = attend(sites.shares, sites.scores)
    assert len(found.shares) == 8
    assert not found.left_out
    assert not found.waiting


def test_two_sites_with_one_name_are_left_out(sites):
    twin = replace(sites.shares[0], n_rows=41)
    found = attend([*sites.shares, twin], sites.scores)
    assert set(found.left_out) == {twin.site}
    assert "Two different shares" in found.left_out[twin.site]
    assert len(attend([*sites.shares, sites.shares[0]], sites.scores).shares) == 8


def test_other_columns_another_order_and_another_target_are_left_out(sites):
    shares = changed(sites.shares, 0, columns=("x0", "x1", "z"))
    shares = changed(shares, 1, columns=("x1", "x0", "x2"))
    shares = changed(shares, 2, target="z")
    shares = changed(shares, 3, columns=("x0", "x1"), spreads=(1.0, 1.0))
    found = attend(shares, sites.scores)
    reasons = [found.left_out[share.site] for share in shares[:4]]
    assert reasons == [
        "It lacks the column 'x2': give all sites the same columns.",
        "Its columns come in another order: give --features in the order of the others.",
        "It predicts 'z', not 'y'.",
        "It lacks the column 'x2': give all sites the same columns.",
    ]
    assert len(found.shares) == 4


def test_few_rows_are_left_out_as_in_a_local_fit(sites):
    # Three predictors: 2p + 5 = 11.
    small = changed(sites.shares, 0, n_rows=10)
    assert attend(small, sites.scores).left_out == {
        sites.shares[0].site: "It has 10 rows, and clustering needs 11."
    }
    few = [replace(share, n_rows=10) for share in sites.shares]
    assert not any("clustering needs" in why for why in attend(few, sites.scores).left_out.values())
    assert len(attend(sites.shares, sites.scores, min_rows=41).left_out) == 8


def test_who_contradicts_itself_is_left_out(sites):
    site = sites.shares[0].site
    lied = changed(sites.shares, 0, error=sites.shares[0].error / 2)
    assert "states the error" in attend(lied, sites.scores).left_out[site]
    halves = changed(sites.scores, 0, half_sizes=(20, 19))
    assert "shared 40 rows and scored on 39" in attend(sites.shares, halves).left_out[site]
    own = {**sites.scores[0].losses, site: PeerLoss(sites.scores[0].sha, None)}
    failed = changed(sites.scores, 0, losses=own)
    assert "its own model" in attend(sites.shares, failed).left_out[site]


def test_who_scores_twice_differently_is_left_out(sites):
    other = replace(sites.scores[0], noise=99.0)
    found = attend(sites.shares, [*sites.scores, other])
    assert found.left_out == {other.site: "It scored twice, and differently."}
    assert len(attend(sites.shares, [*sites.scores, sites.scores[0]]).shares) == 8


def test_who_fails_everybody_is_left_out_and_not_everybody(sites):
    site = sites.shares[0].site
    nothing = {s: PeerLoss(e.sha, e.value if s == site else None) for s, e in sites.scores[0].losses.items()}
    found = attend(sites.shares, changed(sites.scores, 0, losses=nothing))
    assert found.left_out == {site: "It could not evaluate 7 of 7 models, which others could."}
    assert len(found.shares) == 7


def test_who_has_not_scored_or_scored_an_older_model_is_waited_for(sites):
    site = sites.shares[0].site
    assert attend(sites.shares, sites.scores[1:]).waiting == {site: "It has not scored: run score there."}
    renewed = changed(sites.shares, 0, model=b"another")
    found = attend(renewed, sites.scores)
    assert site in found.waiting


def test_who_came_late_is_waited_for_and_not_the_others(sites):
    late = sites.shares[0].site
    scores = [
        replace(score, losses=without(score.losses, late)) if score.site != late else score
        for score in sites.scores
    ]
    found = attend(sites.shares, scores)
    assert found.waiting == {late: "7 sites have not scored its model: run score there again."}
    assert len(found.shares) == 7


def test_who_has_not_scored_again_is_waited_for(sites):
    lacking = sites.scores[0]
    other = sites.shares[1].site
    scores = changed(sites.scores, 0, losses=without(lacking.losses, other))
    found = attend(sites.shares, scores)
    assert found.waiting == {
        lacking.site: f"It has not scored the model of {other!r}: run score there again."
    }


def test_who_is_to_be_left_out_is(sites):
    site = sites.shares[0].site
    found = attend(sites.shares, sites.scores, leave_out={site: "It did not answer.", "nobody": "?"})
    assert found.left_out == {site: "It did not answer."}
