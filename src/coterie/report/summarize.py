"""From a model to a plain dict: what `Report.json` writes, and what the page is made from.

Nothing here draws or marks up. A section whose numbers do not exist for this model holds the sentence that
says why instead.
"""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import sklearn
from numpy.typing import NDArray

import coterie
from coterie.report import pictures, words
from coterie.report.differences import differences_picture
from coterie.report.subject import Subject, finite_list, full_name

Array = NDArray[Any]

DEFAULT_TITLE = "Who learns with whom"
# A setting may be a dict of estimators; its text is cut here.
LONGEST_SETTING = 300

NO_BOOTSTRAP = (
    "Nothing is known about how sure the coteries are: the model was fitted without a bootstrap, or by a "
    "version of coterie that had none. Fit with n_bootstrap=200."
)


def _saved(gains: dict[str, Array] | None) -> dict[str, Any] | None:
    """Return how much of the error alone the coterie saves, over the learners for whom both are known."""
    if gains is None:
        return None
    gain, alone = np.asarray(gains["gain"], float), np.asarray(gains["error_alone"], float)
    known = np.isfinite(gain)
    if not known.any():
        return {"n": 0}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        everybody = np.asarray(gains["error_all"], float) / alone
    everybody = everybody[np.isfinite(everybody)]
    return {
        "n": int(known.sum()),
        "better": int((gain[known] > 0).sum()),
        "median": float(np.median(gain[known])),
        "least": float(gain[known].min()),
        "most": float(gain[known].max()),
        "all_median": float(np.median(everybody)) if len(everybody) else None,
    }


def _verdicts(gains: dict[str, Array] | None) -> dict[str, int] | None:
    if gains is None or "verdict" not in gains:
        return None
    return dict(Counter(str(verdict) for verdict in gains["verdict"]).most_common())


def _members(subject: Subject) -> tuple[list[Any], Array]:
    """Return all learners, newcomers too, with the cluster of each."""
    if subject.model is None:
        return subject.partition.learner_ids.tolist(), subject.partition.labels
    return subject.model.learner_ids_.tolist(), np.asarray(subject.model.learner_labels_)


def _coteries(subject: Subject) -> list[dict[str, Any]]:
    learners, labels = _members(subject)
    gains = subject.gains
    found = []
    for label in range(subject.partition.n_clusters):
        mine = np.flatnonzero(labels == label)
        coterie: dict[str, Any] = {
            "cluster": label,
            "learners": [full_name(learners[p]) for p in mine],
            "n_rows": None,
            "gain": None,
        }
        if gains is not None:
            coterie["n_rows"] = int(np.sum(gains["n_rows"][mine]))
            gain = np.asarray(gains["gain"], float)[mine]
            if np.isfinite(gain).any():
                coterie["gain"] = float(np.median(gain[np.isfinite(gain)]))
            coterie["models"] = dict(Counter(str(m) for m in gains["model"][mine] if m).most_common())
        found.append(coterie)
    return found


def _table(subject: Subject) -> dict[str, list[Any]]:
    """Return the table of learners as columns."""
    gains = subject.gains
    if gains is None:
        names = subject.names
        return {"learner": names, "cluster": subject.partition.labels.tolist()}
    table: dict[str, list[Any]] = {}
    for name, column in gains.items():
        values = np.asarray(column)
        if name == "learner":
            table[name] = [full_name(learner) for learner in column]
        elif values.dtype.kind == "f":
            table[name] = finite_list(values)
        else:
            table[name] = [v if isinstance(v, (int, bool)) else str(v) for v in values.tolist()]
    return table


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
    settings |= {"rule": partition.rule, "scale": float(partition.scale)}
    settings["versions"] = {
        "coterie": coterie.__version__,
        "Python": platform.python_version(),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    return settings


def _section(
    name: str,
    heading: str,
    data: dict[str, Any] | str | None,
    say: Callable[[dict[str, Any]], list[str]],
    missing: str = "",
) -> dict[str, Any]:
    if data is None or isinstance(data, str):
        return {"id": name, "heading": heading, "missing": True, "words": [data or missing], "data": None}
    return {"id": name, "heading": heading, "missing": False, "words": say(data), "data": data}


def _sections(
    subject: Subject, saved: dict[str, Any] | None, verdicts: dict[str, int] | None
) -> list[dict[str, Any]]:
    no_rows = subject.model is None
    gains = pictures.gains_picture(subject)
    if gains is not None:
        gains["saved"] = saved
    sections = [
        _section("losses", "Who predicts whom", pictures.losses_picture(subject), words.losses_words),
        _section("map", "Map of the learners", pictures.map_picture(subject), words.map_words),
        _section("why", "Why this many coteries", pictures.curves_picture(subject), words.curves_words),
        _section(
            "gains",
            "Does it pay",
            gains,
            lambda data: words.gains_words(data, verdicts),
            subject.why_no_rows("Errors alone, with the coterie and with all"),
        ),
        _section(
            "membership",
            "How sure the coteries are",
            pictures.membership_picture(subject),
            words.membership_words,
            subject.why_no_rows("Membership probabilities") if no_rows else NO_BOOTSTRAP,
        ),
    ]
    differences = differences_picture(subject)
    sections.append(_section("differences", "How the coteries differ", differences, words.differences_words))
    weights = pictures.weights_picture(subject)
    if weights is not None:
        sections.append(_section("weights", "What the predictions are made of", weights, words.weights_words))
    return sections


def summarize(subject: Subject, title: str | None = None) -> dict[str, Any]:
    """Return all that a report says.

    Parameters
    ----------
    subject : Subject
        What it is about.
    title : str or None, default=None
        Heading of the page.

    Returns
    -------
    dict
        Texts, numbers, lists and dicts only, as JSON knows them.
    """
    gains = subject.gains
    learners, _ = _members(subject)
    coteries = _coteries(subject)
    saved, verdicts = _saved(gains), _verdicts(gains)
    strangers = []
    if gains is not None and verdicts is not None:
        strangers = [
            full_name(learner)
            for learner, verdict in zip(gains["learner"].tolist(), gains["verdict"].tolist(), strict=True)
            if verdict == "does not belong"
        ]
    facts = {
        "n_learners": len(learners),
        "n_clusters": subject.partition.n_clusters,
        "sizes": [len(coterie["learners"]) for coterie in coteries],
        "ruled": subject.partition.rule != "given",
        "saved": saved,
        "strangers": strangers,
    }
    return {
        "title": DEFAULT_TITLE if title is None else str(title),
        "source": "losses" if subject.model is None else "model",
        "answer": words.answer_words(facts),
        "notes": list(subject.partition.notes),
        "clear": bool(subject.partition.clear),
        **facts,
        "verdicts": verdicts,
        "n_rows": None if gains is None else int(np.sum(gains["n_rows"])),
        "coteries": coteries,
        "sections": _sections(subject, saved, verdicts),
        "table": _table(subject),
        "settings": _settings(subject),
    }
