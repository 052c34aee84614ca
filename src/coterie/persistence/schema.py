"""Reads what skops wrote, and builds nothing but what is allowed.

skops is a library that saves scikit-learn models without pickle, which runs code. It describes an object as a
tree of nodes: each names a loader, a type, and the parts that the object is made of. skops trusts a type or
does not. Here a type comes with rules for its parts, which are checked before the object is made; see
`coterie.persistence.allowed`.
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

# The version of skops' own file format.
PROTOCOL = 2
_MAX_NAME_LETTERS = 300
SCHEMA = "schema.json"
_CONTAINERS: dict[str, type[Any]] = {"builtins.list": list, "builtins.tuple": tuple, "builtins.set": set}
# What turns a dict's key, a text in JSON, back into its type.
_KEYS: dict[str, Callable[[str], Any]] = {
    "builtins.str": str,
    "builtins.int": int,
    "builtins.float": float,
    "builtins.bool": lambda key: key == "true",
}
# A loader is skops' name for how a node becomes an object.
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
    type_found = getattr(np, last, None) if module == "numpy" else None
    return type_found if isinstance(type_found, type) and issubclass(type_found, _NUMBER_TYPES) else None


def _function(name: str) -> Any:
    """Return the function of a name, if it is on our list or a ufunc of one number; None otherwise.

    Ufuncs of NumPy and SciPy compute with numbers and do nothing else. Any other function could be a way to
    run code, such as ``os.system``.
    """
    module, _, last = name.rpartition(".")
    if name in FUNCTIONS:
        return getattr(importlib.import_module(module), last, None)
    if module.split(".")[0] == "numpy" or module.startswith("scipy.special"):
        library = importlib.import_module("numpy" if module.startswith("numpy") else "scipy.special")
        function = getattr(library, last, None)
        takes_one_number = isinstance(function, np.ufunc) and (function.nin, function.nout) == (1, 1)
        return function if takes_one_number else None
    return None


def _name(node: Node) -> str:
    """Return the dotted name that decides whether a node is trusted; refuse one that is no name.

    A method is named by its class and its own name. Names are long or odd only in forged files.
    """
    words = [node["__module__"], node["__class__"]]
    if node["__loader__"] == "MethodNode":
        words.append(node["content"]["func"])
    need(all(isinstance(word, str) for word in words), "holds a type without a name")
    name = ".".join(words)
    is_dotted_name = len(name) <= _MAX_NAME_LETTERS and all(word.isidentifier() for word in name.split("."))
    need(is_dotted_name, f"holds a type by the name {clean(name, 100)!r}")
    return name


def objects_in(schema: Any) -> Iterator[Node]:
    """Give out all JSON objects in a schema; not by recursion, for the file may be as deep as it likes."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def _is_known(loader: str, name: str) -> bool:
    """Tell whether a type may be made by a loader of skops without the trust of the user.

    Each type of the table belongs to one loader, so that no other loader can pass by the rules of the type.
    """
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
        """Parse the schema, the JSON that describes the object; refuse another protocol of skops."""
        self._files = read_stored(content)
        self._trusted = frozenset(trusted)
        # Arrays that were read, by file: one that several nodes name is read once.
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
        """Return the object that the file describes: a model, a candidate or a splitter.

        All names in the file are checked before anything is built.
        """
        nodes = (part for part in objects_in(self._schema) if "__loader__" in part)
        names_and_loaders = {(_name(node), node["__loader__"]) for node in nodes}
        refused_names = sorted(
            {name for name, loader in names_and_loaders if not _is_known(loader, name)} - self._trusted
        )
        if refused_names:
            raise PersistenceError(
                f"The file names {refused_names[0]}, which is not among the types that coterie trusts: "
                "if you know it and trust where the file comes from, "
                f"use load(path, trusted={refused_names[:20]!r})."
            )
        return self._build(self._schema)

    def _build(self, node: Any) -> Any:
        """Return the object that a node of the schema describes; parts of it are built first, by recursion.

        ``node["__loader__"]`` says how. What each loader of skops may make was checked before, by `read`, so
        that what can call code (a method, a function, an operator) stands here only by name of our list or
        the user's.
        """
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
                container, items = _CONTAINERS.get(_name(node)), self._items(node)
                need_spread(items if container is set else ())
                return container(items) if container else self._type(_name(node))(*items)
            case "LossNode" | "TreeNode":
                state = self._build(node["content"])
                return self._checked(node, self._build(node["__reduce__"]["args"]), state)
            case "MaskedArrayNode":
                data, mask = (self._build(node["content"][name]) for name in ("data", "mask"))
                # NumPy would repeat a mask of one entry, one by one.
                is_mask = mask is np.ma.nomask or np.shape(mask) == np.shape(data)
                need(is_mask, "holds a mask of another shape than what it hides")
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
        key_type = _KEYS.get(name) or _number_type(name)
        if key_type is None:
            raise unfit(f"holds keys of the kind {name!r}")
        return key_type

    def _dict(self, node: Node) -> Any:
        """Return a dict whose keys, texts in JSON, have their own types again.

        Keys that collide in a dict's hash table would cost hours, so `need_spread` refuses them.
        """
        kinds = [self._key_type(key_type) for key_type in node["key_types"]["content"]]
        keys = [key_type(key) for key_type, key in zip(kinds, node["content"], strict=True)]
        need_spread(keys)
        mapping = {} if _name(node) == "builtins.dict" else self._type(_name(node))()
        mapping.update(zip(keys, map(self._build, node["content"].values()), strict=True))
        return mapping

    def _array(self, node: Node) -> Any:
        """Return a stored array, or the number in it where the node names a type of numbers.

        Every use after the first is charged to the budget (the memory that a file may ask for), for whoever
        holds the array may copy it. A small file could name one array very often.
        """
        file = node["file"]
        if file not in self._arrays:
            self._arrays[file] = read_array(self._files[file])
        else:
            # Its size was looked at once. Who holds it again may make a copy: a tree, a mask, a number.
            self._budget.charge(self._arrays[file].nbytes)
        stored, name = self._arrays[file], _name(node)
        if name == "numpy.ndarray":
            return stored
        number_type = _number_type(name)
        # NumPy would spell a text of any width as a number, in several copies.
        if number_type is None or stored.ndim or stored.dtype.kind not in "biufc":
            raise unfit(f"holds a number of the kind {name!r}")
        return number_type(stored)

    def _objects(self, node: Node) -> Array:
        """Return an array of objects in its shape, from lists in lists; refuse lists that are not as deep.

        Entries are put in one by one: NumPy would turn entries that are lists into further dimensions.
        """
        shape = self._build(node["shape"])
        entries = self._items(node)
        for _ in shape[1:]:
            are_lists = all(isinstance(row, list) for row in entries)
            need(are_lists, "holds an array of objects that has no shape")
            entries = [entry for row in entries for entry in row]
        objects = np.empty(len(entries), dtype=object)
        for index, entry in enumerate(entries):
            objects[index] = entry
        return objects.reshape(shape)

    def _slice(self, node: Node) -> slice:
        """Build a slice."""
        ends = [node["content"][name] for name in ("start", "stop", "step")]
        are_plain = all(end is None or isinstance(end, (int, str)) for end in ends)
        need(are_plain, "holds a slice of what is no number")
        return slice(*ends)

    def _type(self, name: str) -> Any:
        """Look up a name that is on a list: ours or the user's."""
        module, _, last = name.rpartition(".")
        return getattr(importlib.import_module(module), last)

    def _checked(self, node: Node, arguments: Any, state: Any) -> Any:
        """Return an object of a node's type, made of arguments or attributes.

        A type of the table is made by its rules. A type that only the user trusts is made as the file says.
        ``arguments`` are those of its constructor, None for an object that is made without calling it.
        """
        name = _name(node)
        cls, rules = self._type(name), TYPES.get(name)
        if rules is not None and rules.build is not None:
            if rules.build is compiled.build_neighbours:
                self._budget.charge(compiled.tree_bytes(state))
            return rules.build(cls, arguments, state)
        if name not in self._trusted:
            # `read` has let pass what is in the table by its own loader, and only that.
            state = TYPES[name].checked(cls, name, state)
        elif arguments is not None:
            return cls(*arguments)
        elif isinstance(state, dict):
            state = cleaned(state)
        instance = cls.__new__(cls)
        if state is not None and hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
        elif state is not None:
            instance.__dict__.update(state)
        return instance

    def _partial(self, node: Node) -> Any:
        """Build a partial function that is trusted or known."""
        content = {name: self._build(entry) for name, entry in node["content"].items()}
        if "functools.partial" not in self._trusted:
            return compiled.build_check(functools.partial, None, content)
        return functools.partial(content["func"], *content["args"], **content["kwds"])
