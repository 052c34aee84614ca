"""Let atheris look for inputs that reach new branches of the readers.

    python benchmarks/fuzz/guided.py [-runs=200000] [any option of libFuzzer]

atheris needs Linux and Python below 3.13; without it, this says so and ends. An input that makes a reader
raise anything but its own refusal is written to a file by atheris, which then ends with an error; so does one
that takes longer than five seconds or makes memory grow beyond 1 GB.
"""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path

try:
    import atheris
except ModuleNotFoundError:
    print(
        "atheris is not installed here (Linux, Python below 3.13: pip install atheris): nothing was fuzzed."
    )
    sys.exit(0)

with atheris.instrument_imports(include=["coterie.federated"]):
    from coterie.federated import wire
    from coterie.federated.codec import ProtocolError
    from coterie.federated.messages import decode
    from coterie.federated.wire.envelope import ONNX, open_sealed, seal
    from coterie.federated.wire.onnx_form import read_onnx

import seeds
from bending import bend_onnx, bend_trees

# The first byte says for which reader the rest is.
PAYLOAD, INSIDE, MESSAGE = 0, 1, 2


def read(content: bytes) -> None:
    """Hand the input to its reader; a refusal is a good answer."""
    if not content:
        return
    reader, rest = content[0] % 3, content[1:]
    try:
        if reader == PAYLOAD:
            wire.unpack(rest, seeds.N_FEATURES)
        elif reader == INSIDE:
            # Without the checksum in the way.
            read_onnx(rest, seeds.N_FEATURES)
            wire.unpack(seal(ONNX, seeds.N_FEATURES, rest), seeds.N_FEATURES)
        else:
            decode(rest)
    except (wire.WireError, ProtocolError) as refusal:
        if "\n" in str(refusal):
            raise RuntimeError("a refusal of more than one line") from refusal


def bend(content: bytes, largest: int, seed: int) -> bytes:
    """Change whole fields of ONNX files now and then; bytes otherwise."""
    draw = random.Random(seed)
    if len(content) > 1 and content[0] % 3 == INSIDE and draw.random() < 0.5:
        try:
            change = draw.choice((bend_onnx, bend_trees))
            return (content[:1] + change(content[1:], draw))[:largest]
        # What is no protobuf any more is bent byte by byte.
        except Exception:
            pass
    mutated: bytes = atheris.Mutate(content, largest)
    return mutated


def main() -> None:
    """Write the good files where libFuzzer starts from, and run."""
    with tempfile.TemporaryDirectory() as folder:
        for place, payload in enumerate(seeds.models()):
            kind, body = open_sealed(payload, seeds.N_FEATURES)
            (Path(folder) / f"payload{place}").write_bytes(bytes([PAYLOAD]) + payload)
            if kind == ONNX:
                (Path(folder) / f"inside{place}").write_bytes(bytes([INSIDE]) + body)
        for place, message in enumerate(seeds.messages()):
            (Path(folder) / f"message{place}").write_bytes(bytes([MESSAGE]) + message)
        given = sys.argv[1:]
        usual = [
            "-runs=200000",
            "-seed=1",
            "-timeout=5",
            "-rss_limit_mb=1024",
            "-max_len=20000",
            "-print_final_stats=1",
        ]
        named = {option.split("=")[0] for option in given}
        options = [option for option in usual if option.split("=")[0] not in named]
        atheris.Setup([sys.argv[0], *options, *given, folder], read, custom_mutator=bend)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
