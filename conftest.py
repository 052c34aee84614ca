"""What pytest leaves out where an optional dependency is missing, or that it must not be missing."""

import os
from importlib.util import find_spec

import pytest

# Doctests are looked for in every module, and these import what is not there.
collect_ignore = [] if find_spec("triton") else ["src/coterie/kernels/fused.py"]
collect_ignore_glob = [] if find_spec("flwr") else ["src/coterie/flower/*"]

# Tests that need one of these skip without it. torch is not among them: it is in no extra but its own.
OPTIONAL = (
    "flwr",
    "onnx",
    "onnxruntime",
    "cryptography",
    "distributed",
    "pexpect",
    "polars",
    "playwright",
    "axe_playwright_python",
)


def pytest_configure() -> None:
    """Refuse to start where everything is required and something is missing."""
    missing = [name for name in OPTIONAL if find_spec(name) is None]
    if missing and os.environ.get("COTERIE_REQUIRE_ALL") == "1":
        raise pytest.UsageError(f"COTERIE_REQUIRE_ALL=1, and {', '.join(missing)} cannot be imported.")
