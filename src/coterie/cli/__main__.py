"""``python -m coterie.cli`` is the ``coterie`` command."""

from __future__ import annotations

from coterie.cli import main

if __name__ == "__main__":
    main()
