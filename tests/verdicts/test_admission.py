from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression

from coterie import CoterieRegressor, select_models
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine
from coterie.rows.learners import gather_learners
from coterie.verdicts import admission, place_newcomers

TRUTHS = np.array([[2.0, 0, 1], [-2, 1, 0]])
DATA = make_linear_learners(6, n_rows=30, coefficients=TRUTHS, random_state=0)
NOISE = float(DATA.noise_variance[0])


def newcomers(n_rows: Any, n: int = 4, seed: int = 9) -> Any:
    """Draw learners of both truths in turn, with names of their own."""
    data = make_linear_learners(n, n_rows=n_rows, coefficients=TRUTHS, random_state=seed)
    groups = np.array([f"new {name}" for name in data.groups])
    return data.X, data.y, groups


def fitted(**options: Any) -> CoterieRegressor:
    options = {"candidates": ["lr"], "n_clusters": 2, **options}
    return CoterieRegressor(**options).fit(DATA.X, DATA.y, groups=DATA.groups)


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local", "global"])
@pytest.mark.parametrize("n_rows", [30, 5])
def test_newcomers_of_each_truth_land_in_the_right_cluster_and_predict(
    collaboration: str, n_rows: int
) -> None:
    model = fitted(collaboration=collaboration)
    X, y, groups = newcomers(n_rows)
    labels = model.admit(X, y, groups=groups)
    assert labels.tolist() == [0, 1, 0, 1]
    assert model.learner_ids_.tolist()[6:] == [
        "new learner 00",
        "new learner 01",
        "new learner 02",
        "new learner 03",
    ]
    assert model.learner_labels_.tolist() == [0, 1, 0, 1, 0, 1, 0, 1, 0, 1]
    error = np.mean((y - model.predict(X, groups=groups)) ** 2)
    if collaboration == "global":
        assert np.isfinite(error)
    else:
        assert error < 3 * NOISE


@pytest.mark.parametrize("n_rows", [1, 2, 3, 4, 8, 12])
def test_newcomers_of_any_size_are_placed(n_rows: int) -> None:
    model = fitted()
    X, y, groups = newcomers(n_rows, n=6)
    labels = model.admit(X, y, groups=groups)
    assert np.mean(labels == [0, 1, 0, 1, 0, 1]) >= (0.5 if n_rows == 1 else 1.0)
    assert np.isfinite(model.predict(X, groups=groups)).all()


def test_a_newcomer_predicts_as_its_coterie_does() -> None:
    model = fitted(collaboration="pooled")
    X, y, groups = newcomers(5)
    model.admit(X, y, groups=groups)
    mine = groups == "new learner 01"
    assert np.array_equal(
        model.predict(X[mine], groups=groups[mine]),
        model.predict(X[mine], groups=np.repeat("learner 01", mine.sum())),
    )


def test_known_learners_predict_as_before() -> None:
    model = fitted()
    before = model.predict(DATA.X, groups=DATA.groups)
    model.admit(*newcomers(20)[:2], groups=newcomers(20)[2])
    assert np.array_equal(model.predict(DATA.X, groups=DATA.groups), before)
    assert model.selection_.learner_ids.tolist() == DATA.learner_ids.tolist()
    assert model.partition_.labels.tolist() == DATA.truth.tolist()


def test_newcomers_are_placed_one_by_one_as_together() -> None:
    at_once, apart = fitted(), fitted()
    X, y, groups = newcomers([30, 5, 5, 30])
    labels = at_once.admit(X, y, groups=groups)
    assert labels.tolist() == [0, 1, 0, 1]
    for name in dict.fromkeys(groups):
        mine = groups == name
        apart.admit(X[mine], y[mine], groups=groups[mine])
    assert np.array_equal(at_once.learner_ids_, apart.learner_ids_)
    assert np.array_equal(at_once.learner_labels_, apart.learner_labels_)
    for name in at_once.gains_:
        assert np.array_equal(
            at_once.gains_[name], apart.gains_[name], equal_nan=at_once.gains_[name].dtype.kind == "f"
        )


def test_labels_come_in_order_of_first_appearance() -> None:
    X, y, groups = newcomers([30, 5, 5, 30])
    turned = np.argsort(groups, kind="stable")[::-1]
    model = fitted()
    labels = model.admit(X[turned], y[turned], groups=groups[turned])
    assert labels.tolist() == [1, 0, 1, 0]
    assert model.learner_ids_[6:].tolist() == [f"new learner 0{k}" for k in (3, 2, 1, 0)]


