"""The page of the results: a table for each set of rows, with the ratio to the best rival."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

HEAD = """# Classes on real tables

    COTERIE_DATA=FOLDER python benchmarks/quality/classes/run.py

Means over learners, then over splits. landmine: all rows, half of each field's rows of either class to
learn from. heart: FLamby's split, which is the same for every seed. tv16: at most 300 rows of a state, half
to learn from. verbagg: three classes, 12 of 24 rows to learn from. LightGBM chooses leaves and rounds by five
folds; every logistic regression its ridge by rows left out. Seconds are of one processor.
"""
COLUMNS = ("log_loss", "brier", "accuracy", "auc", "calibration_error", "n_clusters", "ari", "seconds")


def _cell(value: Any) -> str:
    return "" if pd.isna(value) else f"{value:.3f}"


def write_page(results: pd.DataFrame, folder: Path) -> None:
    """Write ``README.md``."""
    parts = [HEAD]
    for table, rows in results.groupby("table", sort=False):
        means = rows.drop(columns=["table", "seed"]).groupby("method").mean().sort_values("log_loss")
        shown = [name for name in COLUMNS if name in means and means[name].notna().any()]
        seeds = rows["seed"].nunique()
        lines = [f"\n## {table} ({seeds} split{'s' if seeds > 1 else ''})\n"]
        lines.append("| method | " + " | ".join(name.replace("_", " ") for name in shown) + " |")
        lines.append("|---|" + "---:|" * len(shown))
        for method, row in means.iterrows():
            lines.append(f"| {method} | " + " | ".join(_cell(row[name]) for name in shown) + " |")
        rivals = means.drop(index=[m for m in means.index if m.startswith("coterie")])
        if "coterie" in means.index and len(rivals):
            ratio = means.loc["coterie", "log_loss"] / rivals["log_loss"].min()
            lines.append(f"\ncoterie / best rival in log loss: {ratio:.3f}.")
        parts.append("\n".join(lines) + "\n")
    (folder / "README.md").write_text("".join(parts), encoding="utf-8")
