from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import select_models
from coterie.datasets import make_linear_learners, make_stress
from coterie.method.select import split_halves, split_with
from coterie.records import Selection

SIZES = [20, 21, 22, 23]
DATA = make_linear_learners(n_learners=4, n_truths=2, n_rows=SIZES, n_features=2, random_state=3)
NAMES = DATA.learner_ids.tolist()


def select(candidates: Any = ("lr",), rows: Any = None, **options: Any) -> Selection:
    """Select from some of the rows, or from all."""
    rows = np.arange(len(DATA.y)) if rows is None else rows
    weight = options.pop("sample_weight", None)
    weight = None if weight is None else weight[rows]
    candidates = list(candidates) if isinstance(candidates, tuple) else candidates
    return select_models(
        DATA.X[rows],
        DATA.y[rows],
        groups=DATA.groups[rows],
        candidates=candidates,
        sample_weight=weight,
        **options,
    )


def rows_of(learner: str) -> tuple[Any, Any]:
    mine = DATA.groups == learner
    return DATA.X[mine], DATA.y[mine]


class Failing(RegressorMixin, BaseEstimator):
    """Fails for learners with too many rows, in one of several ways; predicts zero otherwise."""

    def __init__(self, how: str = "raise", most: int = 0) -> None:
        self.how = how
        self.most = most

    def fit(self, X: Any, y: Any) -> Any:
        self.fails_ = len(y) > self.most
        if self.fails_ and self.how == "raise":
            raise RuntimeError("out of cheese")
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        if self.fails_ and self.how == "shape":
            return np.zeros((len(X), 2))
        return np.full(len(X), np.nan if self.fails_ else 0.0)


class Recording(RegressorMixin, BaseEstimator):
    """Predicts zero and remembers which rows it was fitted on, by their first column."""

    fits: list[list[float]] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any) -> Any:
        self.fits.append(X[:, 0].tolist())
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> Any:
        return np.zeros(len(X))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(n=st.integers(4, 200), seed=st.integers(0, 1000))
