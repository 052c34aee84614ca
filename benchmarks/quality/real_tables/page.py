"""From results to a table and a picture."""

from __future__ import annotations

import csv
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

import matplotlib.pyplot as plt

OURS = "coterie"
# What a user would choose between. scikit-lego's one model per learner, alone without a choice of the model,
# counts among all others.
RIVALS = (
    "alone",
    "global (forest)",
    "global (ridge)",
    "centred global (forest)",
    "centred global (ridge)",
    "alone and global stacked",
    "GPBoost, random intercepts",
    "GPBoost, random slopes",
    "MERF",
)


def _mean(rows: list[dict], table: str, method: str) -> tuple[float, int]:
    values = [row["mse"] for row in rows if row["table"] == table and row["method"] == method]
    return (float(np.mean(values)), len(values)) if values else (np.nan, 0)


def _best_rival(rows: list[dict], table: str, rivals: tuple[str, ...]) -> tuple[str, float]:
    """Return the rival that comes nearest, and ours against it, on the seeds that both have."""
    errors = {(row["seed"], row["method"]): row["mse"] for row in rows if row["table"] == table}
    ratios = {}
    for rival in rivals:
        shared = [seed for seed, method in errors if method == rival and (seed, OURS) in errors]
        if shared:
            ours, theirs = (sum(errors[seed, method] for seed in shared) for method in (OURS, rival))
            ratios[rival] = ours / theirs
    name = max(ratios, key=ratios.__getitem__)
    return name, ratios[name]


def table_text(rows: list[dict]) -> str:
    """Return mean test errors as a Markdown table, methods by tables."""
    tables = list(dict.fromkeys(row["table"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = ["| method | " + " | ".join(tables) + " |", "|---|" + "---|" * len(tables)]
    for method in methods:
        cells = []
        for table in tables:
            value, count = _mean(rows, table, method)
            text = f"{value:.4g}" if count else "-"
            seeds = _mean(rows, table, OURS)[1]
            text += f" ({count} seed{'s' * (count > 1)})" if 0 < count < seeds else ""
            cells.append(f"**{text}**" if method == OURS else text)
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    seeds = [str(len({row["seed"] for row in rows if row["table"] == table})) for table in tables]
    lines.append("| seeds | " + " | ".join(seeds) + " |")
    others = tuple(method for method in methods if method != OURS)
    for rivals, words in ((others, "all others"), (RIVALS, "alone, global, stacked, GPBoost, MERF")):
        cells = []
        for table in tables:
            name, ratio = _best_rival(rows, table, rivals)
            cells.append(f"{100 * (ratio - 1):+.1f}% ({name})")
        lines.append(f"| coterie against the best of {words} | " + " | ".join(cells) + " |")
    for column, label in (("worse_by_2_se", "beyond 2 s.e."), ("worse_bonferroni", "after Bonferroni")):
        cells = []
        for table in tables:
            mine = [row for row in rows if row["table"] == table and row["method"] == OURS and column in row]
            total = sum(row["learners"] for row in mine)
            worse = sum(row[column] for row in mine)
            cells.append(f"{worse} of {total}" if total else "-")
        lines.append(f"| learners worse than alone, {label} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _draw(rows: list[dict], path: Path) -> None:
    tables = list(dict.fromkeys(row["table"] for row in rows))
    figure, axes = plt.subplots(1, len(tables), figsize=(3.6 * len(tables), 3.8), layout="constrained")
    for ax, table in zip(np.ravel(axes), tables, strict=True):
        methods = list(dict.fromkeys(row["method"] for row in rows if row["table"] == table))
        best = min(_mean(rows, table, method)[0] for method in methods if method != OURS)
        ratios = np.array([_mean(rows, table, method)[0] / best for method in methods])
        order = np.argsort(-ratios)
        colours = ["#0072B2" if methods[p] == OURS else "#8C8C8C" for p in order]
        ax.barh(range(len(order)), np.minimum(ratios[order], 3.0), color=colours)
        ax.set_yticks(range(len(order)), [methods[p] for p in order], fontsize=7)
        ax.axvline(1.0, color="#222222", linewidth=0.8, linestyle=(0, (4, 3)))
        ax.set_title(table, fontsize=9)
        ax.set_xlabel("error / best other (cut at 3)", fontsize=8)
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def read_results(path: Path) -> list[dict]:
    """Return the rows of a table of results; none where there is no such file."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = {"seed": int, "mse": float, "learners": int, "worse_by_2_se": int, "worse_bonferroni": int}
    return [row | {name: kind(row[name]) for name, kind in numbers.items() if row[name]} for row in rows]


def write_page(head: Path, out: Path) -> None:
    """Write README.md and figure.png from the results that are there."""
    rows, more = (read_results(out / name) for name in ("results.csv", "untouched.csv"))
    if rows:
        text = f"{head.read_text()}\n{table_text(rows)}\n\n![Errors, tables by methods](figure.png)\n"
        if more:
            text += f"\n{head.with_name('README.untouched.md').read_text()}\n{table_text(more)}\n"
        (out / "README.md").write_text(text)
        _draw(rows, out / "figure.png")
