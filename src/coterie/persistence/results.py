"""Finished fits to bytes and back, as models are saved: JSON, arrays and skops, never pickle.

A stopped run leaves such files. Reading one runs none of its code, whoever wrote it.
"""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from coterie._codec import parse_json
from coterie.fit.out_of_core import Read
from coterie.method.fitting import Fitted
from coterie.persistence.archive import Budget, read_stored, unfit
from coterie.persistence.arrays import pack_arrays, unpack_arrays
from coterie.persistence.codec import Decoder, Encoder
from coterie.persistence.forests import Packed, give_trees, take_trees
from coterie.persistence.models import dump_model, load_model

_ARRAYS, _TREE = "arrays.npz", "result.json"


def _dump(result: Fitted | Read) -> bytes:
    packed = io.BytesIO()
    trees: dict[str, list[Packed]] = {}
    with zipfile.ZipFile(packed, "w") as zipped:

        def add_model(member: str, model: Any) -> None:
            slim, trees[member] = take_trees(model)
            zipped.writestr(member, dump_model(slim))

        encoder = Encoder(add_model)
        content = {"result": encoder.encode(result), "trees": encoder.encode(trees)}
        zipped.writestr(_ARRAYS, pack_arrays(encoder.arrays))
        zipped.writestr(_TREE, json.dumps(content, allow_nan=False))
    return packed.getvalue()


class ResultCodec:
    """Writes and reads what Select finds for a learner."""

    def __init__(self) -> None:
        self._read_back: dict[str, bool] = {}

    def dump(self, result: Fitted | Read) -> bytes | None:
        """Turn a learner's result into bytes.

        They are None where its model is of a type that a file cannot hold, or that is not trusted when it is
        read.
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
        """Turn bytes back into a result, whoever wrote them."""
        members, budget = read_stored(content), Budget(len(content))
        budget.spend(members[_TREE])
        match parse_json(members[_TREE]):
            case {"result": encoded, "trees": packed}:
                pass
            case _:
                raise unfit("holds no result")

        def read_model(member: str) -> Any:
            return give_trees(load_model(members[member], (), budget), trees[member])

        decoder = Decoder(unpack_arrays(members[_ARRAYS]), read_model)
        trees = decoder.decode(packed)
        result = decoder.decode(encoded)
        if type(result) not in (Fitted, Read):
            raise unfit("holds no result")
        return result
