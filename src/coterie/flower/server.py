"""The coordinator on Flower: share, score, questions, conclude, with whoever is left.

``app`` is ready for ``flwr run``; `run_protocol` is the same without Flower's app around it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from flwr.app import Context
from flwr.serverapp import ServerApp

from coterie._files import write_bytes
from coterie.federated.conclusions import Conclusion
from coterie.federated.messages import Answer, ProtocolError, Score, Share, encode
from coterie.federated.moments import conclude_moments
from coterie.federated.protocol import Settings, coordinate
from coterie.federated.tables import Moments
from coterie.flower.carrying import ANSWER, CONCLUDE, SCORE, SHARE, Carrier, Kind, Round, ask, wait_for_nodes
from coterie.flower.pages import write_page

logger = logging.getLogger(__name__)

NOT_MOMENTS = "It shared a model, and most sites sent moments."
NOT_A_MODEL = "It sent moments, and most sites shared a model."


@dataclass(frozen=True)
class RunSettings:
    """How long to wait, for how many, and how to conclude.

    ``min_nodes`` must be there within ``wait_seconds`` before anything is asked. Every round waits
    ``round_seconds`` for replies. ``min_sites`` must be left when somebody has failed.
    """

    min_nodes: int = 2
    min_sites: int = 2
    wait_seconds: float = 120.0
    round_seconds: float = 600.0
    method: Settings = field(default_factory=Settings)

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> RunSettings:
        """Read the settings from Flower's run configuration.

        It may have ``min-nodes``, ``min-sites``, ``wait-seconds``, ``round-seconds``, ``n-clusters``,
        ``max-clusters`` (0: as many as make sense), ``scale``, ``min-rows`` (0: by the number of predictors),
        ``refine-rounds``, ``seed`` and ``rounds`` (False: by losses alone, without questions). What is
        missing keeps its usual value.
        """
        usual = cls()
        method = Settings(
            n_clusters=config.get("n-clusters", usual.method.n_clusters),
            max_clusters=int(config.get("max-clusters", 0)) or None,
            scale=config.get("scale", usual.method.scale),
            min_rows=int(config.get("min-rows", 0)) or None,
            refine_rounds=int(config.get("refine-rounds", usual.method.refine_rounds)),
            seed=int(config.get("seed", usual.method.seed)),
            rounds=bool(config.get("rounds", usual.method.rounds)),
        )
        return cls(
            min_nodes=int(config.get("min-nodes", usual.min_nodes)),
            min_sites=int(config.get("min-sites", usual.min_sites)),
            wait_seconds=float(config.get("wait-seconds", usual.wait_seconds)),
            round_seconds=float(config.get("round-seconds", usual.round_seconds)),
            method=method,
        )


@dataclass(frozen=True)
class FederatedRun:
    """What came out of a run on Flower.

    The conclusion's ``left_out`` names every site that is not part of it, and nodes that failed before they
    had said their name. ``shares`` are from all sites that shared, ``rounds`` what was asked, with times and
    bytes, and ``nodes`` the node of every site that is part of the conclusion, for what comes next. Where
    sites sent ``moments``, there are no shares.
    """

    conclusion: Conclusion
    shares: tuple[Share, ...]
    rounds: tuple[Round, ...]
    nodes: Mapping[str, int]
    moments: tuple[Moments, ...] = ()


class _SiteRegister:
    """Which node speaks for which site, and which sites are out and why.

    A node is bound to the first site that it answers for. A site is out for good once it fails, or once two
    nodes answer in its name.
    """

    def __init__(self, grid: Carrier, settings: RunSettings) -> None:
        """Start without nodes: their sites, who is gone and why, and the rounds are filled in by `ask`."""
        self._grid, self._settings = grid, settings
        self.sites: dict[int, str] = {}
        self.gone: dict[str, str] = {}
        self.rounds: list[Round] = []

    def _names(self, node: int) -> str:
        """Return a node's site, or a name for the node that has not said its site yet."""
        return self.sites.get(node, f"node {node}")

    def ask(self, nodes: list[int], name: str, messages: list[bytes], kind: Kind) -> list[Any]:
        """Ask nodes; return the messages of those who answered for their own site and are not out.

        The others are noted in ``gone`` with the reason. A ProtocolError ends the run when fewer than
        ``min_sites`` are left, except in the last round, which has no answers.
        """
        round_ = ask(self._grid, nodes, name, messages, kind, self._settings.round_seconds)
        self.rounds.append(round_)
        for node, reason in round_.failures.items():
            self.gone.setdefault(self._names(node), reason)
            logger.warning("%s is left out: %s", self._names(node), reason)
        accepted = []
        for node, replies in sorted(round_.replies.items()):
            for message in replies:
                # The first name that a node answers with binds it: later it cannot speak for another site.
                if self.sites.setdefault(node, message.site) == message.site:
                    accepted.append(message)
                else:
                    self.gone.setdefault(self.sites[node], f"Its node answered for {message.site!r}.")
        for site, n_nodes in Counter(self.sites.values()).items():
            # Nobody could tell them apart.
            if n_nodes > 1:
                self.gone[site] = f"{n_nodes} nodes bear its name: give each site a name of its own."
        remaining = [message for message in accepted if message.site not in self.gone]
        if kind is not None and len(remaining) < (fewest := self._settings.min_sites):
            first_reason = next((f" {who}: {reason}" for who, reason in self.gone.items()), "")
            raise ProtocolError(
                f"{len(remaining)} sites are left, and 'min-sites' asks for {fewest}.{first_reason}"
            )
        return remaining

    def nodes_of(self, sites: set[str]) -> list[int]:
        """Return the nodes of those of the sites that are still there."""
        return sorted(node for node, site in self.sites.items() if site in sites and site not in self.gone)