def test_halves_train_on_the_smaller_part_and_hold_out_the_rest(n: int, seed: int) -> None:
    folds, training = split_halves(n, np.random.default_rng(seed))
    assert np.bincount(folds).tolist() == [n - n // 2, n // 2]
    for fold in (0, 1):
        assert np.array_equal(training[fold], folds != fold)


def test_halves_are_random() -> None:
    one, two = (split_halves(50, np.random.default_rng(seed))[0] for seed in (0, 1))
    assert not np.array_equal(one, two)
    assert np.any(np.diff(one) != np.diff(one)[0])


def test_select_follows_the_paper_row_by_row() -> None:
    selection = select("linear")
    assert selection.learner_ids.tolist() == NAMES
    assert selection.n_rows.tolist() == SIZES
    for j, learner in enumerate(NAMES):
        X, y = rows_of(learner)
        folds, errors = selection.folds[j], selection.candidate_errors[j]
        first = LinearRegression().fit(X[folds == 1], y[folds == 1])
        second = LinearRegression().fit(X[folds == 0], y[folds == 0])
        expected = np.mean((y - first.predict(X))[folds == 0] ** 2)
        assert_allclose(errors["lr"], expected)
        assert set(errors) == {"lr", "ridge", "lasso"}
        assert errors[selection.names[j]] == min(errors.values()) == selection.held_out_errors[j]
        if selection.names[j] == "lr":
            honest = np.where(folds == 0, y - first.predict(X), y - second.predict(X))
            assert_allclose(selection.residuals[j][:, 0], honest)
    assert "lr" in selection.names


def test_the_chosen_model_is_refitted_on_all_rows() -> None:
    selection = select()
    for j, learner in enumerate(NAMES):
        X, y = rows_of(learner)
        again = LinearRegression().fit(X, y)
        assert_allclose(selection.models[j].coef_, again.coef_)
        assert_allclose(selection.errors[j], np.mean((y - again.predict(X)) ** 2))


def test_the_models_behind_the_honest_residuals_are_kept_by_fold() -> None:
    selection = select()
    for j, learner in enumerate(NAMES):
        X, y = rows_of(learner)
        for fold in (0, 1):
            out = selection.folds[j] == fold
            residuals = y[out] - selection.fold_models[j][fold].predict(X[out])
            assert_allclose(selection.residuals[j][out, 0], residuals)


def test_a_model_that_memorises_its_rows_has_honest_residuals() -> None:
    selection = select([KNeighborsRegressor(1)])
    assert_allclose(selection.errors, 0, atol=1e-12)
    assert min(np.abs(r).min() for r in selection.residuals) > 0
    assert np.all(selection.noise > 0)


def test_noise_is_the_level_of_the_honest_residuals() -> None:
    data = make_linear_learners(20, 2, n_rows=80, n_features=2, noise_variance=4.0, random_state=0)
    selection = select_models(data.X, data.y, groups=data.groups, candidates=["lr"])
    assert_allclose(np.median(selection.noise), 4.0, rtol=0.2)


def test_a_learner_selects_the_same_whoever_is_beside_it() -> None:
    everybody = select(["lr", "rf"])
    alone = select(["lr", "rf"], rows=np.flatnonzero(DATA.groups == NAMES[2]))
    assert np.array_equal(everybody.folds[2], alone.folds[0])
    assert everybody.candidate_errors[2] == alone.candidate_errors[0]
    assert np.array_equal(everybody.residuals[2], alone.residuals[0])


def test_learners_come_in_order_of_first_appearance() -> None:
    backwards = np.argsort(-np.repeat(np.arange(4), SIZES), kind="stable")
    turned, straight = select(rows=backwards), select()
    assert turned.learner_ids.tolist() == NAMES[::-1]
    assert np.array_equal(turned.errors[::-1], straight.errors)
    assert turned.n_rows.tolist() == SIZES[::-1]


def test_the_seed_decides_the_split_and_a_learner_s_split_is_its_own() -> None:
    one, again, other = select(), select(random_state=0), select(random_state=1)
    assert np.array_equal(one.folds[0], again.folds[0])
    assert not np.array_equal(one.folds[0], other.folds[0])
    alike = select(rows=np.r_[0:20, 20:40])
    assert not np.array_equal(alike.folds[0], alike.folds[1])


def test_forests_are_the_same_again_and_a_seed_of_the_user_s_is_kept() -> None:
    one, again = select(["rf"]), select(["rf"], n_jobs=2)
    assert all(np.array_equal(a, b) for a, b in zip(one.residuals, again.residuals, strict=True))
    kept = select([RandomForestRegressor(3, random_state=7)])
    assert {model.random_state for model in kept.models} == {7}


def test_groups_may_be_left_out_and_then_there_is_one_learner() -> None:
    selection = select_models(DATA.X, DATA.y, candidates=["lr"])
    assert selection.n_rows.tolist() == [sum(SIZES)]


def test_every_fold_of_a_splitter_counts() -> None:
    selection = select(("lr",), splitter=KFold(3))
    for j, learner in enumerate(NAMES):
        X, y = rows_of(learner)
        squares = np.empty(len(y))
        for fold, (train, out) in enumerate(KFold(3).split(X)):
            assert np.all(selection.folds[j][out] == fold)
            residuals = y[out] - LinearRegression().fit(X[train], y[train]).predict(X[out])
            assert_allclose(selection.residuals[j][out, 0], residuals)
            squares[fold] = np.mean(residuals**2)
        assert_allclose(selection.held_out_errors[j], squares[:3].mean())
        assert len(selection.fold_models[j]) == 3


def test_rows_that_a_splitter_never_holds_out_have_no_residual() -> None:
    selection = select(splitter=TimeSeriesSplit(3))
    for folds, residuals in zip(selection.folds, selection.residuals, strict=True):
        assert folds[0] == -1
        assert folds[-1] == 2
        assert np.array_equal(np.isnan(residuals[:, 0]), folds == -1)
    assert np.isfinite(selection.noise).all()
    assert np.isfinite(selection.held_out_errors).all()


@pytest.mark.parametrize("splitter", [TimeSeriesSplit(2), TimeSeriesSplit(2, gap=3)])
def test_candidates_train_on_the_rows_that_the_splitter_gives_for_training(splitter: Any) -> None:
    X = np.arange(12.0)[:, None]
    Recording.fits.clear()
    select_models(X, np.ones(12), candidates=[Recording()], splitter=splitter)
    expected = [X[train, 0].tolist() for train, _ in splitter.split(X)]
    assert all(rows in Recording.fits for rows in expected)


def test_a_splitter_without_a_seed_is_seeded_by_the_learner() -> None:
    splitter = ShuffleSplit(n_splits=2, test_size=0.4)
    # Learners of one size, who would be split alike by one seed.
    rows = np.r_[0:20, 20:40, 41:61]
    one, again = (select(rows=rows, splitter=splitter) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one.folds, again.folds, strict=True))
    assert not np.array_equal(one.folds[0], one.folds[1])
    assert splitter.random_state is None


