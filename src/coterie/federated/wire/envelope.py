"""The outside of a model on the wire, what it may measure, and the one error that says no.

The header has magic, version, kind, number of predictors, length and checksum. The checksum finds damage, not
malice: whoever writes a file can write its checksum too. So nothing behind it is believed because it fits.
"""

from __future__ import annotations

import hashlib
import hmac
import struct

MAGIC = b"coterie\x1a"
VERSION = 1
AFFINE, ONNX, CLASS_LINES, CLASS_ONNX = 1, 2, 3, 4
_HEADER = struct.Struct("<8sHHIQ")
_DIGEST = hashlib.sha256().digest_size

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
MAX_CLASSES = 100


class WireError(ValueError):
    """A model cannot be sent, or what arrived is not a model that coterie reads."""


def unreadable(what: str) -> WireError:
    """Return the refusal of a file from a peer, in one sentence with the remedy."""
    return WireError(f"The model file {what}: leave this peer out, or ask it to share its model again.")


def seal(kind: int, n_features: int, body: bytes) -> bytes:
    """Return a model's bytes, of one of the four kinds, behind their header and checksum."""
    header = _HEADER.pack(MAGIC, VERSION, kind, n_features, len(body))
    return header + hashlib.sha256(header + body).digest() + body


def open_sealed(payload: bytes, n_features: int) -> tuple[int, bytes]:
    """Return kind and body of a payload of which nothing is known yet.

    ``n_features`` is how many predictors the reader's own rows have. Length comes first, so that nothing
    large is hashed; a WireError refuses what does not fit.
    """
    body_start = _HEADER.size + _DIGEST
    if len(payload) > MAX_BYTES + body_start:
        raise unreadable(f"has {len(payload)} bytes, more than the {MAX_BYTES + body_start} that are read")
    # The beginning first, even of a short file: whoever sent a pickle shall read so.
    if payload[: len(MAGIC)] != MAGIC[: len(payload)] or len(payload) == 0:
        raise unreadable("does not begin as a model of coterie does (pickle, zip or plain ONNX are not read)")
    if len(payload) < body_start:
        raise unreadable(f"is cut short: it has {len(payload)} bytes, fewer than its header")
    _, version, kind, promised_features, length = _HEADER.unpack_from(payload)
    if version != VERSION:
        raise unreadable(f"has version {version} of the format, and this coterie reads version {VERSION}")
    if length != len(payload) - body_start:
        raise unreadable(f"is cut short or has a tail: {len(payload) - body_start} bytes instead of {length}")
    body = payload[body_start:]
    digest = hashlib.sha256(payload[: _HEADER.size] + body).digest()
    # The checksum finds damage only; what is sound is still not believed.
    if not hmac.compare_digest(digest, payload[_HEADER.size : body_start]):
        raise unreadable("is damaged: its checksum does not fit")
    if kind not in (AFFINE, ONNX, CLASS_LINES, CLASS_ONNX):
        raise unreadable(f"holds a model of kind {kind}, which is not known")
    if not 1 <= promised_features <= MAX_FEATURES:
        raise unreadable(f"names {promised_features} predictors, and 1 to {MAX_FEATURES} are possible")
    if promised_features != n_features:
        raise unreadable(f"takes {promised_features} predictors, and the rows here have {n_features}")
    return kind, body
