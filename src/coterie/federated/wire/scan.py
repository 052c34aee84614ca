"""A walk over the bytes of an ONNX file before any library parses it.

A file of a few megabytes can hold millions of empty parts, which take gigabytes once they are parsed, or
fields that reach outside: other files, functions, graphs inside graphs. The walk admits the fields that
coterie's own models have, counts them, and names the first one that they do not have.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from coterie.federated.wire.envelope import MAX_NAME, MAX_PARTS, unreadable

_VARINT, _BYTES = 0, 2
# Long lists of integers (the nodes of trees) are passed over by the regular expression machine: one tag and
# one varint, again and again, without ever looking back.
_RUN_OF_INTS = re.compile(rb"(?:\x40[\x80-\xff]{0,9}+[\x00-\x7f])++")
_INTS = 8


@dataclass(frozen=True)
class _Message:
    """The fields of a protobuf message that are admitted, by number."""

    name: str
    varints: frozenset[int] = frozenset()
    names: frozenset[int] = frozenset()
    blobs: frozenset[int] = frozenset()
    messages: dict[int, _Message] = field(default_factory=dict)
    # What a refusal calls the fields that somebody might really send.
    refused: dict[int, str] = field(default_factory=dict)


_DIMENSION = _Message("dimension", frozenset({1}), frozenset({2}))
_SHAPE = _Message("shape", messages={1: _DIMENSION})
_TENSOR_TYPE = _Message("tensor type", frozenset({1}), messages={2: _SHAPE})
_TYPE = _Message("type", messages={1: _TENSOR_TYPE})
_VALUE = _Message("value", names=frozenset({1}), messages={2: _TYPE})
_TENSOR = _Message(
    "tensor",
    frozenset({1, 2}),
    frozenset({8}),
    frozenset({9}),
    refused={13: "data in another file", 14: "data in another file"},
)
_ATTRIBUTE = _Message(
    "attribute",
    frozenset({3, _INTS, 20}),
    frozenset({1}),
    messages={5: _TENSOR},
    refused={6: "a graph inside the graph", 11: "a graph inside the graph", 22: "a sparse tensor"},
)
_NODE = _Message("node", names=frozenset({1, 2, 4, 7}), messages={5: _ATTRIBUTE})
_GRAPH = _Message(
    "graph",
    names=frozenset({2}),
    messages={1: _NODE, 5: _TENSOR, 11: _VALUE, 12: _VALUE},
    refused={15: "a sparse tensor"},
)
_OPSET = _Message("operator set", frozenset({2}), frozenset({1}))
_MODEL = _Message(
    "model",
    frozenset({1}),
    messages={7: _GRAPH, 8: _OPSET},
    refused={14: "metadata", 20: "a training step", 25: "functions of its own"},
)


class _Walk:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.n_parts = 0

    def varint(self, start: int, end: int) -> tuple[int, int]:
        value = 0
        for place in range(start, min(start + 10, end)):
            byte = self.content[place]
            value |= (byte & 0x7F) << 7 * (place - start)
            if byte < 0x80:
                return value, place + 1
        raise unreadable("is not a sound ONNX file: it breaks off inside a number")

    def name(self, start: int, end: int) -> None:
        if end - start > MAX_NAME or not self.content[start:end].isascii():
            raise unreadable(f"holds a name that is not plain text of at most {MAX_NAME} letters")

    def message(self, kind: _Message, start: int, end: int) -> None:
        while start < end:
            if kind is _ATTRIBUTE:
                run = _RUN_OF_INTS.match(self.content, start, end)
                if run is not None:
                    start = run.end()
                    continue
            self.n_parts += 1
            if self.n_parts > MAX_PARTS:
                raise unreadable(f"has more than the {MAX_PARTS} parts that are read")
            tag, start = self.varint(start, end)
            number, wire_type = tag >> 3, tag & 7
            if wire_type == _VARINT and number in kind.varints:
                _, start = self.varint(start, end)
            elif wire_type == _BYTES and number in (*kind.names, *kind.blobs, *kind.messages):
                length, start = self.varint(start, end)
                if length > end - start:
                    raise unreadable("is not a sound ONNX file: a part of it ends behind its end")
                if number in kind.messages:
                    self.message(kind.messages[number], start, start + length)
                elif number in kind.names:
                    self.name(start, start + length)
                start += length
            else:
                what = kind.refused.get(number, f"an unknown part (field {number} of a {kind.name})")
                raise unreadable(f"holds {what}, which models of coterie do not have")


def scan(content: bytes) -> None:
    """Refuse bytes that are not shaped like an ONNX file of coterie."""
    _Walk(content).message(_MODEL, 0, len(content))
