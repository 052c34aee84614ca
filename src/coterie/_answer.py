"""The answer in a few sentences: the same in the terminal, on the page, in JSON and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coterie._text import counted, display_name, joined, number, percent, whole_percents

Summary = Mapping[str, Any]


def _coteries(summary: Summary) -> str:
    """Say how many coteries the learners fall into, of which sizes, and how many learners are alone.

    ``summary`` is what `coterie.summary.summarize` returned, as in the other functions here. Without
    clear coteries no sizes are said.
    """
    learners, n_coteries = counted(summary["n_learners"], "learner"), summary["n_clusters"]
    if summary["n_learners"] == 1:
        return "There is one learner, and nobody to learn from."
    sizes = [coterie["n_learners"] for coterie in summary["coteries"]]
    if n_coteries == 1:
        reason = ", as requested" if summary["rule"] == "given" else ": no split of them predicts better"
        return f"The {learners} are one coterie{reason}."
    if not summary["clear"]:
        return f"There are no clear coteries among the {learners}."
    n_singles = sum(size == 1 for size in sizes)
    sizes_above_one = [size for size in sizes if size > 1]
    sizes_text = f"of {joined([str(size) for size in sizes_above_one], 8)} members" if sizes_above_one else ""
    singles_text = (
        f"{counted(n_singles, 'learner')} by {'itself' if n_singles == 1 else 'themselves'}"
        if n_singles
        else ""
    )
    parts = " and ".join(part for part in (sizes_text, singles_text) if part)
    return f"The {learners} fall into {counted(n_coteries, 'coterie')}, {parts}."


def _taken(pays: Summary) -> str:
    """Say what percentages of a prediction come from the learner, its coterie and all, on average.

    It is said where no clear coteries were found. ``pays['taken']`` has the share of each source.
    """
    source_texts = [
        f"{percent_taken}% from {'itself' if name == 'alone' else name}"
        for name, percent_taken in zip(
            pays["taken"], whole_percents(list(pays["taken"].values())), strict=True
        )
        if percent_taken
    ]
    return f"On average a learner takes {joined(source_texts, 9)}." if source_texts else ""


def _verdicts(pays: Summary) -> str:
    """Say for how many of the compared learners others are expected to pay, to cost, or neither.

    ``pays`` is the part of a summary on gains: counts of learners by verdict.
    """
    n_gain, n_lose, n_no_difference = pays["n_gain"], pays["n_lose"], pays["n_no_difference"]
    n_compared = pays["n_compared"]
    learners = counted(n_compared, "learner")
    who_gains = (
        f"all {counted(n_gain, 'learner')}"
        if 1 < n_gain == n_compared
        else f"{n_gain or 'none'} of {learners}"
    )
    text = f"Learning with others is expected to pay for {who_gains}"
    further_parts = []
    if n_lose:
        further_parts.append(f"to cost {n_lose}")
    if n_no_difference:
        further_parts.append(f"to make no clear difference for {n_no_difference}")
    return f"{', '.join([text, *further_parts])}."


def _saved(typical_gain: float, error: str) -> str:
    """Say by what share the typical learner's error falls with others; ``error`` is what it is called.

    ``typical_gain`` is the median gain over learners, a share of the error. One that rounds to zero percent
    is no change.
    """
    if not round(100 * abs(typical_gain)):
        return f"The {error} of the typical learner stays as it is. "
    if typical_gain > 0:
        return f"The typical learner saves {percent(typical_gain)} of its {error}. "
    return f"The {error} of the typical learner rises by {percent(-typical_gain)}. "


def _errors(pays: Summary) -> str:
    """Say the typical gain and the root mean squared errors: alone, with others and with all.

    ``pays`` is the part of a summary on gains. Errors are on held-out rows, in the unit of the target;
    one that is None was not measured.
    """
    target = f" of {pays['target']}" if pays["target"] else ""
    error_texts = [
        f"{name} {number(pays[f'rmse_{key}'])}"
        for name, key in (("alone", "alone"), ("with others", "with"), ("with all", "all"))
        if pays[f"rmse_{key}"] is not None
    ]
    typical = pays["typical_gain"]
    gain_sentence = "" if typical is None else _saved(typical, "squared error")
    unit = f" in {pays['unit']}" if pays.get("unit") else ""
    return f"{gain_sentence}Root mean squared error{target} on rows not seen{unit}: {', '.join(error_texts)}."


def _scores(summary: Summary) -> str:
    """Say the typical gain and the scores of classes on held-out rows: log loss, Brier score, accuracy.

    Each is said alone, with others and with all, as far as it was measured.
    """
    pays, scores = summary["pays"], summary["scores"]
    target = f", for {pays['target']}" if pays["target"] else ""
    typical = pays["typical_gain"]
    gain_sentence = "" if typical is None else _saved(typical, "Brier score")
    if scores is None:
        return gain_sentence.strip()
    score_texts = []
    for name, score_name in (("log_loss", "log loss"), ("brier", "Brier score"), ("accuracy", "accuracy")):
        error_texts = [
            f"{company} {number(scores[key][name])}"
            for company, key in (("alone", "alone"), ("with others", "with"), ("with all", "all"))
            if scores[key][name] is not None
        ]
        score_texts += [f"{score_name} {', '.join(error_texts)}"] if error_texts else []
    return f"{gain_sentence}On rows not seen{target}: {'; '.join(score_texts)}."


def _small(pays: Summary, *, classes: bool = False) -> str:
    """Say how many learners have too few rows to be compared, and, of numbers, their error with others."""
    count = pays["n_too_few_rows"]
    who_text = f"{counted(count, 'learner')} {'has' if count == 1 else 'have'} too few rows to be compared"
    if pays["rmse_with_too_few_rows"] is None or classes:
        return f"{who_text}."
    return f"{who_text}; with others the root mean squared error is {number(pays['rmse_with_too_few_rows'])}."


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
    without_coterie = [display_name(row["learner"]) for row in summary["does_not_belong"]]
    if without_coterie and summary["n_learners"] > 1 and (summary["clear"] or summary["n_clusters"] == 1):
        names = joined(without_coterie)
        if not names.lower().startswith("learner"):
            names = f"{'learner' if len(without_coterie) == 1 else 'learners'} {names}"
        sentences.append(f"The data of {names} fit no coterie of others.")
    return [sentence for sentence in sentences if sentence]
