"""One command, one fault, and what must be true afterwards."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from forking import TRACEBACK, Ran, moments, run, run_command
from shim import Fault

from coterie._files import is_temporary

FAULTS = ("kill", "full", "read-only")
RANDOM = "random kill"


@dataclass(frozen=True)
class Scenario:
    """A command, what is there before it, and what it offers after a fault.

    Parameters
    ----------
    name : str
        In the report.
    group : {"fit", "save", "folder"}
        What it belongs to.
    template : Path
        The folder before the command.
    arguments : list of str
        Of the command.
    function : callable, default=run_command
        `run_command` or `run_save`.
    reruns : tuple of tuple of str, default=((),)
        Options to add to the same command after a fault, tried in turn until one succeeds.
    codes : tuple of int, default=(0,)
        Exit codes of success.
    """

    name: str
    group: str
    template: Path
    arguments: list[str]
    function: Callable[[list[str]], None] = run_command
    reruns: tuple[tuple[str, ...], ...] = ((),)
    codes: tuple[int, ...] = (0,)


@dataclass
class Counts:
    """What happened in the cases of a scenario."""

    operations: int = 0
    cases: Counter[str] = field(default_factory=Counter)
    ends: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def _lasting(path: Path) -> bytes:
    """Return what two runs that do the same have in common; of a file that is not whole, all bytes."""
    content = path.read_bytes()
    if b'"coterie-sealed"' in content[:100]:
        # The first line tells the time.
        return content.partition(b"\n")[2]
    return content


def digests(folder: Path) -> dict[str, str]:
    """Return the files below a folder by their names, with a digest of what is in them."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(_lasting(path)).hexdigest() for path in files}


def _finished(files: dict[str, str]) -> dict[str, str]:
    """Return the files without those that may be there while a run is not finished."""
    temporary = {name for name in files if is_temporary(name.rsplit("/", 1)[-1])}
    return {n: s for n, s in files.items() if n not in temporary and not n.startswith("out.unfinished/")}


def _results(files: dict[str, str]) -> dict[str, str]:
    return {name: sha for name, sha in files.items() if name.startswith("out/")}


def judge(
    scenario: Scenario, ran: Ran, folder: Path, before: dict[str, str], after: dict[str, str]
) -> Iterator[str]:
    """Say what is not as it must be after a fault.

    Parameters
    ----------
    scenario : Scenario
        What was run.
    ran : Ran
        How it ended.
    folder : Path
        Where.
    before, after : dict of str to str
        The files before and after a run without a fault.

    Yields
    ------
    str
        A fault of coterie.
    """
    now = _finished(digests(folder / "work"))
    if ran.hung:
        yield "it hung"
    if "Traceback" in ran.err or ran.code == TRACEBACK:
        yield f"it ended with a traceback: {ran.err[-2000:]}"
    good, refused = ran.code in scenario.codes, ran.code == 2 and len(ran.complaints) == 1
    if ran.code >= 0 and not good and not refused:
        yield f"it ended with {ran.code} and said {ran.err!r}"
    lost = sorted(set(before) - set(now))
    if lost:
        yield f"{lost} is lost"
    mixed = [name for name, sha in now.items() if sha not in (before.get(name), after.get(name))]
    if mixed:
        yield f"{mixed} is neither old nor new"
    # Results belong together; files of a sealed folder come one by one.
    if _results(now) not in (_results(before), _results(after)):
        yield f"the results are neither the old ones nor the new ones: {sorted(_results(now))}"
    if good and now != after:
        yield "it reported success, and the new is not there"
    if refused and now == after != before:
        yield "it reported an error, and the new is there"


def recover(scenario: Scenario, folder: Path, after: dict[str, str]) -> Iterator[str]:
    """Go on as the command offers, and say what is not as it must be then.

    Parameters
    ----------
    scenario : Scenario
        What was run.
    folder : Path
        Where.
    after : dict of str to str
        The files after a run without a fault.

    Yields
    ------
    str
        A fault of coterie.
    """
    for options in scenario.reruns:
        ran = run(scenario.function, [*scenario.arguments, *options], folder)
        if ran.hung or "Traceback" in ran.err:
            yield f"run again with {options} it hung or ended with a traceback: {ran.err[-2000:]}"
        if ran.code in scenario.codes:
            break
        if not any(option in ran.err for option in ("--resume", "--force")):
            yield f"run again with {options} it offered nothing: {ran.err}"
    else:
        yield f"nothing that it offered succeeded: {ran.err}"
    now = digests(folder / "work")
    odd = sorted(name for name in {*now, *after} if now.get(name) != after.get(name))
    if odd:
        yield f"run again, {odd} differ from a run without a fault"
    names = [path.name for path in folder.rglob("*")]
    left = [name for name in names if is_temporary(name) or name.endswith(".unfinished")]
    if left:
        yield f"run again, {left} is left over"


class Attack:
    """Runs the cases of scenarios.

    Parameters
    ----------
    base : Path
        A folder for the cases.
    """

    def __init__(self, base: Path) -> None:
        self._base = base

    def fresh(self, template: Path) -> Path:
        """Return a copy of a template."""
        folder = self._base / "case"
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(template, folder, symlinks=True)
        return folder

    def one(
        self,
        scenario: Scenario,
        fault: Fault,
        states: tuple[dict[str, str], dict[str, str]],
        counts: Counts,
        moment: float | None = None,
    ) -> None:
        """Run one case: a fault at an operation, or a kill at a moment."""
        folder = self.fresh(scenario.template)
        ran = run(scenario.function, scenario.arguments, folder, fault, moment)
        kind = fault.kind if moment is None else RANDOM
        counts.cases[kind] += 1
        counts.ends[f"{kind}, ended with {ran.code}"] += 1
        wrong = [*judge(scenario, ran, folder, *states), *recover(scenario, folder, states[1])]
        at = f"operation {fault.after}" if moment is None else f"{moment:.3f} s"
        counts.wrong += [f"{scenario.name}, {kind} at {at}: {what}" for what in wrong]

    def attack(self, scenario: Scenario, every: int, n_random: int, seed: int) -> Counts:
        """Run every case of a scenario, or one of ``every`` so many."""
        folder = self.fresh(scenario.template)
        ran = run(scenario.function, scenario.arguments, folder)
        if ran.code not in scenario.codes:
            raise RuntimeError(f"{scenario.name} ended with {ran.code} without a fault: {ran.err}")
        states = _finished(digests(scenario.template / "work")), digests(folder / "work")
        counts = Counts(operations=len(ran.names))
        for place, kind in enumerate(FAULTS):
            for number in range(1 + (seed + place) % every, len(ran.names) + 1, every):
                self.one(scenario, Fault(kind, number), states, counts)
        for moment in moments(n_random, ran.seconds, seed):
            self.one(scenario, Fault(), states, counts, moment)
        return counts
