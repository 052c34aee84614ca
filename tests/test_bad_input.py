"""What cannot be answered is refused in one sentence that names the culprit and a remedy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, cross_val_score

from coterie import CoterieRegressor, select_models
from coterie.datasets import make_linear_learners

DATA = make_linear_learners(4, n_rows=20, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)
SITES = np.repeat(["north", "east", "south", "west"], 20)
FRAME = pd.DataFrame(DATA.X, columns=["age", "dose", "weight"])
MAKERS: dict[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": pa.Table.from_pandas,
}


class Hopeless(RegressorMixin, BaseEstimator):
    """Cannot be fitted."""

    def fit(self, X: Any, y: Any) -> Any:
        raise RuntimeError("out of cheese")

    def predict(self, X: Any) -> Any:
        raise NotImplementedError


class Counting(LinearRegression):
    """Counts how often it is fitted."""

    fits = 0

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        type(self).fits += 1
        return super().fit(X, y, sample_weight)


def fit(X: Any = DATA.X, y: Any = DATA.y, groups: Any = SITES, weight: Any = None, **options: Any) -> Any:
    model = CoterieRegressor(**{"candidates": ["lr"], "n_clusters": 2, **options})
    extra = {} if weight is None else {"sample_weight": weight}
    return model.fit(X, y, groups=groups, **extra)


def refusal(call: Callable[[], Any], kind: type[Exception] = ValueError) -> str:
    """Return the sentence with which a call is refused, checked to be one."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    message = str(error)
    # A kind of its own is one of ours, no accident of a library.
    assert type(error) is kind or type(error).__module__.startswith("coterie.")
    assert "\n" not in message.strip(), message
    assert len(message) < 400
    # Another library's error must not stand above ours.
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    return message


def with_cell(value: float, row: int = 45, column: int = 1) -> Any:
    """Put a value into the rows of south, the third learner."""
    X = DATA.X.copy()
    X[row, column] = value
    return X


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_a_predictor_that_is_not_finite_is_named_with_its_learner(value: float, what: str) -> None:
    message = refusal(lambda: fit(with_cell(value)))
    assert f"contains {what} in column 1 of learner 'south'" in message
    assert "Impute or drop these rows" in message
    table = pd.DataFrame(with_cell(value), columns=FRAME.columns)
    named = refusal(lambda: select_models(table, DATA.y, SITES, candidates=["lr"]))
    assert f"contains {what} in column 'dose' of learner 'south'" in named


@pytest.mark.parametrize("kind", list(MAKERS))
def test_a_gap_in_a_table_is_named_with_its_learner(kind: str) -> None:
    table = MAKERS[kind](pd.DataFrame(with_cell(np.nan), columns=FRAME.columns).astype("Float64"))
    message = refusal(lambda: select_models(table, DATA.y, SITES, candidates=["lr"]))
    assert "contains NaN in column 'dose' of learner 'south'" in message


def test_a_predictor_that_is_not_finite_is_named_in_predict_and_admit_too() -> None:
    model, frame = fit(FRAME), pd.DataFrame(with_cell(np.nan), columns=FRAME.columns)
    message = refusal(lambda: model.predict(frame, groups=SITES))
    assert "CoterieRegressor.predict contains NaN in column 'dose' of learner 'south'" in message
    message = refusal(lambda: model.admit(frame, DATA.y, groups=np.char.add(SITES, "east")))
    assert "CoterieRegressor.admit contains NaN in column 'dose' of learner 'southeast'" in message


