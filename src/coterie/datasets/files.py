"""Where data lie: the cache of this user, and a local folder of tables."""

from __future__ import annotations

import os
from pathlib import Path


def data_home() -> Path:
    """Find the folder that keeps what coterie stores for this user.

    It is the folder named by the environment variable COTERIE_CACHE, else `coterie` inside
    XDG_CACHE_HOME, else `~/.cache/coterie`. It is made when something is stored, not before.

    Returns
    -------
    Path
        The cache folder, which need not exist.
    """
    chosen = os.environ.get("COTERIE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "coterie"


def local_copy(folder: str, filename: str) -> Path | None:
    """Find a dataset's file in the folder named by the environment variable COTERIE_DATA.

    Parameters
    ----------
    folder : str
        Sub-folder of the dataset, such as "grid_stability".
    filename : str
        Name of the file; the same name with ".gz" added is found too.

    Returns
    -------
    Path or None
        The file, or None when COTERIE_DATA is not set or has no such file.
    """
    root = os.environ.get("COTERIE_DATA")
    if not root:
        return None
    path = Path(root).expanduser() / folder / filename
    for candidate in (path, path.with_name(f"{filename}.gz")):
        if candidate.is_file():
            return candidate
    return None
