"""The hostile corpus: ONNX files that somebody bent, each refused in one sentence before anything runs.

The walk over the bytes counts before anything is parsed, and ends wherever the bytes end.
"""

# ruff: noqa: E402 (what follows the skip needs onnx)
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

onnx = pytest.importorskip("onnx", reason="models travel as ONNX: install coterie's extra 'federated'")
from onnx import TensorProto, helper, numpy_helper

from coterie.federated import wire
from coterie.federated.wire import envelope
from coterie.federated.wire.envelope import ONNX, seal
from coterie.federated.wire.onnx_form import read_onnx, scan, write_onnx
from coterie.federated.wire.program import ROWS, ProgramWriter

N_FEATURES = 5
# Numbers of fields in ONNX's own format.
GRAPH, NODE, ATTRIBUTE, INTS = 7, 1, 5, 8


@pytest.fixture(scope="module")
def body(fitted: dict[str, Any]) -> bytes:
    """A small forest behind a scaler: Sub, Div, Cast, Cast, TreeEnsemble, Div."""
    from coterie.federated.wire.convert import convert

    return write_onnx(convert(fitted["scaled forest"], N_FEATURES))


def refusal(content: bytes) -> str:
    with pytest.raises(wire.WireError) as caught:
        wire.unpack(seal(ONNX, N_FEATURES, content), N_FEATURES)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert sentence.endswith(".")
    assert len(sentence) < 400
    return sentence


def assert_sound_or_refused(content: bytes) -> None:
    sentence = ""
    try:
        read_onnx(content, N_FEATURES).check()
    except wire.WireError as error:
        sentence = str(error)
    assert "\n" not in sentence


def bent(body: bytes, bend: Callable[[Any], Any]) -> bytes:
    model = onnx.ModelProto.FromString(body)
    bend(model)
    content: bytes = model.SerializeToString()
    return content


def trees(model: Any) -> Any:
    return next(node for node in model.graph.node if node.op_type == "TreeEnsemble")


def setting(node: Any, name: str) -> Any:
    return next(attribute for attribute in node.attribute if attribute.name == name)


def set_tensor(node: Any, name: str, numbers: np.ndarray) -> None:
    setting(node, name).t.CopyFrom(numpy_helper.from_array(numbers))


def first_number(model: Any, value: float) -> None:
    numbers = numpy_helper.to_array(model.graph.initializer[0]).copy()
    numbers[0] = value
    model.graph.initializer[0].raw_data = numbers.tobytes()


def tree_number(model: Any, name: str, value: float) -> None:
    numbers = numpy_helper.to_array(setting(trees(model), name).t).copy()
    numbers[0] = value
    set_tensor(trees(model), name, numbers)


def tree_index(model: Any, name: str, value: int) -> None:
    setting(trees(model), name).ints[0] = value


def outside_data(model: Any) -> None:
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="../../etc/passwd")


