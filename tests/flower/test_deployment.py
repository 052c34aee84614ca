"""A real SuperLink and real SuperNodes on this machine, with TLS and node keys.

One node is killed while it scores: the partition of the others comes out. A node whose key nobody registered
is refused. Nodes that were killed and come back take part in the next run, and so it is with a SuperLink.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("flwr", reason="Flower is not installed: install coterie's extra 'flower'")

from coterie.federated import decode

from .loopback import (
    CLIENT,
    PATIENCE,
    ROUND_SECONDS,
    TEMPLATE,
    Deployment,
    registered_nodes,
    site_tables,
    write_node_key,
)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    if os.name != "posix":
        pytest.skip("process groups are ended as POSIX systems do it")
    running = Deployment(tmp_path, n_nodes=6)
    try:
        yield running
    finally:
        running.close()


# In one process the same is tested in test_client.py, always.
@pytest.mark.slow
def test_three_nodes_agree_on_classes_and_conclude(deployment: Deployment) -> None:
    folder = deployment.folder
    deployment.start_link()
    names, configs = [f"node{k}" for k in range(3)], site_tables(folder, classes=True)
    registered_nodes(deployment, names)
    for name, port, config in zip(names, deployment.node_ports, configs, strict=False):
        deployment.start_node(name, port, config)
    output = folder / "conclusion.json"
    settings = f'min-nodes=3 round-seconds={ROUND_SECONDS} candidates="logistic" classes="no,yes" '
    deployment.flwr("run", str(TEMPLATE), "loop", "--run-config", f'{settings}output="{output}"')
    deployment.wait_until(lambda: output.exists() and output.stat().st_size > 0, "the conclusion is there")
    conclusion = decode(output.read_bytes(), "conclusion")
    assert conclusion.classes == ("no", "yes")
    assert set(conclusion.labels) == {f"learner {k:02d}" for k in range(3)}
    assert not conclusion.left_out
    assert all(mixture.parts for mixture in conclusion.mixtures.values())


def test_five_nodes_one_killed_while_it_scores_and_a_stranger_refused(deployment: Deployment) -> None:
    folder = deployment.folder
    app = folder / "app"
    shutil.copytree(TEMPLATE, app)
    (app / "coterie_app" / "client_app.py").write_text(CLIENT)
    deployment.start_link()
    configs = site_tables(folder)
    stalled = folder / "stalled"
    configs[4]["stall"] = stalled
    names = [f"node{k}" for k in range(5)]
    write_node_key(folder / "stranger")
    registered_nodes(deployment, names)
    for name, port, config in zip(names, deployment.node_ports, configs, strict=False):
        deployment.start_node(name, port, config)
    stranger = deployment.start_node("stranger", deployment.node_ports[5], configs[0])

    output = folder / "conclusion.json"
    settings = f'min-nodes=5 round-seconds={ROUND_SECONDS} n-clusters=2 candidates="ridge" output="{output}"'
    deployment.flwr("run", str(app), "loop", "--run-config", settings)
    deployment.wait_until(stalled.exists, "the fifth node scores")
    deployment.kill("node4")
    deployment.wait_until(output.exists, "the conclusion is there")
    deployment.wait_until(lambda: output.stat().st_size > 0, "the conclusion is written")

    conclusion = decode(output.read_bytes(), "conclusion")
    labels = conclusion.labels
    assert set(labels) == {f"learner {k:02d}" for k in range(4)}
    assert labels["learner 00"] == labels["learner 02"] != labels["learner 01"] == labels["learner 03"]
    assert set(conclusion.left_out) == {"learner 04"}
    assert conclusion.left_out["learner 04"].startswith("When asked to score: It failed: ")
    assert stranger.wait(timeout=PATIENCE) != 0
    assert "Failed to activate SuperNode" in (folder / "stranger.log").read_text()
    runs = json.loads(deployment.flwr("list", "loop", "--format", "json"))["runs"]
    assert len(runs) == 1


class Runs:
    """Three nodes, the last of which stalls when it scores for the first time, and runs one after another."""

    def __init__(self, deployment: Deployment) -> None:
        self.deployment, self.count = deployment, 0
        folder = deployment.folder
        self.stalled, self.app = folder / "stalled", folder / "app"
        shutil.copytree(TEMPLATE, self.app)
        (self.app / "coterie_app" / "client_app.py").write_text(CLIENT)
        self.configs = site_tables(folder)[:3]
        self.configs[2]["stall"] = self.stalled
        for k in range(3):
            write_node_key(folder / f"node{k}")

    def start_link(self) -> None:
        self.deployment.start_link()
        for k in range(3):
            self.deployment.flwr(
                "supernode", "register", str(self.deployment.folder / f"node{k}.pub"), "loop"
            )

    def start_node(self, k: int) -> None:
        self.deployment.start_node(f"node{k}", self.deployment.node_ports[k], self.configs[k])

    def is_let_in(self, k: int) -> bool:
        """Start a node again if it has ended; tell whether the SuperLink has let it in."""
        if self.deployment.processes[f"node{k}"].poll() is not None:
            self.start_node(k)
        return "SuperNode ID" in (self.deployment.folder / f"node{k}.log").read_text()

    def start(self, seconds: float) -> Path:
        """Start a run; return where its conclusion will be."""
        self.count += 1
        output = self.deployment.folder / f"conclusion{self.count}.json"
        settings = f'min-nodes=3 min-sites=2 round-seconds={seconds:.0f} rounds=false output="{output}"'
        self.deployment.flwr("run", str(self.app), "loop", "--run-config", f'{settings} candidates="ridge"')
        return output

    def end(self, output: Path) -> Any:
        self.deployment.wait_until(lambda: output.exists() and output.stat().st_size > 0, "it concluded")
        return decode(output.read_bytes(), "conclusion")


@pytest.fixture
def runs(deployment: Deployment) -> Runs:
    found = Runs(deployment)
    found.start_link()
    for k in range(3):
        found.start_node(k)
    return found


@pytest.mark.slow
def test_a_node_that_is_killed_while_it_scores_is_back_in_the_next_run(
    runs: Runs, deployment: Deployment
) -> None:
    output = runs.start(90)
    deployment.wait_until(runs.stalled.exists, "the third node scores")
    deployment.kill("node2")
    # At once: the SuperLink takes it for connected until it has not heard of it for a minute.
    runs.start_node(2)
    assert deployment.processes["node2"].wait(timeout=PATIENCE) != 0
    assert "Failed to activate SuperNode" in (deployment.folder / "node2.log").read_text()
    conclusion = runs.end(output)
    assert set(conclusion.labels) == {"learner 00", "learner 01"}
    assert set(conclusion.left_out) == {"learner 02"}
    # Later: as whatever restarts services would, until it is let in.
    deployment.wait_until(lambda: runs.is_let_in(2), "the third node is let in again")
    conclusion = runs.end(runs.start(PATIENCE))
    assert (len(conclusion.labels), conclusion.left_out) == (3, {})


@pytest.mark.slow
def test_a_superlink_that_is_killed_forgets_keys_nodes_and_runs(runs: Runs, deployment: Deployment) -> None:
    output = runs.start(90)
    deployment.wait_until(runs.stalled.exists, "the third node scores")
    deployment.kill("superlink")
    runs.start_link()
    # Nodes that it does not know any more end, and have to be started again.
    for k in range(3):
        deployment.processes[f"node{k}"].wait(timeout=PATIENCE)
    assert json.loads(deployment.flwr("list", "loop", "--format", "json"))["runs"] == []
    assert not output.exists()
    for k in range(3):
        runs.start_node(k)
    conclusion = runs.end(runs.start(PATIENCE))
    assert (len(conclusion.labels), conclusion.left_out) == (3, {})
