"""Bend model files in many ways, load them, and use what is accepted: no crash, no hang, less than 1 GiB.

    python benchmarks/fuzz/model_files.py [--inputs 100000] [--seed 0] [--workers 2] [--only NUMBER]

Needs Linux. Workers read many files each. A worker that dies is replaced, and its death is the fault of the
file that it was reading, which ``--only`` makes again. Exits with 1 when there was a fault.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import archives
import numpy as np
import sklearn
import zoo
from threadpoolctl import threadpool_limits

import coterie
from coterie.persistence import PersistenceError
from coterie.persistence.parameters import n_fits

LIMIT_BYTES = 2**30
# Memory that a file may take beside what the process has already.
LIMIT_GROWTH = 2**28
# Seconds of processor time for a file, and of a clock: nothing may wait, either.
LIMIT_SECONDS = 10.0
LIMIT_CLOCK = 300
BATCH = 250
NEW = np.repeat(["new"], 12)


def _causes(error: BaseException | None) -> list[str]:
    return [] if error is None else [type(error).__name__, *_causes(error.__cause__ or error.__context__)]


def _is_cheap(value: Any) -> bool:
    """Tell whether candidates are fitted in no time: few fits, few iterations."""

    def small(model: Any) -> bool:
        held = vars(model) if hasattr(model, "__dict__") else {}
        counts = [held.get(name) for name in ("max_iter", "max_trials", "max_subpopulation", "alphas")]
        plain = all(not isinstance(count, (int, float)) or count <= 300 for count in counts)
        inner = [part for part in held.values() if hasattr(part, "get_params")]
        inner += [part for _, part in held.get("steps") or [] if hasattr(part, "get_params")]
        return plain and all(map(small, inner))

    return n_fits(value) <= 20 and all(small(part) for part in value if hasattr(part, "get_params"))


def _use(model: Any, number: int) -> str:
    """Predict, and now and then admit; return what happened."""
    done = "accepted, predicted"
    try:
        model.predict(zoo.X, groups=archives.GROUPS)
        candidates = model.candidates if isinstance(model.candidates, list) else []
        if number % 5 == 0 and _is_cheap(candidates):
            done = "accepted, predicted, admitted"
            model.admit(zoo.X[:12], zoo.y[:12], groups=NEW)
    except MemoryError:
        raise
    # A model of nonsense may say so in its own words.
    except Exception as error:
        return f"{done.rpartition(',')[0]}, then {type(error).__name__}"
    return done


def read_one(path: Path, number: int) -> tuple[str, str]:
    """Load a file and use it; return the outcome, and the fault or nothing."""
    try:
        model = coterie.load(path)
    except PersistenceError as refusal:
        sentence = str(refusal)
        if "MemoryError" in _causes(refusal):
            return "refused", "asked for more memory than there is"
        odd = "\n" in sentence or not sentence.endswith(".") or len(sentence) > 2000
        return "refused", f"not one sentence: {sentence!r}" if odd else ""
    # Whatever else is let out is what this looks for.
    except Exception as error:
        return "raised", f"{type(error).__name__}: {error}"
    try:
        return _use(model, number), ""
    except MemoryError:
        return "accepted", "asked for more memory than there is"


def _resident(reset: bool = False) -> int:
    """Return the most memory that this process has had since the last reset, in bytes."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def _work(files: list[archives.Members], seed: int, numbers: range, folder: str, report: int) -> None:
    """Read a batch of files, and say before each which one it is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (LIMIT_BYTES, LIMIT_BYTES))
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    warnings.simplefilter("ignore")
    path = Path(folder) / f"{os.getpid()}.coterie"
    for number in numbers:
        change, content = archives.bent(files, number, seed)
        path.write_bytes(content)
        os.write(report, f"{json.dumps(['start', number, change])}\n".encode())
        signal.setitimer(signal.ITIMER_PROF, LIMIT_SECONDS)
        signal.alarm(LIMIT_CLOCK)
        before, memory = time.process_time(), _resident(reset=True)
        outcome, fault = read_one(path, number)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        spent = time.process_time() - before
        growth = _resident() - memory
        if growth > LIMIT_GROWTH and not fault:
            fault = f"{len(content)} bytes took {growth / 2**20:.0f} MiB of memory"
        line = json.dumps(["end", number, change, outcome, fault[:500], round(spent, 4), growth])
        os.write(report, f"{line}\n".encode())
    path.unlink(missing_ok=True)


class Worker:
    """A process that reads a batch of files."""

    def __init__(self, files: list[archives.Members], seed: int, numbers: range, folder: str) -> None:
        self.numbers = numbers
        read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(read)
            code = 1
            try:
                _work(files, seed, numbers, folder, write)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        self.pipe = os.fdopen(read)


class Tally:
    """What happened to all files."""

    def __init__(self) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.faults: list[str] = []
        self.slowest, self.largest, self.done = (0.0, -1), (0, -1), 0

    def take(self, worker: Worker) -> int:
        """Read what a worker says until it ends; return the number after the last file that it read."""
        last: list[Any] = []
        reached = worker.numbers.start
        for line in worker.pipe:
            last = json.loads(line)
            reached = last[1] + 1
            if last[0] == "end":
                _, number, change, outcome, fault, spent, peak = last
                self.outcomes[change, outcome] += 1
                self.slowest = max(self.slowest, (spent, number))
                self.largest = max(self.largest, (peak, number))
                self.done += 1
                if fault:
                    self.faults.append(f"file {number} ({change}): {fault}")
        _, status = os.waitpid(worker.pid, 0)
        worker.pipe.close()
        if status:
            # A worker that dies while it bends a file has not said which one it is.
            between = not last or last[0] == "end"
            where = f"file {reached} (bending)" if between else f"file {last[1]} ({last[2]})"
            reached += between
            died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            hang = died in (signal.SIGPROF, signal.SIGALRM)
            self.faults.append(
                f"{where}: {'hang' if hang else 'crash'}, {f'signal {died}' if died else status}"
            )
            self.done += not between
        return reached

    def report(self, head: str, seconds: float) -> str:
        """Return all of it as text."""
        lines = [
            head,
            f"Python {platform.python_version()}, scikit-learn {sklearn.__version__}, numpy {np.__version__}",
            f"{self.done} files in {seconds:.0f} s",
            f"slowest file {self.slowest[0]:.2f} s of processor time (file {self.slowest[1]})",
            f"most memory for a file {self.largest[0] / 2**20:.0f} MiB (file {self.largest[1]}); "
            f"limit {LIMIT_GROWTH / 2**20:.0f} MiB",
        ]
        lines += [f"  {change:15s} {what:50s} {n:7d}" for (change, what), n in sorted(self.outcomes.items())]
        return "\n".join(
            [*lines, f"faults: {len(self.faults)}", *(f"  {fault}" for fault in self.faults[:50])]
        )


def run(
    inputs: int, seed: int, workers: int, files: list[archives.Members], seconds: float = np.inf
) -> Tally:
    """Have files bent and read by several processes; after so many seconds no more batches are begun."""
    tally, until = Tally(), time.monotonic() + seconds
    waiting = [range(start, min(start + BATCH, inputs)) for start in range(0, inputs, BATCH)][::-1]
    running: list[Worker] = []
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            if time.monotonic() > until:
                waiting.clear()
            while waiting and len(running) < workers:
                running.append(Worker(files, seed, waiting.pop(), folder))
            if not running:
                break
            worker = running.pop(0)
            reached = tally.take(worker)
            if tally.done % 5000 < BATCH:
                last = tally.faults[-1] if tally.faults else "none"
                print(
                    f"{tally.done} files, {len(tally.faults)} faults, last: {last}",
                    file=sys.stderr,
                    flush=True,
                )
            if reached < worker.numbers.stop:
                waiting.append(range(reached, worker.numbers.stop))
    return tally


def main() -> int:
    """Run, and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--seconds", type=float, default=np.inf)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", type=int)
    chosen = parser.parse_args()
    # A library that has started threads does not survive a fork.
    threadpool_limits(1)
    files = archives.goods()
    if chosen.only is not None:
        change, content = archives.bent(files, chosen.only, chosen.seed)
        path = Path(tempfile.gettempdir()) / f"bent-{chosen.only}.coterie"
        path.write_bytes(content)
        print(f"{change}: {path}", flush=True)
        print(read_one(path, chosen.only))
        return 0
    started = time.monotonic()
    tally = run(chosen.inputs, chosen.seed, chosen.workers, files, chosen.seconds)
    head = f"python benchmarks/fuzz/model_files.py --inputs {chosen.inputs} --seed {chosen.seed}"
    text = tally.report(head, time.monotonic() - started)
    print(text)
    if chosen.out is not None:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
