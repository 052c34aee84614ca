"""A run compared with an earlier one: who moved, whose verdict changed, what became of the errors."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from coterie._text import NOTHING, counted, joined, number
from coterie.estimator import IN_TIME_ORDER
from coterie.report.subject import full_name

SUMMARY = "summary.json"
# Learners in the table of changes.
MOST_CHANGES = 200
NAMED = 5

Rows = dict[str, dict[str, Any]]


def read_run(run: Mapping[str, Any] | str | os.PathLike[str]) -> Mapping[str, Any]:
    """Return the summary of an earlier run: given as such, or read from its file or the folder of the fit.

    Anything without a table of learners (``gains`` with ``learner`` and ``cluster``) is a ValueError with
    a remedy.
    """
    if isinstance(run, Mapping):
        summary: Any = run
    else:
        path = Path(run) / SUMMARY if Path(run).is_dir() else Path(run)
        try:
            summary = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no {str(path)!r}: name a folder of `coterie fit`.") from None
        except ValueError:
            raise ValueError(f"{str(path)!r} is no summary: name a folder of `coterie fit`.") from None
    rows = summary.get("gains") if isinstance(summary, Mapping) else None
    is_table = isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows)
    if not is_table or not rows or not all({"learner", "cluster"} <= row.keys() for row in rows):
        raise ValueError("The earlier run has no table of learners: name a folder of `coterie fit`.")
    return dict(summary)


def _by_learner(summary: Mapping[str, Any]) -> Rows:
    """Return the table of learners of a summary as rows by learner's name."""
    return {full_name(row["learner"]): row for row in summary["gains"]}


def _same_coteries(old: Rows, new: Rows, common: list[str]) -> dict[int, int]:
    """Match the coteries of two runs: return the old number of each new coterie.

    Numbers may change while the members stay together. So coteries are matched one to one such that as
    many learners in ``common`` as possible stay (the assignment problem, on the contingency table of
    labels). A new coterie without a partner is left out.
    """
    label_pairs = np.array([(old[name]["cluster"], new[name]["cluster"]) for name in common])
    old_labels, new_labels = np.unique(label_pairs[:, 0]), np.unique(label_pairs[:, 1])
    n_common_members = np.zeros((len(old_labels), len(new_labels)))
    np.add.at(
        n_common_members,
        (np.searchsorted(old_labels, label_pairs[:, 0]), np.searchsorted(new_labels, label_pairs[:, 1])),
        1,
    )
    matched_old, matched_new = linear_sum_assignment(-n_common_members)
    return dict(zip(new_labels[matched_new].tolist(), old_labels[matched_old].tolist(), strict=True))


def _mean_error(rows: Rows, names: list[str], *, root: bool) -> str:
    """Return the mean error of some learners as text; ``root`` takes the root, for squared errors."""
    mean = float(np.mean([rows[name]["error_with"] for name in names]))
    return number(math.sqrt(mean) if root and mean >= 0 else mean)


def _error_text(row: Mapping[str, Any], *, root: bool) -> str:
    """Return a learner's error with others as text; ``root`` takes the root, for squared errors."""
    error = row.get("error_with")
    return number(error if error is None or not root else math.sqrt(max(error, 0.0)))


