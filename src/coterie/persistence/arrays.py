"""Arrays to bytes and back; what comes back holds numbers, whatever the bytes say."""

from __future__ import annotations

import io
import math
import zipfile
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.persistence.archive import need, read_stored
from coterie.persistence.rules import NUMBERS

# An array without entries may be as long as it likes in no bytes at all.
_LONGEST_EMPTY = 1_000_000


def _header(file: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of a stored NumPy array."""
    version = np.lib.format.read_magic(file)
    need(version in ((1, 0), (2, 0)), "holds an array of an unknown version")
    known = np.lib.format
    return (known.read_array_header_1_0 if version == (1, 0) else known.read_array_header_2_0)(file)


def read_array(content: bytes) -> Array:
    """Read an npy file after a look at what its header claims.

    The array holds no objects, and its truth values are zero or one.
    """
    file = io.BytesIO(content)
    shape, fortran, dtype = _header(file)
    size = math.prod(shape)
    whole = not dtype.hasobject and dtype.itemsize > 0 and all(length >= 0 for length in shape)
    fits = whole and size * dtype.itemsize == len(content) - file.tell()
    need(fits, "holds an array whose header does not fit its content")
    # As lists in lists, it would take what its other lengths ask for.
    long = math.prod(length for length in shape if length)
    need(size or long <= _LONGEST_EMPTY, "holds an array of nothing that is too long")
    values = np.frombuffer(content, dtype, size, file.tell())
    if dtype.kind == "b":
        # NumPy counts on nothing but 0 and 1 when it picks rows by a mask.
        values = values.view(np.uint8) != 0
    return values.reshape(shape, order="F" if fortran else "C").copy(order="K")


def pack_arrays(arrays: dict[str, Array]) -> bytes:
    """Turn arrays of numbers into an npz file."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as zipped:
        for name, values in arrays.items():
            array = io.BytesIO()
            np.lib.format.write_array(array, values, allow_pickle=False)
            zipped.writestr(zipfile.ZipInfo(f"{name}.npy"), array.getvalue())
    return packed.getvalue()


def unpack_arrays(packed: bytes) -> dict[str, Array]:
    """Read an npz file of numbers, whatever it holds."""
    arrays = {}
    for file, content in read_stored(packed).items():
        name = file.removesuffix(".npy")
        arrays[name] = read_array(content)
        need(arrays[name].dtype.kind in NUMBERS, f"holds the array {name!r}, which is not of numbers")
    return arrays
