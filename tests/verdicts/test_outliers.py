from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.dummy import DummyRegressor
from sklearn.exceptions import NotFittedError

from coterie import CoterieRegressor, collaborate, cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.method.cluster import search_clusters
from coterie.method.search import SearchOptions
from coterie.rows.learners import gather_learners
from coterie.verdicts import find_outliers, measure_cluster_fit, outliers_among
from coterie.verdicts.outliers import stand_out

N, ROWS = 20, 120
TRUTH = [[2.0, -1, 1, 0]]
DATA = make_linear_learners(N, n_rows=ROWS, coefficients=TRUTH, noise_variance=1.0, random_state=0)
DATA_ATTACKS = {
    "negated": lambda y, rng: -y,
    "permuted": lambda y, rng: rng.permutation(y),
    "shifted": lambda y, rng: y + 2 * DATA.y.std(),
    "scaled": lambda y, rng: 3 * y,
    "noise": lambda y, rng: rng.normal(y.mean(), y.std(), len(y)),
}


class Answers:
    def __init__(self, rule: Any) -> None:
        self.predict = rule


MODEL_ATTACKS = {
    "constant": lambda other: Answers(lambda X: np.full(len(X), DATA.y.mean())),
    "NaN": lambda other: Answers(lambda X: np.full(len(X), np.nan)),
    "huge": lambda other: Answers(lambda X: 1e6 * (1 + other.predict(X))),
    "copied and shifted": lambda other: Answers(lambda X: other.predict(X) + 2 * DATA.y.std()),
}


def attacked_data(attack: str, count: int) -> tuple[CoterieRegressor, np.ndarray]:
    rng = np.random.default_rng(1)
    bad = np.isin(np.arange(N), rng.permutation(N)[:count])
    y = DATA.y.copy()
    for j in np.flatnonzero(bad):
        mine = slice(j * ROWS, (j + 1) * ROWS)
        y[mine] = DATA_ATTACKS[attack](y[mine], rng)
    model = CoterieRegressor(["lr"], n_bootstrap=0).fit(DATA.X, y, groups=DATA.groups)
    return model, bad


@pytest.mark.parametrize("count", [2, 6, 9])
@pytest.mark.parametrize("attack", DATA_ATTACKS)
def test_learners_with_changed_responses_are_found(attack: str, count: int) -> None:
    model, bad = attacked_data(attack, count)
    outliers = find_outliers(model, trusted="largest")
    assert outliers.data.tolist() == bad.tolist()
    assert not outliers.model.any()
    honest = DATA.learner_ids[~bad][:1]
    named = find_outliers(model, trusted=honest)
    assert named.data.tolist() == bad.tolist()
    assert set(named.suspects.tolist()) == set(DATA.learner_ids[bad].tolist())


@pytest.mark.parametrize("attack", ["permuted", "noise"])
def test_responses_without_relation_are_suspect_though_nobody_is_trusted(attack: str) -> None:
    model, bad = attacked_data(attack, 6)
    assert find_outliers(model).data.tolist() == bad.tolist()


@pytest.mark.parametrize("attack", ["negated", "shifted", "scaled"])
def test_one_of_another_law_is_suspect_though_nobody_is_trusted(attack: str) -> None:
    model, bad = attacked_data(attack, 1)
    outliers = find_outliers(model)
    assert outliers.data.tolist() == bad.tolist()
    assert outliers.data_scores.argmax() == np.flatnonzero(bad)[0]
    place = np.flatnonzero(bad)[0]
    assert model.gains_["fits"].tolist() == (~bad).tolist()
    assert model.gains_["reason"][place].endswith("No cluster of others describes its data.")


def test_several_of_another_law_are_a_coterie_like_any_other() -> None:
    model, bad = attacked_data("negated", 6)
    assert len(find_outliers(model).suspects) == 0
    assert model.n_clusters_ == 2
    assert find_outliers(model, trusted=DATA.learner_ids[bad][:1]).data.tolist() == (~bad).tolist()


