"""A model as a short program: steps over tables of n rows, each step one ONNX operator.

This is all that a model on the wire can say. Models are written as programs (`convert`), programs as ONNX
(`onnx_form`), and a peer's ONNX is read back into a program or refused. Every table has n rows and a width
known beforehand; a constant spells out its shape, so nothing is broadcast and nothing can grow.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.federated.wire.envelope import MAX_DEPTH, MAX_OPERATORS, MAX_TREES, MAX_WIDTH

UNARY = ("Exp", "Relu", "Sigmoid", "Tanh")
ELEMENTWISE = ("Add", "Div", "Max", "Min", "Mul", "Sub")
# Gather picks columns, Concat puts tables side by side, Cast rounds to float32 and back.
OPERATORS = (*UNARY, *ELEMENTWISE, "Cast", "Concat", "Gather", "MatMul", "TreeEnsemble")

ROWS = "X"


class ProgramError(ValueError):
    """A program is not well formed; the sentence goes on from 'The model'."""


@dataclass(frozen=True, eq=False)
class Trees:
    """Regression trees whose leaves are summed; inner nodes go left where x <= split.

    ``features`` and ``splits``, of shape (N,), are column and threshold of the inner nodes of all trees.
    ``true_ids`` and ``false_ids`` say where to go: to an inner node, or to a leaf where ``true_leafs`` or
    ``false_leafs`` are one. ``roots`` are the trees' first nodes, ``weights`` the values of the leaves.
    """

    features: Array
    splits: Array
    true_ids: Array
    true_leafs: Array
    false_ids: Array
    false_leafs: Array
    roots: Array
    weights: Array

    def check(self, width: int) -> None:
        """Refuse trees whose indices lead outside, in circles or nowhere; ``width`` is that of the rows.

        In what passes, every walk from a root ends in a leaf.
        """
        n_nodes, n_leaves = len(self.features), len(self.weights)
        node_lists = (self.splits, self.true_ids, self.true_leafs, self.false_ids, self.false_leafs)
        if n_nodes == 0 or any(len(column) != n_nodes for column in node_lists):
            raise ProgramError("has trees whose lists of nodes differ in length")
        if not 1 <= len(self.roots) <= MAX_TREES:
            raise ProgramError(f"has {len(self.roots)} trees, and 1 to {MAX_TREES} are possible")
        if not (np.isfinite(self.splits).all() and np.isfinite(self.weights).all()):
            raise ProgramError("has trees with a threshold or a leaf that is not a finite number")
        if not _within(self.features, width):
            raise ProgramError(f"has trees that look at a column beyond the {width} there are")
        children = np.concatenate([self.true_ids, self.false_ids])
        leaf_flags = np.concatenate([self.true_leafs, self.false_leafs])
        if not _within(leaf_flags, 2):
            raise ProgramError("has trees whose children are neither nodes nor leaves")
        is_leaf = leaf_flags == 1
        leaf_children, node_children = children[is_leaf], children[~is_leaf]
        node_parents = np.tile(np.arange(n_nodes), 2)[~is_leaf]
        if not (
            _within(leaf_children, n_leaves)
            and _within(node_children, n_nodes)
            and _within(self.roots, n_nodes)
        ):
            raise ProgramError("has trees whose children lie outside of the list of nodes")
        # Every node is reached once, from a node before it: then the trees are trees, and every walk ends.
        arrivals = np.bincount(np.concatenate([node_children, self.roots]), minlength=n_nodes)
        if (node_children <= node_parents).any() or (arrivals != 1).any():
            raise ProgramError("has trees that go in a circle, meet, or hold nodes that nothing leads to")
        if (np.bincount(leaf_children, minlength=n_leaves) != 1).any():
            raise ProgramError("has trees that share leaves, or leaves that nothing leads to")
        if self._depth() > MAX_DEPTH:
            raise ProgramError(f"has trees of more than {MAX_DEPTH} levels")

    def _depth(self) -> int:
        """Return the depth of the deepest tree; beyond `MAX_DEPTH` the count stops at one more.

        All trees are walked at once, level by level.
        """
        nodes_of_level, depth = self.roots, 0
        while len(nodes_of_level) and depth <= MAX_DEPTH:
            depth += 1
            goes_left, goes_right = (
                self.true_leafs[nodes_of_level] == 0,
                self.false_leafs[nodes_of_level] == 0,
            )
            nodes_of_level = np.concatenate(
                [self.true_ids[nodes_of_level][goes_left], self.false_ids[nodes_of_level][goes_right]]
            )
        return depth


def _within(indices: Array, length: int) -> bool:
    """Tell whether all indices point into a list of this length."""
    return bool(((indices >= 0) & (indices < length)).all())


@dataclass(frozen=True, eq=False)
class Step:
    """One operator with the tables that it takes, by name, and the name of what it gives.

    ``constant`` is the second operand of an elementwise operator, of shape (width,); the matrix of MatMul;
    the columns that Gather picks. ``single`` is for Cast: whether to float32, else back to float64.
    """

    operator: str
    inputs: tuple[str, ...]
    output: str
    constant: Array | None = None
    single: bool = False
    trees: Trees | None = None

    def width(self, input_widths: tuple[int, ...]) -> int:
        """Return how many columns the step gives, from those of its inputs; refuse a step that is not sound.

        An elementwise operator has two tables of one width, or one table and a constant. Other operators have
        a constant only where they need one. A width is checked before any row is computed, so that no program
        can fill the memory.
        """
        operator, constant = self.operator, self.constant
        if constant is not None and not np.isfinite(constant).all():
            raise ProgramError("has a weight that is not a finite number")
        n_inputs = len(input_widths)
        if operator == "TreeEnsemble" and self.trees is not None:
            self.trees.check(input_widths[0])
            is_sound, width = n_inputs == 1 and constant is None, 1
        elif operator in UNARY or operator == "Cast":
            is_sound, width = n_inputs == 1 and constant is None, input_widths[0]
        elif operator in ELEMENTWISE and constant is not None:
            is_sound, width = n_inputs == 1 and constant.shape == input_widths, input_widths[0]
        elif operator in ELEMENTWISE:
            is_sound, width = n_inputs == 2 and input_widths[0] == input_widths[-1], input_widths[0]
        elif operator == "Concat":
            is_sound, width = constant is None, sum(input_widths)
        elif operator == "MatMul" and constant is not None and constant.ndim == 2:
            is_sound, width = n_inputs == 1 and len(constant) == input_widths[0], constant.shape[1]
        elif operator == "Gather" and constant is not None and constant.ndim == 1:
            is_sound, width = n_inputs == 1 and _within(constant, input_widths[0]), len(constant)
        else:
            is_sound, width = False, 0
        if not is_sound or not 1 <= width <= MAX_WIDTH:
            raise ProgramError(f"has a step {operator} whose parts do not fit each other")
        return width


@dataclass(frozen=True, eq=False)
class Program:
    """A model: steps from the rows X, ``n_features`` wide, to ``n_columns`` of predictions."""

    n_features: int
    steps: tuple[Step, ...]
    n_columns: int = 1

    def check(self) -> None:
        """Refuse a program that is not well formed."""
        writer = ProgramWriter(self.n_features)
        for step in self.steps:
            writer.append(step)
        writer.program(self.n_columns)

    def renamed(self) -> Program:
        """Return the program with names of our own, which cannot meet those of constants."""
        # A stranger's names end here: they are in no file that a library reads later.
        names = {ROWS: ROWS} | {step.output: f"t{index}" for index, step in enumerate(self.steps)}
        steps = (
            replace(step, inputs=tuple(names[name] for name in step.inputs), output=names[step.output])
            for step in self.steps
        )
        return Program(self.n_features, tuple(steps), self.n_columns)


class ProgramWriter:
    """Collects the steps of a program, and refuses what is not well formed.

    ``widths`` has the widths of the tables by name; of these, ``single`` are in float32.
    """

    def __init__(self, n_features: int) -> None:
        self.widths = {ROWS: n_features}
        self.single: set[str] = set()
        self.steps: list[Step] = []

    def append(self, step: Step) -> None:
        """Append a step that has names already; refuse one that does not follow from the steps before.

        Its inputs exist, its output is new, and float32 tables are only cast back to float64. Float32 is
        there for trees alone, which compare rounded rows.
        """
        if not step.inputs or any(name not in self.widths for name in step.inputs):
            raise ProgramError("uses a result before it is there, as a circle would")
        if step.output in self.widths:
            raise ProgramError("gives two results one name")
        is_cast_to_float64 = step.operator == "Cast" and not step.single
        if any((name in self.single) != is_cast_to_float64 for name in step.inputs):
            raise ProgramError("computes in float32, where only Cast may go")
        self.widths[step.output] = step.width(tuple(self.widths[name] for name in step.inputs))
        if step.operator == "Cast" and step.single:
            self.single.add(step.output)
        self.steps.append(step)

    def add(self, operator: str, *inputs: str, constant: Any = None, **more: Any) -> str:
        """Append a step, and return the name of what it gives."""
        output = f"t{len(self.steps)}"
        constant_array = None if constant is None else np.asarray(constant)
        self.append(Step(operator, inputs, output, constant_array, **more))
        return output

    def program(self, n_columns: int = 1) -> Program:
        """Return the collected program; refuse one without steps, with too many, or with another last table.

        The last table is the predictions, ``n_columns`` wide and in float64.
        """
        if not 1 <= len(self.steps) <= MAX_OPERATORS:
            raise ProgramError(f"has {len(self.steps)} operators, and 1 to {MAX_OPERATORS} are possible")
        last = self.steps[-1].output
        if self.widths[last] != n_columns or last in self.single:
            expected_width = "one column" if n_columns == 1 else f"{n_columns} columns"
            raise ProgramError(f"does not end in {expected_width} of float64")
        return Program(self.widths[ROWS], tuple(self.steps), n_columns)
