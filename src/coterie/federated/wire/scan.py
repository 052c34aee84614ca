"""A walk over the bytes of an ONNX file before any library parses it.

A file of a few megabytes can hold millions of empty parts, which take gigabytes once they are parsed, or
fields that reach outside: other files, functions, graphs inside graphs. The walk admits the fields that
coterie's own models have, counts them, and names the first one that they do not have.
"""

from __future__ import annotations

import re
from typing import Any

import onnx

from coterie.federated.wire.envelope import MAX_NAME, MAX_PARTS, unreadable

_VARINT, _BYTES = 0, 2
# Long lists of integers (the nodes of trees) are passed over by the regular expression machine: one tag and
# one varint, again and again, without ever looking back.
_RUN_OF_INTS = re.compile(rb"(?:\x40[\x80-\xff]{0,9}+[\x00-\x7f])++")

# The kinds of parts: what a refusal calls them, and the fields that are admitted.
_ADMITTED = {
    "onnx.ModelProto": ("model", {"ir_version", "graph", "opset_import"}),
    "onnx.OperatorSetIdProto": ("operator set", {"domain", "version"}),
    "onnx.GraphProto": ("graph", {"node", "name", "initializer", "input", "output"}),
    "onnx.NodeProto": ("node", {"input", "output", "op_type", "attribute", "domain"}),
    "onnx.AttributeProto": ("attribute", {"name", "i", "t", "ints", "type"}),
    "onnx.TensorProto": ("tensor", {"dims", "data_type", "name", "raw_data"}),
    "onnx.ValueInfoProto": ("value", {"name", "type"}),
    "onnx.TypeProto": ("type", {"tensor_type"}),
    "onnx.TypeProto.Tensor": ("tensor type", {"elem_type", "shape"}),
    "onnx.TensorShapeProto": ("shape", {"dim"}),
    "onnx.TensorShapeProto.Dimension": ("dimension", {"dim_value", "dim_param"}),
}
# What a refusal calls the fields that somebody might really send.
_REFUSED = {
    "external_data": "data in another file",
    "data_location": "data in another file",
    "g": "a graph inside the graph",
    "graphs": "a graph inside the graph",
    "sparse_tensor": "a sparse tensor",
    "sparse_initializer": "a sparse tensor",
    "metadata_props": "metadata",
    "training_info": "a training step",
    "functions": "functions of its own",
}


def _wire_type(field: Any) -> int:
    return _BYTES if field.cpp_type in (field.CPPTYPE_STRING, field.CPPTYPE_MESSAGE) else _VARINT


class _ByteScan:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.n_parts = 0

    def varint(self, start: int, end: int) -> tuple[int, int]:
        """Return the number of variable length at a place, and where it ends."""
        value = 0
        for index in range(start, min(start + 10, end)):
            byte = self.content[index]
            value |= (byte & 0x7F) << 7 * (index - start)
            if byte < 0x80:
                return value, index + 1
        raise unreadable("is not a sound ONNX file: it breaks off inside a number")

    def name(self, start: int, end: int) -> None:
        """Refuse a name that is long or not ASCII."""
        if end - start > MAX_NAME or not self.content[start:end].isascii():
            raise unreadable(f"holds a name that is not plain text of at most {MAX_NAME} letters")

    def message(self, kind: Any, start: int, end: int) -> None:
        """Check that a protobuf message has only the admitted fields."""
        called, admitted = _ADMITTED[kind.full_name]
        while start < end:
            if called == "attribute":
                run = _RUN_OF_INTS.match(self.content, start, end)
                if run is not None:
                    start = run.end()
                    continue
            self.n_parts += 1
            if self.n_parts > MAX_PARTS:
                raise unreadable(f"has more than the {MAX_PARTS} parts that are read")
            tag, start = self.varint(start, end)
            number, wire_type = tag >> 3, tag & 7
            field = kind.fields_by_number.get(number)
            name = "" if field is None else field.name
            if name not in admitted or wire_type != _wire_type(field):
                what = _REFUSED.get(name, f"an unknown part (field {number} of a {called})")
                raise unreadable(f"holds {what}, which models of coterie do not have")
            length, start = self.varint(start, end)
            if wire_type == _VARINT:
                continue
            if length > end - start:
                raise unreadable("is not a sound ONNX file: a part of it ends behind its end")
            if field.message_type is not None:
                self.message(field.message_type, start, start + length)
            elif name != "raw_data":
                self.name(start, start + length)
            start += length


def scan(content: bytes) -> None:
    """Refuse bytes that are not shaped like an ONNX file of coterie."""
    _ByteScan(content).message(onnx.ModelProto.DESCRIPTOR, 0, len(content))
