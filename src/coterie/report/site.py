"""A site's own page: what a conclusion says of one site, and what all sites have in common.

No other site's errors, gains or verdict are on it. Names are there, for they say with whom a site learns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._text import counted, joined, number, percent, whole_percents
from coterie.federated import Conclusion
from coterie.report.pictures import alike, both_ends
from coterie.report.subject import full_name, full_names
from coterie.verdicts.gain_model import COVERAGE

# Sites whose models are named, from the one that weighs most.
MOST_SOURCES = 40
MOST_NAMED = 12
AT_SITE = "What it takes from whom is not in a conclusion from moments: the site learns it at home."


def sources_of(conclusion: Conclusion, site: str) -> dict[str, Any] | None:
    """Return whose models a site predicts with, the largest weight first; None after moments.

    ``own``, ``company`` (others in its coterie) and ``others`` are shares of the prediction that sum to one;
    ``line`` tells whether a line of the site's own is added. A conclusion (what federated sites found) from
    moments (sums of squares and products) has no such weights.
    """
    if not conclusion.mixtures:
        return None
    mixture, labels = conclusion.mixture(site), conclusion.labels
    weights = {name: weight for name, weight in mixture.weights.items() if weight > 0}
    sites_by_weight = sorted(weights, key=lambda name: (-weights[name], name))
    weights_of_company = [
        weights[name] for name in sites_by_weight if name != site and labels[name] == labels[site]
    ]
    own_weight = weights.get(site, 0.0)
    return {
        "learners": full_names(sites_by_weight[:MOST_SOURCES]),
        "clusters": [labels[name] for name in sites_by_weight[:MOST_SOURCES]],
        "weights": [round(weights[name], 6) for name in sites_by_weight[:MOST_SOURCES]],
        "n_learners": len(sites_by_weight),
        "own": own_weight,
        "company": sum(weights_of_company),
        "others": max(0.0, 1.0 - own_weight - sum(weights_of_company)),
        "line": any(mixture.line) or any(part.lines for part in mixture.parts),
    }


def site_picture(conclusion: Conclusion, site: str) -> dict[str, Any]:
    """Return what the conclusion says of one site: verdict, gain, errors, its coterie, and its sources.

    ``company`` are the other sites of its coterie, and ``sources`` is what `sources_of` returned. Unknown
    numbers are None.
    """
    row = next(row for row in conclusion.gains if row.learner == site)
    company = [other.learner for other in conclusion.gains if other.cluster == row.cluster]
    numbers = ("gain", "gain_low", "gain_high", "error_alone", "error_with", "error_all")
    return {
        "learner": full_name(site),
        "cluster": row.cluster,
        "verdict": row.verdict,
        "reason": row.reason,
        "error": "Brier score" if conclusion.classes else "Root mean squared error",
        **{name: getattr(row, name) for name in numbers},
        "company": full_names(name for name in company if name != site),
        "sources": sources_of(conclusion, site),
    }


def _gain_words(data: dict[str, Any]) -> str:
    """Say a site's verdict, its expected gain with the interval, and its errors on held-out rows.

    ``data`` is what `site_picture` returned; numbers that are None are not mentioned.
    """
    text = f"Verdict: {data['verdict']}. {data['reason']}"
    if data["gain"] is not None:
        text += f" The expected gain is {percent(data['gain'])} of the error alone"
        low, high = data["gain_low"], data["gain_high"]
        if low is not None and high is not None:
            text += f"; with a probability of {percent(COVERAGE)} it lies between {percent(low)} and "
            text += percent(high)
        text += "."
    if data["error_alone"] is not None:
        errors = (("alone", "alone"), ("with others", "with"), ("with all", "all"))
        named_errors = [(name, data[f"error_{key}"]) for name, key in errors]
        # Squared errors are shown as roots, in the unit of the response.
        power = 1.0 if data["error"] == "Brier score" else 0.5
        error_texts = [f"{name} {number(error**power)}" for name, error in named_errors if error is not None]
        text += f" {data['error']} on rows not seen: {', '.join(error_texts)}."
    return text


def _source_words(sources: dict[str, Any]) -> str:
    """Say what percentages of a site's predictions come from itself, its coterie and other sites.

    ``sources`` is what `sources_of` returned.
    """
    own, company, others = whole_percents([sources[name] for name in ("own", "company", "others")])
    text = (
        f"Its predictions take {own}% from its own model, {company}% from the others in its coterie "
        f"and {others}% from other sites."
    )
    if sources["line"]:
        text += " A line of its own is added, which moves them towards its rows."
    n_left_out = sources["n_learners"] - len(sources["learners"])
    return (
        f"{text} The picture leaves out {counted(n_left_out, 'site')} with smaller weights."
        if n_left_out
        else text
    )


def site_words(data: dict[str, Any]) -> list[str]:
    """Say what a site's verdict is, with whom it learns, and what it takes from whom."""
    whom = joined(data["company"], MOST_NAMED)
    coterie = f"It is in coterie {data['cluster']}, " + (f"with {whom}." if whom else "by itself.")
    sources = data["sources"]
    return [_gain_words(data), coterie, AT_SITE if sources is None else _source_words(sources)]


def mixtures_picture(conclusion: Conclusion | None) -> dict[str, Any] | None:
    """Return what each site's predictions are made of, and their mean; None where no conclusion says so.

    A mixture is the weights of sites' models in a site's predictions. Sites that take most from themselves
    come first, and of many both ends are shown.
    """
    if conclusion is None or not conclusion.mixtures:
        return None
    sources_by_site = [sources_of(conclusion, row.learner) for row in conclusion.gains]
    shares = {
        name: [round(sources[name], 6) for sources in sources_by_site if sources is not None]
        for name in ("own", "company", "others")
    }
    most_own_first = sorted(range(len(sources_by_site)), key=lambda index: -shares["own"][index])
    shown = [most_own_first[index] for index in both_ends(len(most_own_first), MOST_SOURCES)]
    return {
        "learners": full_names(conclusion.gains[index].learner for index in shown),
        "names": ["its own model", "others in its coterie", "other sites"],
        "shares": [[shares_of_source[index] for shares_of_source in shares.values()] for index in shown],
        "mean": [sum(shares_of_source) / len(shares_of_source) for shares_of_source in shares.values()],
        "alike": alike(np.column_stack(list(shares.values()))),
        "left_out": len(most_own_first) - len(shown),
    }


def mixtures_words(data: dict[str, Any]) -> list[str]:
    """Say what the sites' predictions are made of on average, from what `mixtures_picture` returned."""
    source_texts = [
        f"{percent_of_source}% {name}"
        for name, percent_of_source in zip(data["names"], whole_percents(data["mean"]), strict=True)
    ]
    text = "A site's prediction is a weighted sum of sites' models. "
    text += f"{'For each site' if data['alike'] else 'On average'}: {', '.join(source_texts)}."
    if data["left_out"] and not data["alike"]:
        text += f" The picture shows {len(data['learners'])} sites from both ends."
    return [text]
