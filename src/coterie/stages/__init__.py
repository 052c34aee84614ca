"""The method, a verb a file: Select, Exchange, Cluster, Refine, Collaborate.

Each stage is a pure function from records to a record. Stages do not know each other.
"""

from __future__ import annotations

from coterie.stages.collaborate import collaborate
from coterie.stages.exchange import cross_evaluate
from coterie.stages.select import select_models

__all__ = ["collaborate", "cross_evaluate", "select_models"]
