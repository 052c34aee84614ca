"""The quick forest is scikit-learn's forest."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import check_estimator

import coterie.models.forest as forest_module
from coterie.models.forest import QuickForest, RandomCuts


def rows(n: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, np.sin(X[:, 0]) + X[:, 1] + rng.normal(size=n)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"min_samples_leaf": 2},
        {"max_depth": 3},
        {"max_features": 0.5, "min_samples_split": 0.2},
        {"max_leaf_nodes": 5, "ccp_alpha": 0.01},
        {"criterion": "absolute_error"},
        {"bootstrap": False, "max_features": 2},
        {"max_samples": 0.5},
        {"oob_score": True},
        {"n_jobs": 2},
    ],
)
def test_its_trees_are_those_of_scikit_learn(options: dict) -> None:
    X, y = rows()
    mine = QuickForest(20, random_state=3, **options).fit(X, y)
    theirs = RandomForestRegressor(20, random_state=3, **options).fit(X, y)
    new = rows(25, 1)[0]
    # Threads add the trees up in any order.
    np.testing.assert_allclose(
        mine.predict(new), theirs.predict(new), rtol=1e-13 if "n_jobs" in options else 0
    )
    assert nodes(mine) == nodes(theirs)
    assert [t.random_state for t in mine.estimators_] == [t.random_state for t in theirs.estimators_]


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 40)])
def test_weights_and_lists_are_taken(weights: np.ndarray | None) -> None:
    X, y = rows()
    mine = QuickForest(5, random_state=0).fit(X.tolist(), y.tolist(), weights)
    theirs = RandomForestRegressor(5, random_state=0).fit(X, y, weights)
    np.testing.assert_array_equal(mine.predict(X), theirs.predict(X))


@pytest.mark.parametrize("options", [{}, {"min_samples_leaf": 3}, {"max_features": 0.5}, {"bootstrap": True}])
@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 40)])
def test_random_cuts_are_those_of_scikit_learn(options: dict, weights: np.ndarray | None) -> None:
    X, y = rows()
    mine = RandomCuts(20, random_state=3, **options).fit(X, y, weights)
    theirs = ExtraTreesRegressor(20, random_state=3, **options).fit(X, y, weights)
    assert nodes(mine) == nodes(theirs)
    np.testing.assert_array_equal(mine.predict(rows(25, 1)[0]), theirs.predict(rows(25, 1)[0]))


@pytest.mark.parametrize("weights", [None, np.linspace(0.5, 2, 40)])
@pytest.mark.parametrize(
    ("mine", "theirs"), [(QuickForest, RandomForestRegressor), (RandomCuts, ExtraTreesRegressor)]
)
def test_several_columns_are_grown_as_quickly_and_alike(
    mine: type, theirs: type, weights: np.ndarray | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows()
    columns = np.eye(3)[np.digitize(y, [-1.0, 1.0])]
    expected = theirs(20, min_samples_leaf=2, random_state=3).fit(X, columns, weights)
    # One tree is fitted, the others are grown by its parts.
    fits, fit = [], DecisionTreeRegressor.fit
    monkeypatch.setattr(DecisionTreeRegressor, "fit", lambda *a, **k: fits.append(1) or fit(*a, **k))
    found = mine(20, min_samples_leaf=2, random_state=3).fit(X, columns, weights)
    assert len(fits) == 1
    assert nodes(found) == nodes(expected)
    new = rows(25, 1)[0]
    np.testing.assert_array_equal(found.predict(new), expected.predict(new))


def nodes(forest: RandomForestRegressor) -> list[bytes]:
    """Return every tree as scikit-learn pickles it."""
    states = [tree.tree_.__getstate__() for tree in forest.estimators_]
    return [state["nodes"].tobytes() + state["values"].tobytes() for state in states]


@pytest.mark.parametrize("break_the_parts", [None, TypeError, AttributeError, "other trees", "no parts"])
def test_parts_that_do_not_grow_the_first_tree_again_grow_none(
    monkeypatch: pytest.MonkeyPatch, break_the_parts: type[Exception] | str | None
) -> None:
    X, y = rows()
    calls: list[int] = []

    def broken(
        tree: DecisionTreeRegressor, most: int, X: np.ndarray, y: np.ndarray, counts: np.ndarray
    ) -> None:
        calls.append(1)
        if isinstance(break_the_parts, type):
            raise break_the_parts
        if break_the_parts is None:
            return grown(tree, most, X, y, counts)
        tree.fit(X, 2 * y, counts)

    grown = forest_module._grow
    monkeypatch.setattr(forest_module, "_grow", broken)
    if break_the_parts == "no parts":
        monkeypatch.setattr(forest_module, "BestSplitter", None)
    mine = QuickForest(20, random_state=3).fit(X, y)
    assert nodes(mine) == nodes(RandomForestRegressor(20, random_state=3).fit(X, y))
    assert len(calls) == {None: 20, "no parts": 0}.get(break_the_parts, 1)  # type: ignore[call-overload]


def test_missing_predictors_are_left_to_scikit_learn() -> None:
    X, y = rows()
    X[3, 1] = np.nan
    mine = QuickForest(5, random_state=0).fit(X, y)
    np.testing.assert_array_equal(
        mine.predict(X), RandomForestRegressor(5, random_state=0).fit(X, y).predict(X)
    )


@pytest.mark.parametrize("options", [{"n_estimators": 0}, {"max_depth": -1}, {"min_samples_leaf": "few"}])
def test_options_that_make_no_sense_are_refused(options: dict) -> None:
    with pytest.raises(InvalidParameterError):
        QuickForest(**options).fit(*rows())


def test_it_is_a_scikit_learn_estimator() -> None:
    # Trees draw their rows: a row of weight two and a row that is there twice are drawn differently.
    drawn = {
        f"check_sample_weight_equivalence_on_{kind}_data": "as scikit-learn's" for kind in ("dense", "sparse")
    }
    check_estimator(QuickForest(5), on_skip=None, expected_failed_checks=drawn, on_fail="raise")
