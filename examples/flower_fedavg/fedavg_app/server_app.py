"""Coteries first; then, inside each of them, federated averaging of a network."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, Context, Message, RecordDict
from flwr.serverapp import Grid, ServerApp

from coterie.flower import FederatedRun, RunSettings, run_protocol

from .network import Weights, first_weights

logger = logging.getLogger(__name__)
app = ServerApp()


def averaged(replies: Iterable[Message]) -> tuple[Weights, float] | None:
    """Return the average of the weights that came, and of the losses; sites count by their rows."""
    good = [reply.content for reply in replies if not reply.has_error()]
    if not good:
        return None
    rows = np.array([content["numbers"]["n_rows"] for content in good], dtype=float)
    losses = [content["numbers"]["loss"] for content in good]
    parts = zip(*(content["weights"].to_numpy_ndarrays() for content in good), strict=True)
    weights = [np.average(np.stack(part), axis=0, weights=rows) for part in parts]
    return weights, float(np.average(losses, weights=rows))


def average_coterie(
    grid: Any, nodes: list[int], weights: Weights, rounds: int, seconds: float
) -> list[float]:
    """Run federated averaging on some nodes; return the loss before every round."""
    losses = []
    for _ in range(rounds):
        content = RecordDict({"weights": ArrayRecord(weights)})
        letters = [Message(content, node, "train") for node in nodes]
        found = averaged(grid.send_and_receive(letters, timeout=seconds))
        if found is None:
            break
        weights, loss = found
        losses.append(loss)
    return losses


def average_all(grid: Any, run: FederatedRun, config: dict[str, Any]) -> dict[int, list[float]]:
    """Run federated averaging in every coterie; return the losses by coterie."""
    n_features = len(run.shares[0].columns)
    labels, n_classes = run.conclusion.labels, len(run.conclusion.classes)
    found = {}
    for coterie in sorted(set(labels.values())):
        nodes = [run.nodes[site] for site, label in labels.items() if label == coterie]
        start = first_weights(n_features, int(config.get("seed", 0)), n_classes)
        rounds, seconds = int(config.get("averaging-rounds", 10)), float(config.get("round-seconds", 600))
        found[coterie] = average_coterie(grid, nodes, start, rounds, seconds)
        logger.info("coterie %d of %d sites: losses %s", coterie, len(nodes), found[coterie])
    return found


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Find the coteries, then average inside them."""
    run = run_protocol(grid, RunSettings.from_config(context.run_config))
    losses = average_all(grid, run, context.run_config)
    if output := context.run_config.get("output"):
        found = {"labels": run.conclusion.labels, "left_out": run.conclusion.left_out, "losses": losses}
        Path(str(output)).write_text(json.dumps(found, indent=2))
