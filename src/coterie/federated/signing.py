"""Ed25519 keys: who wrote a file, where a folder alone cannot tell.

A key file holds the private key in PEM and stays at its site. Public keys travel as 64 hexadecimal digits; a
list of known keys has a line ``name key`` for every site, and refuses everybody else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from coterie._files import read_plain, write_bytes
from coterie.federated.checks import check_site
from coterie.federated.messages import ProtocolError

# Hexadecimal digits of a public key.
DIGITS = 64
# Points of small order on the curve, as hexadecimal digits: anybody can sign anything for such a "key". The
# sign, the highest bit, is left out.
WORTHLESS = {
    "00" * 32,
    "01" + "00" * 31,
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "ec" + "ff" * 30 + "7f",
    "ed" + "ff" * 30 + "7f",
    "ee" + "ff" * 30 + "7f",
}


def _ed25519() -> Any:
    """Return cryptography's module for Ed25519; if it is missing, say which extra brings it."""
    try:
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise ProtocolError("Signing needs cryptography: install coterie's extra 'federated'.") from error
    return ed25519


def make_key(path: str | Path) -> str:
    """Write a new private key to a new file, which only its owner may read; return the public key.

    The file has no password: its mode alone protects it.
    """
    from cryptography.hazmat.primitives import serialization

    key = _ed25519().Ed25519PrivateKey.generate()
    content = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    write_bytes(Path(path), content, fresh=True, mode=0o600)
    return Signer(key).public


class Signer:
    """Signs bytes with a private Ed25519 key, an object of the library cryptography."""

    def __init__(self, key: Any) -> None:
        self._key = key

    @property
    def public(self) -> str:
        """The public key, 64 hexadecimal digits."""
        public: str = self._key.public_key().public_bytes_raw().hex()
        return public

    def sign(self, content: bytes) -> str:
        """Return the signature of some bytes in hexadecimal digits."""
        signature: str = self._key.sign(content).hex()
        return signature


def read_key(path: str | Path) -> Signer:
    """Return the signer of a key file: an Ed25519 private key in PEM without a password."""
    ed25519 = _ed25519()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives import serialization

    content = read_plain(Path(path))
    try:
        key = serialization.load_pem_private_key(content, None)
    # A key with a password raises TypeError.
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ProtocolError(f"{str(path)!r} is no private key in PEM without a password.") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise ProtocolError(f"{str(path)!r} is no Ed25519 key: make one with `coterie keygen`.")
    return Signer(key)


def is_signed(content: bytes, public: str, signature: str) -> bool:
    """Tell whether a signature of some bytes was made with the private key behind a public key.

    ``public`` and ``signature`` are hexadecimal digits from a stranger: what is no key, or a worthless one,
    has signed nothing.
    """
    ed25519 = _ed25519()
    from cryptography.exceptions import InvalidSignature

    try:
        point = bytes.fromhex(public)
        # The highest bit is the sign, which the list of worthless points leaves out.
        if not point or (point[:-1] + bytes([point[-1] & 0x7F])).hex() in WORTHLESS:
            return False
        key = ed25519.Ed25519PublicKey.from_public_bytes(point)
        key.verify(bytes.fromhex(signature), content)
    except (ValueError, InvalidSignature):
        return False
    return True


def read_known_keys(path: str | Path) -> Mapping[str, str]:
    """Return public keys by site, from a text file of lines ``name key``.

    Empty lines and lines that begin with # are skipped; damaged lines and two keys for one name are refused.
    """
    key_by_name: dict[str, str] = {}
    try:
        text = read_plain(Path(path)).decode("utf-8")
    except UnicodeDecodeError:
        raise ProtocolError(f"{str(path)!r} is no list of keys: it is not text in UTF-8.") from None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        name, _, key = line.strip().rpartition(" ")
        is_key = len(key) == DIGITS and set(key.lower()) <= set("0123456789abcdef")
        if not is_key or not name.strip():
            raise ProtocolError(
                f"Line {number} of {str(path)!r} must be a name and a key of {DIGITS} digits."
            )
        name = check_site(name.strip())
        if key_by_name.get(name, key.lower()) != key.lower():
            raise ProtocolError(f"{str(path)!r} has two keys for {name!r}: remove one of them.")
        key_by_name[name] = key.lower()
    return key_by_name
