"""Measurements are rows of a table beside the script that made them."""

from __future__ import annotations

import csv
import os
import platform
from pathlib import Path


def this_machine(*versions: str) -> str:
    """Return what a time depends on."""
    parts = (f"{os.cpu_count()} cores", platform.machine(), f"Python {platform.python_version()}", *versions)
    return ", ".join(parts)


def add_row(path: Path, row: dict) -> None:
    """Add a row to a table, under the names of its columns where the table is new."""
    new = not path.exists()
    with open(path, "a", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow(row)
