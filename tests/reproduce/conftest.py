"""A small experiment whose answer is obvious, and a grid of few rows that needs no file."""

from pathlib import Path

import numpy as np
import pytest

from coterie.datasets import Table as DataTable
from coterie.reproduce import HEADINGS, Experiment, Table, grid


def draw_numbers(seed, settings):
    generator = np.random.default_rng(seed)
    return [{"size": size, "value": generator.normal(size)} for size in settings["sizes"]]


def tabulate_numbers(records, settings):
    rows = tuple((str(r["replication"]), str(r["size"]), repr(r["value"])) for r in records)
    return [Table("Numbers", ("replication", "size", "value"), rows, ("A note.",))]


def draw_nothing(records, settings, folder):
    path = folder / "figure.png"
    path.write_bytes(b"")
    return [path]


@pytest.fixture
def numbers():
    return Experiment(
        name="numbers",
        title="Numbers drawn at random",
        settings={"sizes": [1, 10]},
        quick_settings={"sizes": [1]},
        replications=4,
        quick_replications=2,
        replicate=draw_numbers,
        tabulate=tabulate_numbers,
        draw=draw_nothing,
        readme={heading: f"Text of {heading}." for heading in HEADINGS},
    )


@pytest.fixture
def small_grid(monkeypatch):
    """Settings of the grid experiment for a linear table of 400 rows that stands in for the real one."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(400, 3))
    y = 1.0 + X @ [1.0, -2.0, 0.5] + 0.1 * generator.normal(size=400)
    table = DataTable(X, y, ("a", "b", "c"), Path("made"))
    monkeypatch.setattr(grid, "load_grid_stability", lambda: table)
    ways = {name: {**way, "candidates": ["lr"]} for name, way in grid.SETTINGS["ways"].items()}
    return {**grid.SETTINGS, "attacked": [0, 1, 4, 7], "learners": 8, "rows": 40, "ways": ways}
