"""Time per round and bytes per site: what a conclusion of 10, 50 and 200 sites takes.

    python benchmarks/federated/traffic.py

All sites are in this process, one after the other, so a site's seconds are those of one core. Ten of them
evaluate everybody's models as sites do, in a process of their own, and are timed; the others know the
predictions of the fitted models, and are not. Linear sites
choose by ridge, forests have a hundred trees on sixty rows. Bytes are those of the messages that a site sends
(share, score, answers) and that it receives (everybody's shares, the questions). The table is traffic.csv.
"""

from __future__ import annotations

import csv
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import Ridge

from coterie.datasets import make_linear_learners
from coterie.federated import Share, Site, answer, conclude, encode, make_site, score, share
from coterie.federated.answers import Answered
from coterie.federated.conclusions import Conclusion

TIMED = 10
SIZES = {"linear": (10, 50, 200), "forest": (10, 50, 200)}
FAMILIES = {"linear": {"ridge": Ridge()}, "forest": {"rf": RandomForestRegressor(100, n_jobs=1)}}


def timed(calls: Sequence[Callable[[], Any]]) -> tuple[list[Any], float]:
    """Return what calls answer, and the median of the seconds of those that are timed."""
    answers, seconds = [], []
    for call in calls:
        began = time.perf_counter()
        answers.append(call())
        seconds.append(time.perf_counter() - began)
    return answers, statistics.median(seconds[:TIMED])


def record_predictions(sites: Sequence[Site], shares: Sequence[Share]) -> None:
    """Let all but the timed sites know what everybody's models predict, without evaluating what was sent."""
    others = sites[TIMED:]
    if not others:
        return
    X, sizes = np.vstack([site.learners.X for site in others]), [len(p.learners.y) for p in others]
    for site, message in zip(sites, shares, strict=True):
        parts = np.split(site.selection.models[0].predict(X), np.cumsum(sizes)[:-1])
        for other, part in zip(others, parts, strict=True):
            other.seen[message.sha] = part


def measure(family: str, n_sites: int) -> dict[str, object]:
    """Run the protocol to its end once."""
    data = make_linear_learners(n_learners=n_sites, n_truths=3, n_rows=60, n_features=6, random_state=0)
    began = time.perf_counter()
    sites = []
    for name in data.learner_ids.tolist():
        mine = data.groups == name
        sites.append(make_site(data.X[mine], data.y[mine], site=name, candidates=FAMILIES[family]))
    select = (time.perf_counter() - began) / n_sites
    shares, share_time = timed([lambda p=site: share(p) for site in sites])
    record_predictions(sites, shares)
    scores, score_time = timed([lambda p=site: score(p, shares) for site in sites])
    answered: list[Answered] = []
    requested = answers_sent = 0
    answer_time = coordinator = 0.0
    while True:
        began = time.perf_counter()
        outcome = conclude(shares, scores, answered)
        coordinator += time.perf_counter() - began
        if isinstance(outcome, Conclusion):
            break
        calls = [lambda p=site, q=outcome: answer(p, shares, q) for site in sites]
        replies, seconds = timed(calls)
        answered.append(Answered(outcome, {reply.site: reply for reply in replies}))
        requested += len(encode(outcome))
        answers_sent += max(len(encode(reply)) for reply in replies)
        answer_time += seconds
    models = [len(encode(message)) for message in shares]
    return {
        "family": family,
        "sites": n_sites,
        "rounds": outcome.rounds,
        "share, bytes": round(statistics.mean(models)),
        "score, bytes": round(statistics.mean(len(encode(message)) for message in scores)),
        "answers, bytes": answers_sent,
        "received, bytes": sum(models) + requested,
        "select, s": round(select, 3),
        "share, s": round(share_time, 4),
        "score, s": round(score_time, 3),
        "a round, s": round(answer_time / max(outcome.rounds, 1), 3),
        "coordinator, s": round(coordinator, 2),
    }


def main() -> None:
    """Measure, and write the table."""
    path = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(".csv"))
    writer = None
    with open(path, "w", newline="") as file:
        for family, sizes in SIZES.items():
            for n_sites in sizes:
                row = measure(family, n_sites)
                if writer is None:
                    writer = csv.DictWriter(file, list(row))
                    writer.writeheader()
                writer.writerow(row)
                file.flush()
                print(row)


if __name__ == "__main__":
    main()
