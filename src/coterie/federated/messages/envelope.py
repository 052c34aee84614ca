"""Messages to bytes and back."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from coterie.federated.codec import ProtocolError, from_plain, parse, to_text
from coterie.federated.messages.asking import Answer, Question
from coterie.federated.messages.checks import digest
from coterie.federated.messages.concluding import Conclusion
from coterie.federated.messages.sharing import Score, Share

# Raised whenever a message gains, loses or changes a field.
VERSION = 2

Message = Share | Score | Question | Answer | Conclusion
KINDS: Mapping[str, type[Any]] = {
    "share": Share,
    "score": Score,
    "question": Question,
    "answer": Answer,
    "conclusion": Conclusion,
}


def kind_of(message: Message) -> str:
    """Return the name of a message's kind."""
    return next(name for name, kind in KINDS.items() if type(message) is kind)


def encode(message: Message) -> bytes:
    """Return a message as bytes, the same for the same message.

    Parameters
    ----------
    message : Share, Score, Question, Answer or Conclusion
        What to send.

    Returns
    -------
    bytes
        JSON.
    """
    return to_text({"coterie": VERSION, "kind": kind_of(message), "body": message})


def decode(content: bytes, kind: str | None = None) -> Message:
    """Return the message that bytes from a peer stand for.

    Parameters
    ----------
    content : bytes
        What `encode` made, or anything else.
    kind : str or None, default=None
        The kind that is expected; None: any.

    Returns
    -------
    Share, Score, Question, Answer or Conclusion
        Checked: every field is there, of its type, finite and in range.

    Raises
    ------
    ProtocolError
        With a sentence, for anything else.
    """
    outer = parse(content, "message")
    version = outer.get("coterie")
    if type(version) is not int or set(outer) != {"coterie", "kind", "body"}:
        raise ProtocolError("This is no message of coterie: it must have 'coterie', 'kind' and 'body'.")
    if version != VERSION:
        raise ProtocolError(
            f"The message has version {str(version)[:20]} and this coterie reads version {VERSION}: "
            "use the same version of coterie at all sites."
        )
    found = outer["kind"]
    if not isinstance(found, str) or found not in KINDS or (kind is not None and found != kind):
        expected = kind or "one of " + ", ".join(KINDS)
        raise ProtocolError(f"The message must be {expected}. Got {str(found)[:60]!r}.")
    message: Message = from_plain(KINDS[found], outer["body"], found)
    return message


@lru_cache(maxsize=64)
def question_key(question: Question) -> str:
    """Return the sha256 by which answers name their question."""
    return digest(encode(question))
