"""Two states of the library on the same draws: differences draw by draw, and their standard errors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

KEYS = ["source", "setting", "variant", "seed"]
# Stored numbers have five digits; sums in another order differ in the last one.
SAME = 2e-4
SURELY = 2.0
# Errors this small beside those of a learner's own model are rounding of an exact prediction.
TINY = 1e-6


def _present(value: Any) -> bool:
    return value is not None and value is not pd.NA and not (isinstance(value, float) and np.isnan(value))


def _log_ratio(old: Any, new: Any) -> float:
    """Return the logarithm of the mean error now over that of before."""
    before, now = (float(np.nanmean(np.asarray(values, dtype=float))) for values in (old, new))
    floor = TINY * max(before, now, 1e-12)
    return float(np.log(max(now, floor) / max(before, floor)))


def _changed(old: str, new: str) -> float:
    """Return the share of learners with another verdict."""
    return float(np.mean([a != b for a, b in zip(old, new, strict=True)])) if len(old) == len(new) else 1.0


def difference(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return what changed between two answers to one order; what one of them does not say is left out."""
    found: dict[str, Any] = {}
    both = {name for name in old if _present(old[name]) and _present(new.get(name))}
    if "labels" in both:
        found["labels"] = float(list(old["labels"]) != list(new["labels"]))
    for name in ("n_clusters", "clear"):
        if name in both:
            found[name] = float(bool(old[name] != new[name]))
    for name in ("agreement", "exact"):
        if name in both:
            found[name] = float(new[name]) - float(old[name])
    for name in ("errors", "own_errors"):
        if name in both and len(old[name]) == len(new[name]) > 0:
            found[name] = _log_ratio(old[name], new[name])
    if "verdicts" in both:
        found["verdicts"] = _changed(old["verdicts"], new["verdicts"])
    if "gains" in both and len(old["gains"]) == len(new["gains"]):
        apart = np.abs(np.asarray(old["gains"], dtype=float) - np.asarray(new["gains"], dtype=float))
        found["gains"] = float(np.nanmean(apart)) if np.isfinite(apart).any() else 0.0
    if "seconds" in both and old["seconds"] > 0 and new["seconds"] > 0:
        found["seconds"] = float(np.log(new["seconds"] / old["seconds"]))
    return found


def differences(old: pd.DataFrame, new: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each order that both states answered."""
    before = {tuple(row[key] for key in KEYS): row for row in old.to_dict("records")}
    rows = []
    for row in new.to_dict("records"):
        key = tuple(row[name] for name in KEYS)
        if key in before:
            rows.append(dict(zip(KEYS, key, strict=True)) | difference(before[key], row))
    return pd.DataFrame(rows)


def mean_and_error(values: Iterable[float]) -> tuple[float, float]:
    """Return the mean of paired differences and its standard error; NaN where there is one pair."""
    known = np.array([value for value in values if np.isfinite(value)])
    if not len(known):
        return np.nan, np.nan
    error = float(known.std(ddof=1) / np.sqrt(len(known))) if len(known) > 1 else np.nan
    return float(known.mean()), error


def verdict(name: str, mean: float, error: float) -> str:
    """Return better, worse or nothing, where the difference is beyond two standard errors."""
    if not abs(mean) > max(SAME, SURELY * (error if np.isfinite(error) else np.inf)):
        return ""
    good = mean > 0 if name in ("agreement", "exact") else mean < 0
    return "better" if good else "worse"


def same(row: pd.Series) -> bool:
    """Tell whether nothing but the time differs in a row of differences."""
    return all(not abs(row[name]) > SAME for name in row.index if name not in (*KEYS, "seconds"))
