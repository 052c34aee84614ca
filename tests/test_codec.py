"""JSON that anybody may have written, and records that are read by their type hints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from coterie._codec import HintReader, StrictError, parse_json


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b'{"a": 1, "a": 2}', "A field stands twice in one object."),
        (b'[{"a": {"b": 1, "b": 1}}]', "A field stands twice in one object."),
        (b"[NaN]", "Numbers must be finite. Got NaN."),
        (b"-Infinity", "Numbers must be finite. Got -Infinity."),
    ],
)
def test_json_of_two_meanings_is_refused(text: bytes, sentence: str) -> None:
    with pytest.raises(StrictError) as caught:
        parse_json(text)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", '"a"'.encode("utf-16"), b"[" * 100_000])
def test_what_is_no_json_is_a_value_error(text: bytes) -> None:
    with pytest.raises(ValueError) as caught:
        parse_json(text)
    assert not isinstance(caught.value, StrictError)


def test_json_is_parsed() -> None:
    assert parse_json(b'{"a": [1, 2.5, null, true, "x"]}') == {"a": [1, 2.5, None, True, "x"]}


@dataclass(frozen=True)
class Inner:
    names: tuple[str, ...]


@dataclass(frozen=True)
class Outer:
    count: int
    pair: tuple[int, str]
    maybe: str | None
    either: int | str
    inner: tuple[Inner, ...]
    table: Mapping[str, int]


def _of(kind: type[Any]) -> Any:
    def leaf(value: Any, where: str) -> Any:
        if type(value) is not kind:
            raise ValueError(where)
        return value

    return leaf


class Reader(HintReader):
    leaves = {int: _of(int), str: _of(str)}  # noqa: RUF012
    sequence = list

    def refusal(self, where: str, expected: str, value: Any) -> ValueError:
        return ValueError(f"{where} must be {expected}")

    def check_size(self, value: Any, where: str) -> None:
        if len(value) > 3:
            raise ValueError(f"{where} is too long")

    def record(self, kind: type, value: Any, where: str) -> Any:
        return kind(**self.fields(kind, value))


GOOD: dict[str, Any] = {
    "count": 1,
    "pair": [2, "x"],
    "maybe": None,
    "either": "y",
    "inner": [{"names": ["a", "b"]}],
    "table": {"z": 3},
}


def test_a_record_is_read_by_its_hints() -> None:
    read = Reader().record(Outer, GOOD, "outer")
    assert read == Outer(1, (2, "x"), None, "y", (Inner(("a", "b")),), {"z": 3})


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("count", "1", "count"),
        ("pair", [2], "pair must be a list of 2 entries"),
        ("pair", (2, "x"), "pair must be a list"),
        ("maybe", 1, "maybe"),
        ("either", None, "either"),
        ("inner", [{"names": ["a"] * 4}], "names is too long"),
        ("inner", [{"names": "ab"}], "names must be a list"),
        ("table", [["z", 3]], "table must be an object"),
        ("table", {"z": "3"}, "table"),
    ],
)
def test_a_field_of_another_type_is_refused(field: str, value: Any, why: str) -> None:
    with pytest.raises(ValueError, match=f"^{why}$"):
        Reader().record(Outer, {**GOOD, field: value}, "outer")
