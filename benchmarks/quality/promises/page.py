"""From results to the tables of the page."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

Line = dict[str, Any]

# What the project asks of its verdicts.
MOST_FALSE, LEAST_FOUND = 0.10, 0.80
MOST_WORSE, LEAST_CAUGHT, SURE = 0.03, 0.80, 2.0
# Power counts where at least this share of the learners gain.
GAINERS = 0.1


def read(path: Path) -> list[Line]:
    """Return the lines of a file of results; none where there is no such file."""
    if not path.is_file():
        return []
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def _mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean of values and its standard error."""
    known = np.array([value for value in values if math.isfinite(value)])
    if not len(known):
        return math.nan, math.nan
    return float(known.mean()), float(known.std(ddof=1) / math.sqrt(len(known))) if len(
        known
    ) > 1 else math.nan


def _number(line: Line, name: str) -> float:
    return float(line[name]) if line[name] != "" else math.nan


def _cell(value: float, shape: str, broken: bool = False) -> str:
    text = "-" if math.isnan(value) else format(value, shape)
    return f"**{text}**" if broken else text


def _per_cent(value: float, broken: bool = False) -> str:
    return _cell(100 * value, ".1f", broken)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    return [
        "| " + " | ".join(head) + " |",
        "|---" * len(head) + "|",
        *("| " + " | ".join(r) + " |" for r in rows),
    ]


def false_rate(lines: list[Line], wrong: str, told: str) -> tuple[float, float]:
    """Return the mean over federations of V / max(R, 1), and its standard error."""
    return _mean_and_error(float(line[wrong]) / max(float(line[told]), 1) for line in lines)


def power(lines: list[Line]) -> tuple[int, float]:
    """Return how many large gains there are, and which share of them is told to collaborate."""
    enough = [line for line in lines if int(line["gainers"]) >= GAINERS * int(line["compared"])]
    large, found = (sum(int(line[name]) for line in enough) for name in ("large", "found"))
    return large, found / large if large else math.nan


def simulated_row(lines: list[Line]) -> list[str]:
    """Return the numbers of one kind and form, those that break a bound in bold."""
    told, stay = false_rate(lines, "false", "told"), false_rate(lines, "stay_false", "stay")
    large, found = power(lines)
    promised, realised = (
        _mean_and_error(_number(line, n) for line in lines)[0] for n in ("promised", "realised")
    )
    bounded, inside = (sum(int(line[name]) for line in lines) for name in ("bounded", "inside"))
    total = sum(int(line["compared"]) for line in lines)
    shares = [sum(int(line[name]) for line in lines) / max(total, 1) for name in ("told", "stay", "gainers")]
    return [
        str(len(lines)),
        *(_per_cent(share) for share in shares),
        f"{_per_cent(told[0], told[0] > MOST_FALSE)} ± {_per_cent(told[1])}",
        f"{_per_cent(stay[0], stay[0] > MOST_FALSE)} ± {_per_cent(stay[1])}",
        f"{_per_cent(found, found < LEAST_FOUND)} of {large}",
        f"{_per_cent(promised)} / {_per_cent(realised)}",
        _per_cent(inside / bounded if bounded else math.nan),
    ]


SIMULATED_HEAD = [
    "federations",
    "collaborate",
    "stay alone",
    "truly gain",
    "false collaborate",
    "false stay alone",
    "large gains found",
    "promised / true gain",
    "true gain inside interval",
]


def simulated_part(lines: list[Line]) -> list[str]:
    """Return the tables of simulated federations, one for each set of candidates and form."""
    text = []
    for candidates in dict.fromkeys(line["candidates"] for line in lines):
        for form in dict.fromkeys(line["form"] for line in lines):
            mine = [line for line in lines if (line["candidates"], line["form"]) == (candidates, form)]
            if not mine:
                continue
            kinds = dict.fromkeys(line["kind"] for line in mine)
            rows = [[kind, *simulated_row([line for line in mine if line["kind"] == kind])] for kind in kinds]
            rows.append(["all", *simulated_row(mine)])
            text += [f"### {form}, {candidates} candidates", "", *_table(["kind", *SIMULATED_HEAD], rows), ""]
    return text


def _numbers(line: Line, name: str) -> np.ndarray:
    return np.array(line[name].split(), dtype=float)


def _letters(line: Line) -> np.ndarray:
    return np.array(list(line["verdicts"]))


