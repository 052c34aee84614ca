"""Tables of real data: do learners get on test rows what they were promised?"""

from __future__ import annotations

import math

import numpy as np
from cells import Line, markdown, mean_and_error, per_cent

# At least this share of the gain of all learners is caught; a difference beyond so many errors is sure.
LEAST_CAUGHT, SURE = 0.80, 2.0


def _numbers(line: Line, name: str) -> np.ndarray:
    return np.array(line[name].split(), dtype=float)


def _letters(line: Line) -> np.ndarray:
    return np.array(list(line["verdicts"]))


def table_numbers(lines: list[Line]) -> dict[str, float]:
    """Return what the splits of one table show about one form.

    A learner's promises and realised gains are averaged over the splits that tell it to collaborate. The
    standard error of their difference has two parts, both over learners: that of the differences, and that
    of the measured log ratios on which all promises of a table rest together.
    """
    letters = np.array([_letters(line) for line in lines])
    promised, measured, realised, sure = (
        np.array([_numbers(line, name) for line in lines])
        for name in ("promised", "measured", "realised", "sure")
    )
    compared, stated = letters != "x", letters == "c"
    excess, gain = np.where(stated, promised - realised, np.nan), np.where(stated, realised, np.nan)
    someone = stated.any(axis=0)
    off, shared = (
        mean_and_error(np.nanmean(np.where(stated, part, np.nan)[:, someone], axis=0))
        if someone.any()
        else (math.nan, math.nan)
        for part in (excess, measured)
    )
    kept = 1 - float(promised[stated].mean()) if stated.any() else math.nan
    total = float(realised[compared].sum())
    stay = letters == "s"
    return {
        "learners": letters.shape[1],
        "compared": int(compared.sum()),
        "told": int(stated.sum()),
        "stay": int(stay.sum()),
        "promised": float(promised[stated].mean()) if stated.any() else math.nan,
        "gain": float(np.nanmean(gain)) if stated.any() else math.nan,
        "median": float(np.nanmedian(gain)) if stated.any() else math.nan,
        "worse": int((sure[stated] < -SURE).sum()),
        "stay_better": int((sure[stay] > SURE).sum()),
        "stay_gain": float(realised[stay].mean()) if stay.any() else math.nan,
        "all_gain": total / max(int(compared.sum()), 1),
        "caught": float(realised[stated].sum()) / total if total > 0 else math.nan,
        "off": off[0],
        "off_se": math.hypot(off[1], kept * shared[1]),
    }


def table_row(n: dict[str, float]) -> list[str]:
    """Return the cells of one table, those that break a bound in bold."""
    doubt = abs(n["off"]) > SURE * n["off_se"]
    return [
        f"{n['told']:.0f}, {n['stay']:.0f} of {n['compared']:.0f}",
        f"{per_cent(n['promised'])} / {per_cent(n['gain'], n['gain'] <= 0)}",
        per_cent(n["median"]),
        f"{per_cent(n['off'], doubt)} ± {per_cent(n['off_se'])}",
        f"{n['worse']:.0f}",
        f"{per_cent(n['stay_gain'], n['stay_gain'] > 0)}, {n['stay_better']:.0f}",
        per_cent(n["all_gain"]),
        per_cent(n["caught"], n["caught"] < LEAST_CAUGHT),
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
    stated, worse = (sum(n[name] for n in each) for name in ("told", "worse"))
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
            f"{positive} of {some} tables. Of these {stated:.0f} learners and splits, {worse:.0f}",
            f"({100 * worse / max(stated, 1):.1f} %) are surely worse on test rows. Promised minus realised",
            f"gain is within two standard errors on {kept} of {judged} tables. They get at least 80 % of",
            f"the gain of all learners on {caught} of {able} tables{share}.",
        ]
    )


def numbers_by_table(lines: list[Line]) -> dict[str, dict[str, float]]:
    """Return the numbers of each table, for lines of one form."""
    names = dict.fromkeys(line["table"] for line in lines)
    return {name: table_numbers([line for line in lines if line["table"] == name]) for name in names}


def tables_part(lines: list[Line]) -> list[str]:
    """Return the tables of real data, one for each form."""
    text = []
    for form in dict.fromkeys(line["form"] for line in lines):
        numbers = numbers_by_table([line for line in lines if line["form"] == form])
        rows = [[name, *table_row(n)] for name, n in numbers.items()]
        text += [f"### {form}", "", summary_of_tables(numbers), ""]
        text += [*markdown(["table", *TABLE_HEAD], rows), ""]
    return text
