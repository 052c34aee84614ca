"""Excel files, read in a process of their own.

Two cells far apart in a file of a kilobyte ask for a table of everything between them, and the library that
reads them ends the process where there is no memory for it. So a process with a limit reads, and hands the
table over. It is run by its path in Python's isolated mode, and imports nothing of coterie.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import polars as pl

# How the process ends when the library says what is wrong with the file.
_REFUSED = 3


def read_workbook(
    path: Path, memory: int, *, as_text: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return the first row of the first sheet as text, its table, and the names of all sheets.

    With ``as_text`` every entry is text, and empty rows at the top are rows.
    A ValueError says why it cannot be read with so many bytes of memory.
    """
    import polars as pl

    specs = (find_spec(name) for name in ("fastexcel", "polars"))
    folders = sorted({str(Path(spec.origin).parents[1]) for spec in specs if spec and spec.origin})
    command = [sys.executable, "-I", __file__, json.dumps(folders), str(path.resolve()), str(memory)]
    command += ["text"] if as_text else []
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if done.returncode == _REFUSED:
        raise ValueError(done.stdout.decode("utf-8", "replace"))
    if done.returncode:
        raise ValueError(f"its cells reach so far that they would take more than {memory / 2**30:.3g} GiB")
    about, _, content = done.stdout.partition(b"\n")
    sheets, length = json.loads(about)
    head, table = (pl.read_ipc(io.BytesIO(part)) for part in (content[:length], content[length:]))
    return head, table, sheets


def _confine(memory: int) -> None:
    """Limit what this process may take from now on, where the system has such a limit."""
    with suppress(ImportError, OSError, ValueError, StopIteration):
        import resource

        lines = Path("/proc/self/status").read_text().splitlines()
        taken = 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmData"))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (taken + memory, taken + memory))


def _packed(table: Any) -> bytes:
    content = io.BytesIO()
    table.write_ipc(content)
    return content.getvalue()


def main() -> None:
    """Read the file that is named, and write its table to standard output."""
    folders, path, memory, *as_text = sys.argv[1:]
    sys.path.extend(json.loads(folders))
    import fastexcel
    import polars as pl

    _confine(int(memory))
    try:
        book = fastexcel.read_excel(path)
        head = book.load_sheet(0, header_row=None, n_rows=1, dtypes="string").to_polars()
        how: dict[str, Any] = (
            {"dtypes": "string", "skip_rows": 0} if as_text else {"schema_sample_rows": None}
        )
        table = pl.DataFrame() if not head.height else book.load_sheet(0, **how).to_polars()
    # The reader is another language's, and has errors of its own.
    except Exception as error:
        sys.stdout.buffer.write(str(error).encode("utf-8", "replace"))
        sys.exit(_REFUSED)
    first, rest = _packed(head), _packed(table)
    about = json.dumps([book.sheet_names, len(first)]).encode()
    for part in (about, b"\n", first, rest):
        sys.stdout.buffer.write(part)


if __name__ == "__main__":
    main()