def own_function(model: Any) -> None:
    nodes = [helper.make_node("Identity", ["a"], ["b"])]
    model.functions.add().CopyFrom(
        helper.make_function("mine", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", 18)])
    )


def inner_graph(model: Any) -> None:
    graph = helper.make_graph([helper.make_node("Identity", ["X"], ["y"])], "inner", [], [])
    model.graph.node.append(helper.make_node("If", ["X"], ["z"], then_branch=graph, else_branch=graph))


def circle(model: Any) -> None:
    model.graph.node[0].input[0] = model.graph.node[-1].output[0]


def foreign_operator(model: Any) -> None:
    model.graph.node[0].domain = "com.somebody"


def newer_operators(model: Any) -> None:
    model.opset_import[0].version = 21


def constants_name_twice(model: Any) -> None:
    model.graph.initializer[1].name = model.graph.initializer[0].name


def constant_used_twice(model: Any) -> None:
    model.graph.node[1].input[1] = model.graph.node[0].input[1]
    del model.graph.initializer[1]


CORPUS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "disallowed operator": (lambda m: setattr(m.graph.node[0], "op_type", "RandomNormal"), "'RandomNormal'"),
    "foreign domain": (foreign_operator, "'com.somebody.Sub'"),
    "data outside": (outside_data, "data in another file"),
    "function": (own_function, "functions of its own"),
    "graph inside": (inner_graph, "a graph inside the graph"),
    "metadata": (lambda m: m.metadata_props.add(key="a", value="b"), "metadata"),
    "training": (lambda m: m.training_info.add(), "a training step"),
    "sparse": (lambda m: m.graph.sparse_initializer.add(), "a sparse tensor"),
    "documentation": (lambda m: setattr(m, "doc_string", "hello"), "unknown part"),
    "circle": (circle, "before it is there, as a circle would"),
    "two results of one name": (
        lambda m: m.graph.node[1].output.__setitem__(0, m.graph.node[0].output[0]),
        "before it is there|one name",
    ),
    "newer operators": (newer_operators, "operator sets that are not admitted"),
    "further operators": (lambda m: m.opset_import.add(domain="x", version=1), "operator sets"),
    "newer format": (lambda m: setattr(m, "ir_version", 99), "version 99 of ONNX's own format"),
    "NaN in a scaler": (lambda m: first_number(m, np.nan), "not a finite number"),
    "infinite scaler": (lambda m: first_number(m, np.inf), "not a finite number"),
    "NaN threshold": (lambda m: tree_number(m, "nodes_splits", np.nan), "not a finite number"),
    "infinite leaf": (lambda m: tree_number(m, "leaf_weights", np.inf), "not a finite number"),
    "tree in a circle": (lambda m: tree_index(m, "nodes_truenodeids", 0), "circle|share leaves"),
    "child outside": (lambda m: tree_index(m, "nodes_truenodeids", 10**9), "outside of the list"),
    "child before the list": (lambda m: tree_index(m, "nodes_falsenodeids", -5), "outside of the list"),
    "column outside": (lambda m: tree_index(m, "nodes_featureids", 5), "a column beyond the 5"),
    "other question": (
        lambda m: set_tensor(trees(m), "nodes_modes", np.ones(3, dtype=np.uint8)),
        "other questions",
    ),
    "other targets": (lambda m: tree_index(m, "leaf_targetids", 7), "other questions"),
    "not a sum": (lambda m: setattr(setting(trees(m), "aggregate_function"), "i", 2), "not a plain sum"),
    "float32 trees": (
        lambda m: set_tensor(trees(m), "nodes_splits", np.ones(3, dtype=np.float32)),
        "not of the type",
    ),
    "setting twice": (lambda m: trees(m).attribute.append(trees(m).attribute[0]), "twice"),
    "setting missing": (lambda m: trees(m).attribute.pop(), "settings are not those"),
    "setting of another kind": (
        lambda m: setting(trees(m), "tree_roots").CopyFrom(helper.make_attribute("tree_roots", 1)),
        "not of the type",
    ),
    "Cast to int": (
        lambda m: setattr(m.graph.node[2].attribute[0], "i", TensorProto.INT64),
        "casts to another",
    ),
    "Cast to a list": (
        lambda m: m.graph.node[2].attribute[0].CopyFrom(helper.make_attribute("to", [1, 1])),
        "casts to another",
    ),
    "text setting": (
        lambda m: m.graph.node[0].attribute.append(helper.make_attribute("a", "b")),
        "unknown part",
    ),
    "shape beyond its bytes": (
        lambda m: m.graph.initializer[0].dims.__setitem__(0, 2**62),
        "shape and bytes differ",
    ),
    "two large dimensions": (
        lambda m: m.graph.initializer[0].dims.extend([2**62, 2**62]),
        "impossible shape|shape and bytes differ",
    ),
    "negative shape": (lambda m: m.graph.initializer[0].dims.__setitem__(0, -5), "impossible shape"),
    "constant of another type": (
        lambda m: m.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(5, np.float32), "c0")),
        "neither float64 nor int64",
    ),
    "integers where numbers belong": (
        lambda m: m.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.ones(5, np.int64), "c0")),
        "numbers of the wrong type",
    ),
    "constant that nobody uses": (
        lambda m: m.graph.initializer.append(numpy_helper.from_array(np.ones(5), "extra")),
        "no step uses",
    ),
    "constants of one name": (constants_name_twice, "two constants one name"),
    "constant used twice": (constant_used_twice, "before it is there"),
    "constant named as the rows": (
        lambda m: m.graph.initializer.append(numpy_helper.from_array(np.ones(5), "X")),
        "name of the rows",
    ),
    "two inputs": (lambda m: m.graph.input.append(m.graph.input[0]), "exactly one input"),
    "no output": (lambda m: m.graph.output.pop(), "exactly one output"),
    "float32 input": (
        lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", TensorProto.FLOAT),
        "not n rows of 5 float64",
    ),
    "no operators": (lambda m: m.graph.ClearField("node"), "0 operators"),
    "no graph": (lambda m: m.ClearField("graph"), "0 operators"),
    "name that is no text": (lambda m: setattr(m.graph, "name", "\u00e9"), "plain text"),
    "endless name": (lambda m: setattr(m.graph, "name", "a" * 101), "plain text"),
    "no output name": (lambda m: m.graph.node[0].output.pop(), "without a name"),
    "Concat along rows": (
        lambda m: m.graph.node[0].CopyFrom(helper.make_node("Concat", ["X", "X"], ["t0"], axis=0)),
        "along rows",
    ),
}


