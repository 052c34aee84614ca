"""Very many learners: nothing of the size of all pairs is stored, and the answers are the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import coterie
from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.datasets import make_linear_learners
from coterie.kernels import matrix_free
from coterie.kernels.limits import Limits
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.method import spectral as cluster
from coterie.method.refine import losses as losses_module
from coterie.records import Exchange
from coterie.rows.learners import gather_learners

N_LEARNERS = 100


@pytest.fixture(scope="module")
def stages() -> tuple[Any, Any, Any, Any]:
    data = make_linear_learners(N_LEARNERS, n_truths=4, n_rows=30, n_features=4, random_state=0)
    learners = gather_learners(data.X, data.y, data.groups, caller="test")
    selection = select_models(learners, candidates="lr")
    return data, learners, selection, cross_evaluate(selection, learners)


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every crowd for a very large one, and look at samples and blocks smaller than it."""
    small = Limits(many=25, huge=35, numbers=2_000)
    for module in (cluster, matrix_free, losses_module):
        monkeypatch.setattr(module, "LIMITS", small)


@pytest.mark.parametrize(
    ("n_clusters", "refine"), [("auto", "pooled"), ("auto", "average"), (4, None), ("gap", None)]
)
def test_the_partition_is_that_of_the_stored_similarity(
    stages: Any, n_clusters: Any, refine: str | None, request: pytest.FixtureRequest
) -> None:
    _, learners, selection, exchange = stages
    options = {"selection": selection, "n_clusters": n_clusters, "refine": refine}
    dense = cluster_learners(exchange, learners, **options)
    request.getfixturevalue("large")
    free = cluster_learners(exchange, learners, **options)
    assert isinstance(free.similarity, ExchangeSimilarity)
    assert free.labels.tolist() == dense.labels.tolist()
    assert {rule: curve.chosen for rule, curve in free.curves.items()} == {
        rule: curve.chosen for rule, curve in dense.curves.items()
    }
    assert_allclose(np.asarray(free.similarity), dense.similarity, rtol=1e-9)
    assert_allclose(free.eigenvalues[:4], dense.eigenvalues[:4], atol=1e-6)


@pytest.mark.usefixtures("large")
def test_no_matrix_of_all_pairs_is_made(stages: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    _, learners, selection, exchange = stages

    def forbidden(known: Exchange) -> Any:
        if len(known.learner_ids) == N_LEARNERS:
            pytest.fail("a matrix of all pairs was made")
        return np.asarray(known.dissimilarity_tile(slice(None), slice(None)))

    monkeypatch.setattr(Exchange, "dissimilarity", property(forbidden))
    monkeypatch.setattr(Exchange, "losses", property(forbidden))
    monkeypatch.setattr(ExchangeSimilarity, "__array__", lambda *args, **kwargs: pytest.fail("S was made"))
    assert cluster_learners(exchange, learners, selection=selection).n_clusters == 4
    assert cluster_learners(exchange, n_clusters=4, scale="median").n_clusters == 4


@pytest.mark.usefixtures("large")
def test_linkage_of_a_sample_finds_the_truths(stages: Any) -> None:
    data, _, _, exchange = stages
    joined = cluster.linkage_of(exchange, 8)
    labels = joined(4)
    assert len(set(zip(labels.tolist(), data.truth.tolist(), strict=True))) == 4
    assert len(np.unique(joined(2))) == 2


@pytest.mark.usefixtures("large")
def test_coinciding_rows_share_a_cluster() -> None:
    rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], [30, 20], axis=0)
    labels, within = cluster.cluster_rows(rows, 5, 0)
    assert len(np.unique(labels)) == 2
    assert within == pytest.approx(0, abs=1e-12)
    assert cluster.cluster_rows(rows[:30], 3, 0)[0].tolist() == [0] * 30


