"""Values to JSON and back, and JSON that nobody wrote."""

from __future__ import annotations

import inspect
import json
import math
import re
import time
import tracemalloc
from datetime import date, datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from coterie.persistence import PersistenceError
from coterie.persistence.archive import Budget
from coterie.persistence.arrays import pack_arrays, unpack_arrays
from coterie.persistence.codec import Decoder, Encoder, check_ids
from coterie.records import Curve
from coterie.verdicts import Gains


def no_models(*_: Any) -> Any:
    raise AssertionError("no model was expected")


def through(value: Any) -> Any:
    """Send a value through text and bytes."""
    encoder = Encoder(no_models)
    text = json.dumps(encoder.encode(value), allow_nan=False)
    arrays = unpack_arrays(pack_arrays(encoder.arrays))
    return Decoder(arrays, no_models, Budget(len(text))).decode(json.loads(text))


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        alike = isinstance(other, np.ndarray) and one.shape == other.shape
        return alike and all(
            same(a, b) for a, b in zip(one.ravel().tolist(), other.ravel().tolist(), strict=True)
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return same(list(one), list(other)) and same(list(one.values()), list(other.values()))
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


numbers = hnp.arrays(
    st.sampled_from(["f8", "f4", "i8", "u1", "?", ">f8"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
)
texts = hnp.arrays(hnp.unicode_string_dtypes(max_len=4), hnp.array_shapes(max_dims=1))
plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.dates() | st.datetimes()
keys = st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False) | st.dates()
values = st.recursive(
    plain | numbers | texts,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(keys, inner, max_size=4)
        | st.dictionaries(st.text(), inner, max_size=4).map(Gains)
    ),
    max_leaves=12,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_values_come_back(value: Any) -> None:
    assert same(through(value), value)


@pytest.mark.parametrize("columns", [(), (1,), (2,)])
def test_pieces_are_one_array(columns: tuple[int, ...]) -> None:
    pieces = tuple(np.full((n, *columns), float(n)) for n in (2, 0, 1))
    encoder = Encoder(no_models)
    encoder.encode(pieces)
    assert len(encoder.arrays) == 2
    assert same(through(pieces), pieces)


def test_numpy_scalars_become_plain_numbers() -> None:
    assert same(through([np.int64(3), np.float64(0.1), np.bool_(True), np.str_("x")]), [3, 0.1, True, "x"])


def test_the_same_thing_is_written_once_and_memory_is_not_mixed_up() -> None:
    written: list[Any] = []

    encoder = Encoder(lambda member, model: written.append(model))
    one = object()
    encoded = encoder.encode([one, one, *(object() for _ in range(20))])
    assert len(written) == 21
    assert encoded[0] == encoded[1]
    assert len({part["member"] for part in encoded}) == 21
    array = np.arange(3.0)
    encoder.encode([array, array])
    assert len(encoder.arrays) == 1


def test_records_come_back() -> None:
    curve = Curve("gap", np.array([1, 2]), np.array([0.5, np.nan]), 2, "gap", None)
    again = through({"gap": curve})["gap"]
    assert type(again) is Curve
    assert (again.rule, again.chosen, again.spread) == ("gap", 2, None)
    np.testing.assert_array_equal(again.values, curve.values)


CURVE = {"rule": "x", "n_clusters": {"$": "array", "name": "a0"}, "chosen": 1, "criterion": "c"}
CURVE["values"] = CURVE["n_clusters"]


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"a": 1},
        {"$": "nothing"},
        {"$": ["dict"], "items": []},
        {"$": "dict", "items": "ab"},
        {"$": "array", "name": 3},
        {"$": "strings", "items": [1]},
        {"$": "objects", "items": [[1]]},
        {"$": "objects", "items": [None]},
        {"$": "values", "dtype": "O", "items": [1]},
        {"$": "values", "dtype": "i8,i8", "items": [1]},
        {"$": "values", "dtype": "U9999999999", "items": ["1"]},
        {"$": "values", "dtype": "i8", "items": ["1"]},
        {"$": "pieces", "name": "a0", "cuts": "a0"},
        {"$": "model", "member": ["x"]},
        {"$": "Selection", "fields": {"nothing": 1}},
        {"$": "object", "fields": {}},
        {"$": "CoterieRegressor", "fields": {}},
        {"$": "Curve", "fields": {**CURVE, "rule": 3}},
        {"$": "Curve", "fields": {**CURVE, "chosen": True}},
        {"$": "Curve", "fields": {**CURVE, "chosen": 1.5}},
        {"$": "Curve", "fields": {**CURVE, "values": [1, 2]}},
        {"$": "Curve", "fields": {**CURVE, "spread": "wide"}},
        {"$": "Curve", "fields": {**CURVE, "more": 1}},
    ],
    ids=str,
)
def test_json_that_nobody_wrote_is_refused(tree: Any) -> None:
    decoder = Decoder({"a0": np.array([1, 5])}, no_models, Budget(0))
    with pytest.raises(PersistenceError, match=r"^The file holds .*: it was not written by coterie\.save\.$"):
        decoder.decode(tree)
    assert type(decoder.decode({"$": "Curve", "fields": CURVE})) is Curve


