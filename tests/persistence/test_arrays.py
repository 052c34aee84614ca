"""Arrays that are read hold numbers, and as many as their bytes."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from coterie.persistence import PersistenceError
from coterie.persistence.arrays import read_array, unpack_arrays


def npz(array: NDArray[Any], *, allow_pickle: bool = False) -> bytes:
    packed, content = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=allow_pickle)
    with zipfile.ZipFile(packed, "w") as zipped:
        zipped.writestr("a0.npy", content.getvalue())
    return packed.getvalue()


class Bomb:
    went_off = False

    def __reduce__(self) -> Any:
        return setattr, (Bomb, "went_off", True)


def test_arrays_are_never_unpickled() -> None:
    armed = np.empty(1, dtype=object)
    armed[0] = Bomb()
    with pytest.raises(PersistenceError, match="header does not fit its content"):
        unpack_arrays(npz(armed, allow_pickle=True))
    assert not Bomb.went_off
    for array in (np.array(["x"]), np.zeros(2, dtype="i8,f8"), np.zeros(2, complex)):
        with pytest.raises(PersistenceError, match="'a0', which is not of numbers"):
            unpack_arrays(npz(array))


def npy(array: NDArray[Any]) -> bytes:
    content = io.BytesIO()
    np.lib.format.write_array(content, array, allow_pickle=False)
    return content.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array(3.5),
        np.empty((0, 9)),
    ],
)
def test_arrays_come_back(array: NDArray[Any]) -> None:
    read = read_array(npy(array))
    np.testing.assert_array_equal(read, array)
    assert (read.dtype, read.flags.f_contiguous) == (array.dtype, array.flags.f_contiguous)
    assert read.flags.writeable


@pytest.mark.parametrize(
    ("header", "content"),
    [
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,)}", bytes(8)),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (0, 1000000000000)}", b""),
        ("{'descr': '<U0', 'fortran_order': False, 'shape': (1000000000000,)}", b""),
        ("{'descr': '<f8', 'fortran_order': False, 'shape': (1,)}", bytes(16)),
        ("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}", bytes(8)),
    ],
)
def test_headers_that_promise_what_is_not_there_are_refused(header: str, content: bytes) -> None:
    text = header.encode().ljust(117) + b"\n"
    with pytest.raises(PersistenceError, match="an array"):
        read_array(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + content)
