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
from coterie.encoding.agreed import rows_of
from coterie.federated import ProtocolError, Site, answer, decode, encode, make_site, score, share, wire
from coterie.federated.checks import digest
from coterie.federated.conclusions import Conclusion
from coterie.federated.messages import Question, Share, kind_of
from coterie.federated.tables import Moments
from coterie.flower.carrying import ANSWER, CONCLUDE, SCORE, SHARE, loaded, refused, unloaded
from coterie.flower.moments import bent_moments, moments_of_node, refuse_more, sends_exact, sends_moments
from coterie.flower.pages import write_page

logger = logging.getLogger(__name__)

# What a node keeps between rounds, and never sends: its share's checksum, and what it has to score.
STATE, OWN, SHARES = "coterie.kept", "own", "shares"


def _texts(value: Any) -> list[str]:
    """Return the parts of a setting that are separated by commas, without blanks and empty parts."""
    return [part.strip() for part in str(value).split(",") if part.strip()]


def _setting(config: Mapping[str, Any], name: str) -> str:
    """Return a setting of the node's configuration; refuse if it is missing."""
    if name not in config:
        raise ValueError(
            f"The node's configuration lacks {name!r}: start it with --node-config '{name}=...'."
        )
    return str(config[name])


def _read_rows(
    path: str | Path, target: str, features: Sequence[str] = (), *, agreed: bool = False
) -> tuple[Any, Any]:
    """Return X and y of a CSV or Parquet file; X has all other columns where no features are named.

    ``agreed``: nothing is guessed from entries; those of CSV files stay texts, a row for each line.
    """
    try:
        import polars
    except ModuleNotFoundError as error:
        raise ValueError("Reading tables needs polars: install coterie's extra 'cli'.") from error
    file = Path(path)
    readers: dict[str, Callable[[Path], Any]] = {".csv": polars.read_csv, ".parquet": polars.read_parquet}
    if file.suffix not in readers:
        raise ValueError(f"The table must be a .csv or .parquet file. Got {file.name!r}.")
    if not file.exists():
        raise ValueError(f"There is no table {str(file)!r} on this node: check 'table' in its --node-config.")
    if agreed and file.suffix == ".csv":
        # Windows may put a byte order mark first, which is no part of a column's name.
        column_names, rows = rows_of(file.read_bytes().decode("utf-8", "replace").removeprefix("\ufeff"), ",")
        table = polars.DataFrame(rows, schema=dict.fromkeys(column_names, polars.String), orient="row")
    else:
        table = readers[file.suffix](file)
    predictor_names = list(features) or [name for name in table.columns if name != target]
    missing_columns = [name for name in (target, *predictor_names) if name not in table.columns]
    if missing_columns:
        raise ValueError(f"The table has no column {missing_columns[0]!r}: check 'target' and 'features'.")
    return table.select(predictor_names), table[target]


def site_from_table(context: Context) -> Site:
    """Make the `Site` from the table that the node's configuration names.

    The context's ``node_config`` has ``site``, ``table`` (a CSV or Parquet file) and ``target``, and may have
    ``features`` and ``candidates`` (separated by commas) and ``order`` (``auto`` or ``none``); its
    ``run_config`` may have ``candidates``, ``seed`` and ``classes``, the labels of a response that is a
    class, separated by commas.
    """
    node_config, run_config = context.node_config, context.run_config
    target = _setting(node_config, "target")
    X, y = _read_rows(_setting(node_config, "table"), target, _texts(node_config.get("features", "")))
    return make_site(
        X,
        y,
        site=_setting(node_config, "site"),
        target=target,
        candidates=_texts(node_config.get("candidates", run_config.get("candidates", "default"))),
        seed=int(run_config.get("seed", 0)),
        classes=_texts(run_config.get("classes", "")) or None,
        order=None if (order := str(node_config.get("order", "auto"))) == "none" else order,
    )


def save_conclusion(context: Context, conclusion: Conclusion, shares: Sequence[Share | Moments]) -> None:
    """Write conclusion, the site's page and the coterie's models to the node's ``output`` folder, if any.

    Of sites that sent moments, everybody's are written, for lines at every resolution follow from them.
    """
    folder, site = context.node_config.get("output"), str(context.node_config.get("site"))
    if not folder:
        return
    output_folder = Path(str(folder))
    output_folder.mkdir(parents=True, exist_ok=True)
    sites_to_keep = set(conclusion.mixtures[site].weights) if site in conclusion.mixtures else set()
    if conclusion.classes:
        # Its own share says how many rows it has.
        sites_to_keep.add(site)
    # Models of an earlier run are no part of this conclusion.
    for kind in ("share", "moments"):
        for old_file in output_folder.glob(f"{kind}-*.json"):
            old_file.unlink()
    write_bytes(output_folder / "conclusion.json", encode(conclusion))
    for peer in shares:
        if peer.site in sites_to_keep or isinstance(peer, Moments):
            # By checksum: a peer's name may be anything, also a path.
            write_bytes(output_folder / f"{kind_of(peer)}-{peer.sha[:16]}.json", encode(peer))
    # A site that was left out has the common page, which says why.
    write_page(conclusion, output_folder, site if site in conclusion.labels else None)


