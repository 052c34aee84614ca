"""Small model files that mean large things: every kind of entry with its largest counts, sizes that lie.

A file of less than 160 kB may unpack to 16 MiB, most of it zeros here. What its few entries then stand for is
up to the reader: views of an array, texts as wide as the longest, copies of trees, keys that collide.
"""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

Members = dict[str, bytes]
Draw = random.Random
Json = Any

MANIFEST, ARRAYS, SCHEMA = "manifest.json", "arrays.npz", "schema.json"
LARGE = 14_000_000
COLLIDING = 2**61 - 1
DTYPES = ("|b1", "|i1", "|u1", "<i2", "<i4", "<i8", "<f4", "<f8", ">f8")
DEEP = "lists in lists"
EMPTY = ((0,), (1_000_000, 0), (1_000_000, 1_000_000, 0), (0, 2**40), (2**31, 0, 2**31))
NODE = {"__module__": "numpy", "__class__": "ndarray", "__loader__": "NdArrayNode", "type": "numpy"}


def _npy(shape: tuple[int, ...], dtype: str) -> bytes:
    header = io.BytesIO()
    described = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(header, described)
    size = int(np.prod([float(n) for n in shape]))
    return header.getvalue() + bytes(size * np.dtype(dtype).itemsize)


def _large(dtype: str, n_bytes: int = LARGE) -> bytes:
    return _npy((n_bytes // np.dtype(dtype).itemsize,), dtype)


def _many(entry: Json, draw: Draw, most: int) -> list[Json]:
    return [entry] * min(most, draw.choice((20, 1000, most)))


def _pieces(draw: Draw) -> Json:
    return {"$": "pieces", "name": draw.choice(("a0", "large")), "cuts": "large"}


def _strings(draw: Draw) -> Json:
    n = draw.choice((100, 10_000, 150_000))
    return {"$": "strings", "items": ["x" * draw.choice((1_000, 60_000, 1_000_000)), *[""] * n]}


def _objects(draw: Draw) -> Json:
    array: Json = {"$": "array", "name": "large"}
    entry = draw.choice((array, [0] * 300, {"$": "tuple", "items": [0] * 300}, COLLIDING**2, "x" * 1000))
    return {"$": "objects", "items": _many(entry, draw, 100_000 if isinstance(entry, (str, int)) else 600)}


def _colliding(draw: Draw) -> Json:
    keys = [k * COLLIDING for k in range(draw.choice((1_000, 30_000)))]
    if draw.random() < 0.5:
        return {"$": draw.choice(("dict", "Gains")), "items": [[key, 0] for key in keys]}
    return {"$": "objects", "items": keys}


def _values(draw: Draw) -> Json:
    dtype = draw.choice(("<f8", "|u1", "<M8[ns]", "<i99", "<f16", "<M8[999999999Y]"))
    items = _many(draw.choice((0, 1.5, True)), draw, 150_000)
    return {"$": "values", "dtype": dtype, "items": items}


def _plain(draw: Draw) -> Json:
    kind = draw.choice(("float", "date", "datetime"))
    return {"$": kind, "text": draw.choice(("9", "1e", " ", "\U0001f600")) * draw.choice((400, 100_000))}


def _inside(draw: Draw) -> Json:
    """Return many of one entry in a list, a tuple, a mapping, losses or a record."""
    entry = draw.choice((_pieces, _array, _model, _strings))(draw)
    most = 5_000 if entry["$"] != "strings" else 20
    items = _many(entry, draw, most)
    mapping = {"$": "dict", "items": [[k, part] for k, part in enumerate(items)]}
    record = {
        "$": draw.choice(("Curve", "Units", "Learners")),
        "fields": {str(k): entry for k in range(min(most, 500))},
    }
    return draw.choice((items, {"$": "tuple", "items": items}, mapping, {"$": "losses", "of": entry}, record))


def _array(draw: Draw) -> Json:
    return {"$": "array", "name": "large"}


def _model(draw: Draw) -> Json:
    return {"$": "model", "member": "models/0.skops"}


def _deep(draw: Draw) -> Json:
    # Python's own writer would not go so deep.
    return DEEP


# Every kind that the reader knows; a test compares the two.
KINDS: dict[str, Callable[[Draw], Json]] = {
    "pieces": _pieces,
    "strings": _strings,
    "objects": _objects,
    "colliding keys": _colliding,
    "values": _values,
    "float, dates": _plain,
    "array": _array,
    "model": _model,
    "tuple, dict, losses, records": _inside,
    "deep": _deep,
}


def _zip(members: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for name, part in members.items():
            zipped.writestr(zipfile.ZipInfo(name), part, method)
    return content.getvalue()


def _unzipped(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def _places(tree: Json, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Return where something could stand: the holder and the key of each entry."""
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, part in pairs:
        found.append((tree, key))
        _places(part, found)
    return found


def _entries(members: Members, draw: Draw) -> Members:
    """Put an entry of one kind, with its largest counts, somewhere into the manifest."""
    manifest = json.loads(members[MANIFEST])
    roots = [manifest[part] for part in ("parameters", "learners", "estimator", "fit", "fit")]
    # Most of them where any value is decoded: at a part's own place.
    root = draw.choice(roots)
    holder, key = draw.choice(list(_places(root, [])) if draw.random() < 0.5 else [(root, k) for k in root])
    holder[key] = KINDS[draw.choice(list(KINDS))](draw)
    arrays = _unzipped(members[ARRAYS])
    arrays["large.npy"] = _large(draw.choice(DTYPES), draw.choice((1_000_000, LARGE)))
    arrays.setdefault("a0.npy", _npy((1,), "<f8"))
    text, depth = json.dumps(manifest, ensure_ascii=draw.random() < 0.5), draw.choice((300, 900, 100_000))
    begin, end = draw.choice((("[", "]"), ('{"$": "tuple", "items": [', "]}")))
    deep = begin * depth + end * depth
    return {**members, MANIFEST: text.replace(f'"{DEEP}"', deep).encode(), ARRAYS: _zip(arrays)}


def _arrays(members: Members, draw: Draw) -> Members:
    """Make arrays as long as they may be, in any kind and shape."""
    arrays = _unzipped(members[ARRAYS])
    name, dtype = draw.choice(list(arrays)), draw.choice(DTYPES)
    width = draw.choice((1, 1, 2, 5))
    shape = draw.choice(((LARGE,), (LARGE // width, width), (width, LARGE // width)))
    itemsize = np.dtype(dtype).itemsize
    shape = tuple(max(1, n // itemsize) if n > width else n for n in shape)
    arrays[name] = _npy(draw.choice(EMPTY) if draw.random() < 0.2 else shape, dtype)
    changed = {**members, ARRAYS: _zip(arrays)}
    if draw.random() < 0.5:
        return changed
    # As who the learners are, or what is known of them.
    manifest = json.loads(members[MANIFEST])
    root = draw.choice([manifest["learners"], manifest["estimator"], manifest["fit"]])
    holder, key = draw.choice(_places(root, []))
    holder[key] = {"$": "array", "name": name.removesuffix(".npy")}
    return {**changed, MANIFEST: json.dumps(manifest).encode()}


def _nodes(schema: Json, found: list[Any]) -> list[Any]:
    if isinstance(schema, dict) and "__loader__" in schema:
        found.append(schema)
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _nodes(part, found)
    return found


def _node(draw: Draw, file: str) -> Json:
    """Return a part of a model that is small in the file and not when it is made."""
    array = {**NODE, "file": file}
    data = draw.choice((array, {**NODE, "file": "one.npy"}))
    masked = {"__module__": "numpy.ma", "__class__": "MaskedArray", "__loader__": "MaskedArrayNode"}
    scalar = {**array, "__class__": draw.choice(("str_", "float64"))}
    text = {"__class__": "int", "__module__": "builtins", "__loader__": "TypeNode"}
    keys = [str(k * COLLIDING) for k in range(draw.choice((1_000, 20_000)))]
    plain = {"__module__": "builtins", "__class__": "NoneType", "__loader__": "JsonNode", "content": "null"}
    whole = [{**plain, "content": key} for key in keys]
    return draw.choice(
        (
            {**masked, "content": {"data": array, "mask": data}},
            scalar,
            {
                "__module__": "builtins",
                "__class__": "dict",
                "__loader__": "DictNode",
                "key_types": {"content": [text] * len(keys)},
                "content": dict.fromkeys(keys, plain),
            },
            {"__module__": "builtins", "__class__": "set", "__loader__": "SetNode", "content": whole},
            {**array, "type": "json", "shape": {**plain, "content": "1000000000"}, "content": []},
            {"__module__": "builtins", "__class__": "bytes", "__loader__": "BytesNode", "file": file},
        )
    )


def _models(members: Members, draw: Draw) -> Members:
    """Repeat a part of a model thousands of times, or put one in that is large when it is made."""
    names = [name for name in members if name.startswith("models/")]
    name = draw.choice(names)
    files = _unzipped(members[name])
    schema = json.loads(files[SCHEMA])
    dtype = draw.choice((*DTYPES, "<U3000000"))
    files["large.npy"] = _npy((), dtype) if dtype.startswith("<U") else _large(dtype, 8_000_000)
    files["one.npy"] = _npy((), "|b1")
    nodes = _nodes(schema, [])
    part = _node(draw, "large.npy") if draw.random() < 0.6 else json.loads(json.dumps(draw.choice(nodes)))
    held = [part] * max(1, min(draw.choice((1, 50, 2_000)), 3_000_000 // len(json.dumps(part))))
    many = {"__module__": "builtins", "__class__": "list", "__loader__": "ListNode", "content": held}
    target = draw.choice(nodes)
    target.clear()
    target.update(many)
    files[SCHEMA] = json.dumps(schema).encode()
    bent = _zip(files)
    return {**members, **{other: bent for other in names if members[other] == members[name]}}


CHANGES = {"entries": _entries, "long arrays": _arrays, "parts of models": _models}


def lying(members: Members, name: str, tail: int, declared: int, *, stored: bool = False) -> bytes:
    """Return a zip in which a member is longer, by zeros, and said to have another size."""
    longer = {**members, name: members[name] + bytes(tail)}
    content = bytearray(_zip(longer, zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED))
    crc = zlib.crc32(longer[name][:declared])
    for mark, sums, names in ((b"PK\3\4", 14, 30), (b"PK\1\2", 16, 46)):
        place = content.find(mark)
        while place >= 0:
            if content[place + names : place + names + len(name)] == name.encode():
                struct.pack_into("<I", content, place + sums, crc)
                struct.pack_into("<I", content, place + sums + 8, declared)
            place = content.find(mark, place + 4)
    return bytes(content)


def _lie(members: Members, draw: Draw) -> bytes:
    name = draw.choice(list(members))
    size = len(members[name])
    declared = draw.choice((size, size, 0, size // 2, size + 1, LARGE, 2**32 - 2))
    return lying(members, name, draw.choice((0, 1, LARGE, 3 * LARGE)), declared, stored=draw.random() < 0.2)


def expanded(members: Members, draw: Draw, sealed: Callable[..., bytes]) -> tuple[str, bytes]:
    """Return the way and the content of a small file that means a large thing."""
    change = draw.choice((*CHANGES, *CHANGES, "sizes that lie"))
    if change == "sizes that lie":
        return change, _lie(members, draw)
    bent = CHANGES[change](members, draw)
    try:
        return change, sealed(bent, zipfile.ZIP_DEFLATED)
    # A manifest that is too deep to be read has no place for checksums.
    except RecursionError:
        return change, _zip(bent, zipfile.ZIP_DEFLATED)
