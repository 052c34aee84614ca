"""Rows to be predicted that are unlike those of fit are named; ordinary ones are not."""

import warnings

import numpy as np
import pandas as pd
import pytest

import coterie
from coterie import CoterieClassifier, CoterieRegressor, OutsideFitWarning, TableEncoder
from coterie.datasets import STRESS_SETTINGS, local_copy, make_linear_learners, make_stress
from coterie.rows.outside import more_than_fit, ranges_of, warn_of_ranges

DATA = make_linear_learners(6, n_rows=60, n_features=3, n_truths=2, random_state=0)
HALF = np.arange(len(DATA.y)) % 2 == 0
TABLE = pd.DataFrame(DATA.X, columns=["a", "b", "c"]).assign(
    kind=np.where(DATA.X[:, 0] > 0, "red", "blue"), site=DATA.groups
)


def fitted(table, y=DATA.y, kind=CoterieRegressor):
    candidates = "lr" if kind is CoterieRegressor else "logistic"
    return kind(candidates=candidates, n_bootstrap=0).fit(table[HALF], y[HALF], groups="site")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A regressor, a classifier, both as loaded from a file, and one whose table has text."""
    numbers = TABLE.drop(columns="kind")
    made = {
        "regressor": (fitted(numbers), numbers),
        "classifier": (fitted(numbers, DATA.y > 0, CoterieClassifier), numbers),
        "encoded": (fitted(TABLE), TABLE),
    }
    folder = tmp_path_factory.mktemp("models")
    for name in list(made):
        coterie.save(made[name][0], folder / name, rows=False)
        made[f"loaded {name}"] = coterie.load(folder / name), made[name][1]
    return made


NAMES = ["regressor", "classifier", "encoded", "loaded regressor", "loaded classifier", "loaded encoded"]


@pytest.mark.parametrize("name", NAMES)
def test_a_column_in_another_unit_is_named_with_its_rows_and_its_range(models, name):
    model, table = models[name]
    later, low, high = table[~HALF], table["b"][HALF].min(), table["b"][HALF].max()
    model.predict(later)
    model.predict(later.head(1))
    beyond = ((1000 * later["b"] < low) | (1000 * later["b"] > high)).sum()
    with pytest.warns(OutsideFitWarning) as said:
        model.predict(later.assign(b=1000 * later["b"]))
    assert len(said) == 1
    assert str(said[0].message).startswith(
        f"Column 'b': {beyond} of 180 rows lie outside what fit saw ({low:.4g} to {high:.4g}), the "
    )
    # The line of whoever predicts.
    assert said[0].filename == __file__ or "classifier" in name


@pytest.mark.parametrize("name", ["encoded", "loaded encoded"])
@pytest.mark.parametrize(
    ("column", "values", "match"),
    [
        ("b", np.nan, "Column 'b' is missing in 180 of 180 rows, and was in 0 of 180 rows of fit"),
        ("kind", np.nan, "Column 'kind' is missing in 180 of 180 rows"),
        (
            "kind",
            7.0,
            "The column 'kind' has entries that fit has not seen: '7.0'. They are those of 180 of 180",
        ),
        ("b", ["1.5", "defekt"] * 90, "Column 'b' held numbers in fit, and 90 of 180 entries are none"),
    ],
)
def test_gaps_and_entries_that_fit_never_saw_are_named(models, name, column, values, match):
    model, table = models[name]
    with pytest.warns(OutsideFitWarning, match=match):
        model.predict(table[~HALF].assign(**{column: values}))


def test_sets_intervals_and_newcomers_are_looked_at_too(models):
    regressor, table = models["regressor"]
    wrong = table[~HALF].assign(c=1000 * table["c"])
    with pytest.warns(OutsideFitWarning, match="Column 'c'"):
        regressor.predict_interval(wrong)
    with pytest.warns(OutsideFitWarning, match="Column 'c'"):
        models["classifier"][0].predict_set(wrong)
    again = fitted(table)
    new = wrong.assign(site="new")
    with pytest.warns(OutsideFitWarning, match="Column 'c'"):
        again.admit(new, DATA.y[~HALF])
    # Who was admitted is known, and so are its rows.
    again.predict(new)


def test_a_refused_or_a_second_fit_keeps_no_range_of_the_first():
    model = fitted(TABLE)
    first = model.ranges_
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.full((4, 1), np.nan), np.ones(4), groups=[1, 1, 2, 2])
    assert model.ranges_ is first
    X = 1e-6 * DATA.X[:, :2]
    np.testing.assert_array_equal(model.fit(X, DATA.y, groups=DATA.groups).ranges_, ranges_of(X))


@pytest.mark.parametrize(
    ("count", "n_rows", "count_in_fit", "rows_of_fit", "more"),
    [
        (1, 1, 0, 1000, True),
        (50, 1000, 0, 1000, False),
        (51, 1000, 0, 1000, True),
        (1, 1, 1, 1000, False),
        (10, 100, 1, 1000, False),
        (11, 100, 1, 1000, True),
        # A larger table has more of what fit saw.
        (600, 10_000, 10, 1000, False),
    ],
)
def test_how_many_are_more_than_fit_saw(count, n_rows, count_in_fit, rows_of_fit, more):
    assert more_than_fit(count, n_rows, count_in_fit, rows_of_fit) is more


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ([2.0] * 100, False),
        ([2.01] * 100, True),
        ([-1.01] * 100, True),
        # A long tail, and a cell that is none of it.
        ([2.01] * 5 + [0.5] * 95, False),
        ([2.01] * 6 + [0.5] * 94, True),
        ([11.0] + [0.5] * 99, False),
        ([11.1] + [0.5] * 99, True),
    ],
)
def test_how_far_and_how_many_rows_are_outside(values, named):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warn_of_ranges(np.array(values)[:, None], np.array([[0.0], [1.0]]), None)
    assert bool(said) is named


@pytest.mark.parametrize("n_rows", [18, 20])
def test_the_range_of_very_few_rows_is_none(n_rows):
    rows = np.flatnonzero(np.isin(DATA.groups, np.unique(DATA.groups)[:2]))[:: 120 // n_rows][:n_rows]
    model = CoterieRegressor(candidates="lr", n_bootstrap=0).fit(
        DATA.X[rows], DATA.y[rows], DATA.groups[rows]
    )
    assert hasattr(model, "ranges_") is (n_rows == 20)


@pytest.mark.parametrize("setting", STRESS_SETTINGS)
def test_halves_of_simulated_tables_are_quiet(setting):
    data = make_stress(setting, 0)
    half = np.random.default_rng(0).random(len(data.X)) < 0.5
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warn_of_ranges(data.X[~half], ranges_of(data.X[half]), None)
    # Codes for missing values are not ordinary.
    assert "wild" in setting or not said
    assert all("-999" in str(warning.message) for warning in said)


@pytest.mark.parametrize(
    ("folder", "name", "group"),
    [
        ("", "ames.parquet", "Neighborhood"),
        ("", "cheese.parquet", "RETAILER"),
        ("", "heart_disease.parquet", "centre"),
        ("", "produc.parquet", "state"),
        ("exam_london", "exam_london.csv.gz", "school"),
        ("gapminder", "gapminder.csv.gz", "country"),
    ],
)
def test_halves_of_real_tables_are_quiet(folder, name, group):
    path = local_copy(folder, name)
    if path is None:
        pytest.skip(f"COTERIE_DATA has no {name}.")
    table = (pd.read_parquet if name.endswith("parquet") else pd.read_csv)(path).drop(columns=group)
    half = np.random.default_rng(1).random(len(table)) < 0.5
    encoder = TableEncoder().fit(table[half])
    with warnings.catch_warnings():
        # A new entry in a row or two is named, and is no reason to refuse the table.
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", OutsideFitWarning)
        later = encoder.transform(table[~half])
        warn_of_ranges(later.to_numpy(), ranges_of(encoder.transform(table[half]).to_numpy()), None)
