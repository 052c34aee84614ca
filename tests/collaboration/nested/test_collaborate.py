import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor
from sklearn.model_selection import KFold

from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.candidates import candidates_per_learner
from coterie.collaboration.nested import Recipe, folds_of, nest_coteries, own_by_fold
from coterie.collaboration.nested.folds import block_folds
from coterie.datasets import make_stress
from coterie.engines import ThreadEngine
from coterie.rows.learners import gather_learners

FORMS = ["pooled", "average"]


def rows(level: float = 0.0, n_learners: int = 8, n: int = 20, noise: float = 0.3, seed: int = 0):
    """Rows of learners who follow x0 or -x0, in turn, at levels of their own."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.normal(size=(len(owner), 2))
    y = np.where(owner % 2, -X[:, 0], X[:, 0]) + level * rng.normal(size=n_learners)[owner]
    return {"X": X, "y": y + noise * rng.normal(size=len(owner)), "groups": owner}


def nested(data, *, form="pooled", n_clusters=2, candidates=("lr",), splitter=None, **options):
    candidates = list(candidates)
    selection = select_models(**data, candidates=candidates, splitter=splitter)
    exchange = cross_evaluate(selection, **data)
    refine = options.pop("refine", form)
    partition = cluster_learners(exchange, **data, selection=selection, n_clusters=n_clusters, refine=refine)
    settings = {"form": form, "refine": refine, "candidates": candidates, "splitter": splitter}
    return nest_coteries(selection, exchange, partition, **data, **settings, **options)


def mean_squares(found, data, candidates=("lr",)):
    """Return the mean squared errors with others and alone, by the same folds."""
    learners = gather_learners(**data, caller="test")
    selection = select_models(learners, candidates=list(candidates)).aligned_to(learners.ids)
    recipe = Recipe(2, "noise", "pooled", False, 0, ThreadEngine())
    sets = candidates_per_learner(list(candidates), learners.ids.tolist())
    own = own_by_fold(learners, selection, folds_of(learners, selection, 4, None, 0), sets, recipe)
    parts = found.residuals, own.judged(learners).residuals
    return tuple(float(np.mean(np.concatenate(part) ** 2)) for part in parts)


@pytest.mark.parametrize("form", FORMS)
def test_two_truths_are_learnt_together(form):
    found = nested(rows(), form=form)
    new = np.array([[2.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(found.predict(new, found.weight_rows[[0, 1]]), [2, -2], atol=0.3)
    with_coterie, own = mean_squares(found, rows())
    assert with_coterie < own
    assert with_coterie == pytest.approx(0.09, rel=0.25)


@pytest.mark.parametrize("form", FORMS)
def test_levels_of_ones_own_are_learnt(form):
    found = nested(rows(level=20.0, noise=0.1), form=form)
    assert np.mean(np.square(found.residuals)) < 0.05


@pytest.mark.parametrize("form", FORMS)
def test_residuals_are_honest_of_the_models(form):
    # Pure noise: whoever predicts below its variance has seen the rows.
    rng = np.random.default_rng(0)
    data = rows(n_learners=12, n=24) | {"y": rng.normal(size=288)}
    found = nested(data, form=form, n_clusters=3)
    assert np.mean(np.square(found.residuals)) > 0.97 * data["y"].var()


def test_predictions_and_shares_add_up():
    data = rows(level=1.0)
    found = nested(data)
    # What models do not weigh is in the lines.
    assert (found.weights >= 0).all()
    assert (found.weights.sum(axis=1) <= 1 + 1e-9).all()
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
    np.testing.assert_allclose(found.shares[:, 0], np.diag(found.weights[found.weight_rows]))
    assert found.shares.shape == (8, len(found.share_names))
    one_by_one = [
        found.predict(x[None], found.weight_rows[[j]])[0]
        for x, j in zip(data["X"], data["groups"], strict=True)
    ]
    np.testing.assert_allclose(found.predict(data["X"], found.weight_rows[data["groups"]]), one_by_one)


def test_an_average_of_nobody_else_is_the_learner_itself():
    data = rows(n=40)
    odd = data["groups"] == 7
    data["y"][odd] = 5 * data["X"][odd, 1]
    found = nested(data, form="average", n_clusters=3)
    np.testing.assert_allclose(found.shares.sum(axis=1), 1)
    np.testing.assert_allclose(found.shares[:, 0], np.diag(found.weights[found.weight_rows]))
    # It takes little from others, though its weight is spread over several resolutions.
    assert found.shares[7, 0] > 0.8
    assert found.shares[:7, 0].max() < 0.5


@pytest.mark.parametrize("form", FORMS)
def test_predictions_stay_in_sight_of_the_rows(form):
    data = rows()
    found = nested(data, form=form)
    far = np.array([[1e9, -1e9]] * 8)
    assert np.abs(found.predict(far, found.weight_rows)).max() < 3 * np.ptp(data["y"])


@pytest.mark.parametrize("form", FORMS)
def test_newcomers_predict_with_the_cluster_that_they_join(form):
    found = nested(rows(), form=form)
    new = np.array([[2.0, 0.0], [2.0, 0.0]])
    np.testing.assert_allclose(found.predict(new, found.newcomer_weight_rows), [2, -2], atol=0.3)


@pytest.mark.parametrize("form", FORMS)
def test_newcomers_have_levels_of_their_own(form):
    found = nested(rows(level=20.0, noise=0.1), form=form)
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 2))
    newcomers = gather_learners(X, 50 + X[:, 0], np.repeat([0, 1], 6), caller="test")
    larger, weight_rows = found.with_newcomers(newcomers, np.array([0, 0]))
    assert weight_rows.tolist() == [len(found.weights), len(found.weights) + 1]
    np.testing.assert_allclose(larger.predict(X, weight_rows[newcomers.owner]), newcomers.scalar_y, atol=1.0)
    # Who was there before predicts as before.
    new = rng.normal(size=(8, 2))
    np.testing.assert_array_equal(
        larger.predict(new, larger.weight_rows), found.predict(new, found.weight_rows)
    )


def test_where_everybody_stands_alone_a_newcomer_predicts_with_whom_it_joins():
    found = nested(rows(n_learners=4), n_clusters=4, refine=None)
    new = np.array([[2.0, 0.0]] * 4)
    prediction = found.predict(new, found.newcomer_weight_rows)
    assert sorted(np.sign(prediction)) == [-1, -1, 1, 1]


def test_with_all_there_is_one_model_for_everybody():
    data = rows()
    everybody = nested(data).with_all()
    assert everybody.method == "global"
    prediction = everybody.predict(data["X"], everybody.weight_rows[data["groups"]])
    # The two truths cancel.
    assert np.abs(prediction).max() < 1.0
    assert [len(part) for part in everybody.residuals] == [20] * 8


@pytest.mark.parametrize("form", FORMS)
def test_one_learner_predicts_as_it_would_alone(form):
    data = rows(n_learners=1)
    found = nested(data, form=form, n_clusters=1)
    assert found.share_names == ("alone",)
    far = np.array([[50.0, 0.0]])
    assert found.predict(far, found.weight_rows)[0] == found.models[0].predict(far)[0]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("n_learners", "n"), [(2, 4), (3, 5), (5, 4)])
def test_few_learners_of_few_rows(form, n_learners, n):
    data = rows(n_learners=n_learners, n=n)
    found = nested(data, form=form, n_clusters=1, candidates=["ridge"])
    assert np.isfinite(found.predict(data["X"], found.weight_rows[data["groups"]])).all()
    assert np.isfinite(np.concatenate(found.residuals)[:, 0]).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_response_that_does_not_vary(form):
    data = rows(n_learners=4) | {"y": np.repeat([3.0, 3.0, 3.0, 5.0], 20)}
    found = nested(data, form=form, n_clusters=2)
    prediction = found.predict(data["X"], found.weight_rows[data["groups"]])
    # Averages of others are as good as the own model, but for an offset that is shrunk a little.
    np.testing.assert_allclose(prediction, data["y"], atol=1e-3 if form == "average" else 1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_a_splitter_brings_its_own_folds(form):
    found = nested(rows(), form=form, splitter=KFold(3))
    assert np.isfinite(np.concatenate(found.residuals)[:, 0]).all()


@pytest.mark.parametrize("form", FORMS)
def test_neither_order_nor_threads_change_anything(form):
    data = rows()
    order = np.random.default_rng(0).permutation(len(data["y"]))
    # Rows of a learner keep their order, learners do not.
    order = order[np.argsort(data["groups"][order] * -1, kind="stable")]
    order = np.concatenate([np.sort(part) for part in np.split(order, 8)])
    shuffled = {name: part[order] for name, part in data.items()}
    plain, other = nested(data, form=form), nested(shuffled, form=form, n_jobs=2)
    new = np.random.default_rng(1).normal(size=(8, 2))
    mine = plain.predict(new, plain.weight_rows)
    theirs = other.predict(new[::-1], other.weight_rows)[::-1]
    np.testing.assert_array_equal(mine, theirs)


@settings(max_examples=5, deadline=None)
@given(st.floats(-100, 100), st.sampled_from([0.01, 1000.0]))
def test_the_unit_of_the_response_does_not_matter(shift, factor):
    data = rows(n_learners=4)
    plain = nested(data)
    other = nested(data | {"y": factor * data["y"] + shift})
    new = np.random.default_rng(1).normal(size=(4, 2))
    expected = factor * plain.predict(new, plain.weight_rows) + shift
    np.testing.assert_allclose(other.predict(new, other.weight_rows), expected, rtol=1e-3, atol=2e-2 * factor)


def test_what_was_fitted_is_told(caplog):
    with caplog.at_level(logging.INFO, logger="coterie.collaboration.nested.collaborate"):
        found = nested(rows(), candidates=["knn"], n_folds=2)
    assert found.n_fits > 0
    assert f"{found.n_fits} models of pooled rows and 16 of single learners" in caplog.text


def test_unknown_forms_are_refused():
    with pytest.raises(ValueError, match="'form' option must be one of 'pooled', 'average'"):
        nest_coteries(None, None, None, np.zeros((4, 1)), np.zeros(4), form="both")


def test_candidates_of_another_selection_are_asked_for_in_a_sentence():
    data = rows()
    selection = select_models(**data, candidates="lr")
    exchange = cross_evaluate(selection, **data)
    partition = cluster_learners(exchange, **data, selection=selection)
    with pytest.raises(ValueError, match="chose 'lr', which is not among the candidates 'ridge', 'rf': pass"):
        nest_coteries(selection, exchange, partition, **data)


def bent(n_learners: int = 10, n: int = 40, seed: int = 0):
    """Rows of learners whose curve is stretched by a number of their own: no two are alike."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(n_learners), n)
    X = rng.uniform(-2, 2, size=(len(owner), 2))
    stretch = np.linspace(-2, 2, n_learners)[owner]
    y = stretch * np.abs(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=len(owner))
    return {"X": X, "y": y, "groups": owner}


