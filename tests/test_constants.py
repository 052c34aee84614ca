"""The method has few numeric constants, and each stands in one place."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import coterie

# Lower it when a constant goes. A new one must replace another.
MOST_CONSTANTS = 42
MOST_OF_THE_LIKELIHOOD = 36
FOLDERS = ("method", "kernels")


def _is_number(value: ast.expr | None) -> bool:
    """Tell whether a value is written in numbers alone: ``-1``, ``2**22``, ``(1, 2)`` or ``{"a": 1}``."""
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float, complex)
    if isinstance(value, ast.UnaryOp):
        return _is_number(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return bool(value.elts) and all(map(_is_number, value.elts))
    if isinstance(value, ast.Dict):
        return bool(value.values) and all(map(_is_number, value.values))
    # An array or a sequence made of numbers, and a rule with other numbers than its own.
    return isinstance(value, ast.Call) and any(
        map(_is_number, [*value.args, *(keyword.value for keyword in value.keywords)])
    )


def _is_zero(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Constant) and value.value == 0


def _assigned(body: list[ast.stmt]) -> Iterator[tuple[str, ast.expr | None]]:
    """Give out the names that statements assign to, and the values."""
    for statement in body:
        if isinstance(statement, ast.AnnAssign):
            yield ast.unparse(statement.target), statement.value
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                # ``A, B = 1, 2`` are two constants.
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from ((ast.unparse(name), statement.value) for name in names)


def numeric_constants(source: str) -> list[str]:
    """Return the names of a module's numeric constants.

    Constants are assignments of the module, and fields of its rules: classes of which every field has a
    default. Other records hold results; so do those whose fields are zero until something is counted.
    """
    module = ast.parse(source).body
    found = list(_assigned(module))
    for statement in module:
        if isinstance(statement, ast.ClassDef):
            fields = list(_assigned(statement.body))
            if all(value is not None for _, value in fields):
                rule = statement.name
                found += [(f"{rule}.{name}", value) for name, value in fields if not _is_zero(value)]
    return [name for name, value in found if _is_number(value)]


def constants_of_the_method() -> dict[str, list[str]]:
    """Return the names by file."""
    root = Path(coterie.__file__).parent
    files = [path for folder in FOLDERS for path in sorted((root / folder).rglob("*.py"))]
    found = {path.relative_to(root).as_posix(): numeric_constants(path.read_text()) for path in files}
    return {path: names for path, names in found.items() if names}


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("A = 1\nB: float = -2.5\nC = 2**22\nD = (1, 2)\nE = {'a': 1e-8}", ["A", "B", "C", "D", "E"]),
        ("A, B = 1, 2", ["A", "B"]),
        ("A = tuple(10.0 ** np.arange(3))\nRULE = Rule(patience=4)", ["A", "RULE"]),
        ("A = 'one'\nB = ('auto', None)\nC = True\nD = A\nE = sqrt(A)", []),
        ("def f(a=1):\n    b = 2\n", []),
        ("@dataclass(frozen=True)\nclass Rule:\n    a: int = 4\n    b: float = -3.0", ["Rule.a", "Rule.b"]),
        ("@dataclass(frozen=True)\nclass Result:\n    a: Array\n    b: int = 4", []),
        ("@dataclass(frozen=True)\nclass Sum:\n    total: float = 0.0", []),
    ],
)
def test_constants_are_found_wherever_they_stand(source: str, names: list[str]) -> None:
    assert numeric_constants(source) == names


def test_the_method_has_few_constants() -> None:
    found = constants_of_the_method()
    # Two methods stand side by side: each is counted. Of the likelihood's, six are names of kinds of columns.
    second = {path: names for path, names in found.items() if path.startswith("method/likelihood/")}
    assert sum(map(len, second.values())) <= MOST_OF_THE_LIKELIHOOD + 6, second
    assert sum(map(len, found.values())) - sum(map(len, second.values())) <= MOST_CONSTANTS, found


def test_no_constant_has_the_name_of_another() -> None:
    counts = Counter(name for names in constants_of_the_method().values() for name in names)
    assert not {name for name, count in counts.items() if count > 1}
