"""Hand hostile inputs to the estimator and to the command line: the right answer, or one sentence.

    python benchmarks/attack/inputs.py [--inputs 300] [--only estimator] [--report FILE]

Inputs are drawn from fixed seeds. A fault is a traceback or another error than a refusal, a refusal of more
than one line, a hang, a dead process, a raw control character in the output, an answer where there is none,
or another answer where only the container, the type, the order or the unit of the table was changed. Exits
with 1 when there was a fault. Needs Linux.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import platform
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import numpy as np
from bent_commands import bend_command, make_table
from bent_tables import DATA, Bent, bend_table

from coterie import CoterieRegressor
from coterie.cli import app, reading

KINDS = ("estimator", "command line")
SECONDS = 30
MOST_MEGABYTES = 1500
# Of scikit-learn, whose own checks demand it line by line.
LISTING = "The feature names should match those that were passed during fit."
USUAL: dict[str, Any] = {"candidates": "lr", "n_clusters": 2, "n_bootstrap": 20, "collaboration": "pooled"}


class Hang(BaseException):
    """Raised by the alarm, past everything that catches exceptions."""


@dataclass(frozen=True)
class Outcome:
    """What came of an input.

    Parameters
    ----------
    what : str
        "answer", "sentence", or how it failed.
    fault : str
        Empty where nothing is wrong.
    changes : str
        How the input was bent.
    """

    what: str
    fault: str
    changes: str


def _set_clocks(seconds: int) -> None:
    """Ring after so much time of the processor; on a busy machine, after ten times as much by the clock."""
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.alarm(10 * seconds)


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raise `Hang` inside when time is up."""

    def ring(*_: Any) -> None:
        raise Hang

    before = [signal.signal(number, ring) for number in (signal.SIGALRM, signal.SIGPROF)]
    _set_clocks(seconds)
    try:
        yield
    finally:
        _set_clocks(0)
        for number, handler in zip((signal.SIGALRM, signal.SIGPROF), before, strict=True):
            signal.signal(number, handler)


def _refusal(error: BaseException) -> str:
    """Say what is wrong with a refusal; nothing is."""
    text = str(error)
    if type(error).__name__ == "Hang":
        return "a hang"
    if not isinstance(error, (ValueError, TypeError)):
        return f"{type(error).__name__}: {ascii(text)[:200]}"
    if text.startswith(LISTING):
        return ""
    if not text.isprintable() or not 20 < len(text) < 1200:
        return f"no sentence: {ascii(text)[:300]}"
    return ""


def _partition(learners: list[Any], labels: list[int]) -> set[frozenset[Any]]:
    """Return who is with whom."""
    return {
        frozenset(i for i, k in zip(learners, labels, strict=True) if k == label) for label in set(labels)
    }


def _try(call: Callable[[], Any], right: Callable[[Any], bool], bent: Bent) -> Outcome:
    changes = "; ".join(bent.changes)
    try:
        with within(SECONDS), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = call()
    except BaseException as error:
        fault = _refusal(error)
        if not fault and not bent.spoiled:
            fault = f"refused: {error}"
        return Outcome("sentence" if not fault else "fault", fault, changes)
    if bent.hopeless and not (bent.hopeless == "y" and bent.changes[0] == "predict"):
        return Outcome("answer", f"answered in spite of {bent.hopeless}", changes)
    fault = "" if bent.spoiled or right(found) else "another answer"
    return Outcome("answer", fault, changes)


@cache
def _clean() -> CoterieRegressor:
    return CoterieRegressor(**USUAL).fit(DATA.X, DATA.y, groups=DATA.groups)


def attack_estimator(number: int) -> Outcome:
    """Fit, predict or admit one bent table.

    Parameters
    ----------
    number : int
        Which one.

    Returns
    -------
    Outcome
        What came of it.
    """
    bent, clean = bend_table(random.Random(f"table {number}")), _clean()
    truths = _partition(clean.learner_ids_.tolist(), clean.learner_labels_.tolist())
    shown = list(dict.fromkeys(DATA.groups[bent.rows].tolist()))
    verb = ("fit", "fit", "predict", "admit")[number % 4]
    bent.changes.insert(0, verb)
    if verb == "fit":
        extra = {} if bent.weights is None else {"sample_weight": bent.weights}
        return _try(
            lambda: CoterieRegressor(**{**USUAL, **bent.options}).fit(
                bent.X, bent.y, groups=bent.groups, **extra
            ),
            lambda model: _partition(shown, model.learner_labels_.tolist()) == truths,
            bent,
        )
    X, y, groups = bent.plain
    if verb == "predict":
        model = CoterieRegressor(**USUAL).fit(X, y, groups=groups)
        expected = clean.predict(DATA.X, DATA.groups)[bent.rows]
        return _try(
            lambda: model.predict(bent.X, groups=bent.groups),
            lambda p: np.allclose(p, expected, rtol=1e-6),
            bent,
        )
    model = CoterieRegressor(**USUAL).fit(X, y, groups=np.char.add("known ", DATA.groups[bent.rows]))
    return _try(
        lambda: model.admit(bent.X, bent.y, groups=bent.groups),
        lambda labels: _partition(shown, labels.tolist()) == truths,
        bent,
    )


