"""Learner ids of any type, as an array without gaps."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np

from coterie._arrays import Array
from coterie.rows.numbers import as_array, is_missing

# numpy gives every text the length of the longest one: longer ones are kept as objects.
LONGEST_TEXT = 256


def _fits_array(values: list[Any]) -> bool:
    """Tell whether numpy holds values of one type without changing them."""
    if isinstance(values[0], str):
        # numpy drops NUL characters at the end of a text.
        return all(len(value) <= LONGEST_TEXT and not value.endswith("\0") for value in values)
    if isinstance(values[0], int):
        # Integers of both signs beyond 64 bits would become floats.
        return all(-(2**63) <= value < 2**63 for value in values)
    return isinstance(values[0], float)


def id_array(values: list[Any]) -> Array:
    """Return ids as an array that keeps their types: text stays text, numbers stay numbers.

    Ids of mixed types, and those that numpy would change, are kept as objects.
    """
    if values and all(isinstance(value, np.datetime64) for value in values):
        return np.asarray(values)
    values = [value.item() if isinstance(value, np.generic) else value for value in values]
    if len({type(value) for value in values}) == 1 and _fits_array(values):
        return np.asarray(values)
    ids = np.empty(len(values), dtype=object)
    ids[:] = values
    return ids


def _gaps_in_objects(values: list[Any], caller: str) -> int:
    """Count missing ids among objects; refuse what cannot be an id: what has no hash, comparison or text.

    Users' objects may raise anything; ``caller`` is named in the error.
    """
    gaps = 0
    known: dict[Any, bool] = {}
    for value in values:
        try:
            if value not in known:
                known[value] = is_missing(value)
                # Learners are sorted by their text.
                str(value)
            gaps += known[value]
        # Whatever the object's own comparison, hash or text raises.
        except Exception as error:
            # A decimal NaN that refuses to be compared.
            if getattr(value, "is_snan", bool)():
                gaps += 1
                continue
            what = str(error).split("\n")[0]
            raise ValueError(
                f"The 'groups' argument of {caller} holds a {type(value).__name__}, which cannot be an id "
                f"({what}): name the learners by text or numbers."
            ) from None
    return gaps


def _gaps(ids: Array, caller: str) -> int:
    """Count missing ids."""
    if ids.dtype.kind in "Mm":
        return int(np.isnat(ids).sum())
    if ids.dtype.kind in "fc":
        return int(np.isnan(ids).sum())
    return _gaps_in_objects(ids.tolist(), caller) if ids.dtype.kind == "O" else 0


def _ids_in(groups: Any, caller: str) -> Array:
    """Return ids of any container as an array of any shape."""
    series = nw.from_native(groups, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        return id_array(series.to_list())
    if isinstance(groups, (list, tuple)) and not any(isinstance(g, (list, np.ndarray)) for g in groups):
        return id_array(list(groups))
    try:
        return as_array(groups)
    except ValueError as error:
        raise ValueError(f"The 'groups' argument of {caller} {error}.") from None


def as_ids(groups: Any, caller: str) -> Array:
    """Return learner ids as a one-dimensional array without missing entries.

    ``groups`` is a list, an array or a column with an id for each row, checked for ``caller``, who is named
    in errors. Masked entries count as missing.
    """
    ids = _ids_in(groups, caller)
    if ids.ndim == 0:
        raise ValueError(
            f"The 'groups' argument of {caller} must be a list or an array with one id per row of X, "
            f"or the name of a column. Got {type(groups).__name__}."
        )
    if ids.ndim == 2 and ids.shape[1] == 1:
        ids = ids[:, 0]
    if ids.ndim != 1:
        raise ValueError(
            f"The 'groups' argument of {caller} must have one dimension, one id per row of X. "
            f"Got the shape {ids.shape}."
        )
    hidden = int(np.ma.getmaskarray(ids).sum())
    ids = np.asarray(ids)
    missing = hidden or _gaps(ids, caller)
    if missing:
        entries = "entry is" if missing == 1 else "entries are"
        raise ValueError(
            f"The 'groups' argument of {caller} must name a learner for every row. "
            f"{missing} {entries} missing: drop these rows or give them an id."
        )
    return ids


def positions_of(wanted: Iterable[Any], known: Iterable[Any]) -> Array:
    """Return where each of some ids stands among known ones; one that is not there is a KeyError."""
    index = {learner: p for p, learner in enumerate(known)}
    return np.array([index[learner] for learner in wanted], dtype=int)


def sorting_text(learner_id: object) -> str:
    """Return the text by which ids are sorted; ids of the same text follow in order of their types."""
    return f"{learner_id}\0{type(learner_id).__name__}"


def canonical_order(ids: Array) -> Array:
    """Return the positions that sort distinct ids by their text: the order in which all arithmetic runs."""
    return np.argsort(np.array([sorting_text(i) for i in ids.tolist()]), kind="stable")
