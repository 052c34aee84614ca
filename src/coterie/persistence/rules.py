"""Small rules about values; the table of allowed types is made from them.

They are part of a security boundary: a model file may come from anybody, and what no rule allows is refused.

A rule takes a value and the sizes that are known so far, and tells whether the value may pass. Sizes have
letters: the first array that names a letter sets it, and all others must agree. ``p`` is the number of
features of the estimator that holds the array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np

from coterie._arrays import Array

Sizes = dict[str, int]
Rule = Callable[[Any, Sizes], bool]

# Letters of a text that is a setting.
LONGEST_TEXT = 1000
# NumPy's letters for kinds of entries: bool, int, uint and float.
NUMBERS = "biuf"
# What a file may hold beside numbers: complex numbers, texts, bytes, durations, dates, records of compiled
# trees.
_INERT = NUMBERS + "cUSMmV"
# Words for kinds in the texts of `rules_of`, as NumPy's letters; "O" are objects, checked one by one when
# built.
_KINDS = {
    "any": "biufUO",
    "bool": "b",
    "float": "f",
    "int": "iu",
    "mixed": "biufO",
    "object": "O",
    "uint": "u",
}


def anything(value: Any, sizes: Sizes) -> bool:
    """Let everything pass: what is built from a file has been checked on its own."""
    return True


def none(value: Any, sizes: Sizes) -> bool:
    """Let nothing but None pass."""
    return value is None


def flag(value: Any, sizes: Sizes) -> bool:
    """Let yes and no pass."""
    return isinstance(value, (bool, np.bool_))


def real(value: Any, sizes: Sizes) -> bool:
    """Let one number pass."""
    return isinstance(value, (Real, np.bool_))


def count(most: int, least: int = 0) -> Rule:
    """Return the rule for a whole number from ``least`` to ``most``, both included."""

    def rule(value: Any, sizes: Sizes) -> bool:
        """Tell whether a value is a whole number between the bounds; a bool is none."""
        is_integer = isinstance(value, (int, np.integer)) and type(value) is not bool
        return is_integer and least <= int(value) <= most

    return rule


def text(*options: str) -> Rule:
    """Let a text pass: one of the options, or any short one where none is given."""

    def rule(value: Any, sizes: Sizes) -> bool:
        return isinstance(value, str) and (value in options if options else len(value) <= LONGEST_TEXT)

    return rule


def either(*rules: Rule) -> Rule:
    """Let a value pass that one of the rules lets pass."""

    def rule(value: Any, sizes: Sizes) -> bool:
        return any(option(value, sizes) for option in rules)

    return rule


def maybe(rule: Rule) -> Rule:
    """Let None pass, too."""
    return either(none, rule)


def each(rule: Rule, length: str = "*") -> Rule:
    """Return the rule for a list or tuple whose entries all pass; ``length`` is a word as for `array`."""

    def all_pass(value: Any, sizes: Sizes) -> bool:
        """Tell whether a value is a list of the right length whose entries all pass."""
        has_length = isinstance(value, (list, tuple)) and _agrees(length, len(value), sizes)
        return has_length and all(rule(entry, sizes) for entry in value)

    return all_pass


def table_of(rule: Rule) -> Rule:
    """Return the rule for a dict whose keys are texts and whose values all pass."""

    def all_pass(value: Any, sizes: Sizes) -> bool:
        """Tell whether a value is a dict by text whose entries all pass."""
        return isinstance(value, dict) and all(
            isinstance(name, str) and rule(entry, sizes) for name, entry in value.items()
        )

    return all_pass


def _agrees(word: str, length: int, sizes: Sizes) -> bool:
    """Tell whether a length is as a word of a shape says: ``*``, a number, a letter, or ``<`` and a letter.

    The first use of a letter sets its size, which is added to ``sizes``, and later uses must agree. ``<p`` is
    at most the size of p; of an unknown letter that is 0.
    """
    if word == "*":
        return True
    if word.startswith("<"):
        return length <= sizes.get(word[1:], 0)
    if word.isdigit():
        return length == int(word)
    return sizes.setdefault(word, length) == length


def array(shape: str, kinds: str = NUMBERS) -> Rule:
    """Return the rule for an array of numbers whose shape is as the letters say.

    ``shape`` has a word per dimension: a letter, a number, ``<`` and a letter for at most its size, or ``*``
    for any length. ``kinds`` are NumPy's letters for the kinds of its entries. Masked arrays do not pass.
    """
    letters = shape.split()

    def rule(value: Any, sizes: Sizes) -> bool:
        """Tell whether a value is an array of the right kind and shape."""
        if not isinstance(value, np.ndarray) or isinstance(value, np.ma.MaskedArray):
            return False
        is_of_kind = value.ndim == len(letters) and value.dtype.kind in kinds
        return is_of_kind and all(_agrees(*pair, sizes) for pair in zip(letters, value.shape, strict=True))

    return rule


def doubles(shape: str) -> Rule:
    """Return the rule for an array of this machine's own float64, which compiled code reads as it is."""
    floats = array(shape, "f")

    def rule(value: Any, sizes: Sizes) -> bool:
        return floats(value, sizes) and value.dtype == np.float64

    return rule


