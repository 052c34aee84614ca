"""The ``coterie`` command: its subcommands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from coterie import __version__
from coterie.cli.admit import admit
from coterie.cli.demo import demo
from coterie.cli.errors import CommandError
from coterie.cli.fit import fit
from coterie.cli.inspect import inspect
from coterie.cli.predict import predict
from coterie.cli.report import report
from coterie.cli.reproduce import reproduce_command

app = typer.Typer(
    name="coterie",
    help="With whom should I learn? Clusters learners by the relation between X and y in their data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that every command has."""


app.command("reproduce")(reproduce_command)
for command in (demo, fit, predict, admit, report, inspect):
    app.command()(command)


def main() -> None:
    """Run the command line; a foreseen error is one sentence on stderr and an exit code."""
    try:
        app()
    except CommandError as error:
        typer.echo(f"coterie: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader has gone (`coterie ... | head`): nothing is left to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