@pytest.mark.parametrize(("value", "what"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_a_response_that_is_not_finite_is_named_with_its_learner(value: float, what: str) -> None:
    y = DATA.y.copy()
    y[70] = value
    message = refusal(lambda: fit(y=y))
    assert f"Input y of CoterieRegressor.fit contains {what} in the rows of learner 'west'" in message
    assert "Drop the rows" in message


@pytest.mark.parametrize("kind", list(MAKERS))
def test_columns_that_are_not_numeric_are_named(kind: str) -> None:
    frame = FRAME.assign(colour="red", born=pd.Timestamp("2001-02-03"))
    message = refusal(lambda: select_models(MAKERS[kind](frame), DATA.y, SITES, candidates=["lr"]))
    assert "'colour', 'born'" in message
    assert "OneHotEncoder" in message


def test_a_text_in_an_array_is_named_with_its_column() -> None:
    X = DATA.X.astype(object)
    X[45, 1] = "red"
    message = refusal(lambda: fit(X))
    assert "column 1" in message
    assert "OneHotEncoder" in message or "encode" in message.lower()


def test_groups_of_the_wrong_length_are_counted() -> None:
    message = refusal(lambda: fit(groups=SITES[:-2]))
    assert message == (
        "The 'groups' argument of CoterieRegressor.fit must have one entry per row of X (80). Got 78."
    )
    model = fit()
    message = refusal(lambda: model.predict(DATA.X, groups=SITES[:3]))
    assert "CoterieRegressor.predict must have one entry per row of X (80). Got 3" in message


@pytest.mark.parametrize(
    "groups",
    [
        np.where(np.arange(80) < 3, np.nan, 1.0),
        pd.Series([None, None, None, *SITES[3:]]),
        pl.Series([None, None, None, *SITES[3:].tolist()]),
        np.array([None, None, None, *SITES[3:]], dtype=object),
        pd.Series([pd.NA, pd.NA, pd.NA, *SITES[3:]], dtype="string"),
    ],
)
def test_groups_with_gaps_are_counted(groups: Any) -> None:
    message = refusal(lambda: fit(groups=groups))
    assert "3 entries are missing: drop these rows or give them an id" in message


def test_groups_of_two_dimensions_are_refused() -> None:
    assert "one id per row of X. Got the shape (80, 2)" in refusal(lambda: fit(groups=np.zeros((80, 2))))


def test_a_missing_column_of_groups_lists_the_columns() -> None:
    message = refusal(lambda: fit(FRAME, groups="site"))
    assert "'site' of CoterieRegressor.fit is not a column of X" in message
    assert "'age', 'dose', 'weight'" in message
    message = refusal(lambda: fit(FRAME, groups=None, group_column="site"))
    assert "'age', 'dose', 'weight'" in message
    message = refusal(lambda: fit(groups=None, group_column=7))
    assert "column 7 of CoterieRegressor.fit is not a column of X, which has the shape (80, 3)" in message


def test_a_name_for_the_groups_needs_a_table() -> None:
    assert "needs X to be a table with named columns" in refusal(lambda: fit(groups="site"))


def test_missing_groups_at_predict_are_asked_for() -> None:
    model = fit()
    message = refusal(lambda: model.predict(DATA.X))
    assert (
        message
        == "CoterieRegressor.predict needs to know whose rows these are: pass groups, one id per row of X."
    )
    by_column = fit(FRAME.assign(site=SITES), groups="site")
    message = refusal(lambda: by_column.predict(FRAME))
    assert "'site' of CoterieRegressor.predict is not a column of X" in message


def test_a_learner_of_too_few_rows_is_named_when_small_learners_raise() -> None:
    message = refusal(lambda: fit(DATA.X[:65], DATA.y[:65], SITES[:65], small_learners="raise"))
    assert "Too few rows for learner 'west': fewer than 11 (n_samples = 5)" in message
    assert "min_rows" in message
    assert "small_learners='admit'" in message


@pytest.mark.parametrize("small_learners", ["admit", "drop"])
def test_learners_all_of_whom_have_too_few_rows_are_refused(small_learners: str) -> None:
    message = refusal(lambda: fit(min_rows=21, small_learners=small_learners))
    assert "No learner has the 21 rows" in message
    assert "lower min_rows" in message


@pytest.mark.parametrize("count", [0, -3, 2.0, None, True])
def test_a_number_of_clusters_below_one_is_refused(count: Any) -> None:
    message = refusal(lambda: fit(n_clusters=count))
    assert message == f"The 'n_clusters' option must be an integer of at least 1. Got {count!r}."


def test_more_clusters_than_learners_are_refused() -> None:
    message = refusal(lambda: fit(n_clusters=5))
    assert message == "The 'n_clusters' option must not exceed the number of learners (4). Got 5."


def test_small_learners_do_not_count_for_the_number_of_clusters() -> None:
    message = refusal(lambda: fit(DATA.X[:65], DATA.y[:65], SITES[:65], n_clusters=4))
    assert "number of learners (3). Got 4" in message


def test_an_unknown_rule_lists_the_known_ones() -> None:
    message = refusal(lambda: fit(n_clusters="elbow"))
    assert message.endswith("Got 'elbow'.")
    for rule in ("auto", "held-out", "gap", "gap-jump", "eigengap", "penalty", "cv"):
        assert f"'{rule}'" in message


@pytest.mark.parametrize("candidates", ["fast", ["lr", "fast"], {"mine": "fast"}])
def test_an_unknown_preset_lists_the_known_ones(candidates: Any) -> None:
    message = refusal(lambda: fit(candidates=candidates))
    assert "'fast' is not known" in message
    for name in (
        "default",
        "linear",
        "paper",
        "rf",
        "knn",
        "svr",
        "nn",
        "gb",
        "lasso",
        "lars",
        "en",
        "ridge",
    ):
        assert f"'{name}'" in message


@pytest.mark.parametrize("candidates", [[], {}, 3, LinearRegression, ["lr", 3], {"mine": 3}])
def test_what_is_no_candidate_is_refused(candidates: Any) -> None:
    assert "candidate" in refusal(lambda: fit(candidates=candidates))


def test_a_learner_all_of_whose_candidates_fail_is_named_with_the_causes() -> None:
    sets: dict[str, Any] = {site: {"line": LinearRegression()} for site in ("north", "east", "west")}
    sets["south"] = {"one": Hopeless(), "two": Hopeless()}
    message = refusal(lambda: fit(candidates=sets))
    assert "No candidate could be fitted for learner 'south'" in message
    assert "one: RuntimeError: out of cheese; two: RuntimeError: out of cheese" in message
    assert "Give it other candidates or more rows" in message


def test_a_learner_without_candidates_is_named() -> None:
    message = refusal(lambda: fit(candidates={"north": "lr", "east": "lr", "south": "lr"}))
    assert "no candidates for learner 'west'" in message


def test_unknown_learners_at_predict_are_named() -> None:
    model = fit(unknown_learners="raise")
    message = refusal(lambda: model.predict(DATA.X[:3], groups=["north", "mars", "venus"]))
    assert "Learners 'mars', 'venus' were not seen in fit: use admit to place newcomers" in message
    assert "unknown_learners='warn'" in message
    many = refusal(lambda: model.predict(DATA.X[:9], groups=np.arange(9)))
    assert "0, 1, 2, 3, 4 and 4 more" in many


@pytest.mark.parametrize("options", [{}, {"standardize": "learner"}, {"collaboration": "local"}])
def test_unknown_learners_are_predicted_by_what_all_share_with_a_warning(options: dict[str, Any]) -> None:
    model = fit(**options)
    ids = np.array(["mars", "north", "venus"])
    with pytest.warns(
        UserWarning, match="Learners 'mars', 'venus' were not seen in fit, and are predicted by"
    ):
        found = model.predict(DATA.X[[0, 0, 0]], groups=ids)
    assert np.isfinite(found).all()
    # Whoever is unknown is predicted alike, and known learners as ever.
    assert found[0] == found[2]
    assert found[1] == model.predict(DATA.X[:1], groups=["north"])[0]


def test_cross_validation_leaves_out_whole_learners() -> None:
    with pytest.warns(UserWarning, match="was not seen in fit"):
        scores = cross_val_score(
            CoterieRegressor(["lr"], n_clusters=1, n_bootstrap=0, group_column=0),
            np.column_stack([np.repeat(np.arange(4.0), 20), DATA.X]),
            DATA.y,
            cv=KFold(4),
        )
    assert np.isfinite(scores).all()


def test_a_learner_who_was_dropped_is_unknown() -> None:
    few = {"small_learners": "drop", "unknown_learners": "raise"}
    model = fit(DATA.X[:65], DATA.y[:65], SITES[:65], **few)
    assert "'west' was not seen in fit" in refusal(lambda: model.predict(DATA.X[60:], groups=SITES[60:]))


@pytest.mark.parametrize("kind", list(MAKERS))
@pytest.mark.parametrize("method", ["predict", "admit"])
def test_columns_that_differ_from_those_of_fit_are_named(kind: str, method: str) -> None:
    model = fit(MAKERS[kind](FRAME))
    y, ids = ([], SITES) if method == "predict" else ([DATA.y], np.char.add(SITES, "east"))

    def attempt(frame: pd.DataFrame) -> str:
        # The sentence is scikit-learn's own, which lists the names line by line.
        with pytest.raises(ValueError, match="feature names should match") as caught:
            getattr(model, method)(MAKERS[kind](frame), *y, groups=ids)
        return str(caught.value)

    renamed = attempt(FRAME.rename(columns={"dose": "drug"}))
    assert "drug" in renamed
    assert "dose" in renamed
    assert "dose" in attempt(FRAME.drop(columns="dose"))
    assert "extra" in attempt(FRAME.assign(extra=1.0))
    assert "same order" in attempt(FRAME[["weight", "age", "dose"]])


def test_another_number_of_columns_is_counted() -> None:
    model = fit()
    message = refusal(lambda: model.predict(DATA.X[:, :2], groups=SITES))
    assert message == "X has 2 features, but CoterieRegressor is expecting 3 features as input."


@pytest.mark.parametrize("kind", [scipy.sparse.csr_array, scipy.sparse.csc_matrix, scipy.sparse.coo_array])
def test_sparse_predictors_are_refused(kind: Any) -> None:
    for call in (lambda: fit(kind(DATA.X)), lambda: fit().predict(kind(DATA.X), groups=SITES)):
        message = refusal(call, TypeError)
        assert "Sparse data was passed" in message
        assert "toarray" in message


def test_complex_predictors_are_refused() -> None:
    assert "omplex" in refusal(lambda: fit(DATA.X.astype(complex)))


def test_complex_responses_are_refused() -> None:
    message = refusal(lambda: fit(y=DATA.y.astype(complex)))
    assert "Complex data not supported in y of CoterieRegressor.fit: pass real numbers" in message


@pytest.mark.parametrize("table", [DATA.X[:0], FRAME[:0], pl.from_pandas(FRAME[:0]), []])
def test_no_rows_are_refused(table: Any) -> None:
    if isinstance(table, list):
        # scikit-learn's sentence about one dimension is demanded by its own checks.
        with pytest.raises(ValueError, match="Expected 2D array"):
            fit(table, [], [])
        return
    assert "0 sample(s)" in refusal(lambda: fit(table, DATA.y[:0], SITES[:0]))
    model = fit(FRAME if hasattr(table, "columns") else DATA.X)
    assert "0 sample(s)" in refusal(lambda: model.predict(table, groups=SITES[:0]))


@pytest.mark.parametrize("table", [DATA.X[:, :0], FRAME[[]]])
def test_no_columns_are_refused(table: Any) -> None:
    assert "0 feature(s)" in refusal(lambda: fit(table))


def test_a_table_of_nothing_but_ids_is_refused() -> None:
    message = refusal(lambda: fit(pd.DataFrame({"site": SITES}), groups="site"))
    assert "0 feature(s)" in message


@pytest.mark.parametrize("scale", [0, -1.0, np.nan, np.inf, None, True])
def test_a_scale_that_is_not_positive_is_refused(scale: Any) -> None:
    message = refusal(lambda: fit(scale=scale))
    assert message == (f"The 'scale' option must be a positive number or 'noise' or 'median'. Got {scale!r}.")


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("scale", ["'noise'", "'median'"]),
        ("refine", ["'pooled'", "'average'", "None"]),
        ("collaboration", ["'pooled'", "'average'", "'local'", "'global'"]),
        ("robust", ["True", "False"]),
        ("standardize", ["'learner'", "None"]),
        ("small_learners", ["'admit'", "'drop'", "'raise'"]),
        ("engine", ["None", "'threads'"]),
    ],
)
def test_an_unknown_option_lists_the_known_ones(option: str, known: list[str]) -> None:
    message = refusal(lambda: fit(**{option: "strange"}))
    assert f"'{option}' option" in message
    assert "Got 'strange'" in message
    for value in known:
        assert value in message


