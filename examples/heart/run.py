"""Four hospitals, four processes, and no patient's row leaves its hospital.

    COTERIE_DATA=FOLDER python examples/heart/run.py [PLACE]

Reads heart_disease.parquet with FLamby's split (a copy of the four UCI tables; column ``flamby``). Each
hospital gets a folder with its own patients. It agrees on columns and classes, shares a model and answers
questions by the commands of the sealed folder, in a process of its own. Then each predicts its own test
patients. Prints accuracy and log loss by hospital; everything stays in PLACE, or in a temporary folder.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import polars as pl

from coterie.datasets import local_copy

HOSPITALS = ("cleveland", "hungarian", "switzerland", "va")
# As in FLamby: these have too many gaps. `num` is what the disease was made from.
LEFT_OUT = ("slope", "ca", "thal", "num", "centre", "flamby")
COTERIE = (sys.executable, "-m", "coterie.cli")
PATIENCE = 600


def write_tables(path: Path, place: Path) -> None:
    """Give each hospital a folder with its patients to learn from, and those to be predicted."""
    # Kinds of pain and of electrocardiogram are no numbers.
    kinds = [pl.format("kind {}", pl.col(name).cast(pl.Int64)).alias(name) for name in ("cp", "restecg")]
    table = pl.read_parquet(path).with_columns(kinds)
    for hospital in HOSPITALS:
        root = place / hospital
        root.mkdir(parents=True, exist_ok=True)
        for part in ("train", "test"):
            mine = table.filter((pl.col("centre") == hospital) & (pl.col("flamby") == part))
            mine.drop(LEFT_OUT).write_csv(root / f"{part}.csv")


def started(hospital: str, place: Path, *command: str) -> subprocess.Popen[str]:
    """Start a command at a hospital: in its own folder, with a cache of its own."""
    root = place / hospital
    environment = {**os.environ, "COTERIE_CACHE": str(root / "cache"), "OMP_NUM_THREADS": "1"}
    named = ("--name", hospital, "--folder", str(place / "box"))
    return subprocess.Popen(
        [*COTERIE, *command, *named],
        cwd=root,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Wait for all, and stop with what was said where one has failed."""
    said = [process.communicate(timeout=PATIENCE)[0] for process in processes]
    for process, text in zip(processes, said, strict=True):
        if process.returncode:
            raise SystemExit(text)


def at_all(place: Path, *command: str) -> None:
    """Run a command at all hospitals at once."""
    finished([started(hospital, place, *command) for hospital in HOSPITALS])


def anywhere(place: Path, *command: str) -> None:
    """Run a command that needs the folder alone."""
    done = subprocess.run(
        [*COTERIE, *command, "--folder", str(place / "box")], capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    print(done.stdout)


def scores(hospital: str, place: Path) -> tuple[float, float]:
    """Let a hospital predict its test patients; return accuracy and log loss."""
    root = place / hospital
    command = ("predict", str(place / "box"), "test.csv", "--name", hospital, "--out", "predictions.csv")
    subprocess.run([*COTERIE, *command, "--force"], cwd=root, check=True, capture_output=True)
    truth = pl.read_csv(root / "test.csv")["disease"].to_numpy()
    sick = pl.read_csv(root / "predictions.csv")["prediction_1"].to_numpy()
    chances = np.clip(np.where(truth == 1, sick, 1 - sick), 1e-6, 1)
    return float(np.mean((sick > 0.5) == truth)), float(-np.log(chances).mean())


def main(place: Path) -> None:
    """Do all of it, and print the table."""
    path = local_copy("", "heart_disease.parquet")
    if path is None:
        raise SystemExit("COTERIE_DATA must name a folder with heart_disease.parquet.")
    (place / "box").mkdir(parents=True, exist_ok=True)
    write_tables(path, place)
    at_all(place, "columns", "train.csv", "--target", "disease")
    anywhere(place, "agree")
    at_all(place, "share", "train.csv", "--target", "disease", "--candidates", "logistic")
    # Everybody goes on answering until there is a conclusion.
    answering = [started(h, place, "score", "train.csv", "--wait", str(PATIENCE)) for h in HOSPITALS]
    anywhere(place, "conclude", "--min-rows", "10", "--wait", str(PATIENCE))
    finished(answering)
    print("hospital      accuracy  log loss")
    found = np.array([scores(hospital, place) for hospital in HOSPITALS])
    for hospital, (accuracy, lost) in zip((*HOSPITALS, "mean"), (*found, found.mean(axis=0)), strict=True):
        print(f"{hospital:12s}  {accuracy:8.3f}  {lost:8.3f}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder))