def test_folds_that_overlap_are_numbered_without_gaps() -> None:
    class Twice:
        """Holds out the same rows twice, then others: the first fold has no rows left."""

        def split(self, X: Any, y: Any) -> Any:
            for out in ([0, 1], [0, 1], [2, 3]):
                yield np.setdiff1d(np.arange(len(y)), out), np.array(out)

    folds, training = split_with(Twice(), np.zeros((6, 1)), np.zeros(6), 0)
    assert folds.tolist() == [0, 0, 1, 1, -1, -1]
    assert training.tolist() == [[False, False, *[True] * 4], [True, True, False, False, True, True]]


def test_a_splitter_that_cannot_split_a_learner_names_it() -> None:
    with pytest.raises(
        ValueError, match=r"could not split the 20 rows of learner 'learner 00'.*fewer splits"
    ):
        select(splitter=KFold(21))


@pytest.mark.parametrize(
    "splitter",
    [
        3,
        object(),
        "kfold",
    ],
)
def test_what_cannot_split_is_refused(splitter: Any) -> None:
    with pytest.raises(ValueError, match="'splitter' option must be None or have a split method"):
        select(splitter=splitter)


def test_learners_may_have_different_candidates() -> None:
    mapping = {NAMES[0]: ["lr"], NAMES[1]: ["ridge"], NAMES[2]: "knn", NAMES[3]: {"mean": DummyRegressor()}}
    selection = select(mapping)
    assert selection.names == ("lr", "ridge", "knn", "mean")
    assert [set(errors) for errors in selection.candidate_errors] == [{"lr"}, {"ridge"}, {"knn"}, {"mean"}]


def test_a_learner_without_candidates_is_named() -> None:
    with pytest.raises(ValueError, match="no candidates for learner 'learner 03'"):
        select(dict.fromkeys(NAMES[:3], "lr"))


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("raise", "RuntimeError: out of cheese"),
        ("nan", "ValueError: predicted values that are not finite"),
        ("shape", r"ValueError: predicted the shape \(11, 2\) for 11 rows"),
    ],
)
def test_a_candidate_that_fails_in_some_learners_is_dropped_there_with_a_warning(
    how: str, cause: str
) -> None:
    # Learners of 10, 10, 22 and 23 rows: the halves that train hold 5, 5, 11 and 11.
    expected = f"candidate 'failing' was dropped for learner 'learner 02', 'learner 03': {cause}"
    rows = np.r_[0:10, 20:30, 41:63, 63:86]
    with pytest.warns(UserWarning, match=expected):
        selection = select([Failing(how, most=10), DummyRegressor()], rows=rows)
    assert selection.names[2:] == ("dummyregressor", "dummyregressor")
    assert [set(errors) for errors in selection.candidate_errors] == [
        {"failing", "dummyregressor"},
        {"failing", "dummyregressor"},
        {"dummyregressor"},
        {"dummyregressor"},
    ]


def test_a_candidate_that_fails_on_all_rows_only_gives_way_to_the_next_best() -> None:
    with pytest.warns(UserWarning, match="candidate 'failing' was dropped for learner 'a'"):
        selection = select_models(
            np.zeros((20, 1)),
            np.zeros(20),
            groups=["a"] * 20,
            candidates=[Failing(most=10), DummyRegressor(strategy="constant", constant=1.0)],
        )
    assert selection.names == ("dummyregressor",)
    assert selection.errors.tolist() == [1.0]


def test_a_learner_all_of_whose_candidates_fail_is_named_with_the_causes() -> None:
    with pytest.raises(ValueError) as caught:
        select({"one": Failing("raise"), "two": Failing("nan")})
    message = str(caught.value)
    assert "learner 'learner 00'" in message
    assert "one: RuntimeError: out of cheese" in message
    assert "two: ValueError: predicted values that are not finite" in message
    assert message.endswith("Give it other candidates or more rows.")
    assert "\n" not in message


def test_weights_reach_candidates_and_errors() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 5, len(DATA.y))
    selection = select(sample_weight=weight)
    for j, learner in enumerate(NAMES):
        X, y = rows_of(learner)
        mine, folds = weight[DATA.groups == learner], selection.folds[j]
        model = LinearRegression().fit(X, y, sample_weight=mine)
        assert_allclose(selection.models[j].coef_, model.coef_)
        assert_allclose(selection.errors[j], np.average((y - model.predict(X)) ** 2, weights=mine))
        half = LinearRegression().fit(X[folds == 1], y[folds == 1], sample_weight=mine[folds == 1])
        squares = (y - half.predict(X))[folds == 0] ** 2
        assert_allclose(selection.held_out_errors[j], np.average(squares, weights=mine[folds == 0]))


