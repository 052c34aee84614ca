from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.neighbors import KNeighborsRegressor

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.verdicts import Gains
from coterie.verdicts.gains import error_and_spread
from coterie.verdicts.learning import reached_with_all

COLUMNS = [
    "learner",
    "cluster",
    "model",
    "n_rows",
    "error_alone",
    "error_alone_se",
    "error_with",
    "error_with_se",
    "error_all",
    "error_all_se",
    "gain",
    "gain_se",
    "gain_low",
    "gain_high",
    "verdict",
    "reason",
    "fits",
    "membership",
    "second_cluster",
]
SIZES = [20, 22, 24, 26, 28, 30]
DATA = make_linear_learners(6, n_rows=SIZES, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)


def fitted(candidates: Any = ("lr",), **options: Any) -> CoterieRegressor:
    candidates = list(candidates) if isinstance(candidates, tuple) else candidates
    model = CoterieRegressor(candidates, n_clusters=2, **options)
    return model.fit(DATA.X, DATA.y, groups=DATA.groups)


def test_error_and_spread_are_the_mean_square_and_its_standard_error() -> None:
    mean, spread = error_and_spread(np.array([[1.0], [-2.0], [np.nan], [3.0]]))
    assert mean == pytest.approx((1 + 4 + 9) / 3)
    assert spread == pytest.approx(np.std([1, 4, 9], ddof=1) / np.sqrt(3))


@pytest.mark.parametrize("residuals", [[], [np.nan]])
def test_there_is_no_error_where_there_is_nothing_to_measure(residuals: list[float]) -> None:
    assert np.isnan(error_and_spread(np.array(residuals, dtype=float).reshape(-1, 1))).all()


def test_one_row_has_an_error_but_no_spread() -> None:
    mean, spread = error_and_spread(np.array([[3.0]]))
    assert mean == 9.0
    assert np.isnan(spread)


def test_gains_say_what_each_learner_takes_from_whom() -> None:
    model = fitted()
    extra = [name for name in model.gains_ if name not in COLUMNS]
    assert extra[0] == "from_alone"
    assert extra[-1] == "from_all_adapted"
    assert extra == [f"from_{name.replace(' ', '_')}" for name in model.collaboration_.share_names]
    taken = np.column_stack([model.gains_[name] for name in extra])
    np.testing.assert_array_equal(taken, model.collaboration_.shares)
    assert_allclose(taken.sum(axis=1), 1)
    model.admit(DATA.X[:20], DATA.y[:20], groups=["new"] * 20)
    assert np.isnan(model.gains_["from_alone"]).tolist() == [False] * 6 + [True]


def test_gains_have_a_row_per_learner() -> None:
    gains = fitted(collaboration="pooled").gains_
    assert list(gains) == COLUMNS
    assert gains["learner"].tolist() == DATA.learner_ids.tolist()
    assert gains["cluster"].tolist() == DATA.truth.tolist()
    assert gains["model"].tolist() == ["lr"] * 6
    assert gains["n_rows"].tolist() == SIZES
    assert np.all(gains["gain_low"] < gains["gain"])
    assert np.all(gains["gain"] < gains["gain_high"])
    assert gains["fits"].tolist() == [True] * 6


