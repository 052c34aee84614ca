"""From draws to the page: what each part of the search buys, and where."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
STANDARD_ERRORS = 2.0
WHOLE = "the whole"
COLUMNS = (
    *("without", "benchmark", "setting", "candidates", "draws"),
    *("exact", "ari", "change", "error", "change_given", "error_given", "seconds"),
)

Setting = tuple[str, str, str]
Draws = dict[int, dict]


def _score(row: dict) -> float:
    """Return the adjusted Rand index; without a true partition, whether the answer is called unclear."""
    return float(row["ari"]) if row["ari"] else 1.0 - float(row["clear"])


def _given(row: dict) -> float:
    """Return the index with the number of clusters given; NaN where it was not looked at."""
    return float(row["ari_given"] or "nan")


def _seconds(row: dict) -> float:
    return float(row["seconds"] or "nan")


def _change(mine: Draws, whole: Draws, score: Callable[[dict], float]) -> tuple[float, float]:
    """Return the mean over draws of what a score is higher without a part, and its standard error."""
    values = np.array([score(mine[seed]) - score(whole[seed]) for seed in sorted(mine)])
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan"), float("nan")
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0


def _sum(mine: Draws, score: Callable[[dict], float]) -> float:
    return float(np.nansum([score(row) for row in mine.values()]))


def aggregated(draws: list[dict]) -> list[dict]:
    """Return one row per part and setting, the whole first."""
    found: dict[str, dict[Setting, Draws]] = defaultdict(lambda: defaultdict(dict))
    for row in draws:
        setting = row["benchmark"], row["setting"], row["candidates"]
        found[row["without"]][setting][int(row["seed"])] = row
    whole, rows = found.pop(WHOLE), []
    for part, settings in {WHOLE: whole, **found}.items():
        for setting, mine in settings.items():
            beside = {seed: whole[setting][seed] for seed in mine}
            numbers = (*_change(mine, beside, _score), *_change(mine, beside, _given))
            scores = np.array([_score(row) for row in mine.values()])
            seconds = _sum(mine, _seconds)
            values = (
                part,
                *setting,
                len(mine),
                float((scores == 1).mean()),
                scores.mean(),
                *numbers,
                seconds,
            )
            texts = (value if isinstance(value, str | int) else f"{value:.4f}" for value in values)
            rows.append(dict(zip(COLUMNS, texts, strict=True)))
    return rows


def changed(rows: list[dict]) -> list[dict]:
    """Return the whole, and of the parts the settings in which an index changes; their time is summed up."""
    kept = [row for row in rows if row["without"] == WHOLE]
    for part in dict.fromkeys(row["without"] for row in rows if row["without"] != WHOLE):
        mine = [row for row in rows if row["without"] == part]
        total = dict.fromkeys(COLUMNS, "")
        total.update(without=part, benchmark="all", draws=sum(int(row["draws"]) for row in mine))
        for name in ("ari", "exact", "change"):
            total[name] = f"{np.mean([float(row[name]) for row in mine]):.4f}"
        total["seconds"] = f"{_time_ratio(mine, rows):.3f}"
        kept.append(total)
        kept += [row for row in mine if _moves(row)]
    return kept


def _moves(row: dict) -> bool:
    return any(
        abs(float(row[name])) > 0 for name in ("change", "error", "change_given") if row[name] != "nan"
    )


def _time_ratio(mine: list[dict], rows: list[dict]) -> float:
    place = {_setting(row): float(row["seconds"]) for row in rows if row["without"] == WHOLE}
    timed = [(float(row["seconds"]), place[_setting(row)]) for row in mine]
    without, whole = np.array(timed).sum(axis=0)
    return float(without / whole) if whole > 0 else float("nan")


def _setting(row: dict) -> Setting:
    return row["benchmark"], row["setting"], row["candidates"]


def _beyond(rows: list[dict], sign: int) -> list[str]:
    """Name the settings that change by more than two standard errors, the largest change first."""
    found = []
    for row in rows:
        for what, k in (("change", "K unknown"), ("change_given", "K given")):
            change, error = float(row[what]), float(row[what.replace("change", "error")])
            if int(row["draws"]) > 1 and sign * change > max(STANDARD_ERRORS * error, 1e-9):
                text = f"{row['setting']} ({row['candidates']}, {k}): {change:+.3f}, s.e. {error:.3f}"
                found.append((-sign * change, text))
    return [text for _, text in sorted(found)]


def table(rows: list[dict]) -> str:
    """Return a line per part: the mean over settings, and the worst two settings."""
    lines = ["| without | ARI | time | costs more than two standard errors in |", "|---|---|---|---|"]
    for total in (row for row in rows if row["benchmark"] == "all"):
        mine = [row for row in rows if row["without"] == total["without"] and row["benchmark"] != "all"]
        worse = _beyond(mine, -1)
        shown = "; ".join(worse[:2]) + (f"; {len(worse) - 2} more" if len(worse) > 2 else "")
        lines.append(
            f"| {total['without']} | {float(total['change']):+.4f} | {float(total['seconds']):.2f} "
            f"| {shown or 'no setting'} |"
        )
    return "\n".join(lines)


def numbers(rows: list[dict]) -> str:
    """Return a line per number of the method: what halving and doubling it changes."""
    lines = ["| number | draws | ARI, halved | ARI, doubled | costs more than two standard errors in |"]
    lines.append("|---|---|---|---|---|")
    totals = {row["without"]: row for row in rows if row["benchmark"] == "all"}
    for name in dict.fromkeys(part.rpartition(" ")[0] for part in totals):
        both = [f"{name} {word}" for word in ("halved", "doubled")]
        named = []
        for part, word in zip(both, ("halved", "doubled"), strict=True):
            mine = [row for row in rows if row["without"] == part and row["benchmark"] != "all"]
            named += [f"{word}: {text}" for text in _beyond(mine, -1)]
        changes = " | ".join(f"{float(totals[part]['change']):+.4f}" for part in both)
        lines.append(
            f"| {name} | {totals[both[0]]['draws']} | {changes} | {'; '.join(named) or 'no setting'} |"
        )
    return "\n".join(lines)


def details(rows: list[dict]) -> str:
    """Return all settings in which a part matters."""
    lines = []
    for part in dict.fromkeys(row["without"] for row in rows if row["benchmark"] == "all"):
        mine = [row for row in rows if row["without"] == part and row["benchmark"] != "all"]
        for word, sign in (("worse", -1), ("better", 1)):
            found = _beyond(mine, sign)
            if found:
                lines += [f"- {part}, {word} without it:", *(f"    - {text}" for text in found)]
    return "\n".join(lines)


def written(now: list[dict], varied: list[dict], before: list[dict]) -> str:
    """Return the whole page: parts that stay, numbers that are varied, and parts that are gone."""
    head, real = (HERE / "README.head.md").read_text(), HERE / "tables.md"
    parts = [
        head,
        "## Parts that are gone\n",
        table(before),
        "\n## Parts that stay\n",
        table(now),
        "\n### Where they matter\n",
        details(now),
        "\n## The method's numbers, halved and doubled\n",
        numbers(varied),
        f"\n{real.read_text()}" if real.is_file() else "",
    ]
    return "\n".join(parts).rstrip() + "\n"
