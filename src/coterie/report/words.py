"""What this model shows, in sentences: one paragraph a picture, with its numbers filled in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie.displays._look import counted

MINUS = "\N{MINUS SIGN}"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number as a short text; a dash where there is none."""
    if value is None or not np.isfinite(value):
        return "\N{EN DASH}"
    if value and not 1e-3 <= abs(value) < 1e6:
        return f"{value:.{digits - 1}e}".replace("-", MINUS)
    places = max(0, digits - 1 - int(np.floor(np.log10(abs(value))))) if value else 0
    return f"{value:,.{min(places, 6)}f}".replace("-", MINUS)


def percent(share: float | None, *, sign: bool = False) -> str:
    """Return a share as a percentage; a dash where there is none."""
    if share is None or not np.isfinite(share):
        return "\N{EN DASH}"
    if share < -9.99:
        return f"< {MINUS}999%"
    whole = round(100 * share)
    return f"{whole:{'+' if sign and whole else ''}d}%".replace("-", MINUS)


def joined(names: Sequence[str], most: int = 3) -> str:
    """Join names for a sentence, the rest as a count."""
    shown, rest = list(names[:most]), len(names) - most
    if rest > 0:
        return f"{', '.join(shown)} and {rest} more"
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else "".join(shown)


def _without_admitted(data: dict[str, Any]) -> str:
    if not data["admitted"]:
        return ""
    learners = counted(data["admitted"], "learner")
    were = "was" if data["admitted"] == 1 else "were"
    return f"{learners} with too few rows to shape the coteries, or admitted later, {were} left out here."


def losses_words(data: dict[str, Any]) -> list[str]:
    """Say what the heat map of losses shows."""
    inside, between = data["inside"], data["between"]
    if data["unit"] == "similarity":
        first = (
            "Each cell is the similarity of two learners, 1 when their models predict each other's rows "
            "as well as their own. Learners are ordered by coterie: coteries are blocks on the diagonal."
        )
    else:
        unit = (
            ", in units of the latter's noise level: 1 is its own model's error on rows not seen"
            if data["unit"] == "noise"
            else ""
        )
        first = (
            f"Each cell is the mean squared error of the model of one learner (row) on the rows of another "
            f"(column){unit}. Learners are ordered by coterie: coteries are blocks on the diagonal."
        )
    if between is None:
        second = f"There is one coterie; its typical cell is {number(inside)}." if inside is not None else ""
    elif inside is None:
        second = f"Every coterie has one member; between them the typical cell is {number(between)}."
    else:
        second = f"Inside the coteries the typical cell is {number(inside)}, between them {number(between)}"
        low, high = sorted((inside, between))
        times = high / low if low > 0 else np.inf
        second += f": {number(times, 2)} times apart." if np.isfinite(times) and times >= 1.1 else "."
    third = (
        "There are too many learners to show each: a cell is the typical value of a block of learners of a "
        "coterie, whom it names."
        if data["binned"]
        else ""
    )
    return [" ".join(part for part in (first, second, third, _without_admitted(data)) if part)]


def map_words(data: dict[str, Any]) -> list[str]:
    """Say what the map of learners shows."""
    text = (
        "Each point is a learner, its colour and shape the coterie. One map places learners by the distance "
        "of their models, far ones drawn nearer. The other is the space in which they were clustered, where "
        "learners who agree fall onto one another; it has "
        f"{counted(data['embedding_columns'], 'column')}, of whose spread the two directions shown hold "
        f"{percent(data['embedding_share'])}."
    )
    if data["admitted"]:
        text += f" {_without_admitted(data)}"
    if data["apart"] is None:
        return [text + " There is one coterie only, so that nothing separates them."]
    clear = np.array([-1.0 if value is None else value for value in data["apart"]])
    doubtful = [data["learners"][p] for p in np.argsort(clear, kind="stable") if clear[p] < 0.5]
    if doubtful:
        between = "lies" if len(doubtful) == 1 else "lie"
        return [f"{text} Least clearly placed: {joined(doubtful)}, who {between} between coteries."]
    return [f"{text} Every learner lies clearly nearer to its own coterie than to any other."]


def curves_words(data: dict[str, Any]) -> list[str]:
    """Say why there are so many clusters."""
    k, rule = data["n_clusters"], data["rule"]
    found = counted(k, "coterie")
    others = [curve for curve in data["curves"] if not curve["decided"]]
    agree = [curve["rule"] for curve in others if curve["chosen"] == k]
    differ = [f"{curve['rule']} ({curve['chosen']})" for curve in others if curve["chosen"] != k]
    decided = [curve for curve in data["curves"] if curve["decided"]]
    if not decided:
        text = f"The number of coteries was given: {k}."
    else:
        text = f"There are {found} because the rule {rule} says so."
        if decided[0]["chosen"] != k:
            text = (
                f"The rule {rule} answers {decided[0]['chosen']}, of which {found} have members of their own."
            )
        if decided[0]["surprise"] is not None:
            text += (
                " On halves of the rows several coteries do not surely predict better than one; but all rows "
                f"together rule one truth out, by {decided[0]['surprise']:.0f} standard deviations. Who "
                "belongs where is uncertain for single learners."
            )
        elif rule == "held-out":
            text += (
                " It looks for the smallest number whose coteries predict rows that they have not seen as "
                "well as the best number does, within two standard errors, and for no learner clearly worse."
            )
    if others:
        text += f" Of {counted(len(others), 'other rule')} {len(agree)} would answer the same"
        text += f"; different answers: {joined(differ, 6)}." if differ else "."
    if data["again"] is not None and decided:
        again = data["again"]
        shares = dict(zip(again["n_clusters"], again["shares"], strict=True))
        text += (
            f" With rows drawn again ({again['n_replicates']} times) the held-out rule answered {k} in "
            f"{percent(shares.get(k, 0.0))} of the draws."
        )
    return [text + " The large point on each curve is that rule's answer."]


