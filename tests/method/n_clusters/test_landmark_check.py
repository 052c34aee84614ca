from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from sklearn.tree import DecisionTreeRegressor

import coterie
from coterie import CoterieRegressor, cluster_learners, cross_evaluate, select_models
from coterie.kernels.similarities import ExchangeSimilarity
from coterie.method.landmarks import LandmarkTiles
from coterie.method.n_clusters import landmark_check
from coterie.method.n_clusters.landmark_check import extended_similarity
from coterie.rows.learners import gather_learners

N_LEARNERS = 60


@pytest.fixture(scope="module")
def stages() -> tuple[Any, ...]:
    """Trees on steps at three places."""
    rng = np.random.default_rng(0)
    truth = np.arange(N_LEARNERS) % 3
    groups = np.repeat(np.arange(N_LEARNERS), 40)
    X = rng.uniform(-1, 1, size=(len(groups), 1))
    y = 3.0 * (X[:, 0] > np.array([-0.6, 0.0, 0.6])[truth[groups]]) + 0.3 * rng.normal(size=len(groups))
    learners = gather_learners(X, y, groups, caller="test")
    selection = select_models(learners, candidates={"tree": DecisionTreeRegressor(max_depth=2)})
    return truth, (X, y, groups), learners, selection


@pytest.mark.parametrize(("n_clusters", "refine"), [("auto", "pooled"), (3, None), ("eigengap", "pooled")])
def test_landmarks_find_the_clusters_and_say_how_far_they_are_from_exact(
    stages: Any, n_clusters: Any, refine: str | None
) -> None:
    truth, _, learners, selection = stages
    # With so few landmarks the eigengap shows three clusters in three of four draws; in this one it does.
    exchange = cross_evaluate(selection, learners, landmarks=12, random_state=1)
    assert exchange.landmarks is not None
    options = {"selection": selection, "n_clusters": n_clusters, "refine": refine}
    partition = cluster_learners(exchange, learners, **options)
    assert adjusted_rand_score(truth, partition.labels) == 1
    assert "12 landmarks of 60 learners were exchanged with: 1440 evaluations" in partition.notes[0]
    assert "clusters agree to 1.00" in partition.notes[0]


def test_where_clusters_are_wrong_the_note_says_so(stages: Any) -> None:
    _, _, learners, selection = stages
    exchange = cross_evaluate(selection, learners, landmarks=12).aligned_to(learners.ids)
    wrong = np.arange(N_LEARNERS) % 2
    from coterie.engines import ThreadEngine

    known = (learners, selection.aligned_to(learners.ids), wrong, 1.0, ThreadEngine())
    assert "clusters agree to 1.00" not in landmark_check.landmark_note(exchange, *known, seed=0)


def test_with_all_learners_as_landmarks_the_extension_is_exact(stages: Any) -> None:
    _, _, learners, selection = stages
    similarity = ExchangeSimilarity(cross_evaluate(selection, learners), 1.0)
    everybody, some = np.arange(N_LEARNERS), np.array([3, 7, 20])
    extended = extended_similarity(similarity, everybody, some)
    # But for what is not a kernel: v is no squared distance, so S has small negative eigenvalues.
    assert np.allclose(extended, similarity.tile(some, some), atol=0.15)


def test_averages_of_all_models_are_refused(stages: Any) -> None:
    _, _, learners, selection = stages
    exchange = cross_evaluate(selection, learners, landmarks=12)
    with pytest.raises(ValueError, match="set refine='pooled'"):
        cluster_learners(exchange, learners, selection=selection, refine="average")


def test_affine_models_need_no_landmarks(stages: Any) -> None:
    _, _, learners, _ = stages
    selection = select_models(learners, candidates="lr")
    assert cross_evaluate(selection, learners, landmarks=12).landmarks is None


def test_the_estimator_takes_landmarks_and_its_file_keeps_them(stages: Any, tmp_path: Path) -> None:
    truth, (X, y, groups), _, _ = stages
    model = CoterieRegressor(
        {"tree": DecisionTreeRegressor(max_depth=2)},
        n_clusters=3,
        landmarks=12,
        n_bootstrap=0,
        nested_folds=2,
    ).fit(X, y, groups=groups)
    assert adjusted_rand_score(truth, model.learner_labels_) == 1
    coterie.save(model, tmp_path / "model.coterie")
    again = coterie.load(tmp_path / "model.coterie")
    assert isinstance(again.exchange_.source, LandmarkTiles)
    assert np.array_equal(again.exchange_.source.to_marks, model.exchange_.source.to_marks)
    coterie.Report(model).write_html(tmp_path / "report.html")
