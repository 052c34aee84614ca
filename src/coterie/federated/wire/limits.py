"""What a model on the wire may measure, and the one error that says no."""

from __future__ import annotations

# A forest of fifty trees on 400 rows takes 170 kB; these leave room for models a hundred times as large,
# and none for a file that only means to fill the memory.
MAX_BYTES = 32 * 2**20
MAX_FEATURES = 10_000
MAX_OPERATORS = 2_000
MAX_PARTS = 100_000
MAX_NAME = 100
MAX_WIDTH = 20_000
MAX_TREES = 5_000
MAX_DEPTH = 1_000


class WireError(ValueError):
    """A model cannot be sent, or what arrived is not a model that coterie reads."""


def unreadable(what: str) -> WireError:
    """Return the refusal of a file from a peer, in one sentence with the remedy."""
    return WireError(f"The model file {what}: leave this peer out, or ask it to share its model again.")
