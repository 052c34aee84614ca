"""The page of the results: a table for each set of rows, with the ratio to the best rival."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd

HEAD = """# Classes on real tables

    COTERIE_DATA=FOLDER python benchmarks/quality/classes/run.py --seeds 3

Means over learners, then over splits. landmine: all rows, half of each field's rows of either class to
learn from. heart: FLamby's split, which is the same for every seed. tv16: at most 300 rows of a state, half
to learn from. verbagg: three classes, 12 of 24 rows to learn from. LightGBM chooses leaves and rounds by five
folds. GPBoost (random intercepts) chooses rate, leaves and rounds by its own folds. CatBoost has its defaults
and stops early on a fifth of the rows. flexmix is a mixture of logistic regressions, a component for each
learner, K by BIC up to eight. Every logistic regression chooses its ridge by rows left out. GPBoost and
flexmix's binomial family have two classes: they are left out on verbagg. A rival that a table lacks has
not been run there yet. Seconds are of one processor, on a busy machine.

On heart coterie is level with logistic regressions of one's own: there are four learners, one of them with a
single class, and what each knows of itself is nearly all that helps. On landmine, one logistic regression for
each of the two true terrains has a log loss of .187 and an AUC of .781 on these splits. The mean of it and of
boosted trees for each terrain has .184 and .782. Rows of its bare fields come in an order that matters, which
the test of dependence finds: blocks of rows are then held out. How many truths are found among simulated
learners of classes is in [truths.md](truths.md).
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
