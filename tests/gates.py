"""Counts of what makes a house large: each may only fall, and `gates.toml` says where it stands.

``python tests/gates.py`` prints the table as the source is now, and ``--write`` writes it to `gates.toml`.
``--list branches_on_kind`` says where the count comes from; so do ``numeric_constants`` and the other names.

What is counted:

branches_on_kind
    Tests that ask which kind of response there is, outside `families/`. A test is an operand of `if`,
    `while`, `assert`, a conditional expression, `and`, `or` or `not`, the condition of a comprehension, the
    argument of `bool`, or a comparison wherever it stands. It asks for the kind in one of these forms:

    - It compares something of a loss or a family with a literal, or takes it for true.
    - It does so with a name of `KIND_NAMES`, or with its length.
    - It asks for an object of a class that stands for a kind (`isinstance`, `type(x) is`, `case`), or it
      compares with a constant named for a kind, such as `CLASSIFICATION`, or with a text of `KIND_TEXTS`.
    - It calls `is_classifier` or `is_regressor`, or looks for an attribute that only one kind has.

    Two values of the same name may be compared: sites that agree on their classes are no branch. Nor is the
    attribute `classes_` one: a model that has it is a classifier.
numeric_constants
    Literal numbers outside rules. If a name of a module is bound to numbers alone (a number, arithmetic, a
    table), every one counts, except in names that end in `VERSION` or `PROTOCOL`. As defaults of parameters
    or fields, all but 0 and 1 count. Elsewhere 0, .5, 1 and 2 are structure, with either sign. So are
    indices, whole exponents, `axis`, `ndim` and what `.ndim` or `.shape` must be equal to.

    A rule is a frozen dataclass or a named tuple whose name ends in `Rule` or `Rules`. A number in it does
    not count if its field has a comment or docstring of four words or more, which names its measurement. The
    same holds for the keywords of a rule that a module makes with other numbers.
statements
    Statements by the syntax tree, without docstrings.
dataclasses
    Classes decorated as such, and named tuples that are not rules.
public_names
    Functions and classes of modules without an underscore in front.
options_of_regressor, options_of_classifier
    Parameters of each estimator.
options_of_commands
    Options and arguments of all commands, without `--help`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import io
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[1] / "src" / "coterie"
TABLE = Path(__file__).with_name("gates.toml")

# What each count is to come down to. Statements and public names fall as the lines are to fall, from 43,300
# to 28,000. Options of commands fall as those of the faces, from 25 to 20.
TARGETS = {
    "branches_on_kind": 0,
    "numeric_constants": 0,
    "statements": 14_600,
    "dataclasses": 109,
    "public_names": 695,
    "options_of_regressor": 20,
    "options_of_classifier": 20,
    "options_of_commands": 105,
}

FAMILIES = "families/"
# Names under which the source keeps the classes of a response, how many there are, or that there are any.
KIND_NAMES = {
    "class_shares",
    "classes",
    "classes_of",
    "n_classes",
    "of_classes",
    "of_one_class",
    "one_class",
    "task",
    "task_of",
}
OWNERS = {"loss", "family"}
# What derives from `Loss` or `Family` is one, too.
KIND_CLASSES = {
    "ClassAverages",
    "CoterieClassifier",
    "CoterieRegressor",
    "ForClasses",
    "Intervals",
    "LabelSets",
    "NestedClasses",
    "NestedCollaboration",
}
KIND_CONSTANTS = {"CLASS", "CLASSIFICATION", "CLASS_LINES", "CLASS_ONNX", "REGRESSION", "SQUARED_ERROR"}
KIND_TEXTS = {
    "Brier score",
    "CoterieClassifier",
    "CoterieRegressor",
    "binary",
    "classes_",
    "classification",
    "classifier",
    "multiclass",
    "regression",
    "regressor",
    # Only a summary of classes has scores.
    "scores",
}
KIND_QUESTIONS = {"is_classifier", "is_regressor"}
KIND_ATTRIBUTES = {"classes", "classes_", "estimator_type", "predict_proba"}

STRUCTURE = {0, 0.5, 1, 2}
NOTHING_AND_ONE = {0, 1}
FEWEST_WORDS = 4


def _last(node: ast.AST) -> str:
    """Return the last name of ``a.b.c``; the name of the function of a call; else nothing."""
    if isinstance(node, ast.Call):
        return _last(node.func)
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _is_docstring(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


# Branches on the kind of response.


def kinds_of(trees: Iterable[ast.Module]) -> set[str]:
    """Return the names of classes that stand for a kind of response."""
    bases = {
        node.name: {_last(base) for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Loss", "Family"}
    while more := {name for name, known in bases.items() if known & found} - found:
        found |= more
    return found | KIND_CLASSES


def _operands(test: ast.expr) -> Iterator[ast.expr]:
    """Give out what `and`, `or` and `not` connect."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _operands(value)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _operands(test.operand)
    else:
        yield test.value if isinstance(test, ast.NamedExpr) else test


