"""Evaluates peers' models in a process of their own, with limits on memory, processor time and waiting.

One process serves many models, for starting onnxruntime takes longer than most models do. A model that kills
it, or keeps it waiting, is left out with a sentence, and the others go on in a fresh process. All models
share one budget of time: many slow models cost no more than one. What a sound model of the same size needs is
not charged, so that no model is left out because of another.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coterie._arrays import Array
from coterie.federated.wire import worker
from coterie.federated.wire.envelope import WireError

logger = logging.getLogger(__name__)

START_SECONDS = 120.0
# What a model may need: seconds, per byte, and per byte and row. A forest of 8.3 MB took 2.1 s for 1,000 rows
# and 8.5 s for 50,000 on a machine with seven times as much work as cores.
USUAL_SECONDS, SECONDS_PER_BYTE, SECONDS_PER_CELL = 1.0, 1e-6, 1e-10


@dataclass(frozen=True)
class Allowance:
    """What the evaluation of peers' models may use.

    ``seconds`` is the longest wait for all models together, beside what models of their size need; see
    `usual_seconds`. ``memory`` is address space in bytes beside the rows, where the system has such a limit.
    """

    seconds: float = 60.0
    memory: int = 4 * 2**30


def usual_seconds(model: bytes, n_rows: int) -> float:
    """Return what a sound ONNX file may need, with room to spare; it is not charged to the budget."""
    return USUAL_SECONDS + len(model) * (SECONDS_PER_BYTE + SECONDS_PER_CELL * n_rows)


def _folders() -> list[str]:
    """Return the folders with numpy and onnxruntime, for the process to import from.

    It runs in isolated mode, which does not look at PYTHONPATH.
    """
    specs = (importlib.util.find_spec(name) for name in ("numpy", "onnxruntime"))
    origins = [spec.origin for spec in specs if spec is not None and spec.origin is not None]
    if len(origins) < 2:
        raise WireError(
            "Models that are not linear are evaluated by onnxruntime, which is not installed: "
            "install coterie's extra 'federated'."
        )
    return sorted({str(Path(origin).parents[1]) for origin in origins})


class _Worker:
    """One running process. A watchdog ends it, so every read and write below comes to an end."""

    def __init__(self, rows: Array, n_columns: int, allowance: Allowance) -> None:
        """Start the process with a limit on memory, and send it the rows."""
        self._n_columns = n_columns
        # Rows are in memory more than once: as bytes, as an array, and inside the library.
        limits = [str(allowance.memory + 4 * rows.nbytes)]
        self._process = subprocess.Popen(
            [sys.executable, "-I", worker.__file__, *_folders(), *limits],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # A process with few limits beside our own: it sees no settings, no keys, no folders of ours.
            env={name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ},
            cwd=os.path.abspath(os.sep),
        )
        self.late = False
        with self._watched(START_SECONDS):
            if self._take(len(worker.READY)) != worker.READY:
                self.close()
                raise WireError(
                    "The process that evaluates models did not start: give it more memory, or check that "
                    "onnxruntime can be imported."
                )
            self._give(worker.SIZES.pack(*rows.shape, n_columns) + rows.tobytes())

    @contextlib.contextmanager
    def _watched(self, seconds: float) -> Iterator[None]:
        """Kill the process if the block takes longer than some seconds, and note that it was late.

        Killing it ends any read or write in the block, which could wait without an end otherwise.
        """

        def end() -> None:
            """Kill the process, and note that it was late."""
            self.late = True
            self._process.kill()

        watchdog = threading.Timer(seconds, end)
        watchdog.daemon = True
        watchdog.start()
        try:
            yield
        finally:
            watchdog.cancel()

    def _give(self, content: bytes) -> None:
        """Send bytes to the process; where it has ended, do nothing."""
        assert self._process.stdin is not None
        # A process that has ended is noticed when it does not answer.
        with contextlib.suppress(BrokenPipeError, OSError):
            self._process.stdin.write(content)
            self._process.stdin.flush()

    def _take(self, n_bytes: int) -> bytes:
        """Read so many bytes from the process, or fewer where it ends before."""
        assert self._process.stdout is not None
        return self._process.stdout.read(n_bytes)

    def predict(self, model: bytes, n_rows: int, seconds: float) -> Array | str:
        """Return a model's predictions (n_rows, n_columns), or why there are none: the end of a sentence.

        After a model that took longer than ``seconds`` or broke off, the process has ended and serves no
        other model.
        """
        with self._watched(seconds):
            # The worker limits its processor time itself; the watchdog here limits the wait.
            self._give(worker.TASK.pack(len(model), int(np.ceil(seconds))) + model)
            status = self._take(1)
            if status == worker.FAILED:
                length = worker.LENGTH.unpack(self._take(worker.LENGTH.size))[0]
                return f"could not be evaluated ({self._take(length).decode('ascii')})"
            size = 8 * n_rows * self._n_columns
            answer_bytes = self._take(size) if status == worker.ANSWERED else b""
        if len(answer_bytes) == size and status == worker.ANSWERED:
            return np.frombuffer(answer_bytes).reshape(n_rows, self._n_columns)
        self._process.kill()
        self._process.wait()
        if self.late:
            return f"took longer than {seconds:.3g} seconds"
        return f"ended the process that evaluated it (exit code {self._process.returncode})"

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def close(self) -> None:
        """End the process and close its pipes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.kill()
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait()


def evaluate(
    models: Sequence[bytes], rows: Array, allowance: Allowance, n_columns: int = 1
) -> tuple[list[Array | str], float]:
    """Predict rows, in float64 and of shape (n, p), by models that nobody vouches for.

    The models are ONNX files that were written here, from programs that were checked. There is an answer per
    model, predictions of shape (n, n_columns) or why there are none, and the seconds charged. The model that
    uses the allowance up says so.
    """
    answers: list[Array | str] = []
    running: _Worker | None = None
    seconds_charged = 0.0
    try:
        for model in models:
            # Started when first needed, and again after a model that ended it.
            if running is None or not running.alive:
                if running is not None:
                    running.close()
                running = _Worker(rows, n_columns, allowance)
            usual_for_size, seconds_left = (
                usual_seconds(model, len(rows)),
                allowance.seconds - seconds_charged,
            )
            begun_at = time.monotonic()
            answer = running.predict(model, len(rows), usual_for_size + seconds_left)
            # Only time beyond what a sound model of this size needs is charged to all models together.
            seconds_charged = min(
                allowance.seconds, seconds_charged + max(0.0, time.monotonic() - begun_at - usual_for_size)
            )
            if running.late:
                used = "used up" if seconds_left else "others had used up"
                answer = f"{answer}, and {used} the time that all models have together"
            if isinstance(answer, str):
                logger.warning("A model %s and is left out.", answer)
            answers.append(answer)
    finally:
        if running is not None:
            running.close()
    return answers, seconds_charged