@pytest.mark.parametrize(
    "options",
    [
        {"n_clusters": "elbow"},
        {"n_clusters": 0},
        {"refine": "strange"},
        {"collaboration": "strange"},
        {"min_rows": 1},
        {"engine": "strange"},
        {"scale": -1},
        {"scale": "strange"},
        {"max_clusters": 0},
        {"n_clusters": 99},
    ],
)
def test_options_are_checked_before_any_model_is_fitted(options: dict[str, Any]) -> None:
    Counting.fits = 0
    refusal(lambda: fit(**{"candidates": [Counting()], **options}))
    assert Counting.fits == 0


def test_a_response_of_another_length_is_counted() -> None:
    message = refusal(lambda: fit(y=DATA.y[:-1]))
    assert "'y' argument of CoterieRegressor.fit must have one entry per row of X (80). Got 79" in message


def test_a_missing_response_is_asked_for() -> None:
    assert "requires y to be passed" in refusal(lambda: fit(y=None))


def test_a_response_of_classes_is_refused() -> None:
    assert "must be numeric: fit classes with CoterieClassifier" in refusal(lambda: fit(y=SITES))


@pytest.mark.parametrize(
    ("weight", "sentence"),
    [
        (np.ones(79), "one entry per row of X (80). Got the shape (79,)"),
        (np.r_[-1.0, np.ones(79)], "must be finite and non-negative"),
        (np.r_[np.nan, np.ones(79)], "must be finite and non-negative"),
        (np.zeros(80), "at least one positive entry"),
    ],
)
def test_what_is_no_weight_is_refused(weight: Any, sentence: str) -> None:
    assert sentence in refusal(lambda: fit(weight=weight))


