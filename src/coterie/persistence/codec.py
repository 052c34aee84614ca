"""Records to JSON and arrays, and back.

Plain values stay as they are in JSON; everything else is an object whose ``"$"`` says what it is. Numbers
go to the arrays, ids and names stay readable in the manifest, models go to members of their own. A record is
written field by field, and checked against the types of its fields when it is read: a field that is added to
a record needs nothing here, a new record needs its line in `RECORDS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import date, datetime
from functools import cache
from types import NoneType
from typing import Any, ClassVar

import numpy as np

from coterie._arrays import Array
from coterie._codec import HintReader, Leaf
from coterie.collaboration.classes import (
    ClassAverages,
    ClassNewcomers,
    Directions,
    NestedClasses,
    PredictorScale,
)
from coterie.collaboration.nested import AverageNewcomers, NestedCollaboration, PooledNewcomers
from coterie.collaboration.nested.describing import Describer
from coterie.collaboration.nested.line import Ratios
from coterie.collaboration.nested.sums import Units
from coterie.encoding import ColumnPlan, TableRecipe
from coterie.fit.out_of_core import LearnerRead
from coterie.fit.record import Newcomer
from coterie.kernels.losses import DenseTiles
from coterie.loss import BrierScore, SquaredError
from coterie.method.fitting import Fitted
from coterie.method.landmarks import LandmarkTiles
from coterie.method.order import SerialScore
from coterie.persistence.archive import Budget, PersistenceError, need, need_spread, unfit
from coterie.persistence.rules import NUMBERS, array
from coterie.records import (
    Collaboration,
    Curve,
    Exchange,
    LossTiles,
    OwnResiduals,
    Partition,
    Selection,
    SimilarityTiles,
)
from coterie.rows.learners import Learners, Standardization
from coterie.rows.wild import WildCells
from coterie.verdicts import Admission, ClusterFit, GainModel, Gains, Intervals, LabelSets, Stability
from coterie.verdicts.spread import Scales, Spread

_KINDS = (
    *(Selection, Exchange, LandmarkTiles, Partition, Curve, Collaboration, NestedCollaboration, SerialScore),
    *(Learners, SquaredError, WildCells, Standardization, Newcomer, Stability, ClusterFit, Admission),
    *(OwnResiduals, GainModel),
    *(TableRecipe, ColumnPlan, Fitted, LearnerRead),
    *(AverageNewcomers, PooledNewcomers, Describer, Ratios, Units),
    *(Intervals, LabelSets, Scales, Spread),
    *(BrierScore, NestedClasses, ClassAverages, ClassNewcomers, PredictorScale, Directions),
)
RECORDS: dict[str, type[Any]] = {cls.__name__: cls for cls in _KINDS}
MAPPINGS: dict[str, type[dict[Any, Any]]] = {"dict": dict, "Gains": Gains}
DATES: dict[str, type[date]] = {"date": date, "datetime": datetime}

_PLAIN = (NoneType, bool, int, str)
_IDS = (bool, int, str, float, date, datetime)
# Bytes that an array's view takes, and a letter of an array of texts.
_BYTES_PER_VIEW, _BYTES_PER_LETTER = 200, 4
_DTYPE = re.compile(r"[<>|=]?([biuf]\d{1,2}|M8\[\d{0,9}[a-zA-Z]{1,2}\])", re.ASCII)


def check_ids(ids: Array) -> None:
    """Refuse learner ids that a file cannot hold: objects of other types would need code to be made again."""
    unwritable_ids = [] if ids.dtype.kind != "O" else [i for i in ids.tolist() if not _writable_id(i)]
    if unwritable_ids or ids.dtype.kind not in NUMBERS + "UMO":
        type_name = type(unwritable_ids[0]).__name__ if unwritable_ids else ids.dtype.name
        raise PersistenceError(
            f"A learner's id is of type {type_name}, which a file cannot hold: name the learners by int, "
            "str, float, bool or numpy.datetime64 before fit."
        )


def _writable_id(value: Any) -> bool:
    """Tell whether a learner's id is of a type that a file can hold."""
    if isinstance(value, np.generic):
        return value.dtype.kind in NUMBERS + "U"
    return type(value) in _IDS


