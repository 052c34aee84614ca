"""What a site has blurred and told, kept at the site: the same is told again in the same words.

Whoever hears the same numbers blurred often enough can take the noise off. The messages that were sent are
kept in the site's own cache, not in the folder, where anybody may delete them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from coterie._files import write_bytes
from coterie.cli.errors import CommandError, cache_errors

if TYPE_CHECKING:
    from coterie.federated import Party, Score, Share
    from coterie.federated.messages import Blur, Message


def _drawer(party: Party) -> Path:
    """Return the folder for what was told of these rows."""
    from coterie.datasets.files import data_home
    from coterie.federated.codec import to_text

    rows = hashlib.sha256(to_text({"site": party.site, "columns": party.columns, "target": party.target}))
    for values in (party.learners.X, party.learners.y):
        rows.update(values.tobytes())
    return data_home() / "blurred" / rows.hexdigest()


def _kept(path: Path) -> Message | None:
    from coterie.federated.messages import ProtocolError, decode

    if not path.exists():
        return None
    try:
        return decode(path.read_bytes())
    except ProtocolError:
        raise CommandError(
            f"{str(path)!r}, which keeps what was told before, cannot be read: remove it, and what is told "
            "then spends epsilon again."
        ) from None


def _told_once(path: Path, make: Callable[[], Message]) -> Message:
    from coterie.federated.messages import encode

    found = _kept(path)
    if found is None:
        found = make()
        with cache_errors(path.parent):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_bytes(path, encode(found))
    return found


def _key(kind: str, *parts: object) -> str:
    return f"{kind}-{hashlib.sha256(repr(parts).encode()).hexdigest()}.json"


def blurred_share(party: Party, blur: Blur) -> Share:
    """Return the site's blurred share, the one that it told before if it did."""
    from coterie.federated import Share
    from coterie.federated import share as make

    key = _key("share", party.candidates, party.seed, blur)
    found = _told_once(_drawer(party) / key, lambda: make(party, blur=blur))
    assert isinstance(found, Share)
    return found


def blurred_score(party: Party, shares: Sequence[Share], blur: Blur) -> Score:
    """Return the site's blurred score of these models, the one that it told before if it did."""
    from coterie.federated import Score
    from coterie.federated import score as make

    models = sorted((peer.site, peer.sha, peer.columns, peer.target) for peer in shares)
    found = _told_once(
        _drawer(party) / _key("score", models, blur), lambda: make(party, list(shares), blur=blur)
    )
    assert isinstance(found, Score)
    return found


def epsilon_spent(party: Party) -> float:
    """Return the sum of the epsilons of all that was told of these rows."""
    from coterie.federated import Score, Share

    kept = [_kept(path) for path in sorted(_drawer(party).glob("*.json"))]
    blurs = [message.privacy for message in kept if isinstance(message, Share | Score)]
    return sum(blur.epsilon for blur in blurs if blur is not None)
