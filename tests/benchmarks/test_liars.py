"""One liar among twelve honest sites changes neither their coteries nor what they predict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "federated"
# Who says what cannot be true, or what nobody else would say, is named.
NAMED = {
    "answers 100 for every labelling with several coteries",
    "noise level 1e-90",
    "fails on a third of the models",
    "n_rows = 2^53",
    "noise level 1e90",
    "answers at random",
    "a wild model",
    "all models are useless",
    "own model useless, averages perfect",
    "own model perfect, averages useless",
    "others save everything",
    "others ruin everything",
}
# Excess errors of the honest sites over those of an oracle who leaves the liar out, in a single draw. An
# honest site in the liar's place takes part in averages, too: it alone gives 1.16 for models.
OF_MODELS, OF_CLASSES, AT_HOME = 1.3, 1.4, 1.2


def load() -> Any:
    before, path = {name: sys.modules.pop(name, None) for name in ("liars", "lies")}, list(sys.path)
    sys.path.insert(0, str(FOLDER))
    try:
        import liars

        return liars
    finally:
        sys.path[:] = path
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module


BENCH = load()


# Others are as quick, and many: they run among the slow tests.
QUICK = (
    "all models are useless",
    "an honest site",
    "n_rows = 2^53",
    "noise level 1e-90",
    "offsets and slopes as large as can be",
    "others ruin everything",
    "a slope off by .5",
    "the response is shuffled",
)
QUICK_MOMENTS = ("a million times the rows", "a slope off by .4, x times 50", "the opposite relation")


def cases(lies: Any, quick: tuple[str, ...]) -> list[Any]:
    return [pytest.param(name, marks=[] if name in quick else [pytest.mark.slow]) for name in lies]


def judged(sends: str, name: str, draw: int = 1) -> dict[str, dict[str, Any]]:
    """Return what a lie does in a draw, by what sites predict with."""
    rows = BENCH.judged(sends, name, 1, draw)
    numbers = ("ari", "excess", "oracle")
    return {row["sends"]: {**row, **{key: float(row[key]) for key in numbers}} for row in rows}


@pytest.mark.parametrize("name", cases(BENCH.LIES, QUICK))
def test_a_liar_among_twelve_changes_nothing(name: str) -> None:
    row = judged(BENCH.MODELS, name)[BENCH.MODELS]
    assert row["ari"] >= 0.95
    assert row["excess"] <= OF_MODELS * row["oracle"]
    assert row["named"] == "1" or name not in NAMED


@pytest.mark.parametrize("name", cases(BENCH.MOMENT_LIES, QUICK_MOMENTS))
def test_a_liar_who_sends_moments_changes_nothing_at_home(name: str) -> None:
    row = judged(BENCH.LINE, name)[BENCH.HOME]
    assert row["ari"] >= 0.95
    assert row["excess"] <= AT_HOME * row["oracle"]


@pytest.mark.parametrize(
    "name", cases(("n_rows = 2^53", "a model off by a third, well hidden"), ("n_rows = 2^53",))
)
def test_a_liar_among_twelve_changes_nothing_for_classes(name: str) -> None:
    row = judged(BENCH.CLASSES, name)[BENCH.CLASSES]
    assert row["ari"] >= 0.95
    assert row["excess"] <= OF_CLASSES * row["oracle"]


def test_an_honest_site_more_is_no_liar() -> None:
    row = judged(BENCH.MODELS, "an honest site")[BENCH.MODELS]
    assert row["ari"] == 1.0
    assert row["named"] == "0"
