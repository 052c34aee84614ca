"""Ways to bend a good file: its bytes, its protobuf parts, its JSON."""

from __future__ import annotations

import json
import random
import struct
from collections.abc import Callable, Iterator
from typing import Any

import onnx
from onnx import AttributeProto, TensorProto

EXTREME_INTS = (0, 1, -1, 2, 7, 127, 255, 256, 2**31 - 1, 2**31, 2**32, 2**53, 2**62, -(2**63), 2**63 - 1)
EXTREME_NUMBERS = (0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, float("inf"), float("-inf"), float("nan"))
NAMES = ("", "X", "t0", "t1", "c0", "c1", "Loop", "If", "Identity", "Add", "MatMul", "TreeEnsemble", "Cast")


def bend_bytes(content: bytes, draw: random.Random) -> bytes:
    """Flip, set, cut, double, move or insert bytes, a few times."""
    changed = bytearray(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4, 16))):
        place = draw.randrange(len(changed) + 1)
        span = draw.choice((1, 1, 2, 4, 8, 40))
        match draw.randrange(7):
            case 0 if place < len(changed):
                changed[place] ^= 1 << draw.randrange(8)
            case 1 if place < len(changed):
                changed[place] = draw.choice((0, 1, 0x7F, 0x80, 0xFF, draw.randrange(256)))
            case 2:
                del changed[place : place + span]
            case 3:
                changed[place:place] = changed[place : place + span]
            case 4:
                changed[place:place] = draw.randbytes(span)
            case 5 if draw.random() < 0.1:
                del changed[place:]
            case 6:
                source = draw.randrange(len(changed) + 1)
                changed[place : place + span] = changed[source : source + span]
    return bytes(changed)


def _messages(message: Any) -> Iterator[Any]:
    yield message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inner in value if _is_repeated(value) else [value]:
                yield from _messages(inner)


def _is_repeated(value: Any) -> bool:
    return hasattr(value, "append") or hasattr(value, "add")


def _bend_repeated(values: Any, field: Any, draw: random.Random) -> None:
    place = draw.randrange(len(values)) if len(values) else 0
    change = draw.randrange(5)
    if change == 0 and len(values):
        del values[place]
    elif field.type == field.TYPE_MESSAGE:
        other = values[draw.randrange(len(values))] if len(values) else None
        if change == 1 and other is not None:
            values.add().CopyFrom(other)
        elif change == 2 and other is not None:
            values[place].CopyFrom(other)
        elif change == 3:
            values.add()
    elif change == 1 and len(values):
        values[place] = _other_value(field, draw, values[place])
    elif change == 2 and len(values):
        values[place] = values[draw.randrange(len(values))]
    elif change == 3:
        values.append(_other_value(field, draw, None))
    elif len(values) < 1000:
        values.extend(list(values))


def _other_value(field: Any, draw: random.Random, old: Any) -> Any:
    if field.type == field.TYPE_STRING:
        return draw.choice(NAMES)
    if field.type == field.TYPE_BYTES:
        return _bend_numbers(old or b"", draw)
    if field.type in (field.TYPE_FLOAT, field.TYPE_DOUBLE):
        return draw.choice(EXTREME_NUMBERS)
    if field.type == field.TYPE_ENUM:
        return draw.choice([value.number for value in field.enum_type.values])
    bits = 32 if field.type in (field.TYPE_INT32, field.TYPE_UINT32) else 64
    unsigned = field.type in (field.TYPE_UINT32, field.TYPE_UINT64)
    least, most = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    near = old is not None and draw.random() < 0.5
    value = old + draw.choice((-1, 1, -2, 2)) if near else draw.choice(EXTREME_INTS)
    return max(least, min(most, value))


def _bend_numbers(raw: bytes, draw: random.Random) -> bytes:
    if len(raw) < 8 or draw.random() < 0.2:
        return bend_bytes(raw, draw)
    changed = bytearray(raw)
    struct.pack_into("<d", changed, 8 * draw.randrange(len(raw) // 8), draw.choice(EXTREME_NUMBERS))
    return bytes(changed)


def bend_onnx(content: bytes, draw: random.Random) -> bytes:
    """Take an ONNX file apart and change a few of its fields, wherever they are."""
    model = onnx.ModelProto.FromString(content)
    for _ in range(draw.choice((1, 1, 1, 2, 3, 6))):
        message = draw.choice(list(_messages(model)))
        present = {field.name for field, _ in message.ListFields()}
        # Mostly what is there; now and then a field that our files do not have.
        everything = list(message.DESCRIPTOR.fields)
        fields = [f for f in everything if f.name in present] if draw.random() < 0.9 else everything
        if not fields:
            continue
        field = draw.choice(fields)
        value = getattr(message, field.name)
        if _is_repeated(value):
            _bend_repeated(value, field, draw)
        elif draw.random() < 0.2:
            message.ClearField(field.name)
        elif field.type == field.TYPE_MESSAGE:
            value.SetInParent()
        else:
            setattr(message, field.name, _other_value(field, draw, value))
    bent: bytes = model.SerializeToString()
    return bent


def bend_trees(content: bytes, draw: random.Random) -> bytes:
    """Change the lists of nodes of a tree ensemble, and nothing else."""
    model = onnx.ModelProto.FromString(content)
    ensembles = [node for node in model.graph.node if node.op_type == "TreeEnsemble"]
    if not ensembles:
        return bend_onnx(content, draw)
    for _ in range(draw.choice((1, 1, 2, 3))):
        setting = draw.choice(draw.choice(ensembles).attribute)
        if setting.type == AttributeProto.INTS and len(setting.ints):
            place = draw.randrange(len(setting.ints))
            near = setting.ints[place] + draw.choice((-2, -1, 1, 2))
            other = setting.ints[draw.randrange(len(setting.ints))]
            setting.ints[place] = draw.choice((near, other, other, draw.choice(EXTREME_INTS)))
        elif setting.type == AttributeProto.TENSOR and setting.t.data_type == TensorProto.DOUBLE:
            setting.t.raw_data = _bend_numbers(setting.t.raw_data, draw)
    bent: bytes = model.SerializeToString()
    return bent


def bend_value(value: Any, draw: random.Random) -> Any:
    """Change one field of a JSON value, however deep."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        name = draw.choice(list(value))
        match draw.randrange(6):
            case 0:
                return {key: entry for key, entry in value.items() if key != name}
            case 1:
                return {**value, draw.choice((*value, "extra", "", "__class__")): value[name]}
            case _:
                return {**value, name: bend_value(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.9:
        place = draw.randrange(len(value))
        match draw.randrange(6):
            case 0:
                return value[:place] + value[place + 1 :]
            case 1:
                return [*value, value[place]]
            case _:
                return [*value[:place], bend_value(value[place], draw), *value[place + 1 :]]
    plain = (
        None,
        True,
        False,
        "",
        "x" * 600,
        "\x00",
        "é",
        [],
        {},
        [[]],
        10**400,
        "NaN",
        -1,
        0,
        1,
        2**53,
        2**63,
        1.5,
    )
    numbers = (1e308, 5e-324, -1e-9)
    return draw.choice((*plain, *numbers))


def bend_json(content: bytes, draw: random.Random) -> bytes:
    """Change a few fields of a JSON message, wherever they are."""
    value = json.loads(content)
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        value = bend_value(value, draw)
    text = json.dumps(value)
    if draw.random() < 0.05:
        text = text.replace("1", draw.choice(("NaN", "Infinity", "1e999", "[" * 5000)), 1)
    return text.encode("utf-8", "surrogatepass")


Bending = Callable[[bytes, random.Random], bytes]
