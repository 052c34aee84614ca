"""What the last bits of private moments prove: an audit of the worst pair of tables.

    python benchmarks/federated/last_bits.py [MESSAGES [PREDICTORS]]

Two tables differ in one row; all other rows have no response and count as zeros. In one table the row has all
predictors far out, in the other the response, so that the two rows are at right angles. That is as far as a
row can move the moments. An attacker knows all this and sees one message. It looks at

- how many moments of the predictors are no multiples of 2^-b, in that half of the rows with fewer of them: in
  floating point, noise on a number that is not zero has fewer bits than noise alone;
- how many of them have the bit 2^-b;
- the best statistic where the last bits say nothing: the product with the difference of the rows' moments.

For each statistic and threshold, half of the messages choose and the other half judge: the epsilon that the
counts prove at 99 percent (Clopper and Pearson). The claim is epsilon 1, delta 1e-6. ``last_bits.txt`` has
the outcomes: twenty predictors, ten, and 0.2 with twenty.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from scipy.stats import beta

from coterie.federated.moments import Column, Schema, moments_of
from coterie.federated.moments.pool import unpacked
from coterie.federated.tables import Promise

MESSAGES, PREDICTORS, ROWS = 20_000, 20, 20
# Messages that a process makes at a time.
PIECE = 250
PROMISE = Promise(1.0, 1e-6)
BITS = range(20, 64, 2)
# How sure a bound is; there are two in each proof.
LEVEL = 0.01 / 2


def drawn(place: int, n: int, predictors: int) -> Any:
    """Return messages (n, 2, q, q) of the table whose row has one part of its predictors far out."""
    columns = tuple(Column(f"x{k}", low=-1, high=1) for k in range(predictors))
    schema = Schema(Column("y", low=-1, high=1), columns)
    X, y = np.zeros((ROWS, predictors)), np.full(ROWS, np.nan)
    X[0], y[0] = (1e6, 0.0) if place == 0 else (0.0, 1e6)
    messages = (moments_of(X, y, site="a", schema=schema, promise=PROMISE) for _ in range(n))
    return np.array([unpacked(message) for message in messages])


def statistics(messages: Any) -> Any:
    """Return what the attacker looks at, of shape (n, statistics)."""
    part = messages.shape[-1] - 2
    places = np.triu_indices(part)
    entries = messages[:, :, 1 : part + 1, 1 : part + 1][:, :, places[0], places[1]]
    found = []
    for bit in BITS:
        scaled = np.ldexp(entries, bit)
        found.append((scaled != np.rint(scaled)).sum(axis=2).min(axis=1))
        found.append((np.floor(scaled) % 2).sum(axis=(1, 2)))
    whole = messages.sum(axis=1)
    return np.column_stack([*found, whole[:, 1:-1, 1:-1].sum(axis=(1, 2)) / part - whole[:, -1, -1]])


def _piece(place: int, n: int, predictors: int) -> Any:
    return statistics(drawn(place, n, predictors))


def _proven(hits: int, alarms: int, n: int) -> float:
    """Return the epsilon that hits and false alarms among n messages each prove."""
    low = beta.ppf(LEVEL, hits, n - hits + 1) if hits else 0.0
    high = beta.ppf(1 - LEVEL, alarms + 1, n - alarms) if alarms < n else 1.0
    return float(np.log((low - PROMISE.delta) / high)) if low > PROMISE.delta else 0.0


def proven(first: Any, second: Any) -> tuple[float, str]:
    """Return the epsilon that statistics (n, s) of the two tables' messages prove, and which one does."""
    n = len(first) // 2
    best = (0.0, 0, 0.0, False, False)
    for k in range(first.shape[1]):
        for threshold in np.unique(np.quantile(np.r_[first[:n, k], second[:n, k]], np.linspace(0, 1, 21))):
            counts = [int((each[:n, k] > threshold).sum()) for each in (first, second)]
            for swapped in (False, True):
                hits, alarms = counts[::-1] if swapped else counts
                # Above the threshold, or not.
                for under in (False, True):
                    pair = (n - hits, n - alarms) if under else (hits, alarms)
                    best = max(best, (_proven(*pair, n), k, float(threshold), swapped, under))
    _, k, threshold, swapped, under = best
    others = (second, first) if swapped else (first, second)
    hits, alarms = (int(((each[n:, k] > threshold) != under).sum()) for each in others)
    names = [name.format(bit) for bit in BITS for name in ("no multiples of 2^-{}", "the bit 2^-{}")]
    name = [*names, "the sum"][k] if first.shape[1] > 1 else "the sum"
    return max(_proven(hits, alarms, len(first) - n), 0.0), name


def main() -> None:
    """Audit, and print the outcome."""
    given = [int(word) for word in sys.argv[1:]]
    n, predictors = (*given, *(MESSAGES, PREDICTORS)[len(given) :])
    start = time.perf_counter()
    sizes = [min(PIECE, n - begin) for begin in range(0, n, PIECE)]
    pieces = Parallel(n_jobs=-1)(
        delayed(_piece)(place, size, predictors) for place in range(2) for size in sizes
    )
    first, second = (np.concatenate(part) for part in (pieces[: len(sizes)], pieces[len(sizes) :]))
    seconds = (time.perf_counter() - start) * effective_n_jobs(-1) / (2 * n)
    epsilon, name = proven(first, second)
    by_sum, _ = proven(first[:, -1:], second[:, -1:])
    print(
        f"{n} messages of each table, {predictors} predictors, epsilon {PROMISE.epsilon:g} claimed\n"
        f"proven by all statistics: epsilon {epsilon:.2f}, by {name}\n"
        f"proven by the sum alone: epsilon {by_sum:.2f}\n"
        f"a message took {1000 * seconds:.1f} ms of a core"
    )


if __name__ == "__main__":
    main()
