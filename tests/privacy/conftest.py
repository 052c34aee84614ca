"""The benchmarks that attack private moments, and a cache of the test's own."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "federated"


def benchmark(name: str) -> Any:
    """Return a benchmark's module."""
    spec = spec_from_file_location(f"privacy_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[spec.name] = module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def neighbours() -> Any:
    return benchmark("neighbours")


@pytest.fixture(scope="session")
def last_bits() -> Any:
    return benchmark("last_bits")


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))
