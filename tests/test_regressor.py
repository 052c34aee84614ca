import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.base import clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ShuffleSplit,
    StratifiedKFold,
    TimeSeriesSplit,
    cross_val_predict,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from coterie import (
    CoterieRegressor,
    cluster_learners,
    collaborate,
    cross_evaluate,
    select_models,
    stack_learners,
)
from coterie.collaboration.nested import nest_coteries
from coterie.datasets import make_linear_learners

TRUTHS = [[2, 0, 1], [-2, 1, 0]]
DATA = make_linear_learners(6, n_rows=24, coefficients=TRUTHS, random_state=0)
SITES = np.array([f"site {name[-1]}" for name in DATA.groups])
NAMES = ["age", "dose", "weight"]
FRAME = pd.DataFrame(DATA.X, columns=NAMES)
WITH_SITE = FRAME.assign(site=SITES)[["age", "site", "dose", "weight"]]
TABLES = {
    "pandas": (FRAME, pd.Series(DATA.y), pd.Series(SITES)),
    "polars": (pl.DataFrame(DATA.X, schema=NAMES), pl.Series(DATA.y), pl.Series(SITES)),
    "pyarrow": (
        pa.table(dict(zip(NAMES, DATA.X.T, strict=True))),
        pa.array(DATA.y),
        pa.chunked_array([SITES]),
    ),
    "lists": (DATA.X.tolist(), DATA.y.tolist(), SITES.tolist()),
}


def coterie(**options: Any) -> CoterieRegressor:
    return CoterieRegressor(**{"candidates": ["lr"], "n_clusters": 2, **options})


def fitted(**options: Any) -> CoterieRegressor:
    return coterie(**options).fit(DATA.X, DATA.y, groups=SITES)


@pytest.fixture(scope="module")
def model() -> CoterieRegressor:
    """One fit for the tests that only look at it."""
    return fitted(n_clusters="auto")


@pytest.mark.filterwarnings("ignore:.* got no groups:UserWarning")
@parametrize_with_checks([CoterieRegressor()])
def test_scikit_learn_s_own_checks_pass(estimator: Any, check: Any) -> None:
    check(estimator)


def test_the_fit_is_the_stages_in_a_row(model: CoterieRegressor) -> None:
    rows = {"X": DATA.X, "y": DATA.y, "groups": SITES}
    selection = select_models(**rows, candidates=["lr"])
    exchange = cross_evaluate(selection, **rows)
    partition = cluster_learners(exchange, **rows, selection=selection)
    collaboration = nest_coteries(selection, exchange, partition, **rows, candidates=["lr"])
    assert np.array_equal(model.selection_.errors, selection.errors)
    assert np.array_equal(model.exchange_.losses, exchange.losses)
    assert np.array_equal(model.partition_.labels, partition.labels)
    assert np.array_equal(model.partition_.similarity, partition.similarity)
    by_hand = collaboration.predict(DATA.X, collaboration.weight_rows[np.repeat(np.arange(6), 24)])
    assert np.array_equal(model.predict(DATA.X, groups=SITES), by_hand)


def test_what_a_fit_leaves_behind(model: CoterieRegressor) -> None:
    assert model.learner_ids_.tolist() == [f"site {k}" for k in range(6)]
    assert model.learner_labels_.tolist() == DATA.truth.tolist()
    assert model.n_clusters_ == 2
    assert model.n_features_in_ == 3
    assert model.partition_.rule == "held-out"
    assert len(model.selection_.models) == len(model.gains_["gain"]) == 6
    assert model.exchange_.losses.shape == (6, 6)
    assert is_regressor(model)


def test_one_form_of_collaboration_may_be_asked_for() -> None:
    model = fitted(collaboration="pooled")
    rows = {"X": DATA.X, "y": DATA.y, "groups": SITES}
    collaboration = collaborate(model.selection_, model.partition_, **rows, candidates=["lr"])
    by_hand = collaboration.predict(DATA.X, collaboration.weight_rows[np.repeat(np.arange(6), 24)])
    assert np.array_equal(model.predict(DATA.X, groups=SITES), by_hand)


