"""Who runs the work: a frozen job, a module-level function, a frozen result.

An engine maps a function over jobs and returns the results in the order of the jobs. The stages do not
know which engine runs them.
"""

from __future__ import annotations

from coterie.engines.progress import Steps, counted, report, watch
from coterie.engines.threads import Engine, ThreadEngine, resolve_engine

__all__ = ["Engine", "Steps", "ThreadEngine", "counted", "report", "resolve_engine", "watch"]
