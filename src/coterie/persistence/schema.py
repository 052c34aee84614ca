"""Reads what skops wrote, and builds nothing but what is allowed.

skops describes an object as a tree of nodes: each names a loader, a type, and the parts that the object is
made of. skops trusts a type or does not. Here a type comes with rules for its parts, which are checked before
the object is made; see `coterie.persistence.allowed`.
"""

from __future__ import annotations

import functools
import importlib
import json
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.persistence import compiled
from coterie.persistence.allowed import TYPES
from coterie.persistence.archive import Budget, PersistenceError, clean, need, need_spread, read_stored, unfit
from coterie.persistence.arrays import read_array
from coterie.persistence.parameters import FUNCTIONS, cleaned

Node = dict[str, Any]

PROTOCOL = 2
_LONGEST_NAME = 300
SCHEMA = "schema.json"
_CONTAINERS: dict[str, type[Any]] = {"builtins.list": list, "builtins.tuple": tuple, "builtins.set": set}
_KEYS: dict[str, Callable[[str], Any]] = {
    "builtins.str": str,
    "builtins.int": int,
    "builtins.float": float,
    "builtins.bool": lambda key: key == "true",
}
# Loaders that make data and never look up the type that they name.
_OF_DATA = ("BytesNode", "JsonNode", "MaskedArrayNode", "RandomGeneratorNode", "RandomStateNode", "SliceNode")
# What each other loader may make, beside the types of the table.
_OF_LOADER: dict[str, Iterable[str]] = {
    "DTypeNode": ("numpy.dtype",),
    "DictNode": ("builtins.dict",),
    **dict.fromkeys(("ListNode", "SetNode", "TupleNode"), _CONTAINERS),
    "NdArrayNode": ("numpy.ndarray",),
    "PartialNode": ("functools.partial",),
    "TypeNode": _KEYS,
}
_NUMBER_TYPES = (np.number, np.bool_, np.str_, np.datetime64, np.timedelta64)


def _number_type(name: str) -> type[Any] | None:
    """Return NumPy's type of a number by its name, None if there is none."""
    module, _, last = name.rpartition(".")
    result = getattr(np, last, None) if module == "numpy" else None
    return result if isinstance(result, type) and issubclass(result, _NUMBER_TYPES) else None


def _function(name: str) -> Any:
    """Return a function of the list: a ufunc of one number, or a score of features."""
    module, _, last = name.rpartition(".")
    if name in FUNCTIONS:
        return getattr(importlib.import_module(module), last, None)
    if module.split(".")[0] == "numpy" or module.startswith("scipy.special"):
        library = importlib.import_module("numpy" if module.startswith("numpy") else "scipy.special")
        result = getattr(library, last, None)
        plain = isinstance(result, np.ufunc) and (result.nin, result.nout) == (1, 1)
        return result if plain else None
    return None


def _name(node: Node) -> str:
    """Return what a node is trusted by."""
    words = [node["__module__"], node["__class__"]]
    if node["__loader__"] == "MethodNode":
        words.append(node["content"]["func"])
    need(all(isinstance(word, str) for word in words), "holds a type without a name")
    name = ".".join(words)
    plain = len(name) <= _LONGEST_NAME and all(word.isidentifier() for word in name.split("."))
    need(plain, f"holds a type by the name {clean(name, 100)!r}")
    return name