@pytest.mark.parametrize("collaboration", ["auto", "pooled", "average", "local", "global"])
@pytest.mark.parametrize("standardize", ["learner", None])
def test_newcomers_predict_under_every_collaboration(collaboration: str, standardize: str | None) -> None:
    model = fitted(collaboration=collaboration, standardize=standardize)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    y = X @ TRUTHS[1] + 0.1 * rng.normal(size=30)
    model.admit(X[:20], y[:20], groups=["new"] * 20)
    prediction = model.predict(X[20:], groups=["new"] * 10)
    wrong_by = np.mean((prediction - y[20:]) ** 2) / y[20:].var()
    assert wrong_by < (1.5 if collaboration == "global" else 0.1)


@pytest.mark.parametrize("refine", ["pooled", "average", None])
def test_the_default_weighs_what_each_learner_takes_from_whom(refine: str | None) -> None:
    model = fitted(refine=refine)
    nested = model.collaboration_
    by_averages = "alone", "3 coteries", "2 coteries", "all"
    by_pooled_rows = "alone", "coterie", "all adapted"
    assert nested.share_names == (by_averages if refine == "average" else by_pooled_rows)
    assert_allclose(nested.shares.sum(axis=1), 1)
    assert (nested.shares >= 0).all()
    # With two truths, who learns with all learns little.
    assert (nested.shares[:, -1] < 0.5).all()
    assert np.mean(model.gains_["error_with"]) < np.mean(model.gains_["error_alone"])


def test_fewer_folds_may_be_asked_for() -> None:
    two, four = fitted(nested_folds=2), fitted()
    assert not np.array_equal(two.collaboration_.residuals[0][:, 0], four.collaboration_.residuals[0][:, 0])
    with pytest.raises(ValueError, match="'nested_folds' option must be an integer of at least 2"):
        fitted(nested_folds=1)


def test_a_learner_predicts_with_its_coterie() -> None:
    model = fitted(collaboration="pooled")
    theirs = DATA.truth[np.repeat(np.arange(6), 24)] == 1
    pooled = LinearRegression().fit(DATA.X[theirs], DATA.y[theirs])
    new = np.random.default_rng(5).normal(size=(4, 3))
    assert_allclose(model.predict(new, groups=["site 1", "site 3", "site 5", "site 1"]), pooled.predict(new))


def test_rows_are_predicted_one_by_one_as_together(model: CoterieRegressor) -> None:
    collaboration = model.predict(DATA.X, groups=SITES)
    order = np.random.default_rng(0).permutation(len(SITES))
    assert_allclose(model.predict(DATA.X[order], groups=SITES[order]), collaboration[order])
    assert_allclose(model.predict(DATA.X[:1], groups=SITES[:1]), collaboration[:1])


def test_the_score_is_r_squared(model: CoterieRegressor) -> None:
    expected = r2_score(DATA.y, model.predict(DATA.X, groups=SITES))
    assert model.score(DATA.X, DATA.y, groups=SITES) == pytest.approx(expected)
    weight = np.arange(len(DATA.y)) + 1.0
    weighted = r2_score(DATA.y, model.predict(DATA.X, groups=SITES), sample_weight=weight)
    assert model.score(DATA.X, DATA.y, sample_weight=weight, groups=SITES) == pytest.approx(weighted)


@pytest.mark.parametrize("kind", list(TABLES))
def test_every_kind_of_table_gives_the_same_result(kind: str, model: CoterieRegressor) -> None:
    X, y, groups = TABLES[kind]
    again = coterie(n_clusters="auto").fit(X, y, groups=groups)
    assert again.learner_ids_.tolist() == model.learner_ids_.tolist()
    assert again.learner_labels_.tolist() == model.learner_labels_.tolist()
    assert np.array_equal(again.predict(X, groups=groups), model.predict(DATA.X, groups=SITES))
    if kind != "lists":
        assert again.feature_names_in_.tolist() == NAMES


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_groups_may_be_the_name_of_a_column(kind: str, model: CoterieRegressor) -> None:
    make = {"pandas": lambda t: t, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind]
    table = make(WITH_SITE)
    again = coterie(n_clusters="auto").fit(table, DATA.y, groups="site")
    assert again.feature_names_in_.tolist() == NAMES
    assert again.learner_labels_.tolist() == model.learner_labels_.tolist()
    expected = model.predict(DATA.X, groups=SITES)
    # The column is remembered, and may also be named again.
    assert np.array_equal(again.predict(table), expected)
    assert np.array_equal(again.predict(table, groups="site"), expected)
    assert np.array_equal(again.predict(make(FRAME), groups=SITES), expected)