def test_an_unknown_argument_of_fit_is_named() -> None:
    message = refusal(lambda: CoterieRegressor().fit(DATA.X, DATA.y, groups=SITES, weights=1), TypeError)
    assert "Got 'weights'" in message


def test_a_known_newcomer_is_named() -> None:
    model = fit()
    message = refusal(lambda: model.admit(DATA.X, DATA.y, groups=SITES))
    assert message == "Learners 'east', 'north', 'south', 'west' are known already: admit takes new ids."


@pytest.mark.parametrize("method", ["predict", "admit", "score"])
def test_a_model_that_is_not_fitted_says_so(method: str) -> None:
    arguments = (DATA.X,) if method == "predict" else (DATA.X, DATA.y)
    call = getattr(CoterieRegressor(), method)
    assert "not fitted yet" in refusal(lambda: call(*arguments, groups=SITES), NotFittedError)


def test_dates_as_a_response_are_refused() -> None:
    message = refusal(lambda: fit(y=np.datetime64("2020-01-01") + np.arange(len(DATA.y))))
    assert "holds dates" in message


def test_columns_of_one_name_are_refused() -> None:
    twice = pd.DataFrame(DATA.X, columns=["a"] * DATA.X.shape[1])
    assert "same name" in refusal(lambda: fit(twice))


def test_ids_from_two_sources_are_refused() -> None:
    message = refusal(lambda: fit(group_column="site"))
    assert "got learner ids twice" in message
