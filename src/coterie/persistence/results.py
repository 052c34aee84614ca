"""Finished fits to bytes and back, as models are saved: JSON, arrays and skops, never pickle.

A stopped run leaves such files. Reading one runs none of its code, whoever wrote it.
"""

from __future__ import annotations

import io
import json
import zipfile
from dataclasses import fields
from typing import Any

from sklearn.base import BaseEstimator

from coterie.fit.out_of_core import Read
from coterie.method.fitting import Fitted
from coterie.method.order import SerialScore
from coterie.persistence.archive import Budget, read_stored, unfit
from coterie.persistence.arrays import pack_arrays, unpack_arrays
from coterie.persistence.codec import Decoder, Encoder
from coterie.persistence.forests import give_trees, take_trees
from coterie.persistence.models import dump_model, load_model

KEPT: dict[str, type[Any]] = {cls.__name__: cls for cls in (Fitted, Read, SerialScore)}
_ARRAYS, _TREE = "arrays.npz", "result.json"


def _taken_apart(value: Any) -> Any:
    """Return a result as a dict of its fields, models without their trees; the encoder knows the rest."""
    if isinstance(value, BaseEstimator):
        slim, trees = take_trees(value)
        return {"model": slim, "trees": trees}
    if type(value) is tuple:
        return tuple(_taken_apart(part) for part in value)
    if type(value) not in KEPT.values():
        return value
    parts = {f.name: _taken_apart(getattr(value, f.name)) for f in fields(value)}
    return {"kept": type(value).__name__, "fields": parts}


def _put_together(value: Any) -> Any:
    match value:
        case {"kept": str(name), "fields": dict(parts)} if name in KEPT:
            kind = KEPT[name]
        case {"model": model, "trees": list(trees)}:
            return give_trees(model, trees)
        case tuple():
            return tuple(_put_together(part) for part in value)
        case _:
            return value
    whole = {field: _put_together(part) for field, part in parts.items()}
    if set(whole) != {f.name for f in fields(kind)}:
        raise unfit(f"holds a {name} with other fields")
    return kind(**whole)


class ResultCodec:
    """Writes and reads what Select finds for a learner."""

    def __init__(self) -> None:
        self._read_back: dict[str, bool] = {}

    def dump(self, result: Fitted | Read) -> bytes | None:
        """Turn a result into bytes.

        Parameters
        ----------
        result : Fitted or Read
            Of one learner.

        Returns
        -------
        bytes or None
            None where its model is of a type that a file cannot hold or that is not trusted when it is read.
        """
        fitted = result.fitted if isinstance(result, Read) else result
        family = "" if fitted is None else fitted.name
        if not self._read_back.get(family, True):
            return None
        try:
            content = _dump(result)
            if family not in self._read_back:
                # The first of a family is read at once: one that could not be read is not worth writing.
                self.load(content)
        # What an object raises when it is taken apart is up to the object.
        except Exception:
            self._read_back[family] = False
            return None
        self._read_back[family] = True
        return content

    def load(self, content: bytes) -> Any:
        """Turn bytes back into a result.

        Parameters
        ----------
        content : bytes
            From `dump`, or from anybody.

        Returns
        -------
        Fitted or Read
            The result.
        """
        members, budget = read_stored(content), Budget(len(content))
        budget.spend(members[_TREE])
        arrays = unpack_arrays(members[_ARRAYS])
        decoder = Decoder(arrays, lambda member: load_model(members[member], (), budget))
        result = _put_together(decoder.decode(json.loads(members[_TREE])))
        if type(result) not in KEPT.values():
            raise unfit("holds no result")
        return result


def _dump(result: Fitted | Read) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:

        def add_model(number: int, model: Any) -> str:
            member = f"models/{number}.skops"
            zipped.writestr(member, dump_model(model))
            return member

        encoder = Encoder(add_model)
        tree = encoder.encode(_taken_apart(result))
        zipped.writestr(_ARRAYS, pack_arrays(encoder.arrays))
        zipped.writestr(_TREE, json.dumps(tree, allow_nan=False))
    return packed.getvalue()
