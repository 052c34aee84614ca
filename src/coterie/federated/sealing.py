"""A message as a file: a line of JSON that says what it is, then the message itself.

The line names the site, the versions, when it was made, the length and the sha256 of the message, and who
signed it. A file that was cut off, changed or renamed is seen at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from coterie.federated.checks import digest
from coterie.federated.codec import from_plain, parse, to_text
from coterie.federated.conclusions import Conclusion
from coterie.federated.messages import Message, ProtocolError, Question, decode, encode, kind_of
from coterie.federated.signing import Signer, is_signed
from coterie.federated.site import software_versions
from coterie.federated.tables import Encoding

FORMAT = "coterie-sealed"
FORMAT_VERSION = 1
# Bytes. The first line is short; a file without one is not read to its end.
LONGEST_HEADER = 10_000


@dataclass(frozen=True)
class Signature:
    """The public key of who signed, and its signature of the header, which holds the message's sha256."""

    key: str
    value: str


@dataclass(frozen=True)
class Header:
    """The first line of a file.

    ``version`` is that of the format, ``kind``, ``length`` in bytes and ``sha256`` those of the message.
    ``site`` is who speaks; empty for questions, encodings and conclusions. ``made`` is when, in universal
    time.
    """

    format: str
    version: int
    kind: str
    site: str
    made: str
    software: Mapping[str, str]
    length: int
    sha256: str
    signature: Signature | None

    @property
    def key(self) -> str | None:
        """The public key of who signed; None where nobody did."""
        return None if self.signature is None else self.signature.key


@dataclass(frozen=True)
class Sealed:
    """A file that was opened and checked: the header, which is its first line, and the message."""

    header: Header
    message: Message


def speaker_of(message: Message) -> str:
    """Return the site that a message speaks for; "" for questions, encodings and conclusions.

    Anybody may make those from the sites' messages.
    """
    return "" if isinstance(message, (Question, Conclusion, Encoding)) else message.site


def seal(message: Message, signer: Signer | None = None, made: datetime | None = None) -> bytes:
    """Return a message as the bytes of a file: a header line, with a signature if asked for, and the body.

    ``made`` is the time in the header; None: now. The signature covers the header without its signature, and
    so the message, whose sha256 the header has.
    """
    body = encode(message)
    # What nobody could read is not written: the sentence says which field is at fault.
    decode(body, kind_of(message))
    header = Header(
        format=FORMAT,
        version=FORMAT_VERSION,
        kind=kind_of(message),
        site=speaker_of(message),
        made=(made or datetime.now(UTC)).astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        software=software_versions(),
        length=len(body),
        sha256=digest(body),
        signature=None,
    )
    if signer is not None:
        header = replace(header, signature=Signature(signer.public, signer.sign(to_text(header))))
    return to_text(header) + b"\n" + body


def read_header(content: bytes) -> tuple[Header, bytes]:
    """Return the header of a file, and the bytes of its message, unread.

    The two are not yet compared with each other: `unseal` does that.
    """
    line, newline, _ = content[:LONGEST_HEADER].partition(b"\n")
    if not newline:
        raise ProtocolError("It is no sealed file: it must begin with a line of JSON.")
    fields = parse(line, "first line")
    if fields.get("format") != FORMAT:
        raise ProtocolError("It is no sealed file: its first line is not that of coterie.")
    if fields.get("version") != FORMAT_VERSION:
        raise ProtocolError(
            f"It has version {str(fields.get('version'))[:20]} and this coterie reads version "
            f"{FORMAT_VERSION}: use the same version of coterie at all sites."
        )
    return from_plain(Header, fields, "first line"), content[len(line) + 1 :]


def unseal(content: bytes, known_keys: Mapping[str, str] | None = None) -> Sealed:
    """Open a file that somebody else may have written, and compare its parts with each other.

    Whatever is not whole, not ours, or not signed as it must be is refused with a sentence. ``known_keys``
    are public keys by site; None: unsigned files are read, and a signature only has to be right.
    """
    header, body = read_header(content)
    if len(body) != header.length:
        raise ProtocolError(f"It has {len(body)} bytes where {header.length} were sealed: copy it again.")
    if digest(body) != header.sha256:
        raise ProtocolError("Its content was changed after it was sealed: copy it again.")
    _check_signature(header, known_keys)
    message = decode(body, header.kind)
    # A site's key counts for the name in the header: the message must not speak for another one.
    if speaker_of(message) != header.site:
        raise ProtocolError(f"It is sealed for {header.site!r} and speaks for {speaker_of(message)!r}.")
    return Sealed(header, message)


def _check_signature(header: Header, known_keys: Mapping[str, str] | None) -> None:
    """Refuse a file that is not signed by a key that may speak for its site.

    ``known_keys`` are public keys by site; None: any key will do, but a signature must be right.
    """
    signature = header.signature
    if signature is None:
        if known_keys is not None:
            raise ProtocolError("It is not signed, and only known keys are accepted.")
        return
    if not is_signed(to_text(replace(header, signature=None)), signature.key, signature.value):
        raise ProtocolError("Its signature is wrong: it was changed, or another key signed it.")
    if known_keys is None:
        return
    # Questions, encodings and conclusions have no site: anybody who is known may ask and conclude.
    accepted = set(known_keys.values()) if not header.site else {known_keys.get(header.site)}
    if signature.key not in accepted:
        whom = repr(header.site) if header.site else "anybody"
        raise ProtocolError(f"It is signed with a key that is not known for {whom}.")
