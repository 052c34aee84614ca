"""The paper's five experiments: settings, one replication as a function, our table beside theirs."""

from __future__ import annotations

from coterie.reproduce.experiment import Experiment, Record, Table

__all__ = ["Experiment", "Record", "Table"]