@pytest.mark.parametrize("column", ["site", 1, -3])
def test_the_group_column_holds_in_fit_and_predict(column: Any, model: CoterieRegressor) -> None:
    again = coterie(n_clusters="auto", group_column=column).fit(WITH_SITE, DATA.y)
    assert again.n_features_in_ == 3
    expected = model.predict(DATA.X, groups=SITES)
    assert np.array_equal(again.predict(WITH_SITE), expected)
    assert again.score(WITH_SITE, DATA.y) == pytest.approx(model.score(DATA.X, DATA.y, groups=SITES))


@pytest.mark.parametrize("column", [0, -1])
def test_the_group_column_of_an_array_is_a_position(column: int) -> None:
    numbers = np.repeat(np.arange(6.0), 24)
    X = np.insert(DATA.X, 0 if column == 0 else 3, numbers, axis=1)
    model = coterie(group_column=column).fit(X, DATA.y)
    assert model.learner_ids_.tolist() == [0, 1, 2, 3, 4, 5]
    assert model.learner_labels_.tolist() == DATA.truth.tolist()
    assert_allclose(
        model.predict(X), coterie().fit(DATA.X, DATA.y, groups=numbers).predict(DATA.X, groups=numbers)
    )


def test_a_position_may_be_numpy_s_integer() -> None:
    X = np.insert(DATA.X, 0, np.repeat(np.arange(6.0), 24), axis=1)
    model = coterie(group_column=np.int64(0)).fit(X, DATA.y)
    assert model.n_features_in_ == 3
    assert len(model.learner_ids_) == 6


def test_without_groups_there_is_one_learner_and_one_cluster() -> None:
    with pytest.warns(UserWarning, match="fit got no groups, so all rows belong to one learner"):
        model = CoterieRegressor(["lr"], n_clusters=5).fit(DATA.X, DATA.y)
    assert model.n_clusters_ == 1
    assert len(model.learner_ids_) == 1
    assert_allclose(model.predict(DATA.X), LinearRegression().fit(DATA.X, DATA.y).predict(DATA.X))


def test_learners_may_have_any_kind_of_name() -> None:
    kinds: list[Any] = [
        np.repeat(np.arange(6), 24),
        np.repeat(np.arange(6) / 2, 24),
        np.repeat(np.array([True, False]), 72),
        np.repeat(np.array(["2020-01-01", "2020-01-02", "2021-01-01"], dtype="M8[D]"), 48),
        pd.Series(SITES, dtype="category"),
        np.array([*[("a", 1)] * 72, *[("b", 2)] * 72, None], dtype=object)[:-1],
    ]
    for groups in kinds:
        model = coterie(n_clusters=1).fit(DATA.X, DATA.y, groups=groups)
        assert model.predict(DATA.X[:3], groups=groups[:3]).shape == (3,)


def test_learners_may_be_stacked_from_a_mapping() -> None:
    datasets = {site: (DATA.X[site == SITES], DATA.y[site == SITES]) for site in dict.fromkeys(SITES)}
    X, y, groups = stack_learners(datasets)
    model = coterie().fit(X, y, groups=groups)
    assert model.learner_labels_.tolist() == DATA.truth.tolist()


def test_clone_keeps_parameters_only(model: CoterieRegressor) -> None:
    again = clone(model)
    assert again.get_params() == model.get_params()
    assert not hasattr(again, "learner_ids_")
    with pytest.raises(NotFittedError):
        again.predict(DATA.X, groups=SITES)


def test_a_pickled_model_predicts_the_same(model: CoterieRegressor) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(DATA.X, groups=SITES), model.predict(DATA.X, groups=SITES))
    assert again.learner_labels_.tolist() == model.learner_labels_.tolist()


def test_parameters_are_set_and_shown() -> None:
    model = CoterieRegressor().set_params(scale=2.0, n_clusters="gap")
    assert model.get_params()["scale"] == 2.0
    assert repr(model) == "CoterieRegressor(n_clusters='gap', scale=2.0)"
    with pytest.raises(ValueError, match="Invalid parameter 'sale'"):
        model.set_params(sale=1.0)


