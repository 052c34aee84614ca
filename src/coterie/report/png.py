"""A small image of shades as a data address: the heat map needs neither a script nor a library."""

from __future__ import annotations

import base64
import struct
import zlib

import numpy as np

from coterie._arrays import Array
from coterie.displays._look import NEAR

# The fainter shades let the page shine through, so that one image suits light and dark.
STRONGEST = bytes.fromhex(NEAR.removeprefix("#"))
GREY = bytes((150, 150, 150))
UNKNOWN = 255


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def data_address(shades: Array) -> str:
    """Return an image of integers (h, w): from 0, which is strongest, to 254; 255 is grey."""
    height, width = shades.shape
    rows = np.hstack([np.zeros((height, 1), np.uint8), shades.astype(np.uint8)])
    parts = [
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        _chunk(b"PLTE", STRONGEST * UNKNOWN + GREY),
        _chunk(b"tRNS", bytes(254 - shade for shade in range(UNKNOWN)) + b"\xff"),
        _chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    image = b"\x89PNG\r\n\x1a\n" + b"".join(parts)
    return f"data:image/png;base64,{base64.b64encode(image).decode()}"