class Encoder:
    """Turns values into JSON, and gathers the arrays that the JSON refers to.

    ``add_model`` takes the name of a member and a model, and writes the model.
    """

    def __init__(self, add_model: Callable[[str, Any], None]) -> None:
        self.arrays: dict[str, Array] = {}
        self._add_model = add_model
        self._n_models = 0
        # What has been written stays alive here, for a new object may get the address of a dead one.
        self._written: dict[int, tuple[Any, Any]] = {}

    def _array(self, values: Array) -> str:
        """Store an array and return its name."""
        name = f"a{len(self.arrays)}"
        self.arrays[name] = values
        return name

    def readable(self, values: Array) -> dict[str, Any]:
        """Write ids, names or labels, of shape (L,), as a list for JSON."""
        if values.dtype.kind in "UO":
            items = [self.encode(item) for item in values.tolist()]
            return {"$": "strings" if values.dtype.kind == "U" else "objects", "items": items}
        plain_values = values.view(np.int64) if values.dtype.kind == "M" else values
        return {"$": "values", "dtype": values.dtype.str, "items": self.encode(plain_values.tolist())}

    def _encode_tuple(self, value: tuple[Any, ...]) -> Any:
        """Encode a tuple; arrays of one type and width become one array and the ends of its pieces.

        One long array per tuple, not one per learner: thousands of learners would make thousands of members.
        """
        are_arrays = value and all(type(part) is np.ndarray and part.ndim > 0 for part in value)
        have_one_layout = are_arrays and len({(part.dtype, part.shape[1:]) for part in value}) == 1
        if have_one_layout and value[0].dtype.kind in NUMBERS:
            # Residuals by row and learner: one array, not one per learner.
            ends = np.cumsum([len(part) for part in value])
            return {"$": "pieces", "name": self._array(np.concatenate(value)), "cuts": self._array(ends)}
        return {"$": "tuple", "items": [self.encode(part) for part in value]}

    def _encode_once(self, value: Any) -> Any:
        """Encode an array of numbers by name, one of texts as a list, and any other object as a model.

        A model becomes a member of its own in the file.
        """
        if isinstance(value, np.ndarray):
            if value.dtype.kind in NUMBERS:
                return {"$": "array", "name": self._array(value)}
            return self.readable(value)
        member = f"models/{self._n_models}.skops"
        self._n_models += 1
        self._add_model(member, value)
        return {"$": "model", "member": member}

    def encode(self, value: Any) -> Any:
        """Turn a value into what JSON can hold.

        It may be a plain value, an array, a record, or a list, tuple or mapping of these. Everything else is
        taken for a model.
        """
        kind = type(value)
        if kind in _PLAIN or (kind is float and math.isfinite(value)):
            return value
        if kind is float:
            return {"$": "float", "text": repr(value)}
        if kind in DATES.values():
            return {"$": kind.__name__, "text": value.isoformat()}
        if isinstance(value, np.generic):
            return self.encode(value.item())
        if kind is tuple:
            return self._encode_tuple(value)
        if kind is list:
            return [self.encode(part) for part in value]
        if isinstance(value, Mapping):
            items = [[self.encode(key), self.encode(part)] for key, part in value.items()]
            return {"$": "Gains" if kind is Gains else "dict", "items": items}
        if kind in RECORDS.values():
            parts = {f.name: self.encode(getattr(value, f.name)) for f in fields(value)}
            return {"$": kind.__name__, "fields": parts}
        if kind is DenseTiles:
            all_learners = slice(0, value.n_learners)
            return {"$": "losses", "of": self.encode(value.tile(all_learners, all_learners))}
        if id(value) not in self._written:
            self._written[id(value)] = value, self._encode_once(value)
        return self._written[id(value)][1]


class _WrongTypeError(ValueError):
    """A value is not of the type that a record's field declares."""


def _of(*kinds: type[Any]) -> Leaf:
    """Return a check that lets values of the given types pass and refuses others.

    A bool is an int in Python, but passes only where bool is among the types. The check takes a value and
    ``where`` it stands, for the error, and returns the value.
    """

    def check(value: Any, where: str) -> Any:
        """Return a value of one of the types; refuse others."""
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise _WrongTypeError(where)
        return value

    return check


class _Fields(HintReader):
    """Checks the fields of a record, decoded already, against their types."""

    leaves: ClassVar[Mapping[Any, Leaf]] = {
        Any: lambda value, where: value,
        bool: _of(bool),
        float: _of(int, float),
        int: _of(int),
        list: _of(list),
        np.ndarray: _of(np.ndarray),
        str: _of(str),
        # None: to be computed again, from the rows or from the losses.
        LossTiles: _of(NoneType, DenseTiles, LandmarkTiles),
        SimilarityTiles: _of(NoneType),
    }
    sequence: ClassVar[type[Any]] = tuple

    def refusal(self, where: str, expected: str, value: Any) -> ValueError:
        return _WrongTypeError(where)

    def record(self, kind: type, value: Any, where: str) -> Any:
        return _of(kind)(value, where)


