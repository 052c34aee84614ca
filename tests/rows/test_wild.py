import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import polars.selectors as cs
import pytest

from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.datasets import STRESS_SETTINGS, make_linear_learners, make_stress
from coterie.rows.learners import gather_learners
from coterie.rows.wild import CODES, WildCells, column_limits, notes_on, set_aside, tame_limits

DRAWS = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "uniform": lambda rng, n: rng.random(n),
    "exponential": lambda rng, n: rng.standard_exponential(n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "Student t3": lambda rng, n: rng.standard_t(3, n),
    "Cauchy": lambda rng, n: rng.standard_cauchy(n),
    "counts": lambda rng, n: rng.poisson(0.3, n).astype(float),
    "rare dummy": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "many zeros": lambda rng, n: (rng.random(n) < 0.2) * rng.lognormal(0, 1, n),
    "constant": lambda rng, n: np.full(n, 3.0),
    "rounding": lambda rng, n: 0.1 + 1e-17 * rng.standard_normal(n),
}


def wild_rows(X: Any, y: Any, groups: Any, names: Any = None) -> tuple[list[int], tuple[WildCells, ...]]:
    ids, owner = np.unique(groups, return_inverse=True)
    X, y = np.asarray(X, dtype=float), np.asarray(y, dtype=float)
    aside, cells = set_aside(X, y, owner, ids, column_limits((*X.T, y)), names)
    return np.flatnonzero(aside).tolist(), cells


def table(seed: int = 0, n_learners: int = 8, n_rows: int = 30) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    n = n_learners * n_rows
    return rng.standard_normal((n, 3)), rng.standard_normal(n), np.repeat(np.arange(n_learners), n_rows)


@pytest.mark.parametrize("name", DRAWS)
@pytest.mark.parametrize("n", [30, 240, 1800])
def test_nothing_is_wild_in_an_honest_column(name: str, n: int) -> None:
    rng = np.random.default_rng(0)
    found = [np.isfinite(tame_limits(DRAWS[name](rng, n))).any() for _ in range(200)]
    assert sum(found) <= 3


@pytest.mark.parametrize("name", ["normal", "uniform", "exponential", "many zeros", "counts"])
@pytest.mark.parametrize("value", [-9999.0, 1e6, -1e12])
def test_a_wild_value_is_beyond_the_limits_and_the_others_are_not(name: str, value: float) -> None:
    values = DRAWS[name](np.random.default_rng(1), 240)
    for count in (1, 5):
        low, high = tame_limits(np.r_[values, [value] * count])
        assert not low <= value <= high
        assert low <= values.min()
        assert values.max() <= high


def test_normal_values_have_narrow_limits_and_skewed_ones_wide_limits() -> None:
    rng = np.random.default_rng(2)
    narrow = tame_limits(np.r_[rng.standard_normal(240), 999.0])[1]
    assert narrow < 100
    assert tame_limits(np.r_[rng.lognormal(0, 2, 240), 999.0])[1] == np.inf


def test_wild_values_of_two_sizes_are_found_together() -> None:
    X, y, groups = table()
    X[[3, 4], 0], X[5, 0] = 999, 1e12
    assert wild_rows(X, y, groups)[0] == [3, 4, 5]


def test_a_code_may_be_in_many_cells() -> None:
    X, y, groups = table()
    # One row in six, of every learner: other values that often are a part of the column.
    X[::6, 1] = -9999
    assert wild_rows(X, y, groups)[0] == list(range(0, 240, 6))
    X[::6, 1] = -9876
    assert wild_rows(X, y, groups)[0] == []


def test_a_code_among_other_values_is_a_value() -> None:
    X, y, groups = table()
    X[:, 0] = np.random.default_rng(0).integers(0, 2000, 240)
    X[::40, 0] = 999
    assert wild_rows(X, y, groups) == ([], ())
    X[:, 0] = np.where(np.arange(240) % 2, 0.0, 99.0)
    assert wild_rows(X, y, groups) == ([], ())


def test_a_learner_that_lives_elsewhere_stays() -> None:
    X, y, groups = table(n_learners=30)
    X[groups == 4] += 1e4
    assert wild_rows(X, y, groups) == ([], ())
    X[0, 0] = 1e9
    assert wild_rows(X, y, groups)[0] == [0]


def test_no_learner_loses_more_than_half_of_its_rows() -> None:
    X, y, groups = table(n_rows=12)
    # Seven of its twelve rows, in three columns.
    X[[0, 1], 0], X[[2, 3], 1], X[[4, 5, 6], 2] = 1e6, 1e6, 1e6
    assert wild_rows(X, y, groups)[0] == []


