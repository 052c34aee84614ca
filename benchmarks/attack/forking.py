"""Runs commands in forks of a process that has imported everything: a run costs its work, not its imports."""

from __future__ import annotations

import gc
import importlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shim import Fault, Shim

# A command that takes longer than this hangs.
LIMIT = 120.0
# The exit code of a run that ended in an exception that nobody foresaw.
TRACEBACK = 70


@dataclass(frozen=True)
class Ran:
    """How a command ended.

    Parameters
    ----------
    code : int
        Its exit code; minus the number of the signal that ended it.
    out, err : str
        What it printed.
    names : tuple of str
        Its file operations; empty where it was killed.
    seconds : float
        How long it took.
    hung : bool
        Whether it had to be ended.
    """

    code: int
    out: str
    err: str
    names: tuple[str, ...]
    seconds: float
    hung: bool

    @property
    def complaints(self) -> list[str]:
        """What it said of its failure."""
        return [line for line in self.err.splitlines() if line.startswith("coterie: ")]


def run_command(arguments: list[str]) -> None:
    """Run the command line."""
    from coterie.cli.app import main

    sys.argv = ["coterie", *arguments]
    main()


def run_save(arguments: list[str]) -> None:
    """Load a model and save it, as a script would, with one sentence for an error of the disk."""
    import coterie

    source, target = arguments
    try:
        coterie.save(coterie.load(source), target)
    except (OSError, ValueError) as error:
        print(f"coterie: {error}", file=sys.stderr)
        sys.exit(2)


def _child(function: Callable[[list[str]], None], arguments: list[str], folder: Path, fault: Fault) -> None:
    code = TRACEBACK
    work, shim = folder / "work", Shim(folder, fault)
    try:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.chdir(work)
        os.environ |= {"COTERIE_CACHE": str(folder / "cache"), "NO_COLOR": "1", "COTERIE_TRACEBACK": "1"}
        shim.install()
        function(arguments)
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        shim.fault = Fault()
        shim.root = "/nowhere/"
        (folder / "names").write_text(json.dumps(shim.names), encoding="utf-8")
        modules = [name for name in sys.modules if name.split(".")[0] != "__main__"]
        (folder / "modules").write_text(json.dumps(modules), encoding="utf-8")
        os._exit(code)


def run(
    function: Callable[[list[str]], None],
    arguments: list[str],
    folder: Path,
    fault: Fault | None = None,
    kill_after: float | None = None,
) -> Ran:
    """Run a function in a fork, in the subfolder ``work`` of a folder.

    Parameters
    ----------
    function : callable
        `run_command` or `run_save`.
    arguments : list of str
        For it.
    folder : Path
        Takes what is printed; operations below it are counted.
    fault : Fault or None, default=None
        What goes wrong. None: nothing.
    kill_after : float or None, default=None
        Seconds after which the process is killed from outside. None: never.

    Returns
    -------
    Ran
        How it ended.
    """
    for name in ("names", "modules"):
        (folder / name).unlink(missing_ok=True)
    sys.stdout.flush()
    started = time.monotonic()
    child = os.fork()
    if not child:
        _child(function, arguments, folder, fault or Fault())
    found, status, hung = 0, 0, False
    while not found:
        late = time.monotonic() - started
        hung = hung or late > LIMIT
        if hung or (kill_after is not None and late >= kill_after):
            os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
        found, status = os.waitpid(child, os.WNOHANG)
    names = folder / "names"
    return Ran(
        code=os.waitstatus_to_exitcode(status),
        out=(folder / "out").read_text(encoding="utf-8", errors="replace"),
        err=(folder / "err").read_text(encoding="utf-8", errors="replace"),
        names=tuple(json.loads(names.read_text())) if names.exists() else (),
        seconds=time.monotonic() - started,
        hung=hung,
    )


def in_fork(function: Callable[[], None]) -> None:
    """Call a function in a fork and wait for it."""
    child = os.fork()
    if not child:
        try:
            function()
        finally:
            os._exit(0)
    os.waitpid(child, 0)


def import_what_it_imported(folder: Path) -> None:
    """Import here what the last run imported there."""
    for name in json.loads((folder / "modules").read_text(encoding="utf-8")):
        if name not in sys.modules:
            try:
                importlib.import_module(name)
            except Exception:
                continue
    # What is here by now stays: a collector that looks through it in a fork would copy it there.
    gc.collect()
    gc.freeze()


def moments(n: int, seconds: float, seed: int) -> list[float]:
    """Return random moments within a run, a few of them after its end."""
    draw = random.Random(seed)
    return [draw.uniform(0, 1.1 * seconds) for _ in range(n)]
