"""Figures as files: PNG and SVG of the same drawing, the same bytes from the same numbers."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any


def check_drawing() -> None:
    """Raise an error that names the extra where matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise ImportError("The figures need matplotlib: install coterie's extra 'plot'.")


def new_figure(width: float = 7.0, height: float = 4.2) -> Any:
    """Return an empty matplotlib figure that no window belongs to."""
    check_drawing()
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save_figure(figure: Any, folder: Path, name: str) -> list[Path]:
    """Write a figure as PNG and SVG.

    Parameters
    ----------
    figure : matplotlib Figure
        Finished.
    folder : Path
        Where to.
    name : str
        Of the files, without ending.

    Returns
    -------
    list of Path
        The two files, PNG first.
    """
    from matplotlib import rc_context

    paths = [folder / f"{name}.png", folder / f"{name}.svg"]
    # Without a salt and with a date, an SVG differs from run to run.
    with rc_context({"svg.hashsalt": "coterie", "svg.fonttype": "none"}):
        figure.savefig(paths[0], dpi=150, metadata={"Software": None})
        figure.savefig(paths[1], metadata={"Date": None, "Creator": None})
    return paths
