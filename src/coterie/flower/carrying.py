"""Messages of the protocol inside messages of Flower, and one round of them.

A message of Flower carries bytes in one record, and nothing else. A round asks some nodes for the same thing,
and takes what comes in time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from flwr.app import ConfigRecord, Message, RecordDict

from coterie.federated.messages import ProtocolError, decode

logger = logging.getLogger(__name__)

RECORD = "coterie"
MESSAGES, REFUSAL = "messages", "refusal"
# What a node is asked to do; Flower calls these query.share, query.score and so on.
SHARE, SCORE, ANSWER, CONCLUDE = "share", "score", "answer", "conclude"
# Letters of a sentence from elsewhere that are kept.
MAX_LETTERS = 300


def loaded(messages: Iterable[bytes]) -> RecordDict:
    """Return encoded messages of the protocol as the content of one message of Flower."""
    return RecordDict({RECORD: ConfigRecord({MESSAGES: list(messages)})})


def refused(sentence: str) -> RecordDict:
    """Return the content of a reply that refuses, with the reason as a sentence."""
    return RecordDict({RECORD: ConfigRecord({REFUSAL: sentence})})


def one_line(text: str) -> str:
    """Return a text of unknown origin as one short line of printable letters, fit for a log.

    A stranger could otherwise forge lines of the log.
    """
    line = "".join(letter if letter.isprintable() else " " for letter in text)
    return " ".join(line.split())[:MAX_LETTERS]


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


# Of the one message that a reply has to hold: one of these; None: there must be no message.
Kind = type[Any] | tuple[type[Any], ...] | None


class Carrier(Protocol):
    """The two methods of Flower's Grid that a round needs."""

    def get_node_ids(self) -> Iterable[int]:
        """Return the nodes that are there."""
        ...

    def send_and_receive(self, messages: Iterable[Any], *, timeout: float | None = None) -> Iterable[Any]:
        """Send messages and return the replies that come in time."""
        ...


@dataclass(frozen=True)
class Round:
    """What came back: decoded messages by node, or why there are none.

    ``sent`` are bytes to each node, ``received`` bytes from all of them.
    """

    name: str
    replies: Mapping[int, list[Any]]
    failures: Mapping[int, str]
    seconds: float
    sent: int
    received: int


def wait_for_nodes(grid: Carrier, fewest: int, seconds: float) -> list[int]:
    """Return the ids of the nodes, sorted, once at least ``fewest`` of them are there.

    A ProtocolError says that fewer were there when the time was over.
    """
    deadline = time.monotonic() + seconds
    while len(nodes := sorted(grid.get_node_ids())) < fewest:
        if time.monotonic() > deadline:
            raise ProtocolError(
                f"Only {len(nodes)} of at least {fewest} nodes were there after {seconds:g} seconds: start "
                "more SuperNodes, or lower 'min-nodes'."
            )
        time.sleep(min(0.5, seconds / 10))
    return nodes


def _reply(reply: Any, kind: Kind) -> tuple[list[Any], int]:
    """Return the messages of a node's reply, and their size in bytes; refuse an error or another kind.

    A reply has one message of the expected kind, or none where no kind is expected.
    """
    if reply.has_error():
        raise ProtocolError(f"It failed: {one_line(str(reply.error.reason)) or 'no reason given'}.")
    messages = unloaded(reply.content)
    decoded = [decode(message) for message in messages]
    expected_kinds = () if kind is None else kind if isinstance(kind, tuple) else (kind,)
    # One message where a kind is expected, none else; exact types, as everywhere in the protocol.
    if len(decoded) != min(len(expected_kinds), 1) or any(
        type(message) not in expected_kinds for message in decoded
    ):
        raise ProtocolError("Its answer is of another kind than the question.")
    return decoded, sum(map(len, messages))


def ask(
    grid: Carrier,
    nodes: Iterable[int],
    name: str,
    messages: Sequence[bytes],
    kind: Kind,
    seconds: float,
) -> Round:
    """Ask nodes to share, score, answer or conclude, and wait for at most some seconds.

    ``messages`` are what they need for it, encoded. ``kind`` is that of the one message that each must answer
    with; None where nothing but a sign is expected.
    """
    started_at = time.monotonic()
    recipients = list(nodes)
    content = loaded(messages)
    # A message that nobody has fetched when the round ends is not delivered any more.
    letters = [Message(content, node, f"query.{name}", ttl=seconds) for node in recipients]
    replies: dict[int, list[Any]] = {}
    # Every node has failed until its reply has been read.
    failures = dict.fromkeys(recipients, f"It did not reply within {seconds:g} seconds when asked to {name}.")
    received = 0
    arrived = list(grid.send_and_receive(letters, timeout=seconds))
    # By letter: where a node is gone, the SuperLink replies in its place and in its own name.
    addressee = {letter.metadata.message_id: letter.metadata.dst_node_id for letter in letters}
    for reply in arrived:
        node = addressee.get(reply.metadata.reply_to_message_id)
        # Replies to nobody's letter, and second ones, are dropped.
        if node is None or node in replies:
            continue
        try:
            replies[node], size = _reply(reply, kind)
            received += size
            del failures[node]
        except ProtocolError as error:
            failures[node] = f"When asked to {name}: {error}"
    seconds_taken = time.monotonic() - started_at
    logger.info("%s: %d of %d nodes replied in %.1f s.", name, len(replies), len(recipients), seconds_taken)
    return Round(
        name=name,
        replies=replies,
        failures=failures,
        seconds=seconds_taken,
        sent=sum(map(len, messages)),
        received=received,
    )