def _tests(tree: ast.AST) -> Iterator[ast.expr]:
    """Give out every operand of a test once."""
    seen = set()
    for node in ast.walk(tree):
        tests: list[ast.expr] = []
        if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            tests = [node.test]
        elif isinstance(node, ast.comprehension):
            tests = node.ifs
        elif isinstance(node, ast.BoolOp | ast.Compare) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            tests = [node]
        elif isinstance(node, ast.Match):
            tests = [node.subject]
        elif isinstance(node, ast.Call) and _last(node) == "bool":
            tests = node.args
        elif isinstance(node, ast.Call) and _last(node) in ("isinstance", "issubclass", *KIND_QUESTIONS):
            tests = [node]
        for operand in (operand for test in tests for operand in _operands(test)):
            if id(operand) not in seen:
                seen.add(id(operand))
                yield operand


def _holds_kind(node: ast.expr) -> bool:
    """Tell whether an expression is something of a family, a name that says the kind, or its length."""
    if isinstance(node, ast.Call) and _last(node) in ("len", "bool", "set") and node.args:
        return _holds_kind(node.args[0])
    if isinstance(node, ast.Call) and _last(node) in ("getattr", "hasattr") and len(node.args) > 1:
        return isinstance(node.args[1], ast.Constant) and node.args[1].value in KIND_ATTRIBUTES
    if _last(node).lstrip("_") in KIND_NAMES:
        return True
    # The kind of a target, not that of any column.
    if (
        isinstance(node, ast.Attribute)
        and node.attr == "kind"
        and _last(node.value) in ("target", "response")
    ):
        return True
    while isinstance(node, ast.Attribute | ast.Call | ast.Subscript):
        if isinstance(node, ast.Attribute) and _last(node.value) in OWNERS:
            return True
        node = node.func if isinstance(node, ast.Call) else node.value
    return False


def _parts(node: ast.expr) -> list[ast.expr]:
    return (
        [part for each in node.elts for part in _parts(each)]
        if isinstance(node, ast.Tuple | ast.List | ast.Set)
        else [node]
    )


def _is_written(node: ast.expr) -> bool:
    """Tell whether a value stands in the source: a literal, a constant, or several."""
    return all(isinstance(part, ast.Constant) or _last(part).isupper() for part in _parts(node))


def _names_kind(node: ast.expr, kinds: set[str]) -> bool:
    named = kinds | KIND_CONSTANTS
    return any(
        part.value in KIND_TEXTS
        if isinstance(part, ast.Constant)
        else not isinstance(part, ast.Call) and _last(part) in named
        for part in _parts(node)
    )


def _asks_for_kind(test: ast.expr, kinds: set[str]) -> bool:
    if isinstance(test, ast.Compare):
        sides = [test.left, *test.comparators]
        pairs = [*pairwise(sides), *pairwise(reversed(sides))]
        if any(_names_kind(side, kinds) for side in sides):
            return True
        # One column for regression is a special case; as many columns as fit somewhere are none.
        one_column = any(
            _last(one) == "n_columns" and isinstance(other, ast.Constant) for one, other in pairs
        )
        return one_column or any(_holds_kind(one) and _is_written(other) for one, other in pairs)
    if isinstance(test, ast.Call) and _last(test) in ("isinstance", "issubclass"):
        return any(_last(node) in kinds for node in ast.walk(test.args[1]))
    return _last(test) in KIND_QUESTIONS or _holds_kind(test)


def branches_on_kind(tree: ast.Module, kinds: set[str] | None = None) -> Iterator[ast.AST]:
    """Give out each test that asks which kind of response there is."""
    kinds = kinds_of([tree]) if kinds is None else kinds
    yield from (test for test in _tests(tree) if _asks_for_kind(test, kinds))
    for node in ast.walk(tree):
        if isinstance(node, ast.MatchClass) and _last(node.cls) in kinds:
            yield node


# Numeric constants.


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


