"""What is hard is answered all the same: finite predictions, finite gains, labels that are labels."""

import warnings
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners

TRUTHS = [[2, 0, 1], [-2, 1, 0]]
DATA = make_linear_learners(6, n_rows=24, coefficients=TRUTHS, random_state=0)
OWNER = np.repeat(np.arange(6), 24)

settings = pytest.mark.parametrize(
    "options",
    [
        {},
        {"refine": "average", "collaboration": "average"},
        {"refine": None, "collaboration": "local"},
        {"standardize": "learner"},
        {"robust": True, "scale": "median"},
        {"candidates": ["knn"]},
        {"candidates": "linear"},
    ],
    ids=lambda options: ",".join(f"{k}={v}" for k, v in options.items()) or "default",
)


def answered(X: Any, y: Any, groups: Any, **options: Any) -> CoterieRegressor:
    """Fit, and check what every answer must have."""
    model = CoterieRegressor(**{"candidates": ["lr"], **options}).fit(X, y, groups=groups)
    partition, gains = model.partition_, model.gains_
    sizes = np.bincount(partition.labels)
    assert partition.n_clusters == model.n_clusters_ == len(sizes)
    assert sizes.min() > 0
    assert np.all(np.diff(sizes) <= 0)
    assert set(model.learner_labels_.tolist()) <= set(range(model.n_clusters_))
    for part in (partition.similarity, partition.eigenvalues, partition.embedding):
        assert np.isfinite(part).all()
    assert_allclose(np.linalg.norm(partition.embedding, axis=1), 1.0)
    assert partition.scale > 0
    assert np.isfinite(model.predict(X, groups=groups)).all()
    assert np.isfinite(gains["error_with"]).all()
    assert np.isfinite(gains["error_all"]).all()
    # A learner without a model of its own has no error alone, and no gain; the others have both.
    defined = gains["model"] != ""
    assert np.isfinite(gains["error_alone"][defined]).all()
    assert np.isfinite(gains["gain"][defined]).all()
    assert len(str(gains).splitlines()) == len(model.learner_ids_) + 1
    return model


@settings
def test_one_learner_only(options: dict[str, Any]) -> None:
    model = answered(DATA.X, DATA.y, np.repeat("alone", len(DATA.y)), **options)
    assert model.learner_labels_.tolist() == [0]
    assert_allclose(model.gains_["gain"], 0.0, atol=1e-12)


@pytest.mark.parametrize("rule", ["gap", "gap-jump", "eigengap", "penalty", "cv", "held-out", 1])
def test_one_learner_only_by_every_rule(rule: Any) -> None:
    model = answered(DATA.X, DATA.y, np.repeat("alone", len(DATA.y)), n_clusters=rule)
    assert model.learner_labels_.tolist() == [0]


@pytest.mark.parametrize("rule", ["auto", "gap", "gap-jump", "eigengap", "penalty", "cv", 1, 2])
def test_two_learners_only(rule: Any) -> None:
    model = answered(DATA.X[:48], DATA.y[:48], OWNER[:48], n_clusters=rule)
    assert model.n_clusters_ == (
        rule if isinstance(rule, int) else model.partition_.curves[model.partition_.rule].chosen
    )


@settings
def test_all_learners_identical(options: dict[str, Any]) -> None:
    X, y = np.tile(DATA.X[:24], (6, 1)), np.tile(DATA.y[:24], 6)
    model = answered(X, y, OWNER, **options)
    assert model.n_clusters_ == 1


@pytest.mark.parametrize("rule", ["gap", "gap-jump", "eigengap", "penalty", "cv", 3, 6])
def test_all_learners_identical_by_every_rule(rule: Any) -> None:
    X, y = np.tile(DATA.X[:24], (6, 1)), np.tile(DATA.y[:24], 6)
    answered(X, y, OWNER, n_clusters=rule)


@settings
@pytest.mark.parametrize("constant", [0.0, 5.3])
def test_a_constant_response(constant: float, options: dict[str, Any]) -> None:
    model = answered(DATA.X, np.full(len(DATA.y), constant), OWNER, **options)
    assert model.n_clusters_ == 1
    assert_allclose(model.predict(DATA.X, groups=OWNER), constant, atol=1e-12)


@pytest.mark.parametrize("collaboration", ["pooled", "local", "global"])
@pytest.mark.parametrize("constant", [1e-12, -1e12])
def test_a_constant_response_that_is_tiny_or_huge(constant: float, collaboration: str) -> None:
    answered(DATA.X, np.full(len(DATA.y), constant), OWNER, collaboration=collaboration)


def test_a_constant_response_that_is_huge_and_averaged() -> None:
    answered(DATA.X, np.full(len(DATA.y), -1e12), OWNER, collaboration="average")


@settings
def test_a_response_that_is_constant_for_one_learner(options: dict[str, Any]) -> None:
    y = np.where(OWNER == 0, 3.3, DATA.y)
    model = answered(DATA.X, y, OWNER, **options)
    assert np.isfinite(model.exchange_.losses).all()


