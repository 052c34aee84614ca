"""Records to JSON and back, strictly: what is not expected is refused with a sentence, never guessed.

A record's type hints are its schema. Text from a peer may be anything: it is bounded in size before it is
parsed, numbers must be finite, and no field may be missing, unknown, doubled or of another type.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, TypeVar

from coterie._codec import HintReader, Leaf, StrictError, parse_json

Record = TypeVar("Record")

# Bytes of a message: it carries one model and a few numbers for every peer.
MOST_BYTES = 64 * 2**20
# Characters of one text.
MOST_TEXT = 500
# Entries of one list or object.
MOST_ENTRIES = 1_000_000
# Lists with objects, and commas, of a whole message. They are counted before it is parsed, since empty lists
# take thirty times the memory of their text.
MOST_LISTS = 2_000_000
MOST_ITEMS = 8_000_000
# The largest number in a message. Squares of larger losses would leave the range of floating point.
LARGEST = 1e100


class ProtocolError(ValueError):
    """A message cannot be taken; the text is one sentence and names what is wrong with it."""


def _shortened(value: Any) -> str:
    """Return a value as text for an error message, cut to sixty characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _wrong_value(where: str, expected: str, value: Any) -> ProtocolError:
    """Return the error for a field with another value than expected; the caller raises it."""
    return ProtocolError(f"The field {where!r} must be {expected}. Got {_shortened(value)}.")


def _number(value: Any, where: str) -> float:
    """Return a finite number of bounded size as a float; refuse anything else, booleans among them.

    The bound keeps squares and sums of squares finite.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _wrong_value(where, "a number", value)
    if not abs(value) <= LARGEST:
        raise _wrong_value(where, f"finite and at most {LARGEST:g} in size", value)
    return float(value)


def _whole(value: Any, where: str) -> int:
    """Return a whole number of at most 2^53 in size; refuse anything else, booleans among them.

    Larger ones would not survive programs that read JSON numbers as floats.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong_value(where, "a whole number", value)
    if not -(2**53) <= value <= 2**53:
        raise _wrong_value(where, "below 2^53 in size", value)
    return value


def _text(value: Any, where: str) -> str:
    """Return printable text of bounded length; refuse anything else.

    Texts are printed in reports and terminals, where control characters could do harm.
    """
    if not isinstance(value, str):
        raise _wrong_value(where, "text", value)
    if len(value) > MOST_TEXT or not value.isprintable():
        raise _wrong_value(where, f"printable and at most {MOST_TEXT} characters long", value)
    return value


def _bytes(value: Any, where: str) -> bytes:
    """Return the bytes that a text in base64 stands for; refuse anything else.

    Letters outside of base64 are refused, not skipped.
    """
    if not isinstance(value, str):
        raise _wrong_value(where, "text in base64", value)
    try:
        return base64.b64decode(value.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError):
        raise _wrong_value(where, "text in base64", value) from None


def _flag(value: Any, where: str) -> bool:
    """Return a JSON boolean; refuse anything else.

    Zero and one are no booleans here: a text has one reading only.
    """
    if not isinstance(value, bool):
        raise _wrong_value(where, "true or false", value)
    return value


class _Reader(HintReader):
    """Reads records strictly from parsed JSON: no field may be missing, unknown or of another type.

    `HintReader` walks along the type hints; this class says how single values, sizes and records are checked.
    """

    leaves: ClassVar[Mapping[Any, Leaf]] = {
        bool: _flag,
        bytes: _bytes,
        float: _number,
        int: _whole,
        str: _text,
    }
    sequence: ClassVar[type[Any]] = list

    def refusal(self, where: str, expected: str, value: Any) -> ValueError:
        return _wrong_value(where, expected, value)

    def check_size(self, value: Any, where: str) -> None:
        """Refuse a list or object with too many entries."""
        if len(value) > MOST_ENTRIES:
            raise ProtocolError(f"The field {where!r} has {len(value)} entries: at most {MOST_ENTRIES}.")

    def record(self, kind: type, value: Any, where: str) -> Any:
        """Return an object as a dataclass of this kind; refuse missing and unknown fields.

        Fields of another version are not guessed at.
        """
        if not isinstance(value, dict):
            raise _wrong_value(where, "an object", value)
        field_names = {field.name for field in fields(kind)}
        for name in sorted(field_names - set(value)):
            raise ProtocolError(f"The field {name!r} of {where!r} is missing.")
        for name in sorted(set(value) - field_names):
            raise ProtocolError(f"The field {_shortened(name)} of {where!r} is not known.")
        return kind(**self.fields(kind, value))


def _to_plain(value: Any) -> Any:
    """Return a record as dicts, lists, text and numbers, which JSON can hold; refuse NaN and infinity.

    Bytes become text in base64. `from_plain` is the way back.
    """
    if type(value) is int or type(value) is str:
        return value
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {name: _to_plain(entry) for name, entry in value.items()}
    if isinstance(value, tuple):
        return [_to_plain(entry) for entry in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        raise ProtocolError("A number that is not finite cannot be sent.")
    return value


def to_text(value: Any) -> bytes:
    """Return a record as the bytes of its JSON, the same bytes for the same content.

    Keys are sorted and spaces left out: hashes and signatures are made of these bytes.
    """
    plain = _to_plain(value)
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def parse(text: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object that somebody else wrote; its fields are not checked yet.

    Sizes are checked before parsing, for a hostile text may need far more memory than its length. ``what``
    says what it should be, for the error.
    """
    if len(text) > MOST_BYTES:
        raise ProtocolError(f"The {what} has {len(text)} bytes: at most {MOST_BYTES} are read.")
    if text.count(b"[") + text.count(b"{") > MOST_LISTS or text.count(b",") > MOST_ITEMS:
        raise ProtocolError(f"The {what} has too many parts: at most {MOST_LISTS} lists are read.")
    try:
        parsed = parse_json(text)
    except StrictError as error:
        raise ProtocolError(str(error)) from None
    except ValueError:
        raise ProtocolError(f"The {what} is not JSON: it was cut off or changed on its way.") from None
    if not isinstance(parsed, dict):
        raise ProtocolError(f"The {what} must be a JSON object. Got {_shortened(parsed)}.")
    return parsed


def from_plain(kind: type[Record], value: Any, where: str) -> Record:
    """Return the record that parsed JSON stands for; ``where`` names the whole in errors.

    ``kind`` is a dataclass of text, numbers, bytes, tuples, mappings by text and such dataclasses; its type
    hints are the schema.
    """
    try:
        restored: Record = _Reader().record(kind, value, where)
    except OverflowError:
        raise ProtocolError(f"A number of the {where} is too large.") from None
    return restored
