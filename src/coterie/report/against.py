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
    """Return the summary of a run, from itself, from its file, or from the folder of `coterie fit`."""
    if isinstance(run, Mapping):
        result: Any = run
    else:
        path = Path(run) / SUMMARY if Path(run).is_dir() else Path(run)
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise FileNotFoundError(f"There is no {str(path)!r}: name a folder of `coterie fit`.") from None
        except ValueError:
            raise ValueError(f"{str(path)!r} is no summary: name a folder of `coterie fit`.") from None
    rows = result.get("gains") if isinstance(result, Mapping) else None
    known = isinstance(rows, list) and all(isinstance(row, Mapping) for row in rows)
    if not known or not rows or not all({"learner", "cluster"} <= row.keys() for row in rows):
        raise ValueError("The earlier run has no table of learners: name a folder of `coterie fit`.")
    return dict(result)


def _by_learner(summary: Mapping[str, Any]) -> Rows:
    return {full_name(row["learner"]): row for row in summary["gains"]}


def _same_coteries(old: Rows, new: Rows, common: list[str]) -> dict[int, int]:
    """Return the earlier number of each coterie: numbers may change while members stay together."""
    pairs = np.array([(old[name]["cluster"], new[name]["cluster"]) for name in common])
    before, after = np.unique(pairs[:, 0]), np.unique(pairs[:, 1])
    shared = np.zeros((len(before), len(after)))
    np.add.at(shared, (np.searchsorted(before, pairs[:, 0]), np.searchsorted(after, pairs[:, 1])), 1)
    rows, columns = linear_sum_assignment(-shared)
    return dict(zip(after[columns].tolist(), before[rows].tolist(), strict=True))


def _mean_error(rows: Rows, names: list[str], *, root: bool) -> str:
    """Return the mean error of some learners as text."""
    mean = float(np.mean([rows[name]["error_with"] for name in names]))
    return number(math.sqrt(mean) if root and mean >= 0 else mean)


def _error_text(row: Mapping[str, Any], *, root: bool) -> str:
    """Return a learner's error as text, in the unit of the response where ``root`` is set."""
    error = row.get("error_with")
    return number(error if error is None or not root else math.sqrt(max(error, 0.0)))


def _why_apart(old: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """Say why the errors of two runs cannot be compared; nothing where they can."""
    forecasts = [IN_TIME_ORDER in run.get("notes", ()) for run in (old, summary)]
    if forecasts[0] != forecasts[1]:
        return "one run predicts later rows from earlier ones, and the other does not"
    efforts = [run.get("effort") for run in (old, summary)]
    return "the runs have different efforts" if all(efforts) and efforts[0] != efforts[1] else ""


def changes_since(old: Mapping[str, Any], summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is different from an earlier run; both are summaries of `coterie.summary.summarize`."""
    targets = [(run.get("pays") or {}).get("target") for run in (old, summary)]
    if all(targets) and targets[0] != targets[1]:
        raise ValueError(
            f"The earlier run predicts {targets[0]!r}, this one {targets[1]!r}: compare like runs."
        )
    before, after = _by_learner(old), _by_learner(summary)
    common = [name for name in after if name in before]
    if not common:
        raise ValueError("The earlier run has no learner of this one: compare runs of the same learners.")
    root = "scores" not in summary
    same = _same_coteries(before, after, common)
    moved = [name for name in common if same.get(after[name]["cluster"]) != before[name]["cluster"]]
    verdicts = [name for name in common if before[name].get("verdict") != after[name].get("verdict")]
    compared = [
        name for name in common if all(rows[name].get("error_with") is not None for rows in (before, after))
    ]
    apart = _why_apart(old, summary)
    compared = [] if apart else compared
    errors = [_mean_error(rows, compared, root=root) for rows in (before, after)] if compared else None
    changed = [name for name in common if name in {*moved, *verdicts}]
    return {
        "n_common": len(common),
        "arrived": [name for name in after if name not in before],
        "left": [name for name in before if name not in after],
        "moved": moved,
        "verdicts": verdicts,
        "error": "typical error" if root else "Brier score",
        "errors": errors,
        "apart": apart,
        "fell": bool(compared) and _fell(before, after, compared),
        "rows": [
            {
                "learner": name,
                "coterie": [before[name]["cluster"], after[name]["cluster"]],
                "moved": name in moved,
                "verdict": [before[name].get("verdict", ""), after[name].get("verdict", "")],
                "error": [NOTHING]
                if apart
                else [_error_text(rows[name], root=root) for rows in (before, after)],
            }
            for name in changed[:MOST_CHANGES]
        ],
    }


def _fell(before: Rows, after: Rows, names: list[str]) -> bool:
    return bool(sum(after[name]["error_with"] - before[name]["error_with"] for name in names) < 0)


def _who(names: list[str], one: str, several: str, nobody: str) -> str:
    """Return a sentence about some learners, or the one for none."""
    if not names:
        return nobody
    return f"{counted(len(names), 'learner')} {one if len(names) == 1 else several}: {joined(names, NAMED)}."


def against_words(data: Mapping[str, Any]) -> list[str]:
    """Say what is different from an earlier run."""
    said = [
        f"The two runs have {counted(data['n_common'], 'learner')} in common.",
        _who(
            data["moved"], "moved to another coterie", "moved to another coterie", "Nobody changed coteries."
        ),
        _who(data["verdicts"], "has another verdict", "have another verdict", "No verdict changed."),
    ]
    if data["errors"] is not None:
        old, new = data["errors"]
        how = (
            f"stays at {new}" if old == new else f"{'falls' if data['fell'] else 'rises'} from {old} to {new}"
        )
        said.append(f"With others, the {data['error']} of these learners {how}.")
    if data["apart"]:
        said.append(f"Errors are not comparable: {data['apart']}.")
    said.append(_who(data["arrived"], "is new", "are new", ""))
    said.append(_who(data["left"], "is gone", "are gone", ""))
    return [sentence for sentence in said if sentence]
