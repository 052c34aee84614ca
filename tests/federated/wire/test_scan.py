"""The walk over the bytes: it counts before anything is parsed, and ends wherever the bytes end."""

from __future__ import annotations

import pytest

from coterie.federated.wire import envelope
from coterie.federated.wire.scan import scan


def part(number: int, content: bytes) -> bytes:
    length, digits = len(content), bytearray()
    while length > 0x7F:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | 2]) + bytes(digits) + bytes([length]) + content


GRAPH, NODE, ATTRIBUTE, INTS = 7, 1, 5, 8


def test_plain_parts_pass() -> None:
    scan(b"")
    scan(b"\x08\x09" + part(GRAPH, part(2, b"model")))
    many = part(ATTRIBUTE, part(1, b"ids") + b"\x40\x05\x40\xff\x01" * 1000)
    scan(part(GRAPH, part(NODE, many)))


def test_millions_of_empty_parts_are_refused_without_parsing_them() -> None:
    # Two bytes each here, more than a hundred once parsed.
    content = part(GRAPH, part(NODE, b"") * 4_000_000)
    with pytest.raises(envelope.WireError, match=f"more than the {envelope.MAX_PARTS} parts"):
        scan(content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x08", "breaks off inside a number"),
        (b"\x08" + b"\xff" * 20, "breaks off inside a number"),
        (b"\x3a\x05abc", "ends behind its end"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "ends behind its end"),
        (b"\x3b", "unknown part"),
        (b"\x38\x01", "unknown part"),
        (part(GRAPH, part(NODE, part(ATTRIBUTE, part(INTS, b"\x01\x02")))), "unknown part"),
        (part(GRAPH, part(NODE, part(ATTRIBUTE, b"\x40"))), "breaks off"),
        (part(GRAPH, part(NODE, part(4, b"\xff"))), "plain text"),
    ],
)
def test_other_bytes_are_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(envelope.WireError, match=sentence):
        scan(content)
