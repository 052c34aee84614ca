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

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.federated.wire import envelope, evaluate
from coterie.federated.wire.class_lines import ClassLines, check_n_classes, classes_of, read_class_lines
from coterie.federated.wire.envelope import WireError as WireError
from coterie.federated.wire.envelope import unreadable
from coterie.federated.wire.evaluate import Allowance as Allowance
from coterie.kernels.affine import affine_form
from coterie.kernels.logistic import logistic_form
from coterie.models.classes import OneClass

# Probabilities on the wire sum to one but for the rounding of sums.
ROUNDING = 1e-9


def _checked_rows(X: Any, n_features: int) -> Array:
    """Return rows as finite float64 with the model's number of columns."""
    # Contiguous, since the worker gets the rows as bytes.
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

    ``affine`` is ``(w, b)`` when it predicts x'w + b, ``lines`` when it is a logistic model; otherwise
    ``onnx`` is its program, written afresh as an ONNX file. ``n_classes`` is nought where it predicts
    numbers.
    """

    n_features: int
    affine: tuple[Array, float] | None
    onnx: bytes | None = field(repr=False)
    lines: ClassLines | None = field(default=None, repr=False)
    n_classes: int = 0

    @property
    def n_columns(self) -> int:
        """Columns of its predictions: one of a number and of two classes, else one for each class."""
        return self.n_classes if self.n_classes > 2 else 1

    def by_coefficients(self, rows: Array) -> Array | None:
        """Return the predictions (n, C) for rows (n, p) of a model of coefficients; None for a program.

        C is one for numbers and for two classes, where the column is the probability of the second class.
        """
        if self.affine is not None:
            return (rows @ self.affine[0] + self.affine[1])[:, None]
        if self.lines is None:
            return None
        probabilities = self.lines.predict(rows)
        return probabilities[:, 1:] if self.n_classes == 2 else probabilities


@dataclass(frozen=True, eq=False)
class Predictions:
    """What several models predict, of shape (m, n), and which of them could not.

    Of models of classes these are probabilities of shape (m, n, C), a column for two classes.

    Rows of models that could not are NaN. ``troubles`` says why, by position of the model: the end of a
    sentence that begins with 'The model'. ``seconds`` is how much of the allowance was used.
    """

    predictions: Array
    troubles: dict[int, str]
    seconds: float = 0.0


def pack_affine(w: Any, b: float) -> bytes:
    """Return the linear model x'w + b as bytes: a header and p + 1 numbers in float64, not rounded."""
    coefficients = np.append(np.asarray(w, dtype=float), float(b))
    if not np.isfinite(coefficients).all():
        raise WireError("The model has a coefficient that is not a finite number: leave this candidate out.")
    if not 1 <= (n_features := len(coefficients) - 1) <= envelope.MAX_FEATURES:
        raise WireError(
            f"A model on the wire takes 1 to {envelope.MAX_FEATURES} predictors. Got {n_features}."
        )
    return envelope.seal(envelope.AFFINE, n_features, coefficients.astype("<f8").tobytes())


def _need_onnx() -> None:
    """Refuse if onnx is not installed, and say which extra brings it."""
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError as error:
        raise WireError(
            "Models that are not linear travel as ONNX, and onnx is not installed: "
            "install coterie's extra 'federated'."
        ) from error


def pack(model: Any, n_features: int, n_classes: int = 0) -> bytes:
    """Return a fitted model as bytes for peers.

    Linear models travel as their coefficients; trees, forests, boosting, neural networks, pipelines and
    averages of these as ONNX. With ``n_classes`` it is a classifier of numbered classes. A WireError says
    that the model keeps training rows (nearest neighbours, support vectors, kernels, Gaussian processes),
    also inside another model, or that it cannot be written down.
    """
    if n_classes:
        lines = _class_lines(model, n_features, check_n_classes(n_classes))
        if lines is not None:
            return envelope.seal(envelope.CLASS_LINES, n_features, lines.to_bytes())
    # A linear model of numbers is exact as coefficients and needs no further library.
    form = None if n_classes else affine_form(model, n_features)
    if form is not None:
        return pack_affine(*form)
    _need_onnx()
    from coterie.federated.wire.convert import convert
    from coterie.federated.wire.convert_classes import convert_classifier
    from coterie.federated.wire.onnx_form import write_onnx

    program = convert_classifier(model, n_features, n_classes) if n_classes else convert(model, n_features)
    body = write_onnx(program)
    if len(body) > envelope.MAX_BYTES:
        raise WireError(
            f"The {type(model).__name__} takes {len(body)} bytes, and a peer reads {envelope.MAX_BYTES}: "
            "use fewer trees, or larger leaves (min_samples_leaf)."
        )
    if n_classes:
        return envelope.seal(envelope.CLASS_ONNX, n_features, struct.pack("<I", n_classes) + body)
    return envelope.seal(envelope.ONNX, n_features, body)


def _class_lines(model: Any, n_features: int, n_classes: int) -> ClassLines | None:
    """Return a logistic model of numbered classes as coefficients; None where the model is of another kind.

    A model that has seen one class only has no line, and always answers that class.
    """
    if type(model) is OneClass:
        return ClassLines.of_one(int(model.classes_[0]), n_features, n_classes)
    form = logistic_form(model, n_features)
    return None if form is None else ClassLines.of(form, n_classes)


