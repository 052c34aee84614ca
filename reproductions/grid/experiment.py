"""The electrical grid under attack (the paper's last figure).

Fifty learners hold parts of one table; the first d of them are attacked: their response is negated. The
fiftieth knows that it is intact and may learn with all, alone, with its cluster, or with the truly intact.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression

from coterie.method.cluster import cluster_learners
from coterie.method.exchange import cross_evaluate
from coterie.method.select import select_models
from coterie.records import Exchange, Partition, Selection
from reproductions.grid.data import load_grid_stability
from reproductions.grid.splitting import LearnerSplit, split_into_learners
from reproductions.grid.tables import draw, tabulate
from reproductions.harness.experiment import Experiment, Record
from reproductions.harness.pages import written_readme

Array = NDArray[Any]

SETTINGS: dict[str, Any] = {
    "attacked": list(range(50)),
    "learners": 50,
    "rows": 160,
    "ways": {
        "paper": {"candidates": ["rf", "lr"], "n_clusters": "gap-jump", "scale": "median", "refine": None},
        "coterie": {
            "candidates": ["ridge", "lasso", "rf"],
            "n_clusters": "auto",
            "scale": "noise",
            "refine": "pooled",
        },
    },
}


def _negated(split: LearnerSplit, n_rows: int) -> Array:
    """Return the response with the first rows' negated."""
    return np.where(np.arange(len(split.y)) < n_rows, -split.y, split.y)


def _twice(ids: Array) -> Array:
    return np.concatenate([np.char.add("attacked ", ids), ids])


def _side_by_side(attacked: Selection, intact: Selection) -> Selection:
    """Return the selection of twice as many learners: everybody attacked, then everybody intact.

    A learner selects by its own rows and its own seed, so what it selects for either response serves for
    every d. Its noise level, which others' levels shrink, has the same value for either response.
    """
    joined: dict[str, Any] = {}
    for field in (f for f in fields(Selection) if f.metadata.get("by_learner")):
        parts = getattr(attacked, field.name), getattr(intact, field.name)
        joined[field.name] = sum(parts, ()) if isinstance(parts[0], tuple) else np.concatenate(parts)
    joined["learner_ids"] = _twice(intact.learner_ids)
    return Selection(**joined)


def _exchanged(selection: Selection, split: LearnerSplit) -> Exchange:
    """Let all models of either response meet all rows with either response, once for every d."""
    X, y = np.tile(split.X, (2, 1)), np.r_[-split.y, split.y]
    return cross_evaluate(selection, X, y, _twice(split.groups))


def _log_error(split: LearnerSplit, y: Array, rows: Array) -> float:
    """Return the log of the test error of a linear regression on some of the rows."""
    model = LinearRegression().fit(split.X[rows], y[rows])
    return float(np.log(np.mean((split.y_rest - model.predict(split.X_rest)) ** 2)))


def _partition(
    selection: Selection, exchange: Exchange, rows: tuple[Array, ...], variant: Mapping[str, Any], seed: int
) -> Partition:
    options: dict[str, Any] = {name: variant[name] for name in ("n_clusters", "scale", "refine")}
    options["random_state"] = seed
    if variant["refine"] is None and variant["n_clusters"] not in ("auto", "held-out", "cv"):
        # Rules that look at losses alone give the same clusters without the rows, in less time.
        return cluster_learners(exchange, **options)
    return cluster_learners(exchange, *rows, selection=selection, **options)


def _found(partition: Partition, n_attacked: int, name: str) -> dict[str, Any]:
    """Say how well those outside the last learner's cluster are the attacked ones."""
    accused = partition.labels != partition.labels[-1]
    guilty = np.arange(len(accused)) < n_attacked
    caught = int(np.sum(accused & guilty))
    return {
        f"k_{name}": partition.n_clusters,
        # Where nobody is accused, nobody is accused wrongly; where nobody is attacked, nobody is missed.
        f"precision_{name}": caught / int(accused.sum()) if accused.any() else 1.0,
        f"recall_{name}": caught / n_attacked if n_attacked else 1.0,
        f"exact_{name}": bool((accused == guilty).all()),
    }


def replicate(seed: int, settings: Mapping[str, Any]) -> list[Record]:
    """Deal the rows to the learners once, and attack more and more of them.

    Parameters
    ----------
    seed : int
        Of this replication.
    settings : mapping
        As `SETTINGS`.

    Returns
    -------
    list of mapping
        A record per number of attacked learners.
    """
    table = load_grid_stability()
    n_learners, n_rows = settings["learners"], settings["rows"]
    split = split_into_learners(table.X, table.y, n_learners, n_rows, random_state=seed)
    place = np.repeat(np.arange(n_learners), n_rows)
    variants = settings["ways"]
    selections, exchanges = {}, {}
    for name, variant in variants.items():
        chosen = (
            select_models(
                split.X, y, split.groups, candidates=variant["candidates"], order=None, random_state=seed
            )
            for y in (-split.y, split.y)
        )
        selections[name] = _side_by_side(*chosen)
        exchanges[name] = _exchanged(selections[name], split)
    alone = _log_error(split, split.y, place == n_learners - 1)
    records: list[Record] = []
    everybody, ids = np.arange(n_learners), split.groups[::n_rows]
    for d in settings["attacked"]:
        positions = np.where(everybody < d, everybody, n_learners + everybody)
        y = _negated(split, d * n_rows)
        record: dict[str, Any] = {
            "d": d,
            "with_all": _log_error(split, y, place >= 0),
            "alone": alone,
            "oracle": _log_error(split, y, place >= d),
        }
        for name, variant in variants.items():
            selection = replace(selections[name].take(positions), learner_ids=ids)
            exchange = replace(exchanges[name].take(positions), learner_ids=ids)
            partition = _partition(selection, exchange, (split.X, y, split.groups), variant, seed)
            mine = partition.labels == partition.labels[-1]
            record[f"sec_{name}"] = _log_error(split, y, mine[place])
            record.update(_found(partition, d, name))
        records.append(record)
    return records


def check_data() -> None:
    """Raise an error that says how to get the table where it is missing."""
    load_grid_stability()


EXPERIMENT = Experiment(
    name="grid",
    title="Electrical grid under attack (last figure)",
    settings=SETTINGS,
    quick_settings={"attacked": [0, 1, 25, 49]},
    replications=100,
    quick_replications=1,
    replicate=replicate,
    tabulate=tabulate,
    draw=draw,
    readme=written_readme(Path(__file__).parent),
    check_data=check_data,
)
