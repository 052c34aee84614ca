"""Bend real files in many ways and hand them to the readers: no crash, no hang, no growth of memory.

    python benchmarks/fuzz/readers.py [--inputs 200000] [--seed 0]

Needs Linux: time is watched by an alarm, memory is read from /proc. Exits with 1 when there was a fault, and
prints the input that caused it, in hexadecimal digits.
"""

from __future__ import annotations

import argparse
import gc
import platform
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import seeds
from bending import Bending, bend_bytes, bend_json, bend_onnx, bend_trees

from coterie.federated import wire
from coterie.federated.codec import ProtocolError
from coterie.federated.messages import decode
from coterie.federated.wire.envelope import AFFINE, CLASS_LINES, CLASS_ONNX, ONNX, open_sealed, seal
from coterie.federated.wire.evaluate import Allowance

LIMIT_SECONDS = 5.0
BATCH = 500
# What counts as growth between the first tenth of the inputs and the last one.
GROWTH_MB = 50.0


KINDS = (AFFINE, ONNX, CLASS_LINES, CLASS_ONNX)


class Hang(BaseException):
    """Raised by the alarm, past everything that catches exceptions."""


def _ring(*_: Any) -> None:
    raise Hang


def resident_mb() -> float:
    """Return the memory of this process."""
    gc.collect()
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * 4096 / 2**20


def _sealed(bend: Bending) -> Bending:
    """Bend what is inside and make the checksum right again."""

    def bent(payload: bytes, draw: random.Random) -> bytes:
        kind, body = open_sealed(payload, seeds.N_FEATURES)
        usual = bend is bend_bytes or kind in (ONNX, CLASS_ONNX)
        # A program of classes stands behind their number.
        head, body = (body[:4], body[4:]) if kind == CLASS_ONNX else (b"", body)
        return seal(kind, seeds.N_FEATURES, head + (bend if usual else bend_bytes)(body, draw))

    return bent


def _other_kind(payload: bytes, draw: random.Random) -> bytes:
    _, body = open_sealed(payload, seeds.N_FEATURES)
    return seal(draw.choice((*KINDS, 0, 9)), draw.choice((0, 1, 3, 3, 10**6)), body)


def _noise(payload: bytes, draw: random.Random) -> bytes:
    return seal(draw.choice(KINDS), seeds.N_FEATURES, draw.randbytes(draw.randrange(200)))


MODEL_MUTATIONS: dict[str, Bending] = {
    "bytes, checksum wrong": bend_bytes,
    "bytes, checksum right": _sealed(bend_bytes),
    "protobuf fields": _sealed(bend_onnx),
    "lists of trees": _sealed(bend_trees),
    "other header": _other_kind,
    "noise": _noise,
}
MESSAGE_MUTATIONS: dict[str, Bending] = {"bytes": bend_bytes, "JSON fields": bend_json}


