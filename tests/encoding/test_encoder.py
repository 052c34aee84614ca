"""The transformer: whole tables of any library, columns by name."""

import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from coterie import TableEncoder
from coterie.encoding import TableRecipe

TABLE = {"size": [1.0, None, 3.0, 4.0], "colour": ["red", "red", "blue", "blue"], "same": [1, 1, 1, 1]}
NAMES = ["size", "size.missing", "colour=red"]


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, lambda t: pl.DataFrame(t).to_arrow()])
def test_every_library_s_table_comes_back_as_its_own(make):
    table = make(TABLE)
    encoder = TableEncoder().fit(table)
    answer = encoder.transform(table)
    assert type(answer) is type(table)
    assert encoder.get_feature_names_out().tolist() == NAMES
    assert pl.DataFrame(answer).rows() == [(1, 0, 1), (3, 1, 1), (3, 0, 0), (4, 0, 0)]


def test_columns_are_found_by_name_whatever_their_order():
    encoder = TableEncoder().fit(pl.DataFrame(TABLE))
    later = pl.DataFrame({"other": [1], "colour": ["red"], "size": [7.0]})
    assert encoder.transform(later).rows() == [(7.0, 0.0, 1.0)]


def test_a_column_that_was_left_out_is_not_needed_later_but_others_are():
    encoder = TableEncoder().fit(pl.DataFrame(TABLE))
    with pytest.raises(ValueError, match="lacks the column 'size'"):
        encoder.transform(pl.DataFrame({"colour": ["red"]}))


def test_the_same_columns_make_the_same_encoder():
    table = pl.DataFrame(TABLE)
    encoder = TableEncoder().fit(table)
    again = TableEncoder.from_columns(encoder.columns_)
    assert again.transform(table).equals(encoder.transform(table))


def test_a_table_without_anything_to_say_is_refused():
    with pytest.raises(ValueError, match="No column is left to predict from \\('same' left out"):
        TableEncoder().fit(pl.DataFrame({"same": [1, 1]}))


def test_two_columns_of_one_name_are_refused():
    table = pl.DataFrame({"a": [1.0, None], "a.missing": [1, 2]})
    with pytest.raises(ValueError, match=r"both become 'a\.missing'"):
        TableEncoder().fit(table)


def test_arrays_and_unfitted_use_are_refused():
    with pytest.raises(ValueError, match="a table with named columns"):
        TableEncoder().fit([[1.0]])
    with pytest.raises(NotFittedError):
        TableEncoder().transform(pl.DataFrame(TABLE))


def test_it_is_cloned_with_its_parameters():
    assert clone(TableEncoder(max_levels=3)).max_levels == 3


def test_a_recipe_gives_the_encoder_back_and_names_the_predictors():
    table = pl.DataFrame({"a": [1, 2], "b": ["u", "v"]})
    encoder = TableEncoder().fit(table)
    recipe = TableRecipe("y", "site", encoder.columns_)
    assert recipe.features == tuple(encoder.get_feature_names_out())
    assert recipe.encoder.transform(table).equals(encoder.transform(table))
