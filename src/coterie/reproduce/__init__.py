"""The paper's five experiments: settings, one replication as a function, our table beside theirs.

A replication is a function of its seed and of the experiment's settings alone, so that a run can be
interrupted and continued, extended by more replications, or spread over processes without changing a number.
"""

from __future__ import annotations

from coterie.reproduce.experiment import HEADINGS, Experiment, Record, Table
from coterie.reproduce.registry import find_experiment, known_experiments
from coterie.reproduce.runner import Outcome, Run, reproduce

__all__ = [
    "HEADINGS",
    "Experiment",
    "Outcome",
    "Record",
    "Run",
    "Table",
    "find_experiment",
    "known_experiments",
    "reproduce",
]