def table_numbers(lines: list[Line]) -> dict[str, float]:
    """Return what the splits of one table show about one form.

    A learner's promises and realised gains are averaged over the splits that tell it to collaborate; the
    standard error is over learners.
    """
    letters = np.array([_letters(line) for line in lines])
    promised, realised, sure = (
        np.array([_numbers(line, name) for line in lines]) for name in ("promised", "realised", "sure")
    )
    compared, told = letters != "x", letters == "c"
    excess, gain = np.where(told, promised - realised, np.nan), np.where(told, realised, np.nan)
    someone = told.any(axis=0)
    off = _mean_and_error(np.nanmean(excess[:, someone], axis=0)) if someone.any() else (math.nan, math.nan)
    total = float(realised[compared].sum())
    stay = letters == "s"
    return {
        "learners": letters.shape[1],
        "compared": int(compared.sum()),
        "told": int(told.sum()),
        "stay": int(stay.sum()),
        "promised": float(promised[told].mean()) if told.any() else math.nan,
        "gain": float(np.nanmean(gain)) if told.any() else math.nan,
        "median": float(np.nanmedian(gain)) if told.any() else math.nan,
        "worse": int((sure[told] < -SURE).sum()),
        "stay_better": int((sure[stay] > SURE).sum()),
        "stay_gain": float(realised[stay].mean()) if stay.any() else math.nan,
        "all_gain": total / max(int(compared.sum()), 1),
        "caught": float(realised[told].sum()) / total if total > 0 else math.nan,
        "off": off[0],
        "off_se": off[1],
    }


def table_row(n: dict[str, float]) -> list[str]:
    """Return the cells of one table, those that break a bound in bold."""
    doubt = abs(n["off"]) > SURE * n["off_se"]
    return [
        f"{n['told']:.0f}, {n['stay']:.0f} of {n['compared']:.0f}",
        f"{_per_cent(n['promised'])} / {_per_cent(n['gain'], n['gain'] <= 0)}",
        _per_cent(n["median"]),
        f"{_per_cent(n['off'], doubt)} ± {_per_cent(n['off_se'])}",
        f"{n['worse']:.0f}",
        f"{_per_cent(n['stay_gain'], n['stay_gain'] > 0)}, {n['stay_better']:.0f}",
        _per_cent(n["all_gain"]),
        _per_cent(n["caught"], n["caught"] < LEAST_CAUGHT),
    ]


TABLE_HEAD = [
    "collaborate, stay alone",
    "promised / realised gain",
    "median realised",
    "promised - realised",
    "surely worse",
    "stay alone: gain, surely better",
    "gain of all",
    "share of it caught",
]


def summary_of_tables(numbers: dict[str, dict[str, float]]) -> str:
    """Say in one paragraph how one form keeps the bounds over all tables."""
    each = list(numbers.values())
    told, worse = (sum(n[name] for n in each) for name in ("told", "worse"))
    positive = sum(n["gain"] > 0 for n in each)
    kept = sum(abs(n["off"]) <= SURE * n["off_se"] for n in each)
    judged = sum(math.isfinite(n["off_se"]) for n in each)
    caught = sum(n["caught"] >= LEAST_CAUGHT for n in each)
    able = sum(math.isfinite(n["caught"]) for n in each)
    some = sum(n["told"] > 0 for n in each)
    saved = sum(n["gain"] * n["told"] for n in each if n["told"])
    total = sum(n["all_gain"] * n["compared"] for n in each)
    # A table on which all learners together lose leaves nothing to catch.
    share = "" if total <= 0 else f", and over all tables together {100 * saved / total:.0f} %"
    return " ".join(
        [
            "The mean test gain of learners whose verdict is *collaborate* is positive on",
            f"{positive} of {some} tables. Of these {told:.0f} learners and splits, {worse:.0f}",
            f"({100 * worse / max(told, 1):.1f} %) are surely worse on test rows. Promised minus realised",
            f"gain is within two standard errors on {kept} of {judged} tables. They get at least 80 % of",
            f"the gain of all learners on {caught} of {able} tables{share}.",
        ]
    )


def tables_part(lines: list[Line]) -> list[str]:
    """Return the tables of real data, one for each form."""
    text = []
    for form in dict.fromkeys(line["form"] for line in lines):
        mine = [line for line in lines if line["form"] == form]
        numbers = {
            name: table_numbers([line for line in mine if line["table"] == name])
            for name in dict.fromkeys(line["table"] for line in mine)
        }
        rows = [[name, *table_row(n)] for name, n in numbers.items()]
        text += [f"### {form}", "", summary_of_tables(numbers), "", *_table(["table", *TABLE_HEAD], rows), ""]
    return text


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