class Fuzzing:
    """Counts what the readers did, and remembers what they should not have done."""

    def __init__(
        self, seed: int, models: list[bytes], messages: list[bytes], class_models: Sequence[bytes] = ()
    ) -> None:
        self.models, self.messages, self.class_models = models, messages, class_models
        self.goods = {*models, *messages, *class_models}
        self.draw = random.Random(seed)
        self.counts: Counter[tuple[str, str]] = Counter()
        self.sentences: Counter[str] = Counter()
        self.faults: list[str] = []
        self.slowest = 0.0
        self.accepted: list[tuple[wire.WireModel, str]] = []
        self.evaluated = 0
        self.not_evaluated: Counter[str] = Counter()
        self.X = seeds.rows(7)

    def read(self, change: str, content: bytes, reader: Callable[[bytes], Any]) -> Any:
        """Hand an input to a reader; return what it made of it, or None."""
        if content in self.goods:
            self.counts[change, "unchanged"] += 1
            return None
        started = time.perf_counter()
        try:
            signal.setitimer(signal.ITIMER_REAL, LIMIT_SECONDS)
            found = reader(content)
            self.counts[change, "accepted"] += 1
            return found
        except (wire.WireError, ProtocolError) as refusal:
            self.counts[change, "refused"] += 1
            sentence = str(refusal)
            self.sentences["".join(c for c in sentence if not c.isdigit())[:45]] += 1
            if "\n" in sentence or not sentence.endswith(".") or len(sentence) > 600:
                self.faults.append(f"{change}: not one sentence: {sentence!r} {content.hex()}")
        except Hang:
            self.faults.append(f"{change}: more than {LIMIT_SECONDS:g} seconds: {content.hex()}")
        # Whatever else a reader lets out is what this looks for.
        except Exception as error:
            self.faults.append(f"{change}: {type(error).__name__}: {error}: {content.hex()}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.slowest = max(self.slowest, time.perf_counter() - started)
        return None

    def evaluate_accepted(self) -> None:
        """Let onnxruntime see the bent models that were accepted."""
        for of_classes in (False, True):
            some = [pair for pair in self.accepted if bool(pair[0].n_classes) == of_classes]
            answers = wire.predict_each([model for model, _ in some], self.X, Allowance(seconds=20.0))
            self.evaluated += len(some)
            for place, why in answers.troubles.items():
                self.not_evaluated[why[:60]] += 1
                if "ended the process" in why or "took longer" in why:
                    self.faults.append(f"evaluation: {why}: {some[place][1]}")
            known = [place for place in range(len(some)) if place not in answers.troubles]
            inside = np.abs(answers.predictions[known] - 0.5) <= 0.5 + 1e-6
            if of_classes and not inside.all():
                self.faults.append("evaluation: something that is no probability was let through")
        self.accepted.clear()

    def one(self) -> None:
        """Bend one file and read it."""
        if self.draw.random() < 0.7:
            change = self.draw.choice(list(MODEL_MUTATIONS))
            of_classes = self.draw.random() < len(self.class_models) / (
                len(self.class_models) + len(self.models)
            )
            good = self.draw.choice(self.class_models if of_classes else self.models)
            content, n_classes = MODEL_MUTATIONS[change](good, self.draw), seeds.N_CLASSES * of_classes
            found = self.read(
                f"model: {change}", content, lambda b: wire.unpack(b, seeds.N_FEATURES, n_classes)
            )
            if found is not None:
                self.accepted.append((found, content.hex()))
            if len(self.accepted) >= BATCH:
                self.evaluate_accepted()
        else:
            change = self.draw.choice(list(MESSAGE_MUTATIONS))
            content = MESSAGE_MUTATIONS[change](self.draw.choice(self.messages), self.draw)
            self.read(f"message: {change}", content, decode)


def main() -> int:
    """Run, and print what happened."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    signal.signal(signal.SIGALRM, _ring)
    fuzzing = Fuzzing(chosen.seed, seeds.models(), seeds.messages(), seeds.class_models())
    started = time.perf_counter()
    memory: list[float] = []
    for k in range(chosen.inputs):
        fuzzing.one()
        if (k + 1) % max(1, chosen.inputs // 10) == 0:
            memory.append(resident_mb())
    fuzzing.evaluate_accepted()
    growth = memory[-1] - memory[0]
    if growth > GROWTH_MB:
        fuzzing.faults.append(f"memory grew by {growth:.0f} MB")

    print(f"{chosen.inputs} inputs, seed {chosen.seed}, Python {platform.python_version()}")
    print(f"{time.perf_counter() - started:.0f} s; slowest input {fuzzing.slowest:.3f} s")
    print(f"memory after each tenth, MB: {' '.join(f'{m:.0f}' for m in memory)}")
    for (change, outcome), count in sorted(fuzzing.counts.items()):
        print(f"  {change:32s} {outcome:9s} {count:7d}")
    print(f"bent models accepted and evaluated: {fuzzing.evaluated}; of these without an answer:")
    for why, count in fuzzing.not_evaluated.most_common():
        print(f"  {count:7d}  {why}")
    print(f"kinds of refusal: {len(fuzzing.sentences)}; the most frequent:")
    for sentence, count in fuzzing.sentences.most_common(12):
        print(f"  {count:7d}  {sentence}")
    print(f"faults: {len(fuzzing.faults)}")
    for fault in fuzzing.faults[:10]:
        print(f"  {fault[:2000]}")
    return 1 if fuzzing.faults else 0


if __name__ == "__main__":
    sys.exit(main())
