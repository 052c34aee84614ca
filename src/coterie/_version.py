"""The version, in a leaf that every layer may read."""

from __future__ import annotations

__version__ = "0.2.0"