def test_weights_reach_a_candidate_inside_a_pipeline() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 5, len(DATA.y))
    scaled = {"scaled": make_pipeline(StandardScaler(), Ridge())}
    plain, weighted = select(scaled), select(scaled, sample_weight=weight)
    assert not np.allclose(plain.models[0][-1].coef_, weighted.models[0][-1].coef_)


def test_a_candidate_that_takes_no_weights_is_fitted_without() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 5, len(DATA.y))
    knn = KNeighborsRegressor(3)
    plain, weighted = select([knn]), select([knn], sample_weight=weight)
    assert np.array_equal(plain.residuals[0], weighted.residuals[0])
    assert plain.held_out_errors[0] != weighted.held_out_errors[0]


def test_rows_of_weight_zero_are_as_good_as_dropped() -> None:
    weight = np.ones(len(DATA.y))
    weight[::3] = 0
    with_zeros, dropped = (
        select("linear", sample_weight=weight),
        select("linear", rows=np.flatnonzero(weight)),
    )
    assert with_zeros.n_rows.tolist() == dropped.n_rows.tolist()
    assert with_zeros.names == dropped.names
    assert_allclose(with_zeros.errors, dropped.errors)
    assert_allclose(with_zeros.noise, dropped.noise)


def test_the_unit_of_the_weights_does_not_matter() -> None:
    weight = np.random.default_rng(0).uniform(0.1, 5, len(DATA.y))
    one, thousand = select(sample_weight=weight), select(sample_weight=1000 * weight)
    assert_allclose(one.errors, thousand.errors)
    assert_allclose(one.noise, thousand.noise)


def test_learners_of_too_few_rows_are_named() -> None:
    rows = np.r_[0:20, 20:23]
    with pytest.raises(ValueError, match=r"Learner 'learner 01' has fewer than 4 rows \(n_samples = 3\)"):
        select(rows=rows)


def test_a_candidate_s_own_complaints_are_not_passed_on() -> None:
    # Eight rows of six predictors make LassoCV complain; a search over small fits would never be quiet.
    rng = np.random.default_rng(0)
    select_models(rng.normal(size=(8, 6)), rng.normal(size=8), candidates=["lasso", "lars"])


def test_one_learner_in_units_a_billion_times_smaller_leaves_the_noise_of_the_others() -> None:
    data = make_linear_learners(n_learners=5, n_truths=1, n_rows=30, n_features=2, random_state=0)
    y = np.where(data.groups == data.groups[-1], 1e9 * data.y, data.y)
    usual = select_models(data.X, data.y, data.groups, candidates=["lr"])
    found = select_models(data.X, y, data.groups, candidates=["lr"])
    assert_allclose(found.clips[:4], usual.clips[:4])
    assert_allclose(found.noise[:4], usual.noise[:4], rtol=0.5)


IN_TIME = make_stress("AR(1) noise .7, one truth", 1000)


def select_in_time(**options: Any) -> Selection:
    return select_models(IN_TIME.X, IN_TIME.y, IN_TIME.groups, candidates=["lr"], **options)


def test_rows_in_time_order_are_held_out_in_blocks() -> None:
    selection = select_in_time()
    assert selection.in_order
    assert selection.dependent
    # 5.7 for an AR(1) of .7; residuals about the mean of forty rows show less.
    assert 2.5 < selection.inflation < 6
    for folds, training in zip(selection.folds, selection.training, strict=True):
        assert folds.tolist() == [0] * 40 + [1] * 40
        np.testing.assert_array_equal(training, folds != np.arange(2)[:, None])


def test_the_order_of_rows_may_be_left_alone() -> None:
    for selection in (select_in_time(order=None), select_in_time(splitter=ShuffleSplit(3))):
        assert not selection.in_order
    assert not select_in_time(order=None).dependent
    assert select_in_time(order=None).inflation == 1.0
    # Blocks that were asked for know the dependence as well.
    assert select_in_time(splitter=KFold(2)).inflation == select_in_time().inflation


def test_shuffled_rows_are_independent() -> None:
    order = np.random.default_rng(0).permutation(len(IN_TIME.y))
    rows = IN_TIME.X[order], IN_TIME.y[order], IN_TIME.groups[order]
    selection, alike = (select_models(*rows, candidates=["lr"], order=how) for how in ("auto", None))
    assert not selection.dependent
    for mine, theirs in zip(selection.residuals, alike.residuals, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_an_unknown_order_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'order' option must be one of 'auto', None"):
        select_in_time(order="time")
