"""The same method for sites whose rows may not move: they exchange models and scalar losses, never rows.

What travels is small and checked on arrival: models by `coterie.federated.wire`, everything else as plain
messages. A peer's file is taken for hostile until it has been read through.

A site makes a `Site` of its rows, then a `Share`, a `Score` and an `Answer` to each question; whoever
coordinates turns shares and scores into questions and, in the end, a `Conclusion`. Messages travel in a
sealed folder or by Flower: `encode` and `decode` make bytes of them.
"""

from __future__ import annotations

from coterie.federated.answering import answer
from coterie.federated.answers import Answered, check_answer
from coterie.federated.conclusions import Conclusion
from coterie.federated.messages import Answer, ProtocolError, Question, Score, Share, decode, encode
from coterie.federated.peers import Site, make_site, predict
from coterie.federated.protocol import MOST_ROUNDS, Settings, conclude, coordinate
from coterie.federated.site import score, share

__all__ = [
    "MOST_ROUNDS",
    "Answer",
    "Answered",
    "Conclusion",
    "ProtocolError",
    "Question",
    "Score",
    "Settings",
    "Share",
    "Site",
    "answer",
    "check_answer",
    "conclude",
    "coordinate",
    "decode",
    "encode",
    "make_site",
    "predict",
    "score",
    "share",
]