def falls(model: CoterieRegressor) -> np.ndarray:
    """Return the error of own models of all rows over that of the folds' models."""
    share, decay = model.record_.own.share, model.record_.gain_model.decay
    assert share == pytest.approx(0.75, abs=0.01)
    return reached_with_all(np.array(SIZES), share, decay)


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local", "global"])
def test_gains_are_the_errors_of_honest_residuals(collaboration: str) -> None:
    model = fitted(collaboration=collaboration)
    falling = falls(model)
    assert np.all(falling <= 1)
    shares = {"local": np.ones(6), "average": np.array(SIZES) / np.bincount(DATA.truth, SIZES)[DATA.truth]}
    own = shares.get(collaboration, np.zeros(6))
    for place in range(6):
        own_only = model.record_.own.residuals[place][:, 0] ** 2
        coterie = model.collaboration_.residuals[place][:, 0] ** 2
        # The own model becomes better with all rows, and so does its part in a prediction with others.
        with_all = 1 - own[place] ** 2 * (1 - falling[place])
        assert model.gains_["error_alone"][place] == pytest.approx(own_only.mean() * falling[place])
        assert model.gains_["error_with"][place] == pytest.approx(coterie.mean() * with_all)
        assert model.gains_["error_with_se"][place] == pytest.approx(
            coterie.std(ddof=1) / np.sqrt(SIZES[place]) * with_all
        )


def test_a_coterie_of_one_truth_pays_and_all_together_do_not() -> None:
    gains = fitted().gains_
    assert gains["gain"].mean() > 0
    assert np.all(gains["error_all"] > gains["error_with"])


def test_local_gains_nothing_and_global_gains_what_all_do() -> None:
    own_only = fitted(collaboration="local").gains_
    assert_allclose(own_only["gain"], 0.0)
    assert_allclose(own_only["error_with"], own_only["error_alone"])
    assert set(own_only["reason"]) == {"It takes nothing from others."}
    everybody = fitted(collaboration="global").gains_
    assert_allclose(everybody["error_with"], everybody["error_all"])


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local", "global"])
def test_a_model_that_memorises_its_rows_shows_its_true_error(collaboration: str) -> None:
    # The nearest neighbour of a seen row is the row itself: an error that is not held out would be zero.
    gains = fitted([KNeighborsRegressor(1)], collaboration=collaboration).gains_
    noise = DATA.noise_variance[0]
    for name in ("error_alone", "error_with", "error_all"):
        assert np.all(gains[name] > noise)


def test_gains_promise_what_new_rows_keep() -> None:
    # The errors held out in the fit are those of new rows of the same learners, up to sampling.
    truths = [[2, 0, 1], [-2, 1, 0]]
    data = make_linear_learners(10, n_rows=60, coefficients=truths, noise_variance=1.0, random_state=1)
    new = make_linear_learners(10, n_rows=200, coefficients=truths, noise_variance=1.0, random_state=2)
    for candidates in (["lr"], [KNeighborsRegressor(1)]):
        model = CoterieRegressor(candidates, n_clusters=2).fit(data.X, data.y, groups=data.groups)
        error = np.mean((new.y - model.predict(new.X, groups=new.groups)) ** 2)
        assert model.gains_["error_with"].mean() == pytest.approx(error, rel=0.15)


def test_gains_become_tables_as_they_are() -> None:
    gains = fitted().gains_
    for table in (pd.DataFrame(gains), pl.DataFrame(gains)):
        assert list(table.columns) == list(gains)
        assert table.shape == (6, len(gains))
        assert_allclose(table["gain"].to_numpy(), gains["gain"])


def test_gains_print_as_a_table() -> None:
    gains = fitted().gains_
    lines = str(gains).splitlines()
    assert len(lines) == 7
    assert lines[0].split() == list(gains)
    assert lines[1].split()[:2] == ["learner", "00"]
    assert len({len(line) for line in lines}) == 1


def test_numbers_are_printed_short() -> None:
    gains = Gains(learner=np.array(["a", "b"]), error=np.array([1 / 3, np.nan]))
    assert str(gains).splitlines() == ["learner   error", "      a  0.3333", "      b     nan"]


def test_gains_join_row_by_row() -> None:
    one = Gains(learner=np.array(["a"]), error_alone=np.array([1.0]))
    two = Gains(learner=np.array(["long"]), error_alone=np.array([2.0]))
    joined = one.joined(two)
    assert joined["learner"].tolist() == ["a", "long"]
    assert joined["error_alone"].tolist() == [1.0, 2.0]


