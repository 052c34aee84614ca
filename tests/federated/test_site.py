"""What a site tells is its own, and follows from its rows alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from coterie import cross_evaluate, select_models
from coterie.datasets import make_stress
from coterie.federated import (
    ProtocolError,
    Question,
    answer,
    conclude,
    encode,
    make_site,
    predict,
    score,
    share,
    wire,
)
from coterie.federated.conclusions import Mixture
from coterie.federated.peers import evaluate_peers
from coterie.federated.site import pooled_variance


def predicted(model, X):
    return wire.predict_each([model], X).predictions[0]


def rows_of(eight, site):
    mine = eight.groups == site
    return eight.X[mine], eight.y[mine]


def test_a_share_is_what_select_finds_locally(eight, sites):
    selection = select_models(eight.X, eight.y, eight.groups, candidates=["ridge"])
    for place, site in enumerate(selection.learner_ids.tolist()):
        message = next(m for m in sites.shares if m.site == site)
        assert message.error == pytest.approx(selection.errors[place], rel=1e-12)
        assert message.n_rows == selection.n_rows[place]
        assert message.family == selection.names[place]
        w, _ = wire.unpack(message.model, 3).affine
        model = selection.models[place]
        assert np.allclose(model.predict(eight.X[:5]), predicted(wire.unpack(message.model, 3), eight.X[:5]))
        assert len(w) == 3


def test_scores_are_the_columns_of_the_local_exchange(eight, sites):
    selection = select_models(eight.X, eight.y, eight.groups, candidates=["ridge"])
    exchange = cross_evaluate(selection, eight.X, eight.y, eight.groups)
    ids = exchange.learner_ids.tolist()
    for j, site in enumerate(ids):
        message = next(m for m in sites.scores if m.site == site)
        found = [message.losses[other].value for other in ids]
        assert np.allclose(found, exchange.losses[:, j], rtol=1e-12)


def test_no_message_holds_a_row(eight, sites):
    # A value of the table would stand in the text with its sixteen digits.
    values = {repr(float(v)) for v in np.r_[eight.X.ravel(), eight.y]}
    question = conclude(sites.shares, sites.scores)
    assert isinstance(question, Question)
    for message in (*sites.shares, *sites.scores, *sites.replies(question)):
        text = encode(message).decode()
        assert not any(value in text for value in values)


def test_names_of_columns_come_from_the_table_or_are_given(eight):
    X, y = rows_of(eight, "learner 00")
    assert make_site(X, y, site="a", candidates=["lr"]).columns == ("x0", "x1", "x2")
    table = pd.DataFrame(X, columns=["age", "dose", "time"])
    assert make_site(table, y, site="a", candidates=["lr"]).columns == ("age", "dose", "time")
    with pytest.raises(ValueError, match="2 names do not fit 3 columns"):
        make_site(X, y, site="a", columns=("p", "q"))
    with pytest.raises(ProtocolError, match="1 to 100 printable"):
        make_site(X, y, site="")


def test_peers_that_cannot_be_used_have_no_loss_and_a_sentence(sites):
    site = next(iter(sites.sites.values()))
    shares = list(sites.shares)
    shares[1] = replace(shares[1], columns=("x0", "x2", "x1"))
    shares[2] = replace(shares[2], model=b"\x80\x04pickle")
    shares[3] = replace(shares[3], target="z")
    shares[4] = replace(shares[4], model=wire.pack_affine(np.full(3, 1e200), 0.0))
    found = score(site, shares)
    assert [found.losses[m.site].value is None for m in shares[:5]] == [False, True, True, True, True]
    troubles = evaluate_peers(site, shares).troubles
    assert "another order" in troubles[shares[1].site]
    assert "not 'y'" in troubles[shares[3].site]
    assert len(troubles) == 3


def test_a_site_scores_all_shares_with_its_own_among_them(sites):
    site = next(iter(sites.sites.values()))
    with pytest.raises(ProtocolError, match="lack that of"):
        score(site, sites.shares[1:])
    with pytest.raises(ProtocolError, match="Two shares"):
        score(site, [*sites.shares, sites.shares[0]])


def test_a_site_answers_only_what_concerns_it_and_what_it_has(sites):
    site = next(iter(sites.sites.values()))
    question = conclude(sites.shares, sites.scores)
    others = replace(question, members=question.members[1:], labellings=((0,) * 7,))
    with pytest.raises(ProtocolError, match="not about 'learner 00'"):
        answer(site, sites.shares, others)
    with pytest.raises(ProtocolError, match="a model of 'learner 03' that is not here"):
        answer(site, [m for m in sites.shares if m.site != "learner 03"], question)
    renewed = [replace(m, model=b"x") if m.site == "learner 03" else m for m in sites.shares]
    with pytest.raises(ProtocolError, match="that is not here"):
        answer(site, renewed, question)


def test_a_model_is_evaluated_once(eight, sites, monkeypatch):
    X, y = rows_of(eight, "learner 00")
    site = make_site(X, y, site="learner 00", candidates=["ridge"])
    calls = []
    real = wire.predict_each
    monkeypatch.setattr(
        wire, "predict_each", lambda models, *rest: calls.append(len(models)) or real(models, *rest)
    )
    score(site, sites.shares)
    answer(site, sites.shares, conclude(sites.shares, sites.scores))
    assert calls == [8, 0]


def test_the_variance_of_all_responses_is_pooled_from_moments(eight, sites):
    assert pooled_variance(sites.shares) == pytest.approx(eight.y.var())
    constant = [replace(m, response_mean=7.0, response_variance=0.0) for m in sites.shares]
    assert pooled_variance(constant) == 0.0


def test_a_site_predicts_by_its_mixture(eight, sites, conclusion):
    mixture = Mixture({"learner 00": 0.25, "learner 02": 0.75}, (0.5, 0.0, 0.0, 1.0), (0.8, 1.2))
    mixed = replace(conclusion, mixtures={**conclusion.mixtures, "learner 00": mixture})
    models = {m.site: wire.unpack(m.model, 3) for m in sites.shares}
    expected = 0.25 * predicted(models["learner 00"], eight.X) + 0.75 * predicted(
        models["learner 02"], eight.X
    )
    expected += np.clip(0.5 * eight.X[:, 0] + 1.0, 0.8, 1.2)
    assert np.allclose(predict(eight.X, "learner 00", sites.shares, mixed, using="others"), expected)
    with pytest.raises(ProtocolError, match="'learner 02', which 'learner 00' predicts with, is not here"):
        predict(eight.X, "learner 00", sites.shares[:1], mixed, using="others")


def test_models_are_kept_within_what_their_response_makes_plausible(eight, sites, conclusion):
    far, own = np.full((1, 3), 1e6), sites.shares[0]
    _, y = rows_of(eight, own.site)
    alone = predict(far, own.site, sites.shares, conclusion, using="alone")[0]
    # Alone, its own model is kept within the range of its rows.
    margin = 0.3 * (y.max() - y.min())
    assert min(abs(alone - y.max() - margin), abs(alone - y.min() + margin)) < 1e-9
    mixture = Mixture({own.site: 1.0}, (0.0,) * 4, (0.0, 0.0))
    mixed = replace(conclusion, mixtures={**conclusion.mixtures, own.site: mixture})
    reached = predict(far, own.site, sites.shares, mixed, using="others")[0]
    assert abs(reached - own.response_mean) == pytest.approx(7 * own.response_variance**0.5)


def test_shares_of_another_run_are_refused(eight, sites, conclusion):
    X, y = rows_of(eight, "learner 02")
    again = share(make_site(X[:30], y[:30], site="learner 02", candidates=["ridge"]))
    with pytest.raises(ProtocolError, match="two different shares of 'learner 02'"):
        predict(eight.X, "learner 00", [*sites.shares, again], conclusion)
    renewed = [again if m.site == "learner 02" else m for m in sites.shares]
    with pytest.raises(ProtocolError, match="'learner 02' is not the one that the conclusion is about"):
        predict(eight.X, "learner 00", renewed, conclusion)


def test_the_same_rows_seed_and_name_share_the_same(eight, sites):
    X, y = rows_of(eight, "learner 00")
    assert share(make_site(X, y, site="learner 00", candidates=["ridge"])) == sites.shares[0]


@pytest.mark.parametrize("strange", [{"target": "z"}, {"columns": ("x0", "x2", "x1")}])
@pytest.mark.parametrize("moments", [(1e49, 0.0), (0.0, 1e30)])
def test_a_stranger_does_not_decide_what_is_rounding(sites, strange, moments):
    site = next(iter(sites.sites.values()))
    mean, variance = moments
    evil = replace(sites.shares[1], site="evil", response_mean=mean, response_variance=variance)
    expected = score(site, sites.shares)
    found = score(site, [*sites.shares, replace(evil, **strange)])
    assert (found.noise, found.noise_variance) == (expected.noise, expected.noise_variance)
    # Nor does one of the same columns, whose response is larger by far than anybody's.
    found = score(site, [*sites.shares, evil])
    assert (found.noise, found.noise_variance) == (expected.noise, expected.noise_variance)


def test_a_response_whose_squares_leave_the_numbers_is_refused(sites):
    with pytest.raises(ProtocolError, match="is too large: give it in other units"):
        replace(sites.shares[0], response_mean=1e100)


def test_an_answer_rests_on_the_members_of_the_question_alone(sites):
    site = next(iter(sites.sites.values()))
    question = conclude(sites.shares, sites.scores)
    # Half of the sites lie together, so that they are typical; whoever leaves them out is rid of them.
    liars = [replace(m, site=f"liar {k}", response_variance=1e30) for k, m in enumerate(sites.shares)]
    assert answer(site, [*sites.shares, *liars], question) == answer(site, sites.shares, question)


def test_a_site_whose_rows_are_in_time_order_holds_out_blocks():
    data = make_stress("AR(1) noise .8, one truth", 1000)
    mine = data.groups == data.learner_ids[0]
    made = [
        make_site(data.X[mine], data.y[mine], site="a", candidates=["ridge"], order=order)
        for order in ("auto", None)
    ]
    found, independent = (site.selection for site in made)
    assert found.in_order
    assert found.folds[0].tolist() == [0] * 40 + [1] * 40
    assert not independent.in_order
    # What is told has the same form, and the same halves in number.
    sent = [score(site, [share(site)]) for site in made]
    assert sent[0].half_sizes == sent[1].half_sizes == (40, 40)
