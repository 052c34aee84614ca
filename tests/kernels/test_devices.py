from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.datasets import make_linear_learners
from coterie.kernels import devices
from coterie.kernels.affine import AffineLosses, second_moments
from coterie.kernels.devices import check_device, pick_device, top_pairs_of, torch_features
from coterie.kernels.losses import DenseTiles
from coterie.records import Exchange
from coterie.rows.learners import gather_learners


def exchange(n_learners: int = 30, noise_variance: float | None = None) -> Exchange:
    data = make_linear_learners(n_learners, n_truths=3, noise_variance=noise_variance, random_state=0)
    learners = gather_learners(data.X, data.y, data.groups, caller="test")
    Z = np.column_stack([learners.X, np.ones(len(learners.X))])
    G, c, s = second_moments(Z, learners.y, learners)
    vectors = np.linalg.solve(G, c)[..., 0]
    errors = s - np.einsum("ld,ld->l", c[..., 0], vectors)
    apart = np.zeros(n_learners, dtype=bool)
    return Exchange(learners.ids, AffineLosses(vectors, learners), errors, errors, apart)


def pretend_gpu(monkeypatch: pytest.MonkeyPatch, found: bool) -> Any:
    """Put a torch in place that says whether there is a GPU."""

    class OutOfMemoryError(RuntimeError):
        pass

    cuda = types.SimpleNamespace(
        is_available=lambda: found, OutOfMemoryError=OutOfMemoryError, empty_cache=lambda: None
    )
    torch = types.SimpleNamespace(cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", torch)
    return torch


def test_an_unknown_device_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'device' option must be .*'auto', 'cpu'.*'cuda'"):
        check_device("gpu")


def test_a_gpu_that_is_not_there_is_refused_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpu(monkeypatch, found=False)
    with pytest.raises(ValueError, match=r"coterie's extra 'gpu'.*or set device='cpu'"):
        check_device("cuda")
    assert pick_device("auto") == "cpu"


def test_without_torch_the_processor_is_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert pick_device("auto") == "cpu"
    with pytest.raises(ValueError, match="torch finds no such device"):
        check_device("cuda")


def test_a_gpu_is_picked_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_gpu(monkeypatch, found=True)
    assert [pick_device(device) for device in ("auto", "cuda", "cpu")] == ["cuda", "cuda", "cpu"]


def test_where_a_gpu_has_too_little_memory_the_processor_works(monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pretend_gpu(monkeypatch, found=True)
    tried = []

    def too_large(*parts: Any) -> Any:
        tried.append(len(parts[0]))
        raise torch.cuda.OutOfMemoryError

    monkeypatch.setattr(devices, "torch_features", too_large)
    with pytest.warns(UserWarning, match="too little memory for 30 learners"):
        found = top_pairs_of(exchange(), 1.0, 3, device="cuda")
    assert tried == [30]
    assert_allclose(found.values, top_pairs_of(exchange(), 1.0, 3, device="cpu").values)


def test_losses_without_enough_digits_or_features_stay_on_the_processor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pretend_gpu(monkeypatch, found=True)
    monkeypatch.setattr(devices, "_on_gpu", lambda *parts: pytest.fail("single precision is not enough"))
    assert top_pairs_of(exchange(noise_variance=1e-9), 1.0, 3, device="cuda").values[0] == pytest.approx(1)
    known = exchange()
    dense = Exchange(known.learner_ids, DenseTiles(known.losses), known.errors, known.noise, known.isolated)
    assert top_pairs_of(dense, 1.0, 3, device="cuda").values[0] == pytest.approx(1)


def test_features_in_torch_have_the_same_spectrum() -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install '.[gpu]'")
    from coterie.kernels.matrix_free import top_pairs

    known = exchange()
    assert isinstance(known.source, AffineLosses)
    features = known.source.features()
    assert features is not None
    there = top_pairs(torch_features(*features, known.errors, 1.0, device="cpu"), 3)
    here = top_pairs_of(known, 1.0, 3, device="cpu")
    assert_allclose(there.values.numpy(), here.values, atol=1e-4)
    # Eigenvalues that repeat leave their vectors free to turn among themselves.
    assert_allclose(np.linalg.svd(here.vectors.T @ there.vectors.numpy())[1], 1, atol=1e-3)
