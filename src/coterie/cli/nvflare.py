"""NVFlare's cross-site evaluation, clustered: ``{site: {model: {metric: value}}}``."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import coterie
from coterie.cli.errors import CommandError, one_sentence
from coterie.cli.folders import Workplace
from coterie.cli.running import losses_table, write_tables
from coterie.method.cluster import cluster_learners
from coterie.summary import summarize

# What metrics are called, after anything such as "val_": those of which more is better, and the others.
SCORES = (
    "accuracy",
    "acc",
    "auc",
    "auroc",
    "average_precision",
    "f1",
    "f1_score",
    "precision",
    "recall",
    "r2",
)
LOSSES = ("log_loss", "logloss", "cross_entropy", "nll", "loss", "brier", "brier_score", "mse", "rmse", "mae")
_SHAPE = "{site: {model: {metric: value}}}"


def _read(path: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Read NVFlare's cross-site evaluation: ``{site: {model: {metric: value}}}``; refuse any other JSON."""
    try:
        results = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(f"There is no file {path!r}: check the path.") from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{path!r} cannot be read as JSON ({error}): check that it is whole.") from None
    has_shape = isinstance(results, dict) and all(
        isinstance(models, dict) and all(isinstance(metrics, dict) for metrics in models.values())
        for models in results.values()
    )
    if not has_shape or not results:
        raise CommandError(f"{path!r} does not hold {_SHAPE}: give NVFlare's cross_val_results.json.")
    return dict(results)


def _metric_of(results: dict[str, dict[str, dict[str, Any]]], metric: str | None) -> str:
    """Return the metric to use: the one that was named, or the file's only one."""
    metrics = list(dict.fromkeys(m for models in results.values() for ms in models.values() for m in ms))
    if metric is None and len(metrics) == 1:
        return metrics[0]
    if metric not in metrics:
        names = ", ".join(repr(name) for name in metrics) or "none"
        raise CommandError(f"--metric must be one of the file's metrics: {names}. Got {metric!r}.")
    return metric


def is_score(name: str) -> bool | None:
    """Tell by its name whether more of a metric is better; None where the name does not say."""
    normalised = "_" + re.sub("[^a-z0-9]+", "_", name.lower())
    # Of two that fit, the longer name: a log loss is a loss.
    matching_words = [word for word in (*SCORES, *LOSSES) if normalised.endswith(f"_{word}")]
    return max(matching_words, key=len) in SCORES if matching_words else None


def read_losses(
    path: str, metric: str | None, higher_is_better: bool
) -> tuple[NDArray[np.float64], list[str], list[str]]:
    """Return losses (L, L), the L sites, and notes; entry (i, j) is of site i's model on site j's rows.

    Only names that are both a site and a model are used. A score, which is at most one, is turned into the
    loss 1 - score. The metric None is the file's only one; its name may say that it is a score, as
    ``higher_is_better`` does. NVFlare is a tool for federated learning, whose file has all models at all
    sites.
    """
    results = _read(path)
    metric_name = _metric_of(results, metric)
    score_by_name = is_score(metric_name)
    if score_by_name is False and higher_is_better:
        raise CommandError(f"The metric {metric_name!r} is a loss by its name: leave out --higher-is-better.")
    higher_is_better = higher_is_better or bool(score_by_name)
    models = dict.fromkeys(model for tested in results.values() for model in tested)
    sites = [site for site in results if site in models]
    if len(sites) < 2:
        raise CommandError(
            f"{path!r} has {len(sites)} sites with a model of their own: evaluate the sites' models, too, "
            "not only the server's."
        )
    losses = np.empty((len(sites), len(sites)))
    for column, site in enumerate(sites):
        for row, model in enumerate(sites):
            value = results[site].get(model, {}).get(metric_name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise CommandError(
                    f"The metric {metric_name!r} of the model of {model!r} on the data of {site!r} is "
                    "missing or no number: run the cross-site evaluation again."
                )
            losses[row, column] = 1 - value if higher_is_better else value
    if higher_is_better and (losses[np.isfinite(losses)] < 0).any():
        raise CommandError(f"The score {metric_name!r} exceeds 1: give a loss, without --higher-is-better.")
    left_out = sorted((set(models) | set(results)) - set(sites))
    notes = [f"Left out, for it is not both a site and a model: {', '.join(left_out)}."] if left_out else []
    if score_by_name is not None:
        kind = "score: one minus it is taken for the loss" if score_by_name else "loss: lower is better"
        notes.insert(0, f"The matrix has {metric_name!r}, a {kind}.")
    others_better = losses.diagonal()[:, None] > losses.T if not higher_is_better else None
    if (
        others_better is not None
        and len(sites) > 2
        and others_better.mean() > 0.5
        and math.isfinite(losses.sum())
    ):
        notes.append(
            f"Most sites' own models have a higher {metric_name!r} on their data than others' have: if it is "
            "a score and not a loss, pass --higher-is-better."
        )
    return losses, sites, notes


def cluster_nvflare(
    path: str,
    place: Workplace,
    *,
    metric: str | None,
    higher_is_better: bool,
    report: bool,
    **clustering: Any,
) -> dict[str, Any]:
    """Cluster the sites of NVFlare's matrix and write who is in which coterie; return the summary.

    ``metric`` and ``higher_is_better`` say how to read the matrix; ``clustering`` are options of
    `cluster_learners`.
    """
    losses, sites, notes = read_losses(path, metric, higher_is_better)
    with one_sentence():
        partition = cluster_learners(losses, learner_ids=sites, **clustering)
    summary = summarize(partition)
    summary["notes"] = [*notes, *summary["notes"]]
    summary["out"] = str(place.out)
    labels = pl.DataFrame({"learner": sites, "cluster": partition.labels})
    with place.held(), place.writing() as folder:
        write_tables(folder, {"labels.csv": labels, "losses.csv": losses_table(losses, sites)}, summary)
        if report:
            coterie.Report(partition, losses=losses).write_html(folder / "report.html")
    return summary
