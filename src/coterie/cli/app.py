"""The ``coterie`` command: its subcommands, and what becomes of their errors."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any, NoReturn

import typer
from typer import Option

from coterie import __version__
from coterie.cli.admit import admit
from coterie.cli.columns import agree, columns
from coterie.cli.conclude import conclude_command
from coterie.cli.demo import demo
from coterie.cli.errors import CommandError, Interrupted
from coterie.cli.fit import fit
from coterie.cli.inspect import inspect
from coterie.cli.keygen import keygen
from coterie.cli.predict import predict
from coterie.cli.printing import sentence
from coterie.cli.report import report
from coterie.cli.score import score
from coterie.cli.share import share
from coterie.cli.status import status

# What typer's parser raises: click is a package beside older versions of typer and a part of newer ones.
_parsing: Any = sys.modules[typer.BadParameter.__module__]
# How a sentence about ourselves begins.
FAULT = "This is a fault in coterie"

app = typer.Typer(
    name="coterie",
    help="Find out with whom each learner of a table should learn, and whether that pays.",
    no_args_is_help=True,
    # Paragraphs of a docstring are wrapped as wide as the terminal is.
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    """Print the version and end, if that was requested."""
    if wanted:
        typer.echo(f"coterie {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, Option("--version", help="Show the version.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that every command has."""


_TABLE, _SITES = "A table with a column of learners", "Sites whose rows never move"
# In the order of use.
_PANELS: dict[str, tuple[Callable[..., None], ...]] = {
    _TABLE: (demo, fit, inspect, predict, admit, report),
    _SITES: (keygen, columns, agree, share, score, conclude_command, status),
}
for panel, commands in _PANELS.items():
    for command in commands:
        app.command(command.__name__.removesuffix("_command"), rich_help_panel=panel)(command)


def _refuse(text: object, code: int) -> NoReturn:
    """Print an error in one sentence, and exit with a code."""
    typer.echo(f"coterie: {sentence(text)}", err=True)
    sys.exit(code)


def _run() -> int:
    """Run the command of ``sys.argv``, return its exit code; errors of usage end with a sentence."""
    try:
        outcome = typer.main.get_command(app)(standalone_mode=False)
    except _parsing.NoArgsIsHelpError as error:
        error.show()
        return 2
    except _parsing.UsageError as error:
        where = "coterie" if error.ctx is None else error.ctx.command_path
        _refuse(f"{error.format_message().rstrip('.')}: see `{where} --help`.", error.exit_code)
    except (typer.Abort, KeyboardInterrupt):
        _refuse("Stopped.", Interrupted.exit_code)
    return outcome if isinstance(outcome, int) else 0


def main() -> None:
    """Run the command line; what goes wrong is one sentence on stderr and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that a terminal has no letters for is no reason to stop.
            stream.reconfigure(errors="backslashreplace")
    try:
        sys.exit(_run())
    except CommandError as error:
        _refuse(error, error.exit_code)
    except BrokenPipeError:
        # The reader has gone (`coterie ... | head`): nothing is left to say, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except OSError as error:
        file_text = "A file" if error.filename is None else repr(str(error.filename))
        _refuse(f"{file_text} cannot be used ({error.strerror or error}): check the path and the disk.", 2)
    except MemoryError:
        _refuse("The memory is full: give fewer rows, or read Parquet files with --memory.", 2)
    # The package tells which extra is missing.
    except ModuleNotFoundError:
        raise
    except Exception as error:
        if os.environ.get("COTERIE_TRACEBACK"):
            raise
        _refuse(
            f"{FAULT} ({type(error).__name__}: {error}): please report it, with what the same command prints "
            "after `export COTERIE_TRACEBACK=1`.",
            1,
        )