def test_the_constructor_checks_nothing() -> None:
    model = CoterieRegressor(
        candidates=3, n_clusters="?", scale=-1, refine="?", collaboration="?", n_jobs="?"
    )
    assert model.scale == -1


def test_a_second_fit_leaves_nothing_of_the_first() -> None:
    model = coterie(group_column="site").fit(WITH_SITE, DATA.y)
    X, y, groups = DATA.X[:, :2], DATA.y, np.repeat(["a", "b"], 72)
    model.admit(WITH_SITE.assign(site="new"), DATA.y)
    model.set_params(group_column=None, n_clusters=1).fit(X, y, groups=groups)
    fresh = coterie(n_clusters=1).fit(X, y, groups=groups)
    assert model.learner_ids_.tolist() == ["a", "b"]
    assert model.n_features_in_ == 2
    assert not hasattr(model, "feature_names_in_")
    assert set(vars(model)) == set(vars(fresh))
    assert np.array_equal(model.predict(X, groups=groups), fresh.predict(X, groups=groups))
    with pytest.raises(ValueError, match="pass groups"):
        model.predict(X)
    with pytest.warns(UserWarning, match="'new' was not seen in fit"):
        model.predict(X, groups=["new"] * len(X))


def test_a_second_fit_asks_for_candidates_as_the_first_did() -> None:
    model = coterie(candidates={"a": ["lr"], "b": ["lr"]}, n_clusters=1)
    groups = np.repeat(["a", "b", "c"], 48)
    model.fit(DATA.X[:96], DATA.y[:96], groups=groups[:96])
    with pytest.raises(ValueError, match="no candidates for learner 'c'"):
        model.fit(DATA.X, DATA.y, groups=groups)


def test_fit_changes_nothing_that_it_is_given() -> None:
    X, y, groups, table = DATA.X.copy(), DATA.y.copy(), SITES.copy(), WITH_SITE.copy()
    candidate = LinearRegression()
    coterie(candidates=[candidate], standardize="learner").fit(X, y, groups=groups)
    coterie(group_column="site").fit(table, y).predict(table)
    assert np.array_equal(X, DATA.X)
    assert np.array_equal(y, DATA.y)
    assert np.array_equal(groups, SITES)
    pd.testing.assert_frame_equal(table, WITH_SITE)
    assert not hasattr(candidate, "coef_")


def test_cross_validation_works_through_the_group_column() -> None:
    cv = StratifiedKFold(3).split(WITH_SITE, SITES)
    results = cross_validate(
        coterie(group_column="site"), WITH_SITE, DATA.y, cv=list(cv), error_score="raise"
    )
    assert np.all(results["test_score"] > 0.8)


def test_cross_validated_predictions_work_through_the_group_column() -> None:
    cv = list(StratifiedKFold(2).split(WITH_SITE, SITES))
    predictions = cross_val_predict(coterie(group_column="site"), WITH_SITE, DATA.y, cv=cv)
    assert r2_score(DATA.y, predictions) > 0.8


def test_a_grid_is_searched_through_the_group_column() -> None:
    cv = list(StratifiedKFold(2).split(WITH_SITE, SITES))
    grid = GridSearchCV(
        coterie(group_column="site"),
        {"n_clusters": [1, 2], "collaboration": ["pooled"]},
        cv=cv,
        error_score="raise",
    ).fit(WITH_SITE, DATA.y)
    assert grid.best_params_["n_clusters"] == 2
    assert grid.predict(WITH_SITE).shape == DATA.y.shape


def test_a_pipeline_passes_the_group_column_on() -> None:
    scaler = ColumnTransformer(
        [("scaled", StandardScaler(), NAMES)], remainder="passthrough", verbose_feature_names_out=False
    ).set_output(transform="pandas")
    pipeline = make_pipeline(scaler, coterie(group_column="site")).fit(WITH_SITE, DATA.y)
    assert pipeline[-1].learner_ids_.tolist() == [f"site {k}" for k in range(6)]
    assert_allclose(pipeline.predict(WITH_SITE), fitted().predict(DATA.X, groups=SITES))


