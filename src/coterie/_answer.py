"""The answer in a few sentences: the same in the terminal, on the page, in JSON and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie._text import counted, display_name, joined, number, percent, whole_percents

Summary = Mapping[str, Any]


def _coteries(summary: Summary) -> str:
    """Say who learns with whom."""
    learners, k = counted(summary["n_learners"], "learner"), summary["n_clusters"]
    if summary["n_learners"] == 1:
        return "There is one learner, and nobody to learn from."
    sizes = [coterie["n_learners"] for coterie in summary["coteries"]]
    if k == 1:
        reason = ", as requested" if summary["rule"] == "given" else ": no split of them predicts better"
        return f"The {learners} are one coterie{reason}."
    if not summary["clear"]:
        return f"There are no clear coteries among the {learners}."
    n_singles = sum(size == 1 for size in sizes)
    several = [size for size in sizes if size > 1]
    members = f"of {joined([str(size) for size in several], 8)} members" if several else ""
    single = (
        f"{counted(n_singles, 'learner')} by {'itself' if n_singles == 1 else 'themselves'}"
        if n_singles
        else ""
    )
    parts = " and ".join(part for part in (members, single) if part)
    return f"The {learners} fall into {counted(k, 'coterie')}, {parts}."


def _taken(pays: Summary) -> str:
    """Say whom predictions come from, where there are no groups to speak of."""
    parts = [
        f"{whole}% from {'itself' if name == 'alone' else name}"
        for name, whole in zip(pays["taken"], whole_percents(list(pays["taken"].values())), strict=True)
        if whole
    ]
    return f"On average a learner takes {joined(parts, 9)}." if parts else ""


def _verdicts(pays: Summary) -> str:
    """Count who gains and who loses."""
    gain, lose, neither = pays["n_gain"], pays["n_lose"], pays["n_no_difference"]
    compared = pays["n_compared"]
    learners = counted(compared, "learner")
    subset = f"all {counted(gain, 'learner')}" if 1 < gain == compared else f"{gain or 'none'} of {learners}"
    text = f"Learning with others is expected to pay for {subset}"
    rest = []
    if lose:
        rest.append(f"to cost {lose}")
    if neither:
        rest.append(f"to make no clear difference for {neither}")
    return f"{', '.join([text, *rest])}."


def _saved(typical: float, error: str) -> str:
    """Say what the typical learner gains."""
    if not round(100 * abs(typical)):
        return f"The {error} of the typical learner stays as it is. "
    if typical > 0:
        return f"The typical learner saves {percent(typical)} of its {error}. "
    return f"The {error} of the typical learner rises by {percent(-typical)}. "


def _errors(pays: Summary) -> str:
    """Say the errors on rows not seen, and by how much others lower them."""
    target = f" of {pays['target']}" if pays["target"] else ""
    parts = [
        f"{name} {number(pays[f'rmse_{key}'])}"
        for name, key in (("alone", "alone"), ("with others", "with"), ("with all", "all"))
        if pays[f"rmse_{key}"] is not None
    ]
    typical = pays["typical_gain"]
    saved = "" if typical is None else _saved(typical, "squared error")
    unit = f" in {pays['unit']}" if pays.get("unit") else ""
    return f"{saved}Root mean squared error{target} on rows not seen{unit}: {', '.join(parts)}."


def _scores(summary: Summary) -> str:
    """Say how well classes are predicted."""
    pays, scores = summary["pays"], summary["scores"]
    target = f", for {pays['target']}" if pays["target"] else ""
    typical = pays["typical_gain"]
    saved = "" if typical is None else _saved(typical, "Brier score")
    if scores is None:
        return saved.strip()
    lines = []
    for name, words in (("log_loss", "log loss"), ("brier", "Brier score"), ("accuracy", "accuracy")):
        parts = [
            f"{who} {number(scores[key][name])}"
            for who, key in (("alone", "alone"), ("with others", "with"), ("with all", "all"))
            if scores[key][name] is not None
        ]
        lines += [f"{words} {', '.join(parts)}"] if parts else []
    return f"{saved}On rows not seen{target}: {'; '.join(lines)}."


def _small(pays: Summary, *, classes: bool = False) -> str:
    """Say what learners get who are too small to be compared."""
    count = pays["n_too_few_rows"]
    who = f"{counted(count, 'learner')} {'has' if count == 1 else 'have'} too few rows to be compared"
    if pays["rmse_with_too_few_rows"] is None or classes:
        return f"{who}."
    return f"{who}; with others the root mean squared error is {number(pays['rmse_with_too_few_rows'])}."


def answer_sentences(summary: Summary) -> list[str]:
    """Return the answer of a summary (see `coterie.summary.summarize`), the most important sentence first."""
    if summary.get("nothing_to_learn"):
        # Whatever the errors are, they are none of learning.
        return [summary["nothing_to_learn"]]
    pays = summary["pays"]
    sentences = [_coteries(summary)]
    if pays is not None:
        if not summary["clear"] and summary["n_clusters"] > 1:
            sentences.append(_taken(pays))
        if pays["n_compared"]:
            sentences += [_verdicts(pays), _scores(summary) if "scores" in summary else _errors(pays)]
        if pays["verdicts"].get("not measured"):
            sentences.append("What learning with others brings was not measured.")
        if pays["n_too_few_rows"]:
            sentences.append(_small(pays, classes="scores" in summary))
    outside = [display_name(row["learner"]) for row in summary["does_not_belong"]]
    if outside and summary["n_learners"] > 1 and (summary["clear"] or summary["n_clusters"] == 1):
        who = joined(outside)
        if not who.lower().startswith("learner"):
            who = f"{'learner' if len(outside) == 1 else 'learners'} {who}"
        sentences.append(f"The data of {who} fit no coterie of others.")
    return [sentence for sentence in sentences if sentence]
