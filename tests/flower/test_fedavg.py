"""The example of federated averaging inside every coterie, in one process."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

pytest.importorskip("flwr", reason="Flower is not installed: install coterie's extra 'flower'")
from flwr.app import Context, RecordDict

from coterie.flower import InProcessGrid

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("classes", ["", "no,yes"])
def test_every_coterie_trains_its_own_network(
    classes: str, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / "flower_fedavg")
    server, client = (importlib.import_module(f"fedavg_app.{name}") for name in ("server_app", "client_app"))
    configs = []
    for k, site in enumerate(dict.fromkeys(data.groups.tolist())):
        mine = data.groups == site
        path = tmp_path / f"{k}.csv"
        y = np.where(data.y[mine] > 0, "yes", "no") if classes else data.y[mine]
        pl.DataFrame({f"x{j}": data.X[mine, j] for j in range(3)} | {"y": y}).write_csv(path)
        configs.append({"site": site, "table": str(path), "target": "y"})
    output = tmp_path / "fedavg.json"
    run_config = {"n-clusters": 2, "averaging-rounds": 6, "output": str(output), "classes": classes}
    run_config["candidates"] = "logistic" if classes else "ridge"
    grid = InProcessGrid(client.app, configs, run_config)
    server.app(grid, Context(1, 0, {}, RecordDict(), run_config))
    found = json.loads(output.read_text())
    assert len(set(found["labels"].values())) == 2
    for losses in found["losses"].values():
        assert len(losses) == 6
        assert losses[-1] < 0.6 * losses[0]
