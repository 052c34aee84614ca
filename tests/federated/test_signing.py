"""Keys: private ones stay private, public ones are listed by name."""

from __future__ import annotations

import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import x25519

from coterie.federated import ProtocolError
from coterie.federated.signing import is_signed, make_key, read_key, read_known_keys

KEY = "ab" * 32


def test_a_key_signs_and_only_its_owner_reads_it(tmp_path):
    public = make_key(tmp_path / "key")
    signer = read_key(tmp_path / "key")
    assert signer.public == public
    assert len(public) == 64
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    signature = signer.sign(b"text")
    assert is_signed(b"text", public, signature)
    assert not is_signed(b"other", public, signature)
    assert not is_signed(b"text", KEY, signature)


def test_a_key_is_not_overwritten(tmp_path):
    make_key(tmp_path / "key")
    with pytest.raises(FileExistsError):
        make_key(tmp_path / "key")


def test_what_is_no_key_is_refused(tmp_path):
    (tmp_path / "text").write_text("no key")
    with pytest.raises(ProtocolError, match="no private key"):
        read_key(tmp_path / "text")
    other = x25519.X25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (tmp_path / "other").write_bytes(other)
    with pytest.raises(ProtocolError, match="no Ed25519 key"):
        read_key(tmp_path / "other")


def test_known_keys_are_read_by_name(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"# our sites\nnorth {KEY}\n\nsouth west {KEY.upper()}\n")
    assert read_known_keys(path) == {"north": KEY, "south west": KEY}


@pytest.mark.parametrize("text", ["north", f"north {KEY[:-1]}", f"north {'zz' * 32}", f" {KEY}"])
def test_a_line_that_is_no_name_and_key_is_named(tmp_path, text):
    path = tmp_path / "keys"
    path.write_text(text)
    with pytest.raises(ProtocolError, match="Line 1"):
        read_known_keys(path)


def test_two_keys_for_one_name_are_refused(tmp_path):
    path = tmp_path / "keys"
    path.write_text(f"north {KEY}\nnorth {'cd' * 32}\n")
    with pytest.raises(ProtocolError, match="two keys"):
        read_known_keys(path)


@pytest.mark.parametrize("read", [read_key, read_known_keys])
def test_a_device_without_an_end_is_not_read(read):
    with pytest.raises(ValueError, match="no plain file"):
        read("/dev/full")
