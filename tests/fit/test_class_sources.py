"""Classes of learners that are read one by one: as `fit`, or as averages of models of all rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import coterie.fit.out_of_core as streaming
from coterie import CoterieClassifier
from coterie.datasets import make_logistic_learners
from coterie.engines import ThreadEngine
from coterie.engines.checkpoints import CheckpointEngine
from coterie.fit.class_sources import ClassSource, find_classes
from coterie.fit.out_of_core import select_from_source
from coterie.persistence.results import ResultCodec

from .test_out_of_core import Held

NAMES = np.array(["no", "perhaps", "yes"])
Sources = dict[str, Held]
Model = Callable[..., CoterieClassifier]


def rows(n_classes: int = 2) -> tuple[Any, Any, Any]:
    """Nine learners of three truths; the first has seen one class only, the last has few rows."""
    data = make_logistic_learners(9, n_truths=3, n_rows=80, n_classes=n_classes, random_state=0)
    first, last = (data.groups == data.learner_ids[place] for place in (0, -1))
    kept = (~first | (data.y == 0)) & (~last | (np.cumsum(last) <= 6))
    return data.X[kept], NAMES[data.y][kept], data.groups[kept]


def sources(X: Any, y: Any, groups: Any, log: list[str] | None = None) -> Sources:
    logs = () if log is None else (log,)
    return {str(i): Held(str(i), X[groups == i], y[groups == i], logs) for i in np.unique(groups)}


def quick(**options: Any) -> CoterieClassifier:
    return CoterieClassifier(**{"candidates": "linear", "n_bootstrap": 3, **options})


@pytest.mark.parametrize(
    ("n_classes", "options"),
    [
        (2, {}),
        (3, {}),
        (3, {"refine": "average"}),
        (2, {"candidates": ["logistic", "rf"], "effort": "fast"}),
        (2, {"landmarks": 4}),
        (3, {"collaboration": "pooled", "small_learners": "drop"}),
    ],
)
def test_where_everything_fits_the_answer_is_that_of_fit(n_classes: int, options: dict[str, Any]) -> None:
    X, y, groups = rows(n_classes)
    streamed = quick(**options).fit_sources(sources(X, y, groups))
    whole = quick(**options).fit(X, y, groups=groups)
    assert streamed.classes_.tolist() == whole.classes_.tolist() == NAMES[:n_classes].tolist()
    assert streamed.learner_labels_.tolist() == whole.learner_labels_.tolist()
    known = np.isin(groups, whole.learner_ids_)
    assert_allclose(*(m.predict_proba(X[known], groups=groups[known]) for m in (streamed, whole)))
    for name in ("error_alone", "error_with", "gain"):
        assert_allclose(streamed.gains_[name], whole.gains_[name], err_msg=name)
    assert streamed.partition_.notes == whole.partition_.notes


@pytest.mark.parametrize("candidates", ["linear", "rf"])
def test_models_see_all_rows_and_the_rest_a_part_of_them(
    candidates: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "rows_per_learner", lambda *_: 40)
    X, y, groups = rows(3)
    model = quick(candidates=candidates).fit_sources(sources(X, y, groups))
    assert model.collaboration_.method == "average"
    assert max(len(residuals) for residuals in model.selection_.residuals) == 40
    assert model.gains_["n_rows"].tolist() == np.unique(groups, return_counts=True)[1].tolist()
    assert_allclose(model.predict_proba(X, groups=groups).sum(axis=1), 1)
    if candidates == "linear":
        same = np.equal.outer(model.learner_labels_[1:8], model.learner_labels_[1:8])
        assert (same == np.equal.outer(np.arange(1, 8) % 3, np.arange(1, 8) % 3)).all()


def test_labels_that_are_known_save_a_look_at_everybody() -> None:
    X, y, groups = rows()
    found: list[str] = []
    quick().fit_sources(sources(X, y, groups, found))
    given: list[str] = []
    model = quick().fit_sources(sources(X, y, groups, given), classes=["yes", "no", "perhaps"])
    assert len(found) == len(given) + len(np.unique(groups)) + 1
    assert model.classes_.tolist() == ["no", "perhaps", "yes"]
    with pytest.raises(ValueError, match="class 'perhaps' in y of fit_sources was not seen"):
        quick().fit_sources(sources(X, y, groups), classes=["no", "maybe"])
    with pytest.raises(ValueError, match="needs rows of two classes at least"):
        quick().fit_sources(sources(X, np.full(len(y), "no"), groups))


def test_a_source_without_rows_has_no_class() -> None:
    X, y, _ = rows()
    empty = Held("a", X[:0], y[:0].astype(float))
    found = find_classes({"a": empty, "b": Held("b", X, y)}, 10**6, ThreadEngine())
    assert found.tolist() == ["no", "perhaps"]
    assert len(ClassSource(empty, NAMES).read(5)[1]) == 0


def test_finished_learners_are_not_read_again(tmp_path: Path) -> None:
    X, y, groups = rows()

    def fitted() -> tuple[CoterieClassifier, CheckpointEngine]:
        engine = CheckpointEngine(ThreadEngine(), tmp_path, [select_from_source], ResultCodec())
        return quick(engine=engine).fit_sources(sources(X, y, groups)), engine

    (first, _), (again, engine) = fitted(), fitted()
    assert engine.restored == 9
    assert_allclose(*(m.predict_proba(X, groups=groups) for m in (first, again)))
