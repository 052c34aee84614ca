"""A loaded classifier is the classifier that was saved, and one that does not fit together is refused."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coterie import CoterieClassifier
from coterie.persistence import PersistenceError, load, save


def rows(n_classes: int, labels: Any = ("no", "perhaps", "yes")) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    owner = np.repeat(np.arange(6), 40)
    X = rng.normal(size=(240, 3))
    slopes = 2 * rng.normal(size=(2, 3, n_classes))[owner % 2]
    scores = np.einsum("np,npc->nc", X, slopes) + rng.gumbel(size=(240, n_classes))
    return X, np.array(labels)[scores.argmax(axis=1)], np.array([f"s{j}" for j in owner])


@pytest.mark.parametrize("with_rows", [True, False])
@pytest.mark.parametrize(
    "options", [{}, {"candidates": ["gb", "knn"]}, {"collaboration": "average"}], ids=str
)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_loaded_classifier_predicts_the_same(
    n_classes: int, options: dict[str, Any], with_rows: bool, tmp_path: Path
) -> None:
    X, y, groups = rows(n_classes)
    y = np.where(groups == "s3", "no", y)
    model = CoterieClassifier(n_bootstrap=5, **options).fit(X, y, groups=groups)
    model.admit(X[40:50], y[40:50], groups=np.full(10, "new"))
    save(model, tmp_path / "m.coterie", rows=with_rows)
    again = load(tmp_path / "m.coterie")
    assert type(again) is CoterieClassifier
    assert again.classes_.tolist() == model.classes_.tolist()
    groups = np.r_[["new"] * 40, groups[40:]]
    assert np.array_equal(again.predict_proba(X, groups), model.predict_proba(X, groups))
    assert again.get_params() == model.get_params()
    if with_rows:
        again.remove("s0")


@pytest.mark.parametrize("labels", [(False, True), (1, 2), (-1.0, 1.0)])
def test_labels_of_any_kind_come_back(labels: Any, tmp_path: Path) -> None:
    X, y, groups = rows(2, labels)
    model = CoterieClassifier("linear", n_bootstrap=0, n_clusters=1).fit(X, y, groups=groups)
    save(model, tmp_path / "m.coterie")
    predicted = load(tmp_path / "m.coterie").predict(X, groups)
    assert predicted.dtype == model.predict(X, groups).dtype
    assert predicted.tolist() == model.predict(X, groups).tolist()


def _changed(path: Path, change: Any) -> None:
    """Change the manifest of a file in place."""
    with zipfile.ZipFile(path) as zipped:
        members = {name: zipped.read(name) for name in zipped.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest)
    members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w") as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)


def _one_class_more(manifest: dict[str, Any]) -> None:
    manifest["estimator"]["classes_"]["items"].append("zebra")


def _another_kind(manifest: dict[str, Any]) -> None:
    manifest["estimator kind"] = "CoterieRegressor"


def _unknown_kind(manifest: dict[str, Any]) -> None:
    manifest["estimator kind"] = "Pipeline"


def _answers_otherwise(manifest: dict[str, Any]) -> None:
    manifest["fit"]["collaboration"]["fields"]["kinds"]["items"][0] = "beside"


def _scores_without_weights(manifest: dict[str, Any]) -> None:
    residuals = manifest["fit"]["own"]["fields"]["residuals"]
    manifest["fit"]["intervals"]["fields"]["scores"] = residuals


def _shrunk_by_less_than_nothing(manifest: dict[str, Any]) -> None:
    manifest["fit"]["intervals"]["fields"]["pseudo_rows"] = -1.0


CHANGES = (
    *(_one_class_more, _another_kind, _unknown_kind, _answers_otherwise),
    *(_scores_without_weights, _shrunk_by_less_than_nothing),
)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_whose_classes_do_not_fit_is_refused(change: Any, tmp_path: Path) -> None:
    X, y, groups = rows(2)
    path = tmp_path / "m.coterie"
    save(CoterieClassifier("linear", n_bootstrap=0).fit(X, y, groups=groups), path)
    load(path)
    _changed(path, change)
    with pytest.raises(PersistenceError):
        load(path)
