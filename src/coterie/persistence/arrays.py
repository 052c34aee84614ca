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
_MAX_EMPTY_LENGTH = 1_000_000


def _header(file: io.BytesIO) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, whether columns come first in memory, and type, from the head of an npy file."""
    version = np.lib.format.read_magic(file)
    need(version in ((1, 0), (2, 0)), "holds an array of an unknown version")
    formats = np.lib.format
    return (formats.read_array_header_1_0 if version == (1, 0) else formats.read_array_header_2_0)(file)


def read_array(content: bytes) -> Array:
    """Return the array of an npy file that may hold anything; its header must match its content.

    The array holds no objects, for NumPy unpickles these and so runs code. Its truth values are zero or one.
    """
    file = io.BytesIO(content)
    shape, is_column_major, dtype = _header(file)
    size = math.prod(shape)
    is_sized = not dtype.hasobject and dtype.itemsize > 0 and all(length >= 0 for length in shape)
    matches_content = is_sized and size * dtype.itemsize == len(content) - file.tell()
    need(matches_content, "holds an array whose header does not fit its content")
    # As lists in lists, it would take what its other lengths ask for.
    length_as_lists = math.prod(length for length in shape if length)
    need(size or length_as_lists <= _MAX_EMPTY_LENGTH, "holds an array of nothing that is too long")
    entries = np.frombuffer(content, dtype, size, file.tell())
    if dtype.kind == "b":
        # NumPy counts on nothing but 0 and 1 when it picks rows by a mask.
        entries = entries.view(np.uint8) != 0
    return entries.reshape(shape, order="F" if is_column_major else "C").copy(order="K")


def pack_arrays(arrays: dict[str, Array]) -> bytes:
    """Return arrays of numbers as an npz file with fixed dates: equal arrays give equal bytes."""
    npz_bytes = io.BytesIO()
    with zipfile.ZipFile(npz_bytes, "w") as zipped:
        for name, entries in arrays.items():
            npy_bytes = io.BytesIO()
            np.lib.format.write_array(npy_bytes, entries, allow_pickle=False)
            zipped.writestr(zipfile.ZipInfo(f"{name}.npy"), npy_bytes.getvalue())
    return npz_bytes.getvalue()


def unpack_arrays(packed: bytes) -> dict[str, Array]:
    """Return the arrays of an npz file that may hold anything, by name; refuse all but numbers."""
    arrays = {}
    for file, content in read_stored(packed).items():
        name = file.removesuffix(".npy")
        arrays[name] = read_array(content)
        need(arrays[name].dtype.kind in NUMBERS, f"holds the array {name!r}, which is not of numbers")
    return arrays
