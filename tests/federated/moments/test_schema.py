"""A schema says what columns are, without a look at rows."""

from __future__ import annotations

import json
from datetime import datetime

import numpy as np
import polars as pl
import pytest

from coterie.federated import ProtocolError
from coterie.federated.moments import Column, Schema, read_schema
from coterie.federated.moments.schema import schema_from

GOOD = {
    "target": {"name": "y", "low": 0, "high": 10},
    "columns": [
        {"name": "age", "low": 20, "high": 80, "missing": True},
        {"name": "colour", "kind": "category", "levels": ["red", "blue"]},
        {"name": "day", "kind": "date", "low": 2010, "high": 2020, "hours": True},
    ],
}


@pytest.fixture
def write(tmp_path):
    def written(content):
        path = tmp_path / "schema.json"
        path.write_text(json.dumps(content))
        return path

    return written


def test_a_table_becomes_numbers_as_agreed_whatever_its_rows_are(write):
    schema = read_schema(write(GOOD))
    assert schema.features == (
        "age",
        "age.missing",
        "colour=blue",
        "colour=(other)",
        "day.year",
        "day.month",
        "day.weekday",
        "day.hour",
    )
    table = pl.DataFrame(
        {
            "age": [50.0, None],
            "colour": ["green", "blue"],
            "day": [datetime(2015, 6, 1, 12), datetime(2019, 1, 6, 0)],
        }
    )
    encoded = schema.predictors(table)
    assert encoded[:, :4].tolist() == [[50.0, 0.0, 0.0, 1.0], [50.0, 1.0, 1.0, 0.0]]
    assert encoded[0, 4:].tolist() == [2015.0, 6.0, 1.0, 12.0]
    assert schema.units[0] == (50.0, 30.0)
    assert schema.units[1] == (0.0, 1.0)
    assert schema.units[4] == (2015.0, 5.0)
    assert len(schema.units) == len(schema.features)


def test_a_schema_survives_the_way():
    schema = Schema(Column("y", low=0, high=1), (Column("x", low=-1.5, high=2),))
    assert schema_from(schema.text) == schema
    assert schema_from(schema.text).text == schema.text


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"columns": []}, "no columns"),
        ({"columns": [{"name": "x"}]}, "'low' and 'high'"),
        ({"columns": [{"name": "x", "low": 2, "high": 1}]}, "'low' below 'high'"),
        ({"columns": [{"name": "y", "low": 0, "high": 1}]}, "twice"),
        ({"columns": [{"name": "x", "kind": "text"}]}, "must be one of number"),
        ({"columns": [{"name": "x", "kind": "category"}]}, "list its 'levels'"),
        ({"columns": [{"name": "x", "kind": "category", "levels": ["a", "a"]}]}, "level twice"),
        ({"columns": [{"name": "x", "kind": "category", "levels": ["1", "1.0"]}]}, "level twice"),
        ({"columns": [{"name": "x", "kind": "category", "levels": ["a", " "]}]}, "empty one"),
        ({"decimal": ";"}, "'decimal'"),
        ({"columns": [{"name": "x", "low": 0, "high": 1, "most": 3}]}, "not known"),
        ({"columns": [{"low": 0, "high": 1}]}, "'name'"),
        ({"columns": ["x"]}, "must be an object"),
        ({"columns": 3}, "list of 'columns'"),
        ({"target": {"name": "y", "kind": "category", "levels": ["a"]}}, "must be a number"),
        ({"columns": [{"name": "x", "low": 0, "high": 1e-320}]}, "too small"),
    ],
)
def test_what_is_wrong_with_a_schema_is_said_in_a_sentence(write, changes, sentence):
    with pytest.raises(ProtocolError, match=sentence):
        read_schema(write({**GOOD, **changes}))


def test_units_fit_the_encoded_columns():
    schema = Schema(Column("y", low=0, high=1), (Column("d", "date", low=2000, high=2010, missing=True),))
    assert [half for _, half in schema.units] == [5.0, 5.5, 3.0, 1.0]
    assert np.isfinite(schema.units).all()
