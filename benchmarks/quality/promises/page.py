"""From results to the page."""

from __future__ import annotations

from pathlib import Path

from cells import read
from simulated_page import simulated_part
from tables_page import tables_part


def write_page(head: Path, out: Path) -> None:
    """Write README.md from the results that are there."""
    simulated, tables = read(out / "simulated.csv"), read(out / "tables.csv")
    if not simulated and not tables:
        return
    text = [head.read_text()]
    if simulated:
        text += ["## Simulated federations", "", *simulated_part(simulated)]
    if tables:
        text += ["## Real tables", "", *tables_part(tables)]
    (out / "README.md").write_text("\n".join(text).rstrip() + "\n")
