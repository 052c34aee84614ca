"""From a subject to a plain dict: what `Report.json` writes, and what the page is made from.

It is the answer of `coterie.summary` with the page's sentences, the numbers behind its pictures and the
settings. Nothing here marks up. A section whose numbers do not exist holds the sentence that says why.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy
import sklearn

import coterie
from coterie.federated import Conclusion, Settings
from coterie.report import pictures, words
from coterie.report.differences import differences_picture
from coterie.report.site import mixtures_picture, mixtures_words, site_picture, site_words
from coterie.report.subject import Subject, full_name

DEFAULT_TITLE = "Who learns with whom"
# A setting may be a dict of estimators; its text is cut here.
LONGEST_SETTING = 300

NO_BOOTSTRAP = (
    "Nothing is known about how sure the coteries are: the model was fitted without a bootstrap, or by a "
    "version of coterie that had none. Fit with n_bootstrap=200."
)
BY_MOMENTS = "A conclusion from moments has no errors: each site learns at home what others bring it."
BY_LOSSES = "The sites were asked for losses only, so that nobody measured what others bring."


def _parameters(values: Mapping[str, str], defaults: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "value": text if len(text) <= LONGEST_SETTING else text[:LONGEST_SETTING] + "\u2026",
            "changed": text != defaults.get(name),
        }
        for name, text in values.items()
    ]


def _texts(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {name: repr(value) for name, value in parameters.items()}


def _settings(subject: Subject) -> dict[str, Any]:
    partition, model, conclusion = subject.partition, subject.model, subject.conclusion
    settings: dict[str, Any] = {"parameters": [], "seed": None}
    settings["by_moments"] = conclusion is not None and not conclusion.mixtures
    if conclusion is not None:
        settings["parameters"] = _parameters(dict(sorted(conclusion.settings.items())), Settings().as_text())
    if model is not None:
        defaults = type(model)().get_params(deep=False)
        settings["parameters"] = _parameters(_texts(model.get_params(deep=False)), _texts(defaults))
        settings["seed"] = str(model.record_.seed)
        settings["n_features"] = int(model.n_features_in_)
    settings["rule"] = subject.summary["rule"]
    settings["scale"] = None if partition is None else float(partition.scale)
    settings["versions"] = {
        "coterie": coterie.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return settings


def _section(
    name: str, heading: str, data: dict[str, Any] | str, say: Callable[[dict[str, Any]], list[str]]
) -> dict[str, Any]:
    """Return a section: its data with the sentences about them, or the sentence that says why it has none."""
    if isinstance(data, str):
        return {"id": name, "heading": heading, "missing": True, "words": [data], "data": None}
    return {"id": name, "heading": heading, "missing": False, "words": say(data), "data": data}


def _site_sections(subject: Subject, conclusion: Conclusion, site: str) -> list[dict[str, Any]]:
    heading = f"What it brings {full_name(site)}"
    return [_section("site", heading, site_picture(conclusion, site), site_words), _why(subject.summary)]


def _why(summary: dict[str, Any]) -> dict[str, Any]:
    why = {name: summary[name] for name in ("rule", "n_clusters", "rules", "bootstrap")}
    return _section("why", "Why this many coteries", why, words.curves_words)


def _gains(subject: Subject) -> dict[str, Any] | str:
    """Return who gains how much, or why that is not known."""
    conclusion = subject.conclusion
    if conclusion is not None and not subject.summary["pays"]["n_compared"] and not conclusion.rounds:
        return BY_LOSSES if conclusion.mixtures else BY_MOMENTS
    return pictures.gains_picture(subject) or subject.why_missing(
        "Errors alone, with the coterie and with all"
    )


def _sections(subject: Subject) -> list[dict[str, Any]]:
    if subject.conclusion is not None and subject.site is not None:
        return _site_sections(subject, subject.conclusion, subject.site)
    summary, missing = subject.summary, subject.why_missing
    no_membership = missing("Membership probabilities") if subject.model is None else NO_BOOTSTRAP
    membership = pictures.membership_picture(subject) or no_membership
    losses: dict[str, Any] | str = missing("Losses of everybody's model on everybody's rows")
    places: dict[str, Any] | str = missing("The learners' places")
    if subject.partition is not None:
        losses, places = pictures.losses_picture(subject), pictures.map_picture(subject)
    sections = [
        _section("losses", "Who predicts whom", losses, words.losses_words),
        _section("map", "Map of the learners", places, words.map_words),
        _why(summary),
        _section(
            "gains", "Does it pay", _gains(subject), lambda data: words.gains_words(data, summary["pays"])
        ),
        _section("membership", "How sure the coteries are", membership, words.membership_words),
        _section(
            "differences", "How the coteries differ", differences_picture(subject), words.differences_words
        ),
    ]
    made_of = "What the predictions are made of"
    weights, mixtures = pictures.weights_picture(subject), mixtures_picture(subject.conclusion)
    if weights is not None:
        sections.append(_section("weights", made_of, weights, words.weights_words))
    if mixtures is not None:
        sections.append(_section("weights", made_of, mixtures, mixtures_words))
    return sections


def report_summary(subject: Subject, title: str | None = None) -> dict[str, Any]:
    """Return all that a report says, under a heading: texts, numbers, lists and dicts, as JSON knows them."""
    usual = DEFAULT_TITLE if subject.site is None else f"{full_name(subject.site)}: with whom to learn"
    return {
        "title": usual if title is None else str(title),
        "site": subject.site,
        **subject.summary,
        "sections": _sections(subject),
        "settings": _settings(subject),
    }
