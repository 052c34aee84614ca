"""What rules that cannot say one are worth once they may: silhouettes with a threshold of equal false alarm.

    python benchmarks/quality/peers/calibrated.py [--draws 16] [--nulls 100]

In the noisiest cells of Simulation 1 a rule that always answers two or more is right by construction. Here
the silhouette peers answer one unless their silhouette exceeds what 95 of 100 draws of *one* truth reach,
with the same predictors, rows and noise, which nobody has outside a simulation. coterie's answers to the same
draws are those of ``results.csv``, and it is run on some draws of one truth for its own false alarms. Writes
``calibrated.csv``, which ``run.py`` puts on the page.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import csv
from dataclasses import replace
from pathlib import Path

import numpy as np
from run import HERE, in_shared_units, read
from settings import Draw, draw
from sklearn.metrics import adjusted_rand_score, silhouette_score
from vectors import KINDS, best_by_silhouette

from coterie import CoterieRegressor

CELLS = ((5, 1), (10, 1), (20, 1), (20, 2), (20, 4))
MOST = 8
FALSE_ALARMS = 0.05
# Seeds of the draws of one truth, away from those of the comparison.
FIRST_NULL = 500


def one_truth(drawn: Draw) -> Draw:
    """Return the same draw with everybody following the first truth, noise unchanged."""
    train = drawn.train
    signal = train.X @ train.coefficients[0]
    y = signal + train.y - train.signal
    return replace(drawn, train=replace(train, signal=signal, y=y, truth=np.zeros_like(train.truth)))


def silhouettes(name: str, drawn: Draw, seed: int) -> dict[str, tuple[float, np.ndarray]]:
    """Return each peer's best silhouette and its labels."""
    problem = in_shared_units(name, drawn, MOST, seed)[0]
    found = {}
    for kind, make in KINDS.items():
        vectors = make(problem)
        labels = best_by_silhouette(vectors, MOST, seed)
        found[kind] = float(silhouette_score(vectors, labels)), labels
    return found


def _finds_more_than_one(drawn: Draw) -> bool:
    train = drawn.train
    model = CoterieRegressor(collaboration="pooled", max_clusters=MOST, n_jobs=1)
    return len(set(model.fit(train.X, train.y, groups=train.groups).learner_labels_.tolist())) > 1


def _cell(name: str, draws: int, nulls: int, ours: dict[int, float]) -> dict[str, str | float]:
    seeds = [seed for seed in range(draws) if seed in ours]
    alone = [(seed, one_truth(draw(name, FIRST_NULL + seed))) for seed in range(nulls)]
    heights = [silhouettes(name, drawn, seed) for seed, drawn in alone]
    row: dict[str, str | float] = {"setting": name, "draws": len(seeds)}
    row["coterie, auto"] = float(np.mean([ours[seed] for seed in seeds]))
    drawn_by = {seed: draw(name, seed) for seed in seeds}
    found = [(silhouettes(name, drawn, seed), drawn.train.truth) for seed, drawn in drawn_by.items()]
    for kind in KINDS:
        limit = np.quantile([height[kind][0] for height in heights], 1 - FALSE_ALARMS)
        scores = np.array([adjusted_rand_score(truth, answer[kind][1]) for answer, truth in found])
        above = np.array([answer[kind][0] > limit for answer, _ in found])
        row[f"{kind}, as it is"] = float(scores.mean())
        row[f"{kind}, threshold"] = float(np.where(above, scores, 0.0).mean())
    row["coterie, false alarms"] = float(np.mean([_finds_more_than_one(drawn) for _, drawn in alone[:draws]]))
    return row


def main() -> None:
    """Run all cells."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--draws", type=int, default=16)
    parser.add_argument("--nulls", type=int, default=100)
    parser.add_argument("--out", type=Path, default=HERE)
    arguments = parser.parse_args()
    known = [row for row in read(arguments.out / "results.csv") if row["method"] == "coterie, auto"]
    rows = []
    for p, snr in CELLS:
        name = f"Simulation 1, p={p}, SNR {snr}"
        ours = {int(row["draw"]): float(row["ari"]) for row in known if row["setting"] == name}
        rows.append(_cell(name, arguments.draws, arguments.nulls, ours))
        print({key: round(v, 2) if isinstance(v, float) else v for key, v in rows[-1].items()}, flush=True)
    with open(arguments.out / "calibrated.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(
            {key: f"{v:.4f}" if isinstance(v, float) else v for key, v in row.items()} for row in rows
        )


if __name__ == "__main__":
    main()