def test_codes_in_most_rows_of_a_learner_are_named_and_stay() -> None:
    X, y, groups = table()
    X[:20, 1] = -9999
    aside, cells = wild_rows(X, y, groups, ["a", "b", "c"])
    assert aside == []
    assert notes_on(cells) == (
        "Column 'b' has 20 cells of -9999 in rows of learner 0, likely a code for a missing value: as most "
        "of the learner's rows are far from all others, it was taken as a number.",
    )


def test_notes_name_learner_column_and_value() -> None:
    X, y, groups = table()
    X[[1, 31], 1], X[[2, 3], 0], y[7] = -9999, [1e6, -2e7], 1e20
    aside, cells = wild_rows(X, y, groups, ["age", "income", "c"])
    assert aside == [1, 2, 3, 7, 31]
    assert notes_on(cells) == (
        "Column 'age' has 2 cells far from all others (1e+06, -2e+07) in rows of learner 0: "
        "the rows were set aside.",
        "Column 'income' has 2 cells of -9999 in rows of learner 0, 1, likely a code for a missing value: "
        "the rows were set aside.",
        "The response has 1 cell of 1e+20 in rows of learner 0, likely a code for a missing value: "
        "the row was set aside.",
    )
    assert notes_on(wild_rows(X, y, groups)[1])[0].startswith("Column 0 has 2 cells")
    assert {-99.0, 999.0, 1e30, -32768.0} <= set(CODES.tolist())
    # Prices, hours and ages.
    assert not {99.0, 99.99, 999.9, 9.99} & set(CODES.tolist())


def test_a_code_takes_no_honest_value_with_it() -> None:
    values = np.random.default_rng(0).normal(size=600)
    values[:6] = [14, 15, 16, -15, 17, 18]
    assert np.isinf(column_limits([values])).all()
    values[10:12] = -9999
    low, high = column_limits([values])[:, 0]
    assert -9999 < low < -15
    assert high > 18


@pytest.mark.parametrize("share", [0.1, 0.3, 0.45])
def test_codes_may_be_many(share: float) -> None:
    rng = np.random.default_rng(0)
    values = np.where(rng.random(480) < share, -9999, rng.normal(size=480))
    low, _ = column_limits([values])[:, 0]
    assert -9999 < low < values[values > -9999].min()


def test_a_learner_of_noughts_and_amounts_in_other_units_stays() -> None:
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(20), 80)
    amount = np.where(rng.random(1600) < 0.6, 0, rng.gamma(4, 1, 1600))
    amount[groups == 3] *= 200
    X = np.column_stack([amount, rng.normal(size=1600)])
    assert len(gather_learners(X, rng.normal(size=1600), groups, caller="test").y) == 1600


def test_gathered_rows_are_those_without_wild_cells() -> None:
    X, y, groups = table()
    weights = np.linspace(1, 2, 240)
    X[[5, 100], 2] = 1e12
    kept = np.delete(np.arange(240), [5, 100])
    found = gather_learners(X, y, groups, sample_weight=weights, caller="fit")
    plain = gather_learners(X[kept], y[kept], groups[kept], sample_weight=weights[kept], caller="fit")
    for name in ("X", "y", "offsets", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name))
    np.testing.assert_array_equal(found.rows, kept)
    assert len(notes_on(found.wild)) == 1


def test_honest_rows_are_the_same_objects_to_the_last_bit() -> None:
    X, y, groups = table()
    learners = gather_learners(X, y, groups, caller="fit")
    np.testing.assert_array_equal(learners.X, X)
    assert learners.wild == ()


@pytest.mark.parametrize("setting", [name for name in STRESS_SETTINGS if not name.startswith("wild")])
def test_stress_settings_have_no_wild_cells(setting: str) -> None:
    for seed in range(3):
        data = make_stress(setting, seed)
        assert wild_rows(data.X, data.y, data.groups) == ([], ())


def test_simulation1_has_no_wild_cells() -> None:
    data = make_linear_learners(20, 2, 50, 20, noise_variance=50, labels=np.repeat([0, 1], 10))
    assert wild_rows(data.X, data.y, data.groups) == ([], ())


@pytest.mark.parametrize("name", ["ames", "cheese", "flights", "produc", "school_ilea", "tv16", "landmine"])
def test_tables_of_the_world_have_no_wild_cells(name: str) -> None:
    path = Path(os.environ.get("COTERIE_DATA", "")) / f"{name}.parquet"
    if not path.is_file():
        pytest.skip(f"COTERIE_DATA is not set to a folder that has {path.name}")
    numbers = pl.read_parquet(path).select(cs.numeric())
    for column in numbers.iter_columns():
        values = column.drop_nulls().to_numpy().astype(float)
        limits = column_limits([values[np.isfinite(values)]])
        assert np.isinf(limits).all(), column.name


