"""What a command says when it cannot go on: one sentence, exit code 2, no traceback."""

from __future__ import annotations


class CommandError(Exception):
    """A command cannot go on; the message is one sentence and a remedy."""