def gains_words(data: dict[str, Any], verdicts: dict[str, int] | None) -> list[str]:
    """Say whether it pays."""
    text = (
        "Each row is a learner: its error with its coterie (coloured) and with all learners (cross) as a "
        "share of its error alone (the line at 100%). Left of the line is better. All errors are on rows "
        "that no model had seen."
    )
    saved = data["saved"]
    if not saved["n"]:
        return [f"{text} For no learner could an error alone be measured."]
    text += (
        f" {saved['better']} of {counted(saved['n'], 'learner')} predict better with the coterie than alone; "
        f"the typical saving is {percent(saved['median'])} of the error (from {percent(saved['least'])} to "
        f"{percent(saved['most'])})."
    )
    if saved["all_median"] is not None:
        everybody = percent(saved["all_median"])
        text += f" With all learners the typical error would be {everybody} of the error alone."
    if verdicts:
        text += " Verdicts: " + ", ".join(f"{count} {name}" for name, count in verdicts.items()) + "."
    if data["left_out"]:
        text += (
            f" The picture shows the {len(data['learners'])} with the largest and the smallest gains; "
            f"{data['left_out']} between them stand in the table below."
        )
    if data["not_measured"]:
        text += f" {counted(data['not_measured'], 'learner')} had no error alone to compare with."
    return [text]


def membership_words(data: dict[str, Any]) -> list[str]:
    """Say how sure the coteries are."""
    text = (
        f"Every learner's rows were drawn again {data['n_replicates']} times; each bar shows how often each "
        f"coterie predicted the learner best. For {data['sure']} of {counted(data['n_learners'], 'learner')} "
        "it was their own in at least 95% of the draws."
    )
    unsure = [
        f"{name} ({percent(own)})"
        for name, own in zip(data["learners"], data["own"], strict=True)
        if own is not None and own < 0.95
    ]
    text += f" Least sure: {joined(unsure)}." if unsure else ""
    if data["left_out"]:
        text += f" The picture shows the {len(data['learners'])} least sure; the table has all."
    return [text]


def region_words(pair: dict[str, Any]) -> str:
    """Say where two coteries disagree most."""
    if not pair["regions"]:
        return ""
    region = pair["regions"][0]
    first, second = pair["clusters"]
    more, less = (first, second) if region["difference"] >= 0 else (second, first)
    where = "everywhere" if region["where"] == "everywhere" else f"where {region['where']}"
    return (
        f"Furthest apart {where} ({percent(region['share'])} of the rows): there coterie {more} predicts "
        f"{number(abs(region['difference']))} more than coterie {less}."
    )


def differences_words(data: dict[str, Any]) -> list[str]:
    """Say how the coteries differ."""
    pairs = data["pairs"]
    text = (
        "Two coteries' models predict the same rows; the line is the mean difference along the predictor "
        "that tells them apart best, the band the size of the noise."
    )
    furthest = pairs[0]
    first, second = furthest["clusters"]
    text += (
        f" Furthest apart are coteries {first} and {second}, whose predictions differ by "
        f"{number(furthest['disagreement'])} (root mean square)"
    )
    if furthest["noise"] > 0:
        text += f", {number(furthest['disagreement'] / furthest['noise'], 2)} times the noise"
    text += f"; {percent(min(furthest['predictors'][0]['importance'], 1.0))} of that goes with "
    text += f"{furthest['predictors'][0]['name']}."
    if len(pairs) < data["n_pairs"]:
        text += f" Shown are {len(pairs)} of {data['n_pairs']} pairs: coteries with their nearest."
    return [text]


def weights_words(data: dict[str, Any]) -> list[str]:
    """Say what the predictions are made of."""
    parts = [
        f"{percent(share)} {name}"
        for name, share in zip(data["names"], data["mean"], strict=True)
        if share is not None and round(100 * share)
    ]
    text = (
        "A learner's prediction is a weighted mean of its own model, of coteries coarse and fine, and of all "
        f"learners' model; the weights were learnt on rows not seen. On average: {', '.join(parts)}."
    )
    if data["left_out"]:
        text += f" The picture shows {len(data['learners'])} learners from both ends."
    return [text]


def answer_words(facts: dict[str, Any]) -> list[str]:
    """Say in two or three sentences what was found."""
    learners, k = counted(facts["n_learners"], "learner"), facts["n_clusters"]
    sizes = facts["sizes"]
    if k == 1:
        text = (
            f"The {learners} are one coterie: no split of them predicts better."
            if facts["ruled"]
            else (f"The {learners} are one coterie, as asked for.")
        )
    else:
        alone = sum(size == 1 for size in sizes)
        several = [size for size in sizes if size > 1]
        members = f"of {joined([str(size) for size in several], 8)} members" if several else ""
        single = f"{counted(alone, 'learner')} by {'itself' if alone == 1 else 'themselves'}" if alone else ""
        parts = " and ".join(part for part in (members, single) if part)
        text = f"The {learners} fall into {counted(k, 'coterie')}, {parts}."
    words = [text]
    saved = facts["saved"]
    if saved is not None and saved["n"]:
        words.append(
            f"Learning with the coterie lowers the error of {saved['better']} of {saved['n']}; "
            f"the typical saving is {percent(saved['median'])}."
        )
    if facts["strangers"]:
        who = "Learner {} does" if len(facts["strangers"]) == 1 else "Learners {} do"
        words.append(f"{who.format(joined(facts['strangers']))} not belong to any coterie.")
    return words
