"""Good model files of every allowed type, and ways to bend them."""

from __future__ import annotations

import hashlib
import io
import json
import random
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bending import EXTREME_INTS, EXTREME_NUMBERS, bend_bytes, bend_value
from expansions import expanded
from sklearn.base import clone

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "persistence"))
import zoo

import coterie
from coterie import CoterieRegressor
from coterie.persistence.allowed import TYPES
from coterie.persistence.models import dump_model

Members = dict[str, bytes]
Draw = random.Random

MANIFEST, ARRAYS, SCHEMA = "manifest.json", "arrays.npz", "schema.json"
GROUPS = np.repeat(["north", "south"], 20)
LOADERS = (
    "DictNode",
    "FunctionNode",
    "JsonNode",
    "ListNode",
    "NdArrayNode",
    "ObjectNode",
    "TreeNode",
    "TupleNode",
)
KINDS = ("<f8", "<f4", "<i8", "<i4", "|u1", "|b1", "<U3", ">f8")
NAMES = ("_impl", "predict", "memory", "n_jobs", "_preprocessor", "_sparse", "_validate_data", "__class__")
TEXTS = (
    *("", "x", "auto", "precomputed", "passthrough", "kd_tree", "brute", "predict", "fit", "2*n_jobs"),
    *("/etc/passwd", "__import__('os')", "linear", "rbf", "mean", "é", "\x00", "x" * 5000),
)


