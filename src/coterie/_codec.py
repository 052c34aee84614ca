"""Frozen records from JSON that anybody may have written: parsed strictly, checked by their type hints.

A record's type hints are its schema, on the wire as in a file. `HintReader` walks over them. What passes for
a number, a text or an array, which sizes are too large and what a refusal says is up to each side.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

Leaf = Callable[[Any, str], Any]


class StrictError(ValueError):
    """JSON that means one thing to one reader and another to the next; the text is one sentence."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the names and values of a JSON object as a dict; refuse a name that stands twice.

    Parsers differ in which of the two values they take, so that one file would mean two things.
    """
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise StrictError("A field stands twice in one object.")
    return fields


def _not_finite(text: str) -> Any:
    """Refuse NaN and infinities, which Python's parser takes though JSON does not know them."""
    raise StrictError(f"Numbers must be finite. Got {text}.")


def parse_json(text: bytes) -> Any:
    """Parse JSON in UTF-8 whose numbers are finite and whose objects have each field once.

    Anything else is a ValueError: a StrictError where it is JSON nevertheless.
    """
    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=_once, parse_constant=_not_finite)
    except RecursionError:
        raise ValueError("There are lists in lists without an end.") from None


@cache
def hints_of(record: type) -> Mapping[str, Any]:
    """Return the types of a record's fields by name; the answer is kept, for it is slow to find."""
    return get_type_hints(record)


def _origin(hint: Any) -> Any:
    """Return the type of a hint without its arguments: ``tuple`` of ``tuple[int, ...]``."""
    bare_type = get_origin(hint) or hint
    while hasattr(bare_type, "__value__"):
        # A named alias, as that of NumPy's arrays is since 2.5.
        bare_type = get_origin(bare_type.__value__) or bare_type.__value__
    return bare_type


class HintReader:
    """Checks values against type hints, and returns them as the hints want them.

    This is a security boundary: values may come from a stranger's file or site, and what no hint allows gets
    no further. A subclass has ``leaves``, which by type take a value and the name of its field and return it
    or raise, and ``sequence``, the type that stands for a tuple.
    """

    leaves: ClassVar[Mapping[Any, Leaf]]
    sequence: ClassVar[type[Any]]

    def refusal(self, where: str, expected: str, value: Any) -> ValueError:
        """Return the error of a value that is not what its field must be."""
        raise NotImplementedError

    def check_size(self, value: Any, where: str) -> None:
        """Refuse a list or an object that is too long; nothing is, unless a subclass says so."""

    def record(self, kind: type, value: Any, where: str) -> Any:
        """Return a record (dataclass ``kind``) from the value of a field that holds one."""
        raise NotImplementedError

    def fields(self, kind: type, parts: Mapping[str, Any]) -> dict[str, Any]:
        """Return the checked fields of a record from a JSON object; each name must be a field of ``kind``."""
        hints = hints_of(kind)
        return {name: self.read(hints[name], part, name) for name, part in parts.items()}

    def read(self, hint: Any, value: Any, where: str) -> Any:
        """Return a value as its type hint wants it, or raise the reader's refusal.

        ``where`` is the name of the field, for the error. Types that are no leaf, union, tuple or
        dict are records.
        """
        bare_type, type_arguments = _origin(hint), get_args(hint)
        if bare_type in self.leaves:
            return self.leaves[bare_type](value, where)
        if bare_type in (Union, UnionType):
            return self._option(type_arguments, value, where)
        if bare_type is tuple:
            return self._tuple(type_arguments, value, where)
        if bare_type in (dict, Mapping):
            return self._mapping(type_arguments, value, where)
        return self.record(bare_type, value, where)

    def _option(self, options: tuple[Any, ...], value: Any, where: str) -> Any:
        """Read a value of a union (``int | None``): the first type that takes it, else the last's error.

        ``options`` are the union's types, in the order in which they are tried.
        """
        if value is None and NoneType in options:
            return None
        *others, last = (option for option in options if option is not NoneType)
        for option in others:
            try:
                return self.read(option, value, where)
            except ValueError:
                continue
        return self.read(last, value, where)

    def _tuple(self, entry_hints: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
        """Read a list as a tuple, of fixed length or, with ``...`` as the last hint, of any length.

        Leaves are called directly there, for long lists of numbers are common.
        """
        if not isinstance(value, self.sequence):
            raise self.refusal(where, "a list", value)
        if entry_hints[-1] is Ellipsis:
            self.check_size(value, where)
            leaf = self.leaves.get(entry_hints[0])
            if leaf is not None:
                return tuple([leaf(entry, where) for entry in value])
            return tuple([self.read(entry_hints[0], entry, where) for entry in value])
        if len(value) != len(entry_hints):
            raise self.refusal(where, f"a list of {len(entry_hints)} entries", value)
        return tuple(self.read(hint, entry, where) for hint, entry in zip(entry_hints, value, strict=True))

    def _mapping(self, hints: tuple[Any, ...], value: Any, where: str) -> dict[Any, Any]:
        """Read a JSON object as a dict; ``hints`` are the types of its names and of its entries."""
        if not isinstance(value, dict):
            raise self.refusal(where, "an object", value)
        self.check_size(value, where)
        return {
            self.read(hints[0], name, where): self.read(hints[1], entry, where)
            for name, entry in value.items()
        }
