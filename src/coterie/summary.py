"""One answer: what a fit, a partition or a federated conclusion found, as one plain dict.

The notebook, the terminal, JSON and the report page show the numbers of this dict and compute none of their
own. It holds texts, numbers, lists and dicts, as JSON knows them. A number that does not exist is None.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from coterie._answer import answer_sentences
from coterie._arrays import Array
from coterie.fit.record import Fit
from coterie.records import Collaboration, OwnResiduals, Partition
from coterie.rows.cautions import NOTHING_TO_LEARN
from coterie.verdicts.gains import ERRORS
from coterie.verdicts.verdict import COLLABORATE, NO_DIFFERENCE, STAY_ALONE, TOO_FEW_ROWS, VERDICTS

if TYPE_CHECKING:
    # Loaded only by those who have the extra.
    from coterie.federated.conclusions import Conclusion

Columns = Mapping[str, Any]
# Predicted probabilities below this count as this: the log loss of a class with probability 0 is infinite.
SUREST = 1e-6


def plain(value: Any) -> Any:
    """Return a value as JSON has it, also inside dicts and lists: numbers that are not finite become None."""
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, (bool, int, float, str, type(None))) else str(value)


def plain_list(values: Iterable[Any]) -> list[Any]:
    """Return some values as JSON has them."""
    return [plain(value) for value in values]


def table_rows(columns: Columns) -> list[dict[str, Any]]:
    """Return a table of columns as a list of rows for JSON."""
    parts = [plain_list(column) for column in columns.values()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*parts, strict=True)]


def deciding_first(curves: Iterable[str], rule: str | None) -> list[str]:
    """Return the names of the rules as they are shown: the one that decided comes first."""
    return sorted(curves, key=lambda name: name != rule)


def learner_columns(found: Fit | Partition | Conclusion) -> Columns:
    """Return the table of learners, with the columns of ``gains_``; a partition has clusters only."""
    if isinstance(found, Partition):
        return {"learner": found.learner_ids, "cluster": found.labels}
    if isinstance(found, Fit):
        return found.gains
    rows = [asdict(row) for row in found.gains]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _rules(curves: Mapping[str, Any], rule: str) -> dict[str, dict[str, Any]]:
    """Return each rule's curve and choice, the deciding rule first.

    Rules choose the number of clusters. Curves of a conclusion among sites lack some fields: None stands in.
    """
    rules = {}
    for name in deciding_first(curves, rule):
        curve = curves[name]
        spread = getattr(curve, "spread", None)
        rules[name] = {
            "chosen": int(curve.chosen),
            "criterion": curve.criterion,
            "n_clusters": [int(k) for k in curve.n_clusters],
            "values": plain_list(curve.values),
            "spread": None if spread is None else plain_list(spread),
            "one_truth_z": getattr(curve, "one_truth_z", None),
        }
    return rules


def _finite(values: Any) -> Array:
    """Return the values that are finite numbers."""
    numbers: Array = np.asarray(values, dtype=float)
    return numbers[np.isfinite(numbers)]


def _of_finite(statistic: Callable[[Array], Any], values: Any) -> float | None:
    """Return a statistic, as `numpy.mean`, of the values that are finite; None where none is."""
    finite_values = _finite(values)
    return float(statistic(finite_values)) if len(finite_values) else None


def _root(error: float | None) -> float | None:
    """Return the square root of an error, None for what has none."""
    return None if error is None or error < 0 else math.sqrt(error)


def _averages(columns: Columns, selected: Any = slice(None)) -> dict[str, float | None]:
    """Return mean errors, and the mean and the median gain, over the ``selected`` learners (a mask)."""
    averages = {name: _of_finite(np.mean, columns[name][selected]) for name in ERRORS}
    gain = columns["gain"][selected]
    return {**averages, "mean_gain": _of_finite(np.mean, gain), "median_gain": _of_finite(np.median, gain)}


def _group(columns: Columns, selected: Array, *, named: bool) -> dict[str, Any]:
    """Return sizes, mean errors and gains of the ``selected`` learners (a mask) together.

    Errors and gains are over those with a gain. ``named`` adds the learners' ids. Without a column of gains,
    as in a partition, there are sizes only.
    """
    group: dict[str, Any] = {"n_learners": int(selected.sum())}
    if named:
        group["learners"] = plain_list(columns["learner"][selected].tolist())
    if "gain" in columns:
        group |= {"n_rows": int(np.sum(columns["n_rows"][selected]))}
        averages = _averages(columns, selected & np.isfinite(np.asarray(columns["gain"], dtype=float)))
        group |= averages
        group |= {f"rmse_{name.removeprefix('error_')}": _root(averages[name]) for name in ERRORS}
    return group


def _by_verdict(columns: Columns, *, named: bool) -> list[dict[str, Any]]:
    """Return the learners of each verdict together, the largest gains named first."""
    order = np.argsort(-np.asarray(columns["gain"], dtype=float), kind="stable")
    ranked = {name: np.asarray(column)[order] for name, column in columns.items()}
    groups = []
    for verdict in dict.fromkeys((*VERDICTS, *ranked["verdict"].tolist())):
        selected = ranked["verdict"] == verdict
        if selected.any():
            groups.append({"verdict": verdict, **_group(ranked, selected, named=named)})
    return groups


def _coteries(columns: Columns, n_clusters: int, *, named: bool) -> list[dict[str, Any]]:
    """Return the coteries, clusters in what people read, with their members and models.

    ``columns`` is the table of learners; ``named`` adds their ids. A partition alone has no models or gains.
    """
    labels = np.asarray(columns["cluster"])
    coteries = []
    for label in range(n_clusters):
        selected = labels == label
        coterie = {"cluster": label, **_group(columns, selected, named=named)}
        if "gain" in columns:
            models = Counter(str(model) for model in columns["model"][selected] if model)
            coterie["models"] = dict(models.most_common())
        coteries.append(coterie)
    return coteries


def _verdicts(verdicts: Iterable[Any]) -> dict[str, int]:
    """Count the verdicts, the most frequent first; those that nobody got have a zero."""
    counts = Counter(str(verdict) for verdict in verdicts)
    return dict(Counter({name: counts[name] for name in (*VERDICTS, *counts)}).most_common())


def _pays(columns: Columns, target: str | None, unit: str) -> dict[str, Any]:
    """Return what others bring, over the learners who could be compared; the same ones in every number.

    A gain is the share of a learner's error that others save it, and a verdict whether it should learn with
    them. Learners that were not compared have a gain of NaN.
    """
    verdicts = np.asarray(columns["verdict"])
    gain = np.asarray(columns["gain"], dtype=float)
    compared = np.isfinite(gain)
    small = verdicts == TOO_FEW_ROWS
    averages = _averages(columns, compared)
    error_of_small = _of_finite(np.mean, np.asarray(columns["error_with"], dtype=float)[small])
    return {
        "target": target,
        "unit": unit,
        "n_compared": int(compared.sum()),
        "n_gain": int((verdicts[compared] == COLLABORATE).sum()),
        "n_lose": int(((verdicts == STAY_ALONE) & (gain < 0)).sum()),
        "n_no_difference": int((verdicts[compared] == NO_DIFFERENCE).sum()),
        "n_too_few_rows": int(small.sum()),
        "typical_gain": averages["median_gain"],
        **{f"rmse_{name.removeprefix('error_')}": _root(averages[name]) for name in ERRORS},
        "rmse_with_too_few_rows": _root(error_of_small),
        **averages,
        "least_gain": _of_finite(np.min, gain),
        "most_gain": _of_finite(np.max, gain),
        "taken": {
            name.removeprefix("from_").replace("_", " "): _of_finite(np.mean, column)
            for name, column in columns.items()
            if name.startswith("from_")
        },
        "verdicts": _verdicts(verdicts),
    }


def _class_scores(found: Fit) -> dict[str, dict[str, float | None]]:
    """Return log loss, Brier score and accuracy on rows not seen, means over learners who shape clusters.

    They are those of learners alone, with others and with all; newcomers and small learners have no part.
    """
    loss, learners = found.options.loss, found.learners
    ids = learners.ids
    parts: dict[str, OwnResiduals | Collaboration] = {
        "alone": found.own.aligned_to(ids),
        "with": found.collaboration.aligned_to(ids),
        "all": found.with_all.aligned_to(ids),
    }
    scores = {}
    for name, record in parts.items():
        residuals = np.concatenate(record.residuals)
        # NaN where no fold held the row out.
        known = np.isfinite(residuals).all(axis=1)
        owner, Y = learners.owner[known], learners.y[known]
        probabilities, codes = loss.from_columns(Y - residuals[known]), loss.target(Y)
        of_true_class = np.clip(probabilities[np.arange(len(codes)), codes], SUREST, 1.0)
        rows = {
            "log_loss": -np.log(of_true_class),
            "brier": loss.by_row(residuals[known]),
            "accuracy": (probabilities.argmax(axis=1) == codes).astype(float),
        }
        counts = np.bincount(owner, minlength=len(ids))
        scores[name] = {
            score: _of_finite(np.mean, np.bincount(owner, values, len(ids))[counts > 0] / counts[counts > 0])
            for score, values in rows.items()
        }
    return scores


def _concluded_scores(pays: Any) -> dict[str, dict[str, float | None]]:
    """Return the Brier scores that sites stated; no message tells a log loss or an accuracy."""
    return {
        name: {"log_loss": None, "brier": pays[f"error_{name}"], "accuracy": None}
        for name in ("alone", "with", "all")
    }


def _does_not_belong(columns: Columns) -> list[dict[str, Any]]:
    """Return whose data no cluster of others describes."""
    outside = ~np.asarray(columns["fits"], dtype=bool)
    return table_rows({name: columns[name][outside] for name in ("learner", "reason")})


def _bootstrap(found: Fit) -> dict[str, Any] | None:
    """Return how often the bootstrap found each number of clusters; None without a bootstrap."""
    if found.stability is None:
        return None
    return {
        "n_replicates": int(found.stability.n_replicates),
        "n_clusters": [int(k) for k in found.stability.n_clusters],
        "shares": plain_list(found.stability.shares),
    }


def summarize(
    found: Fit | Partition | Conclusion, *, named: bool = True, target: str | None = None, unit: str = ""
) -> dict[str, Any]:
    """Return the answer of a fit, of a partition or of a federated conclusion.

    Without ``named``, the lists and the table that name every learner are left out. A partition has no
    ``pays`` (None) and a ``gains`` table with learners and clusters only. ``target`` names the response, and
    ``unit`` is that of the errors. If ``nothing_to_learn`` is a sentence, it is the whole answer. Of classes
    there are ``scores``: log loss, Brier score and accuracy; None where the rows are not there.
    """
    columns = learner_columns(found)
    if isinstance(found, Fit) and found.options.log_target:
        target, unit = f"the log of {target or 'the response'}", ""
    # Who found the clusters: newcomers have no part in their number, their rule and their notes.
    source = found.partition if isinstance(found, Fit) else found
    measured = "gain" in columns
    fitted = isinstance(found, Fit)
    summary = {
        "source": "model" if fitted else "losses" if isinstance(found, Partition) else "sites",
        "n_learners": len(columns["learner"]),
        "n_clusters": source.n_clusters,
        "n_rows": int(np.sum(columns["n_rows"])) if measured else None,
        "n_admitted": len(found.labels) - len(found.partition.labels) if isinstance(found, Fit) else 0,
        "clear": bool(source.clear),
        "rule": source.rule,
        "coteries": _coteries(columns, source.n_clusters, named=named),
        "pays": _pays(columns, target, unit) if measured else None,
        "by_verdict": _by_verdict(columns, named=named) if measured else [],
        "does_not_belong": _does_not_belong(columns) if measured else [],
        "left_out": dict(getattr(found, "left_out", {})),
        "rules": _rules(source.curves, source.rule),
        "bootstrap": _bootstrap(found) if isinstance(found, Fit) else None,
        "nothing_to_learn": next((note for note in source.notes if NOTHING_TO_LEARN in note), None),
        "notes": list(source.notes),
        "rounds": getattr(found, "rounds", None),
        "effort": found.options.effort if isinstance(found, Fit) else None,
    }
    if isinstance(found, Fit) and found.options.loss.bounds is not None:
        summary["scores"] = _class_scores(found) if found.has_rows else None
    if getattr(found, "classes", ()) and summary["pays"] is not None:
        summary["scores"] = _concluded_scores(summary["pays"])
    if named:
        summary["gains"] = table_rows(columns)
    return {"answer": answer_sentences(summary), **summary}
