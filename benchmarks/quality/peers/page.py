"""From measured rows to a page: tables by setting, which claims hold, and a figure."""

from __future__ import annotations

import csv
from collections import defaultdict
from pathlib import Path

import numpy as np

GIVEN = (
    "coterie, K given",
    "SEC of the paper, K given",
    "K-models, K given",
    "IFCA, K given",
    "k-means on coefficients, K given",
    "CLoVE-like, K given",
    "flexmix, K given",
)
UNKNOWN = (
    "coterie, auto",
    "SEC of the paper, gap",
    "K-models, held-out loss",
    "k-means on coefficients, silhouette",
    "CLoVE-like, silhouette",
    "flexmix, BIC",
)
ERRORS = ("oracle", *GIVEN[:1], *UNKNOWN[:1], "K-models, K given", "flexmix, BIC", "alone", "global")
# A silhouette needs two clusters to be one: these rules can find that there is but one.
ABLE_TO_SAY_ONE = ("coterie, auto", "SEC of the paper, gap", "K-models, held-out loss", "flexmix, BIC")
# Peers' margins: the mean ARI must reach the best peer's less this much.
MARGIN = {GIVEN: 0.02, UNKNOWN: 0.0, ABLE_TO_SAY_ONE: 0.0}

Means = dict[str, dict[str, dict]]


def means_of(rows: list[dict]) -> tuple[Means, dict[str, int]]:
    """Return setting -> method -> means over draws, and the draws of each setting that every method has."""
    found: dict = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        found[row["setting"]][row["method"]][int(row["draw"])] = row
    means: Means = {}
    draws = {}
    for setting, methods in found.items():
        # Methods are compared on the draws that all of them have seen.
        shared = set.intersection(*(set(by_draw) for by_draw in methods.values()))
        draws[setting] = len(shared)
        means[setting] = {
            method: {
                column: float(np.mean([float(by_draw[d][column]) for d in shared]))
                for column in ("k", "ari", "exact", "mse", "seconds")
            }
            | {"ari_by_draw": [float(by_draw[d]["ari"]) for d in sorted(shared)]}
            for method, by_draw in methods.items()
            if shared
        }
    return means, draws


def table(means: Means, settings: list[str], methods: tuple[str, ...], column: str, form: str) -> str:
    """Return one column of results as a Markdown table; the best method of a setting is bold."""
    lines = ["| setting | " + " | ".join(methods) + " |", "|---|" + "---|" * len(methods)]
    for setting in settings:
        values = [means[setting].get(method, {}).get(column, np.nan) for method in methods]
        cells = ["-" if np.isnan(value) else form.format(value) for value in values]
        if column == "ari" and not np.isnan(values).all():
            best = f"{np.nanmax(values):.2f}"
            cells = [f"**{cell}**" if cell == best else cell for cell in cells]
        lines.append(f"| {setting} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def shortfalls(
    means: Means, settings: list[str], methods: tuple[str, ...]
) -> dict[str, tuple[float, float, str]]:
    """Return by how much coterie misses the best peer's ARI, margin allowed for, its error, and the peer."""
    missed = {}
    for setting in settings:
        aris = {m: means[setting][m]["ari"] for m in methods if m in means[setting]}
        peers = [m for m in aris if not m.startswith("coterie")]
        if not peers:
            continue
        peer = max(peers, key=lambda m: aris[m])
        gap = aris[peer] - MARGIN[methods] - aris[methods[0]]
        if gap > 1e-9:
            ours, theirs = (np.array(means[setting][m]["ari_by_draw"]) for m in (methods[0], peer))
            missed[setting] = gap, float(np.std(theirs - ours, ddof=1) / np.sqrt(len(ours))), peer
    return missed


def claims(means: Means, settings: list[str]) -> str:
    """Say in how many settings each claim holds, and name those in which it does not."""
    lines = []
    for methods, words in (
        (GIVEN, "K given to all"),
        (UNKNOWN, "K unknown to all"),
        (ABLE_TO_SAY_ONE, "K unknown, peers that can find one cluster only"),
    ):
        missed = shortfalls(means, settings, methods)
        margin = f" less {MARGIN[methods]}" if MARGIN[methods] else ""
        held = len(settings) - len(missed)
        lines.append(
            f"- {words}: ARI at least the best peer's{margin} in {held} of {len(settings)} settings."
        )
        lines += [
            f"    - {setting}: short by {gap:.3f}, standard error {error:.3f} ({peer})"
            for setting, (gap, error, peer) in missed.items()
        ]
    for setting in (s for s in settings if "one" in s and "truth" in s):
        share = means[setting]["coterie, auto"]["exact"]
        lines.append(f"- {setting}: K = 1 in {100 * share:.0f} % of the draws.")
    return "\n".join(lines)


