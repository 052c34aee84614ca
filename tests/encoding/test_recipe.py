import polars as pl

from coterie.encoding import TableEncoder, TableRecipe


def test_a_recipe_gives_the_encoder_back_and_names_the_predictors():
    table = pl.DataFrame({"a": [1, 2], "b": ["u", "v"]})
    encoder = TableEncoder().fit(table)
    recipe = TableRecipe("y", "site", encoder.columns_)
    assert recipe.features == tuple(encoder.get_feature_names_out())
    assert recipe.encoder.transform(table).equals(encoder.transform(table))