def test_the_gain_is_finite_where_both_errors_are_rounding() -> None:
    model = CoterieRegressor(["lr"], n_clusters=1)
    model.fit(DATA.X, np.full(len(DATA.y), 1e-12), groups=DATA.groups)
    assert np.isfinite(model.gains_["gain"]).all()


def weighted(weights: Any, **options: Any) -> CoterieRegressor:
    model = CoterieRegressor(["lr"], n_clusters=2, **options)
    return model.fit(DATA.X, DATA.y, groups=DATA.groups, sample_weight=weights)


def test_rows_count_by_their_weight() -> None:
    weights = np.random.default_rng(0).integers(1, 4, len(DATA.y)).astype(float)
    model = weighted(weights, collaboration="pooled")
    for place in range(6):
        mine = weights[DATA.groups == DATA.learner_ids[place]]
        for name, residuals in (
            ("error_alone", model.record_.own.residuals[place][:, 0]),
            ("error_with", model.collaboration_.residuals[place][:, 0]),
        ):
            fall = falls(model)[place] if name == "error_alone" else 1.0
            assert model.gains_[name][place] == pytest.approx(np.average(residuals**2, weights=mine) * fall)
    # Weights of one size say nothing.
    for name, column in weighted(np.full(len(DATA.y), 7.0)).gains_.items():
        if column.dtype.kind == "f":
            assert_allclose(column, fitted().gains_[name])


def test_errors_are_in_the_units_of_the_response() -> None:
    plain, standardized = fitted(), fitted(standardize="learner")
    # Alone, a linear model in other units is the same model.
    assert_allclose(plain.gains_["error_alone"], standardized.gains_["error_alone"])
    assert_allclose(plain.gains_["error_alone_se"], standardized.gains_["error_alone_se"])
    for place in range(6):
        spread = DATA.y[DATA.groups == DATA.learner_ids[place]].std()
        inside = np.mean(standardized.collaboration_.residuals[place][:, 0] ** 2)
        assert standardized.gains_["error_with"][place] == pytest.approx(inside * spread**2)


@pytest.mark.parametrize("collaboration", ["auto", "pooled", "average"])
def test_everybody_collaborates_where_there_are_two_clear_truths(collaboration: str) -> None:
    data = make_linear_learners(32, n_rows=20, coefficients=(np.eye(2, 10) * 4 - 2).tolist(), random_state=0)
    model = CoterieRegressor(["lr"], n_clusters=2, collaboration=collaboration)
    gains = model.fit(data.X, data.y, groups=data.groups).gains_
    # One learner's twenty rows may happen to show a loss: then it does not go by what the others gain.
    assert np.sum(gains["verdict"] == "collaborate") >= 31
    assert all(reason.startswith("Others are expected to save ") for reason in gains["reason"])
    assert gains["membership"].min() > 0.9
    assert gains["second_cluster"].tolist() == (1 - np.asarray(data.truth)).tolist()
    assert np.all(gains["gain_se"] > 0)


def test_the_error_alone_is_that_of_a_model_of_all_rows() -> None:
    # Judged by halves, an own model of twelve rows seems to lose twice as much as it does on new rows.
    truths = [[2, 0, 1], [-2, 1, 0]]
    data = make_linear_learners(60, n_rows=12, coefficients=truths, noise_variance=1.0, random_state=3)
    new = make_linear_learners(60, n_rows=200, coefficients=truths, noise_variance=1.0, random_state=4)
    model = CoterieRegressor(["lr"], n_clusters=2, n_bootstrap=0).fit(data.X, data.y, groups=data.groups)
    squares = (new.y - model.predict(new.X, groups=new.groups, using="alone")) ** 2
    halves = np.mean([part**2 for part in model.selection_.residuals])
    assert halves > 1.2 * squares.mean()
    assert model.gains_["error_alone"].mean() == pytest.approx(squares.mean(), rel=0.12)


