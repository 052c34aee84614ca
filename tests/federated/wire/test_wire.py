"""The face of the wire: what goes in, what comes out, and what X must be."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestRegressor

from coterie.federated import wire

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(w=st.lists(finite, min_size=1, max_size=8), b=finite)
def test_coefficients_come_back_bit_for_bit(w: list[float], b: float) -> None:
    received = wire.unpack(wire.pack_affine(w, b), len(w))
    assert received.affine is not None
    assert received.affine[0].tolist() == w
    assert received.affine[1] == b


def test_a_hand_made_model_predicts() -> None:
    model = wire.unpack(wire.pack_affine([2.0, -1.0], 3.0), 2)
    assert wire.predict_each([model], [[1.0, 1.0], [0.0, 5.0]]).predictions[0].tolist() == [4.0, -2.0]


def test_mixed_models_answer_in_their_order(table: Any, fitted: dict[str, Any]) -> None:
    X, _ = table
    plain = wire.unpack(wire.pack_affine(np.ones(5), 0.0), 5)
    forest = wire.unpack(wire.pack(fitted["rf"], 5), 5)
    answers = wire.predict_each([plain, forest, plain], X).predictions
    np.testing.assert_allclose(answers[0], X.sum(axis=1))
    np.testing.assert_allclose(answers[1], fitted["rf"].predict(X))
    np.testing.assert_array_equal(answers[0], answers[2])
    assert wire.predict_each([], X).predictions.shape == (0, len(X))


def test_rows_are_checked() -> None:
    model = wire.unpack(wire.pack_affine([1.0, 1.0], 0.0), 2)
    other = wire.unpack(wire.pack_affine([1.0], 0.0), 1)
    with pytest.raises(wire.WireError, match="must have 2 columns"):
        wire.predict_each([model], [[1.0]])
    with pytest.raises(wire.WireError, match="missing or infinite"):
        wire.predict_each([model], [[1.0, np.nan]])
    with pytest.raises(wire.WireError, match="different numbers of predictors"):
        wire.predict_each([model, other], [[1.0, 1.0]])
    with pytest.raises(wire.WireError, match="1 to 10000 predictors"):
        wire.pack_affine(np.zeros(10_001), 0.0)


def test_linear_models_need_no_extra_and_others_name_it(
    table: Any, fitted: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = wire.pack(fitted["one leaf"], 5)
    monkeypatch.setitem(sys.modules, "onnx", None)
    wire.predict_each([wire.unpack(wire.pack_affine([1.0], 0.0), 1)], [[1.0]])
    with pytest.raises(wire.WireError, match=r"install coterie's extra 'federated'"):
        wire.unpack(sent, 5)
    with pytest.raises(wire.WireError, match=r"install coterie's extra 'federated'"):
        wire.pack(RandomForestRegressor(1).fit(*table), 5)