def within(shape: str, below: str, least: int = 0) -> Rule:
    """Return the rule for an array of indices, all from ``least`` to below the size of the letter ``below``.

    ``least=-1`` allows -1, which stands for "none". ``shape`` is as for `array`.
    """
    whole = array(shape, "iu")

    def rule(value: Any, sizes: Sizes) -> bool:
        return whole(value, sizes) and stay_within(value, sizes.get(below, 0), least)

    return rule


def stay_within(values: Array, bound: int, least: int = 0) -> bool:
    """Tell whether all indices are at least ``least`` and below a bound, such as the length of a list."""
    return bool(((values >= least) & (values < bound)).all())


_PLAIN: dict[str, Rule] = {"anything": anything, "flag": flag, "none": none, "real": real}


def _rule(description: str, named: Mapping[str, Rule]) -> Rule:
    """Return the rule that a text describes: a named one, or the kind and the shape of an array.

    Before it may stand ``maybe`` (None passes, too), ``table`` (a dict of such), ``each`` (a list), or
    ``each/m`` (one of length m). So "float n p" is an array of floats of shape (n, p), and "n p" one of any
    numbers. ``named`` are rules that go by one word.
    """
    if description in named:
        return named[description]
    first, _, rest = description.partition(" ")
    if first.startswith("each"):
        return each(_rule(rest, named), first[5:] or "*")
    if first in ("maybe", "table"):
        return (maybe if first == "maybe" else table_of)(_rule(rest, named))
    if first == "double":
        return doubles(rest)
    return array(rest, _KINDS[first]) if first in _KINDS else array(description)


def rules_of(attributes: str, named: Mapping[str, Rule] | None = None) -> dict[str, Rule]:
    """Return rules by the attribute's name, from a text such as "coef_: p, weights: maybe float n".

    What stands after the colon is read by `_rule`; ``named`` adds words for rules to those of `_PLAIN`.
    """
    rules_by_name = {**_PLAIN, **(named or {})}
    pairs = (entry.strip().split(": ") for entry in attributes.split(","))
    return {name: _rule(description, rules_by_name) for name, description in pairs}


def _is_plain_array(value: Array) -> bool:
    """Tell whether an array holds plain values only."""
    if value.dtype.kind == "O":
        return value.size == 0 or all(is_plain(entry) for entry in value.ravel().tolist())
    return value.dtype.kind in _INERT


def is_plain(value: Any) -> bool:
    """Tell whether a value is data through and through: nothing in it can be called or fitted.

    Numbers, texts, generators of random numbers and containers of these are data, and so are types of
    numbers. Reading data runs no code.
    """
    if value is None or isinstance(value, (bool, int, float, str, bytes, np.generic, np.dtype, slice)):
        return True
    if isinstance(value, (np.random.RandomState, np.random.Generator)):
        return True
    if isinstance(value, np.ndarray):
        return _is_plain_array(value)
    if isinstance(value, dict):
        return all(is_plain(entry) for pair in value.items() for entry in pair)
    if isinstance(value, (list, tuple, set)):
        return all(map(is_plain, value))
    # Types stand for kinds of numbers: float, numpy.float64.
    return isinstance(value, type) and (issubclass(value, np.generic) or value in (bool, int, float, str))


def numbers(value: Any) -> Iterable[float]:
    """Give out the numbers in a parameter: one, or those of a list or array; none for anything else."""
    if isinstance(value, (list, tuple)):
        for entry in value:
            yield from numbers(entry)
    elif isinstance(value, np.ndarray) and value.dtype.kind in NUMBERS:
        yield from value.ravel().tolist()
    elif isinstance(value, Real):
        yield float(value)
