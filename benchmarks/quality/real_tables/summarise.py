"""From kept results to what the page shows: means over seeds, ratios, and pairs of learners."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from ledger import read_csv
from methods import METHODS, OURS, OURS_FAST
from more_tables import NAMES, OFFICIAL

# The present version, or the last one that was measured on all tables.
VERSIONS = (OURS, "coterie 0.1")
RIVALS = tuple(name for name in METHODS if name not in (OURS, OURS_FAST))


@dataclass(frozen=True)
class Results:
    """Lines of ``results.csv`` and ``learners.csv`` by table, seed and method."""

    lines: dict[tuple[str, int, str], dict[str, Any]]
    learners: dict[tuple[str, int, str], np.ndarray]

    @classmethod
    def read(cls, folder: Path) -> Results:
        """Return the results of a folder."""
        lines = {(r["table"], r["seed"], r["method"]): r for r in read_csv(folder / "results.csv")}
        learners = {
            (r["table"], r["seed"], r["method"]): np.array(r["errors"].split(), dtype=float)
            for r in read_csv(folder / "learners.csv")
        }
        return cls(lines, learners)

    def tables(self) -> list[str]:
        """Return the tables that have results and count in the ratios."""
        found = {table for table, _, _ in self.lines}
        return [name for name in NAMES if name in found and name != OFFICIAL]

    def methods(self) -> list[str]:
        """Return the methods that have results: coterie first, then rivals in their order."""
        found = {method for _, _, method in self.lines}
        return [name for name in (*VERSIONS, OURS_FAST, *RIVALS) if name in found]

    def ours(self, table: str) -> str | None:
        """Return the version of coterie that the table has results of."""
        return next((name for name in VERSIONS if self.values(table, name, "error")), None)

    def values(self, table: str, method: str, column: str) -> dict[int, float]:
        """Return a column's values by seed."""
        return {
            seed: line[column]
            for (place, seed, name), line in self.lines.items()
            if place == table and name == method and column in line
        }

    def mean(self, table: str, method: str, column: str = "error") -> float:
        """Return the mean over seeds, NaN without any."""
        values = list(self.values(table, method, column).values())
        return float(np.mean(values)) if values else math.nan

    def seconds(self, table: str, method: str) -> float:
        """Return mean seconds of processor for fit and predict together."""
        predict = self.mean(table, method, "cpu_predict")
        return self.mean(table, method, "cpu_fit") + (0.0 if math.isnan(predict) else predict)

    def ratio(self, table: str, method: str) -> tuple[float, str]:
        """Return a method's error over that of its best rival, on the seeds that both have."""
        mine, ratios = self.values(table, method, "error"), {}
        for rival in RIVALS:
            theirs = self.values(table, rival, "error")
            shared = mine.keys() & theirs.keys()
            if shared:
                ratios[rival] = sum(mine[s] for s in shared) / sum(theirs[s] for s in shared)
        if not ratios:
            return math.nan, ""
        best = max(ratios, key=lambda rival: (ratios[rival], rival == method))
        return ratios[best], best

    def typical_ratio(self, method: str, tables: list[str]) -> float:
        """Return the geometric mean of the ratios over the tables that the method has."""
        ratios = np.array([self.ratio(table, method)[0] for table in tables])
        ratios = ratios[np.isfinite(ratios)]
        return float(np.exp(np.log(ratios).mean())) if len(ratios) else math.nan

    def paired(self, table: str, method: str, rival: str) -> float:
        """Return by how many standard errors a method's error is above a rival's, paired over learners."""
        seeds = [s for place, s, name in self.learners if place == table and name == method]
        pairs = [
            self.learners[table, s, method] - self.learners[table, s, rival]
            for s in seeds
            if (table, s, rival) in self.learners
        ]
        if not pairs:
            return math.nan
        excess = np.mean(pairs, axis=0)
        deviation = excess.std(ddof=1) / math.sqrt(len(excess))
        return float(excess.mean() / deviation) if deviation > 0 else 0.0

    def note(self, table: str, method: str) -> str:
        """Return why a method has no result on a table, or nothing."""
        notes = [
            line.get("note", "")
            for (place, _, name), line in self.lines.items()
            if place == table and name == method and "error" not in line
        ]
        return notes[0] if notes else ""
