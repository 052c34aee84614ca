"""Tables that the method was not tuned on: twelve that come with packages of R.

They were taken as they are once the four others were settled, and show what a user's own table would. R with
nlme, lme4, mlmRev, ggplot2, dplyr, plyr, collapse and carData exports them; what is missing is left out and
named.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pandas as pd

from coterie.datasets import data_home

FIRST = ("mathachieve", "txhousing", "diamonds", "egsingle", "wlddev", "chem97", "storms", "vocab")
# Looked at when what the first ones had shown was mended.
LATER = ("scots", "insteval", "baseball", "star")
NAMES = FIRST + LATER
FOLDER = data_home() / "untouched_tables"
SCRIPT = Path(__file__).with_name("untouched.R")

Table = tuple[pd.DataFrame, pd.Series, pd.Series]


def _read(name: str) -> Callable[[], Table]:
    def table() -> Table:
        frame = pd.read_csv(FOLDER / f"{name}.csv", na_values=["NA"])
        return frame.drop(columns=["y", "learner"]), frame["y"], frame["learner"].astype(str)

    return table


def untouched_tables() -> dict[str, Callable[[], Table]]:
    """Return the tables that R can export here, exported; those of an earlier export stay."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if all((FOLDER / f"{name}.csv").is_file() for name in NAMES):
        return {name: _read(name) for name in NAMES}
    if shutil.which("Rscript") is None:
        print("Rscript is not on the path, so no tables are exported from packages of R.", flush=True)
    else:
        subprocess.run(["Rscript", str(SCRIPT), str(FOLDER)], check=True, capture_output=True)
    missing = [name for name in NAMES if not (FOLDER / f"{name}.csv").is_file()]
    if missing:
        print(f"Left out, since their package of R is not installed: {', '.join(missing)}.", flush=True)
    return {name: _read(name) for name in NAMES if name not in missing}
