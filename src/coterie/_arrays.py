"""The type of every array: a NumPy array of any type of entries; docstrings say its shape."""

from __future__ import annotations

from typing import Any, TypeAlias

from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