def test_models_that_are_told_serve_learners_of_whom_no_two_are_alike():
    data = bent()
    found = nested(data, candidates=("rf", "ridge"))
    use_context = found.mask.any(axis=1)
    assert use_context.any()
    assert found.mask.shape == (len(found.models), found.context.shape[1])
    assert len(found.context) == len(found.weights)
    # Much of what learners predict with, and nothing of what all learners share.
    assert found.weights[found.weight_rows][:, use_context].sum(axis=1).mean() > 0.3
    assert not found.weights[found.all_row, use_context].any()
    with_coterie, own = mean_squares(found, data, ("rf", "ridge"))
    assert with_coterie < 0.8 * own


def test_what_is_told_of_a_learner_moves_its_predictions():
    found = nested(bent(), candidates=("rf", "ridge"))
    x = np.array([[1.5, 0.0]] * 2)
    ends = found.predict(x, found.weight_rows[[0, 9]])
    assert ends[0] < -1.5
    assert ends[1] > 1.5
    # A newcomer is described, too, but has no id that a model could know.
    newcomers = gather_learners(**bent(2, seed=5), caller="test")
    joined, weight_rows = found.with_newcomers(newcomers, np.array([0, 1]))
    assert len(joined.context) == len(joined.weights)
    assert np.isnan(joined.context[weight_rows, -1]).all()
    assert np.isfinite(joined.context[weight_rows, :-1]).all()
    assert np.isfinite(joined.predict(newcomers.X, weight_rows[newcomers.owner])).all()


