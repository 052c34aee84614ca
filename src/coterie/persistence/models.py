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
from coterie.persistence.parameters import MOST_FITS, n_fits
from coterie.persistence.schema import SCHEMA, Reader, objects_in


def _named_types(schema: Any) -> set[tuple[str, str]]:
    """Return the module and the name of everything that a skops schema would look up."""
    pairs = ((part.get("__module__"), part.get("__class__")) for part in objects_in(schema))
    return {(m, name) for m, name in pairs if isinstance(m, str) and isinstance(name, str)}


def _renumbered(schema: Any) -> dict[str, str]:
    """Put numbers in the place of addresses in memory; return the new names of files by the old ones."""
    numbers: dict[Any, int] = {}
    names: dict[str, str] = {}
    for part in objects_in(schema):
        if "__id__" in part:
            part["__id__"] = numbers.setdefault(part["__id__"], len(numbers))
        if isinstance(part.get("file"), str) and "__loader__" in part:
            suffix = part["file"].rpartition(".")[2]
            part["file"] = names.setdefault(part["file"], f"{len(names)}.{suffix}")
    return names


def _repacked(dumped: bytes) -> bytes:
    """Return a skops file without dates, blanks and addresses, once all that it names can be found again."""
    packed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(dumped)) as source, zipfile.ZipFile(packed, "w") as target:
        schema = json.loads(source.read(SCHEMA))
        for module, name in sorted(_named_types(schema)):
            if not hasattr(sys.modules.get(module), name):
                raise PersistenceError(
                    f"A candidate holds {module}.{name}, which a file can only name and nobody could "
                    "find again by this name: define it at the top of a module."
                )
        for old, new in _renumbered(schema).items():
            target.writestr(zipfile.ZipInfo(new), source.read(old))
        target.writestr(zipfile.ZipInfo(SCHEMA), json.dumps(schema, separators=(",", ":")))
    return packed.getvalue()


def dump_model(model: Any) -> bytes:
    """Turn a model, a candidate or a splitter into the bytes of a skops file."""
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
    theirs = {t if isinstance(t, str) else f"{t.__module__}.{t.__name__}" for t in trusted}
    with warnings.catch_warnings():
        # `load` compares the versions and says so once, not once per model.
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = Reader(dumped, theirs, budget or Budget(len(dumped))).read()
    if n_fits(model) > MOST_FITS:
        raise unfit(f"holds a {type(model).__name__} that would be fitted more than {MOST_FITS:,} times")
    return model
