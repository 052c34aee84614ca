"""A fitted model, its file, and a hand that changes files."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.persistence import save

Members = dict[str, bytes]


def read_members(path: Path) -> Members:
    with zipfile.ZipFile(path) as zipped:
        return {name: zipped.read(name) for name in zipped.namelist()}


def write_members(path: Path, members: Members, *, checksums: bool = True) -> None:
    """Write a zip as an attacker would, with checksums that are right."""
    members = dict(members)
    if checksums:
        manifest = json.loads(members["manifest.json"])
        manifest["checksums"] = {
            name: hashlib.sha256(content).hexdigest()
            for name, content in members.items()
            if name != "manifest.json"
        }
        members["manifest.json"] = json.dumps(manifest).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)


@pytest.fixture(scope="session")
def data() -> Any:
    return make_linear_learners(n_learners=6, n_truths=2, n_rows=30, n_features=3, random_state=0)


@pytest.fixture(scope="session")
def model(data: Any) -> CoterieRegressor:
    # One learner's model has no coefficients, so that the losses are stored.
    candidates = dict.fromkeys(data.learner_ids.tolist(), "linear") | {data.learner_ids[0]: "knn"}
    return CoterieRegressor(candidates, n_clusters=2).fit(data.X, data.y, groups=data.groups)


@pytest.fixture(scope="session")
def saved(model: CoterieRegressor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that tests read and do not change."""
    path = tmp_path_factory.mktemp("saved") / "model.coterie"
    save(model, path)
    return path


@pytest.fixture
def tampered(saved: Path, tmp_path: Path) -> Callable[..., Path]:
    """Copy the saved file with changed members, or with a changed manifest."""

    def change(
        members: Callable[[Members], object] | None = None,
        manifest: Callable[[dict[str, Any]], object] | None = None,
        *,
        checksums: bool = True,
    ) -> Path:
        content = read_members(saved)
        if manifest is not None:
            parsed = json.loads(content["manifest.json"])
            manifest(parsed)
            content["manifest.json"] = json.dumps(parsed).encode()
        if members is not None:
            members(content)
        path = tmp_path / "tampered.coterie"
        write_members(path, content, checksums=checksums)
        return path

    return change
