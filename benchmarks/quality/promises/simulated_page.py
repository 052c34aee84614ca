"""Tables of simulated federations: are verdicts right as often as they should be?"""

from __future__ import annotations

import math

from cells import Line, markdown, mean_and_error, number, per_cent
from federations import KINDS

# What the project asks of its verdicts: at most this rate of false ones, at least this share of large gains.
MOST_FALSE, LEAST_FOUND = 0.10, 0.80
# Power counts where at least this share of the learners gain.
GAINERS = 0.1


def false_rate(lines: list[Line], wrong: str, stated: str) -> tuple[float, float]:
    """Return the mean over federations of V / max(R, 1), and its standard error."""
    return mean_and_error(float(line[wrong]) / max(float(line[stated]), 1) for line in lines)


def power(lines: list[Line]) -> tuple[int, float]:
    """Return how many large gains there are, and which share of them is told to collaborate."""
    enough = [line for line in lines if int(line["gainers"]) >= GAINERS * int(line["compared"])]
    large, found = (sum(int(line[name]) for line in enough) for name in ("large", "found"))
    return large, found / large if large else math.nan


def simulated_row(lines: list[Line]) -> list[str]:
    """Return the numbers of one kind and form, those that break a bound in bold."""
    stated, stay = false_rate(lines, "false", "told"), false_rate(lines, "stay_false", "stay")
    large, found = power(lines)
    promised, realised = (
        mean_and_error(number(line, n) for line in lines)[0] for n in ("promised", "realised")
    )
    bounded, inside = (sum(int(line[name]) for line in lines) for name in ("bounded", "inside"))
    total = sum(int(line["compared"]) for line in lines)
    shares = [sum(int(line[name]) for line in lines) / max(total, 1) for name in ("told", "stay", "gainers")]
    return [
        str(len(lines)),
        *(per_cent(share) for share in shares),
        f"{per_cent(stated[0], stated[0] > MOST_FALSE)} ± {per_cent(stated[1])}",
        f"{per_cent(stay[0], stay[0] > MOST_FALSE)} ± {per_cent(stay[1])}",
        f"{per_cent(found, found < LEAST_FOUND)} of {large}",
        f"{per_cent(promised)} / {per_cent(realised)}",
        per_cent(inside / bounded if bounded else math.nan),
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


def summary_of_kinds(lines: list[Line], kinds: list[str]) -> str:
    """Say in one paragraph how one form keeps the bounds over all kinds."""
    rates = {
        name: [false_rate([line for line in lines if line["kind"] == kind], *columns)[0] for kind in kinds]
        for name, columns in (("collaborate", ("false", "told")), ("stay alone", ("stay_false", "stay")))
    }
    kept = {name: sum(rate <= MOST_FALSE for rate in each) for name, each in rates.items()}
    large, found = power(lines)
    tiny, advised, worse = (
        sum(int(line[name]) for line in lines) for name in ("tiny", "tiny_told", "tiny_worse")
    )
    text = [
        f"False *collaborate* verdicts are at most 10 % in {kept['collaborate']} of {len(kinds)} kinds,",
        f"the worst rate is {per_cent(max(rates['collaborate']))} %. False *stay alone* verdicts:",
        f"{kept['stay alone']} of {len(kinds)} kinds, the worst rate is",
        f"{per_cent(max(rates['stay alone']))} %.",
    ]
    if large:
        text.append(f"{100 * found:.0f} % of {large} large gains are found.")
    if tiny:
        text.append(
            f"Of {tiny} learners without a model of their own, {advised} have the verdict *collaborate*;"
        )
        text.append(f"{worse} predict with others worse than the mean of their own responses does.")
    return " ".join(text)


def kinds_part(lines: list[Line]) -> list[str]:
    """Return what the kinds are, in the words of their functions."""
    seen = {line["kind"] for line in lines}
    said = [
        [kind, (made.__doc__ or "").split("\n\n")[0].strip()] for kind, made in KINDS.items() if kind in seen
    ]
    return markdown(["kind", "federations"], said)


def simulated_part(lines: list[Line]) -> list[str]:
    """Return the tables of simulated federations, one for each set of candidates and form."""
    text = [*kinds_part(lines), ""]
    for candidates in sorted({line["candidates"] for line in lines}, reverse=True):
        for form in dict.fromkeys(line["form"] for line in lines):
            mine = [line for line in lines if (line["candidates"], line["form"]) == (candidates, form)]
            kinds = [kind for kind in KINDS if any(line["kind"] == kind for line in mine)]
            if not mine:
                continue
            rows = [[kind, *simulated_row([line for line in mine if line["kind"] == kind])] for kind in kinds]
            rows.append(["all", *simulated_row(mine)])
            text += [f"### {form}, {candidates} candidates", "", summary_of_kinds(mine, kinds), ""]
            text += [*markdown(["kind", *SIMULATED_HEAD], rows), ""]
    return text
