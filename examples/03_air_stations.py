"""Air stations: do twelve stations in Beijing share a relation between weather and fine dust?

    python examples/03_air_stations.py [FOLDER]

Reads beijing_air/beijing_air.parquet (Zhang et al., 2017) from the folder that COTERIE_DATA names. Four
thousand hours per station, in time order: blocks of time are held out, because an hour gives away the next.
Saves air_losses.png and air_gains.png into FOLDER.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import polars as pl
from sklearn.model_selection import KFold

from coterie import CoterieRegressor
from coterie.datasets import local_copy
from coterie.displays import GainsDisplay, LossHeatmapDisplay

HOURS = 4_000
COLUMNS = {"alone": "error_alone", "with the coterie": "error_with", "with all": "error_all"}
WEATHER = ["TEMP", "PRES", "DEWP", "WSPM", "RAIN"]


def cycle(column: str, period: int) -> list[pl.Expr]:
    """Return a column on a circle, so that December meets January and midnight meets one o'clock."""
    angle = pl.col(column) * (2 * np.pi / period)
    return [angle.sin().alias(f"{column}_sin"), angle.cos().alias(f"{column}_cos")]


def read_stations() -> pl.DataFrame:
    """Return the same number of hours of every station, each station's in time order."""
    path = local_copy("beijing_air", "beijing_air.parquet")
    if path is None:
        sys.exit(
            "COTERIE_DATA names no folder with beijing_air/beijing_air.parquet: get the UCI table "
            "'Beijing Multi-Site Air Quality', write it there as one parquet file, and run this again."
        )
    table = pl.read_parquet(path).drop_nulls(["PM2.5", "wd", *WEATHER])
    rng = np.random.default_rng(0)
    parts = []
    for _, hours in sorted(table.group_by("station"), key=lambda part: part[0]):
        parts.append(hours.sort("No")[np.sort(rng.choice(len(hours), HOURS, replace=False))])
    return pl.concat(parts)


def main(folder: Path) -> None:
    """Fit, print, draw."""
    table = read_stations()
    northerly = pl.col("wd").str.contains("N").cast(float).alias("northerly")
    X = table.select(
        *[pl.col(name) for name in WEATHER[:-1]],
        pl.col("RAIN").log1p(),
        northerly,
        *cycle("hour", 24),
        *cycle("month", 12),
    )
    y = table["PM2.5"].log1p()
    model = CoterieRegressor(candidates="lr", splitter=KFold(6), collaboration="pooled")
    model.fit(X, y, groups=table["station"])

    for k in range(model.n_clusters_):
        print(f"coterie {k}: {', '.join(model.learner_ids_[model.learner_labels_ == k])}")
    for note in model.partition_.notes:
        print(f"Note: {note}")
    gains = model.gains_
    errors = {who: gains[name].mean() for who, name in COLUMNS.items()}
    print("Mean squared error of log(1 + PM2.5), held-out blocks of time:")
    print("  " + ", ".join(f"{who} {error:.3f}" for who, error in errors.items()))

    folder.mkdir(parents=True, exist_ok=True)
    for name, display in {"air_losses": LossHeatmapDisplay, "air_gains": GainsDisplay}.items():
        figure = display.from_estimator(model).plot().figure_
        figure.savefig(folder / f"{name}.png", dpi=110)
        plt.close(figure)
    print(f"The figures are air_losses.png and air_gains.png in {folder}/")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo"))
