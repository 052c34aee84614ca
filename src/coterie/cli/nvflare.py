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
    """Read NVFlare's results: metrics by model and site."""
    try:
        results = json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CommandError(f"There is no file {path!r}: check the path.") from None
    except (OSError, ValueError) as error:
        raise CommandError(f"{path!r} cannot be read as JSON ({error}): check that it is whole.") from None
    nested = isinstance(results, dict) and all(
        isinstance(models, dict) and all(isinstance(metrics, dict) for metrics in models.values())
        for models in results.values()
    )
    if not nested or not results:
        raise CommandError(f"{path!r} does not hold {_SHAPE}: give NVFlare's cross_val_results.json.")
    return dict(results)


def _metric_of(results: dict[str, dict[str, dict[str, Any]]], metric: str | None) -> str:
    """Return the name of the metric to use: the one given, or the only one."""
    known = list(dict.fromkeys(m for models in results.values() for ms in models.values() for m in ms))
    if metric is None and len(known) == 1:
        return known[0]
    if metric not in known:
        names = ", ".join(repr(name) for name in known) or "none"
        raise CommandError(f"--metric must be one of the file's metrics: {names}. Got {metric!r}.")
    return metric


def is_score(name: str) -> bool | None:
    """Tell by its name whether more of a metric is better; None where the name does not say."""
    plain = "_" + re.sub("[^a-z0-9]+", "_", name.lower())
    # Of two that fit, the longer name: a log loss is a loss.
    known = [word for word in (*SCORES, *LOSSES) if plain.endswith(f"_{word}")]
    return max(known, key=len) in SCORES if known else None


def read_losses(
    path: str, metric: str | None, higher_is_better: bool
) -> tuple[NDArray[np.float64], list[str], list[str]]:
    """Return the losses (row i: the model of site i on everybody), the sites, and what was left out.

    The loss of a score, which is at most one, is one minus it. The metric None is the only one of the file.
    One whose name says that it is a score, such as an accuracy, is one without ``higher_is_better``, too.
    """
    results = _read(path)
    name = _metric_of(results, metric)
    known = is_score(name)
    if known is False and higher_is_better:
        raise CommandError(f"The metric {name!r} is a loss by its name: leave out --higher-is-better.")
    higher_is_better = higher_is_better or bool(known)
    models = dict.fromkeys(model for tested in results.values() for model in tested)
    sites = [site for site in results if site in models]
    if len(sites) < 2:
        raise CommandError(
            f"{path!r} has {len(sites)} sites with a model of their own: evaluate the sites' models, too, "
            "not only the server's."
        )
    losses = np.empty((len(sites), len(sites)))
    for j, site in enumerate(sites):
        for i, model in enumerate(sites):
            value = results[site].get(model, {}).get(name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise CommandError(
                    f"The metric {name!r} of the model of {model!r} on the data of {site!r} is missing or no "
                    "number: run the cross-site evaluation again."
                )
            losses[i, j] = 1 - value if higher_is_better else value
    if higher_is_better and (losses[np.isfinite(losses)] < 0).any():
        raise CommandError(f"The score {name!r} exceeds 1: give a loss, without --higher-is-better.")
    strange = sorted((set(models) | set(results)) - set(sites))
    notes = [f"Left out, for it is not both a site and a model: {', '.join(strange)}."] if strange else []
    if known is not None:
        what = "score: one minus it is taken for the loss" if known else "loss: lower is better"
        notes.insert(0, f"The matrix has {name!r}, a {what}.")
    worse = losses.diagonal()[:, None] > losses.T if not higher_is_better else None
    if worse is not None and len(sites) > 2 and worse.mean() > 0.5 and math.isfinite(losses.sum()):
        notes.append(
            f"Most sites' own models have a higher {name!r} on their data than others' have: if it is a "
            "score and not a loss, pass --higher-is-better."
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
    """Cluster the sites of NVFlare's matrix and write who is in which coterie; return the summary."""
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
