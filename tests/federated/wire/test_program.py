"""Trees that lead in circles, outside or nowhere, and steps that do not fit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from coterie.federated.wire import program as module
from coterie.federated.wire.program import Program, ProgramError, ProgramWriter, Step, Trees


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


# Two questions: x0 <= 1 asks x1 <= 2 next, else leaf 2.
SOUND = Trees(
    features=ints(0, 1),
    splits=np.array([1.0, 2.0]),
    true_ids=ints(1, 0),
    true_leafs=ints(0, 1),
    false_ids=ints(2, 1),
    false_leafs=ints(1, 1),
    roots=ints(0),
    weights=np.array([10.0, 20.0, 30.0]),
)


def test_sound_trees_pass() -> None:
    SOUND.check(2)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"features": ints(0, 2)}, "a column beyond"),
        ({"features": ints(0, -1)}, "a column beyond"),
        ({"splits": np.array([1.0, np.nan])}, "not a finite number"),
        ({"weights": np.array([10.0, np.inf, 30.0])}, "not a finite number"),
        ({"splits": np.array([1.0])}, "differ in length"),
        ({"true_leafs": ints(2, 1)}, "neither nodes nor leaves"),
        ({"true_ids": ints(7, 0)}, "outside of the list"),
        ({"true_ids": ints(-1, 0)}, "outside of the list"),
        ({"false_ids": ints(3, 1)}, "outside of the list"),
        ({"true_ids": ints(0, 0)}, "go in a circle"),
        ({"true_leafs": ints(0, 0)}, "go in a circle"),
        ({"roots": ints(0, 1)}, "go in a circle, meet"),
        ({"roots": ints(5)}, "outside of the list"),
        ({"roots": ints()}, "0 trees"),
        ({"true_ids": ints(0, 1), "true_leafs": ints(1, 1)}, "nothing leads to"),
        ({"false_ids": ints(0, 1)}, "share leaves"),
        ({"weights": np.array([10.0, 20.0, 30.0, 40.0])}, "nothing leads to"),
    ],
)
def test_unsound_trees_are_refused(changes: dict[str, np.ndarray], sentence: str) -> None:
    with pytest.raises(ProgramError, match=sentence):
        replace(SOUND, **changes).check(2)


def test_a_circle_that_no_root_leads_to_is_refused() -> None:
    # Every node is reached once: the first is the root, the other two reach each other.
    apart = Trees(
        features=ints(0, 0, 0),
        splits=np.zeros(3),
        true_ids=ints(0, 2, 1),
        true_leafs=ints(1, 0, 0),
        false_ids=ints(1, 2, 3),
        false_leafs=ints(1, 1, 1),
        roots=ints(0),
        weights=np.zeros(4),
    )
    with pytest.raises(ProgramError, match="go in a circle"):
        apart.check(1)


def test_deep_and_many_trees_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_DEPTH", 1)
    with pytest.raises(ProgramError, match="more than 1 levels"):
        SOUND.check(2)
    n = module.MAX_TREES + 1
    zeros = np.zeros(n, dtype=np.int64)
    many = Trees(zeros, zeros, zeros, zeros + 1, zeros, zeros + 1, np.arange(n), np.zeros(2 * n))
    with pytest.raises(ProgramError, match=f"{n} trees"):
        many.check(1)


@pytest.mark.parametrize(
    "step",
    [
        Step("Add", ("X",), "a", np.zeros(2)),
        Step("Add", ("X",), "a", np.zeros((1, 3))),
        Step("Add", ("X", "X", "X"), "a"),
        Step("Add", ("X", "X"), "a", np.zeros(3)),
        Step("Tanh", ("X", "X"), "a"),
        Step("Tanh", ("X",), "a", np.zeros(3)),
        Step("MatMul", ("X",), "a", np.zeros((2, 2))),
        Step("MatMul", ("X",), "a", np.zeros(3)),
        Step("MatMul", ("X", "X"), "a"),
        Step("MatMul", ("X",), "a", np.zeros((3, module.MAX_WIDTH + 1))),
        Step("Gather", ("X",), "a", ints(3)),
        Step("Gather", ("X",), "a", ints(-1)),
        Step("Gather", ("X",), "a", np.zeros((1, 1), dtype=np.int64)),
        Step("TreeEnsemble", ("X",), "a"),
        Step("TreeEnsemble", ("X", "X"), "a", trees=SOUND),
        Step("Loop", ("X",), "a"),
    ],
)
def test_steps_whose_parts_do_not_fit_are_refused(step: Step) -> None:
    with pytest.raises(ProgramError, match="do not fit each other"):
        Program(3, (step,)).check()


def test_steps_run_in_order_in_float64_and_end_in_one_column() -> None:
    column = Step("Gather", ("X",), "a", ints(0))
    Program(3, (column,)).check()
    with pytest.raises(ProgramError, match="before it is there"):
        Program(3, (Step("Tanh", ("b",), "a"), Step("Tanh", ("a",), "b"))).check()
    with pytest.raises(ProgramError, match="before it is there"):
        Program(3, (Step("Concat", (), "a"),)).check()
    with pytest.raises(ProgramError, match="one name"):
        Program(3, (column, column)).check()
    with pytest.raises(ProgramError, match="one column"):
        Program(3, (Step("Tanh", ("X",), "a"),)).check()
    with pytest.raises(ProgramError, match="not a finite number"):
        Program(1, (Step("Add", ("X",), "a", np.array([np.nan])),)).check()
    rounded = Step("Cast", ("X",), "a", single=True)
    with pytest.raises(ProgramError, match="one column of float64"):
        Program(1, (rounded,)).check()
    with pytest.raises(ProgramError, match="float32"):
        Program(1, (rounded, Step("Tanh", ("a",), "b"))).check()
    with pytest.raises(ProgramError, match="float32"):
        Program(1, (Step("Cast", ("X",), "b"),)).check()
    with pytest.raises(ProgramError, match="0 operators"):
        Program(1, ()).check()


def test_a_writer_names_what_it_writes() -> None:
    writer = ProgramWriter(2)
    total = writer.add("MatMul", "X", constant=np.ones((2, 1)))
    assert writer.add("Tanh", total) == "t1"
    assert [step.operator for step in writer.program().steps] == ["MatMul", "Tanh"]