@pytest.mark.usefixtures("large")
def test_centres_found_among_some_rows_serve_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "LIMITS", Limits(huge=20))
    rng = np.random.default_rng(0)
    rows = np.repeat([[1.0, 0.0], [0.0, 1.0]], [30, 25], axis=0) + rng.normal(size=(55, 2)) / 50
    labels, _ = cluster.cluster_rows(rows, 2, 0)
    assert len(set(zip(labels.tolist(), [0] * 30 + [1] * 25, strict=True))) == 2


@pytest.mark.usefixtures("large")
def test_a_learner_without_finite_losses_stands_alone(stages: Any) -> None:
    _, _, _, exchange = stages
    losses = exchange.losses.copy()
    losses[3] = np.inf
    partition = cluster_learners(losses, n_clusters=4)
    assert (partition.labels == partition.labels[3]).sum() == 1
    assert np.asarray(partition.similarity)[3].sum() == 1


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(("rows", "form"), [(True, "pooled"), (False, "pooled"), (True, "auto")])
def test_the_estimator_its_file_and_its_report_work_without_the_matrix(
    tmp_path: Path, rows: bool, form: str
) -> None:
    data = make_linear_learners(40, n_truths=2, n_rows=20, n_features=2, random_state=0)
    model = CoterieRegressor(candidates="lr", collaboration=form, n_bootstrap=5, device="auto")
    model.fit(data.X, data.y, groups=data.groups)
    assert model.n_clusters_ == 2
    coterie.save(model, tmp_path / "model.coterie", rows=rows)
    again = coterie.load(tmp_path / "model.coterie")
    assert isinstance(again.partition_.similarity, ExchangeSimilarity) is rows
    assert_allclose(np.asarray(again.partition_.similarity), np.asarray(model.partition_.similarity))
    assert again.device == "auto"
    coterie.Report(model).write_html(tmp_path / "report.html")


def test_a_gpu_is_refused_before_anything_is_fitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coterie.kernels.devices._has_gpu", lambda: False)
    with pytest.raises(ValueError, match="set device='cpu'"):
        CoterieRegressor(device="cuda").fit([[1.0], [2.0]], [1, 2])


@pytest.mark.parametrize("standardize", [None, "learner"])
def test_newcomers_in_a_stream_are_placed_as_if_admitted_and_leave_the_model_as_it_is(
    standardize: str | None,
) -> None:
    data = make_linear_learners(20, n_truths=2, n_rows=25, n_features=2, random_state=0)
    mine = np.isin(data.groups, np.unique(data.groups)[:12])
    # The last newcomer has too few rows for a model of its own.
    small = data.groups == np.unique(data.groups)[-1]
    kept = ~mine & ~(small & (np.cumsum(small) > 5))
    model = CoterieRegressor("lr", 2, collaboration="pooled", n_bootstrap=3, standardize=standardize)
    model.fit(data.X[mine], data.y[mine], groups=data.groups[mine])
    X, y, groups = data.X[kept], data.y[kept], data.groups[kept]
    (whole,) = model.place_stream([(X, y, groups)])
    names = np.unique(groups)
    cuts = [np.isin(groups, part) for part in (names[:5], names[5:])]
    parts = list(model.place_stream((X[cut], y[cut], groups[cut]) for cut in cuts))
    assert len(model.learner_ids_) == 12
    labels = model.admit(X, y, groups=groups)
    assert whole.labels.tolist() == labels.tolist()
    assert whole.learner_ids.tolist() == model.learner_ids_[12:].tolist()
    streamed = {i: k for part in parts for i, k in zip(part.learner_ids, part.labels, strict=True)}
    assert streamed == dict(zip(whole.learner_ids, labels, strict=True))


def test_a_stream_refuses_whom_the_model_knows() -> None:
    data = make_linear_learners(4, n_truths=2, random_state=0)
    model = CoterieRegressor("lr", 2, collaboration="pooled", n_bootstrap=0)
    model.fit(data.X, data.y, groups=data.groups)
    with pytest.raises(ValueError, match="are known already"):
        next(model.place_stream([(data.X, data.y, data.groups)]))
