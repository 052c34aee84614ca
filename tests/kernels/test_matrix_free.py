from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie.kernels import matrix_free
from coterie.kernels.limits import Limits
from coterie.kernels.matrix_free import PairFeatures, nystrom_pairs, spans, top_pairs


def features(n: int = 60, n_truths: int = 3, seed: int = 0) -> PairFeatures:
    """Learners around a few truths: the loss of model a on learner b is 1 + (a - b)^2, an inner product."""
    rng = np.random.default_rng(seed)
    at = np.arange(n) % n_truths * 3.0 + rng.normal(size=n) / 4
    models = np.column_stack([at**2, -2 * at, np.ones(n)])
    learners = np.column_stack([np.ones(n), at, 1 + at**2])
    return PairFeatures(models, learners, np.ones(n), 1.0, block=16)


def dense(pairs: PairFeatures) -> Any:
    everybody = slice(0, pairs.shape[0])
    return pairs.tile(everybody, everybody)


def exact(S: Any, count: int) -> tuple[Any, Any]:
    root = 1 / np.sqrt(S.sum(axis=1))
    values, vectors = np.linalg.eigh(S * root * root[:, None])
    return values[::-1][:count], vectors[:, ::-1][:, :count]


def test_a_tile_is_the_similarity_of_losses_by_inner_products() -> None:
    pairs = features(4)
    at = pairs.learners[:, 1]
    expected = np.exp(-2 * (at[1:, None] - at[None, :2]) ** 2)
    assert_allclose(pairs.tile(slice(1, 4), np.array([0, 1])), expected)


@pytest.mark.parametrize("block", [1, 7, 60, 100])
def test_tiles_multiply_like_the_whole(block: int) -> None:
    pairs = features()
    vectors = np.random.default_rng(1).normal(size=(60, 3))
    assert_allclose(replace(pairs, block=block).times(vectors), dense(pairs) @ vectors)


def test_runs_cover_everybody_once() -> None:
    assert [(s.start, s.stop) for s in spans(5, 2)] == [(0, 2), (2, 4), (4, 5)]


def test_from_all_learners_the_start_is_the_answer() -> None:
    pairs = features()
    found = nystrom_pairs(pairs, np.arange(60), 3, block=16)
    assert_allclose(found.degrees, dense(pairs).sum(axis=1), rtol=1e-3)
    values, expected = exact(dense(pairs), 3)
    assert_allclose(found.values, values, atol=1e-3)
    assert_allclose(found.plain_values, np.linalg.eigvalsh(dense(pairs))[:-4:-1], rtol=1e-3)
    assert_allclose(np.linalg.svd(expected.T @ found.vectors)[1], 1, atol=1e-3)


@pytest.mark.parametrize("landmarks", [10, 30])
def test_from_a_sample_of_learners_the_top_pairs_are_exact(
    landmarks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matrix_free, "LIMITS", Limits(many=landmarks))
    pairs = features()
    found = top_pairs(pairs, 3, tolerance=1e-9, passes=30)
    values, vectors = exact(dense(pairs), 3)
    assert found.residual < 1e-9
    assert_allclose(found.values, values, atol=1e-9)
    assert_allclose(np.linalg.svd(vectors.T @ found.vectors)[1], 1, atol=1e-9)
    assert_allclose(found.degrees, dense(pairs).sum(axis=1))


def test_the_residual_is_that_of_the_vectors_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_free, "LIMITS", Limits(many=4))
    monkeypatch.setattr(matrix_free, "SPARE", 0)
    pairs = features()
    found = top_pairs(pairs, 4, passes=1)
    root = 1 / np.sqrt(found.degrees)
    operator = dense(pairs) * root * root[:, None]
    missed = operator @ found.vectors - found.vectors * found.values
    assert_allclose(found.residuals, np.linalg.norm(missed, axis=0), atol=1e-12)
    assert found.passes == 1
    assert found.residual > 1e-6


def test_a_further_pass_improves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_free, "LIMITS", Limits(many=6))
    one, two, three = (top_pairs(features(), 3, tolerance=0, passes=n).residual for n in (1, 2, 3))
    assert one > two > three


def test_eigenvalues_of_the_plain_similarity_come_with_it() -> None:
    pairs = features()
    found = top_pairs(pairs, 3, tolerance=1e-9, passes=10)
    assert_allclose(found.plain_values, np.linalg.eigvalsh(dense(pairs))[::-1][:3], rtol=1e-3)


def test_learners_that_all_agree_have_one_pair() -> None:
    ones = np.ones((5, 1))
    found = top_pairs(PairFeatures(ones, ones, np.ones(5), 1.0), 3)
    assert_allclose(found.values[0], 1)
    assert_allclose(np.abs(found.vectors[:, 0]), 1 / np.sqrt(5))


def test_the_product_given_is_used() -> None:
    pairs = features()
    calls = []

    def times(vectors: Any) -> Any:
        calls.append(vectors.shape)
        return dense(pairs) @ vectors

    given = PairFeatures(pairs.models, pairs.learners, pairs.errors, pairs.scale, times)
    assert_allclose(top_pairs(given, 3).values, top_pairs(pairs, 3).values)
    assert calls


def test_torch_gives_the_same_as_numpy() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed: pip install '.[gpu]'")
    pairs = features()
    parts = (torch.asarray(part) for part in (pairs.models, pairs.learners, pairs.errors))
    there = top_pairs(PairFeatures(*parts, pairs.scale, block=16), 3)
    here = top_pairs(pairs, 3)
    assert_allclose(there.values.numpy(), here.values, atol=1e-9)
    assert_allclose(np.abs(there.vectors.numpy()), np.abs(here.vectors), atol=1e-6)
    assert there.residual < 1e-4


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_long_vector_hides_no_short_one(kind: Any) -> None:
    basis = np.linalg.qr(np.random.default_rng(0).normal(size=(9, 3)))[0] * [1e5, 1.0, 1e-3]
    basis = basis.astype(kind)
    white = matrix_free._whitening(basis.T @ basis, kind)
    assert white.shape == (3, 3)
    orthonormal = basis @ white
    assert_allclose(orthonormal.T @ orthonormal, np.eye(3), atol=1e-3)


def test_a_vector_twice_or_of_zeros_counts_once() -> None:
    basis = np.array([[1.0, 1.0, 0.0], [2.0, 2.0, 0.0]])
    assert matrix_free._whitening(basis.T @ basis, np.float64).shape == (3, 1)