@settings
def test_constant_and_duplicated_columns(options: dict[str, Any]) -> None:
    X = np.column_stack([DATA.X, np.ones(len(DATA.y)), np.full(len(DATA.y), -7e5), DATA.X[:, 0]])
    model = answered(X, DATA.y, OWNER, n_clusters=2, **options)
    if options.get("candidates") != ["knn"]:
        assert model.learner_labels_.tolist() == DATA.truth.tolist()


@settings
def test_a_column_that_is_constant_for_some_learners_only(options: dict[str, Any]) -> None:
    X = np.column_stack([DATA.X, np.where(OWNER < 3, 1.0, np.arange(len(OWNER)))])
    answered(X, DATA.y, OWNER, n_clusters=2, **options)


@settings
def test_more_predictors_than_rows(options: dict[str, Any]) -> None:
    X = np.column_stack([DATA.X, np.random.default_rng(0).normal(size=(len(DATA.y), 40))])
    answered(X, DATA.y, OWNER, **options)


def test_many_more_predictors_than_rows_and_than_solving_pays() -> None:
    X = np.column_stack([DATA.X, np.random.default_rng(0).normal(size=(len(DATA.y), 160))])
    answered(X, DATA.y, OWNER, candidates=["ridge"])


@settings
def test_learners_of_one_to_five_rows_beside_large_ones(options: dict[str, Any]) -> None:
    small = make_linear_learners(5, n_rows=[1, 2, 3, 4, 5], coefficients=TRUTHS, random_state=1)
    X, y = np.vstack([small.X, DATA.X]), np.r_[small.y, DATA.y]
    groups = np.r_[[f"small {name}" for name in small.groups], DATA.groups]
    model = answered(X, y, groups, n_clusters=2, **options)
    assert len(model.learner_ids_) == 11
    assert model.gains_["n_rows"].tolist() == [1, 2, 3, 4, 5, *[24] * 6]
    assert np.isnan(model.gains_["error_alone"][:5]).all()
    if options.get("candidates") != ["knn"]:
        assert model.learner_labels_[5:].tolist() == DATA.truth.tolist()


@settings
def test_learners_of_four_and_five_rows_only(options: dict[str, Any]) -> None:
    if options.get("candidates") == ["knn"]:
        # Five neighbours cannot be found among the two rows that train.
        options = {"candidates": ["knn", "lr"]}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The candidate 'knn' was dropped")
        few_rows(options)


def few_rows(options: dict[str, Any]) -> None:
    data = make_linear_learners(8, n_rows=[4, 5] * 4, coefficients=TRUTHS, random_state=1)
    answered(data.X, data.y, data.groups, **options)


class Moody(RegressorMixin, BaseEstimator):
    """Fails for rows whose mean response is low, by raising or by predicting NaN."""

    def __init__(self, how: str = "raise") -> None:
        self.how = how

    def fit(self, X: Any, y: Any) -> Any:
        self.low_ = y.mean() < 5
        if self.low_ and self.how == "raise":
            raise RuntimeError("not in the mood")
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), np.nan) if self.low_ else self.line_.predict(X)


@pytest.mark.parametrize("how", ["raise", "nan"])
def test_a_candidate_that_fails_in_some_learners(how: str) -> None:
    y = DATA.y + 10.0 * (OWNER % 3 == 0)
    candidates = {"moody": Moody(how), "mean": LinearRegression()}
    with pytest.warns(UserWarning, match="candidate 'moody' was dropped for learner 1, 2, 4, 5: "):
        model = answered(DATA.X, y, OWNER, candidates=candidates)
    assert set(model.selection_.names[1:3]) == {"mean"}


class Modest(RegressorMixin, BaseEstimator):
    """A line through a few rows; many are too many for it."""

    def fit(self, X: Any, y: Any) -> Any:
        if len(y) > 30:
            raise ValueError("too many rows")
        self.line_ = LinearRegression().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.line_.predict(X)


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local"])
def test_a_candidate_that_fails_on_pooled_rows_only(collaboration: str) -> None:
    # Everybody's own choice, but no cluster's.
    candidates = {"modest": Modest(), "knn": KNeighborsRegressor(2)}
    model = answered(DATA.X, DATA.y, OWNER, candidates=candidates, collaboration=collaboration)
    assert set(model.selection_.names) == {"modest"}
    assert model.learner_labels_.tolist() == DATA.truth.tolist()


class Local(RegressorMixin, BaseEstimator):
    """A line near the rows that it has seen, NaN far from them."""

    def fit(self, X: Any, y: Any) -> Any:
        self.line_ = LinearRegression().fit(X, y)
        self.middle_ = X.mean(axis=0)
        return self

    def predict(self, X: Any) -> Any:
        far = np.abs(X - self.middle_).max(axis=1) > 50
        return np.where(far, np.nan, self.line_.predict(X))