def _by_moments(
    register: _SiteRegister, moments: list[Moments], shares: list[Share], settings: RunSettings
) -> FederatedRun:
    """Conclude from the sites' moments, and send each site the conclusion with everybody's moments.

    From these it learns at home. Where most moments are exact, all nodes are first asked for them once more,
    above knots. Who shared a model is out.
    """
    register.gone |= {share.site: NOT_MOMENTS for share in shares}
    # Exact moments have no schema; knots, where lines bend, follow from the first messages of all sites.
    if sum(not message.schema for message in moments) * 2 > len(moments):
        senders = register.nodes_of({message.site for message in moments})
        moments = register.ask(senders, SCORE, [encode(message) for message in moments], Moments)
    conclusion = conclude_moments(moments, settings=settings.method).conclusion
    conclusion = replace(conclusion, left_out={**conclusion.left_out, **register.gone})
    # The conclusion first, as the nodes expect.
    messages_to_sites = [encode(conclusion), *map(encode, moments)]
    register.ask(register.nodes_of({message.site for message in moments}), CONCLUDE, messages_to_sites, None)
    nodes = {site: node for node, site in register.sites.items() if site in conclusion.labels}
    return FederatedRun(conclusion, (), tuple(register.rounds), nodes, tuple(moments))


def run_protocol(grid: Carrier, settings: RunSettings | None = None) -> FederatedRun:
    """Run the protocol on Flower's grid, or on an `InProcessGrid`, to its end.

    A ProtocolError says that too few nodes are there, or that too few sites are left. Its rounds are share,
    score, a few questions and conclude; whoever fails is left out, and the others go on.
    """
    settings = settings or RunSettings()
    nodes = wait_for_nodes(grid, settings.min_nodes, settings.wait_seconds)
    register = _SiteRegister(grid, settings)
    replies = register.ask(nodes, SHARE, [], (Share, Moments))
    moments = [reply for reply in replies if isinstance(reply, Moments)]
    shares = [reply for reply in replies if isinstance(reply, Share)]
    if len(moments) > len(shares):
        return _by_moments(register, moments, shares, settings)
    register.gone |= {message.site: NOT_A_MODEL for message in moments}
    sharing_sites = {share.site for share in shares}
    scores = register.ask(register.nodes_of(sharing_sites), SCORE, [encode(share) for share in shares], Score)
    coordination = coordinate(shares, scores, settings=settings.method)
    try:
        # `coordinate` is a generator: it yields questions, takes answers, and returns the conclusion at its
        # end.
        question = next(coordination)
        while True:
            sites_to_ask = {member.site for member in question.members}
            question = coordination.send(
                register.ask(register.nodes_of(sites_to_ask), ANSWER, [encode(question)], Answer)
            )
    except StopIteration as end:
        conclusion: Conclusion = end.value
    # What happened on the way says more than that a message was missing in the end.
    conclusion = replace(conclusion, left_out={**conclusion.left_out, **register.gone})
    register.ask(register.nodes_of(sharing_sites), CONCLUDE, [encode(conclusion)], None)
    nodes_by_site = {site: node for node, site in register.sites.items() if site in conclusion.labels}
    return FederatedRun(conclusion, tuple(shares), tuple(register.rounds), nodes_by_site)


def log_run(context: Context, run: FederatedRun) -> None:
    """Log who learns with whom; write the conclusion where the run's ``output`` says, and its page beside."""
    for site, coterie in run.conclusion.labels.items():
        logger.info("%s: coterie %d", site, coterie)
    for site, reason in run.conclusion.left_out.items():
        logger.warning("%s was left out: %s", site, reason)
    output = context.run_config.get("output")
    if output:
        path = Path(str(output))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(path, encode(run.conclusion))
        write_page(run.conclusion, path.parent)


def make_server_app(on_end: Callable[[Context, FederatedRun], None] = log_run) -> ServerApp:
    """Return a ServerApp, for ``flwr run``, that coordinates the sites.

    ``on_end`` is called in the end, with context and `FederatedRun`.
    """
    app = ServerApp()

    def main(grid: Any, context: Context) -> None:
        on_end(context, run_protocol(grid, RunSettings.from_config(context.run_config)))

    app.main()(main)
    return app


app = make_server_app()
