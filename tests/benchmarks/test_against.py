"""The comparison with frozen answers: what it calls the same, what it calls a fall, and what is frozen."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
if not BENCHMARKS.is_dir():
    pytest.skip("The benchmarks are not in this distribution.", allow_module_level=True)
pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")
sys.path.insert(0, str(BENCHMARKS))

import against  # noqa: E402
import golden  # noqa: E402
from answering.paired import differences  # noqa: E402
from answering.rows import Answer, ordered_labels  # noqa: E402


def _answers(n: int = 6, **more: Any) -> Any:
    rows = []
    for seed in range(n):
        answer = Answer("searches", "a setting", "linear", seed, n_clusters=2, clear=True, labels=[0, 1, 0])
        changed = {name: value(seed) if callable(value) else value for name, value in more.items()}
        rows.append({**answer.record(), "agreement": 1.0, "exact": True, "seconds": 1.0, **changed})
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("before", "now", "fallen", "said"),
    [
        ({}, {}, False, "No difference."),
        # Time differs between any two runs.
        ({}, {"seconds": 2.0}, False, "No difference."),
        # The last of five digits is rounding.
        ({"errors": [[1.0, 2.0]] * 6}, {"errors": [[1.0, 2.0001]] * 6}, False, "No difference."),
        ({}, {"agreement": lambda seed: 0.5 + seed / 100, "exact": False}, True, "**worse**"),
        ({"agreement": 0.5, "exact": False}, {}, False, "**better**"),
        # One draw of six is within two standard errors.
        ({}, {"agreement": lambda seed: 0.9 if seed == 0 else 1.0}, False, "5 are the same"),
        ({"errors": [[1.0, 2.0]] * 6}, {"errors": [[1.1, 2.2]] * 6}, True, "1.1000"),
        ({"verdicts": "ccs"}, {"verdicts": "cns"}, False, "0.333"),
        ({}, {"n_clusters": 3}, False, "| 1.000 |"),
    ],
)
def test_differences_are_paired(before: dict[str, Any], now: dict[str, Any], fallen: bool, said: str) -> None:
    rows = differences(_answers(**_columns(before)), _answers(**_columns(now)))
    text, fell = against.report(rows, 1.0)
    assert fell is fallen
    assert said in text


def _columns(more: dict[str, Any]) -> dict[str, Any]:
    """Lists of lists have a cell for each draw."""
    return {
        name: (lambda seed, cells=value: cells[seed]) if isinstance(value, list) else value
        for name, value in more.items()
    }


def test_an_order_that_only_one_state_answered_is_not_compared() -> None:
    assert len(differences(_answers(6), _answers(4))) == 4


def test_labels_are_numbered_by_their_first_learner() -> None:
    assert ordered_labels(["b", "a", "b", "c"]) == [0, 1, 0, 2]
    assert ordered_labels([7, 3, 7, 5]) == ordered_labels(["x", "y", "x", "a"])


def test_everything_that_was_asked_is_frozen() -> None:
    frozen = against.read_frozen(against.FROZEN, list(against.SOURCES))
    assert set(frozen["source"]) == set(against.SOURCES)
    assert not frozen.duplicated(["source", "setting", "variant", "seed"]).any()
    one_truth = frozen[frozen["setting"].str.startswith("one_truth")]
    assert one_truth.groupby("setting")["seed"].nunique().eq(100).all()


def test_golden_files_see_a_changed_bit() -> None:
    name = "K given"
    arrays = golden.made(name)
    assert golden.apart(arrays, arrays) == (0.0, "")
    nudged = {**arrays, "predictions": np.nextafter(arrays["predictions"], np.inf)}
    distance, where = golden.apart(arrays, nudged)
    assert 0 < distance < golden.ALLOWED
    assert where == "predictions"
    flipped = {**arrays, "labels": 1 - arrays["labels"]}
    assert golden.apart(arrays, flipped) == (np.inf, "labels")
    with np.load(golden._file(name)) as known:
        assert golden.apart(dict(known), arrays)[0] <= golden.ALLOWED
