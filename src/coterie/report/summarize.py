"""From a subject to a plain dict: what `Report.json` writes, and what the page is made from.

It is the answer of `coterie.summary` with the page's sentences, the numbers behind its pictures and the
settings. Nothing here marks up. A section whose numbers do not exist holds the sentence that says why.
"""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import sklearn

import coterie
from coterie.report import pictures, words
from coterie.report.differences import differences_picture
from coterie.report.subject import Subject

DEFAULT_TITLE = "Who learns with whom"
# A setting may be a dict of estimators; its text is cut here.
LONGEST_SETTING = 300

NO_BOOTSTRAP = (
    "Nothing is known about how sure the coteries are: the model was fitted without a bootstrap, or by a "
    "version of coterie that had none. Fit with n_bootstrap=200."
)


def _settings(subject: Subject) -> dict[str, Any]:
    partition, model = subject.partition, subject.model
    settings: dict[str, Any] = {"parameters": [], "seed": None}
    if model is not None:
        defaults = type(model)().get_params(deep=False)
        for name, value in model.get_params(deep=False).items():
            text = repr(value)
            settings["parameters"].append(
                {
                    "name": name,
                    "value": text if len(text) <= LONGEST_SETTING else text[:LONGEST_SETTING] + "\u2026",
                    "changed": text != repr(defaults.get(name)),
                }
            )
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


def _sections(subject: Subject) -> list[dict[str, Any]]:
    summary, missing = subject.summary, subject.why_missing
    no_membership = missing("Membership probabilities") if subject.model is None else NO_BOOTSTRAP
    membership = pictures.membership_picture(subject) or no_membership
    gains = pictures.gains_picture(subject) or missing("Errors alone, with the coterie and with all")
    losses: dict[str, Any] | str = missing("Losses of everybody's model on everybody's rows")
    places: dict[str, Any] | str = missing("The learners' places")
    if subject.partition is not None:
        losses, places = pictures.losses_picture(subject), pictures.map_picture(subject)
    why = {name: summary[name] for name in ("rule", "n_clusters", "rules", "bootstrap")}
    sections = [
        _section("losses", "Who predicts whom", losses, words.losses_words),
        _section("map", "Map of the learners", places, words.map_words),
        _section("why", "Why this many coteries", why, words.curves_words),
        _section("gains", "Does it pay", gains, lambda data: words.gains_words(data, summary["pays"])),
        _section("membership", "How sure the coteries are", membership, words.membership_words),
        _section(
            "differences", "How the coteries differ", differences_picture(subject), words.differences_words
        ),
    ]
    weights = pictures.weights_picture(subject)
    if weights is not None:
        sections.append(_section("weights", "What the predictions are made of", weights, words.weights_words))
    return sections


def report_summary(subject: Subject, title: str | None = None) -> dict[str, Any]:
    """Return all that a report says, under a heading: texts, numbers, lists and dicts, as JSON knows them."""
    return {
        "title": DEFAULT_TITLE if title is None else str(title),
        **subject.summary,
        "sections": _sections(subject),
        "settings": _settings(subject),
    }
