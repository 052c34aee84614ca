"""What must not matter does not: order, names, threads, units, twins."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners

TRUTHS = [[2, 0, 1], [-2, 1, 0]]
SIZES = [20, 22, 24, 26, 28, 30]
DATA = make_linear_learners(6, n_rows=SIZES, coefficients=TRUTHS, random_state=0)
OWNER = np.repeat(np.arange(6), SIZES)
# Truths drawn at random, and more noise: partitions that are not obvious.
HARD = make_linear_learners(8, 3, n_rows=20, n_features=2, noise_variance=0.5, random_state=4)

few = settings(max_examples=6, deadline=None, derandomize=True)
LINEAR = [
    {"candidates": ["lr"]},
    {"candidates": ["ridge"], "refine": "average", "collaboration": "average"},
    {"candidates": ["lr"], "refine": None, "standardize": "learner"},
]
FLEXIBLE = [
    {"candidates": ["rf", "lr"], "n_clusters": 2},
    {"candidates": ["knn"], "n_clusters": 2, "collaboration": "average"},
]
linear_forms = pytest.mark.parametrize("options", LINEAR, ids=["pooled", "average", "paper"])
forms = pytest.mark.parametrize(
    "options", LINEAR + FLEXIBLE, ids=["pooled", "average", "paper", "forest", "knn"]
)


def fit(X: Any, y: Any, groups: Any, **options: Any) -> CoterieRegressor:
    return CoterieRegressor(**{"candidates": ["lr"], **options}).fit(X, y, groups=groups)


def by_learner(model: CoterieRegressor) -> dict[Any, int]:
    return dict(zip(model.learner_ids_.tolist(), model.learner_labels_.tolist(), strict=True))


def same(one: CoterieRegressor, other: CoterieRegressor, X: Any, groups: Any) -> None:
    """Two fits agree for every learner, to the last bit."""
    assert by_learner(one) == by_learner(other)
    assert np.array_equal(one.predict(X, groups=groups), other.predict(X, groups=groups))
    ids = one.selection_.learner_ids
    a, b = one.partition_.aligned_to(ids), other.partition_.aligned_to(ids)
    assert np.array_equal(a.similarity, b.similarity)
    assert np.array_equal(a.embedding, b.embedding)
    assert np.array_equal(one.exchange_.losses, other.exchange_.aligned_to(ids).losses)
    for rule, curve in one.partition_.curves.items():
        assert np.array_equal(curve.values, other.partition_.curves[rule].values, equal_nan=True), rule
    place = {learner: p for p, learner in enumerate(other.gains_["learner"].tolist())}
    order = [place[learner] for learner in one.gains_["learner"].tolist()]
    for name in ("error_alone", "error_with", "error_all", "gain"):
        assert np.array_equal(one.gains_[name], other.gains_[name][order]), name


@forms
def test_the_order_of_the_learners_does_not_matter(options: dict[str, Any]) -> None:
    straight = fit(HARD.X, HARD.y, HARD.groups, **options)
    rng = np.random.default_rng(1)
    rank = dict(zip(HARD.learner_ids.tolist(), rng.permutation(8), strict=True))
    order = np.argsort([rank[g] for g in HARD.groups.tolist()], kind="stable")
    turned = fit(HARD.X[order], HARD.y[order], HARD.groups[order], **options)
    assert turned.learner_ids_.tolist() != straight.learner_ids_.tolist()
    same(straight, turned, HARD.X, HARD.groups)


@few
@given(seed=st.integers(0, 10**6))
def test_mixing_the_rows_of_different_learners_does_not_matter(seed: int) -> None:
    # Each learner's own rows keep their order: its split is drawn by their places.
    slots = np.random.default_rng(seed).permutation(HARD.groups)
    order = np.empty(len(slots), dtype=int)
    for learner in HARD.learner_ids:
        order[slots == learner] = np.flatnonzero(HARD.groups == learner)
    mixed = fit(HARD.X[order], HARD.y[order], HARD.groups[order])
    same(fit(HARD.X, HARD.y, HARD.groups), mixed, HARD.X, HARD.groups)


@forms
def test_the_number_of_threads_does_not_matter(options: dict[str, Any]) -> None:
    one, two = (fit(HARD.X, HARD.y, HARD.groups, n_jobs=n, **options) for n in (1, 2))
    same(one, two, HARD.X, HARD.groups)


def test_a_number_and_its_text_are_the_same_name() -> None:
    numbers = fit(DATA.X, DATA.y, OWNER)
    texts = fit(DATA.X, DATA.y, OWNER.astype(str))
    assert numbers.learner_labels_.tolist() == texts.learner_labels_.tolist()
    assert np.array_equal(
        numbers.predict(DATA.X, groups=OWNER), texts.predict(DATA.X, groups=OWNER.astype(str))
    )


@pytest.mark.parametrize("options", FLEXIBLE, ids=["forest", "knn"])
def test_the_unit_of_the_response_changes_no_label_of_flexible_models(options: dict[str, Any]) -> None:
    # A thousand and twenty-four, for a forest splits elsewhere when a sum is rounded elsewhere.
    plain, scaled = (fit(HARD.X, y, HARD.groups, **options) for y in (HARD.y, HARD.y * 1024))
    assert plain.learner_labels_.tolist() == scaled.learner_labels_.tolist()
    assert_allclose(scaled.gains_["gain"], plain.gains_["gain"], atol=1e-7)


@pytest.mark.parametrize("unit", [1e-12, 1000.0, 1e12])
@linear_forms
def test_the_unit_of_the_response_does_not_matter(unit: float, options: dict[str, Any]) -> None:
    plain, scaled = (fit(HARD.X, y, HARD.groups, **options) for y in (HARD.y, HARD.y * unit))
    assert plain.learner_labels_.tolist() == scaled.learner_labels_.tolist()
    assert plain.selection_.names == scaled.selection_.names
    assert_allclose(
        scaled.predict(HARD.X, groups=HARD.groups), unit * plain.predict(HARD.X, groups=HARD.groups)
    )
    assert_allclose(scaled.partition_.similarity, plain.partition_.similarity, atol=1e-7)
    assert_allclose(scaled.gains_["gain"], plain.gains_["gain"], atol=1e-7)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("refine", ["pooled", "average", None])
def test_the_units_of_the_predictors_do_not_matter_to_linear_models(unit: float, refine: str | None) -> None:
    # Ridge scales its columns; scikit-learn's plain regression gives up columns a millionth of others.
    options = {"candidates": ["ridge"], "refine": refine}
    plain = fit(HARD.X, HARD.y, HARD.groups, **options)
    scaled = fit(HARD.X * [unit, 1.0] + [0.0, 3.0], HARD.y, HARD.groups, **options)
    assert plain.learner_labels_.tolist() == scaled.learner_labels_.tolist()
    assert_allclose(scaled.exchange_.losses, plain.exchange_.losses, rtol=1e-6)


@linear_forms
@pytest.mark.parametrize("constant", [7.0, -1e4])
def test_a_constant_added_to_everybody_s_response_does_not_matter(
    constant: float, options: dict[str, Any]
) -> None:
    plain, shifted = (fit(HARD.X, HARD.y + c, HARD.groups, **options) for c in (0.0, constant))
    assert plain.learner_labels_.tolist() == shifted.learner_labels_.tolist()
    assert_allclose(
        shifted.predict(HARD.X, groups=HARD.groups) - constant,
        plain.predict(HARD.X, groups=HARD.groups),
        atol=1e-6,
    )


@few
@given(constant=st.floats(-1e6, 1e6), power=st.integers(-9, 9))
def test_neither_unit_nor_origin_of_the_response_matters(constant: float, power: int) -> None:
    unit = 10.0**power
    moved = fit(DATA.X, (DATA.y + constant) * unit, OWNER)
    assert moved.learner_labels_.tolist() == DATA.truth.tolist()


@linear_forms
@pytest.mark.parametrize("twin", [0, 5])
def test_a_duplicated_learner_lands_with_its_twin(twin: int, options: dict[str, Any]) -> None:
    mine = twin == OWNER
    X, y = np.vstack([DATA.X, DATA.X[mine]]), np.r_[DATA.y, DATA.y[mine]]
    groups = np.r_[OWNER, np.full(mine.sum(), 99)]
    labels = by_learner(fit(X, y, groups, **options))
    assert labels[99] == labels[twin]


@few
@given(data=st.data())
def test_everybody_duplicated_lands_with_its_twin(data: Any) -> None:
    seed = data.draw(st.integers(0, 1000))
    few_learners = make_linear_learners(5, 2, n_rows=20, n_features=2, noise_variance=0.2, random_state=seed)
    X, y = np.vstack([few_learners.X] * 2), np.tile(few_learners.y, 2)
    groups = np.r_[np.char.add("a ", few_learners.groups), np.char.add("b ", few_learners.groups)]
    labels = by_learner(fit(X, y, groups, n_clusters=data.draw(st.sampled_from([2, 3, "auto"]))))
    for name in few_learners.learner_ids.tolist():
        assert labels[f"a {name}"] == labels[f"b {name}"]


def test_the_same_fit_twice_is_the_same() -> None:
    options = {"candidates": ["rf", "ridge"], "n_clusters": "auto"}
    one, again = (fit(DATA.X, DATA.y, OWNER, **options) for _ in range(2))
    same(one, again, DATA.X, OWNER)


@few
@given(seed=st.integers(0, 1000), k=st.integers(1, 8))
def test_labels_are_numbered_from_zero_the_largest_cluster_first(seed: int, k: int) -> None:
    data = make_linear_learners(8, 3, n_rows=12, n_features=2, noise_variance=1.0, random_state=seed)
    model = fit(data.X, data.y, data.groups, n_clusters=k)
    sizes = np.bincount(model.learner_labels_)
    assert len(sizes) == model.n_clusters_ <= k
    assert np.all(np.diff(sizes) <= 0)
    assert sizes.min() > 0
    assert_allclose(np.linalg.norm(model.partition_.embedding, axis=1), 1.0)


@few
@given(seed=st.integers(0, 1000))
def test_average_predictions_lie_between_the_members_own(seed: int) -> None:
    data = make_linear_learners(5, 2, n_rows=15, n_features=2, random_state=seed)
    model = fit(data.X, data.y, data.groups, collaboration="average", n_clusters=2)
    labels = model.learner_labels_[np.repeat(np.arange(5), 15)]
    parts = np.array([m.predict(data.X) for m in model.selection_.models])
    member = model.learner_labels_[:, None] == labels
    prediction = model.predict(data.X, groups=data.groups)
    assert np.all(prediction <= np.where(member, parts, -np.inf).max(axis=0) + 1e-9)
    assert np.all(prediction >= np.where(member, parts, np.inf).min(axis=0) - 1e-9)
