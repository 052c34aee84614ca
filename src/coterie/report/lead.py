"""The answer in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie._text import number


def _who(pays: Mapping[str, Any], n_learners: int) -> str:
    """Say for how many learners it is expected to pay to learn with others."""
    gain, compared = pays["n_gain"], pays["n_compared"]
    learners = "learner" if compared == 1 else "learners"
    if compared < n_learners:
        learners += " with enough rows"
    if not gain and not pays["n_lose"]:
        return f"Learning with others makes no clear difference for any of the {compared:,} {learners}"
    if not gain:
        return f"Learning with others is not expected to pay for any of the {compared:,} {learners}"
    whom = f"all {compared:,}" if gain == compared > 1 else f"{gain:,} of the {compared:,}"
    return f"Learning with others is expected to pay for {whom} {learners}"


def _moved(name: str, before: str, after: str, unit: str, *, more: bool) -> str:
    """Say how a number changes, with its unit."""
    unit = f" {unit}" if unit else ""
    if before == after:
        return f"{name} stays at {after}{unit}"
    return f"{name} {'rises' if more else 'falls'} from {before} to {after}{unit}"


def _error(summary: Mapping[str, Any], target: str, unit: str) -> str:
    """Say what becomes of the typical error, or of the accuracy."""
    scores = summary.get("scores")
    if "scores" in summary:
        for score, name, say in (
            ("accuracy", "accuracy", "{:.1%}".format),
            ("brier", "the Brier score", number),
        ):
            own, others = (scores[key][score] if scores else None for key in ("alone", "with"))
            if own is not None and others is not None:
                return _moved(name, say(own), say(others), "", more=others > own)
        return ""
    pays = summary["pays"]
    own, others = pays["rmse_alone"], pays["rmse_with"]
    if own is None or others is None:
        return ""
    what = f"the typical error of {target}" if target else "the typical error"
    return _moved(what, number(own), number(others), unit, more=others > own)


def lead_sentence(summary: Mapping[str, Any], target: str = "", unit: str = "") -> str:
    """Return the answer of a summary (see `coterie.summary.summarize`) in one sentence."""
    pays = summary["pays"]
    if (
        summary.get("nothing_to_learn")
        or summary["n_learners"] == 1
        or pays is None
        or not pays["n_compared"]
    ):
        first: str = summary["answer"][0]
        return first
    parts = [_who(pays, summary["n_learners"])]
    if pays["n_lose"]:
        parts.append(f"{pays['n_lose']:,} should stay alone")
    error = _error(summary, target, unit)
    if error:
        parts.append(error)
    text = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, and {parts[-1]}"
    return f"{text}."
