"""A default fit beside LightGBM with cross-validation, both in one process after a first small fit of each.

    COTERIE_DATA=FOLDER python benchmarks/speed/beside_boosting.py [--tables ...] [--seed 0]

Seconds of processor on one thread, and ratios: coterie to LightGBM with the id and its rounds by 5-fold
cross-validation; coterie with ``effort="fast"`` to scikit-learn's boosted trees with the id. Tables and
rivals are those of ``benchmarks/quality/real_tables``. Writes ``benchmarks/speed/beside_boosting.csv``.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from coterie import CoterieRegressor
from rows import add_row, this_machine

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "quality" / "real_tables"))


def cpu_seconds(fit: Callable[..., Any], *rows: Any) -> float:
    """Return the seconds of processor that a fit takes."""
    start = time.process_time()
    fit(*rows)
    return time.process_time() - start


def ours(effort: str) -> Callable[..., Any]:
    """Return a fit of coterie on one thread."""
    return lambda X, y, groups: CoterieRegressor(n_jobs=1, effort=effort).fit(X, y, groups=groups)


def main() -> None:
    """Fit all four on each table."""
    from boosted import fit_hist, fit_lightgbm
    from more_tables import OFFICIAL, split
    from tables import TABLES
    from untouched import untouched_tables

    TABLES.update(untouched_tables())
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--tables", nargs="*", default=[name for name in TABLES if name != OFFICIAL])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE / "beside_boosting.csv")
    options = parser.parse_args()
    fits = {"coterie": ours("full"), "lightgbm": fit_lightgbm, "fast": ours("fast"), "hist": fit_hist}
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        small = split("exam_london", 0)
        for fit in fits.values():
            fit(small.X[:400], small.y[:400], small.groups[:400])
        for table in options.tables:
            data = split(table, options.seed)
            seconds = {name: cpu_seconds(fit, data.X, data.y, data.groups) for name, fit in fits.items()}
            row: dict[str, Any] = {"table": table, "seed": options.seed, "rows": len(data.y)}
            row |= {name: round(value, 3) for name, value in seconds.items()}
            row["coterie_to_lightgbm"] = round(seconds["coterie"] / seconds["lightgbm"], 1)
            row["fast_to_hist"] = round(seconds["fast"] / seconds["hist"], 1)
            row["machine"] = this_machine()
            add_row(options.out, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
