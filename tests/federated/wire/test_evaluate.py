"""Models that crash, hang, eat memory or answer nonsense take nobody with them."""

# ruff: noqa: E402 (what follows the skip needs onnx)
from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="models travel as ONNX: install coterie's extra 'federated'")
from onnx import TensorProto, helper, numpy_helper

from coterie.federated import wire
from coterie.federated.wire import evaluate as module
from coterie.federated.wire import worker
from coterie.federated.wire.evaluate import Allowance, evaluate, usual_seconds
from coterie.federated.wire.onnx_form import write_onnx
from coterie.federated.wire.program import ProgramWriter

ROWS = np.array([[1.0, 2.0], [3.0, 4.0]])


def one_step(operator: str, constant: Any = None) -> bytes:
    writer = ProgramWriter(2)
    writer.add(operator, writer.add("Gather", "X", constant=[0]), constant=constant)
    return write_onnx(writer.program())


def file_of(nodes: list[Any], constants: list[Any]) -> bytes:
    """A file that the reader would refuse: what if it did not?"""
    rows = helper.make_tensor_value_info("X", TensorProto.DOUBLE, ["n", 2])
    answer = helper.make_tensor_value_info("y", TensorProto.DOUBLE, ["n", 1])
    graph = helper.make_graph(nodes, "hostile", [rows], [answer], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    content: bytes = model.SerializeToString()
    return content


def endless() -> bytes:
    again = helper.make_tensor_value_info("again", TensorProto.BOOL, [])
    step = helper.make_tensor_value_info("i", TensorProto.INT64, [])
    kept = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n", 1]) for name in ("a", "b")]
    goes_on = helper.make_tensor_value_info("goes_on", TensorProto.BOOL, [])
    body = helper.make_graph(
        [helper.make_node("Identity", ["again"], ["goes_on"]), helper.make_node("Identity", ["a"], ["b"])],
        "body",
        [step, again, kept[0]],
        [goes_on, kept[1]],
    )
    nodes = [
        helper.make_node("Gather", ["X", "first"], ["start"], axis=1),
        helper.make_node("Loop", ["most", "yes", "start"], ["y"], body=body),
    ]
    constants = [
        numpy_helper.from_array(np.array([0]), "first"),
        numpy_helper.from_array(np.array(2**62), "most"),
        numpy_helper.from_array(np.array(True), "yes"),
    ]
    return file_of(nodes, constants)


def test_a_model_that_hangs_or_eats_memory_is_left_out_and_the_others_answer() -> None:
    sound = one_step("Add", [10.0])
    large = [
        helper.make_node("ConstantOfShape", ["size"], ["zeros"], value=numpy_helper.from_array(np.zeros(1))),
        helper.make_node("ReduceSum", ["zeros"], ["y"], keepdims=1),
    ]
    hungry = file_of(large, [numpy_helper.from_array(np.array([2**33, 1]), "size")])
    started = time.monotonic()
    files = [sound, endless(), sound, hungry, b"nonsense", sound]
    answers, _ = evaluate(files, ROWS, Allowance(seconds=1.0))
    assert time.monotonic() - started < 60
    for place in (0, 2, 5):
        np.testing.assert_array_equal(answers[place][:, 0], [11.0, 13.0])
    assert answers[1] == "took longer than 2 seconds, and used up the time that all models have together"
    assert "could not be evaluated" in str(answers[3])
    assert "could not be evaluated" in str(answers[4])


def test_all_models_share_one_budget_and_none_is_left_out_because_of_another() -> None:
    sound, slow = one_step("Add", [10.0]), endless()
    started = time.monotonic()
    answers, seconds = evaluate([slow, slow, sound, slow], ROWS, Allowance(seconds=3.0))
    # Four seconds for the first and one for each of the others; starting a process takes as long again.
    assert time.monotonic() - started < 30
    assert seconds == 3.0
    first = "took longer than 4 seconds, and used up the time that all models have together"
    assert answers[0] == first
    others = "took longer than 1 seconds, and others had used up the time that all models have together"
    assert answers[1] == answers[3] == others
    np.testing.assert_array_equal(answers[2][:, 0], [11.0, 13.0])


def test_a_larger_model_and_more_rows_may_take_longer() -> None:
    assert usual_seconds(b"", 10**6) == 1.0
    assert usual_seconds(bytes(200_000), 1_000) < 1.3
    assert usual_seconds(bytes(8_300_000), 50_000) > 3 * 8.5


def test_a_model_that_kills_the_process_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = Path(worker.__file__).read_text()
    marked = "        _allow_time(seconds)\n"
    assert marked in text
    deadly = tmp_path / "worker.py"
    deadly.write_text(text.replace(marked, marked + "        if model == b'kill': os.abort()\n"))
    names = ("READY", "SIZES", "LENGTH", "TASK", "ANSWERED", "FAILED")
    stand_in = SimpleNamespace(__file__=str(deadly), **{name: getattr(worker, name) for name in names})
    monkeypatch.setattr(module, "worker", stand_in)
    sound = one_step("Add", [10.0])
    answers, _ = evaluate([b"kill", sound, b"kill", sound], ROWS, Allowance())
    assert "ended the process that evaluated it (exit code -6)" in str(answers[0])
    np.testing.assert_array_equal(answers[3][:, 0], [11.0, 13.0])


def test_a_process_that_does_not_start_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.sys, "executable", shutil.which("true"))
    with pytest.raises(wire.WireError, match="did not start"):
        evaluate([one_step("Tanh")], ROWS, Allowance())


@pytest.mark.skipif(not Path("/proc").exists(), reason="limits are read from /proc, which Linux has")
def test_the_process_may_not_open_files_and_has_no_settings_of_ours() -> None:
    running = module._Worker(ROWS, 1, Allowance())
    try:
        pid = running._process.pid
        text = Path(f"/proc/{pid}/limits").read_text()
        found = {line[:26].strip(): line[26:].split()[0] for line in text.splitlines()[1:]}
        assert found["Max open files"] == found["Max file size"] == found["Max core file size"] == "0"
        assert int(found["Max address space"]) < 5 * 2**30
        assert Path(f"/proc/{pid}/environ").read_bytes() == b""
        assert os.readlink(f"/proc/{pid}/cwd") == "/"
    finally:
        running.close()


def test_answers_that_are_not_finite_are_isolated() -> None:
    wild, tame = np.array([1e308, 1e308]), np.array([1.0, 0.0])
    models = [wire.unpack(wire.pack_affine(w, 0.0), 2) for w in (wild, tame)]
    answers = wire.predict_each(models, 10 * ROWS)
    assert answers.troubles == {0: "predicts something that is not a finite number"}
    assert np.isnan(answers.predictions[0]).all()
    np.testing.assert_array_equal(answers.predictions[1], [10.0, 30.0])


def test_rows_are_predicted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.column_stack([np.arange(10_000.0), np.zeros(10_000)])
    (answer,), _ = evaluate([one_step("Mul", [2.0])], rows, Allowance())
    np.testing.assert_array_equal(answer[:, 0], 2 * rows[:, 0])


def test_without_the_extra_a_sentence_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(wire.WireError, match=r"install coterie's extra 'federated'"):
        evaluate([one_step("Tanh")], ROWS, Allowance())
