"""The method as its page states it, in one file, finds the clusters that coterie finds."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import adjusted_rand_score

from coterie import cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_stress

FILE = Path(__file__).parents[1] / "examples" / "the_method_in_one_file.py"
LINEAR = ["ridge", "lasso"]
SETTINGS = (
    "one truth",
    "three truths",
    "noise .3 to 3, three truths",
    "2% outliers x 20, three truths",
    "sizes 15 to 500, three truths",
    "twelve truths, 60 learners",
)


@pytest.fixture(scope="module")
def one_file() -> Any:
    """Return the example as a module."""
    spec = importlib.util.spec_from_file_location(FILE.stem, FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def agree(one_file: Any, setting: str, seed: int) -> bool:
    """Tell whether both find the same clusters; their random halves of the rows differ."""
    data = make_stress(setting, seed)
    mine = one_file.cluster(data.X, data.y, data.groups)
    selection = select_models(data.X, data.y, groups=data.groups, candidates=LINEAR)
    exchange = cross_evaluate(selection, data.X, data.y, data.groups)
    found = cluster_learners(
        exchange, data.X, data.y, data.groups, selection=selection, candidates=LINEAR
    ).labels
    return bool(adjusted_rand_score(mine, found) == 1)


@pytest.mark.parametrize("setting", SETTINGS)
def test_the_page_is_the_method(one_file: Any, setting: str) -> None:
    assert agree(one_file, setting, 2000)


@pytest.mark.slow
def test_on_95_draws_of_100_the_page_is_the_method(one_file: Any) -> None:
    found = [agree(one_file, setting, 2000 + seed) for setting in SETTINGS for seed in range(17)]
    assert sum(found) >= 0.95 * len(found)


def test_the_example_prints_both_answers(one_file: Any, capsys: pytest.CaptureFixture[str]) -> None:
    one_file.main()
    assert "adjusted Rand index of the two: 1.0" in capsys.readouterr().out
