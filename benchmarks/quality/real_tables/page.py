"""From results to tables and a picture."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from figure import draw
from more_tables import OFFICIAL
from summarise import RIVALS, VERSIONS, Results


def _bytes(size: float) -> str:
    return f"{size / 1e6:.1f} MB" if size >= 1e5 else f"{size / 1e3:.0f} kB"


def _cell(value: float, shape: Callable[[float], str], note: str = "") -> str:
    if math.isnan(value):
        return "stopped" if note.startswith("stopped") else "failed" if note else "-"
    return shape(value)


def _matrix(results: Results, tables: list[str], cell: Callable[[str, str], str]) -> list[str]:
    """Return a Markdown table, tables by methods."""
    methods = results.methods()
    lines = ["| table | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
    rows = [[table, *(cell(table, method) for method in methods)] for table in tables]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def _summary(results: Results) -> list[str]:
    """Return one line for each table: coterie beside its best rival, and what LightGBM costs."""
    lines = [
        "| table | learners | best rival | its error | coterie | coterie / best rival | standard errors |"
        " seconds: coterie, best rival, LightGBM with id | size: coterie, best rival, LightGBM with id |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for table in results.tables():
        ours = results.ours(table)
        ratio, best = results.ratio(table, ours) if ours else (math.nan, "")
        best = best or min(RIVALS, key=lambda name: np.nan_to_num(results.ratio(table, name)[0], nan=np.inf))
        # Our mean is over the seeds that the best rival has, so that the two means give the ratio.
        shared = results.values(table, best, "error").keys()
        mine = results.values(table, ours, "error") if ours else {}
        error = float(np.mean([mine[s] for s in shared if s in mine] or [math.nan]))
        three = (ours or "", best, "LightGBM with id")
        cells = [
            table,
            str(int(max(results.values(table, best, "learners").values()))),
            best + (" (1 seed)" if len(shared) == 1 else ""),
            f"{results.mean(table, best):.4g}",
            _cell(error, "{:.4g}".format) + (f" ({ours})" if ours == VERSIONS[1] else ""),
            _cell(ratio, "**{:.3f}**".format),
            _cell(results.paired(table, ours or "", best), "{:+.1f}".format),
            ", ".join(_cell(results.seconds(table, name), "{:.3g}".format) for name in three),
            ", ".join(_cell(results.mean(table, name, "size"), _bytes) for name in three),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _verdict(results: Results) -> str:
    """Say in words on how many tables coterie is ahead, and where it is behind."""
    ratios = {}
    for table in results.tables():
        ours = results.ours(table)
        if ours and math.isfinite(results.ratio(table, ours)[0]):
            ratios[table] = results.ratio(table, ours)
    if not ratios:
        return "coterie has not been run beside these rivals yet."
    validation = [table for table, (r, _) in ratios.items() if r <= 1.0]
    behind = sorted(((r, table, best) for table, (r, best) in ratios.items() if r > 1.0), reverse=True)
    text = (
        f"coterie has the lowest error on {len(validation)} of {len(ratios)} tables on which it has been run."
    )
    if behind:
        text += " It is behind the best rival on "
        text += ", ".join(f"{name} ({r:.3f}, {best})" for r, name, best in behind) + "."
    return text


def _worse(results: Results) -> list[str]:
    """Return how many learners do worse than alone, by method, over all tables."""
    lines = ["| method | learners | worse beyond 2 s.e. | after Bonferroni |", "|---|---|---|---|"]
    for method in results.methods():
        mine = [v for k, v in results.lines.items() if k[2] == method and "worse_by_2_se" in v]
        total = sum(line["learners"] for line in mine)
        if total and method != "alone":
            worse, sure = (sum(line[c] for line in mine) for c in ("worse_by_2_se", "worse_bonferroni"))
            lines.append(f"| {method} | {total} | {worse} ({worse / total:.1%}) | {sure} |")
    return lines


def _official(results: Results) -> list[str]:
    """Return the lines of the table with official folds."""
    lines = [
        f"| {OFFICIAL} | folds | error | error / best rival's on the same folds | fit s | predict s | size |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in results.methods():
        folds = len(results.values(OFFICIAL, method, "error"))
        note = results.note(OFFICIAL, method)
        if folds or note:
            shapes = [("error", "{:.4f}"), ("cpu_fit", "{:.3g}"), ("cpu_predict", "{:.2g}")]
            cells = [_cell(results.mean(OFFICIAL, method, c), s.format, note) for c, s in shapes]
            cells.insert(1, _cell(results.ratio(OFFICIAL, method)[0], "{:.3f}".format))
            cells.append(_cell(results.mean(OFFICIAL, method, "size"), _bytes))
            lines.append(f"| {method} | {folds} | " + " | ".join(cells) + " |")
    return lines


def page_text(results: Results) -> str:
    """Return everything below the head of the page."""
    tables = results.tables()

    def error(table: str, method: str) -> str:
        text = _cell(results.mean(table, method), "{:.4g}".format, results.note(table, method))
        count = len(results.values(table, method, "error"))
        return f"{text} (1 seed)" if count == 1 else text

    def ratio(table: str, method: str) -> str:
        value, best = results.ratio(table, method)
        text = _cell(value, "{:.3f}".format, results.note(table, method))
        return f"**{text}**" if best == method or value <= 1.0 else text

    def seconds(table: str, method: str) -> str:
        fit, predict = (results.mean(table, method, name) for name in ("cpu_fit", "cpu_predict"))
        return _cell(fit, "{:.3g}".format, results.note(table, method)) + _cell(predict, " / {:.2g}".format)

    def size(table: str, method: str) -> str:
        return _cell(results.mean(table, method, "size"), _bytes)

    typical = [_cell(results.typical_ratio(method, tables), "{:.3f}".format) for method in results.methods()]
    means = "| geometric mean of the tables it has | " + " | ".join(typical) + " |"
    counts = [sum(bool(results.values(t, m, "error")) for t in tables) for m in results.methods()]
    have = "| tables | " + " | ".join(map(str, counts)) + " |"
    parts = [
        [_verdict(results)],
        _summary(results),
        ["![Errors over the best rival's, tables by methods](figure.png)"],
        [f"## {OFFICIAL}, official folds"],
        _official(results),
        ["## Error over the best rival's"],
        [*_matrix(results, tables, ratio), means, have],
        ["## Error"],
        _matrix(results, tables, error),
        ["## Seconds of processor, fit / predict"],
        _matrix(results, tables, seconds),
        ["## Size of the saved model"],
        _matrix(results, tables, size),
        ["## Learners that do worse than alone"],
        _worse(results),
    ]
    return "\n\n".join("\n".join(lines) for lines in parts)


def write_page(head: Path, out: Path) -> None:
    """Write README.md and figure.png from the results that are there."""
    results = Results.read(out)
    if not results.tables():
        return
    machine = out / "machine.txt"
    made_on = f"\n{machine.read_text().strip()}\n" if machine.is_file() else ""
    (out / "README.md").write_text(f"{head.read_text()}{made_on}\n{page_text(results)}\n")
    draw(results, out / "figure.png")
