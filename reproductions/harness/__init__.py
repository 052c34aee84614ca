"""What the experiments share: how they are described, run, continued and written down.

A replication is a function of its seed and of the experiment's settings alone, so that a run can be
interrupted and continued, extended by more replications, or spread over processes without changing a number.
"""

from __future__ import annotations

from reproductions.harness.experiment import HEADINGS, Experiment, Record, Table
from reproductions.harness.registry import find_experiment, known_experiments
from reproductions.harness.runner import Outcome, Run, reproduce

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
