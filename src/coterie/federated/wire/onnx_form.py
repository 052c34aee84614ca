"""Programs as ONNX files, and a peer's ONNX file as a program again.

Reading believes nothing. First, `scan` walks over the bytes before any library parses them. A file of a few
megabytes can hold millions of empty parts, which take gigabytes once they are parsed, or fields that reach
outside: other files, functions, graphs inside graphs. The walk admits the fields that coterie's own models
have, counts them, and names the first one that they do not have. Then every operator, attribute, name, type
and size is compared with what coterie writes. What onnxruntime gets to see later is never the peer's file,
but a file written afresh from the program that was read.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError
from onnx import AttributeProto, TensorProto, helper, numpy_helper

from coterie._arrays import Array
from coterie.federated.wire.envelope import MAX_NAME, MAX_OPERATORS, MAX_PARTS, unreadable
from coterie.federated.wire.program import OPERATORS, ROWS, Program, ProgramError, Step, Trees

_VARINT, _BYTES = 0, 2
# Long lists of integers (the nodes of trees) are passed over by the regular expression machine: one tag and
# one varint, again and again, without ever looking back.
_RUN_OF_INTS = re.compile(rb"(?:\x40[\x80-\xff]{0,9}+[\x00-\x7f])++")

# The kinds of parts: what a refusal calls them, and the fields that are admitted. This allow-list is a
# security boundary: what is not named here never reaches a parser.
_ADMITTED = {
    "onnx.ModelProto": ("model", {"ir_version", "graph", "opset_import"}),
    "onnx.OperatorSetIdProto": ("operator set", {"domain", "version"}),
    "onnx.GraphProto": ("graph", {"node", "name", "initializer", "input", "output"}),
    "onnx.NodeProto": ("node", {"input", "output", "op_type", "attribute", "domain"}),
    "onnx.AttributeProto": ("attribute", {"name", "i", "t", "ints", "type"}),
    "onnx.TensorProto": ("tensor", {"dims", "data_type", "name", "raw_data"}),
    "onnx.ValueInfoProto": ("value", {"name", "type"}),
    "onnx.TypeProto": ("type", {"tensor_type"}),
    "onnx.TypeProto.Tensor": ("tensor type", {"elem_type", "shape"}),
    "onnx.TensorShapeProto": ("shape", {"dim"}),
    "onnx.TensorShapeProto.Dimension": ("dimension", {"dim_value", "dim_param"}),
}
# What a refusal calls the fields that somebody might really send.
_REFUSED = {
    "external_data": "data in another file",
    "data_location": "data in another file",
    "g": "a graph inside the graph",
    "graphs": "a graph inside the graph",
    "sparse_tensor": "a sparse tensor",
    "sparse_initializer": "a sparse tensor",
    "metadata_props": "metadata",
    "training_info": "a training step",
    "functions": "functions of its own",
}
# Of these versions all operators compute in float64 throughout; trees do since version 5 of ai.onnx.ml.
OPERATOR_SETS = {"": 18, "ai.onnx.ml": 5}
IR_VERSION = 9
TREES_DOMAIN = "ai.onnx.ml"
_DTYPES = {TensorProto.DOUBLE: np.dtype("<f8"), TensorProto.INT64: np.dtype("<i8")}
# Fields of `Trees`, and the attributes of ONNX's TreeEnsemble that hold them: lists of integers.
_TREE_LISTS = {
    "features": "nodes_featureids",
    "true_ids": "nodes_truenodeids",
    "true_leafs": "nodes_trueleafs",
    "false_ids": "nodes_falsenodeids",
    "false_leafs": "nodes_falseleafs",
    "roots": "tree_roots",
}
# Attributes of trees that are tensors, with their type in ONNX and in NumPy.
_TREE_TENSORS: dict[str, tuple[int, np.dtype[Any]]] = {
    "leaf_weights": (TensorProto.DOUBLE, np.dtype("<f8")),
    "nodes_modes": (TensorProto.UINT8, np.dtype("u1")),
    "nodes_splits": (TensorProto.DOUBLE, np.dtype("<f8")),
}
# The settings of operators that have any, with the values that each may have, and what is said of others. The
# trees have one target, are summed, and nothing is done with the sum.
_SETTINGS: dict[str, tuple[dict[str, tuple[int, ...]], str]] = {
    "Cast": (
        {"to": (TensorProto.DOUBLE, TensorProto.FLOAT)},
        "casts to another type than float32 and float64",
    ),
    "Concat": ({"axis": (1,)}, "has an operator Concat along rows"),
    "Gather": ({"axis": (1,)}, "has an operator Gather along rows"),
    "TreeEnsemble": (
        {"n_targets": (1,), "aggregate_function": (1,), "post_transform": (0,)},
        "has trees that are not a plain sum",
    ),
}


def _wire_type(field: Any) -> int:
    return _BYTES if field.cpp_type in (field.CPPTYPE_STRING, field.CPPTYPE_MESSAGE) else _VARINT


# Walks over the bytes of a file before any library parses them; `n_parts` counts the parts seen so far.
class _ByteScan:
    def __init__(self, content: bytes) -> None:
        self.content = content
        self.n_parts = 0

    def varint(self, start: int, end: int) -> tuple[int, int]:
        """Return the number of variable length at a place, and where it ends.

        A byte holds seven bits, lowest first, and its eighth bit says whether another byte follows.
        """
        value = 0
        for index in range(start, min(start + 10, end)):
            byte = self.content[index]
            value |= (byte & 0x7F) << 7 * (index - start)
            if byte < 0x80:
                return value, index + 1
        raise unreadable("is not a sound ONNX file: it breaks off inside a number")

    def name(self, start: int, end: int) -> None:
        """Refuse a name that is long or not ASCII."""
        if end - start > MAX_NAME or not self.content[start:end].isascii():
            raise unreadable(f"holds a name that is not plain text of at most {MAX_NAME} letters")

    def message(self, kind: Any, start: int, end: int) -> None:
        """Check that a protobuf message of this kind, between two places, has only the admitted fields.

        Messages inside it are checked in the same way. Only `MAX_PARTS` parts are looked at in all.
        """
        called, admitted = _ADMITTED[kind.full_name]
        while start < end:
            if called == "attribute":
                integer_run = _RUN_OF_INTS.match(self.content, start, end)
                if integer_run is not None:
                    start = integer_run.end()
                    continue
            self.n_parts += 1
            if self.n_parts > MAX_PARTS:
                raise unreadable(f"has more than the {MAX_PARTS} parts that are read")
            # A protobuf field begins with a tag: its number, and in three bits how its value is written.
            tag, start = self.varint(start, end)
            number, wire_type = tag >> 3, tag & 7
            field = kind.fields_by_number.get(number)
            name = "" if field is None else field.name
            if name not in admitted or wire_type != _wire_type(field):
                refused_part = _REFUSED.get(name, f"an unknown part (field {number} of a {called})")
                raise unreadable(f"holds {refused_part}, which models of coterie do not have")
            length, start = self.varint(start, end)
            if wire_type == _VARINT:
                continue
            if length > end - start:
                raise unreadable("is not a sound ONNX file: a part of it ends behind its end")
            if field.message_type is not None:
                self.message(field.message_type, start, start + length)
            elif name != "raw_data":
                self.name(start, start + length)
            start += length


def scan(content: bytes) -> None:
    """Refuse bytes that are not shaped like an ONNX file of coterie."""
    _ByteScan(content).message(onnx.ModelProto.DESCRIPTOR, 0, len(content))


def _tree_attributes(trees: Trees) -> dict[str, Any]:
    """Return the attributes of ONNX's TreeEnsemble for some trees.

    All leaves count for the only target, with number nought.
    """
    lists = {attribute: getattr(trees, field_name).tolist() for field_name, attribute in _TREE_LISTS.items()}
    return {
        **lists,
        "leaf_targetids": [0] * len(trees.weights),
        "leaf_weights": numpy_helper.from_array(np.asarray(trees.weights, dtype="<f8")),
        # All nodes ask x <= split.
        "nodes_modes": numpy_helper.from_array(np.zeros(len(trees.features), dtype=np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.asarray(trees.splits, dtype="<f8")),
    }


def _node(step: Step, constants: list[Any]) -> Any:
    """Return a step as an ONNX node; its constant, if any, is appended to ``constants`` under a new name."""
    inputs = list(step.inputs)
    admitted, _ = _SETTINGS.get(step.operator, ({}, ""))
    # Cast is the only operator with two values: to float64 and to float32, in this order.
    settings: dict[str, Any] = {
        name: admitted_values[int(step.single)] for name, admitted_values in admitted.items()
    }
    if step.constant is not None:
        dtype = "<i8" if step.operator == "Gather" else "<f8"
        name = f"c{len(constants)}"
        constants.append(numpy_helper.from_array(np.asarray(step.constant, dtype=dtype), name))
        inputs.append(name)
    if step.trees is not None:
        settings |= _tree_attributes(step.trees)
    domain = TREES_DOMAIN if step.trees is not None else ""
    return helper.make_node(step.operator, inputs, [step.output], domain=domain, **settings)


def write_onnx(program: Program) -> bytes:
    """Return a checked program as an ONNX file; the same program always gives the same bytes.

    A model is known by the sha256 of its bytes, so they must not vary.
    """
    constants: list[Any] = []
    nodes = [_node(step, constants) for step in program.steps]
    rows = helper.make_tensor_value_info(ROWS, TensorProto.DOUBLE, ["n", program.n_features])
    answer = helper.make_tensor_value_info(
        program.steps[-1].output, TensorProto.DOUBLE, ["n", program.n_columns]
    )
    model = helper.make_model(
        helper.make_graph(nodes, "model", [rows], [answer], constants),
        opset_imports=[helper.make_opsetid(domain, version) for domain, version in OPERATOR_SETS.items()],
        ir_version=IR_VERSION,
    )
    written: bytes = model.SerializeToString(deterministic=True)
    return written


def _array(tensor: Any, *, dtype: np.dtype[Any]) -> Array:
    """Return the numbers of an ONNX tensor as an array of one or two dimensions.

    Its declared shape must match its bytes before anything of that shape is made.
    """
    shape = tuple(tensor.dims)
    if len(shape) not in (1, 2) or any(size < 1 for size in shape):
        raise unreadable("holds a tensor of an impossible shape")
    # Python's own integers, for the product of two of them may not fit into 64 bits.
    n_entries = shape[0] if len(shape) == 1 else shape[0] * shape[1]
    if n_entries * dtype.itemsize != len(tensor.raw_data):
        raise unreadable("holds a tensor whose shape and bytes differ")
    return np.frombuffer(tensor.raw_data, dtype=dtype).reshape(shape).astype(dtype.newbyteorder("="))


def _settings(node: Any) -> dict[str, Any]:
    """Return the attributes of an ONNX operator by name; refuse others than those that coterie writes.

    Numbers and tensors stay as they are, and lists become integer arrays. The tensors of trees are checked by
    `_read_trees`.
    """
    settings: dict[str, Any] = {}
    for attribute in node.attribute:
        attribute_kind = attribute.type
        if attribute.name in settings:
            raise unreadable(f"has the setting {attribute.name!r} twice")
        if attribute_kind == AttributeProto.INT:
            settings[attribute.name] = attribute.i
        elif attribute_kind == AttributeProto.INTS:
            settings[attribute.name] = np.fromiter(attribute.ints, dtype=np.int64, count=len(attribute.ints))
        elif attribute_kind == AttributeProto.TENSOR:
            settings[attribute.name] = attribute.t
        else:
            raise unreadable("has a setting of a kind that models of coterie do not have")
    operator = node.op_type
    admitted, refusal = _SETTINGS.get(operator, ({}, ""))
    array_names = (
        (*_TREE_LISTS.values(), "leaf_targetids", *_TREE_TENSORS) if operator == "TreeEnsemble" else ()
    )
    if set(settings) != {*admitted, *array_names}:
        raise unreadable(f"has an operator {operator} whose settings are not those that coterie writes")
    for name, admitted_values in admitted.items():
        # It may also have arrived as a list or a tensor.
        if not isinstance(settings[name], int) or settings[name] not in admitted_values:
            raise unreadable(refusal)
    return settings


def _read_trees(settings: dict[str, Any]) -> Trees:
    """Return the trees of an ONNX node, from its settings; refuse what coterie does not write.

    Where the indices lead is not checked here, but by `Trees.check`.
    """
    wrong_type = unreadable("has trees whose numbers are not of the type that coterie writes")
    if not all(
        isinstance(settings[attribute], np.ndarray) for attribute in (*_TREE_LISTS.values(), "leaf_targetids")
    ):
        raise wrong_type
    tensors = []
    for attribute, (kind, dtype) in _TREE_TENSORS.items():
        tensor = settings[attribute]
        if not isinstance(tensor, TensorProto) or tensor.data_type != kind or tensor.name:
            raise wrong_type
        tensors.append(_array(tensor, dtype=dtype).reshape(-1))
    weights, modes, splits = tensors
    targets = settings["leaf_targetids"]
    if modes.any() or len(modes) != len(splits) or targets.any() or len(targets) != len(weights):
        raise unreadable("has trees with other questions than x <= split")
    return Trees(
        splits=splits,
        weights=weights,
        **{field_name: settings[attribute] for field_name, attribute in _TREE_LISTS.items()},
    )


def _read_constants(graph: Any) -> dict[str, Array]:
    """Return the constants of an ONNX graph by name.

    Each has a name of its own, and one of the two types that coterie writes.
    """
    constants: dict[str, Array] = {}
    for tensor in graph.initializer:
        if tensor.name in constants or not tensor.name:
            raise unreadable("gives two constants one name")
        if tensor.data_type not in _DTYPES:
            raise unreadable("holds constants that are neither float64 nor int64")
        constants[tensor.name] = _array(tensor, dtype=_DTYPES[tensor.data_type])
    return constants


def _read_step(node: Any, constants: dict[str, Array]) -> Step:
    """Return an ONNX node as a step; refuse operators that are not admitted.

    A constant that the step uses is taken out of ``constants``, so that what is left at the end was used by
    no step.
    """
    operator, domain = node.op_type, node.domain
    if operator not in OPERATORS or domain != (TREES_DOMAIN if operator == "TreeEnsemble" else ""):
        admitted_operators = ", ".join(OPERATORS)
        full_name = f"{domain}.{operator}" if domain else operator
        raise unreadable(
            f"uses the operator {full_name[:60]!r}, and only these are admitted: {admitted_operators}"
        )
    settings = _settings(node)
    inputs: list[str] = list(node.input)
    constant = None
    if len(node.output) != 1 or not node.output[0] or not inputs:
        raise unreadable(f"has an operator {operator} without a name for what it takes or gives")
    if len(inputs) == 2 and inputs[1] in constants and operator != "Concat":
        # A constant serves one step, so that a small file cannot ask for the same large product many times.
        constant = constants.pop(inputs.pop())
        if (constant.dtype.kind == "i") != (operator == "Gather"):
            raise unreadable(f"has an operator {operator} with numbers of the wrong type")
    single = operator == "Cast" and settings["to"] == TensorProto.FLOAT
    trees = _read_trees(settings) if operator == "TreeEnsemble" else None
    return Step(operator, tuple(inputs), node.output[0], constant, single, trees)


def _check_table(declared: Any, name: str, width: int, what: str) -> None:
    """Refuse inputs or outputs of a graph unless they are one table of float64, n rows and ``width`` wide."""
    if len(declared) != 1 or declared[0].name != name:
        raise unreadable(f"does not have exactly one {what}")
    tensor_type = declared[0].type.tensor_type
    # A dimension with a name, such as n, has the value nought.
    sizes = [dim.dim_value for dim in tensor_type.shape.dim]
    if tensor_type.elem_type != TensorProto.DOUBLE or sizes != [0, width]:
        raise unreadable(f"has an {what} that is not n rows of {width} float64")


def read_onnx(content: bytes, n_features: int, n_columns: int = 1) -> Program:
    """Read a program from an ONNX file that may hold anything; what is not as coterie writes it is refused.

    The bytes are scanned before they are parsed. The program is checked and made of plain arrays, with names
    of our own.
    """
    scan(content)
    model = onnx.ModelProto()
    try:
        model.ParseFromString(content)
    except (DecodeError, UnicodeDecodeError) as error:
        raise unreadable("is not a sound ONNX file") from error
    if model.ir_version != IR_VERSION:
        raise unreadable(f"has version {model.ir_version} of ONNX's own format, and {IR_VERSION} is read")
    # One version of each set of operators: others may compute something else under the same name.
    operator_sets = [(entry.domain, entry.version) for entry in model.opset_import]
    if operator_sets != list(OPERATOR_SETS.items()):
        raise unreadable("asks for operator sets that are not admitted")
    graph = model.graph
    if not 1 <= len(graph.node) <= MAX_OPERATORS:
        raise unreadable(f"has {len(graph.node)} operators, and 1 to {MAX_OPERATORS} are possible")
    constants = _read_constants(graph)
    if ROWS in constants:
        raise unreadable("gives a constant the name of the rows")
    steps = tuple(_read_step(node, constants) for node in graph.node)
    if constants:
        raise unreadable("holds constants that no step uses")
    _check_table(graph.input, ROWS, n_features, "input")
    _check_table(graph.output, steps[-1].output, n_columns, "output")
    program = Program(n_features, steps, n_columns)
    try:
        program.check()
    except ProgramError as error:
        raise unreadable(str(error)) from error
    return program.renamed()