def checked_fields(kind: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a record by name, if they are its own and of the types that it declares."""
    try:
        return _Fields().fields(kind, values)
    except (_WrongTypeError, KeyError):
        raise unfit(f"holds a {kind.__name__} whose fields are not what they should be") from None


class Decoder:
    """Turns JSON that may be anything back into values.

    ``arrays`` are what the JSON refers to; ``load_model`` returns the model of a member by its name.
    ``budget`` is charged what a value expands to, before it is made.
    """

    def __init__(self, arrays: dict[str, Array], load_model: Callable[[str], Any], budget: Budget) -> None:
        self._arrays, self._budget = arrays, budget
        # A model that several parts refer to is loaded once.
        self._model = cache(load_model)

    def _objects(self, items: list[Any]) -> Array:
        """Return an array (L,) of learners' ids, which are texts, numbers or dates; refuse other entries."""
        ids = [self.decode(item) for item in items]
        # Checked first: of lists or arrays NumPy would make something else than one entry each.
        need(all(type(value) in _IDS for value in ids), "holds a list of ids that are not ids")
        need_spread(ids)
        id_array = np.empty(len(ids), dtype=object)
        id_array[:] = ids
        return id_array

    def _strings(self, items: list[Any]) -> Array:
        """Return an array of texts."""
        need(all(isinstance(item, str) for item in items), "holds a list of texts that are no texts")
        # NumPy gives each text as much room as the longest of them takes.
        self._budget.charge(_BYTES_PER_LETTER * len(items) * max(map(len, items), default=0))
        return np.array(items, dtype=str)

    def _values(self, dtype: str, encoded: list[Any]) -> Array:
        """Return an array of numbers, or of dates as integers, from the list that `Encoder.readable` wrote.

        ``dtype`` is NumPy's name of its type, which must be of a plain kind.
        """
        items = self.decode(encoded)
        is_allowed = _DTYPE.fullmatch(dtype) and all(type(item) in (bool, int, float) for item in items)
        need(is_allowed, f"holds values of the unknown kind {dtype!r}")
        return np.array(items, dtype=np.int64).view(dtype) if "M8" in dtype else np.array(items, dtype=dtype)

    def _pieces(self, name: str, cuts: str) -> tuple[Array, ...]:
        """Return a tuple of arrays, cut from the array ``name`` at the ends in the array ``cuts``.

        The ends must rise and reach the end of the array. Each piece costs memory, so many are charged to the
        budget.
        """
        joined, ends = self._arrays[name], self._arrays[cuts]
        are_ends = array("*", "i")(ends, {}) and len(ends) > 0 and ends[0] >= 0 and ends[-1] == len(joined)
        need(are_ends and (np.diff(ends) >= 0).all(), "holds pieces that do not fit their array")
        self._budget.charge(_BYTES_PER_VIEW * len(ends))
        return tuple(np.split(joined, ends[:-1]))

    def decode(self, tree: Any) -> Any:
        """Turn what `Encoder.encode` returned back into the value."""
        try:
            return self._decode(tree)
        except RecursionError:
            raise unfit("holds lists in lists without an end") from None

    def _decode(self, tree: Any) -> Any:
        """Return the value of parsed JSON, by recursion; an object's entry "$" says what it is.

        An object that is as none that `Encoder` writes is refused: nothing is made by a name that is not in
        `RECORDS`, `MAPPINGS` or `DATES`, a security boundary.
        """
        if isinstance(tree, list):
            return [self._decode(part) for part in tree]
        if not isinstance(tree, dict):
            return tree
        match tree:
            case {"$": "float", "text": str(text)}:
                return float(text)
            case {"$": str(kind), "text": str(text)} if kind in DATES:
                return DATES[kind].fromisoformat(text)
            case {"$": "array", "name": str(name)}:
                return self._arrays[name]
            case {"$": "pieces", "name": str(name), "cuts": str(cuts)}:
                return self._pieces(name, cuts)
            case {"$": "strings", "items": list(items)}:
                return self._strings(items)
            case {"$": "objects", "items": list(items)}:
                return self._objects(items)
            case {"$": "values", "dtype": str(dtype), "items": list(items)}:
                return self._values(dtype, items)
            case {"$": "tuple", "items": list(items)}:
                return tuple(self._decode(item) for item in items)
            case {"$": str(kind), "items": list(items)} if kind in MAPPINGS:
                pairs = [(self._decode(key), self._decode(value)) for key, value in items]
                need_spread(key for key, _ in pairs)
                return MAPPINGS[kind](dict(pairs))
            case {"$": "losses", "of": dict(part)}:
                return DenseTiles(self._decode(part))
            case {"$": "model", "member": str(member)}:
                return self._model(member)
            case {"$": str(kind), "fields": dict(parts)} if kind in RECORDS:
                fields_by_name = {name: self._decode(part) for name, part in parts.items()}
                return RECORDS[kind](**checked_fields(RECORDS[kind], fields_by_name))
        raise unfit(f"holds an entry of the unknown kind {tree.get('$')!r}")