def prepare(place: Path) -> None:
    """Fit a model, and share and score in a sealed folder, for the commands that need them."""
    os.chdir(place)
    table = make_table()
    Path("good/folder").mkdir(parents=True)
    table.write_csv("good/table.csv")
    table.with_columns(table["site"].replace(dict(zip("abcdef", "ghijkl", strict=True)))).write_csv(
        "good/new.csv"
    )
    table.filter(table["site"] == "f").drop("site").write_csv("good/rows.csv")
    common = ["--target", "y", "--candidates", "lr"]
    commands = [["fit", "good/table.csv", *common, "--group", "site", "--no-report", "--out", "good/fitted"]]
    for site in "abcd":
        table.filter(table["site"] == site).drop("site").write_csv(f"good/{site}.csv")
        commands.append(["share", f"good/{site}.csv", *common, "--name", site, "--folder", "good/folder"])
    commands += [["score", f"good/{s}.csv", "--name", s, "--folder", "good/folder"] for s in "bcd"]
    for arguments in commands:
        _command(arguments)


def _command(arguments: list[str]) -> None:
    sys.argv = ["coterie", *arguments]
    try:
        app.main()
    except SystemExit as end:
        if end.code:
            raise RuntimeError(f"{arguments} ended with {end.code}") from None


def in_child(work: Callable[[], None], seconds: int, out: Path) -> tuple[int, float]:
    """Run something in a process of its own; return its exit code, as a shell has it, and its megabytes."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(out / name, os.O_WRONLY | os.O_CREAT, 0o600), number)
            sys.stdout = os.fdopen(1, "w", encoding="utf-8")
            sys.stderr = os.fdopen(2, "w", encoding="utf-8", errors="backslashreplace")
            os.environ.update(COTERIE_CACHE=str(out / "cache"), NO_COLOR="1")
            _set_clocks(seconds)
            work()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss / 1024


def attack_command(number: int, good: Path) -> Outcome:
    """Run one bent command in a process of its own.

    Parameters
    ----------
    number : int
        Which one.
    good : Path
        The folder that `prepare` filled.

    Returns
    -------
    Outcome
        What came of it.
    """
    with tempfile.TemporaryDirectory() as name:
        out, place = Path(name), Path(name) / "place"
        shutil.copytree(good / "good", place / "good")

        def work() -> None:
            os.chdir(place)
            command = bend_command(random.Random(f"command {number}"))
            (out / "ways").write_text(f"{command.spoiled:d}" + "; ".join(command.changes), errors="replace")
            # A gzip bomb needs more than there is, and this machine may have a lot.
            reading.free_memory = lambda: 2**29
            # The table is another process's, and so is what Python packed into bytes for it.
            sys.argv = ["coterie", *command.arguments]
            app.main()

        code, megabytes = in_child(work, SECONDS, out)
        said, complained = ((out / n).read_bytes().decode(errors="replace") for n in ("stdout", "stderr"))
        text = (out / "ways").read_text() if (out / "ways").exists() else "1nothing was run"
        labels = place / "out" / "labels.csv"
        fault = _command_fault(code, megabytes, said, complained)
        if (place / "precious").exists() and (place / "precious").read_text() != "mine":
            fault = fault or "a file behind a link was written"
        if not fault and text[0] == "0":
            fault = _wrong_answer(code, complained, labels if text[1:].startswith("fit") else None)
        return Outcome("answer" if code == 0 else "sentence", fault, text[1:])


def _command_fault(code: int, megabytes: float, said: str, complained: str) -> str:
    """Say what is wrong with what a command did."""
    if code in (-signal.SIGALRM, -signal.SIGPROF):
        return "a hang"
    if code not in (0, 1, 2, 3):
        return f"exit code {code}: {complained[-300:]!a}"
    if "Traceback" in complained or app.FAULT in complained:
        return ascii(complained[-400:])
    sentences = [line for line in complained.split("\n") if line.startswith("coterie: ")]
    if code in (1, 2) and (len(sentences) != 1 or not complained.endswith(f"{sentences[0]}\n")):
        return f"no sentence: {complained[-300:]!a}"
    raw = re.search(
        r"[^\n\t\x20-\x7e\u00a0-\u200a\u2010-\u2027\u2030-\u205f\u2070-\ufdff\ufe00-\U000e0000]", said
    )
    raw = raw or re.search(
        r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]", complained
    )
    if raw and not said.startswith(("site,", '"')):
        return f"a raw {raw[0]!a}"
    if megabytes > MOST_MEGABYTES:
        return f"{megabytes:.0f} MB"
    return ""


def _wrong_answer(code: int, complained: str, labels: Path | None) -> str:
    """Say what is wrong where the command had to succeed."""
    if code not in (0, 3):
        return f"refused: {complained[-300:]}"
    if labels is not None:
        with open(labels, newline="", encoding="utf-8") as file:
            found = [(row["learner"], row["cluster"]) for row in csv.DictReader(file)]
        groups = sorted(Counter(cluster for _, cluster in found).values())
        if groups != [3, 3]:
            return f"another answer: {found}"
        if any(name[0] in "=+@\t\r" or (name[0] == "-" and not name[1:].isdigit()) for name, _ in found):
            return f"a formula: {found[0][0]}"
    return ""


def run(kind: str, numbers: Iterable[int]) -> list[Outcome]:
    """Attack the estimator or the command line with some of the inputs.

    Parameters
    ----------
    kind : {"estimator", "command line"}
        What is attacked.
    numbers : iterable of int
        Which inputs.

    Returns
    -------
    list of Outcome
        Of each.
    """
    if kind == "estimator":
        return [attack_estimator(number) for number in numbers]
    # A process that has used polars must not fork: its threads would be missing in the child.
    asked = json.dumps(list(numbers))
    answer = subprocess.run([sys.executable, __file__, "--serve", asked], stdout=subprocess.PIPE, check=True)
    return [Outcome(*fields) for fields in json.loads(answer.stdout)]


def serve(numbers: list[int]) -> None:
    """Run bent commands, each in a child of this process, and print what came of them as JSON."""
    with tempfile.TemporaryDirectory() as name:
        good = Path(name)
        code, _ = in_child(lambda: prepare(good), 10 * SECONDS, good)
        if code:
            raise RuntimeError((good / "stderr").read_text()[-2000:])
        found = [attack_command(number, good) for number in numbers]
    print(json.dumps([astuple(outcome) for outcome in found]))


def report(found: dict[str, list[Outcome]], arguments: str, seconds: float) -> str:
    """Return the report of a run in Markdown."""
    names = ("coterie", "numpy", "scikit-learn", "pandas", "polars", "pyarrow", "narwhals", "typer")
    lines = [
        "# Hostile inputs",
        "",
        f"`python benchmarks/attack/inputs.py{arguments}`, {seconds:.0f} s.",
        f"Python {platform.python_version()}, {', '.join(f'{name} {version(name)}' for name in names)}.",
        "",
        "Every input is a good table, file or command, with one to three faults from a fixed seed. Where",
        "only the container, the type, the order, the unit or the names were changed, the answer must be",
        "that of the good one. Where there is a gap or a date for a number, it must be one sentence.",
        "Otherwise it must be an answer or one sentence: no traceback, no hang, no raw control character.",
        "",
        "| place | inputs | answers | sentences | faults |",
        "|---|---|---|---|---|",
    ]
    for kind, outcomes in found.items():
        counts = Counter("fault" if outcome.fault else outcome.what for outcome in outcomes)
        lines.append(
            f"| {kind} | {len(outcomes)} | {counts['answer']} | {counts['sentence']} | {counts['fault']} |"
        )
    faults = [(kind, k, o) for kind, outcomes in found.items() for k, o in enumerate(outcomes) if o.fault]
    lines += ["", *(f"- {kind} {k}: {o.changes}: {o.fault}" for kind, k, o in faults)]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Attack both, print and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--inputs", type=int, default=300, help="of each kind")
    parser.add_argument("--only", choices=KINDS)
    parser.add_argument("--serve", type=json.loads, help=argparse.SUPPRESS)
    parser.add_argument("--report", type=Path, help="a file for the report")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve)
        return
    begun = time.monotonic()
    kinds = KINDS if options.only is None else (options.only,)
    found = {kind: run(kind, range(options.inputs)) for kind in kinds}
    given = "" if options.inputs == 300 else f" --inputs {options.inputs}"
    text = report(found, given, time.monotonic() - begun)
    print(text)
    if options.report is not None:
        options.report.write_text(text)
    sys.exit(any(outcome.fault for outcomes in found.values() for outcome in outcomes))


if __name__ == "__main__":
    main()