def _numbers_alone(value: ast.expr | None) -> bool:
    """Tell whether a value is written in numbers alone: ``-1``, ``2**22``, ``(1, 2)`` or ``{"a": 1}``."""
    if isinstance(value, ast.UnaryOp):
        return _numbers_alone(value.operand)
    if isinstance(value, ast.BinOp):
        return _numbers_alone(value.left) and _numbers_alone(value.right)
    if isinstance(value, ast.Tuple | ast.List | ast.Set):
        return bool(value.elts) and all(map(_numbers_alone, value.elts))
    if isinstance(value, ast.Dict):
        return bool(value.values) and all(map(_numbers_alone, value.values))
    return value is not None and _is_number(value)


def _is_rule(node: ast.AST) -> bool:
    """Tell whether a class is a rule: a frozen dataclass or a named tuple of that name."""
    if not isinstance(node, ast.ClassDef) or not node.name.endswith(("Rule", "Rules")):
        return False
    frozen = any("frozen=True" in ast.unparse(decorator) for decorator in node.decorator_list)
    return frozen or any(_last(base) == "NamedTuple" for base in node.bases)


def _comments(source: str) -> dict[int, tuple[str, bool]]:
    """Return the comments by line, and whether they have the line to themselves."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {
        token.start[0]: (token.string.lstrip("# "), not token.line[: token.start[1]].strip())
        for token in tokens
        if token.type == tokenize.COMMENT
    }


def _commented(node: Any, comments: dict[int, tuple[str, bool]]) -> bool:
    """Tell whether a field or keyword has a comment of its own, beside it or above it."""
    lines = [line for line in range(node.lineno, node.end_lineno + 1) if line in comments]
    above = node.lineno - 1
    while above in comments and comments[above][1]:
        lines.append(above)
        above -= 1
    return len(" ".join(comments[line][0] for line in lines).split()) >= FEWEST_WORDS


class _Numbers:
    """The numbers of a module that count."""

    def __init__(self, source: str) -> None:
        self.comments = _comments(source)
        self.found: list[ast.AST] = []
        tree = ast.parse(source)
        self.body(tree.body)

    def body(self, statements: list[ast.stmt]) -> None:
        """Visit statements of a module."""
        for statement in statements:
            value = getattr(statement, "value", None)
            if isinstance(statement, ast.Assign | ast.AnnAssign) and _numbers_alone(value):
                names = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                if not any(_last(name).endswith(("VERSION", "PROTOCOL")) for name in names):
                    self.found += [node for node in ast.walk(statement.value) if _is_number(node)]  # type: ignore[arg-type]
            elif isinstance(value, ast.Call) and _last(value).endswith(("Rule", "Rules")):
                for argument in (*value.args, *value.keywords):
                    if not (isinstance(argument, ast.keyword) and _commented(argument, self.comments)):
                        self.found += [node for node in ast.walk(argument) if _is_number(node)]
            else:
                self.visit(statement)

    def rule(self, rule: ast.ClassDef) -> None:
        """Visit the fields of a rule; its methods are as others."""
        for statement, after in zip(rule.body, [*rule.body[1:], ast.Pass()], strict=True):
            if not isinstance(statement, ast.Assign | ast.AnnAssign):
                self.visit(statement)
                continue
            told = _is_docstring(after) and len(ast.unparse(after).split()) >= FEWEST_WORDS
            if not told and not _commented(statement, self.comments) and statement.value is not None:
                self.found += [node for node in ast.walk(statement.value) if _is_number(node)]

    def visit(self, node: ast.AST, free: set[Any] | None = STRUCTURE) -> None:
        """Visit what is below a node, where some numbers are free, or all are: None."""
        if _is_number(node):
            if free is not None and node.value not in free:  # type: ignore[attr-defined]
                self.found.append(node)
            return
        if _is_rule(node):
            self.rule(node)  # type: ignore[arg-type]
            return
        for name, value in ast.iter_fields(node):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    self.visit(child, self.free_in(node, name, child, free))

    @staticmethod
    def free_in(node: ast.AST, name: str, child: ast.AST, free: set[Any] | None) -> set[Any] | None:
        """Return which numbers are free in a part of a node."""
        if isinstance(node, ast.Subscript) and name == "slice" and _last(node.value) != "Annotated":
            return None
        if isinstance(node, ast.keyword) and node.arg in ("axis", "ndim"):
            return None
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and name == "right":
            return None if isinstance(child, ast.Constant) and isinstance(child.value, int) else free
        if isinstance(node, ast.Compare) and all(
            isinstance(op, ast.Eq | ast.NotEq | ast.In | ast.NotIn) for op in node.ops
        ):
            shape = any(
                isinstance(part, ast.Attribute) and part.attr in ("ndim", "shape")
                for side in (node.left, *node.comparators)
                for part in [
                    side,
                    *(side.args if isinstance(side, ast.Call) and _last(side) == "len" else []),
                ]
            )
            return None if shape else free
        if isinstance(node, ast.arguments) and name in ("defaults", "kw_defaults"):
            return NOTHING_AND_ONE
        if isinstance(node, ast.ClassDef) and isinstance(child, ast.Assign | ast.AnnAssign):
            return NOTHING_AND_ONE
        return free


def numeric_constants(source: str) -> list[ast.AST]:
    """Return the literal numbers outside rules that count."""
    return _Numbers(source).found


# Sizes.


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Give out all statements but docstrings."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not _is_docstring(node))


def dataclasses(tree: ast.Module) -> Iterator[ast.AST]:
    """Give out dataclasses, and named tuples that are not rules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            decorated = any(_last(decorator) == "dataclass" for decorator in node.decorator_list)
            if decorated or (any(_last(base) == "NamedTuple" for base in node.bases) and not _is_rule(node)):
                yield node


