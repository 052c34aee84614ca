"""Where the spectrum of very many learners is computed: in NumPy, or by torch on a GPU.

Only here and in `fused` is torch spoken, and it is imported when a GPU is wanted. Where a GPU has not
enough memory, the processor does the work.
"""

from __future__ import annotations

import logging
import warnings
from dataclasses import replace
from typing import Any

from coterie._arrays import Array
from coterie._options import check_option
from coterie.kernels.affine import AffineLosses
from coterie.kernels.matrix_free import PairFeatures, TopPairs, top_pairs
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.records import Exchange

DEVICES = ("auto", "cpu", "cuda")

_log = logging.getLogger(__name__)


def _has_gpu() -> bool:
    """Tell whether torch finds a CUDA device."""
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def check_device(device: Any) -> None:
    """Refuse what is no device, and a GPU where there is none."""
    check_option(device, "device", DEVICES)
    if device == "cuda" and not _has_gpu():
        raise ValueError(
            "The 'device' option is 'cuda', but torch finds no such device here: install coterie's extra "
            "'gpu' on a machine with a GPU, or set device='cpu'."
        )


def pick_device(device: str) -> str:
    """Return ``"cpu"`` or ``"cuda"``; ``"auto"`` means a GPU where torch finds one."""
    check_device(device)
    return "cuda" if device != "cpu" and _has_gpu() else "cpu"


def torch_features(
    models: Array, learners: Array, errors: Array, scale: float, device: str = "cuda"
) -> PairFeatures:
    """Return the features of L models and learners on a torch device, in single precision.

    ``models`` and ``learners`` (L, F) are features whose inner products are losses, ``errors`` (L,) are
    models' losses on their own learners, and ``scale`` is the factor a of S = exp(-a v). On a GPU where
    triton is installed, the product of S with vectors is fused into one kernel.
    """
    import torch

    model_tensor, learner_tensor, error_tensor = (
        torch.asarray(part, dtype=torch.float32, device=device) for part in (models, learners, errors)
    )
    features = PairFeatures(models=model_tensor, learners=learner_tensor, errors=error_tensor, scale=scale)
    if device == "cpu":
        return features
    try:
        from coterie.kernels.fused import FusedTimes
    except ImportError:
        _log.info("triton is not installed: the products are computed tile by tile.")
        return features
    return replace(features, product=FusedTimes(features))


def _on_gpu(parts: tuple[Any, ...], count: int, needed: int) -> TopPairs | None:
    """Return the top eigenpairs from the GPU, as NumPy arrays; None, with a warning, if memory is short.

    ``parts`` are the arguments of `torch_features`; ``count`` and ``needed`` are as for `top_pairs`.
    """
    import torch

    try:
        pairs = top_pairs(torch_features(*parts), count, needed=needed)
        tensor_fields = ("values", "vectors", "degrees", "plain_values", "residuals")
        return replace(pairs, **{name: getattr(pairs, name).cpu().numpy() for name in tensor_fields})
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
    warnings.warn(
        f"The GPU has too little memory for {len(parts[0])} learners: the spectrum is computed on the "
        "processor. Set device='cpu' to say so from the start.",
        UserWarning,
        stacklevel=4,
    )
    return None


def top_pairs_of(
    exchange: Exchange, scale: float, count: int, device: str = "auto", needed: int = 1
) -> TopPairs:
    """Return the top eigenpairs of the normalised similarity of an exchange, without storing it.

    The pairs are NumPy arrays whatever device computed them. ``scale`` is the factor a of S = exp(-a v);
    ``count`` and ``needed`` are as for `top_pairs`. Losses that are not inner products of features are
    computed on the processor, whatever the device.
    """
    if pick_device(device) == "cuda" and isinstance(exchange.source, AffineLosses):
        features = exchange.source.features()
        if features is None:
            _log.info("The losses have too few digits in single precision: the processor computes them.")
        else:
            pairs_from_gpu = _on_gpu((*features, exchange.errors, scale), count, needed)
            if pairs_from_gpu is not None:
                return pairs_from_gpu
    return top_pairs(ExchangeSimilarity(exchange, scale), count, needed=needed)
