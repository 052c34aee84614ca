"""The messages come to what a local fit comes to, and one bad site does not stop the others."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.federated import (
    MOST_ROUNDS,
    Answered,
    Conclusion,
    ProtocolError,
    Question,
    Settings,
    conclude,
    decode,
    encode,
    predict,
)

from .conftest import CANDIDATES, Sites, ask_all, labels_of, make_sites

# What messages and a local fit may differ by: linear models travel exactly, others to 1e-12 of predictions.
PRECISION = 1e-10


def local_fit(data, candidates=CANDIDATES, seed=0, **options):
    model = CoterieRegressor(candidates, refine="average", random_state=seed, **options)
    return model.fit(data.X, data.y, groups=data.groups)


def assert_equal(conclusion: Conclusion, model: CoterieRegressor, precision: float = PRECISION) -> None:
    assert conclusion.labels == labels_of(model)
    gains = model.gains_
    rows = [
        next(row for row in conclusion.gains if row.learner == site) for site in gains["learner"].tolist()
    ]
    for name in ("error_alone", "error_alone_se", "error_with", "error_with_se"):
        assert np.allclose([getattr(row, name) for row in rows], gains[name], rtol=precision)
    assert np.allclose([row.gain for row in rows], gains["gain"], atol=precision)
    assert np.allclose([row.gain_se for row in rows], gains["gain_se"], atol=precision)
    assert [row.verdict for row in rows] == gains["verdict"].tolist()
    assert [row.reason for row in rows] == gains["reason"].tolist()
    assert [row.model for row in rows] == gains["model"].tolist()
    assert [row.second_cluster for row in rows] == gains["second_cluster"].tolist()
    assert np.allclose([row.membership for row in rows], gains["membership"])
    curve = model.partition_.curves["held-out"]
    assert conclusion.curves["held-out"].chosen == curve.chosen
    assert np.allclose(np.array(conclusion.curves["held-out"].values), curve.values, rtol=precision)
    # Sites whose numbers are strange are named beside.
    assert conclusion.notes[: len(model.partition_.notes)] == model.partition_.notes
    assert conclusion.clear == model.partition_.clear


def test_linear_sites_come_to_the_local_fit(eight, conclusion):
    assert conclusion.n_clusters == 2
    assert_equal(conclusion, local_fit(eight), precision=1e-12)
    assert 1 <= conclusion.rounds <= MOST_ROUNDS


@pytest.mark.parametrize("seed", [1, 2])
def test_another_seed_and_other_truths_come_to_the_local_fit(seed):
    data = make_linear_learners(
        n_learners=12, n_truths=4, n_rows=30, n_features=4, noise_variance=4.0, random_state=seed
    )
    assert_equal(
        ask_all(make_sites(data, seed=seed), settings=Settings(seed=seed)), local_fit(data, seed=seed)
    )


def test_outlying_rows_are_bounded_as_in_the_local_fit(eight):
    y = eight.y.copy()
    y[::17] += 40.0
    data = SimpleNamespace(X=eight.X, y=y, groups=eight.groups)
    assert_equal(ask_all(make_sites(data)), local_fit(data))


def test_a_site_without_noise_and_one_that_is_constant_come_to_the_local_fit(eight):
    y = eight.y.copy()
    exact, constant = eight.groups == eight.groups[0], eight.groups == eight.groups[-1]
    y[exact] = eight.signal[exact]
    y[constant] = 7.0
    data = SimpleNamespace(X=eight.X, y=y, groups=eight.groups)
    model = local_fit(data)
    found = ask_all(make_sites(data))
    assert found.labels == labels_of(model)
    assert [row.verdict for row in found.gains] == [
        dict(zip(model.gains_["learner"], model.gains_["verdict"], strict=True))[row.learner]
        for row in found.gains
    ]


def test_forests_and_lines_come_to_the_local_fit():
    data = make_linear_learners(n_learners=4, n_truths=2, n_rows=40, n_features=2, random_state=0)
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge

    candidates = {"rf": RandomForestRegressor(5), "ridge": Ridge()}
    y = np.where(data.groups == data.groups[0], np.sign(data.X[:, 0]) * 5, data.y)
    mixed = SimpleNamespace(X=data.X, y=y, groups=data.groups)
    found = ask_all(make_sites(mixed, candidates))
    assert {row.model for row in found.gains} == {"rf", "ridge"}
    assert_equal(found, local_fit(mixed, candidates))


def test_a_given_number_and_another_rule_come_to_the_local_fit(eight, sites):
    for count in (3, "gap"):
        found = ask_all(sites, settings=Settings(n_clusters=count))
        assert found.labels == labels_of(local_fit(eight, n_clusters=count))
        assert found.rule == ("given" if count == 3 else "gap")


@pytest.mark.parametrize("moves", [1, 2])
def test_fewer_rounds_come_to_the_local_partition_with_as_many(moves):
    data = make_linear_learners(
        n_learners=12, n_truths=4, n_rows=30, n_features=4, noise_variance=4.0, random_state=1
    )
    found = ask_all(make_sites(data), settings=Settings(refine_rounds=moves))
    rows = {"X": data.X, "y": data.y, "groups": data.groups}
    selection = select_models(**rows, candidates=CANDIDATES)
    exchange = cross_evaluate(selection, **rows)
    local = cluster_learners(exchange, **rows, selection=selection, refine="average", refine_rounds=moves)
    assert found.labels == dict(zip(exchange.learner_ids.tolist(), local.labels, strict=True))
    assert found.rounds <= moves + 2


def test_every_site_predicts_as_in_the_local_fit(eight, sites, conclusion):
    model = local_fit(eight)
    # Far rows, too, so that what predictions are kept within counts.
    X, spread = 3 * np.random.default_rng(5).normal(size=(40, 3)), eight.y.std()
    for using in ("verdict", "others", "alone"):
        for site in model.learner_ids_.tolist():
            local = model.predict(X, groups=[site] * len(X), using=using)
            found = predict(X, site, sites.shares, conclusion, using=using)
            assert np.abs(found - local).max() < 1e-8 * spread


def test_forests_predict_as_in_the_local_fit():
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.linear_model import Ridge

    data = make_linear_learners(n_learners=6, n_truths=2, n_rows=40, n_features=2, random_state=0)
    candidates = {"rf": RandomForestRegressor(5), "ridge": Ridge()}
    sites, model = make_sites(data, candidates), local_fit(data, candidates)
    found = ask_all(sites)
    for site in data.learner_ids.tolist():
        local = model.predict(data.X, groups=[site] * len(data.X), using="others")
        travelled = predict(data.X, site, sites.shares, found, using="others")
        assert np.abs(travelled - local).max() < 1e-8 * data.y.std()


@pytest.mark.parametrize("last_words", [1, 2])
def test_a_site_that_falls_silent_is_left_out_and_the_others_go_on(eight, sites, last_words):
    gone = sites.shares[3].site

    def reply(question, rounds):
        replies = sites.replies(question)
        return [a for a in replies if a.site != gone or rounds < last_words]

    found = ask_all(sites, reply=reply)
    assert found.left_out == {gone: f"It did not answer in round {last_words}."}
    kept = eight.groups != gone
    rest = SimpleNamespace(X=eight.X[kept], y=eight.y[kept], groups=eight.groups[kept])
    assert_equal(found, local_fit(rest))


def test_a_site_that_never_scores_is_left_out(sites):
    silent = sites.scores[0].site
    found = ask_all(Sites(sites.sites, sites.shares, sites.scores[1:]))
    assert found.left_out == {silent: "It has not scored: run score there."}
    assert silent not in found.labels


def test_a_site_that_answers_nonsense_twice_or_for_another_is_left_out(sites):
    names = [message.site for message in sites.shares]

    def reply(question, rounds):
        replies = {a.site: a for a in sites.replies(question)}
        if rounds > 1:
            return list(replies.values())
        first, second, third = (replies[name] for name in names[:3])
        odd = replace(second, halves=tuple(((0.1, 0.1),) * len(h) for h in second.halves))
        impostor = replace(first, site=names[3])
        kept = [replies[name] for name in names[4:]]
        return [replace(first, halves=()), second, odd, third, impostor, replies[names[3]], *kept]

    found = ask_all(sites, reply=reply)
    assert set(found.left_out) == set(names[:2]) | {names[3]}
    assert "did not answer the whole question" in found.left_out[names[0]]
    assert "answered twice" in found.left_out[names[1]]
    assert "answered twice" in found.left_out[names[3]]
    assert set(found.labels) == set(names) - set(found.left_out)


def claim_failure(sites, reporters, victim):
    """Return the sites, of which some say that they cannot evaluate one model."""
    scores = list(sites.scores)
    for place in reporters:
        failed = {**scores[place].losses, victim: replace(scores[place].losses[victim], value=None)}
        scores[place] = replace(scores[place], losses=failed)
    return Sites(sites.sites, sites.shares, scores)


def test_a_failure_that_one_site_reports_is_one_vote(sites, conclusion):
    victim = sites.shares[2].site
    found = ask_all(claim_failure(sites, [5], victim))
    row = next(row for row in found.gains if row.learner == victim)
    assert list(found.labels.values()).count(row.cluster) > 1
    assert row.error_with is not None
    # Its averages were made with the model all the same.
    assert "averages lose more" in found.left_out[sites.shares[5].site]


def test_a_model_that_fails_at_most_sites_stands_apart(sites):
    victim = sites.shares[2].site
    found = ask_all(claim_failure(sites, [0, 3, 4, 5, 6], victim))
    row = next(row for row in found.gains if row.learner == victim)
    assert list(found.labels.values()).count(row.cluster) == 1
    assert row.error_with is None
    assert any(victim in note and "stands alone" in note for note in found.notes)


def test_one_site_is_a_coterie_of_its_own(eight):
    mine = eight.groups == eight.groups[0]
    data = SimpleNamespace(X=eight.X[mine], y=eight.y[mine], groups=eight.groups[mine])
    found = ask_all(make_sites(data))
    assert found.labels == {eight.groups[0]: 0}


def test_nobody_left_is_said():
    with pytest.raises(ProtocolError, match="no site left"):
        conclude([], [])


def test_a_question_can_be_asked_again_and_by_another(sites, conclusion):
    # Whoever holds the messages comes to the same question, however often it is asked.
    answered: list[Answered] = []
    outcome = conclude(sites.shares, sites.scores)
    while isinstance(outcome, Question):
        assert conclude(sites.shares[::-1], sites.scores[::-1], answered[::-1]) == outcome
        carried = decode(encode(outcome))
        replies = [decode(encode(reply)) for reply in sites.replies(carried)]
        answered.append(Answered(carried, {reply.site: reply for reply in replies}))
        outcome = conclude(sites.shares, sites.scores, answered)
    assert outcome == conclusion


def test_the_order_of_sites_changes_nothing(sites, conclusion):
    order = np.random.default_rng(0).permutation(8)
    mixed = Sites(sites.sites, [sites.shares[k] for k in order], [sites.scores[k] for k in order[::-1]])
    assert ask_all(mixed) == conclusion


def test_a_rule_may_choose_more_clusters_than_the_held_out_rule_looked_at():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(540, 2)), rng.normal(size=540)
    data = SimpleNamespace(X=X, y=y, groups=np.repeat([f"site {k}" for k in range(9)], 60))
    sites = make_sites(data)
    beyond = 0
    for rule in ("eigengap", "gap", "gap-jump", "penalty"):
        found = ask_all(sites, settings=Settings(n_clusters=rule))
        beyond += found.curves[rule].chosen > max(found.curves["held-out"].n_clusters)
    assert beyond


@pytest.mark.parametrize("n_sites", [2, 3, 5])
def test_few_sites_come_to_the_local_fit(n_sites):
    data = make_linear_learners(n_learners=n_sites, n_truths=2, n_rows=30, n_features=2, random_state=3)
    sites, model = make_sites(data), local_fit(data)
    found = ask_all(sites)
    assert found.labels == labels_of(model)
    assert np.allclose([row.gain for row in found.gains], model.gains_["gain"], atol=1e-10)
    for site in found.labels:
        local = model.predict(data.X, groups=[site] * len(data.X), using="others")
        travelled = predict(data.X, site, sites.shares, found, using="others")
        assert np.abs(travelled - local).max() < 1e-8 * data.y.std()


def test_a_column_that_does_not_vary_comes_to_the_local_fit(eight):
    X = eight.X.copy()
    X[:, 1] = 2.0
    data = SimpleNamespace(X=X, y=eight.y, groups=eight.groups)
    assert_equal(ask_all(make_sites(data)), local_fit(data))