def public_names(tree: ast.Module) -> Iterator[ast.AST]:
    """Give out the functions and classes of a module without an underscore in front."""
    for node in tree.body:
        if isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) and not node.name.startswith("_"):
            yield node


def options_of_face(face: type) -> list[str]:
    """Return the parameters of an estimator."""
    return list(inspect.signature(face).parameters)


def options_of_commands(app: Any) -> list[str]:
    """Return the options and arguments of all commands, without ``--help``."""
    import typer

    commands = typer.main.get_command(app).commands
    return [f"{name} {option.name}" for name, command in commands.items() for option in command.params]


# All of the source.

TREES: dict[str, Callable[[ast.Module], Iterator[ast.AST]]] = {
    "statements": statements,
    "dataclasses": dataclasses,
    "public_names": public_names,
}


@cache
def sources() -> dict[str, str]:
    """Return the text of each module by its path."""
    return {
        path.relative_to(SOURCE).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
    }


@cache
def trees() -> dict[str, ast.Module]:
    """Return the syntax tree of each module by its path."""
    return {path: ast.parse(text, path) for path, text in sources().items()}


def _places(found: Mapping[str, Iterable[Any]]) -> list[str]:
    """Return where nodes are, with the text of the line."""
    lines = {path: sources()[path].splitlines() for path in found}
    return [
        f"{path}:{number}: {lines[path][number - 1].strip()}"
        for path, nodes in found.items()
        for number in sorted(node.lineno for node in nodes)
    ]


@cache
def places(name: str) -> list[str]:
    """Return everything that a gate counts."""
    if name == "branches_on_kind":
        kinds = kinds_of(trees().values())
        return _places(
            {
                path: branches_on_kind(tree, kinds)
                for path, tree in trees().items()
                if not path.startswith(FAMILIES)
            }
        )
    if name == "numeric_constants":
        return _places({path: numeric_constants(text) for path, text in sources().items()})
    if name == "options_of_commands":
        from coterie.cli.app import app

        return options_of_commands(app)
    if name.startswith("options_of"):
        import coterie

        return options_of_face(getattr(coterie, f"Coterie{name.removeprefix('options_of_').title()}"))
    return _places({path: TREES[name](tree) for path, tree in trees().items()})


def table() -> str:
    """Return `gates.toml` as the source is now."""
    rows = [
        f"{name} = {{ now = {len(places(name))}, target = {target} }}" for name, target in TARGETS.items()
    ]
    return "\n".join(
        [
            "# What tests/test_house.py holds the source to; tests/gates.py says how each is counted.",
            "# Made by `python tests/gates.py --write`.",
            *rows,
            "",
        ]
    )


def sizes() -> str:
    """Return what is reported and no gate."""
    lines = sum(len(text.splitlines()) for text in sources().values())
    return f"# No gate: {lines} lines, {len(sources())} modules."


def main() -> None:
    """Print or write the table, or list what a gate counts."""
    parser = argparse.ArgumentParser(description="Count what the gates of tests/test_house.py are about.")
    parser.add_argument("--write", action="store_true", help=f"write {TABLE.name}")
    parser.add_argument(
        "--list", choices=TARGETS, metavar="GATE", help=f"list what one of {', '.join(TARGETS)} counts"
    )
    chosen = parser.parse_args()
    sys.path.insert(0, str(SOURCE.parent))
    if chosen.list:
        print("\n".join(places(chosen.list)))
    elif chosen.write:
        TABLE.write_text(table(), encoding="utf-8")
    else:
        print(table() + sizes())


if __name__ == "__main__":
    main()
