"""The type of an array, whatever its numbers are; docstrings say its shape."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

Array = NDArray[Any]
