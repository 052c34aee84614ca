"""Models to bytes and back, by skops and never by pickle.

skops writes an object as the name of its type and its attributes. What it wrote is read by
`coterie.persistence.schema`, which makes only what the table of `coterie.persistence.allowed` allows.
"""

from __future__ import annotations

import io
import json
import sys
import warnings
import zipfile
from collections.abc import Iterable
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from coterie.persistence.archive import Budget, PersistenceError, unfit
from coterie.persistence.parameters import MAX_FITS, n_fits
from coterie.persistence.schema import SCHEMA, Reader, objects_in


def _named_types(schema: Any) -> set[tuple[str, str]]:
    """Return module and name of every type and function that reading a skops schema would look up."""
    pairs = ((part.get("__module__"), part.get("__class__")) for part in objects_in(schema))
    return {(m, name) for m, name in pairs if isinstance(m, str) and isinstance(name, str)}


def _renumbered(schema: Any) -> dict[str, str]:
    """Replace addresses in memory in a schema by small numbers, so that equal models give equal files.

    The schema is changed in place. Returned are the new names of its files by their old ones.
    """
    number_of_address: dict[Any, int] = {}
    new_file_names: dict[str, str] = {}
    for part in objects_in(schema):
        if "__id__" in part:
            part["__id__"] = number_of_address.setdefault(part["__id__"], len(number_of_address))
        if isinstance(part.get("file"), str) and "__loader__" in part:
            suffix = part["file"].rpartition(".")[2]
            part["file"] = new_file_names.setdefault(part["file"], f"{len(new_file_names)}.{suffix}")
    return new_file_names


def _repacked(dumped: bytes) -> bytes:
    """Return a skops file without dates, blanks and addresses in memory: equal models give equal bytes.

    A type or function that cannot be found again by its name, as one inside a function, is refused now and
    not at loading.
    """
    repacked = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(dumped)) as source, zipfile.ZipFile(repacked, "w") as target:
        schema = json.loads(source.read(SCHEMA))
        for module, name in sorted(_named_types(schema)):
            if not hasattr(sys.modules.get(module), name):
                raise PersistenceError(
                    f"A candidate holds {module}.{name}, which a file can only name and nobody could "
                    "find again by this name: define it at the top of a module."
                )
        for old_name, new_name in _renumbered(schema).items():
            target.writestr(zipfile.ZipInfo(new_name), source.read(old_name))
        target.writestr(zipfile.ZipInfo(SCHEMA), json.dumps(schema, separators=(",", ":")))
    return repacked.getvalue()


def dump_model(model: Any) -> bytes:
    """Turn a model, a candidate or a splitter (it makes folds) into the bytes of a skops file.

    skops saves scikit-learn objects as a description and arrays, so that loading runs no code as pickle
    would.
    """
    # Imported here, for skops looks through all of scikit-learn on import and most users save nothing.
    import skops.io

    try:
        dumped = skops.io.dumps(model)
    # What an object raises when it gives its state is up to the object.
    except Exception as error:
        raise PersistenceError(
            f"A {type(model).__name__} cannot be saved without pickle ({error}): leave this candidate out."
        ) from error
    return _repacked(dumped)


def load_model(dumped: bytes, trusted: Iterable[str | type], budget: Budget | None = None) -> Any:
    """Rebuild what `dump_model` dumped, from bytes about which nothing is known.

    ``trusted`` are types that the user trusts beside those of the table; what they are made of is not looked
    at. Without a ``budget``, as many values are parsed as the size of ``dumped`` allows.
    """
    trusted_names = {
        type_ if isinstance(type_, str) else f"{type_.__module__}.{type_.__name__}" for type_ in trusted
    }
    with warnings.catch_warnings():
        # `load` compares the versions and says so once, not once per model.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = Reader(dumped, trusted_names, budget or Budget(len(dumped))).read()
    if n_fits(model) > MAX_FITS:
        raise unfit(f"holds a {type(model).__name__} that would be fitted more than {MAX_FITS:,} times")
    return model
