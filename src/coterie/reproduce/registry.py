"""The experiments by name; a module is imported when its experiment is asked for."""

from __future__ import annotations

from importlib import import_module

from coterie.reproduce.experiment import Experiment

# In the paper's order; each module holds an `EXPERIMENT`.
_HOMES = {
    "fairness": "coterie.reproduce.fairness",
    "simulation1": "coterie.reproduce.simulation1",
    "simulation2": "coterie.reproduce.simulation2",
    "ct": "coterie.reproduce.ct",
    "grid": "coterie.reproduce.grid",
}


def known_experiments() -> tuple[str, ...]:
    """Return the names of the experiments, in the paper's order.

    Returns
    -------
    tuple of str
        As on the command line.

    Examples
    --------
    >>> from coterie.reproduce import known_experiments
    >>> known_experiments()
    ('fairness', 'simulation1', 'simulation2', 'ct', 'grid')
    """
    return tuple(_HOMES)


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
    if name not in _HOMES:
        known = ", ".join(known_experiments())
        raise ValueError(f"There is no experiment {name!r}: the known ones are {known}.")
    experiment: Experiment = import_module(_HOMES[name]).EXPERIMENT
    return experiment
