"""What a site does on Flower: it answers share, score, answer and conclude from its own rows.

``app`` is ready for ``flwr run``: it reads the table that the node's own configuration names. With rows from
elsewhere, pass a function of your own to `make_client_app`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from flwr.app import ConfigRecord, Context, Message
from flwr.clientapp import ClientApp

from coterie._files import write_bytes
from coterie.federated import wire
from coterie.federated.messages import (
    Blur,
    Conclusion,
    ProtocolError,
    Question,
    Share,
    decode,
    digest,
    encode,
)
from coterie.federated.party import Party, make_party
from coterie.federated.site import answer, score, share
from coterie.flower.carrying import ANSWER, CONCLUDE, SCORE, SHARE, loaded, refused, unloaded
from coterie.flower.tables import read_rows

logger = logging.getLogger(__name__)

# What a node keeps between rounds, and never sends: its share's checksum, and what it was told to score.
KEPT, OWN, SHARES = "coterie.kept", "own", "shares"


def _texts(value: Any) -> list[str]:
    return [part.strip() for part in str(value).split(",") if part.strip()]


def _setting(config: Mapping[str, Any], name: str) -> str:
    if name not in config:
        raise ValueError(
            f"The node's configuration lacks {name!r}: start it with --node-config '{name}=...'."
        )
    return str(config[name])


def _blur(config: Mapping[str, Any], clip: str) -> Blur | None:
    """Return how the node blurs a message, where its configuration has an epsilon."""
    if "epsilon" not in config:
        return None
    return Blur(float(config["epsilon"]), float(config.get("delta", 1e-6)), float(_setting(config, clip)))


def party_from_table(context: Context) -> Party:
    """Make the site's party from the table that the node's configuration names.

    Parameters
    ----------
    context : Context
        Of the node. Its ``node_config`` has ``site``, ``table`` (a CSV or Parquet file) and ``target``, and
        may have ``features`` and ``candidates`` (separated by commas) and ``order`` (``auto`` or ``none``);
        ``run_config`` may have ``candidates`` and ``seed``.

    Returns
    -------
    Party
        The site.
    """
    mine, run = context.node_config, context.run_config
    target = _setting(mine, "target")
    X, y = read_rows(_setting(mine, "table"), target, _texts(mine.get("features", "")))
    return make_party(
        X,
        y,
        site=_setting(mine, "site"),
        target=target,
        candidates=_texts(mine.get("candidates", run.get("candidates", "default"))),
        seed=int(run.get("seed", 0)),
        order=None if (order := str(mine.get("order", "auto"))) == "none" else order,
    )


def save_conclusion(context: Context, conclusion: Conclusion, shares: Sequence[Share]) -> None:
    """Write the conclusion and the coterie's models to the node's ``output`` folder, where it names one."""
    folder, site = context.node_config.get("output"), str(context.node_config.get("site"))
    if not folder:
        return
    place = Path(str(folder))
    place.mkdir(parents=True, exist_ok=True)
    members = set(conclusion.weights(site)) if site in conclusion.labels else set()
    write_bytes(place / "conclusion.json", encode(conclusion))
    for peer in shares:
        if peer.site in members:
            # By checksum: a peer's name may be anything, also a path.
            write_bytes(place / f"share-{peer.sha[:16]}.json", encode(peer))


def _decoded(messages: Sequence[bytes], kind: type[Any]) -> list[Any]:
    found = [decode(message) for message in messages]
    if not all(type(message) is kind for message in found):
        raise ProtocolError(f"What came is not a {kind.__name__.lower()}.")
    return found


def _keep(context: Context, own: str, shares: list[bytes]) -> None:
    context.state[KEPT] = ConfigRecord({OWN: own, SHARES: shares})


def _kept(context: Context) -> tuple[Any, Any]:
    """Return the checksum of the own share and the shares that were scored, as far as there are any."""
    kept: Any = context.state.get(KEPT)
    return (None, []) if kept is None else (kept[OWN], kept[SHARES])


class _Site:
    """The four answers of a site, each from messages to messages."""

    def __init__(
        self,
        load_party: Callable[[Context], Party],
        on_conclusion: Callable[[Context, Conclusion, Sequence[Share]], None],
    ) -> None:
        self._load_party = load_party
        self._on_conclusion = on_conclusion

    def share(self, context: Context, messages: list[bytes]) -> list[bytes]:
        blur = _blur(context.node_config, "clip-coefficients")
        if blur is not None and _kept(context)[0] is not None:
            # Who hears the same number blurred often enough can take the noise off.
            raise ProtocolError("It blurs what it tells, and has told it once in this run.")
        mine = encode(share(self._load_party(context), blur=blur))
        _keep(context, digest(mine), [])
        return [mine]

    def score(self, context: Context, messages: list[bytes]) -> list[bytes]:
        own, scored = _kept(context)
        if own not in [digest(message) for message in messages]:
            raise ProtocolError("Its own share did not come back as it was sent, so it does not score.")
        shares = _decoded(messages, Share)
        reveal = str(context.node_config.get("reveal-gram", False)).lower() == "true"
        blur = _blur(context.node_config, "clip-losses")
        if blur is not None and scored:
            raise ProtocolError("It blurs what it tells, and has told it once in this run.")
        mine = encode(score(self._load_party(context), shares, reveal_gram=reveal, blur=blur))
        _keep(context, own, messages)
        return [mine]

    def _shares(self, context: Context) -> list[Share]:
        _, messages = _kept(context)
        if not messages:
            raise ProtocolError("It has not scored, so there is nothing to answer from.")
        return _decoded(messages, Share)

    def answer(self, context: Context, messages: list[bytes]) -> list[bytes]:
        shares = self._shares(context)
        party = self._load_party(context)
        return [encode(answer(party, shares, question)) for question in _decoded(messages, Question)]

    def conclude(self, context: Context, messages: list[bytes]) -> list[bytes]:
        shares = self._shares(context)
        for conclusion in _decoded(messages, Conclusion):
            self._on_conclusion(context, conclusion, shares)
        return []


def _handler(act: Callable[[Context, list[bytes]], list[bytes]]) -> Callable[[Message, Context], Message]:
    def handle(message: Message, context: Context) -> Message:
        try:
            content = loaded(act(context, unloaded(message.content)))
        except (ProtocolError, wire.WireError) as error:
            logger.warning("%s", error)
            content = refused(str(error))
        # An exception's text may quote rows; Flower would send it to the server.
        except Exception as error:
            logger.exception("The site could not do what it was asked.")
            content = refused(f"It failed with a {type(error).__name__}; its own log says more.")
        return Message(content, reply_to=message)

    return handle


def make_client_app(
    load_party: Callable[[Context], Party] = party_from_table,
    on_conclusion: Callable[[Context, Conclusion, Sequence[Share]], None] = save_conclusion,
) -> ClientApp:
    """Return a ClientApp that takes part with a site's rows.

    Parameters
    ----------
    load_party : callable, default=party_from_table
        From the node's context to its `Party`. Called in every round, in a fresh process on real nodes, so it
        must give the same party every time.
    on_conclusion : callable, default=save_conclusion
        What to do with the conclusion: context, conclusion and everybody's shares.

    Returns
    -------
    ClientApp
        For ``flwr run``.
    """
    app, site = ClientApp(), _Site(load_party, on_conclusion)
    acts = {SHARE: site.share, SCORE: site.score, ANSWER: site.answer, CONCLUDE: site.conclude}
    for name, act in acts.items():
        app.query(name)(_handler(act))
    return app


app = make_client_app()