def test_metadata_is_routed_to_fit_and_predict() -> None:
    cv = StratifiedKFold(2)
    with sklearn.config_context(enable_metadata_routing=True):
        model = (
            coterie()
            .set_fit_request(groups=True)
            .set_predict_request(groups=True)
            .set_score_request(groups=True)
        )
        pipeline = make_pipeline(StandardScaler(), model).fit(DATA.X, DATA.y, groups=SITES)
        predictions = pipeline.predict(DATA.X, groups=SITES)
        results = cross_validate(
            model,
            DATA.X,
            DATA.y,
            cv=list(cv.split(DATA.X, SITES)),
            params={"groups": SITES},
            error_score="raise",
        )
    assert_allclose(predictions, fitted().predict(DATA.X, groups=SITES))
    assert np.all(results["test_score"] > 0.8)


def test_weights_may_be_routed() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 3, len(DATA.y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = coterie().set_fit_request(groups=True, sample_weight=True).set_predict_request(groups=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        pipeline.fit(DATA.X, DATA.y, groups=SITES, sample_weight=weight)
        routed = pipeline.predict(DATA.X, groups=SITES)
    weighted = coterie().fit(DATA.X, DATA.y, groups=SITES, sample_weight=weight)
    assert_allclose(routed, weighted.predict(DATA.X, groups=SITES))
    assert not np.allclose(routed, fitted().predict(DATA.X, groups=SITES))


def test_rows_of_weight_zero_are_as_good_as_dropped() -> None:
    weight = np.random.default_rng(0).uniform(0.5, 2, len(DATA.y))
    weight[::4] = 0
    kept = weight > 0
    zeros = coterie(n_clusters="auto").fit(DATA.X, DATA.y, groups=SITES, sample_weight=weight)
    dropped = coterie(n_clusters="auto").fit(
        DATA.X[kept], DATA.y[kept], groups=SITES[kept], sample_weight=weight[kept]
    )
    assert np.array_equal(zeros.predict(DATA.X, groups=SITES), dropped.predict(DATA.X, groups=SITES))
    assert np.array_equal(zeros.gains_["error_with"], dropped.gains_["error_with"])


def test_rows_of_weight_zero_may_hold_anything() -> None:
    X, y, weight = DATA.X.copy(), DATA.y.copy(), np.ones(len(DATA.y))
    X[3], y[30], weight[[3, 30]] = np.nan, np.inf, 0
    assert coterie().fit(X, y, groups=SITES, sample_weight=weight).n_clusters_ == 2


def test_equal_weights_are_no_weights() -> None:
    weighted = coterie().fit(DATA.X, DATA.y, groups=SITES, sample_weight=np.full(len(DATA.y), 7.0))
    assert_allclose(weighted.predict(DATA.X, groups=SITES), fitted().predict(DATA.X, groups=SITES))
    assert_allclose(weighted.exchange_.losses, fitted().exchange_.losses)


def test_heavier_rows_count_more_in_the_coterie_s_model() -> None:
    weight = np.where(DATA.y > np.median(DATA.y), 1.0, 1e-9)
    model = coterie(n_clusters=1).fit(DATA.X, DATA.y, groups=SITES, sample_weight=weight)
    heavy = weight == 1
    residuals = DATA.y - model.predict(DATA.X, groups=SITES)
    assert np.mean(residuals[heavy] ** 2) < np.mean(residuals[~heavy] ** 2)


def test_learners_are_standardised_and_predictions_brought_back() -> None:
    shift, spread = np.repeat(np.arange(6), 24) * 10.0, np.repeat(2.0 ** np.arange(6), 24)
    X, y = DATA.X * spread[:, None] + shift[:, None], DATA.y * 3 * spread - shift
    model = coterie(standardize="learner").fit(X, y, groups=SITES)
    assert model.learner_labels_.tolist() == DATA.truth.tolist()
    assert r2_score(y, model.predict(X, groups=SITES)) > 0.8
    # In the units of the learner everybody is as in the table without units.
    plain = fitted(standardize="learner")
    assert_allclose(model.exchange_.losses, plain.exchange_.losses, rtol=1e-6, atol=1e-9)


def test_standardised_predictions_are_those_of_the_learner_s_own_units() -> None:
    model = fitted(standardize="learner", collaboration="local")
    for site in ("site 0", "site 3"):
        mine = site == SITES
        local = LinearRegression().fit(DATA.X[mine], DATA.y[mine])
        assert_allclose(model.predict(DATA.X[mine], groups=SITES[mine]), local.predict(DATA.X[mine]))


@pytest.mark.parametrize("splitter", [KFold(3), TimeSeriesSplit(3), ShuffleSplit(3, test_size=0.3)])
@pytest.mark.parametrize("n_clusters", [2, "auto"])
def test_rows_may_be_held_out_by_a_splitter(splitter: Any, n_clusters: Any) -> None:
    model = fitted(splitter=splitter, n_clusters=n_clusters)
    assert model.learner_labels_.tolist() == DATA.truth.tolist()
    assert np.isfinite(model.gains_["error_with"]).all()
    assert np.isfinite(model.predict(DATA.X, groups=SITES)).all()


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local", "global"])
@pytest.mark.parametrize("refine", ["pooled", "average", None])
def test_every_refinement_goes_with_every_collaboration(collaboration: str, refine: str | None) -> None:
    model = fitted(collaboration=collaboration, refine=refine)
    assert model.learner_labels_.tolist() == DATA.truth.tolist()
    assert model.collaboration_.method == collaboration
    assert np.isfinite(model.predict(DATA.X, groups=SITES)).all()


def test_robust_losses_do_not_follow_outliers() -> None:
    y = DATA.y.copy()
    # Rows farther off would be set aside.
    y[::24] += 40
    plain, robust = (coterie(robust=robust).fit(DATA.X, y, groups=SITES) for robust in (False, True))
    assert robust.exchange_.losses.max() < plain.exchange_.losses.min()


def test_the_seed_changes_splits_and_nothing_else_does() -> None:
    one, again, other = fitted(), fitted(random_state=0), fitted(random_state=1)
    assert np.array_equal(one.gains_["error_alone"], again.gains_["error_alone"])
    assert not np.array_equal(one.gains_["error_alone"], other.gains_["error_alone"])
    for random_state in (None, np.random.RandomState(3)):
        assert fitted(random_state=random_state).n_clusters_ == 2


def test_another_engine_may_run_the_work() -> None:
    class InTurn:
        """Runs the jobs in turn and counts the calls."""

        calls = 0

        def map(self, function: Any, jobs: Any) -> list[Any]:
            self.calls += 1
            return [function(job) for job in jobs]

    engine = InTurn()
    model = fitted(engine=engine)
    assert engine.calls > 0
    assert np.array_equal(model.predict(DATA.X, groups=SITES), fitted().predict(DATA.X, groups=SITES))


def test_columns_are_compared_by_name_and_order() -> None:
    model = coterie().fit(FRAME, DATA.y, groups=SITES)
    with pytest.raises(ValueError, match="in the same order"):
        model.predict(FRAME[NAMES[::-1]], groups=SITES)
    with pytest.raises(ValueError, match="height"):
        model.predict(FRAME.rename(columns={"age": "height"}), groups=SITES)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(DATA.X, groups=SITES)


def test_a_table_s_index_does_not_matter(model: CoterieRegressor) -> None:
    order = np.random.default_rng(0).permutation(len(SITES))
    frame = FRAME.set_axis(order)
    again = coterie(n_clusters="auto").fit(
        frame, pd.Series(DATA.y), groups=pd.Series(SITES, index=order[::-1])
    )
    assert np.array_equal(again.predict(frame, groups=SITES), model.predict(DATA.X, groups=SITES))


def test_intervals_hold_predictions(model: CoterieRegressor) -> None:
    ends, predicted = model.predict_interval(DATA.X, SITES), model.predict(DATA.X, SITES)
    assert ends.shape == (len(DATA.y), 2)
    assert ((ends[:, 0] <= predicted) & (predicted <= ends[:, 1])).all()
    assert 0.85 < ((ends[:, 0] <= DATA.y) & (DATA.y <= ends[:, 1])).mean() <= 1
    assert (np.ptp(model.predict_interval(DATA.X, SITES, coverage=0.5), axis=1) < np.ptp(ends, axis=1)).all()


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 90, np.nan, "0.9", None, True])
def test_a_coverage_is_a_share(coverage: Any, model: CoterieRegressor) -> None:
    with pytest.raises(ValueError, match=r"a number between 0 and 1, such as 0\.9\. Got"):
        model.predict_interval(DATA.X, SITES, coverage=coverage)


def test_a_regressor_that_is_not_fitted_says_so_and_has_no_results():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        _ = CoterieRegressor().gains_
    assert not hasattr(CoterieRegressor(), "n_clusters_")
