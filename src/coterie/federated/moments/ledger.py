"""What a site's rows have spent: a ledger at the site, by row, whatever the rows are called.

Whoever gets the same moments with fresh noise often enough can take the noise off. So the ledger keeps every
private message with a keyed hash of each row behind it. The same rows in another order or under another name
get the message that was sent before, noise and all, which costs nothing. Where only some rows are the same,
their epsilons and deltas add up, and that has to be wanted.

A row is known again by its values in the columns of the schema, or by the whole line of its table. A row of
which both have changed is a new one to the ledger, and so is every row on another machine, or where the
ledger was deleted.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._files import LockedError, locked, write_bytes
from coterie.datasets.files import data_home
from coterie.federated.checks import digest
from coterie.federated.codec import from_plain, parse, to_text
from coterie.federated.messages import ProtocolError, decode, encode
from coterie.federated.moments.schema import Schema
from coterie.federated.moments.site import moments_of
from coterie.federated.tables import Moments, Promise

KEY_BYTES, HASH_BYTES = 32, 8


@dataclass(frozen=True)
class _Entry:
    """A message that was sent, and the hashes of its rows: by their columns, and by their whole lines."""

    message: bytes
    rows: bytes
    lines: bytes

    @property
    def sent(self) -> Moments:
        """The message that was sent."""
        message = decode(self.message, "moments")
        assert isinstance(message, Moments)
        return message


@dataclass(frozen=True)
class Account:
    """What was spent on the row that has spent most, this message included.

    ``known`` of the rows were part of an earlier message. ``again``: the message is one that was sent before,
    and has spent nothing anew.
    """

    epsilon: float
    delta: float
    known: int
    again: bool


def _folder() -> Path:
    return data_home() / "spent"


def _key() -> bytes:
    """Return the secret key of the row hashes, which is made on the first call and never leaves this machine.

    Without it nobody can test by hashing whether a guessed row is in the ledger.
    """
    path = _folder() / "key"
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_bytes(path, secrets.token_bytes(KEY_BYTES), fresh=True, mode=0o600)
    return path.read_bytes()


def _hashes(parts: Iterable[bytes], key: bytes) -> Array:
    """Return a keyed hash of each part, as integers of 64 bits and of shape (n,)."""
    digests = (hashlib.blake2b(part, digest_size=HASH_BYTES, key=key).digest() for part in parts)
    return np.frombuffer(b"".join(digests), dtype="<u8")


def _unpacked(hashes: bytes) -> Array:
    return np.frombuffer(hashes, dtype="<u8")


@contextmanager
def _locked() -> Iterator[None]:
    """Let no other process send while the ledger is looked at and written."""
    try:
        with locked(_folder() / "lock"):
            yield
    except LockedError as error:
        raise ProtocolError(f"{error} is sending private moments now: wait until it is done.") from None


def _entries() -> list[tuple[_Entry, Moments]]:
    """Return the ledger's entries, each with the message that was sent; a damaged one is an error.

    To skip it would forget what its rows have spent.
    """
    entries = []
    for path in sorted(_folder().glob("*.json")):
        try:
            entry = from_plain(_Entry, parse(path.read_bytes(), "ledger"), "ledger")
            sent = entry.sent
        except ProtocolError:
            raise ProtocolError(
                f"{str(path)!r}, which keeps what was sent before, cannot be read: remove it, and what is "
                "sent then spends epsilon again."
            ) from None
        entries.append((entry, sent))
    return entries


def _seen(entry: _Entry, rows: Array, lines: Array) -> Array:
    """Return which rows (n,) were part of the message of an entry, by hashes (n,) of their columns.

    ``lines`` are hashes of whole lines of the table, or empty. A row counts as known where either hash is. A
    changed schema changes the first hash of a row, and not the second.
    """
    is_known = np.isin(rows, _unpacked(entry.rows))
    if len(lines):
        is_known |= np.isin(lines, _unpacked(entry.lines))
    return is_known


def send_once(
    X: Any,
    y: Any,
    *,
    site: str,
    schema: Schema,
    promise: Promise,
    lines: Sequence[str] = (),
    again: bool = False,
) -> tuple[Moments, Account]:
    """Return a site's private moments, and what its rows have spent with them.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Predictors, as the schema's encoder makes them.
    y : array-like of shape (n,)
        Response.
    site : str
        Who speaks.
    schema : Schema
        What the sites agreed on.
    promise : Promise
        How private the message has to be.
    lines : sequence of str, default=()
        The whole lines of the rows' table, by which they are known where the schema has changed.
    again : bool, default=False
        Spend again on rows that were part of an earlier message.

    Returns
    -------
    message : Moments
        The one that was sent before where the rows, the schema and the promise are the same.
    account : Account
        What was spent.
    """
    # Zero has two signs, which are one value.
    columns = np.column_stack([np.asarray(X, dtype=float), np.asarray(y, dtype=float)]) + 0.0
    with _locked():
        key = _key()
        row_hashes = _hashes((row.tobytes() for row in columns), key)
        line_hashes = _hashes((line.encode("utf-8", "surrogatepass") for line in lines), key)
        # What each row has spent: epsilons and deltas of the messages that it was part of add up.
        epsilon, delta = np.zeros(len(row_hashes)), np.zeros(len(row_hashes))
        same_message = None
        for entry, sent in _entries():
            assert sent.promise is not None
            seen = _seen(entry, row_hashes, line_hashes)
            epsilon += sent.promise.epsilon * seen
            delta += sent.promise.delta * seen
            is_same = (sent.schema, sent.promise, entry.rows) == (
                schema.text,
                promise,
                np.sort(row_hashes).tobytes(),
            )
            same_message = sent if is_same else same_message
        n_known = int((epsilon > 0).sum())
        if same_message is not None:
            # The row that has spent most counts, for the promise holds for every row.
            spent = float(epsilon.max()), float(delta.max())
            # The same noise again says nothing new; only the name of the sender may differ.
            return replace(same_message, site=site), Account(*spent, n_known, again=True)
        spent = float(epsilon.max()) + promise.epsilon, float(delta.max()) + promise.delta
        if n_known and not again:
            raise ProtocolError(
                f"{n_known} of the {len(row_hashes)} rows were part of an earlier private message: to send "
                f"them once more would spend epsilon {spent[0]:g} in all, delta {spent[1]:g}."
            )
        message = moments_of(X, y, site=site, schema=schema, promise=promise)
        entry_to_keep = _Entry(encode(message), np.sort(row_hashes).tobytes(), np.sort(line_hashes).tobytes())
        # Kept before it is sent: what was not sent may count, what was sent must.
        content = to_text(entry_to_keep)
        write_bytes(_folder() / f"{digest(content)}.json", content, mode=0o600)
    return message, Account(*spent, n_known, again=False)
