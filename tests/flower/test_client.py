"""A site on Flower: what it reads, what it keeps, and what it refuses to do."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: install coterie's extra 'flower'")
from flwr.app import Context, Message, RecordDict

from coterie.federated import ProtocolError, Settings, Site, decode, encode, predict
from coterie.flower import (
    InProcessGrid,
    RunSettings,
    make_client_app,
    run_protocol,
    site_from_table,
)
from coterie.flower.carrying import loaded, one_line, refused, unloaded

Load = Callable[[Any], Site]
QUICK = RunSettings(method=Settings(n_clusters=2))


@pytest.fixture
def tables(data: Any, tmp_path: Path) -> list[dict[str, Any]]:
    """A CSV or Parquet file for every site, and the node configuration that names it."""
    configs = []
    for k, site in enumerate(dict.fromkeys(data.groups.tolist())):
        mine = data.groups == site
        columns = {f"x{j}": data.X[mine, j] for j in range(3)} | {"y": data.y[mine]}
        path = tmp_path / f"{k}.{'csv' if k % 2 else 'parquet'}"
        (pl.DataFrame(columns).write_csv if k % 2 else pl.DataFrame(columns).write_parquet)(path)
        configs.append({"site": site, "table": str(path), "target": "y", "output": str(tmp_path / f"out{k}")})
    return configs


def requested(app: Any, kind: str, messages: list[bytes], context: Context) -> Any:
    InProcessGrid(app, [])  # gives this process an identity
    message = Message(loaded(messages), context.node_id, f"query.{kind}")
    return app(message, context).content


def context_of(config: dict[str, Any], run: dict[str, Any] | None = None) -> Context:
    return Context(1, 1, config, RecordDict(), run or {})


def test_sites_with_tables_conclude_and_predict_with_their_coterie(
    tables: list[dict[str, Any]], data: Any
) -> None:
    run = run_protocol(InProcessGrid(make_client_app(), tables, {"candidates": "ridge"}), QUICK)
    assert not run.conclusion.left_out
    site, output = tables[0]["site"], Path(tables[0]["output"])
    conclusion = decode((output / "conclusion.json").read_bytes(), "conclusion")
    shares = [decode(path.read_bytes(), "share") for path in output.glob("share-*.json")]
    assert {share.site for share in shares} == set(conclusion.mixtures[site].weights)
    mine = data.groups == site
    row = next(row for row in conclusion.gains if row.learner == site)
    page = (output / "report.html").read_text()
    assert f"{site}: {row.verdict}. {row.reason}" in page
    # Nobody else's numbers are on it.
    cards = json.loads(page.partition('id="store">')[2].partition("</script>")[0]).get("cards", {"rows": []})
    assert {card[0] for card in cards["rows"]} <= {site}
    error = np.mean((predict(data.X[mine], site, shares, conclusion) - data.y[mine]) ** 2)
    assert error < np.var(data.y[mine])


def test_classes_of_the_run_are_those_of_every_node(data: Any, tmp_path: Path) -> None:
    configs = []
    for k, site in enumerate(dict.fromkeys(data.groups.tolist())):
        mine = data.groups == site
        # The first site has seen one class only.
        y = np.where((data.y[mine] > 0) & (k > 0), "yes", "no")
        pl.DataFrame({f"x{j}": data.X[mine, j] for j in range(3)} | {"y": y}).write_csv(tmp_path / f"{k}.csv")
        configs.append({"site": site, "table": str(tmp_path / f"{k}.csv"), "target": "y"})
        configs[-1]["output"] = str(tmp_path / f"out{k}")
    run_config = {"candidates": "logistic", "classes": "no,yes"}
    run = run_protocol(InProcessGrid(make_client_app(), configs, run_config), QUICK)
    assert not run.conclusion.left_out
    assert run.conclusion.classes == ("no", "yes")
    for k, site in ((0, "learner 00"), (3, "learner 03")):
        output = tmp_path / f"out{k}"
        conclusion = decode((output / "conclusion.json").read_bytes(), "conclusion")
        shares = [decode(path.read_bytes(), "share") for path in output.glob("share-*.json")]
        chances = predict(data.X[:5], site, shares, conclusion)
        np.testing.assert_allclose(chances.sum(axis=1), 1)
        assert "Brier score" in (output / "report.html").read_text()


def test_the_node_has_the_last_word_on_candidates(tables: list[dict[str, Any]]) -> None:
    run = {"candidates": "lasso", "seed": 5}
    assert site_from_table(context_of(tables[0], run)).candidates == ("lasso",)
    own = site_from_table(context_of({**tables[0], "candidates": "ridge, lr"}, run))
    assert own.candidates == ("ridge", "lr")
    assert own.seed == 5
    assert site_from_table(context_of({**tables[0], "features": "x2,x0"}, run)).columns == ("x2", "x0")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"table": "/nowhere/table.csv"}, "There is no table"),
        ({"table": "/nowhere/table.xlsx"}, "must be a .csv or .parquet file"),
        ({"target": "z"}, "no column 'z'"),
        ({"features": "x0,x9"}, "no column 'x9'"),
        ({"site": None}, "lacks 'site'"),
    ],
)
def test_bad_node_configurations_are_named(
    changes: dict[str, Any], sentence: str, tables: list[dict[str, Any]]
) -> None:
    config = {name: value for name, value in {**tables[0], **changes}.items() if value is not None}
    with pytest.raises(ValueError, match=sentence):
        site_from_table(context_of(config))


def test_a_site_does_not_score_unless_its_own_share_comes_back(load_site: Load, configs: Any) -> None:
    app, context = make_client_app(load_site), context_of(configs[0])
    with pytest.raises(ProtocolError, match="own share did not come back"):
        unloaded(requested(app, "score", [], context))
    (share,) = unloaded(requested(app, "share", [], context))
    with pytest.raises(ProtocolError, match="own share did not come back"):
        unloaded(requested(app, "score", [share.replace(b"ridge", b"lasso")], context))
    assert unloaded(requested(app, "score", [share], context))


def test_a_site_that_has_not_scored_answers_nothing(load_site: Load, configs: Any) -> None:
    with pytest.raises(ProtocolError, match="has not scored"):
        unloaded(requested(make_client_app(load_site), "answer", [b"x"], context_of(configs[0])))


@pytest.fixture
def private(tables: list[dict[str, Any]], tmp_path: Path, monkeypatch: Any) -> list[dict[str, Any]]:
    """Configurations of nodes that send private moments."""
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    columns = [{"name": f"x{k}", "low": -2, "high": 2} for k in range(3)]
    schema = tmp_path / "schema.json"
    schema.write_text(json.dumps({"target": {"name": "y", "low": -4, "high": 4}, "columns": columns}))
    return [{**config, "epsilon": 500.0, "schema": str(schema)} for config in tables]


def test_nodes_send_private_moments_and_nothing_else(private: list[dict[str, Any]], data: Any) -> None:
    run = run_protocol(InProcessGrid(make_client_app(), private), QUICK)
    assert [r.name for r in run.rounds] == ["share", "conclude"]
    assert not run.rounds[-1].failures
    assert list(run.conclusion.labels.values()) == [k % 2 for k in range(6)]
    assert len(run.moments) == 6
    assert not run.shares
    output = Path(private[0]["output"])
    assert decode((output / "conclusion.json").read_bytes()) == run.conclusion
    assert len(list(output.glob("moments-*.json"))) == 6
    assert "the site learns at home" in (output / "report.html").read_text()
    app, context = make_client_app(), context_of(private[0])
    (first,) = unloaded(requested(app, "share", [], context))
    # In another run the same message is sent again, noise and all.
    assert decode(first) == next(each for each in run.moments if each.site == private[0]["site"])
    for kind in ("score", "answer"):
        with pytest.raises(ProtocolError, match="moments of its rows and nothing else"):
            unloaded(requested(app, kind, [first], context))


def test_nodes_send_exact_moments_twice(load_site: Load, configs: Any) -> None:
    exact = [{**config, "moments": "true"} for config in configs]
    app = make_client_app(load_site)
    run = run_protocol(InProcessGrid(app, exact), QUICK)
    assert [r.name for r in run.rounds] == ["share", "score", "conclude"]
    assert not any(r.failures for r in run.rounds)
    (knots,) = {message.knots for message in run.moments}
    assert sum(map(len, knots)) == 12
    assert run.conclusion.models == {message.site: message.sha for message in run.moments}
    with pytest.raises(ProtocolError, match="moments of its rows and nothing else"):
        unloaded(requested(app, "answer", [b"x"], context_of(exact[0])))


def test_a_private_node_needs_a_schema_and_never_falls_back_to_a_model(
    private: list[dict[str, Any]], load_site: Load
) -> None:
    for name in ("schema", "table"):
        config = {key: value for key, value in private[0].items() if key != name}
        with pytest.raises(ProtocolError, match=f"Private moments need '{name}'"):
            unloaded(requested(make_client_app(load_site), "share", [], context_of(config)))


def test_models_and_moments_do_not_mix_on_flower(load_site: Load, configs: Any) -> None:
    exact = [{**config, "moments": "true"} for config in configs]
    app = make_client_app(load_site)
    run = run_protocol(InProcessGrid(app, [*exact[:5], configs[5]]), QUICK)
    assert "shared a model" in run.conclusion.left_out[configs[5]["site"]]
    assert len(run.conclusion.labels) == 5
    run = run_protocol(InProcessGrid(app, [exact[0], *configs[1:]]), QUICK)
    assert "sent moments" in run.conclusion.left_out[configs[0]["site"]]
    assert len(run.shares) == 5


def test_a_site_refuses_messages_of_another_kind(load_site: Load, configs: Any) -> None:
    app, context = make_client_app(load_site), context_of(configs[0])
    (share,) = unloaded(requested(app, "share", [], context))
    requested(app, "score", [share], context)
    with pytest.raises(ProtocolError, match="not a question"):
        unloaded(requested(app, "answer", [share], context))


def test_a_peers_name_is_no_path(load_site: Load, configs: Any, tmp_path: Path) -> None:
    hostile = [{"site": "../../escape", "rows-of": configs[0]["site"]}, *configs[1:]]
    with_output = [{**config, "output": str(tmp_path / "out" / "site")} for config in hostile]
    run = run_protocol(InProcessGrid(make_client_app(load_site), with_output), QUICK)
    assert not run.rounds[-1].failures
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["site"]


def test_what_carries_no_messages_is_refused() -> None:
    for content in (RecordDict(), refused("It is closed.\n\x1b[31mToday")):
        with pytest.raises(ProtocolError):
            unloaded(content)
    with pytest.raises(ProtocolError, match=r"It is closed\. \[31mToday"):
        unloaded(refused("It is closed.\n\x1b[31mToday"))
    assert len(one_line("x" * 1000)) == 300
    assert unloaded(loaded([b"a", b"b"])) == [b"a", b"b"]


def test_shares_travel_as_they_are(load_site: Load, configs: Any) -> None:
    (share,) = unloaded(requested(make_client_app(load_site), "share", [], context_of(configs[0])))
    assert encode(decode(share)) == share