def read_zip(content: bytes) -> Members:
    """Return the members of a zip."""
    with zipfile.ZipFile(io.BytesIO(content)) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def write_zip(members: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a zip of members, not compressed unless asked for."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for name, part in members.items():
            zipped.writestr(zipfile.ZipInfo(name), part, method)
    return content.getvalue()


def sealed(members: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    """Return a model file whose checksums are right."""
    manifest = json.loads(members[MANIFEST])
    if isinstance(manifest, dict):
        others = {name: part for name, part in members.items() if name != MANIFEST}
        sums = {name: hashlib.sha256(part).hexdigest() for name, part in others.items()}
        members = {**members, MANIFEST: json.dumps({**manifest, "checksums": sums}).encode()}
    return write_zip(members, method)


def _saved(**options: Any) -> Members:
    model = CoterieRegressor(n_bootstrap=5, **{"n_clusters": 1, **options})
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        coterie.save(model.fit(zoo.X, zoo.y, groups=GROUPS), Path(folder) / "model")
        return read_zip((Path(folder) / "model").read_bytes())


def goods() -> list[Members]:
    """Return a file for every model of the zoo, in which it is a learner's model and a candidate."""
    plain = _saved(candidates=["knn", zoo.MODELS["Ridge"]], refine=None, collaboration="local")
    made = [plain, _saved(candidates="lr", n_clusters=2), _saved(candidates="lr", standardize="learner")]
    models = [name for name in plain if name.startswith("models/")]
    parameters = json.loads(plain[MANIFEST])["parameters"]["candidates"]
    candidate = next(part["member"] for part in parameters if isinstance(part, dict))
    for name in zoo.MODELS:
        fitted = dump_model(zoo.fitted(name))
        unfitted = dump_model(clone(zoo.MODELS[name]))
        made.append({**plain, **dict.fromkeys(models, fitted), candidate: unfitted})
    return made


def _array(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(content), allow_pickle=False)


def _npy(values: np.ndarray) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, np.asarray(values), allow_pickle=False)
    return content.getvalue()


def _other_numbers(values: np.ndarray, draw: Draw) -> np.ndarray:
    changed = np.array(values)
    flat = changed.reshape(-1)
    if not flat.size:
        return changed
    place = draw.choice((0, flat.size - 1, draw.randrange(flat.size)))
    if changed.dtype.names:
        field = draw.choice(changed.dtype.names)
        flat[field] = _other_numbers(flat[field], draw)
    elif changed.dtype.kind in "iu":
        least, most = np.iinfo(changed.dtype).min, np.iinfo(changed.dtype).max
        near = int(flat[place]) + draw.choice((-1, 1, 2, 1000))
        flat[place] = max(least, min(most, draw.choice((near, near, draw.choice(EXTREME_INTS)))))
    elif changed.dtype.kind == "f":
        with np.errstate(over="ignore"):
            flat[place] = draw.choice(EXTREME_NUMBERS)
    elif changed.dtype.kind == "b":
        flat[place] = not flat[place]
    return changed


def bend_array(content: bytes, draw: Draw) -> bytes:
    """Change an array: its numbers, its shape, its kind, or its bytes."""
    try:
        values = _array(content)
    # Bent once before, it may be no array any more.
    except Exception:
        return bend_bytes(content, draw)
    if draw.random() < 0.1:
        return bend_bytes(content, draw)
    match draw.randrange(8):
        case 0:
            return _npy(values[:0] if values.ndim else values.reshape(1))
        case 1 if values.ndim:
            return _npy(values[: draw.randrange(len(values) + 1)])
        case 2:
            return _npy(np.concatenate([values.reshape(-1)] * draw.choice((2, 2, 3, 100))))
        case 3:
            return _npy(values.reshape(draw.choice(((-1,), (1, -1), (-1, 1), (1, 1, -1)))))
        case 4 if not values.dtype.names and values.dtype.kind in "biuf":
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return _npy(values.astype(draw.choice(KINDS)))
        case 5 if values.ndim > 1 and values.shape[-1]:
            return _npy(
                values.T if draw.random() < 0.5 else np.take(values, [0] * draw.randrange(4), axis=-1)
            )
    return _npy(_other_numbers(values, draw))


def _nodes(schema: Any) -> Iterator[dict[str, Any]]:
    if isinstance(schema, dict):
        if "__loader__" in schema:
            yield schema
        for part in schema.values():
            yield from _nodes(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _nodes(part)


def _plain(draw: Draw) -> str:
    whole = draw.choice(EXTREME_INTS)
    return json.dumps(
        draw.choice((None, True, False, whole, draw.choice(EXTREME_NUMBERS), draw.choice(TEXTS)))
    )


def _value(node: dict[str, Any]) -> Any:
    """Return the value of a JSON node; bent once before, it may have none any more."""
    try:
        return json.loads(node["content"])
    except (KeyError, TypeError, ValueError):
        return None


def _bend_node(node: dict[str, Any], everything: list[dict[str, Any]], draw: Draw) -> None:
    if node["__loader__"] == "JsonNode" and draw.random() < 0.9:
        old = _value(node)
        near = isinstance(old, int) and not isinstance(old, bool) and draw.random() < 0.5
        node["content"] = json.dumps(old + draw.choice((-1, 1, 2, 1000))) if near else _plain(draw)
        return
    match draw.randrange(7):
        case 0:
            node["__module__"], _, node["__class__"] = draw.choice(sorted(TYPES)).rpartition(".")
        case 1:
            node["__loader__"] = draw.choice(LOADERS)
        case 2 | 3:
            other = draw.choice(everything)
            node.clear()
            node.update(json.loads(json.dumps(other)))
        case 4 if isinstance(node.get("content"), dict) and node["__loader__"] == "DictNode":
            _bend_attributes(node, everything, draw)
        case 5 if isinstance(node.get("content"), list) and node["content"]:
            place = draw.randrange(len(node["content"]))
            node["content"][place : place + 1] = [node["content"][place]] * draw.choice((0, 2, 5))
        case _:
            node.update({draw.choice(list(node)): bend_value(draw.choice(list(node.values())), draw)})


def _bend_attributes(node: dict[str, Any], everything: list[dict[str, Any]], draw: Draw) -> None:
    content = node["content"]
    if content and draw.random() < 0.4:
        del content[draw.choice(list(content))]
        node["key_types"]["content"] = node["key_types"]["content"][: len(content)]
        return
    names = [
        name for other in everything if isinstance(other.get("content"), dict) for name in other["content"]
    ]
    extra = (
        "_impl",
        "predict",
        "memory",
        "n_jobs",
        "_preprocessor",
        "_sparse",
        "_validate_data",
        "__class__",
    )
    content[draw.choice((*names, *extra))] = draw.choice(everything)
    text = {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode", "__id__": 1}
    node["key_types"]["content"] = [text] * len(content)


def bend_model(content: bytes, draw: Draw) -> bytes:
    """Change what skops wrote: the types, their attributes, their parameters, or their arrays."""
    files = read_zip(content)
    schema = json.loads(files[SCHEMA])
    arrays = [name for name in files if name.endswith(".npy")]
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        if arrays and draw.random() < 0.5:
            name = draw.choice(arrays)
            if draw.random() < 0.1:
                files[name] = files[draw.choice(arrays)]
            else:
                files[name] = bend_array(files[name], draw)
            continue
        everything = list(_nodes(schema))
        if everything:
            _bend_node(draw.choice(everything), everything, draw)
    files[SCHEMA] = json.dumps(schema).encode()
    if draw.random() < 0.05:
        files[SCHEMA] = bend_bytes(files[SCHEMA], draw)
    return write_zip(files)


def _of_models(members: Members, draw: Draw) -> Members:
    names = [name for name in members if name.startswith("models/")]
    # One good model is bent once and put in each learner's place: any of them is asked to predict.
    name = draw.choice(names)
    bent = bend_model(members[name], draw)
    return {**members, **{other: bent for other in names if members[other] == members[name]}}


def _of_manifest(members: Members, draw: Draw) -> Members:
    manifest = json.loads(members[MANIFEST])
    for _ in range(draw.choice((1, 1, 2, 4))):
        part = draw.choice(("parameters", "fit", "fit", "estimator", "learners", None))
        if part is None or part not in manifest:
            manifest = bend_value(manifest, draw)
        else:
            manifest[part] = bend_value(manifest[part], draw)
        if not isinstance(manifest, dict):
            break
    return {**members, MANIFEST: json.dumps(manifest).encode("utf-8", "surrogatepass")}


def _of_arrays(members: Members, draw: Draw) -> Members:
    files = read_zip(members[ARRAYS])
    for _ in range(draw.choice((1, 1, 2, 4))):
        name = draw.choice(list(files))
        files[name] = (
            files[draw.choice(list(files))] if draw.random() < 0.3 else bend_array(files[name], draw)
        )
    return {**members, ARRAYS: write_zip(files)}


def _of_members(members: Members, draw: Draw) -> Members:
    changed = dict(members)
    name, other = draw.choice(list(members)), draw.choice([*members, "models/77.skops", "../x", "x"])
    match draw.randrange(3):
        case 0:
            del changed[name]
        case 1:
            changed[other] = changed[name]
        case _:
            changed[name] = bend_bytes(changed[name], draw)
    return changed


# Small files that mean large things.
EXPANDED = "expanded"
CHANGES: dict[str, Callable[[Members, Draw], Members]] = {
    "models": _of_models,
    "manifest": _of_manifest,
    "arrays": _of_arrays,
    "members": _of_members,
}


def bent(files: list[Members], number: int, seed: int) -> tuple[str, bytes]:
    """Return the way and the content of one bent file; the same for the same number and seed."""
    draw = random.Random(f"{seed} {number}")
    members = draw.choice(files)
    change = draw.choices((*CHANGES, "bytes", EXPANDED), (50, 15, 15, 5, 5, 10))[0]
    if change == "bytes":
        return change, bend_bytes(write_zip(members), draw)
    if change == EXPANDED:
        return expanded(members, draw, sealed)
    try:
        return change, sealed(CHANGES[change](members, draw))
    # A manifest that is no JSON any more has no place for checksums; a model may have become part of itself.
    except (ValueError, KeyError, RecursionError):
        return "members", write_zip(_of_members(members, draw))
