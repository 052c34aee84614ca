"""What parties tell each other: typed, versioned records, the same whatever carries them.

A site sends a `Share` (its model and a few numbers), then a `Score` (what everybody's models lose on its
rows), then an `Answer` to each `Question` (what averages of models lose there). A `Conclusion` tells who
learns with whom. No message has a place for a row.
"""

from __future__ import annotations

from coterie.federated.codec import ProtocolError
from coterie.federated.messages.asking import Answer, Member, Pairing, Question, Verdict
from coterie.federated.messages.checks import check_site, digest
from coterie.federated.messages.concluding import Conclusion, Curve, Gain
from coterie.federated.messages.envelope import KINDS, VERSION, Message, decode, encode, kind_of, question_key
from coterie.federated.messages.sharing import Blur, Gram, Loss, Score, Share

__all__ = [
    "KINDS",
    "VERSION",
    "Answer",
    "Blur",
    "Conclusion",
    "Curve",
    "Gain",
    "Gram",
    "Loss",
    "Member",
    "Message",
    "Pairing",
    "ProtocolError",
    "Question",
    "Score",
    "Share",
    "Verdict",
    "check_site",
    "decode",
    "digest",
    "encode",
    "kind_of",
    "question_key",
]
