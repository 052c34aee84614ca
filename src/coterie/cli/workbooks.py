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
_EXIT_REFUSED = 3


def read_workbook(
    path: Path, memory: int, *, as_text: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Return the first row of the first sheet as text, its table, and the names of all sheets.

    A process of its own reads the file within ``memory`` bytes and hands the table over; see the top of
    this file. With ``as_text`` every entry is text, and empty rows at the top are rows. A ValueError says
    why the file cannot be read.
    """
    import polars as pl

    package_specs = (find_spec(name) for name in ("fastexcel", "polars"))
    folders = sorted({str(Path(spec.origin).parents[1]) for spec in package_specs if spec and spec.origin})
    command = [sys.executable, "-I", __file__, json.dumps(folders), str(path.resolve()), str(memory)]
    command += ["text"] if as_text else []
    process = subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False
    )
    if process.returncode == _EXIT_REFUSED:
        raise ValueError(process.stdout.decode("utf-8", "replace"))
    if process.returncode:
        raise ValueError(f"its cells reach so far that they would take more than {memory / 2**30:.3g} GiB")
    header, _, content = process.stdout.partition(b"\n")
    sheets, length = json.loads(header)
    first_row, table = (pl.read_ipc(io.BytesIO(part)) for part in (content[:length], content[length:]))
    return first_row, table, sheets


def _confine(memory: int) -> None:
    """Limit the memory that this process may take from now on, in bytes, where the system has such a limit.

    A small workbook may claim cells without end; only this process then fails. No core file is written.
    """
    with suppress(ImportError, OSError, ValueError, StopIteration):
        import resource

        status_lines = Path("/proc/self/status").read_text().splitlines()
        bytes_in_use = 1024 * next(int(line.split()[1]) for line in status_lines if line.startswith("VmData"))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (bytes_in_use + memory, bytes_in_use + memory))


def _packed(table: Any) -> bytes:
    """Return a polars table as bytes in Arrow's file format."""
    content = io.BytesIO()
    table.write_ipc(content)
    return content.getvalue()


def main() -> None:
    """Read the workbook named in ``sys.argv``, and write it to standard output for `read_workbook`.

    The output is a line of JSON (names of sheets, length of the first part), then the first row and the
    table in Arrow's format.
    """
    folders, path, memory, *as_text = sys.argv[1:]
    sys.path.extend(json.loads(folders))
    import fastexcel
    import polars as pl

    _confine(int(memory))
    try:
        book = fastexcel.read_excel(path)
        first_row = book.load_sheet(0, header_row=None, n_rows=1, dtypes="string").to_polars()
        load_options: dict[str, Any] = (
            {"dtypes": "string", "skip_rows": 0} if as_text else {"schema_sample_rows": None}
        )
        table = pl.DataFrame() if not first_row.height else book.load_sheet(0, **load_options).to_polars()
    # The reader is another language's, and has errors of its own.
    except Exception as error:
        sys.stdout.buffer.write(str(error).encode("utf-8", "replace"))
        sys.exit(_EXIT_REFUSED)
    packed_first_row, packed_table = _packed(first_row), _packed(table)
    header = json.dumps([book.sheet_names, len(packed_first_row)]).encode()
    for part in (header, b"\n", packed_first_row, packed_table):
        sys.stdout.buffer.write(part)


if __name__ == "__main__":
    main()