def unpack(payload: bytes, n_features: int, n_classes: int = 0) -> WireModel:
    """Read a model from a peer, once everything about it has been checked; nothing of it runs.

    ``n_features`` is how many predictors the reader's own rows have, ``n_classes`` how many classes the sites
    agreed on; nought: the response is a number. A WireError in one sentence refuses anything that `pack`
    would not have written.
    """
    kind, body = envelope.open_sealed(bytes(payload), n_features)
    # Whether it is a model of classes must agree with what the sites predict.
    if (kind in (envelope.CLASS_LINES, envelope.CLASS_ONNX)) != bool(n_classes):
        raise unreadable("predicts numbers where classes are wanted, or classes where numbers are")
    if n_classes and classes_of(body) != check_n_classes(n_classes):
        raise unreadable(f"knows {classes_of(body)} classes, and there are {n_classes}")
    if kind == envelope.CLASS_LINES:
        lines = read_class_lines(body, n_features, n_classes)
        return WireModel(n_features, affine=None, onnx=None, lines=lines, n_classes=n_classes)
    if kind in (envelope.ONNX, envelope.CLASS_ONNX):
        _need_onnx()
        from coterie.federated.wire.onnx_form import read_onnx, write_onnx

        # With classes, the body begins with their number in four bytes.
        onnx_file, n_columns = (body[4:], n_classes if n_classes > 2 else 1) if n_classes else (body, 1)
        # onnxruntime never sees the peer's file, but one that is written from the checked program.
        fresh_file = write_onnx(read_onnx(onnx_file, n_features, n_columns))
        return WireModel(n_features, affine=None, onnx=fresh_file, n_classes=n_classes)
    if len(body) != 8 * (n_features + 1):
        raise unreadable(f"does not hold {n_features + 1} coefficients")
    coefficients = np.frombuffer(body, dtype="<f8").astype(np.float64)
    if not np.isfinite(coefficients).all():
        raise unreadable("has a coefficient that is not a finite number")
    return WireModel(n_features, (coefficients[:-1], float(coefficients[-1])), None)


def predict_rows(models: Sequence[WireModel], X: Any, allowance: Allowance | None = None) -> Predictions:
    """Predict rows (n, p) by m models from peers, each of which may fail without stopping the others.

    Programs run in a process of their own, coefficients here. Predictions need not be finite numbers;
    ``troubles`` has the models that did not run.
    """
    if not models:
        return Predictions(np.empty((0, len(X))), {})
    rows = _checked_rows(X, models[0].n_features)
    if any(model.n_features != rows.shape[1] for model in models):
        raise WireError("The 'models' argument mixes models with different numbers of predictors.")
    n_columns, n_classes = models[0].n_columns, models[0].n_classes
    if any(model.n_classes != n_classes for model in models):
        raise WireError("The 'models' argument mixes models of different responses.")
    predictions = np.full((len(models), len(rows), n_columns), np.nan)
    troubles: dict[int, str] = {}
    # Models of coefficients have no ONNX file: they are computed here, since numbers cannot do harm.
    program_indices = [index for index, model in enumerate(models) if model.onnx is not None]
    onnx_files = [models[index].onnx or b"" for index in program_indices]
    answers, seconds = evaluate.evaluate(onnx_files, rows, allowance or Allowance(), n_columns)
    for index, answer in zip(program_indices, answers, strict=True):
        if isinstance(answer, str):
            troubles[index] = answer
        else:
            predictions[index] = answer
    # Coefficients that overflow give infinities.
    with np.errstate(over="ignore", invalid="ignore"):
        for index, model in enumerate(models):
            rows_predicted = model.by_coefficients(rows)
            if rows_predicted is not None:
                predictions[index] = rows_predicted
    return Predictions(predictions if n_classes else predictions[..., 0], troubles, seconds)


def _are_chances(predictions: Array) -> bool:
    """Tell whether predictions (n, C) are probabilities, up to the rounding of sums.

    All are from nought to one. More than one column is a column for each class, and rows sum to one.
    """
    are_in_range = bool(((predictions >= -ROUNDING) & (predictions <= 1 + ROUNDING)).all())
    return are_in_range and (
        predictions.shape[1] == 1 or bool((np.abs(predictions.sum(axis=1) - 1) <= ROUNDING).all())
    )


def predict_each(models: Sequence[WireModel], X: Any, allowance: Allowance | None = None) -> Predictions:
    """Predict rows (n, p) by many models, and take no half answers.

    A model whose prediction of even one row is infinite, missing or no probability predicts NaN everywhere,
    and its trouble says why.
    """
    answered = predict_rows(models, X, allowance)
    predictions, troubles = answered.predictions, dict(answered.troubles)
    for index, answer in enumerate(predictions):
        if not np.isfinite(answer).all():
            troubles.setdefault(index, "predicts something that is not a finite number")
        elif answer.ndim == 2 and not _are_chances(answer):
            troubles.setdefault(index, "predicts something that is no probability")
        if index in troubles:
            predictions[index] = np.nan
    return Predictions(predictions, troubles, answered.seconds)
