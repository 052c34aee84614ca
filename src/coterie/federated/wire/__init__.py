"""Models on the wire: bytes that a peer can read without running anything of mine.

Linear models travel as their coefficients in float64, exactly. The others travel as ONNX of a small dialect:
fifteen operators, float64 throughout, trees with float64 thresholds. Their predictions differ from
scikit-learn's by the rounding of sums, at most 1e-12 of the size of the predictions, in whatever units the
predictors are; pickle, joblib and skops are neither written nor read.

What arrives is taken for hostile. It is walked over before any library parses it, read into a program of
plain arrays, and written afresh for onnxruntime, which runs in a process of its own with limits on memory,
time and files. Whatever goes wrong is one sentence about one model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.federated.wire import envelope, evaluate
from coterie.federated.wire.envelope import WireError as WireError
from coterie.federated.wire.envelope import unreadable
from coterie.federated.wire.evaluate import Allowance as Allowance
from coterie.kernels.affine import affine_form


def _checked_rows(X: Any, n_features: int) -> Array:
    rows = np.ascontiguousarray(X, dtype=np.float64)
    if rows.ndim != 2 or rows.shape[1] != n_features:
        raise WireError(
            f"The 'X' argument must have {n_features} columns, one per predictor. Got shape {rows.shape}."
        )
    if not np.isfinite(rows).all():
        raise WireError("The 'X' argument holds missing or infinite values: fill them in first.")
    return rows


@dataclass(frozen=True, eq=False)
class WireModel:
    """A model that came over the wire: it predicts, and does nothing else.

    ``affine`` is ``(w, b)`` when it predicts x'w + b; otherwise ``onnx`` is its program, written afresh as an
    ONNX file.
    """

    n_features: int
    affine: tuple[Array, float] | None
    onnx: bytes | None = field(repr=False)


@dataclass(frozen=True, eq=False)
class Predictions:
    """What several models predict, of shape (m, n), and which of them could not.

    Rows of models that could not are NaN. ``troubles`` says why, by position of the model: the end of a
    sentence that begins with 'The model'. ``seconds`` is how much of the allowance was used.
    """

    predictions: Array
    troubles: dict[int, str]
    seconds: float = 0.0


def pack_affine(w: Any, b: float) -> bytes:
    """Return x'w + b as bytes: a header and p + 1 numbers in float64."""
    vector = np.append(np.asarray(w, dtype=float), float(b))
    if not np.isfinite(vector).all():
        raise WireError("The model has a coefficient that is not a finite number: leave this candidate out.")
    if not 1 <= (n := len(vector) - 1) <= envelope.MAX_FEATURES:
        raise WireError(f"A model on the wire takes 1 to {envelope.MAX_FEATURES} predictors. Got {n}.")
    return envelope.seal(envelope.AFFINE, n, vector.astype("<f8").tobytes())


def _need_onnx() -> None:
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError as error:
        raise WireError(
            "Models that are not linear travel as ONNX, and onnx is not installed: "
            "install coterie's extra 'federated'."
        ) from error


def pack(model: Any, n_features: int) -> bytes:
    """Return a fitted model as bytes for peers.

    Linear models travel as their coefficients; trees, forests, boosting, neural networks, pipelines and
    averages of these as ONNX. A WireError says that the model keeps training rows (nearest neighbours,
    support vectors, kernels, Gaussian processes), also inside another model, or that it cannot be written
    down.
    """
    form = affine_form(model, n_features)
    if form is not None:
        return pack_affine(*form)
    _need_onnx()
    from coterie.federated.wire.convert import convert
    from coterie.federated.wire.onnx_form import write_onnx

    body = write_onnx(convert(model, n_features))
    if len(body) > envelope.MAX_BYTES:
        raise WireError(
            f"The {type(model).__name__} takes {len(body)} bytes, and a peer reads {envelope.MAX_BYTES}: "
            "use fewer trees, or larger leaves (min_samples_leaf)."
        )
    return envelope.seal(envelope.ONNX, n_features, body)


def unpack(payload: bytes, n_features: int) -> WireModel:
    """Read a model from a peer, once everything about it has been checked; nothing of it runs.

    ``n_features`` is how many predictors the reader's own rows have. A WireError in one sentence refuses
    anything that `pack` would not have written.
    """
    kind, body = envelope.open_sealed(bytes(payload), n_features)
    if kind == envelope.ONNX:
        _need_onnx()
        from coterie.federated.wire.onnx_form import read_onnx, write_onnx

        return WireModel(n_features, None, write_onnx(read_onnx(body, n_features)))
    if len(body) != 8 * (n_features + 1):
        raise unreadable(f"does not hold {n_features + 1} coefficients")
    vector = np.frombuffer(body, dtype="<f8").astype(np.float64)
    if not np.isfinite(vector).all():
        raise unreadable("has a coefficient that is not a finite number")
    return WireModel(n_features, (vector[:-1], float(vector[-1])), None)


def predict_rows(models: Sequence[WireModel], X: Any, allowance: Allowance | None = None) -> Predictions:
    """Predict rows by many models, each of which may fail for itself, at single rows or altogether.

    Not all predictions need be finite; ``troubles`` has the models that did not run.
    """
    if not models:
        return Predictions(np.empty((0, len(X))), {})
    rows = _checked_rows(X, models[0].n_features)
    if any(model.n_features != rows.shape[1] for model in models):
        raise WireError("The 'models' argument mixes models with different numbers of predictors.")
    predictions = np.full((len(models), len(rows)), np.nan)
    troubles: dict[int, str] = {}
    waiting = [place for place, model in enumerate(models) if model.onnx is not None]
    files = [models[place].onnx or b"" for place in waiting]
    answers, seconds = evaluate.evaluate(files, rows, allowance or Allowance())
    for place, answer in zip(waiting, answers, strict=True):
        if isinstance(answer, str):
            troubles[place] = answer
        else:
            predictions[place] = answer
    # Coefficients that overflow give infinities.
    with np.errstate(over="ignore", invalid="ignore"):
        for place, model in enumerate(models):
            if model.affine is not None:
                predictions[place] = rows @ model.affine[0] + model.affine[1]
    return Predictions(predictions, troubles, seconds)


def predict_each(models: Sequence[WireModel], X: Any, allowance: Allowance | None = None) -> Predictions:
    """Predict rows by many models; one that fails, if only at one row, gives NaN and has its trouble."""
    found = predict_rows(models, X, allowance)
    predictions, troubles = found.predictions, dict(found.troubles)
    for place in np.flatnonzero(~np.isfinite(predictions).all(axis=1)).tolist():
        troubles.setdefault(place, "predicts something that is not a finite number")
        predictions[place] = np.nan
    return Predictions(predictions, troubles, found.seconds)
