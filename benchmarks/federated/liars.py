"""What liars do to honest sites: their partition and their errors, beside those without liars.

    python benchmarks/federated/liars.py [--draws 5] [--liars 1] [--only WORDS] [--classes]

Twelve honest sites of three truths, sixty rows each, and one site or more that lie, each with its own honest
rows of some truth. ARI is of the honest sites among themselves; the error is their mean squared distance from
the signal on new rows, over that without liars. The tables are liars.csv, and liars_3.csv of three who
collude. With ``--classes`` the response is one of two classes, sites have 200 rows, and the signal is the
true probability; the table is liars_classes.csv.
"""

from __future__ import annotations

import argparse
import csv
import os
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from lies import LIES, Lie
from sklearn.metrics import adjusted_rand_score

from coterie.datasets import make_linear_learners, make_logistic_learners
from coterie.federated import (
    Conclusion,
    ProtocolError,
    Share,
    Site,
    answer,
    coordinate,
    make_site,
    predict,
    score,
    share,
)

HONEST, TRUTHS = 12, 3
COLUMNS = ("lie", "draws", "least ARI", "mean ARI", "largest error ratio", "mean error ratio", "named")


@cache
def sites_of(seed: int, n_sites: int, classes: bool = False) -> tuple[Any, tuple[Site, ...]]:
    """Return a draw and its sites; the last ones lie."""
    made = make_logistic_learners if classes else make_linear_learners
    n_rows, candidates = (200, ["logistic"]) if classes else (60, ["ridge"])
    data = made(n_sites, n_truths=TRUTHS, n_rows=n_rows, n_features=6, random_state=seed)
    sites = []
    for name in data.learner_ids.tolist():
        mine, more = data.groups == name, {"classes": [0, 1]} if classes else {}
        site = make_site(data.X[mine], data.y[mine], site=name, candidates=candidates, seed=seed, **more)
        sites.append(site)
    return data, tuple(sites)


def concluded(sites: tuple[Site, ...], lie: Lie | None) -> tuple[Conclusion, list[Share]]:
    """Run the protocol; the sites behind the honest ones lie."""
    shares = [share(site) for site in sites]
    liars = {site.name for site in sites[HONEST:]} if lie is not None else set()
    if lie is not None:
        shares = [lie.share(each, shares) if each.site in liars else each for each in shares]
    scores = []
    for site in sites:
        stated = score(site, shares)
        scores.append(lie.score(stated) if lie is not None and site.name in liars else stated)
    asking, by_site = coordinate(shares, scores), {site.name: site for site in sites}
    try:
        question = next(asking)
        while True:
            replies = []
            for member in question.members:
                reply = answer(by_site[member.site], shares, question, n_replicates=0)
                replies.append(lie.answer(question, reply) if lie and member.site in liars else reply)
            question = asking.send(replies)
    except StopIteration as end:
        return end.value, shares


def signal_of(data: Any, X: np.ndarray, truth: int) -> np.ndarray:
    """Return the signal of a truth on new rows; of two classes the probability of the second."""
    scores = X @ data.coefficients[truth]
    return scores if scores.ndim == 1 else 1 / (1 + np.exp(scores[:, 0] - scores[:, 1]))


def errors_of(found: Conclusion, shares: list[Share], data: Any, sites: list[str]) -> np.ndarray:
    """Return how far the honest sites' predictions of new rows are from the signal, of shape (12,)."""
    X = np.random.default_rng(1).normal(size=(500, data.X.shape[1]))
    errors = []
    for place, site in enumerate(sites):
        signal = signal_of(data, X, data.truth[place])
        if site in found.labels:
            predicted = predict(X, site, shares, found)
            predicted = predicted[:, 1] if found.classes else predicted
            errors.append(np.mean((predicted - signal) ** 2))
        else:
            errors.append(np.inf)
    return np.array(errors)


@cache
def judged(lie: Lie | None, seed: int, n_liars: int, classes: bool = False) -> tuple[float, float, bool]:
    """Return ARI and error of the honest sites, and whether a liar is named."""
    data, sites = sites_of(seed, HONEST + n_liars, classes)
    names = [site.name for site in sites[:HONEST]]
    try:
        found, shares = concluded(sites if lie is not None else sites[:HONEST], lie)
    except ProtocolError:
        return 0.0, np.inf, False
    # Who was left out is in nobody's coterie.
    labels = [found.labels.get(name, -1 - place) for place, name in enumerate(names)]
    liars = {site.name for site in sites[HONEST:]}
    text = " ".join(found.notes)
    named = any(name in found.left_out or repr(name) in text for name in liars)
    ari = adjusted_rand_score(data.truth[:HONEST], labels)
    return ari, float(errors_of(found, shares, data, names).mean()), named


def row_of(name: str, n_draws: int, n_liars: int = 1, classes: bool = False) -> dict[str, Any]:
    """Return what a lie does, over some draws."""
    aris, ratios, named = [], [], 0
    for seed in range(n_draws):
        ari, error, is_named = judged(LIES[name], seed, n_liars, classes)
        aris.append(ari)
        ratios.append(error / judged(None, seed, n_liars, classes)[1])
        named += is_named
    values = (name, n_draws, min(aris), np.mean(aris), max(ratios), np.mean(ratios), named)
    return {
        column: round(float(value), 3) if isinstance(value, float) else value
        for column, value in zip(COLUMNS, values, strict=True)
    }


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--liars", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--classes", action="store_true")
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    name = "liars.csv" if options.liars == 1 else f"liars_{options.liars}.csv"
    name = "liars_classes.csv" if options.classes else name
    with open(options.out or Path(__file__).with_name(name), "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for lie in LIES:
            if options.only in lie:
                row = row_of(lie, options.draws, options.liars, options.classes)
                writer.writerow(row)
                file.flush()
                print(row, flush=True)


if __name__ == "__main__":
    main()
