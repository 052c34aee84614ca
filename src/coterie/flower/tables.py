"""A site's own table, as its node configuration names it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


def read_rows(path: str | Path, target: str, features: Sequence[str] = ()) -> tuple[Any, Any]:
    """Read predictors and response, X and y, from a CSV or Parquet file.

    ``features`` are the predictors, in this order; all other columns where none are named.
    """
    try:
        import polars
    except ModuleNotFoundError as error:
        raise ValueError("Reading tables needs polars: pip install 'coterie[cli]'.") from error
    file = Path(path)
    readers: dict[str, Callable[[Path], Any]] = {".csv": polars.read_csv, ".parquet": polars.read_parquet}
    if file.suffix not in readers:
        raise ValueError(f"The table must be a .csv or .parquet file. Got {file.name!r}.")
    if not file.exists():
        raise ValueError(f"There is no table {str(file)!r} on this node: check 'table' in its --node-config.")
    table = readers[file.suffix](file)
    chosen = list(features) or [name for name in table.columns if name != target]
    lacking = [name for name in (target, *chosen) if name not in table.columns]
    if lacking:
        raise ValueError(f"The table has no column {lacking[0]!r}: check 'target' and 'features'.")
    return table.select(chosen), table[target]