def test_gains_of_newcomers_are_added() -> None:
    model = fitted(collaboration="pooled")
    X, y, groups = newcomers([30, 5, 5, 30])
    model.admit(X, y, groups=groups)
    gains = model.gains_
    assert gains["learner"].tolist() == model.learner_ids_.tolist()
    assert gains["n_rows"].tolist() == [30] * 6 + [30, 5, 5, 30]
    assert gains["model"].tolist() == ["lr"] * 7 + ["", "", "lr"]
    assert np.isnan(gains["error_alone"]).tolist() == [False] * 7 + [True, True, False]
    assert np.isfinite(gains["error_with"]).all()
    residuals = y - model.predict(X, groups=groups)
    mine = groups == "new learner 01"
    assert gains["error_with"][7] == pytest.approx(np.mean(residuals[mine] ** 2))


@pytest.mark.parametrize("known", ["learner 03", "new learner 00"])
def test_a_known_learner_is_refused(known: str) -> None:
    model = fitted()
    X, y, groups = newcomers(10)
    model.admit(X, y, groups=groups)
    with pytest.raises(ValueError, match=f"Learner '{known}' is known already: admit takes new ids"):
        model.admit(X[:10], y[:10], groups=[known] * 10)
    assert len(model.learner_ids_) == 10


def test_newcomers_need_ids() -> None:
    X, y, _ = newcomers(10)
    with pytest.raises(ValueError, match="admit needs an id for every row: pass groups"):
        fitted().admit(X, y)


def test_newcomers_of_other_columns_are_refused() -> None:
    X, y, groups = newcomers(10)
    with pytest.raises(ValueError, match="X has 2 features, but CoterieRegressor is expecting 3"):
        fitted().admit(X[:, :2], y, groups=groups)


def test_newcomers_may_name_the_column_of_ids() -> None:
    X, y, groups = newcomers(10)
    table = pd.DataFrame(DATA.X, columns=list("abc")).assign(site=DATA.groups)
    more = pd.DataFrame(X, columns=list("abc")).assign(site=groups)
    model = CoterieRegressor(["lr"], n_clusters=2, group_column="site").fit(table, DATA.y)
    assert model.admit(more, y).tolist() == [0, 1, 0, 1]
    assert np.isfinite(model.predict(more)).all()


@pytest.mark.filterwarnings("ignore::coterie.OutsideFitWarning")
def test_newcomers_are_standardised_by_their_own_rows() -> None:
    model = fitted(standardize="learner")
    X, y, groups = newcomers(20)
    labels = model.admit(X * 7 + 3, y * 100 - 5, groups=groups)
    assert labels.tolist() == [0, 1, 0, 1]
    error = np.mean((y * 100 - 5 - model.predict(X * 7 + 3, groups=groups)) ** 2)
    assert error < 3 * NOISE * 100**2


def test_a_newcomer_may_choose_among_everybody_s_candidates() -> None:
    mapping: dict[str, Any] = {i: ["lr"] if k % 2 else ["ridge"] for k, i in enumerate(DATA.learner_ids)}
    model = fitted(candidates=mapping)
    X, y, groups = newcomers(30)
    model.admit(X, y, groups=groups)
    assert set(model.gains_["model"][6:]) <= {"lr", "ridge"}


def test_newcomers_may_have_ids_of_another_type() -> None:
    numbers = np.repeat(np.arange(6), 30)
    model = CoterieRegressor(["lr"], n_clusters=2).fit(DATA.X, DATA.y, groups=numbers)
    X, y, groups = newcomers(30)
    assert model.admit(X, y, groups=groups).tolist() == [0, 1, 0, 1]
    assert model.learner_ids_.tolist()[:2] == [0, 1]
    assert model.learner_ids_.tolist()[-1] == "new learner 03"
    assert np.isfinite(model.predict(DATA.X, groups=numbers)).all()
    with pytest.raises(ValueError, match="Learner 0 is known already"):
        model.admit(X[:30], y[:30], groups=[0] * 30)