def test_models_that_nobody_takes_anything_from_are_not_kept():
    found = nested(bent(), candidates=("rf", "ridge"))
    used = found.weights.any(axis=0)
    assert used[len(found.learner_ids) :].all()
    assert len(found.models) == len(found.names) == len(found.bounds) == len(found.mask)


def as_they_come(n: int, seed: int):
    """Rows of learners at places of their own on one curve: levels follow from the predictors."""
    rng = np.random.default_rng(seed)
    owner = np.repeat(np.arange(16), n)
    X = rng.normal(size=(len(owner), 2))
    X[:, 0] = np.linspace(-3, 3, 16)[owner] + 1.5 * X[:, 0]
    return X, 3 * np.tanh(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=len(owner)), owner


def test_where_one_curve_explains_everybody_its_forest_is_not_left_out():
    (X, y, groups), (X_new, y_new, whose) = as_they_come(40, 0), as_they_come(200, 1)
    found = CoterieRegressor(n_bootstrap=0).fit(X, y, groups=groups).predict(X_new, groups=whose)
    forest = RandomForestRegressor(random_state=0).fit(X, y).predict(X_new)
    assert np.mean((y_new - found) ** 2) < np.mean((y_new - forest) ** 2)


def test_rows_in_time_order_are_held_out_in_blocks(monkeypatch):
    data = make_stress("AR(1) noise .8, one truth", 1000)
    mine = np.isin(data.groups, data.learner_ids[:6])
    made = []
    monkeypatch.setattr(
        "coterie.collaboration.nested.own.block_folds",
        lambda *how: made.append(block_folds(*how)) or made[-1],
    )
    found = nested({"X": data.X[mine], "y": data.y[mine], "groups": data.groups[mine]}, n_clusters=1)
    assert len(made[0]) == 4
    assert np.isfinite(np.concatenate(found.residuals)[:, 0]).all()
