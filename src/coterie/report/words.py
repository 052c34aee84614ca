"""What this model shows, in sentences: one paragraph a picture, with its numbers filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._text import counted, joined, number, percent, whole_percents


def _without_admitted(data: dict[str, Any]) -> str:
    """Say how many learners a picture leaves out because they do not shape the coteries."""
    if not data["admitted"]:
        return ""
    learners = counted(data["admitted"], "learner")
    were = "was" if data["admitted"] == 1 else "were"
    return f"{learners} with too few rows to shape the coteries, or admitted later, {were} left out here."


def losses_words(data: dict[str, Any]) -> list[str]:
    """Say what the heat map of losses shows."""
    inside, between = data["inside"], data["between"]
    if data["unit"] == "dissimilarity":
        cell = "the dissimilarity of two learners: how much worse their models predict each other's rows "
        cell += "than their own"
    else:
        error = data.get("error", "mean squared error")
        cell = f"the {error} of the model of one learner (row) on the rows of another (column)"
    if data["unit"] == "noise":
        cell += ". The unit is the noise level of the latter: 1 is its own model's error on rows not seen"
    first = f"Each cell is {cell}. Learners are ordered by coterie: coteries are blocks on the diagonal."
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
        "Each point is a learner, its colour and shape the coterie. Near learners have models that predict "
        "each other's rows; far ones are drawn nearer than they are."
    )
    if data["admitted"]:
        text += f" {_without_admitted(data)}"
    return [text]


def curves_words(data: dict[str, Any]) -> list[str]:
    """Say why there are so many clusters."""
    k, rule, rules = data["n_clusters"], data["rule"], data["rules"]
    result = counted(k, "coterie")
    others = {name: curve["chosen"] for name, curve in rules.items() if name != rule}
    agree = [name for name, chosen in others.items() if chosen == k]
    differ = [f"{name} ({chosen})" for name, chosen in others.items() if chosen != k]
    if rule not in rules:
        text = f"The number of coteries was given: {k}."
    else:
        decided = rules[rule]
        text = f"There are {result} because the rule {rule} says so."
        if decided["chosen"] != k:
            text = (
                f"The rule {rule} answers {decided['chosen']}, of which {result} have members of their own."
            )
        if decided["one_truth_z"] is not None:
            text += (
                " On halves of the rows several coteries do not surely predict better than one; but all rows "
                f"together rule one truth out, by {decided['one_truth_z']:.0f} standard deviations. Who "
                "belongs where is uncertain for single learners."
            )
        elif rule == "held-out":
            text += (
                " It looks for the smallest number whose coteries predict rows not seen as well as the best "
                "number does, within two standard errors. No learner may be predicted clearly worse."
            )
    if others:
        text += f" Of {counted(len(others), 'other rule')} {len(agree)} would answer the same"
        text += f"; different answers: {joined(differ, 6)}." if differ else "."
    again = data["bootstrap"]
    if again is not None and rule in rules:
        shares = dict(zip(again["n_clusters"], again["shares"], strict=True))
        text += (
            f" With rows drawn again ({again['n_replicates']} times) the held-out rule answered {k} in "
            f"{percent(shares.get(k, 0.0))} of the draws."
        )
    return [text + " The large point on each curve is that rule's answer."]


def gains_words(cards: dict[str, Any], pays: dict[str, Any]) -> list[str]:
    """Say what the picture of who gains shows."""
    error = "squared error" if cards["error"] == "RMSE" else cards["error"]
    if not pays["n_compared"]:
        return ["For no learner could an error alone be measured."]
    text = (
        f"A point is the share of a learner's {error} that others are expected to save, a line its interval "
        "at 90%. Right of 0 others help. The typical learner's gain is "
        f"{percent(pays['typical_gain'])}, from {percent(pays['least_gain'])} to "
        f"{percent(pays['most_gain'])}. All errors are on rows that no model had seen."
    )
    if any(cards["rows"][index][15] for index in cards["shown"]):
        text += f" An arrow: the interval goes on below {percent(-1.0)}."
    missing = len(cards["rows"]) - pays["n_compared"]
    if cards["left_out"]:
        text += (
            f" The picture shows the {len(cards['shown'])} largest and smallest gains; search for the others."
        )
    if missing:
        text += f" {counted(missing, 'learner')} had no error alone to compare with."
    return [text]


def membership_words(data: dict[str, Any]) -> list[str]:
    """Say how sure the coteries are."""
    if not data["learners"]:
        times, who = f"{data['n_replicates']} times", counted(data["n_learners"], "learner")
        return [
            f"Every learner's rows were drawn again {times}. For each of {who} its own coterie predicted it "
            "best in 100% of the draws."
        ]
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
        text += " The picture shows the least sure; the table has all."
    return [text]


def region_words(pair: dict[str, Any]) -> str:
    """Say where two coteries disagree most."""
    if not pair["regions"]:
        return ""
    region = pair["regions"][0]
    first, second = pair["clusters"]
    more, less = (first, second) if region["difference"] >= 0 else (second, first)
    does = "predicts" if pair["label"] is None else f"gives {pair['label']!r}"
    where = "everywhere" if region["where"] == "everywhere" else f"where {region['where']}"
    return (
        f"Furthest apart {where} ({percent(region['share'])} of the rows): there coterie {more} {does} "
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
    label = furthest["label"]
    what = "predictions" if label is None else f"probabilities of {label!r}"
    text += (
        f" Furthest apart are coteries {first} and {second}, whose {what} differ by "
        f"{number(furthest['disagreement'])} (root mean square)"
    )
    if furthest["noise"] > 0:
        text += f", {number(furthest['disagreement'] / furthest['noise'], 2)} times the noise"
    names = [each["name"] for each in furthest["predictors"] if round(100 * each["importance"])]
    text += f". The difference depends most on {joined(names)}." if names else "."
    if len(pairs) < data["n_pairs"]:
        text += f" Shown are {len(pairs)} of {data['n_pairs']} pairs: coteries with their nearest."
    return [text]


def weights_words(data: dict[str, Any]) -> list[str]:
    """Say what the predictions are made of."""
    parts = [
        f"{whole}% from {name}"
        for name, whole in zip(data["names"], whole_percents(data["mean"]), strict=True)
        if whole
    ]
    whose = "Every learner takes" if data["alike"] else "On average a learner takes"
    text = (
        "A learner's prediction is a weighted mean of its own model and of models of others. The weights "
        f"were learnt on rows not seen. {whose} {', '.join(parts)}."
    )
    if data["left_out"] and not data["alike"]:
        text += f" The picture shows {len(data['learners'])} learners from both ends."
    return [text]
