"""What a site has blurred and sent, kept at the site: the same is sent again in the same words.

Whoever hears the same numbers blurred often enough can take the noise off. The messages that were sent are
kept in the site's own cache, not in the folder, where anybody may delete them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from coterie._files import write_bytes
from coterie.datasets.files import data_home
from coterie.federated.codec import to_text
from coterie.federated.messages import Blur, Message, ProtocolError, Score, Share, decode, encode
from coterie.federated.peers import Party
from coterie.federated.site import score, share


def _drawer(party: Party) -> Path:
    """Return the folder for what was sent about these rows."""
    rows = hashlib.sha256(to_text({"site": party.site, "columns": party.columns, "target": party.target}))
    for values in (party.learners.X, party.learners.y):
        rows.update(values.tobytes())
    return data_home() / "blurred" / rows.hexdigest()


def _read(path: Path) -> Message:
    try:
        return decode(path.read_bytes())
    except ProtocolError:
        raise ProtocolError(
            f"{str(path)!r}, which keeps what was sent before, cannot be read: remove it, and what is sent "
            "then spends epsilon again."
        ) from None


def _sent_once(party: Party, kind: str, about: object, make: Callable[[], Message]) -> Message:
    """Return what was sent about the same, or make it and keep it."""
    key = hashlib.sha256(repr(about).encode()).hexdigest()
    path = _drawer(party) / f"{kind}-{key}.json"
    if path.exists():
        return _read(path)
    made = make()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_bytes(path, encode(made))
    return made


def blurred_share(party: Party, blur: Blur) -> Share:
    """Return the site's blurred share, the one that it sent before if it did."""
    about = (party.candidates, party.seed, blur)
    found = _sent_once(party, "share", about, lambda: share(party, blur=blur))
    assert isinstance(found, Share)
    return found


def blurred_score(party: Party, shares: Sequence[Share], blur: Blur) -> Score:
    """Return the site's blurred score of these models, the one that it sent before if it did."""
    models = sorted((peer.site, peer.sha, peer.columns, peer.target) for peer in shares)
    found = _sent_once(party, "score", (models, blur), lambda: score(party, list(shares), blur=blur))
    assert isinstance(found, Score)
    return found


def epsilon_spent(party: Party) -> float:
    """Return the sum of the epsilons of all that was sent about these rows."""
    kept = [_read(path) for path in sorted(_drawer(party).glob("*.json"))]
    blurs = [message.privacy for message in kept if isinstance(message, Share | Score)]
    return sum(blur.epsilon for blur in blurs if blur is not None)