@pytest.mark.parametrize("name", CORPUS)
def test_a_bent_file_is_refused(name: str, body: bytes) -> None:
    bend, sentence = CORPUS[name]
    content = bent(body, bend)
    assert content != body
    assert re.search(sentence, refusal(content)), refusal(content)


def test_too_many_operators_are_refused() -> None:
    writer = ProgramWriter(1)
    table = ROWS
    for _ in range(envelope.MAX_OPERATORS):
        table = writer.add("Tanh", table)
    content = write_onnx(writer.program())
    read_onnx(content, 1)
    more = bent(content, lambda m: m.graph.node.append(m.graph.node[0]))
    with pytest.raises(wire.WireError, match=f"{envelope.MAX_OPERATORS + 1} operators"):
        read_onnx(more, 1)


def test_what_was_read_is_written_as_it_was(fitted: dict[str, Any]) -> None:
    from coterie.federated.wire.convert import convert

    for model in fitted.values():
        written = write_onnx(convert(model, N_FEATURES))
        assert write_onnx(read_onnx(written, N_FEATURES)) == written


def test_names_of_the_peer_do_not_reach_the_runtime(body: bytes) -> None:
    def rename(model: Any) -> None:
        # A result with the name that our own first constant will have.
        model.graph.initializer[0].name = "k"
        model.graph.node[0].input[1] = "k"
        model.graph.node[0].output[0] = model.graph.node[1].input[0] = "c0"

    assert write_onnx(read_onnx(bent(body, rename), N_FEATURES)) == body


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
def test_edited_bytes_are_refused_or_still_a_sound_program(edits: list[tuple[int, int]], body: bytes) -> None:
    changed = bytearray(body)
    for place, value in edits:
        changed[place % len(changed)] = value
    assert_sound_or_refused(bytes(changed))


@settings(max_examples=300, deadline=None)
@given(content=st.binary(max_size=200))
def test_any_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(wire.WireError):
        wire.unpack(content, 3)
    with pytest.raises(wire.WireError):
        wire.unpack(seal(ONNX, 3, content), 3)


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_files_spliced_from_their_own_parts_are_refused_or_sound(data: st.DataObject, body: bytes) -> None:
    model = onnx.ModelProto.FromString(body)
    graph = model.graph
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.sampled_from(list(graph.node)))
        other = data.draw(st.sampled_from(list(graph.node)))
        if not (node.input and node.output and other.input and other.output):
            continue
        match data.draw(st.integers(0, 5)):
            case 0:
                node.input[0] = other.output[0]
            case 1:
                node.op_type = other.op_type
            case 2:
                graph.node.remove(node)
            case 3:
                graph.node.append(other)
            case 4:
                node.input.append(other.input[-1])
            case 5:
                for attribute in node.attribute:
                    attribute.ints.extend(data.draw(st.lists(st.integers(-5, 5), max_size=3)))
        if not graph.node:
            break
    assert_sound_or_refused(model.SerializeToString())


def part(number: int, content: bytes) -> bytes:
    length, digits = len(content), bytearray()
    while length > 0x7F:
        digits.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes([number << 3 | 2]) + bytes(digits) + bytes([length]) + content


def test_plain_parts_pass() -> None:
    scan(b"")
    scan(b"\x08\x09" + part(GRAPH, part(2, b"model")))
    many = part(ATTRIBUTE, part(1, b"ids") + b"\x40\x05\x40\xff\x01" * 1000)
    scan(part(GRAPH, part(NODE, many)))


def test_millions_of_empty_parts_are_refused_without_parsing_them() -> None:
    # Two bytes each here, more than a hundred once parsed.
    content = part(GRAPH, part(NODE, b"") * 4_000_000)
    with pytest.raises(envelope.WireError, match=f"more than the {envelope.MAX_PARTS} parts"):
        scan(content)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"\x08", "breaks off inside a number"),
        (b"\x08" + b"\xff" * 20, "breaks off inside a number"),
        (b"\x3a\x05abc", "ends behind its end"),
        (b"\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "ends behind its end"),
        (b"\x3b", "unknown part"),
        (b"\x38\x01", "unknown part"),
        (part(GRAPH, part(NODE, part(ATTRIBUTE, part(INTS, b"\x01\x02")))), "unknown part"),
        (part(GRAPH, part(NODE, part(ATTRIBUTE, b"\x40"))), "breaks off"),
        (part(GRAPH, part(NODE, part(4, b"\xff"))), "plain text"),
    ],
)
def test_other_bytes_are_refused(content: bytes, sentence: str) -> None:
    with pytest.raises(envelope.WireError, match=sentence):
        scan(content)
