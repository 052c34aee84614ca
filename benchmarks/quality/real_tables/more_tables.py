"""Five more tables under the same split, and one that comes with folds of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from tables import FEWER_ROWS, TABLES, Halves, halves, local_file
from untouched import NAMES as OF_R

Table = tuple[pd.DataFrame, pd.Series, pd.Series]

# A level of a category is a predictor of its own if this share of the rows has it.
LEAST_SHARE = 0.01

# The table with official folds, and how many there are.
OFFICIAL = "wages"
N_OFFICIAL = 5


def _parquet(name: str) -> pd.DataFrame:
    return pd.read_parquet(local_file("", f"{name}.parquet"))


def _numbers(table: pd.DataFrame) -> pd.DataFrame:
    """Return numeric columns as they are, and a 0/1 column for each frequent level of the others."""
    levels = pd.get_dummies(table.select_dtypes(exclude="number").astype(object))
    return table.select_dtypes("number").join(levels.loc[:, levels.mean() >= LEAST_SHARE])


def _cheese() -> Table:
    table = _parquet("cheese")
    predictors = pd.DataFrame({"price": np.log(table["PRICE"]), "display": table["DISP"]})
    return predictors, np.log(table["VOLUME"]), table["RETAILER"]


def _school_ilea() -> Table:
    table = _parquet("school_ilea")
    return table.drop(columns=["school", "score"]), table["score"], table["school"]


def _ames() -> Table:
    table = _parquet("ames")
    predictors = table.drop(columns=["rownames", "Sale_Price", "Neighborhood"])
    return _numbers(predictors), np.log(table["Sale_Price"]), table["Neighborhood"]


def _flights() -> Table:
    """Return what is known before landing. The distance stands for the destination."""
    table = _parquet("flights").dropna(subset=["arr_delay"])
    known = ["month", "day", "dep_time", "sched_dep_time", "dep_delay", "sched_arr_time", "distance"]
    return _numbers(table[[*known, "hour", "minute", "origin"]]), table["arr_delay"], table["carrier"]


def _produc() -> Table:
    table = _parquet("produc")
    return table.drop(columns=["rownames", "state", "unemp"]), table["unemp"], table["state"]


LATER: dict[str, Callable[[], Table]] = {
    "cheese": _cheese,
    "school_ilea": _school_ilea,
    "ames": _ames,
    "flights": _flights,
    "produc": _produc,
}
NAMES = (*TABLES, *OF_R, *LATER, OFFICIAL)
TABLES.update(LATER)
FEWER_ROWS.update({"ames": 20, "produc": 15})


def _official(fold: int) -> Halves:
    """Return one of the folds of wages. Some learners of the test rows have no training row."""
    table = _parquet(OFFICIAL)
    predictors = table.drop(columns=["idcode", "t", "test_fold", "ln_wage"]).to_numpy(float)
    y, ids = table["ln_wage"].to_numpy(float), table["idcode"].astype(str).to_numpy(dtype=str)
    test = (table["test_fold"] == fold).to_numpy()
    return Halves(predictors[~test], y[~test], ids[~test], predictors[test], y[test], ids[test])


def split(name: str, seed: int) -> Halves:
    """Return the rows of one run; for the table with official folds, the seed is the fold."""
    return _official(seed) if name == OFFICIAL else halves(name, seed)


def error(name: str, data: Halves, squares: np.ndarray) -> float:
    """Return the mean over learners of their mean test error, or over rows as wages is published."""
    return float(squares.mean() if name == OFFICIAL else data.by_learner(squares).mean())
