"""What this model shows, in sentences: one paragraph a picture, with its numbers filled in."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._text import counted, joined, number, percent, whole_percents


def _without_admitted(data: dict[str, Any]) -> str:
    """Say how many learners a picture leaves out because they do not shape the coteries; else nothing."""
    if not data["admitted"]:
        return ""
    learners = counted(data["admitted"], "learner")
    were = "was" if data["admitted"] == 1 else "were"
    return f"{learners} with too few rows to shape the coteries, or admitted later, {were} left out here."


def losses_words(data: dict[str, Any]) -> list[str]:
    """Say what the heat map of losses shows, with the typical cells inside and between coteries.

    ``data`` is what `losses_picture` returned; its ``unit`` is a loss, a loss in units of noise (the error of
    the learner's own model on rows not seen), or a dissimilarity. ``inside`` and ``between`` may be None.
    """
    inside, between = data["inside"], data["between"]
    if data["unit"] == "dissimilarity":
        cell_text = (
            "the dissimilarity of two learners: how much worse their models predict each other's rows "
        )
        cell_text += "than their own"
    else:
        error = data.get("error", "mean squared error")
        cell_text = f"the {error} of the model of one learner (row) on the rows of another (column)"
    if data["unit"] == "noise":
        cell_text += (
            ". The unit is the noise level of the latter: 1 is its own model's error on rows not seen"
        )
    what_cells_are = (
        f"Each cell is {cell_text}. Learners are ordered by coterie: coteries are blocks on the diagonal."
    )
    if between is None:
        typical_cells = (
            f"There is one coterie; its typical cell is {number(inside)}." if inside is not None else ""
        )
    elif inside is None:
        typical_cells = f"Every coterie has one member; between them the typical cell is {number(between)}."
    else:
        typical_cells = (
            f"Inside the coteries the typical cell is {number(inside)}, between them {number(between)}"
        )
        low, high = sorted((inside, between))
        ratio = high / low if low > 0 else np.inf
        typical_cells += f": {number(ratio, 2)} times apart." if np.isfinite(ratio) and ratio >= 1.1 else "."
    blocks_text = (
        "There are too many learners to show each: a cell is the typical value of a block of learners of a "
        "coterie, whom it names."
        if data["binned"]
        else ""
    )
    return [
        " ".join(
            part for part in (what_cells_are, typical_cells, blocks_text, _without_admitted(data)) if part
        )
    ]


def map_words(data: dict[str, Any]) -> list[str]:
    """Say how to read the map of learners, and who is not on it; ``data`` is what `map_picture` returned."""
    text = (
        "Each point is a learner, its colour and shape the coterie. Near learners have models that predict "
        "each other's rows; far ones are drawn nearer than they are."
    )
    if data["admitted"]:
        text += f" {_without_admitted(data)}"
    return [text]


def curves_words(data: dict[str, Any]) -> list[str]:
    """Say which rule chose the number of coteries, why, and what other rules and the bootstrap answer.

    ``data`` has the ``rule`` that decided, the curve of each of the ``rules``, and the shares of numbers in
    the ``bootstrap`` (fits with rows drawn again; None: there was none). A rule not among the rules: the user
    gave the number. ``one_truth_z`` says by how many standard errors all rows rule one coterie out.
    """
    n_coteries, rule, rules = data["n_clusters"], data["rule"], data["rules"]
    coteries_text = counted(n_coteries, "coterie")
    choice_by_rule = {name: curve["chosen"] for name, curve in rules.items() if name != rule}
    agree = [name for name, chosen in choice_by_rule.items() if chosen == n_coteries]
    differ = [f"{name} ({chosen})" for name, chosen in choice_by_rule.items() if chosen != n_coteries]
    if rule not in rules:
        text = f"The number of coteries was given: {n_coteries}."
    else:
        deciding_curve = rules[rule]
        text = f"There are {coteries_text} because the rule {rule} says so."
        if deciding_curve["chosen"] != n_coteries:
            text = (
                f"The rule {rule} answers {deciding_curve['chosen']}, of which {coteries_text} have members "
                "of their own."
            )
        if deciding_curve["one_truth_z"] is not None:
            text += (
                " On halves of the rows several coteries do not surely predict better than one; but all rows "
                f"together rule one truth out, by {deciding_curve['one_truth_z']:.0f} standard deviations. "
                "Who belongs where is uncertain for single learners."
            )
        elif rule == "held-out":
            text += (
                " It looks for the smallest number whose coteries predict rows not seen as well as the best "
                "number does, within two standard errors. No learner may be predicted clearly worse."
            )
    if choice_by_rule:
        text += f" Of {counted(len(choice_by_rule), 'other rule')} {len(agree)} would answer the same"
        text += f"; different answers: {joined(differ, 6)}." if differ else "."
    bootstrap = data["bootstrap"]
    if bootstrap is not None and rule in rules:
        shares = dict(zip(bootstrap["n_clusters"], bootstrap["shares"], strict=True))
        text += (
            f" With rows drawn again ({bootstrap['n_replicates']} times) the held-out rule answered "
            f"{n_coteries} in {percent(shares.get(n_coteries, 0.0))} of the draws."
        )
    return [text + " The large point on each curve is that rule's answer."]


def gains_words(cards: dict[str, Any], pays: dict[str, Any]) -> list[str]:
    """Say what the picture of gains shows: the scale, the typical gain, and who is not in it.

    ``cards`` is what `learner_cards` returned, ``pays`` the part of the summary on gains. Entry 15 of a
    card: its interval ends below the scale.
    """
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
    """Say how often resampled rows put the learners into their own coterie, and who is least sure.

    ``data`` is what `membership_picture` returned. Without learners in it, all of them are sure.
    """
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
    """Say in which region of the predictors two coteries' predictions differ most, and by how much.

    ``pair`` is one of the pairs of `differences_picture`.
    """
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
    """Say how far the coteries furthest apart differ, in which predictors, and which pairs are shown.

    ``data`` is what `differences_picture` returned; its pairs are sorted by how far they are apart.
    """
    pairs = data["pairs"]
    text = (
        "Two coteries' models predict the same rows; the line is the mean difference along the predictor "
        "that tells them apart best, the band the size of the noise."
    )
    furthest = pairs[0]
    first, second = furthest["clusters"]
    label = furthest["label"]
    quantity = "predictions" if label is None else f"probabilities of {label!r}"
    text += (
        f" Furthest apart are coteries {first} and {second}, whose {quantity} differ by "
        f"{number(furthest['disagreement'])} (root mean square)"
    )
    if furthest["noise"] > 0:
        text += f", {number(furthest['disagreement'] / furthest['noise'], 2)} times the noise"
    names = [
        predictor["name"] for predictor in furthest["predictors"] if round(100 * predictor["importance"])
    ]
    text += f". The difference depends most on {joined(names)}." if names else "."
    if len(pairs) < data["n_pairs"]:
        text += f" Shown are {len(pairs)} of {data['n_pairs']} pairs: coteries with their nearest."
    return [text]


def weights_words(data: dict[str, Any]) -> list[str]:
    """Say which shares of a prediction come from the learner, its coterie and all, on average.

    ``data`` is what `weights_picture` returned. The weights were fitted on held-out rows, for on rows that
    models were fitted on the own model would look too good.
    """
    source_texts = [
        f"{percent_of_source}% from {name}"
        for name, percent_of_source in zip(data["names"], whole_percents(data["mean"]), strict=True)
        if percent_of_source
    ]
    whose = "Every learner takes" if data["alike"] else "On average a learner takes"
    text = (
        "A learner's prediction is a weighted mean of its own model and of models of others. The weights "
        f"were learnt on rows not seen. {whose} {', '.join(source_texts)}."
    )
    if data["left_out"] and not data["alike"]:
        text += f" The picture shows {len(data['learners'])} learners from both ends."
    return [text]