def _decoded(messages: Sequence[bytes], kind: type[Any]) -> list[Any]:
    """Return messages decoded; refuse them unless all are of one kind."""
    decoded = [decode(message) for message in messages]
    if not all(type(message) is kind for message in decoded):
        raise ProtocolError(f"What came is not a {kind.__name__.lower()}.")
    return decoded


def _state_of(context: Context) -> Any:
    """Return what the node keeps between rounds; both entries are empty at first.

    They are the checksum of its own share, and the encoded shares of all sites that it has scored.
    """
    return context.state.get(STATE, {OWN: "", SHARES: []})


class _SiteAnswers:
    """The four answers of a site, each from messages to messages."""

    def __init__(
        self,
        load_site: Callable[[Context], Site],
        on_conclusion: Callable[[Context, Conclusion, Sequence[Any]], None],
    ) -> None:
        """Remember how the site's rows are loaded, and what follows the conclusion."""
        self._load_site = load_site
        self._on_conclusion = on_conclusion

    def share(self, context: Context, messages: list[bytes]) -> list[bytes]:
        """Answer with the site's share, its model and what it says of its rows; or with its moments.

        The checksum of what is sent is kept: `score` looks for it in what comes back.
        """
        config = context.node_config
        if sends_moments(config):
            own_message = encode(moments_of_node(config, _read_rows, lambda: self._load_site(context)))
        else:
            own_message = encode(share(self._load_site(context)))
        context.state[STATE] = ConfigRecord({OWN: digest(own_message), SHARES: []})
        return [own_message]

    def score(self, context: Context, messages: list[bytes]) -> list[bytes]:
        """Answer with the losses of all shared models on the site's rows, and keep the shares for `answer`.

        A site that sends exact moments answers with those above knots. If its own share was changed on the
        way, the site refuses.
        """
        state = _state_of(context)
        if sends_exact(context.node_config):
            return [encode(bent_moments(self._load_site(context), _decoded(messages, Moments)))]
        refuse_more(context.node_config)
        # A model that was exchanged on the way would be scored as the site's own.
        if state[OWN] not in [digest(message) for message in messages]:
            raise ProtocolError("Its own share did not come back as it was sent, so it does not score.")
        shares = _decoded(messages, Share)
        own_scores = encode(score(self._load_site(context), shares))
        context.state[STATE] = ConfigRecord({OWN: state[OWN], SHARES: messages})
        return [own_scores]

    def _shares(self, context: Context) -> list[Share]:
        """Return the shares that the site has scored; refuse to go on where there are none."""
        if not (messages := _state_of(context)[SHARES]):
            raise ProtocolError("It has not scored, so there is nothing to answer from.")
        return _decoded(messages, Share)

    def answer(self, context: Context, messages: list[bytes]) -> list[bytes]:
        """Answer the questions of a round.

        A site that sends moments refuses, for answers would tell more of its rows than it promised.
        """
        refuse_more(context.node_config)
        shares = self._shares(context)
        site = self._load_site(context)
        return [encode(answer(site, shares, question)) for question in _decoded(messages, Question)]

    def conclude(self, context: Context, messages: list[bytes]) -> list[bytes]:
        """Hand the conclusion and everybody's shares or moments to the site's own function.

        Nothing is sent back.
        """
        if sends_moments(context.node_config):
            # The moments of all sites follow, from which each learns at home.
            (conclusion,), others = _decoded(messages[:1], Conclusion), _decoded(messages[1:], Moments)
            self._on_conclusion(context, conclusion, others)
            return []
        shares = self._shares(context)
        for conclusion in _decoded(messages, Conclusion):
            self._on_conclusion(context, conclusion, shares)
        return []


def _handler(act: Callable[[Context, list[bytes]], list[bytes]]) -> Callable[[Message, Context], Message]:
    """Return a Flower handler around one of a site's answers, from bytes to bytes.

    Errors become a refusal of one sentence, which says no more of the rows than coterie's own messages do. An
    exception's text stays in the node's own log.
    """

    def handle(message: Message, context: Context) -> Message:
        """Answer one Flower message."""
        try:
            content = loaded(act(context, unloaded(message.content)))
        except (ProtocolError, wire.WireError) as error:
            logger.warning("%s", error)
            content = refused(str(error))
        # An exception's text may quote rows; Flower would send it to the server.
        except Exception as error:
            logger.exception("The site could not do what the server requested.")
            content = refused(f"It failed with a {type(error).__name__}; its own log says more.")
        return Message(content, reply_to=message)

    return handle


def make_client_app(
    load_site: Callable[[Context], Site] = site_from_table,
    on_conclusion: Callable[[Context, Conclusion, Sequence[Any]], None] = save_conclusion,
) -> ClientApp:
    """Return a ClientApp, for ``flwr run``, that takes part with a site's rows.

    ``load_site`` makes the `Site` of the node's context. It is called in every round, in a fresh process on
    real nodes, so it must give the same site every time. ``on_conclusion`` is called in the end, with
    context, conclusion and everybody's shares, or moments where the node sends these.
    """
    app, site = ClientApp(), _SiteAnswers(load_site, on_conclusion)
    acts = {SHARE: site.share, SCORE: site.score, ANSWER: site.answer, CONCLUDE: site.conclude}
    for name, act in acts.items():
        app.query(name)(_handler(act))
    return app


app = make_client_app()
