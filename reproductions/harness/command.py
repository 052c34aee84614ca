"""The command: run experiments, print the published numbers beside ours, continue what was interrupted."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from coterie.cli.errors import CommandError
from coterie.cli.printing import sentence, tell
from reproductions.harness.pages import COMMAND, table_as_text
from reproductions.harness.registry import find_experiment, known_experiments
from reproductions.harness.runner import Outcome, Run, check_run, reproduce

ALL = "all"
# The results lie beside the code.
FULL_FOLDER = Path(__file__).parents[1]
# Not the same: a quick look must not overwrite the results of a hundred replications.
QUICK_FOLDER = FULL_FOLDER.with_name("reproductions-quick")


def _names(wanted: list[str]) -> list[str]:
    known = known_experiments()
    unknown = [name for name in wanted if name not in (*known, ALL)]
    if unknown:
        raise CommandError(
            f"There is no experiment {unknown[0]!r}: the known ones are {', '.join(known)}; or {ALL}."
        )
    return list(known) if ALL in wanted else list(dict.fromkeys(wanted))


def _already(name: str, finished: int, wanted: int) -> None:
    """Say what an earlier run has left to do."""
    if finished == wanted:
        tell(f"{name}: all {wanted} replications are there; --force runs them again", err=True)
    elif finished:
        tell(f"{name}: {finished} of {wanted} replications are there", err=True)


@contextmanager
def _progress(name: str) -> Iterator[Callable[..., None]]:
    """Give a progress bar with the time left on a terminal, and plain lines elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:

        def say(finished: int, wanted: int, replication: Any) -> None:
            if replication is None:
                _already(name, finished, wanted)
            else:
                tell(f"{name}: {finished} of {wanted} ({replication.seconds:.1f} s)", err=True)

        yield say
        return
    columns = (
        TextColumn(name),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
    )
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(name, total=None)

        def advance(finished: int, wanted: int, replication: Any) -> None:
            if replication is None:
                _already(name, finished, wanted)
                # What an earlier run has done says nothing of this one's speed.
                bar.reset(task, total=wanted, completed=finished)
            else:
                bar.update(task, completed=finished)

        yield advance


def _show(outcome: Outcome) -> None:
    for table in outcome.tables:
        typer.echo(table_as_text(table) + "\n")
    count = len(outcome.seconds)
    counted = f"{count} replication{'' if count == 1 else 's'}"
    tell(f"{counted}; results, figures and README in {outcome.folder}")


def _attempt(run: Run) -> str | None:
    """Run an experiment and show its tables, or return why that was not possible."""
    try:
        with _progress(run.experiment.name) as progress:
            outcome = reproduce(run, progress)
    except KeyboardInterrupt:
        same = "the same command without --force" if run.force else "the same command"
        tell(f"Stopped; what is finished is kept in {run.folder}, and {same} continues.", err=True)
        sys.exit(130)
    except (OSError, ValueError, RuntimeError) as error:
        return str(error)
    _show(outcome)
    return None


app = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command()
def run_experiments(
    experiments: Annotated[
        list[str],
        typer.Argument(help="fairness, simulation1, simulation2, ct, grid, or all.", show_default=False),
    ],
    replications: Annotated[
        int | None, typer.Option("--replications", "-r", min=1, help="How many; otherwise as in the paper.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A handful of replications, under a minute.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of all replications.")] = 0,
    n_jobs: Annotated[int, typer.Option("--n-jobs", "-j", help="Number of processes; -1: all cores.")] = 1,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            help="Folder of the results; otherwise reproductions, or reproductions-quick with --quick.",
            file_okay=False,
            show_default=False,
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Throw away the results that the folder holds and begin anew.")
    ] = False,
) -> None:
    """Run the paper's experiments again and print the published numbers beside ours.

    Interrupted and started again, it continues with the replications that are missing.
    """
    names = _names(experiments)
    if n_jobs == 0:
        raise CommandError("--n-jobs must not be 0: give a number of processes, or -1 for all cores.")
    folder = out if out is not None else QUICK_FOLDER if quick else FULL_FOLDER
    refused, ready = [], []
    for name in names:
        run = Run(find_experiment(name), folder, quick, replications, seed, n_jobs, force)
        try:
            # Before the first one starts: what is missing for the last is better known now than in an hour.
            check_run(run)
        except (OSError, ImportError, ValueError) as error:
            refused.append(f"{name}: {error}")
        else:
            ready.append(run)
    if refused and (len(names) == 1 or not ready):
        raise CommandError(refused[0].split(": ", 1)[1])
    for refusal in refused:
        tell(refusal, err=True)
    for run in ready:
        why = _attempt(run)
        if why is None:
            continue
        # The others need not suffer for it.
        if len(names) == 1:
            raise CommandError(why)
        tell(f"{run.experiment.name}: {why}", err=True)
        refused.append(why)
    if refused:
        sys.exit(2)


def main() -> None:
    """Run the command; what goes wrong is one sentence on stderr and an exit code."""
    try:
        app(prog_name=COMMAND)
    except CommandError as error:
        tell(sentence(error), err=True)
        sys.exit(error.exit_code)