def objects_in(schema: Any) -> Iterator[Node]:
    """Give out all JSON objects in a schema, however deep."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _is_known(loader: str, name: str) -> bool:
    """Tell whether a type may be read with a loader."""
    if loader in _OF_DATA or name in _OF_LOADER.get(loader, ()):
        return True
    if loader == "FunctionNode":
        return _function(name) is not None
    if loader in ("NdArrayNode", "TypeNode"):
        return _number_type(name) is not None
    return name in TYPES and TYPES[name].loader == loader


class Reader:
    """Builds the object that a skops file describes. Nothing is known about the file.

    ``trusted`` are names that the user trusts: their objects are made as the file says. ``budget`` is that of
    the values that may be parsed.
    """

    def __init__(self, content: bytes, trusted: Iterable[str], budget: Budget) -> None:
        """Parse the schema; refuse another protocol of skops."""
        self._files = read_stored(content)
        self._trusted = frozenset(trusted)
        self._arrays: dict[str, Array] = {}
        self._budget = budget
        budget.spend(self._files[SCHEMA])
        self._schema = json.loads(self._files[SCHEMA])
        if self._schema.get("protocol") != PROTOCOL:
            protocol = clean(self._schema.get("protocol"), 20)
            raise PersistenceError(
                f"The file has a model in protocol {protocol} of skops, but {PROTOCOL} is read: use the "
                "version of coterie that saved it."
            )

    def read(self) -> Any:
        """Build the object: a model, a candidate or a splitter."""
        nodes = (part for part in objects_in(self._schema) if "__loader__" in part)
        named = {(_name(node), node["__loader__"]) for node in nodes}
        refused = sorted({name for name, loader in named if not _is_known(loader, name)} - self._trusted)
        if refused:
            raise PersistenceError(
                f"The file names {refused[0]}, which is not among the types that coterie trusts: if you know "
                f"it and trust where the file comes from, use load(path, trusted={refused[:20]!r})."
            )
        return self._build(self._schema)

    def _build(self, node: Any) -> Any:
        """Build the object that a node of the schema describes."""
        match node["__loader__"]:
            case "BytesNode":
                return self._files[node["file"]]
            case "ConstructorFromReduceNode":
                return self._checked(node, self._build(node["content"]), None)
            case "DTypeNode":
                return self._build(node["content"]).dtype
            case "DictNode":
                return self._dict(node)
            case "FunctionNode":
                name = _name(node)
                return self._type(name) if name in self._trusted else _function(name)
            case "JsonNode":
                return self._json(node)
            case "ListNode" | "SetNode" | "TupleNode":
                kind, items = _CONTAINERS.get(_name(node)), self._items(node)
                need_spread(items if kind is set else ())
                return kind(items) if kind else self._type(_name(node))(*items)
            case "LossNode" | "TreeNode":
                state = self._build(node["content"])
                return self._checked(node, self._build(node["__reduce__"]["args"]), state)
            case "MaskedArrayNode":
                data, mask = (self._build(node["content"][name]) for name in ("data", "mask"))
                # NumPy would repeat a mask of one entry, one by one.
                fits = mask is np.ma.nomask or np.shape(mask) == np.shape(data)
                need(fits, "holds a mask of another shape than what it hides")
                return np.ma.MaskedArray(data, mask)
            case "MethodNode":
                return getattr(self._build(node["content"]["obj"]), node["content"]["func"])
            case "NdArrayNode":
                return self._objects(node) if node["type"] == "json" else self._array(node)
            case "ObjectNode":
                content = node.get("content")
                return self._checked(node, None, None if content is None else self._build(content))
            case "OperatorFuncNode":
                return getattr(operator, node["__class__"])(*self._build(node["attrs"]))
            case "PartialNode":
                return self._partial(node)
            case "RandomGeneratorNode":
                return compiled.generator(self._build(node["content"]["bit_generator"]))
            case "RandomStateNode":
                return compiled.random_state(self._build(node["content"]))
            case "SliceNode":
                return self._slice(node)
            case "TypeNode":
                return _number_type(_name(node)) or self._type(_name(node))
        raise unfit(f"holds a part of the unknown kind {node['__loader__']!r}")

    def _items(self, node: Node) -> list[Any]:
        return [self._build(entry) for entry in node["content"]]

    def _json(self, node: Node) -> Any:
        """Return the plain value that a node holds as JSON."""
        value = json.loads(node["content"])
        need(not isinstance(value, (list, dict)), "holds a list where a value should be")
        return value

    def _key_type(self, node: Node) -> Callable[[str], Any]:
        """Return the type that keys of a dict are turned back into."""
        name = _name(node)
        result = _KEYS.get(name) or _number_type(name)
        if result is None:
            raise unfit(f"holds keys of the kind {name!r}")
        return result

    def _dict(self, node: Node) -> Any:
        """Build a dict with its keys in their own types."""
        kinds = [self._key_type(kind) for kind in node["key_types"]["content"]]
        keys = [kind(key) for kind, key in zip(kinds, node["content"], strict=True)]
        need_spread(keys)
        made = {} if _name(node) == "builtins.dict" else self._type(_name(node))()
        made.update(zip(keys, map(self._build, node["content"].values()), strict=True))
        return made

    def _array(self, node: Node) -> Any:
        """Return a stored array, or the number in it."""
        file = node["file"]
        if file not in self._arrays:
            self._arrays[file] = read_array(self._files[file])
        else:
            # Its size was looked at once. Who holds it again may make a copy: a tree, a mask, a number.
            self._budget.charge(self._arrays[file].nbytes)
        values, name = self._arrays[file], _name(node)
        if name == "numpy.ndarray":
            return values
        kind = _number_type(name)
        if kind is None or values.ndim:
            raise unfit(f"holds a number of the kind {name!r}")
        return kind(values)

    def _objects(self, node: Node) -> Array:
        """Build an array of objects with its shape."""
        shape = self._build(node["shape"])
        entries = self._items(node)
        for _ in shape[1:]:
            shaped = all(isinstance(row, list) for row in entries)
            need(shaped, "holds an array of objects that has no shape")
            entries = [entry for row in entries for entry in row]
        values = np.empty(len(entries), dtype=object)
        for index, entry in enumerate(entries):
            values[index] = entry
        return values.reshape(shape)

    def _slice(self, node: Node) -> slice:
        """Build a slice."""
        ends = [node["content"][name] for name in ("start", "stop", "step")]
        plain = all(end is None or isinstance(end, (int, str)) for end in ends)
        need(plain, "holds a slice of what is no number")
        return slice(*ends)

    def _type(self, name: str) -> Any:
        """Look up a name that is on a list: ours or the user's."""
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)

    def _checked(self, node: Node, arguments: Any, state: Any) -> Any:
        """Make an object by the rules of its type, or as the file says where the user trusts the type."""
        name = _name(node)
        cls, row = self._type(name), TYPES.get(name)
        if row is not None and row.build is not None:
            return row.build(cls, arguments, state)
        if name not in self._trusted:
            # `read` has let pass what is in the table by its own loader, and only that.
            state = TYPES[name].checked(cls, name, state)
        elif arguments is not None:
            return cls(*arguments)
        elif isinstance(state, dict):
            state = cleaned(state)
        made = cls.__new__(cls)
        if state is not None and hasattr(made, "__setstate__"):
            made.__setstate__(state)
        elif state is not None:
            made.__dict__.update(state)
        return made

    def _partial(self, node: Node) -> Any:
        """Build a partial function that is trusted or known."""
        content = {name: self._build(entry) for name, entry in node["content"].items()}
        if "functools.partial" not in self._trusted:
            return compiled.build_check(functools.partial, None, content)
        return functools.partial(content["func"], *content["args"], **content["kwds"])