def test_who_is_told_to_stay_alone_takes_nothing_from_others() -> None:
    rng = np.random.default_rng(0)
    groups, X = np.repeat(np.arange(8), 60), rng.normal(size=(480, 2))
    # One coterie of two truths: the larger side pulls the smaller one where it is wrong.
    y = np.where(groups < 6, 3, -3) * X[:, 0] + 0.3 * rng.normal(size=480)
    model = CoterieRegressor(["lr"], n_clusters=1, collaboration="pooled", n_bootstrap=0)
    gains = model.fit(X, y, groups=groups).gains_
    assert gains["verdict"][6:].tolist() == ["stay alone"] * 2
    assert np.all(gains["gain"][6:] < 0)
    assert gains["fits"][6:].tolist() == [False] * 2
    mine = groups == 7
    own = model.selection_.models[7].predict(X[mine])
    assert_allclose(model.predict(X[mine], groups=groups[mine]), own)
    others = model.predict(X[mine], groups=groups[mine], using="others")
    assert np.mean((y[mine] - others) ** 2) > 5 * np.mean((y[mine] - own) ** 2)


def test_one_model_for_two_truths_suits_nobody() -> None:
    model = CoterieRegressor(["lr"], n_clusters=1, collaboration="pooled")
    model.fit(DATA.X, DATA.y, groups=DATA.groups)
    assert set(model.gains_["verdict"]) == {"stay alone"}
    assert not model.gains_["fits"].any()
    assert model.gains_["second_cluster"].tolist() == [-1] * 6


def test_a_cluster_each_leaves_everybody_alone() -> None:
    model = CoterieRegressor(["lr"], n_clusters=6, refine=None, collaboration="pooled")
    model.fit(DATA.X, DATA.y, groups=DATA.groups)
    assert model.gains_["gain"].tolist() == [0.0] * 6
    # Others of the same truth would predict them well enough: they could, but do not.
    assert set(model.gains_["verdict"]) == {"no clear difference"}
    assert set(model.gains_["reason"]) == {"Nobody shares its cluster."}


def test_one_learner_is_told_that_it_is_alone() -> None:
    model = CoterieRegressor(["lr"]).fit(DATA.X[:20], DATA.y[:20], groups=[0] * 20)
    assert model.gains_["verdict"].tolist() == ["stay alone"]
    assert model.gains_["reason"].tolist() == ["There is nobody else to learn from."]
    assert model.gains_["membership"].tolist() == [1.0]


def test_newcomers_who_fit_nowhere_or_have_one_row_are_promised_nothing() -> None:
    data = make_linear_learners(8, n_rows=40, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)
    model = CoterieRegressor(["lr"], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    odd = np.full(40, "odd")
    X, y = data.X[:41], np.r_[20 + 5 * data.X[:40, 1], data.y[40]]
    model.admit(X, y, groups=np.r_[odd, ["single"]])
    gains = model.gains_.of(["odd", "single"])
    assert gains["verdict"].tolist() == ["stay alone", "too few rows"]
    assert gains["fits"].tolist() == [False, True]
    # What the nearest cluster would bring is no gain of a learner that does not join it.
    assert np.isnan(gains["gain"]).all()
    # A single row cannot be resampled.
    assert np.isnan(gains["membership"]).all()


def test_who_is_by_itself_has_the_same_error_with_others_as_alone() -> None:
    data = make_linear_learners(8, n_rows=60, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)
    y = data.y.copy()
    y[data.groups == "learner 07"] *= -3
    model = CoterieRegressor(["lr"], n_clusters=3, refine="average", collaboration="average")
    gains = model.fit(data.X, y, groups=data.groups).gains_.of(["learner 07"])
    assert np.count_nonzero(model.learner_labels_ == gains["cluster"][0]) == 1
    for ending in ("", "_se"):
        assert gains[f"error_with{ending}"] == gains[f"error_alone{ending}"]
