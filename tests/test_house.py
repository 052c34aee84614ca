"""The house as a whole: it stays small, and nobody reaches into another object's private members."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "coterie"

# Version 0.1 had 34,250 lines, and the rebuilt house 28,500 for the same features. The rest pools the rows of
# tiny learners, predicts unseen ones, describes learners to models of everybody's rows, makes every form
# honest out of fold, bounds predictions by intervals, looks for what is wrong with a table, learns classes,
# lets sites whose rows never move mix averages as a fit does, though one of them may lie, learns from noisy
# moments, lets sites agree on their columns, gives each of them a page, and tells which predictors matter.
MOST_LINES = 43_500


def private_accesses(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Give out line and text of each `x._name` where x is neither self, cls nor a class of the module."""
    mine = {node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)} | {"self", "cls"}
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not node.attr.startswith("_") or node.attr.startswith("__"):
            continue
        if node.attr == "_replace":  # a public method of named tuples, in spite of its name
            continue
        if not (isinstance(node.value, ast.Name) and node.value.id in mine):
            yield node.lineno, ast.unparse(node)


def test_a_private_access_is_seen() -> None:
    tree = ast.parse(
        "class A:\n    def f(self, b): return self._x + A._y + b._z + b.c._d + b.__len__() + b._replace()"
    )
    assert {text for _, text in private_accesses(tree)} == {"b._z", "b.c._d"}


def test_nobody_reaches_into_the_private_members_of_another_object() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{line}: {text}"
        for path in sorted(SOURCE.rglob("*.py"))
        for line, text in private_accesses(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert not found


def test_the_source_stays_small() -> None:
    lines = sum(path.read_bytes().count(b"\n") for path in SOURCE.rglob("*.py"))
    assert lines <= MOST_LINES
