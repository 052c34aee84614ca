import os
from pathlib import Path

import pytest

from coterie.datasets import data_home, local_copy


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("COTERIE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert data_home() == tmp_path / ".cache" / "coterie"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert data_home() == tmp_path / "xdg" / "coterie"
    monkeypatch.setenv("COTERIE_CACHE", "~/mine")
    assert data_home() == tmp_path / "mine"
    assert os.listdir(tmp_path) == []


def test_a_local_copy_is_found_plain_or_compressed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    assert local_copy("grid", "a.csv") is None
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    assert local_copy("grid", "a.csv") is None
    (tmp_path / "grid").mkdir()
    (tmp_path / "grid" / "a.csv.gz").touch()
    assert local_copy("grid", "a.csv") == tmp_path / "grid" / "a.csv.gz"
    (tmp_path / "grid" / "a.csv").touch()
    assert local_copy("grid", "a.csv") == tmp_path / "grid" / "a.csv"
