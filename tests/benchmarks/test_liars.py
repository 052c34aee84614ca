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
# In a single draw the error goes up and down by as much with an honest site more.
OF_ONE_DRAW = 1.2


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


@pytest.fixture(scope="module")
def honest() -> float:
    return BENCH.judged(None, 1, 1)[1]


@pytest.mark.parametrize("name", list(BENCH.LIES))
def test_a_liar_among_twelve_changes_nothing(name: str, honest: float) -> None:
    ari, error, named = BENCH.judged(BENCH.LIES[name], 1, 1)
    assert ari >= 0.95
    assert error <= OF_ONE_DRAW * honest
    assert named or name not in NAMED


@pytest.fixture(scope="module")
def honest_of_classes() -> float:
    return BENCH.judged(None, 1, 1, classes=True)[1]


@pytest.mark.parametrize(
    "name",
    [
        "answers falling with the number of coteries",
        "n_rows = 2^53",
        "praises the models of other truths",
        "a model off by a third, well hidden",
        "offsets and slopes as large as can be",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in BENCH.LIES
            if name.startswith(("all models", "a wild", "another unit", "own model", "others", "noise"))
        ),
    ],
)
def test_a_liar_among_twelve_changes_nothing_for_classes(name: str, honest_of_classes: float) -> None:
    ari, error, _ = BENCH.judged(BENCH.LIES[name], 1, 1, classes=True)
    assert ari >= 0.95
    assert error <= OF_ONE_DRAW * honest_of_classes


@pytest.mark.slow
@pytest.mark.parametrize("name", list(BENCH.LIES))
def test_over_draws_honest_errors_stay_what_they_are(name: str) -> None:
    row = BENCH.row_of(name, 5)
    assert row["least ARI"] >= 0.95
    assert row["mean error ratio"] <= 1.05


def test_an_honest_site_more_is_no_liar() -> None:
    ari, _, named = BENCH.judged(BENCH.Lie(), 1, 1)
    assert ari == 1.0
    assert not named
