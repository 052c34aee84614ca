"""Files that are damaged, cut, of another version, or not models at all."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest

from coterie.federated import wire
from coterie.federated.wire import envelope


class Bomb:
    """Whoever unpickles it leaves a trace."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.touch, (self.trace,)


def refusal(payload: bytes, n_features: int) -> str:
    with pytest.raises(wire.WireError) as caught:
        wire.unpack(payload, n_features)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    return sentence


@pytest.fixture(scope="module")
def payloads(table: Any, fitted: dict[str, Any]) -> list[bytes]:
    X, _ = table
    return [wire.pack_affine(np.arange(5), 1.0), wire.pack(fitted["one leaf"], X.shape[1])]


def test_a_file_cut_anywhere_is_refused(payloads: list[bytes]) -> None:
    for payload in payloads:
        for end in range(len(payload)):
            refusal(payload[:end], 5)


def test_a_flipped_bit_anywhere_is_found(payloads: list[bytes]) -> None:
    for payload in payloads:
        for place in range(len(payload)):
            for bit in (1, 16, 128):
                flipped = bytearray(payload)
                flipped[place] ^= bit
                refusal(bytes(flipped), 5)


def test_a_tail_is_refused(payloads: list[bytes]) -> None:
    for payload in payloads:
        assert "has a tail" in refusal(payload + b"\0", 5)


def test_other_versions_and_kinds_are_named(payloads: list[bytes]) -> None:
    newer = bytearray(payloads[0])
    struct.pack_into("<H", newer, 8, 2)
    assert "version 2 of the format, and this coterie reads version 1" in refusal(bytes(newer), 5)
    assert "kind 9" in refusal(envelope.seal(9, 5, b""), 5)


def test_other_columns_are_refused(payloads: list[bytes]) -> None:
    for payload in payloads:
        assert "takes 5 predictors, and the rows here have 4" in refusal(payload, 4)
    assert "names 0 predictors" in refusal(envelope.seal(1, 0, b""), 0)


def test_an_oversized_file_is_refused_before_it_is_read(payloads: list[bytes]) -> None:
    assert "more than the" in refusal(payloads[0] + bytes(envelope.MAX_BYTES), 5)


def test_coefficients_must_be_finite_and_as_many_as_predictors() -> None:
    for bad in (np.nan, np.inf, -np.inf):
        body = np.array([1.0, bad, 0.0]).astype("<f8").tobytes()
        assert "not a finite number" in refusal(envelope.seal(envelope.AFFINE, 2, body), 2)
        with pytest.raises(wire.WireError, match="not a finite number"):
            wire.pack_affine([1.0, bad], 0.0)
    assert "does not hold 3 coefficients" in refusal(envelope.seal(envelope.AFFINE, 2, bytes(16)), 2)


def test_pickles_zips_and_bombs_are_not_models(tmp_path: Path) -> None:
    trace = tmp_path / "it-ran"
    joblib.dump(Bomb(trace), tmp_path / "bomb.joblib")
    zipped = io.BytesIO()
    with zipfile.ZipFile(zipped, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.onnx", bytes(50 * 2**20))
    contents = [
        pickle.dumps(Bomb(trace)),
        (tmp_path / "bomb.joblib").read_bytes(),
        zipped.getvalue(),
        gzip.compress(bytes(50 * 2**20)),
        b"",
        b"\x80",
        b"{}",
    ]
    for content in contents:
        assert "does not begin as a model of coterie does" in refusal(content, 5)
        # With a header and a checksum of ours they are no better.
        refusal(envelope.seal(envelope.ONNX, 5, content), 5)
        refusal(envelope.seal(envelope.AFFINE, 5, content), 5)
    assert not trace.exists()


def test_the_same_model_gives_the_same_bytes(table: Any, fitted: dict[str, Any]) -> None:
    X, _ = table
    for model in fitted.values():
        assert wire.pack(model, X.shape[1]) == wire.pack(model, X.shape[1])
