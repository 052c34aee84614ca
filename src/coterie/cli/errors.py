"""What a command says when it cannot go on: one sentence, an exit code, no traceback."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot go on; the message is one sentence and a remedy."""

    exit_code = 2


class Interrupted(CommandError):
    """The user stopped the command; the message says how to go on."""

    # What a shell reports of a command ended by Ctrl-C.
    exit_code = 130
