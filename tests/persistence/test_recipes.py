"""How a table became rows is saved with the model, and refused where it does not fit it."""

import json

import polars as pl
import pytest

from coterie import CoterieRegressor, load, save
from coterie.datasets import make_linear_learners
from coterie.encoding import TableEncoder, TableRecipe
from coterie.persistence import PersistenceError

from .conftest import read_members, write_members


@pytest.fixture(scope="module")
def table():
    data = make_linear_learners(n_learners=4, n_truths=2, n_rows=20, n_features=2, random_state=0)
    n = len(data.y)
    return pl.DataFrame(data.X, schema=["x0", "x1"]).with_columns(
        y=pl.Series(data.y), site=pl.Series(data.groups), kind=pl.Series(["u", "v", "w", "w"] * (n // 4))
    )


@pytest.fixture(scope="module")
def saved_with_recipe(table, tmp_path_factory):
    encoder = TableEncoder().fit(table.drop("y", "site"))
    model = CoterieRegressor(candidates="lr", n_clusters=2)
    model.fit(encoder.transform(table), table["y"], groups=table["site"])
    model.keep_recipe(TableRecipe("y", "site", encoder.columns_))
    path = tmp_path_factory.mktemp("saved") / "model.coterie"
    save(model, path)
    return path


def test_the_recipe_comes_back_as_it_was(table, saved_with_recipe):
    model = load(saved_with_recipe)
    assert model.table_.target == "y"
    assert model.table_.features == ("x0", "x1", "kind=u", "kind=v")
    assert model.predict(table, groups=table["site"]).shape == (80,)


def test_a_model_fitted_again_forgets_it(table, saved_with_recipe):
    model = load(saved_with_recipe)
    model.fit(table.select("x0", "x1"), table["y"], groups=table["site"])
    assert not hasattr(model, "table_")


@pytest.mark.parametrize(
    "change",
    [
        lambda columns: columns.pop(),
        lambda columns: columns[0]["fields"].update(kind="magic"),
        lambda columns: columns[0]["fields"].update(fills={"$": "tuple", "items": []}),
        lambda columns: columns[2]["fields"].update(parts={"$": "tuple", "items": ["century"]}),
        lambda columns: columns[2]["fields"].update(levels={"$": "tuple", "items": [1, 2, 3]}),
        lambda columns: columns.append(3),
    ],
)
def test_a_recipe_that_does_not_fit_the_model_is_refused(saved_with_recipe, tmp_path, change):
    members = read_members(saved_with_recipe)
    manifest = json.loads(members["manifest.json"])
    change(manifest["estimator"]["table_"]["fields"]["columns"]["items"])
    members["manifest.json"] = json.dumps(manifest).encode()
    write_members(tmp_path / "t.coterie", members)
    with pytest.raises(PersistenceError):
        load(tmp_path / "t.coterie")