def labels_of(X: Any, y: Any, groups: Any, **options: Any) -> Any:
    robust = options.pop("robust", False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        selection = select_models(X, y, groups, candidates=["ridge"])
        exchange = cross_evaluate(selection, X, y, groups, robust=robust)
        return cluster_learners(exchange, X, y, groups, selection=selection, **options)


def unchanged(size: tuple[int, int], value: float, count: int, place: str, seed: int, **options: Any) -> bool:
    """Tell whether the others' clusters are the same, and the learner is named."""
    (n_learners, n_rows), rng = size, np.random.default_rng(seed)
    data = make_linear_learners(
        n_learners, 2, n_rows=n_rows, n_features=3, noise_variance=1.0, random_state=seed
    )
    X, y, j = data.X.copy(), data.y.copy(), int(rng.integers(n_learners))
    rows = rng.choice(np.flatnonzero(data.groups == data.learner_ids[j]), count, replace=False)
    values = value * rng.choice([-1.0, 1.0], count)
    if place == "X":
        X[rows, rng.integers(3, size=count)] = values
    else:
        y[rows] = values
    clean = labels_of(data.X, data.y, data.groups, **options).labels
    found = labels_of(X, y, data.groups, **options)
    assert any(repr(str(data.learner_ids[j])) in note for note in found.notes)
    others = np.arange(n_learners) != j
    pairs = set(zip(clean[others].tolist(), found.labels[others].tolist(), strict=True))
    return len(pairs) == len(set(clean[others].tolist())) == len(set(found.labels[others].tolist()))


@pytest.mark.parametrize("place", ["X", "y"])
@pytest.mark.parametrize(("value", "count"), [(9999.0, 1), (1e6, 3), (1e12, 5)])
def test_wild_cells_of_one_learner_leave_the_others_where_they_are(
    place: str, value: float, count: int
) -> None:
    assert sum(unchanged((8, 30), value, count, place, seed) for seed in range(4)) >= 3


@pytest.mark.parametrize("options", [{"robust": True}, {"refine": "average"}, {"refine": None}])
def test_so_it_is_with_other_options(options: dict[str, Any]) -> None:
    assert sum(unchanged((8, 30), 1e6, 2, "X", seed, **options) for seed in range(4)) >= 3


@pytest.mark.slow
@pytest.mark.parametrize("size", [(8, 30), (8, 200), (30, 60)])
@pytest.mark.parametrize("place", ["X", "y"])
@pytest.mark.parametrize("value", [9999.0, 999.0, 1e6, 1e12])
@pytest.mark.parametrize("count", [1, 3, 5])
def test_wild_cells_leave_the_others_in_fifteen_draws_of_sixteen(
    size: tuple[int, int], place: str, value: float, count: int
) -> None:
    assert sum(unchanged(size, value, count, place, seed) for seed in range(16)) >= 15


def test_one_far_learner_does_not_cost_the_others_their_clusters() -> None:
    same = 0
    for seed in range(4):
        data = make_linear_learners(8, 2, n_rows=30, n_features=3, noise_variance=1.0, random_state=seed)
        X, j = data.X.copy(), seed
        X[data.groups == data.learner_ids[j], 0] += 1000
        clean, found = (labels_of(x, data.y, data.groups).labels for x in (data.X, X))
        pairs = set(zip(np.delete(clean, j).tolist(), np.delete(found, j).tolist(), strict=True))
        same += len(pairs) == len(set(np.delete(clean, j).tolist()))
    assert same >= 3


def test_the_estimator_warns_and_the_notes_stay_with_the_model() -> None:
    data = make_linear_learners(6, 2, n_rows=30, n_features=3, random_state=0)
    X = pd.DataFrame(data.X, columns=["a", "b", "c"])
    X.iloc[3, 1] = -9999
    model = CoterieRegressor(["ridge"])
    said = "Column 'b' has 1 cell of -9999 in rows of learner 'learner 00', likely a code for a missing value"
    with pytest.warns(UserWarning, match=said) as caught:
        model.fit(X, data.y, groups=data.groups)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.partition_.notes[0].startswith(said)
    assert model.gains_["n_rows"].tolist() == [29, 30, 30, 30, 30, 30]
    model.remove(["learner 00"])
    assert not any("-9999" in note for note in model.partition_.notes)


def test_one_learner_alone_is_not_looked_at() -> None:
    X, y, _ = table()
    X[3, 0] = 1e12
    learners = gather_learners(X, y, np.zeros(240), caller="fit")
    assert (len(learners.y), learners.wild) == (240, ())


def test_newcomers_are_warned_of() -> None:
    data = make_linear_learners(6, 2, n_rows=30, n_features=3, random_state=0)
    known = ~np.isin(data.groups, ["learner 04", "learner 05"])
    model = CoterieRegressor(["ridge"]).fit(data.X[known], data.y[known], groups=data.groups[known])
    X = data.X.copy()
    X[-1, 0] = 1e12
    with pytest.warns(UserWarning, match="Column 0 has 1 cell far from all others"):
        model.admit(X[~known], data.y[~known], groups=data.groups[~known])