def attacked_models(attack: str, count: int, refine: str) -> tuple[Any, np.ndarray]:
    rng = np.random.default_rng(1)
    bad = np.isin(np.arange(N), rng.permutation(N)[:count])
    learners = gather_learners(DATA.X, DATA.y, DATA.groups, caller="test")
    selection = select_models(learners, candidates=["lr"])
    models = list(selection.models)
    for j in np.flatnonzero(bad):
        models[j] = MODEL_ATTACKS[attack](selection.models[rng.choice(np.flatnonzero(~bad))])
    selection = replace(selection, models=tuple(models))
    exchange = cross_evaluate(selection, learners)
    clustering = search_clusters(exchange, learners, selection, SearchOptions(refine=refine))
    coterie = collaborate(selection, clustering.partition, learners, candidates=["lr"])
    cluster_fit = measure_cluster_fit(clustering, selection, coterie)
    return outliers_among(exchange, clustering.partition, cluster_fit), bad


@pytest.mark.filterwarnings("ignore:The model of learner")
@pytest.mark.parametrize("refine", ["pooled", "average"])
@pytest.mark.parametrize("count", [2, 9])
@pytest.mark.parametrize("attack", MODEL_ATTACKS)
def test_bad_models_are_told_from_bad_data(attack: str, count: int, refine: str) -> None:
    outliers, bad = attacked_models(attack, count, refine)
    assert outliers.model.tolist() == bad.tolist()
    assert not outliers.data.any()


def test_a_learner_with_poor_candidates_only_has_a_bad_model_and_still_collaborates() -> None:
    candidates: dict[str, Any] = {learner: ["lr"] for learner in DATA.learner_ids}
    candidates["learner 04"] = {"mean": DummyRegressor()}
    model = CoterieRegressor(candidates, n_bootstrap=0).fit(DATA.X, DATA.y, groups=DATA.groups)
    assert find_outliers(model).suspects.tolist() == ["learner 04"]
    assert find_outliers(model).model[4]
    assert model.gains_["reason"][4].endswith("Its own model predicts nobody else well.")
    assert model.gains_["verdict"][4] == "collaborate"


@pytest.mark.parametrize("n_truths", [1, 3])
def test_nobody_is_suspect_where_nobody_was_attacked(n_truths: int) -> None:
    data = make_linear_learners(15, n_truths=n_truths, n_rows=40, random_state=3)
    model = CoterieRegressor(["lr"], n_bootstrap=0).fit(data.X, data.y, groups=data.groups)
    outliers = find_outliers(model)
    assert outliers.suspects.tolist() == []
    assert outliers.trusted_clusters.tolist() == []
    assert list(outliers.frame()) == ["learner", "data", "model", "data_score", "model_score"]


def test_the_only_learner_is_not_suspect() -> None:
    model = CoterieRegressor(["ridge"]).fit(DATA.X[:60], DATA.y[:60], groups=[0] * 60)
    assert not len(find_outliers(model).suspects)


def test_where_nobody_has_a_relation_to_show_nobody_is_suspect() -> None:
    y = np.random.default_rng(0).normal(size=len(DATA.y))
    model = CoterieRegressor(["lr"], n_bootstrap=0).fit(DATA.X, y, groups=DATA.groups)
    assert len(find_outliers(model).suspects) == 0


@pytest.mark.parametrize("trusted", [["nobody"], "nobody", []])
def test_the_trusted_must_be_known(trusted: Any) -> None:
    model = CoterieRegressor(["lr"], n_clusters=1, n_bootstrap=0).fit(DATA.X, DATA.y, groups=DATA.groups)
    with pytest.raises(ValueError, match="'trusted' argument must be None, 'largest' or ids of learners"):
        find_outliers(model, trusted=trusted)


def test_scores_stand_out_against_the_lower_half() -> None:
    honest = np.exp(np.random.default_rng(0).normal(0, 0.05, 26))
    assert not stand_out(honest).any()
    scores = np.r_[honest, np.full(24, 3.0), np.inf, np.nan]
    assert stand_out(scores).tolist() == [False] * 26 + [True] * 25 + [False]
    assert stand_out(np.array([np.nan, np.inf])).tolist() == [False, True]


def test_a_model_without_a_fit_is_refused() -> None:
    with pytest.raises(NotFittedError):
        find_outliers(CoterieRegressor())
