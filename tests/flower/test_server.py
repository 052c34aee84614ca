"""The coordinator with nodes that work, fail, lie, come late and bear one name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: install coterie's extra 'flower'")
from flwr.app import Context, Error, Message, RecordDict

from coterie import CoterieRegressor, Report
from coterie.federated import ProtocolError, Settings, Share, Site, decode, encode
from coterie.flower import (
    InProcessGrid,
    RunSettings,
    make_client_app,
    make_server_app,
    run_protocol,
)
from coterie.flower.carrying import loaded, unloaded

Load = Callable[[Any], Site]
# The number of coteries given: fewer rounds.
QUICK = RunSettings(method=Settings(n_clusters=2))


def labels_of(labels: dict[str, int]) -> list[set[str]]:
    """A partition as sets, whatever its clusters are called."""
    sets: dict[int, set[str]] = {}
    for site, label in labels.items():
        sets.setdefault(label, set()).add(site)
    return sorted(sets.values(), key=min)


class Interfering(InProcessGrid):
    """A grid on which something happens to the replies of some nodes."""

    def __init__(self, *args: Any, happens: Callable[[str, int, Any], Any], **more: Any) -> None:
        super().__init__(*args, **more)
        self._happens = happens
        self.calls: list[tuple[str, int]] = []

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
        listed = list(messages)
        kind = listed[0].metadata.message_type.removeprefix("query.")
        self.calls.append((kind, len(listed)))
        replies = []
        for message in listed:
            node = message.metadata.dst_node_id
            (reply,) = super().send_and_receive([message])
            found = self._happens(kind, node, reply)
            replies.extend(found if isinstance(found, list) else [found])
        return [reply for reply in replies if reply is not None]


def test_the_partition_is_that_of_a_local_fit(load_site: Load, configs: Any, data: Any) -> None:
    run = run_protocol(InProcessGrid(make_client_app(load_site), configs), RunSettings(min_nodes=6))
    local = CoterieRegressor(candidates=["ridge"], refine="average")
    local.fit(data.X, data.y, groups=data.groups)
    ours = dict(zip(local.learner_ids_.tolist(), np.asarray(local.learner_labels_).tolist(), strict=True))
    assert labels_of(run.conclusion.labels) == labels_of(ours)
    assert not run.conclusion.left_out
    assert [r.name for r in run.rounds[:2]] == ["share", "score"]
    assert run.rounds[-1].name == "conclude"


def test_a_site_is_asked_six_times_at_most(load_site: Load, configs: Any) -> None:
    run = run_protocol(InProcessGrid(make_client_app(load_site), configs), RunSettings(min_nodes=6))
    names = [r.name for r in run.rounds]
    assert names[:2] == ["share", "score"]
    assert names[-1] == "conclude"
    assert 2 <= len(names) - 1 <= 6


def test_a_node_that_was_restarted_between_rounds_has_forgotten_what_it_scored(
    load_site: Load, configs: Any
) -> None:
    app = make_client_app(load_site)

    def restarted(message: Any, context: Context) -> Any:
        if message.metadata.message_type == "query.answer" and context.node_id == 6:
            context = Context(1, 6, context.node_config, RecordDict(), context.run_config)
        return app(message, context)

    run = run_protocol(InProcessGrid(restarted, configs), QUICK)
    assert set(run.conclusion.left_out) == {configs[5]["site"]}
    assert "has not scored" in run.conclusion.left_out[configs[5]["site"]]
    assert len(run.conclusion.labels) == 5


@pytest.mark.parametrize("kind", ["share", "score", "answer"])
def test_a_node_that_vanishes_is_left_out_and_the_others_go_on(
    kind: str, load_site: Load, configs: Any
) -> None:
    def happens(what: str, node: int, reply: Any) -> Any:
        return None if what == kind and node == 3 else reply

    grid = Interfering(make_client_app(load_site), configs, happens=happens)
    run = run_protocol(grid, replace(QUICK, min_nodes=6, round_seconds=7))
    name = "node 3" if kind == "share" else "learner 02"
    assert run.conclusion.left_out == {name: f"It did not reply within 7 seconds when asked to {kind}."}
    assert labels_of(run.conclusion.labels) == [
        {"learner 00", "learner 04"},
        {"learner 01", "learner 03", "learner 05"},
    ]
    assert grid.calls[-1] == ("conclude", 5)


def test_a_node_whose_app_raises_is_left_out_and_its_words_stay_at_home(
    load_site: Load, configs: Any
) -> None:
    def failing(context: Context) -> Site:
        if context.node_config["site"] == "learner 05":
            raise ValueError("row 7 has the secret value 42")
        return load_site(context)

    run = run_protocol(InProcessGrid(make_client_app(failing), configs), QUICK)
    assert set(run.conclusion.left_out) == {"node 6"}
    assert "ValueError" in run.conclusion.left_out["node 6"]
    assert "42" not in str(run.conclusion.left_out)


def test_an_error_of_flower_is_a_sentence(load_site: Load, configs: Any) -> None:
    class Raising:
        def __init__(self, app: Any) -> None:
            self.app = app

        def __call__(self, message: Message, context: Context) -> Message:
            if context.node_id == 1:
                raise RuntimeError("line one\nline two")
            return self.app(message, context)

    run = run_protocol(InProcessGrid(Raising(make_client_app(load_site)), configs), QUICK)
    assert run.conclusion.left_out == {
        "node 1": "When asked to share: It failed: RuntimeError('line one\\nline two')."
    }


def test_the_superlink_speaks_for_a_node_that_is_gone(load_site: Load, configs: Any) -> None:
    def happens(what: str, node: int, reply: Any) -> Any:
        if what == "score" and node == 6:
            calls = reply.metadata.reply_to_message_id
            reply = Message(Error(5, "Node Unavailable"), reply_to=reply)
            reply.metadata.__dict__["_reply_to_message_id"] = calls
            reply.metadata.__dict__["_src_node_id"] = 1
        return reply

    run = run_protocol(Interfering(make_client_app(load_site), configs, happens=happens), QUICK)
    assert run.conclusion.left_out == {"learner 05": "When asked to score: It failed: Node Unavailable."}
    assert run.nodes == {f"learner {k:02d}": k + 1 for k in range(5)}


def test_two_nodes_of_one_name_are_both_left_out(load_site: Load, configs: Any) -> None:
    twins = [*configs, {"site": "learner 00"}]
    run = run_protocol(InProcessGrid(make_client_app(load_site), twins), QUICK)
    assert "2 nodes bear its name" in run.conclusion.left_out["learner 00"]
    assert "learner 00" not in run.conclusion.labels
    assert len(run.conclusion.labels) == 5


def test_a_node_that_answers_for_another_is_left_out(load_site: Load, configs: Any) -> None:
    def happens(what: str, node: int, reply: Any) -> Any:
        if what == "score" and node == 2:
            (message,) = [decode(part) for part in unloaded(reply.content)]
            own = message.losses["learner 01"]
            lie = replace(
                message, site="learner 00", sha=own.sha, losses={**message.losses, "learner 00": own}
            )
            reply.content = loaded([encode(lie)])
        return reply

    grid = Interfering(make_client_app(load_site), configs, happens=happens)
    run = run_protocol(grid, QUICK)
    assert run.conclusion.left_out == {"learner 01": "Its node answered for 'learner 00'."}
    assert "learner 00" in run.conclusion.labels


@pytest.mark.parametrize(
    "content",
    [
        RecordDict(),
        loaded([]),
        loaded([b"nonsense"]),
        loaded([b"{}", b"{}"]),
        loaded([b"\x80\x04pickle"]),
    ],
)
def test_nonsense_is_left_out(content: RecordDict, load_site: Load, configs: Any) -> None:
    def happens(what: str, node: int, reply: Any) -> Any:
        if what == "answer" and node == 4:
            reply.content = content
        return reply

    run = run_protocol(Interfering(make_client_app(load_site), configs, happens=happens), QUICK)
    assert set(run.conclusion.left_out) == {"learner 03"}
    assert run.conclusion.left_out["learner 03"].startswith("When asked to answer: ")


def test_too_few_nodes_or_sites_end_the_run_with_a_sentence(load_site: Load, configs: Any) -> None:
    grid = InProcessGrid(make_client_app(load_site), configs[:2])
    with pytest.raises(ProtocolError, match=r"Only 2 of at least 3 nodes were there after 0\.1 seconds"):
        run_protocol(grid, RunSettings(min_nodes=3, wait_seconds=0.1))

    def happens(what: str, node: int, reply: Any) -> Any:
        return None if what == "score" and node > 1 else reply

    with pytest.raises(ProtocolError, match=r"1 sites are left, and 'min-sites' asks for 2\. learner 01"):
        run_protocol(Interfering(make_client_app(load_site), configs, happens=happens), QUICK)


def test_other_columns_are_left_out(load_site: Load, configs: Any) -> None:
    def happens(what: str, node: int, reply: Any) -> Any:
        if what == "share" and node == 1:
            (share,) = [decode(part) for part in unloaded(reply.content)]
            assert isinstance(share, Share)
            reply.content = loaded([encode(replace(share, columns=("x1", "x0", "x2")))])
        return reply

    run = run_protocol(Interfering(make_client_app(load_site), configs, happens=happens), QUICK)
    # Its own share does not come back as it was, and its columns are in another order.
    assert set(run.conclusion.left_out) == {"learner 00"}
    assert len(run.conclusion.labels) == 5


def test_the_run_configuration_becomes_settings() -> None:
    config = {
        "min-nodes": 5,
        "round-seconds": 30,
        "n-clusters": 2,
        "max-clusters": 4,
        "scale": "median",
        "seed": 3,
    }
    found = RunSettings.from_config(config)
    assert (found.min_nodes, found.min_sites, found.round_seconds) == (5, 2, 30.0)
    assert found.method == Settings(n_clusters=2, max_clusters=4, scale="median", seed=3)
    assert RunSettings.from_config({}) == RunSettings()


def test_the_server_app_writes_the_conclusion(load_site: Load, configs: Any, tmp_path: Any) -> None:
    path = tmp_path / "folder" / "conclusion.json"
    context = Context(1, 0, {}, RecordDict(), {"min-nodes": 6, "n-clusters": 2, "output": str(path)})
    make_server_app()(InProcessGrid(make_client_app(load_site), configs), context)
    written = decode(path.read_bytes(), "conclusion")
    assert len(written.labels) == 6
    page = (tmp_path / "folder" / "report.html").read_text()
    assert page == Report(written).html()


def test_without_the_extra_the_conclusion_stands_alone(
    load_site: Load, configs: Any, tmp_path: Any, monkeypatch: Any, caplog: Any
) -> None:
    def lacking(self: Any) -> str:
        raise ImportError("A report page needs jinja2.")

    monkeypatch.setattr(Report, "html", lacking)
    (tmp_path / "report.html").write_text("of an earlier run")
    path = tmp_path / "conclusion.json"
    context = Context(1, 0, {}, RecordDict(), {"min-nodes": 6, "n-clusters": 2, "output": str(path)})
    make_server_app()(InProcessGrid(make_client_app(load_site), configs), context)
    assert [each.name for each in tmp_path.iterdir()] == ["conclusion.json"]
    assert "There is no report page. A report page needs jinja2." in caplog.text
