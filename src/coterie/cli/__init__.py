"""The command line: one module a command.

These modules import neither the library nor what the commands have in common (tables, models, sites) before a
command is run, so that `coterie --help` waits for nothing. The modules behind them import it as usual.
"""

from __future__ import annotations

import sys

# What the extra brings beside the library.
_EXTRA = ("typer", "rich", "polars")


def main() -> None:
    """Run the command line, or say which extra it lacks."""
    try:
        from coterie.cli.app import main as run

        run()
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in _EXTRA:
            raise
        sys.stderr.write(f"coterie: The command line needs {error.name}: install coterie's extra 'cli'.\n")
        sys.exit(2)