def _lines(axes, means: Means, p: int, methods: tuple[str, ...]) -> None:
    ratios = [snr for snr in (1, 2, 4, 8, 16, 32, 64, 128) if f"Simulation 1, p={p}, SNR {snr}" in means]
    for place, method in enumerate(methods):
        values = [means[f"Simulation 1, p={p}, SNR {snr}"].get(method, {}).get("ari") for snr in ratios]
        if None in values:
            continue
        ours = method.startswith("coterie")
        style = {"lw": 2.4, "color": "black", "zorder": 5} if ours else {"lw": 1.2, "color": f"C{place}"}
        axes.plot(ratios, values, marker="o", ms=3, label=method.rsplit(", ", 1)[0], **style)
    axes.set(xscale="log", ylim=(-0.03, 1.03), title=f"Simulation 1, p={p}", xlabel="signal-to-noise ratio")
    axes.set_xticks(ratios, ratios)
    axes.minorticks_off()


def _dots(axes, means: Means, settings: list[str], methods: tuple[str, ...]) -> None:
    for place, method in enumerate(methods):
        values = [means[s].get(method, {}).get("ari", np.nan) for s in settings]
        size, colour = (60, "black") if method.startswith("coterie") else (16, f"C{place}")
        axes.scatter(values, range(len(settings)), s=size, color=colour, zorder=100 - size)
    axes.set_yticks(range(len(settings)), settings, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlim=(-0.05, 1.05), title="other settings", xlabel="adjusted Rand index")
    axes.grid(axis="y", lw=0.3)


def draw_figure(means: Means, settings: list[str], path: Path) -> None:
    """Draw the mean ARI of all methods: a row of panels for K given, one for K unknown."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    others = [s for s in settings if not s.startswith("Simulation 1")]
    figure, grid = plt.subplots(2, 4, figsize=(15, 7), layout="constrained", width_ratios=(1, 1, 1, 1.2))
    for row, (methods, words) in enumerate(((GIVEN, "K given"), (UNKNOWN, "K unknown"))):
        for axes, p in zip(grid[row, :3], (5, 10, 20), strict=True):
            _lines(axes, means, p, methods)
        grid[row, 0].set_ylabel(f"{words}: adjusted Rand index")
        _dots(grid[row, 3], means, others, methods)
        handles, labels = grid[row, 0].get_legend_handles_labels()
        if handles:
            grid[row, 2].legend(handles, labels, fontsize=7, loc="lower right")
    # The same results give the same file.
    with plt.rc_context({"svg.hashsalt": "peers"}):
        figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def _calibrated(out: Path) -> list[str]:
    """Return the section on rules that cannot say one, where ``calibrated.py`` was run."""
    path = out / "calibrated.csv"
    if not path.exists():
        return []
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["| " + " | ".join(rows[0]) + " |", "|---|" + "---|" * (len(rows[0]) - 1)]
    for row in rows:
        setting, draws, *numbers = row.values()
        lines.append(f"| {setting} | {draws} | " + " | ".join(f"{float(n):.2f}" for n in numbers) + " |")
    words = (
        "Mean ARI again. Here the silhouette answers one unless it exceeds what 95 of 100 draws of one truth"
        " reach. These draws have the same rows and noise, and exist in a simulation only. The last column"
        " says how often coterie finds more than one cluster in draws of one truth. Made by `calibrated.py`."
    )
    return ["## Rules that cannot say one, if they could", words, "\n".join(lines)]


def write_page(rows: list[dict], order: list[str], head: str, out: Path) -> None:
    """Write ``README.md`` and ``peers.svg``."""
    means, draws = means_of(rows)
    settings = [s for s in order if means.get(s)]
    if not settings:
        return
    counts = sorted({draws[s] for s in settings})
    parts = [
        head.rstrip(),
        f"Draws a setting: {counts[0]}" + (f" to {counts[-1]}." if len(counts) > 1 else "."),
        "## What holds\n\n" + claims(means, settings),
        "![Mean ARI of all methods](peers.svg)",
        "## K given to all: mean ARI\n\n" + table(means, settings, GIVEN, "ari", "{:.2f}"),
        "## K unknown to all: mean ARI\n\n" + table(means, settings, UNKNOWN, "ari", "{:.2f}"),
        *_calibrated(out),
        "## K unknown to all: share of draws with K and every label right\n\n"
        + table(means, settings, UNKNOWN, "exact", "{:.2f}"),
        "## Mean squared error against the truth without noise\n\n"
        + table(means, settings, ERRORS, "mse", "{:.3g}"),
        "## Rows as they came, and standardised inside each learner\n\n"
        + table(
            means,
            [s for s in settings if "coterie, standardised, auto" in means[s]],
            (GIVEN[0], "coterie, standardised, K given", UNKNOWN[0], "coterie, standardised, auto"),
            "ari",
            "{:.2f}",
        ),
        "## Linear candidates only, and seconds a fit\n\n"
        + table(
            means,
            settings,
            ("coterie, linear candidates, K given", "coterie, linear candidates, auto"),
            "ari",
            "{:.2f}",
        )
        + "\n\n"
        + table(means, settings, (GIVEN[0], UNKNOWN[0], *GIVEN[2:], UNKNOWN[2]), "seconds", "{:.1f}"),
    ]
    (out / "README.md").write_text("\n\n".join(parts) + "\n")
    draw_figure(means, settings, out / "peers.svg")
