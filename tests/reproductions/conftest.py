"""A small experiment whose answer is obvious, a grid of few rows, data that may be absent, and a server."""

from __future__ import annotations

import io
import os
import threading
import zipfile
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from coterie.datasets import local_copy
from reproductions.download.tables import Table as DataTable
from reproductions.grid import experiment as grid
from reproductions.harness import HEADINGS, Experiment, Table


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
    variants = {name: {**variant, "candidates": ["lr"]} for name, variant in grid.SETTINGS["ways"].items()}
    return {**grid.SETTINGS, "attacked": [0, 1, 4, 7], "learners": 8, "rows": 40, "ways": variants}


@pytest.fixture
def data_file() -> Callable[[str, str], Path]:
    """Find a true data file; without it skip, or fail where COTERIE_REQUIRE_ALL=1."""

    def find(folder: str, filename: str) -> Path:
        path = local_copy(folder, filename)
        if path is None:
            reason = f"COTERIE_DATA is not set to a folder that has {folder}/{filename}"
            if os.environ.get("COTERIE_REQUIRE_ALL") == "1":
                pytest.fail(reason)
            pytest.skip(reason)
        return path

    return find


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with nothing in it, and no local data to take instead."""
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


class Server:
    """What it serves is in `bodies`; a path in `cut` breaks off half-way."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.bodies: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.requests: list[str] = []

    def serve(self, path: str, body: bytes, cut: bool = False) -> str:
        self.bodies[path] = body
        if cut:
            self.cut.add(path)
        return self.address + path

    def serve_zip(self, path: str, **members: bytes) -> str:
        box = io.BytesIO()
        with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return self.serve(path, box.getvalue())


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A real server on this machine."""
    monkeypatch.setenv("no_proxy", "*")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            served.requests.append(self.path)
            body = served.bodies.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if self.path in served.cut else body)

        def log_message(self, *args: object) -> None:
            pass

    # The standard server would keep open connections' threads beyond the test.
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        served = Server(f"http://127.0.0.1:{http.server_port}")
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield served
        http.shutdown()
        thread.join()
