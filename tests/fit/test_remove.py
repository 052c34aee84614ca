"""Learners leave a fitted model."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from coterie import CoterieRegressor, load, save
from coterie.datasets import make_linear_learners
from coterie.fit.run import collaborate_all

TRUTHS = [[2.0, 0, 1], [-2.0, 1, 0]]
DATA = make_linear_learners(8, n_rows=30, coefficients=TRUTHS, random_state=0)
METHODS = ["pooled", "average", "local", "global"]


def fitted(**options: Any) -> CoterieRegressor:
    options = {"candidates": ["lr"], "n_clusters": 2, "n_bootstrap": 20, "collaboration": "pooled", **options}
    return CoterieRegressor(**options).fit(DATA.X, DATA.y, groups=DATA.groups)


def with_newcomers(**options: Any) -> tuple[CoterieRegressor, Any]:
    """Admit one of each truth with many rows, one with few, and a stranger."""
    model = fitted(**options)
    data = make_linear_learners(4, n_rows=[30, 30, 5, 30], coefficients=TRUTHS, random_state=9)
    groups = np.array([f"new {name[-1]}" for name in data.groups])
    y = np.where(groups == "new 3", 30 - 2 * data.y, data.y)
    model.admit(data.X, y, groups=groups)
    return model, (data.X, groups)


def staying(remaining: list[str]) -> np.ndarray:
    return ~np.isin(DATA.groups, remaining)


@pytest.mark.parametrize("standardize", [None, "learner"])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_left_is_what_a_fit_of_the_same_clusters_has(method: str, standardize: str | None) -> None:
    model = fitted(collaboration=method, standardize=standardize)
    labels = model.learner_labels_.copy()
    assert model.remove(["learner 02", "learner 05"]) is model
    kept = [0, 1, 3, 4, 6, 7]
    assert model.learner_ids_.tolist() == DATA.learner_ids[kept].tolist()
    assert model.learner_labels_.tolist() == labels[kept].tolist()
    fit = model.record_
    parts = fit.selection, fit.exchange, fit.partition, fit.learners
    again = collaborate_all(fit.options, fit.seed, *parts)
    for one, other in ((fit.collaboration, again.coterie), (fit.own, again.own)):
        for mine, theirs in zip(one.residuals, other.residuals, strict=True):
            assert_allclose(mine, theirs)
    rows = staying(["learner 02", "learner 05"])
    assert np.isfinite(model.predict(DATA.X[rows], groups=DATA.groups[rows])).all()
    with pytest.warns(UserWarning, match="Learner 'learner 02' was not seen in fit, and is predicted by"):
        assert np.isfinite(model.predict(DATA.X[:1], groups=["learner 02"])).all()


def test_clusters_that_lost_nobody_predict_as_before() -> None:
    model = fitted()
    other = np.isin(DATA.groups, DATA.learner_ids[model.learner_labels_ == 1])
    before = model.predict(DATA.X[other], groups=DATA.groups[other], using="others")
    model.remove("learner 00")
    after = model.predict(DATA.X[other], groups=DATA.groups[other], using="others")
    assert_array_equal(after, before)


def test_the_pooled_model_forgets_the_rows() -> None:
    model = fitted()
    model.remove("learner 00")
    mine = np.isin(DATA.groups, ["learner 02", "learner 04", "learner 06"])
    from sklearn.linear_model import LinearRegression

    expected = LinearRegression().fit(DATA.X[mine], DATA.y[mine]).predict(DATA.X[mine])
    assert_allclose(model.predict(DATA.X[mine], groups=DATA.groups[mine], using="others"), expected)


def test_records_follow() -> None:
    model = fitted()
    before = model.exchange_.losses
    model.remove(["learner 01"])
    kept = [0, 2, 3, 4, 5, 6, 7]
    assert_allclose(model.exchange_.losses, before[np.ix_(kept, kept)])
    for record in (model.selection_, model.exchange_, model.partition_, model.cluster_fit_, model.stability_):
        assert record.learner_ids.tolist() == model.learner_ids_.tolist()
    assert model.cluster_fit_.losses.shape == model.stability_.membership.shape == (7, 2)
    assert model.gains_["learner"].tolist() == model.learner_ids_.tolist()
    # The cluster of four is now the larger one and comes first.
    assert np.bincount(model.learner_labels_).tolist() == [4, 3]
    assert_allclose(model.gains_["membership"], 1.0)


def test_a_cluster_may_vanish() -> None:
    model = fitted()
    model.remove([f"learner 0{j}" for j in (1, 3, 5, 7)])
    assert model.n_clusters_ == 1
    assert model.learner_labels_.tolist() == [0] * 4
    assert model.cluster_fit_.nearest_other.tolist() == [-1] * 4
    assert_allclose(model.stability_.membership, np.ones((4, 1)))
    assert model.gains_["second_cluster"].tolist() == [-1] * 4


def test_one_left_alone_in_its_cluster_is_told_so() -> None:
    model = fitted()
    model.remove(["learner 03", "learner 05", "learner 07"])
    place = model.learner_ids_.tolist().index("learner 01")
    assert not model.cluster_fit_.fits[place].any()
    assert not model.gains_["fits"][place]
    assert model.gains_["verdict"][place] == "no clear difference"
    assert model.gains_["reason"][place].startswith("Nobody shares its cluster.")


@pytest.mark.parametrize("standardize", [None, "learner"])
@pytest.mark.parametrize("method", METHODS)
def test_newcomers_stay_when_others_leave(method: str, standardize: str | None) -> None:
    model, (X, groups) = with_newcomers(collaboration=method, standardize=standardize)
    labels = dict(zip(model.learner_ids_.tolist(), model.learner_labels_.tolist(), strict=True))
    alone = groups == "new 3"
    before = model.predict(X[alone], groups=groups[alone])
    model.remove(["learner 00", "learner 02", "new 1"])
    # The other cluster is the larger one now: the numbers are exchanged, the company is not.
    now = dict(zip(model.learner_ids_.tolist(), model.learner_labels_.tolist(), strict=True))
    assert now["new 0"] == now["learner 04"]
    assert now["new 2"] == now["learner 06"]
    if labels["new 3"] == -1:
        assert now["new 3"] == -1
        assert_allclose(model.predict(X[alone], groups=groups[alone]), before)
    assert "new 1" not in now
    rest = groups != "new 1"
    assert np.isfinite(model.predict(X[rest], groups=groups[rest])).all()
    assert sorted(model.admission_.learner_ids.tolist()) == ["new 0", "new 2", "new 3"]
    if standardize is None and method != "local":
        mine = groups == "new 0"
        assert_allclose(
            *(
                model.predict(X[mine], groups=who, using="others")
                for who in (groups[mine], ["learner 04"] * 30)
            )
        )


def test_a_newcomer_alone_may_leave() -> None:
    model, _ = with_newcomers()
    before = model.predict(DATA.X, groups=DATA.groups)
    model.remove([f"new {k}" for k in range(4)])
    assert model.admission_ is None
    assert model.learner_ids_.tolist() == DATA.learner_ids.tolist()
    assert_array_equal(model.predict(DATA.X, groups=DATA.groups), before)


def test_newcomers_are_not_left_without_those_who_made_their_cluster() -> None:
    model, _ = with_newcomers()
    before = model.learner_ids_.tolist()
    with pytest.raises(ValueError, match="Newcomer 'new 1' would be left in a cluster without"):
        model.remove(DATA.learner_ids[model.learner_labels_[:8] == 1])
    assert model.learner_ids_.tolist() == before
    # Whom no cluster fits needs none.
    model.remove([*DATA.learner_ids[model.learner_labels_[:8] == 1], "new 1"])
    assert model.admission_.nearest.tolist() == [0, 0, 0]
    assert model.n_clusters_ == 1


def test_a_model_that_lost_learners_is_saved_and_admits(tmp_path: Any) -> None:
    model, (X, groups) = with_newcomers(standardize="learner")
    model.remove(["learner 00", "new 0"])
    save(model, tmp_path / "m.coterie")
    again = load(tmp_path / "m.coterie")
    rest = groups != "new 0"
    assert_array_equal(
        model.predict(X[rest], groups=groups[rest]), again.predict(X[rest], groups=groups[rest])
    )
    y = X[~rest] @ TRUTHS[0] + np.random.default_rng(0).normal(size=30)
    assert again.admit(X[~rest], y, groups=groups[~rest])[0] >= 0


def test_who_is_not_there_cannot_leave() -> None:
    with pytest.raises(ValueError, match="Learner 'nobody' is not in the model"):
        fitted().remove("nobody")
    with pytest.raises(ValueError, match="must leave at least one learner"):
        fitted().remove(DATA.learner_ids)


def test_without_rows_nobody_of_the_fit_can_leave(tmp_path: Any) -> None:
    model, _ = with_newcomers()
    save(model, tmp_path / "m.coterie", rows=False)
    again = load(tmp_path / "m.coterie")
    again.remove("new 0")
    assert "new 0" not in again.learner_ids_.tolist()
    with pytest.raises(ValueError, match="saved without its rows, which remove needs"):
        again.remove("learner 00")
