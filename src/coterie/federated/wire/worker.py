"""The process that evaluates peers' models, and nothing else: it may not open files, write, or stay long.

Run by its path in Python's isolated mode, so it imports nothing of coterie. It reads rows and models from its
standard input and answers on its standard output, both as raw bytes; see `coterie.federated.wire.evaluate`.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
from typing import Any, BinaryIO

try:
    import resource
except ImportError:
    # Windows has no such limits.
    resource = None  # type: ignore[assignment]

# Rows, predictors, and columns of the predictions.
SIZES = struct.Struct("<QQQ")
# Bytes of the reason why a model failed.
LENGTH = struct.Struct("<Q")
# Bytes of a model, and the seconds that it may take.
TASK = struct.Struct("<QQ")
ANSWERED, FAILED = b"\x01", b"\x00"
# Rows are predicted in blocks, so that what a model keeps between its steps does not grow with the rows.
BLOCK = 4096
READY = b"ready"


def _confine(memory: int) -> None:
    """Limit this process to ``memory`` bytes and forbid it to open or write files, once and for all.

    Where the system has no such limits, as on Windows, do nothing.
    """
    if resource is None:
        return
    # No core dump, which would hold the rows, and no file of any size.
    for kind in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(kind, (0, 0))
    # No further file, socket or pipe can be opened.
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _allow_time(seconds: int) -> None:
    """Let the system end this process when the next model takes more than some seconds of processor time.

    The limit counts from the start of the process, so what has been used is added.
    """
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit = int(used.ru_utime + used.ru_stime) + seconds + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))


def _take(source: BinaryIO, n_bytes: int) -> bytes:
    """Read exactly so many bytes from a stream; EOFError where it ends before."""
    taken = source.read(n_bytes)
    if len(taken) != n_bytes:
        raise EOFError
    return taken


def _predict(runtime: Any, numpy: Any, model: bytes, rows: Any, n_columns: int) -> bytes:
    """Return an ONNX model's predictions of rows (n, p), of shape (n, n_columns), as bytes of float64.

    ``runtime`` and ``numpy`` are the imported modules.
    """
    options = runtime.SessionOptions()
    # One silent thread, no optimiser and no memory pools: what a model costs follows from its steps.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    session = runtime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    predictions = numpy.empty((len(rows), n_columns))
    for start in range(0, len(rows), BLOCK):
        answer = session.run(None, {"X": rows[start : start + BLOCK]})[0]
        predictions[start : start + BLOCK] = answer.reshape(-1, n_columns)
    as_bytes: bytes = predictions.tobytes()
    return as_bytes


def main() -> None:
    """Answer until the standard input ends.

    The arguments are folders to import from, and the memory in bytes.
    """
    *folders, memory = sys.argv[1:]
    source, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Whatever a library prints must not be taken for an answer.
    os.dup2(2, 1)
    # Behind Python's own modules, before other packages: the same libraries as in the process that asks.
    position = next((k for k, entry in enumerate(sys.path) if entry.endswith("-packages")), len(sys.path))
    sys.path[position:position] = folders
    import numpy
    import onnxruntime

    # After the imports, which have to open files; before anything of a peer is read.
    _confine(int(memory))
    answers.write(READY)
    answers.flush()
    n_rows, n_features, n_columns = SIZES.unpack(_take(source, SIZES.size))
    rows = numpy.frombuffer(_take(source, 8 * n_rows * n_features)).reshape(n_rows, n_features)
    while True:
        task_header = source.read(TASK.size)
        if len(task_header) < TASK.size:
            return
        length, seconds = TASK.unpack(task_header)
        model = _take(source, length)
        _allow_time(seconds)
        try:
            answer = ANSWERED + _predict(onnxruntime, numpy, model, rows, n_columns)
        # Whatever the library raises concerns this model alone.
        except Exception as error:
            reason = " ".join(str(error).split())[:300].encode("ascii", "replace")
            answer = FAILED + LENGTH.pack(len(reason)) + reason
        answers.write(answer)
        answers.flush()


if __name__ == "__main__":
    with contextlib.suppress(EOFError, BrokenPipeError):
        main()