LONG = {"a0": np.zeros(10_000_000), "a1": np.arange(10_000_000, dtype="i4") + 1, "a2": np.zeros(300_000)}
PIECES = {"$": "pieces", "name": "a0", "cuts": "a1"}


@pytest.mark.parametrize(
    "tree",
    [
        PIECES,
        {"$": "tuple", "items": [PIECES] * 20},
        {"$": "dict", "items": [["x", PIECES]]},
        {"$": "losses", "of": PIECES},
        {"$": "Curve", "fields": {"candidates": PIECES}},
        # NumPy gives thousands of texts of one letter the room of the longest.
        {"$": "strings", "items": ["x" * 60_000, *[""] * 10_000]},
        [{"$": "strings", "items": ["x" * 600, *[""] * 10_000]}] * 10,
        # ... and a list of arrays an entry for each of their numbers.
        {"$": "objects", "items": [{"$": "array", "name": "a0"}] * 3},
        {"$": "objects", "items": [[1] * 1000] * 1000},
        # Equal hashes: a dictionary looks at all keys for each.
        {"$": "dict", "items": [[k * (2**61 - 1), 0] for k in range(20_000)]},
        {"$": "objects", "items": [k * (2**61 - 1) for k in range(20_000)]},
    ],
    ids=range(11),
)
def test_what_expands_is_refused_before_it_is_made(tree: Any) -> None:
    decoder = Decoder(LONG, no_models, Budget(60_000))
    tracemalloc.start()
    try:
        started = time.process_time()
        with pytest.raises(PersistenceError, match=r"more lists and values|are not ids|made to be slow"):
            decoder.decode(tree)
        spent, most = time.process_time() - started, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # The differences of the cuts are twice as long as these, and there for a moment.
    assert most < 2**27
    assert spent < 5


def test_every_kind_of_value_is_among_those_that_expand() -> None:
    """A new kind needs a line above, or among those that take no more than their text does."""
    known = {"pieces", "tuple", "dict", "losses", "Curve", "strings", "objects"}
    flat = {"float", "array", "values", "model"}
    kinds = set(re.findall(r'"\$": "(\w+)"', inspect.getsource(Decoder)))
    assert kinds == (known | flat) - {"dict", "Curve"}


def test_lists_in_lists_are_refused_in_a_sentence() -> None:
    tree: Any = []
    for _ in range(100_000):
        tree = [tree]
    with pytest.raises(PersistenceError, match="lists in lists"):
        Decoder({}, no_models, Budget(0)).decode(tree)


def test_ids_that_a_file_can_hold() -> None:
    mixed = np.array([1, "a", 0.5, True, date(2020, 1, 1), datetime(2020, 1, 1)], dtype=object)
    for ids in (np.arange(3), np.array(["a"]), np.array(["2020"], "M8[Y]"), mixed):
        check_ids(ids)
    for odd in (b"bytes", None, (1, 2), 1j):
        with pytest.raises(PersistenceError, match="which a file cannot hold: name the learners by int, str"):
            check_ids(np.array([1, odd, "x"], dtype=object))
    for array in (np.array([b"x"]), np.array([1], "m8[s]"), np.array([1j])):
        with pytest.raises(PersistenceError, match="which a file cannot hold"):
            check_ids(array)
