"""The experiments by name; a module is imported when its experiment is asked for."""

from __future__ import annotations

from importlib import import_module

from reproductions.harness.experiment import Experiment

# In the paper's order. Each is a folder whose module `experiment` holds an `EXPERIMENT`.
_NAMES = ("fairness", "simulation1", "simulation2", "ct", "grid")


def known_experiments() -> tuple[str, ...]:
    """Return the names of the experiments, in the paper's order.

    Returns
    -------
    tuple of str
        As on the command line.

    Examples
    --------
    >>> from reproductions.harness import known_experiments
    >>> known_experiments()
    ('fairness', 'simulation1', 'simulation2', 'ct', 'grid')
    """
    return _NAMES


def find_experiment(name: str) -> Experiment:
    """Return an experiment by its name.

    Parameters
    ----------
    name : str
        One of `known_experiments`.

    Returns
    -------
    Experiment
        Its settings and functions.
    """
    if name not in _NAMES:
        known = ", ".join(known_experiments())
        raise ValueError(f"There is no experiment {name!r}: the known ones are {known}.")
    experiment: Experiment = import_module(f"reproductions.{name}.experiment").EXPERIMENT
    return experiment