@pytest.mark.parametrize("small_learners", ["admit", "drop", "raise"])
@pytest.mark.parametrize("n_small", [1, 2, 3, 5])
def test_small_learners_are_admitted_dropped_or_refused(small_learners: str, n_small: int) -> None:
    X, y, groups = newcomers(n_small, n=2)
    # A small learner comes first, another last.
    X = np.vstack([X[:n_small], DATA.X, X[n_small:]])
    y = np.r_[y[:n_small], DATA.y, y[n_small:]]
    groups = np.r_[groups[:n_small], DATA.groups, groups[n_small:]]
    model = CoterieRegressor(["lr"], n_clusters=2, small_learners=small_learners)
    if small_learners == "raise":
        with pytest.raises(ValueError, match=f"'new learner 00', 'new learner 01'.* 11 .* = {n_small}"):
            model.fit(X, y, groups=groups)
        return
    model.fit(X, y, groups=groups)
    assert model.min_rows_ == 11
    assert model.selection_.learner_ids.tolist() == DATA.learner_ids.tolist()
    if small_learners == "admit":
        assert model.learner_ids_.tolist() == ["new learner 00", *DATA.learner_ids, "new learner 01"]
        assert model.learner_labels_.tolist()[1:-1] == DATA.truth.tolist()
        assert model.gains_["n_rows"].tolist() == [n_small, *[30] * 6, n_small]
        assert np.isfinite(model.predict(X, groups=groups)).all()
    else:
        assert model.learner_ids_.tolist() == DATA.learner_ids.tolist()
        assert np.isfinite(model.predict(DATA.X, groups=DATA.groups)).all()
        with pytest.warns(UserWarning, match="Learner 'new learner 00' was not seen in fit"):
            model.predict(X[:1], groups=groups[:1])


def test_small_learners_do_not_shape_the_clusters() -> None:
    X, y, groups = newcomers(5)
    both = CoterieRegressor(["lr"], n_clusters=2).fit(
        np.vstack([DATA.X, X]), np.r_[DATA.y, y], groups=np.r_[DATA.groups, groups]
    )
    without = fitted()
    assert np.array_equal(both.partition_.similarity, without.partition_.similarity)
    assert both.learner_labels_.tolist() == [*without.learner_labels_, *[0, 1] * 2]


@pytest.mark.parametrize("collaboration", ["auto", "pooled", "average", "local", "global"])
def test_rows_of_small_learners_are_pooled_by_nested_coteries_only(collaboration: str) -> None:
    X, y, groups = newcomers(5)
    model = CoterieRegressor(["lr"], n_clusters=2, collaboration=collaboration)
    both = model.fit(np.vstack([DATA.X, X]), np.r_[DATA.y, y], groups=np.r_[DATA.groups, groups])
    alike = np.array_equal(
        both.predict(DATA.X, groups=DATA.groups),
        fitted(collaboration=collaboration).predict(DATA.X, groups=DATA.groups),
    )
    assert alike == (collaboration != "auto")


def test_the_rows_that_a_learner_needs_may_be_set() -> None:
    with pytest.raises(ValueError, match="31"):
        fitted(min_rows=31)
    assert fitted(min_rows=30).min_rows_ == 30
    with pytest.raises(ValueError, match=r"'min_rows' option must be an integer of at least 4. Got 3"):
        fitted(min_rows=3)