def _why_apart(old: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Say why the errors of two runs cannot be compared; an empty text where they can."""
    predict_later_rows = [IN_TIME_ORDER in run.get("notes", ()) for run in (old, summary)]
    if predict_later_rows[0] != predict_later_rows[1]:
        return "one run predicts later rows from earlier ones, and the other does not"
    efforts = [run.get("effort") for run in (old, summary)]
    return "the runs have different efforts" if all(efforts) and efforts[0] != efforts[1] else ""


def changes_since(old: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is different from an earlier run; both are summaries of `coterie.summary.summarize`.

    The dict names learners that arrived, left, moved to another coterie or have another verdict, and has the
    mean errors of both runs over the learners in common (None where they are not comparable). ``verdicts``
    names learners, ``apart`` says why errors cannot be compared (empty: they can), ``fell`` whether the error
    fell. `against_words` makes sentences of it.
    """
    targets = [(run.get("pays") or {}).get("target") for run in (old, summary)]
    if all(targets) and targets[0] != targets[1]:
        raise ValueError(
            f"The earlier run predicts {targets[0]!r}, this one {targets[1]!r}: compare like runs."
        )
    before, after = _by_learner(old), _by_learner(summary)
    common = [name for name in after if name in before]
    if not common:
        raise ValueError("The earlier run has no learner of this one: compare runs of the same learners.")
    squared_errors = "scores" not in summary
    old_label_of = _same_coteries(before, after, common)
    moved = [name for name in common if old_label_of.get(after[name]["cluster"]) != before[name]["cluster"]]
    other_verdict = [name for name in common if before[name].get("verdict") != after[name].get("verdict")]
    with_both_errors = [
        name for name in common if all(rows[name].get("error_with") is not None for rows in (before, after))
    ]
    why_not_comparable = _why_apart(old, summary)
    with_both_errors = [] if why_not_comparable else with_both_errors
    mean_errors = (
        [_mean_error(rows, with_both_errors, root=squared_errors) for rows in (before, after)]
        if with_both_errors
        else None
    )
    shown = [name for name in common if name in {*moved, *other_verdict}]
    return {
        "n_common": len(common),
        "arrived": [name for name in after if name not in before],
        "left": [name for name in before if name not in after],
        "moved": moved,
        "verdicts": other_verdict,
        "error": "typical error" if squared_errors else "Brier score",
        "errors": mean_errors,
        "apart": why_not_comparable,
        "fell": bool(with_both_errors) and _fell(before, after, with_both_errors),
        "rows": [
            {
                "learner": name,
                "coterie": [before[name]["cluster"], after[name]["cluster"]],
                "moved": name in moved,
                "verdict": [before[name].get("verdict", ""), after[name].get("verdict", "")],
                "error": [NOTHING]
                if why_not_comparable
                else [_error_text(rows[name], root=squared_errors) for rows in (before, after)],
            }
            for name in shown[:MOST_CHANGES]
        ],
    }


def _fell(before: Rows, after: Rows, names: list[str]) -> bool:
    """Tell whether the mean error with others of these learners is lower in the later run."""
    return bool(sum(after[name]["error_with"] - before[name]["error_with"] for name in names) < 0)


def _who(names: list[str], one: str, several: str, nobody: str) -> str:
    """Return a sentence that counts and names learners, with the verb of one or several; or ``nobody``."""
    if not names:
        return nobody
    return f"{counted(len(names), 'learner')} {one if len(names) == 1 else several}: {joined(names, NAMED)}."


def against_words(data: Mapping[str, Any]) -> list[str]:
    """Return the sentences of the page about an earlier run; ``data`` is what `changes_since` returned.

    Sentences with nothing to say are left out.
    """
    sentences = [
        f"The two runs have {counted(data['n_common'], 'learner')} in common.",
        _who(
            data["moved"], "moved to another coterie", "moved to another coterie", "Nobody changed coteries."
        ),
        _who(data["verdicts"], "has another verdict", "have another verdict", "No verdict changed."),
    ]
    if data["errors"] is not None:
        old, new = data["errors"]
        change = (
            f"stays at {new}" if old == new else f"{'falls' if data['fell'] else 'rises'} from {old} to {new}"
        )
        sentences.append(f"With others, the {data['error']} of these learners {change}.")
    if data["apart"]:
        sentences.append(f"Errors are not comparable: {data['apart']}.")
    sentences.append(_who(data["arrived"], "is new", "are new", ""))
    sentences.append(_who(data["left"], "is gone", "are gone", ""))
    return [sentence for sentence in sentences if sentence]
