"""Classifiers that travel predict as they do at home; what is no classifier, or another one, is refused."""

from __future__ import annotations

import struct
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.ensemble import (
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from coterie.candidates import CLASS_KNOWN
from coterie.federated import wire
from coterie.federated.wire.envelope import CLASS_LINES, CLASS_ONNX, open_sealed, seal
from coterie.loss import BrierScore
from coterie.models.classes import OneClass

N_FEATURES = 4
FEW: dict[str, Any] = {"random_state": 0}
FAMILIES: dict[str, Any] = {
    **{name: CLASS_KNOWN[name] for name in ("logistic", "rf", "gb")},
    "softmax": LogisticRegression,
    "scaled": lambda: make_pipeline(StandardScaler(), CLASS_KNOWN["logistic"]()),
    "forest": lambda: RandomForestClassifier(5, **FEW),
    "extra trees": lambda: ExtraTreesClassifier(5, **FEW),
    "tree": lambda: DecisionTreeClassifier(max_depth=3, **FEW),
    "boosting": lambda: GradientBoostingClassifier(n_estimators=5, **FEW),
    "histogram boosting": lambda: HistGradientBoostingClassifier(max_iter=5, **FEW),
    "network": lambda: MLPClassifier((5,), max_iter=20, **FEW),
    "voting": lambda: VotingClassifier(
        [("a", LogisticRegression()), ("b", RandomForestClassifier(3, **FEW))], voting="soft", weights=[1, 3]
    ),
    "bagging": lambda: BaggingClassifier(LogisticRegression(), 3, max_features=2, **FEW),
}


def rows(n_classes: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, N_FEATURES))
    y = (X @ rng.normal(size=(N_FEATURES, n_classes)) + rng.gumbel(size=(200, n_classes))).argmax(axis=1)
    return X, y.astype(float)


def fitted(family: str, X: Any, y: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return FAMILIES[family]().fit(X, y)


@pytest.mark.parametrize(("n_classes", "seen"), [(2, (0, 1)), (3, (0, 1, 2)), (3, (0, 2))])
def test_every_family_predicts_as_it_does_at_home(n_classes: int, seen: tuple[int, ...]) -> None:
    pytest.importorskip("onnx")
    X, y = rows(n_classes)
    known = np.isin(y, seen)
    models = [fitted(family, X[known], y[known]) for family in FAMILIES]
    new = 2 * np.random.default_rng(1).normal(size=(300, N_FEATURES))
    received = [wire.unpack(wire.pack(m, N_FEATURES, n_classes), N_FEATURES, n_classes) for m in models]
    found = wire.predict_each(received, new)
    assert not found.troubles
    loss = BrierScore(n_classes)
    for family, model, answer in zip(FAMILIES, models, found.predictions, strict=True):
        assert_allclose(answer, loss.predict(model, new), atol=1e-12, err_msg=family)


def test_a_model_of_one_class_travels() -> None:
    one = OneClass().fit(np.zeros((3, N_FEATURES)), np.ones(3))
    received = wire.unpack(wire.pack(one, N_FEATURES, 3), N_FEATURES, 3)
    assert wire.predict_each([received], np.zeros((2, N_FEATURES))).predictions[0].tolist() == [[0, 1, 0]] * 2


@pytest.mark.parametrize("model", [KNeighborsClassifier(), GaussianProcessClassifier()])
def test_what_keeps_rows_does_not_travel(model: Any) -> None:
    pytest.importorskip("onnx")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(*rows(2))
    for inside in (model, make_pipeline(StandardScaler(), model).fit(*rows(2))):
        with pytest.raises(wire.WireError, match="rows may not leave their learner"):
            wire.pack(inside, N_FEATURES, 2)


def test_other_classes_and_numbers_are_refused() -> None:
    payload = wire.pack(fitted("logistic", *rows(3)), N_FEATURES, 3)
    with pytest.raises(wire.WireError, match="knows 3 classes, and there are 2"):
        wire.unpack(payload, N_FEATURES, 2)
    with pytest.raises(wire.WireError, match="classes where numbers are"):
        wire.unpack(payload, N_FEATURES)
    with pytest.raises(wire.WireError, match="numbers where classes are wanted"):
        wire.unpack(wire.pack_affine(np.ones(N_FEATURES), 0.0), N_FEATURES, 3)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda body: body[:-8], "does not hold"),
        (lambda body: body[:3], "cut short"),
        (lambda body: body[:4] + struct.pack("<I", 7) + body[8:], "do not fit each other"),
        (lambda body: body[:8] + b"\x00\x00\x00" + body[11:], "do not fit each other"),
        (lambda body: body[:8] + b"\x01\x02\x01" + body[11:], "do not fit each other"),
        (lambda body: body[:-8] + struct.pack("<d", np.nan), "not a finite number"),
    ],
)
def test_bent_lines_are_refused(change: Any, sentence: str) -> None:
    _, body = open_sealed(wire.pack(fitted("logistic", *rows(3)), N_FEATURES, 3), N_FEATURES)
    with pytest.raises(wire.WireError, match=sentence):
        wire.unpack(seal(CLASS_LINES, N_FEATURES, change(body)), N_FEATURES, 3)


def test_a_program_that_gives_no_probabilities_is_in_trouble() -> None:
    pytest.importorskip("onnx")
    from coterie.federated.wire.onnx_form import write_onnx
    from coterie.federated.wire.program import ROWS, ProgramWriter

    for n_classes, matrix in ((2, np.ones((N_FEATURES, 1))), (3, np.full((N_FEATURES, 3), 0.01))):
        writer = ProgramWriter(N_FEATURES)
        writer.add("MatMul", ROWS, constant=matrix)
        n_columns = matrix.shape[1]
        body = struct.pack("<I", n_classes) + write_onnx(writer.program(n_columns))
        model = wire.unpack(seal(CLASS_ONNX, N_FEATURES, body), N_FEATURES, n_classes)
        found = wire.predict_each([model], 5 + rows(2)[0])
        assert found.troubles == {0: "predicts something that is no probability"}
        assert np.isnan(found.predictions).all()


@settings(max_examples=200, deadline=None)
@given(content=st.binary(max_size=120), kind=st.sampled_from([CLASS_LINES, CLASS_ONNX]))
def test_any_bytes_are_refused_or_probabilities(content: bytes, kind: int) -> None:
    try:
        model = wire.unpack(seal(kind, 2, content), 2, 3)
    except wire.WireError:
        return
    found = wire.predict_each([model], np.zeros((1, 2)))
    assert found.troubles or abs(found.predictions.sum() - 1) < 1e-9