def test_where_most_learners_are_small_all_of_four_rows_take_part() -> None:
    data = make_linear_learners(6, n_rows=[4, 5, 6, 7, 30, 30], coefficients=TRUTHS, random_state=0)
    model = CoterieRegressor(["ridge"], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    assert model.min_rows_ == 4
    assert len(model.selection_.learner_ids) == 6


def test_the_cluster_has_the_largest_sum_of_similarities() -> None:
    model = fitted()
    X, y, groups = newcomers(30, n=2)
    learners = gather_learners(DATA.X, DATA.y, DATA.groups, caller="test")
    strangers = gather_learners(X, y, groups, caller="test")
    own = select_models(strangers, candidates=["lr"])
    selection, partition = model.selection_, model.partition_
    admission = place_newcomers(strangers, own, learners, selection, partition, ThreadEngine())
    for m in range(2):
        span = strangers.span(m)
        sums = np.zeros(2)
        for j in range(6):
            home = learners.span(j)
            there = np.mean((strangers.scalar_y[span] - selection.models[j].predict(strangers.X[span])) ** 2)
            back = np.mean((learners.scalar_y[home] - own.models[m].predict(learners.X[home])) ** 2)
            v = abs(there - own.errors[m]) + abs(back - selection.errors[j])
            sums[partition.labels[j]] += np.exp(-partition.scale * v)
        assert_allclose(np.exp(admission.similarities[m]), sums)
        assert admission.labels[m] == sums.argmax()


def test_a_newcomer_without_a_model_is_judged_by_the_members_models() -> None:
    model = fitted()
    X, y, groups = newcomers(3, n=2)
    learners = gather_learners(DATA.X, DATA.y, DATA.groups, caller="test")
    strangers = gather_learners(X, y, groups, caller="test")
    admission = place_newcomers(strangers, None, learners, model.selection_, model.partition_, ThreadEngine())
    assert admission.labels.tolist() == [0, 1]
    losses = np.array([np.mean((y[:3] - m.predict(X[:3])) ** 2) for m in model.selection_.models])
    weights = np.exp(-2 * model.partition_.scale * (losses - losses.min()))
    sums = [weights[model.partition_.labels == k].sum() for k in (0, 1)]
    assert_allclose(np.exp(admission.similarities[0]), sums, rtol=1e-6, atol=1e-300)


class Shy(RegressorMixin, BaseEstimator):
    """A line that will not be drawn beyond what it has seen."""

    def fit(self, X: Any, y: Any) -> Any:
        self.line_ = LinearRegression().fit(X, y)
        self.highest_ = np.abs(X).max() * 3
        return self

    def predict(self, X: Any) -> Any:
        return np.where((np.abs(X) > self.highest_).any(axis=1), np.nan, self.line_.predict(X))


@pytest.mark.filterwarnings("ignore::coterie.OutsideFitWarning")
def test_a_newcomer_whom_some_models_cannot_predict_is_placed_by_the_others() -> None:
    candidates = {i: {"lr": LinearRegression()} for i in DATA.learner_ids}
    candidates["learner 00"] = {"shy": clone(Shy())}
    model = fitted(candidates=candidates)
    X, y, groups = newcomers(3, n=2)
    X = X * 100
    y = np.r_[X[:3] @ TRUTHS[0], X[3:] @ TRUTHS[1]]
    assert model.admit(X, y, groups=groups).tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore::coterie.OutsideFitWarning")
def test_far_newcomers_are_placed_though_every_similarity_underflows() -> None:
    model = fitted()
    X, y, groups = newcomers(30, n=2)
    labels = model.admit(X * 1e3, y * 1e3 + 1, groups=groups)
    assert labels.tolist() == [0, 1]


def stranger(n_rows: int, seed: int = 5) -> Any:
    """Draw one learner of a truth that nobody shares."""
    data = make_linear_learners(1, n_rows=n_rows, coefficients=[[0.0, -3, 4]], random_state=seed)
    return data.X, data.y, np.full(n_rows, "stranger")


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local", "global"])
@pytest.mark.parametrize("standardize", [None, "learner"])
def test_a_stranger_belongs_to_none_of_these_and_predicts_alone(
    collaboration: str, standardize: str | None
) -> None:
    model = fitted(collaboration=collaboration, standardize=standardize)
    X, y, groups = stranger(30)
    assert model.admit(X, y, groups=groups).tolist() == [-1]
    assert model.learner_labels_.tolist() == [0, 1, 0, 1, 0, 1, -1]
    assert_allclose(model.predict(X, groups=groups), LinearRegression().fit(X, y).predict(X))
    gains = {name: column[-1] for name, column in model.gains_.items()}
    assert gains["cluster"] == -1
    assert (gains["verdict"], gains["fits"]) == ("stay alone", False)
    assert gains["reason"] == "No cluster of others describes its data. It predicts with its own model."
    assert gains["error_with"] > 3 * gains["error_alone"]
    assert np.isnan(gains["membership"])
    assert gains["second_cluster"] == model.admission_.nearest[0]
    # Beside others it predicts as before.
    both = np.vstack([DATA.X[:30], X])
    known = model.predict(both, groups=[*["learner 00"] * 30, *groups])
    assert_allclose(known[30:], model.predict(X, groups=groups))
    assert_allclose(known[:30], model.predict(DATA.X[:30], groups=DATA.groups[:30]))


def test_a_stranger_of_few_rows_is_placed_but_not_surely() -> None:
    model = fitted()
    X, y, groups = stranger(5)
    assert model.admit(X, y, groups=groups)[0] >= 0
    assert model.admission_.sure.tolist() == [False]
    assert model.gains_["reason"][-1].startswith("It has no model of its own to compare with")
    assert model.gains_["verdict"][-1] == "too few rows"


def test_admission_says_how_sure_it_is() -> None:
    model = fitted()
    assert model.admission_ is None
    X, y, groups = newcomers([30, 5, 5, 30])
    model.admit(X, y, groups=groups)
    admission = model.admission_
    place = {learner: p for p, learner in enumerate(admission.learner_ids.tolist())}
    order = [place[f"new learner 0{k}"] for k in range(4)]
    assert admission.labels[order].tolist() == admission.nearest[order].tolist() == [0, 1, 0, 1]
    assert_allclose(admission.probabilities.sum(axis=1), 1)
    assert admission.probabilities[order, [0, 1, 0, 1]].min() > 0.9
    assert admission.sure[order].tolist() == [True, False, False, True]
    assert_allclose(model.gains_["membership"][6:], admission.probabilities[order, [0, 1, 0, 1]])
    assert model.gains_["second_cluster"][6:].tolist() == [1, 0, 1, 0]


def test_one_between_two_clusters_is_unsure() -> None:
    data = make_linear_learners(1, n_rows=60, coefficients=[TRUTHS.mean(axis=0)], random_state=1)
    model = fitted()
    admission_for = {}
    for noise in (0.0, 20.0):
        y = data.y + noise * np.random.default_rng(0).normal(size=60)
        model.admit(data.X, y, groups=[f"noise {noise}"] * 60)
        admission_for[noise] = model.admission_.take(np.array([len(model.admission_.labels) - 1]))
    # Half way between two truths it is neither; under enough noise it may be either.
    assert admission_for[0.0].labels.tolist() == [-1]
    assert admission_for[20.0].labels[0] >= 0
    assert not admission_for[20.0].sure[0]


def test_without_a_bootstrap_nothing_is_known_of_sureness() -> None:
    model = fitted(n_bootstrap=0)
    X, y, groups = newcomers(30)
    assert model.admit(X, y, groups=groups).tolist() == [0, 1, 0, 1]
    assert np.isnan(model.admission_.probabilities).all()
    assert not model.admission_.sure.any()


def turned_away(n_members: int, member_rows: int, n_rows: int, n_newcomers: int, seed: int) -> float:
    """Return the share of newcomers of the clusters' truths whom no cluster is said to fit."""
    data = make_linear_learners(n_members, n_rows=member_rows, coefficients=TRUTHS, random_state=seed)
    options = {"n_clusters": 2, "min_rows": 4, "n_bootstrap": 0}
    model = CoterieRegressor(["lr"], **options).fit(data.X, data.y, groups=data.groups)
    X, y, groups = newcomers(n_rows, n=n_newcomers, seed=1000 + seed)
    return float(np.mean(model.admit(X, y, groups=groups) < 0))


def test_members_are_rarely_turned_away() -> None:
    assert turned_away(12, 40, 40, 100, 0) <= 0.03


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_members", "member_rows", "n_rows"),
    [(12, 40, 20), (12, 40, 40), (12, 40, 300), (40, 100, 100), (4, 20, 60), (2, 60, 60)],
)
def test_one_member_in_a_hundred_is_turned_away_at_most(
    n_members: int, member_rows: int, n_rows: int
) -> None:
    rates = [turned_away(n_members, member_rows, n_rows, 200, seed) for seed in range(5)]
    assert np.mean(rates) <= 0.015


def test_single_rows_are_placed_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table may have as many groups as rows: none of them costs a loop over the others."""
    calls: list[int] = []
    one_by_one = admission._Clusters.log_sums
    monkeypatch.setattr(
        admission._Clusters, "log_sums", lambda self, v: calls.append(1) or one_by_one(self, v)
    )
    for n in (4, 40):
        X, y, _ = newcomers(1, n=n)
        model = fitted()
        calls.clear()
        model.admit(X, y, groups=[f"new {k}" for k in range(n)])
        assert len(calls) == 1
        placed = model.admission_
        assert (placed.probabilities.max(axis=1) == 1).all()
        assert (placed.probabilities.argmax(axis=1) == placed.labels).all()
