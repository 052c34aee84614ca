"""One run of one method: its predictions, seconds of processor and the size of the saved model."""

from __future__ import annotations

import math
import multiprocessing
import pickle
import resource
import signal
import time
import warnings
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
from methods import METHODS
from tables import Halves
from threadpoolctl import threadpool_limits


@dataclass(frozen=True)
class Outcome:
    """What a run gave. `note` says why there is no prediction, where there is none."""

    prediction: np.ndarray | None
    cpu_fit: float = math.nan
    cpu_predict: float = math.nan
    size: int = 0
    note: str = ""


def _saved(model: Any) -> bytes:
    """Return the model in its library's own format, or pickled."""
    return model.saved() if hasattr(model, "saved") else pickle.dumps(model)


def measure(method: str, data: Halves) -> Outcome:
    """Fit and predict with one thread. What a method raises is its note."""
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore")
        start = time.process_time()
        try:
            model = METHODS[method].fit(data.X, data.y, data.groups)
            fitted = time.process_time()
            prediction = model.predict(data.X_test, data.groups_test)
        except Exception as error:
            return Outcome(None, note=f"{type(error).__name__}: {error}".replace("\n", " ")[:200])
        done = time.process_time()
        if not np.all(np.isfinite(prediction)):
            return Outcome(None, note="some predictions are not finite")
        return Outcome(prediction, fitted - start, done - fitted, len(_saved(model)))


def _child(method: str, data: Halves, limit: int, end: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    end.send(measure(method, data))


def measure_within(limit: int, method: str, data: Halves) -> Outcome:
    """Do the same in a process of its own, which ends after so many seconds of processor.

    The process is forked, so that imports are done before its clock starts.
    """
    if METHODS[method].package is not None:
        import_module(METHODS[method].package)
    fork = multiprocessing.get_context("fork")
    here, there = fork.Pipe(duplex=False)
    child = fork.Process(target=_child, args=(method, data, limit, there))
    child.start()
    there.close()
    try:
        outcome = here.recv()
    except EOFError:
        outcome = None
    child.join()
    if outcome is not None:
        return outcome
    if child.exitcode == -signal.SIGXCPU:
        return Outcome(None, note=f"stopped after {limit} s of processor")
    if child.exitcode in (-signal.SIGTERM, -signal.SIGINT):
        # Somebody else ended it, which says nothing about the method: nothing is kept of this run.
        raise SystemExit(f"{method} was interrupted; the next run continues from here.")
    return Outcome(None, note=f"its process ended with {child.exitcode}")
