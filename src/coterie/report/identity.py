"""Which run the page is about: table, target, day, seed; what became of the columns; the settings."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any

import numpy as np
import scipy
import sklearn

import coterie
from coterie._text import counted
from coterie.encoding import TableRecipe
from coterie.federated import Settings
from coterie.report.subject import ReportSubject, full_name

# A setting may be a dict of estimators; its text is cut here.
LONGEST_SETTING = 300
# Settings that have no part in what is found.
HOW_IT_RAN = ("engine", "n_jobs", "verbose")


def recipe_of(subject: ReportSubject) -> TableRecipe | None:
    """Return how `coterie fit` encoded the table behind a model; None for models made in Python."""
    return getattr(subject.model, "table_", None)


def target_and_unit(subject: ReportSubject) -> tuple[str, str]:
    """Return what is predicted, and the unit of the errors; empty where it is not known."""
    pays = subject.summary["pays"]
    return ("", "") if pays is None else (full_name(pays["target"] or ""), full_name(pays["unit"]))


def _day(text: str) -> str:
    """Return a date such as 2026-01-31 in words, as 31 January 2026."""
    day = date.fromisoformat(text)
    return f"{day.day} {day:%B %Y}"


def run_identity(subject: ReportSubject) -> list[dict[str, str]]:
    """Return what tells this run from another, as far as it is known: names and texts, in order.

    Such are the table, the target, the numbers of rows and learners, the day, the version and the seed.
    """
    recipe, summary = recipe_of(subject), subject.summary
    texts: dict[str, str] = {}
    learners_text = f"{summary['n_learners']:,}"
    if recipe is not None:
        texts["table"] = recipe.source
        texts["target"] = recipe.target + (f" ({recipe.unit})" if recipe.unit else "")
        learners_text += f" ({recipe.group})" if recipe.group else ""
    if summary["n_rows"] is not None:
        texts["rows"] = f"{summary['n_rows']:,}"
    texts["learners"] = learners_text
    if recipe is not None and recipe.day:
        texts["fitted on"] = _day(recipe.day)
    texts["coterie"] = coterie.__version__
    if subject.model is not None:
        texts["seed"] = str(subject.model.record_.seed)
    return [{"name": name, "text": full_name(text)} for name, text in texts.items() if text]


def columns_overview(subject: ReportSubject) -> dict[str, Any] | None:
    """Return what became of each column of the table (number, category, date, left out), and counts.

    None where no table is known, as for a model made in Python.
    """
    recipe = recipe_of(subject)
    if recipe is None:
        return None
    kinds = Counter(plan.kind for plan in recipe.columns)
    return {
        "kinds": dict(kinds.most_common()),
        "columns": [
            {"name": full_name(plan.name), "kind": plan.kind, "remark": plan.remark}
            for plan in recipe.columns
        ],
    }


def columns_words(data: dict[str, Any]) -> list[str]:
    """Say how many columns are numbers, categories or dates; ``data`` is what `columns_overview` returned."""
    nouns = {"number": "{} of numbers", "category": "{} of categories", "date": "{} of dates"}
    parts = [
        nouns[kind].format(count) if kind in nouns else f"{count} left out"
        for kind, count in data["kinds"].items()
    ]
    return [f"The table has {counted(len(data['columns']), 'predictor column')}: {', '.join(parts)}."]


def setting_text(value: Any) -> str:
    """Return a setting's value as a reader would write it, at most `LONGEST_SETTING` letters a part."""
    if isinstance(value, (list, tuple)):
        return ", ".join(setting_text(part) for part in value) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {setting_text(part)}" for name, part in value.items()) or "none"
    if value is None or isinstance(value, bool):
        return {None: "not set", True: "yes", False: "no"}[value]
    text = value if isinstance(value, str) else repr(value)
    # An address says nothing, and differs from run to run.
    if " at 0x" in text:
        text = type(value).__name__
    return text if len(text) <= LONGEST_SETTING else text[:LONGEST_SETTING] + "\N{HORIZONTAL ELLIPSIS}"


def _parameters(values: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return settings as names and texts, each with whether it differs from its default.

    Settings of `HOW_IT_RAN` are left out, for they change no result.
    """
    texts = {name: setting_text(value) for name, value in values.items() if name not in HOW_IT_RAN}
    return [
        {"name": name, "value": text, "changed": text != setting_text(defaults.get(name))}
        for name, text in texts.items()
    ]


def settings(subject: ReportSubject) -> dict[str, Any]:
    """Return what somebody needs to get the same results: parameters, seed, rule, scale, versions.

    Parts that the subject does not have are empty or None. ``scale`` turns dissimilarities into similarities.
    """
    partition, model, conclusion = subject.partition, subject.model, subject.conclusion
    reproduction: dict[str, Any] = {"parameters": [], "seed": None}
    reproduction["by_moments"] = conclusion is not None and not conclusion.mixtures
    if conclusion is not None:
        reproduction["parameters"] = _parameters(
            dict(sorted(conclusion.settings.items())), Settings().as_text()
        )
    if model is not None:
        defaults = type(model)().get_params(deep=False)
        reproduction["parameters"] = _parameters(model.get_params(deep=False), defaults)
        reproduction["seed"] = str(model.record_.seed)
        reproduction["n_features"] = int(model.n_features_in_)
    reproduction["rule"] = subject.summary["rule"]
    reproduction["scale"] = None if partition is None else float(partition.scale)
    reproduction["versions"] = {
        "coterie": coterie.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return reproduction
