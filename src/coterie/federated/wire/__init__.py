"""Models on the wire: bytes that a peer can read without running anything of mine.

Linear models travel as their coefficients in float64, exactly. The others travel as ONNX of a small dialect:
fifteen operators, float64 throughout, trees with float64 thresholds. Their predictions differ from
scikit-learn's by the rounding of sums, at most 1e-12 of the size of the predictions, in whatever units the
predictors are; pickle, joblib and skops are neither written nor read.

What arrives is taken for hostile. It is walked over before any library parses it, read into a program of
plain arrays, and written afresh for onnxruntime, which runs in a process of its own with limits on memory,
time and files. Whatever goes wrong is one sentence about one model.
"""

from coterie.federated.wire.envelope import WireError
from coterie.federated.wire.evaluate import Allowance
from coterie.federated.wire.models import (
    Predictions,
    WireModel,
    pack,
    pack_affine,
    predict_each,
    predict_rows,
    unpack,
)

__all__ = [
    "Allowance",
    "Predictions",
    "WireError",
    "WireModel",
    "pack",
    "pack_affine",
    "predict_each",
    "predict_rows",
    "unpack",
]
