"""What a round costs a site: seconds and bytes, for 10, 50 and 200 sites with linear models and with forests.

    python benchmarks/federated/rounds.py [--sites 10 50 200] [--models linear forests] [--rows 60]

All sites work in this process, one after the other, on Flower's grid without a SuperLink. Real sites work at
the same time, so the seconds are per site. A real node works in a fresh process in every round: Flower adds
about ten seconds to each, and the site makes its model anew, which is counted in the first round only.
"""

from __future__ import annotations

import argparse
import csv
import os
import platform
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

os.environ |= {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}

import sklearn

from coterie.datasets import make_linear_learners
from coterie.federated import Party, make_party
from coterie.federated.flower import InProcessGrid, make_client_app, run_protocol

HERE = Path(__file__).parent
CANDIDATES = {"linear": "ridge", "forests": "rf"}
FIELDS = (
    "models",
    "sites",
    "gram",
    "round",
    "seconds_per_site",
    "bytes_to_each_site",
    "bytes_from_each_site",
    "coordinator_seconds",
    "exact",
)


def measured(models: str, n_sites: int, n_rows: int, gram: bool) -> Iterator[dict[str, Any]]:
    """Run the protocol once and give out a row per round."""
    data = make_linear_learners(n_learners=n_sites, n_truths=3, n_rows=n_rows, n_features=5, random_state=0)

    @cache
    def party_of(site: str) -> Party:
        mine = data.groups == site
        return make_party(data.X[mine], data.y[mine], site=site, candidates=[CANDIDATES[models]])

    def load_party(context: Any) -> Party:
        return party_of(context.node_config["site"])

    sites = data.learner_ids.tolist()
    nodes = [{"site": site, "reveal-gram": str(gram).lower()} for site in sites]
    started = time.perf_counter()
    run = run_protocol(InProcessGrid(make_client_app(load_party), nodes))
    rest = time.perf_counter() - started - sum(r.seconds for r in run.rounds)
    truth = dict(zip(sites, data.truth.tolist(), strict=True))
    found = run.conclusion.labels
    exact = not run.conclusion.left_out and len(set(truth.values())) == run.conclusion.n_coteries
    exact = exact and len({(truth[site], found[site]) for site in sites}) == run.conclusion.n_coteries
    for place, r in enumerate(run.rounds):
        asked = len(r.replies) + len(r.failures)
        yield {
            "models": models,
            "sites": n_sites,
            "gram": gram,
            "round": f"{place + 1} {r.name}",
            "seconds_per_site": f"{r.seconds / asked:.3f}",
            "bytes_to_each_site": r.sent,
            "bytes_from_each_site": r.received // asked,
            "coordinator_seconds": f"{rest:.2f}" if place == 0 else "",
            "exact": exact if place == 0 else "",
        }


def main() -> None:
    """Measure, print, and write results.csv."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sites", type=int, nargs="+", default=[10, 50, 200])
    parser.add_argument("--models", nargs="+", default=list(CANDIDATES))
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--out", type=Path, default=HERE / "results.csv")
    chosen = parser.parse_args()
    print(f"Python {platform.python_version()}, scikit-learn {sklearn.__version__}, {os.cpu_count()} cores")
    with chosen.out.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for models in chosen.models:
            for n_sites in chosen.sites:
                for gram in (True, False):
                    # Every round without Gram matrices evaluates all forests at all sites again.
                    if models == "forests" and n_sites > 50 and not gram:
                        print(f"{models}, {n_sites} sites, without Gram matrices: left out, it takes an hour")
                        continue
                    for row in measured(models, n_sites, chosen.rows, gram):
                        writer.writerow(row)
                        file.flush()
                        print(*row.values(), flush=True)


if __name__ == "__main__":
    main()
