"""Messages of the protocol inside messages of Flower: bytes in one record, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flwr.app import ConfigRecord, RecordDict

from coterie.federated.messages import ProtocolError

RECORD = "coterie"
MESSAGES, REFUSAL = "messages", "refusal"
# What a node is asked to do; Flower calls these query.share, query.score and so on.
SHARE, SCORE, ANSWER, CONCLUDE = "share", "score", "answer", "conclude"
MOST_LETTERS = 300


def loaded(messages: Iterable[bytes]) -> RecordDict:
    """Return encoded messages as the content of a message of Flower."""
    return RecordDict({RECORD: ConfigRecord({MESSAGES: list(messages)})})


def refused(sentence: str) -> RecordDict:
    """Return why a node does not do what it was asked."""
    return RecordDict({RECORD: ConfigRecord({REFUSAL: sentence})})


def one_line(text: str) -> str:
    """Return a text of unknown origin as a short line."""
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(line.split())[:MOST_LETTERS]


def unloaded(content: Any) -> list[bytes]:
    """Return the encoded messages that a message of Flower carries, not yet decoded.

    Where there are none, the ProtocolError has the sender's own sentence, if it gave one.
    """
    record = content.get(RECORD)
    if not isinstance(record, ConfigRecord):
        raise ProtocolError("What came is no message of coterie.")
    refusal = record.get(REFUSAL)
    if isinstance(refusal, str):
        raise ProtocolError(one_line(refusal) or "It refused and gave no reason.")
    messages: Any = record.get(MESSAGES)
    if not isinstance(messages, list) or not all(isinstance(part, bytes) for part in messages):
        raise ProtocolError("What came is no message of coterie.")
    return list(messages)