@pytest.mark.parametrize("n_clusters", ["auto", 2])
@pytest.mark.parametrize("refine", ["pooled", "average", None])
@pytest.mark.parametrize("collaboration", ["average", "local"])
def test_a_model_that_fails_on_the_rows_of_others(
    n_clusters: Any, refine: str | None, collaboration: str
) -> None:
    X = DATA.X + 100.0 * (OWNER == 2)[:, None]
    sets = {j: {"line": LinearRegression()} for j in range(6)}
    sets[2] = {"local": Local()}
    with pytest.warns(UserWarning, match="model of learner 2 gave losses that are not finite"):
        model = answered(
            X,
            DATA.y,
            OWNER,
            candidates=sets,
            n_clusters=n_clusters,
            refine=refine,
            collaboration=collaboration,
        )
    assert (model.learner_labels_ == model.learner_labels_[2]).sum() == 1
    assert any("Learner 2 stands alone" in note for note in model.partition_.notes)
    # A newcomer is placed beside the others.
    labels = model.admit(X[OWNER == 0], DATA.y[OWNER == 0], groups=["new"] * 24)
    assert labels[0] == model.learner_labels_[0]


@settings
@pytest.mark.parametrize("unit", [1e-12, 1e12])
def test_responses_of_any_size(unit: float, options: dict[str, Any]) -> None:
    model = answered(DATA.X, DATA.y * unit, OWNER, n_clusters=2, **options)
    plain = answered(DATA.X, DATA.y, OWNER, n_clusters=2, **options)
    assert model.learner_labels_.tolist() == plain.learner_labels_.tolist()
    assert_allclose(model.gains_["gain"], plain.gains_["gain"], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("rule", ["auto", "gap", "gap-jump", "eigengap", "penalty", "cv", 2])
@pytest.mark.parametrize("scale", [1e9, 1e-9])
def test_a_similarity_graph_that_falls_apart_or_is_all_one(rule: Any, scale: float) -> None:
    model = answered(DATA.X, DATA.y, OWNER, n_clusters=rule, scale=scale)
    if rule in ("auto", "cv", 2) and scale == 1e9:
        assert model.learner_labels_.tolist() == DATA.truth.tolist()


def test_truths_so_far_apart_that_every_similarity_between_them_underflows() -> None:
    far = make_linear_learners(6, n_rows=24, coefficients=1e6 * np.array(TRUTHS), noise_variance=1.0)
    model = answered(far.X, far.y, OWNER)
    assert model.learner_labels_.tolist() == far.truth.tolist()
    assert model.partition_.similarity[0, 1] == 0


@settings
def test_no_noise_at_all(options: dict[str, Any]) -> None:
    answered(DATA.X, DATA.signal, OWNER, n_clusters=2, **options)


@pytest.mark.parametrize("refine", ["pooled", "average", None])
def test_truths_without_noise_are_told_apart(refine: str | None) -> None:
    model = answered(DATA.X, DATA.signal, OWNER, refine=refine)
    assert model.learner_labels_.tolist() == DATA.truth.tolist()


def test_learners_with_two_constant_responses_are_two_clusters() -> None:
    model = answered(DATA.X, np.array([0.1, 0.2])[OWNER % 2], OWNER)
    assert model.learner_labels_.tolist() == [0, 1, 0, 1, 0, 1]


def test_learners_without_common_ground() -> None:
    # Every learner sees its own stretch of x only; nobody's model says anything of anybody else's rows.
    X = DATA.X * 0.01 + 100.0 * OWNER[:, None]
    answered(X, DATA.y, OWNER)
    answered(X, DATA.y, OWNER, candidates=["knn"])


def test_one_outlying_row_does_not_drive_the_others_apart() -> None:
    y = DATA.y.copy()
    y[5] = 1e6
    with pytest.warns(UserWarning, match="the row was set aside"):
        others = answered(DATA.X, y, OWNER).learner_labels_[1:]
    assert (others == others[0]).tolist() == (DATA.truth[1:] == DATA.truth[1]).tolist()


@pytest.mark.parametrize("level", [10, 100, 1000, 1e4])
def test_levels_that_lie_far_apart_do_not_drive_everybody_apart(level: float) -> None:
    # One slope, two levels, and noise that is small beside what lies between them.
    noise = 0.1 * np.random.default_rng(0).normal(size=len(OWNER))
    model = answered(DATA.X, DATA.X @ [1, 1, 1] + level * (OWNER % 2) + noise, OWNER)
    assert model.learner_labels_.tolist() == [0, 1, 0, 1, 0, 1]
    assert model.partition_.clear


def test_integers_booleans_and_single_precision_are_numbers() -> None:
    X = np.round(DATA.X * 3)
    expected = answered(X, np.round(DATA.y), OWNER, n_clusters=2).predict(X, groups=OWNER)
    for dtype in (np.int32, np.float32):
        model = answered(X.astype(dtype), np.round(DATA.y).astype(dtype), OWNER, n_clusters=2)
        assert_allclose(model.predict(X.astype(dtype), groups=OWNER), expected, rtol=1e-6, atol=1e-6)
    answered(DATA.X > 0, DATA.y > 0, OWNER, n_clusters=2)


def test_many_learners_of_one_name_each_in_another_type() -> None:
    groups = np.array([*["1"] * 72, *[1] * 72], dtype=object)
    model = answered(DATA.X, DATA.y, groups, n_clusters=2)
    assert model.learner_ids_.tolist() == ["1", 1]
