"""From results to the page."""

from __future__ import annotations

from pathlib import Path

from cells import read
from simulated_page import simulated_part
from tables_page import tables_part


def write_page(head: Path, out: Path) -> None:
    """Write README.md and figure.png from the results that are there."""
    simulated, tables = read(out / "simulated.csv"), read(out / "tables.csv")
    if not simulated and not tables:
        return
    text = [head.read_text()]
    if simulated and tables:
        # Here, so that what draws is not loaded by every worker.
        from figure import draw

        draw(simulated, tables, out / "figure.png")
        text += ["![Promised and true gains, a dot for each federation and each table](figure.png)", ""]
    if simulated:
        text += ["## Simulated federations", "", *simulated_part(simulated)]
    if tables:
        text += ["## Real tables", "", *tables_part(tables)]
    (out / "README.md").write_text("\n".join(text).rstrip() + "\n")
