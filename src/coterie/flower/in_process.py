"""Flower's Grid in one process: the apps meet without a SuperLink, for trials, tests and benchmarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity

RUN = 1
# As Flower's own code for an app that raised.
APP_RAISED = 1


class InProcessGrid:
    """Calls a ClientApp, which all nodes run, for every node, one after the other.

    ``node_configs`` has a configuration per node, as ``--node-config`` would give it; ``run_config`` is as
    ``flwr run --run-config`` would give it.
    """

    def __init__(
        self,
        client_app: Any,
        node_configs: Iterable[Mapping[str, Any]],
        run_config: Mapping[str, Any] | None = None,
    ) -> None:
        self._app = client_app
        self._contexts = {
            index + 1: Context(RUN, index + 1, dict(node_config), RecordDict(), dict(run_config or {}))
            for index, node_config in enumerate(node_configs)
        }
        self._n_sent = 0
        # Flower stamps messages with the identity of the process that makes them.
        TaskIdentity.task_id = TaskIdentity.run_id = RUN
        TaskIdentity.node_id = 0

    def get_node_ids(self) -> list[int]:
        """Return the ids of the nodes, from 1."""
        return list(self._contexts)

    def send_and_receive(self, messages: Iterable[Any], *, timeout: float | None = None) -> list[Any]:
        """Hand messages to their nodes and return the replies: an error where the app raised.

        Nodes answer at once, so the timeout is not looked at.
        """
        replies = []
        for message in messages:
            self._n_sent += 1
            # On a real grid the SuperLink numbers messages when they are pushed.
            message.metadata.__dict__["_message_id"] = str(self._n_sent)
            try:
                replies.append(self._app(message, self._contexts[message.metadata.dst_node_id]))
            # What an app raises is an error message to the server, as on a real node.
            except Exception as error:
                replies.append(Message(Error(APP_RAISED, repr(error)), reply_to=message))
        return replies
