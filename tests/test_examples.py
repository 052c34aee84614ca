"""Every example runs and saves its figures; the longer ones at fewer points than a reader sees."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

from coterie.datasets import local_copy

# The method in one file has no figures, and a test of its own.
EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("0*.py"))
DATA = {
    "03_air_stations": ("beijing_air", "beijing_air.parquet"),
    "04_attack_screening": ("grid_stability", "Data_for_UCI_named.csv"),
}
FEWER = {
    "03_air_stations": {"HOURS": 400},
    "04_attack_screening": {"ATTACKED": (0, 1, 49)},
    "05_fairness": {"WEIGHTS": (0.01, 2.0)},
    "07_newcomers": {"ROWS": (4, 30)},
    "08_heart_disease": {"SPLITS": 1},
}
# What an example is there to show.
SAYS = {
    "01_quick_start": ("30 learners, 3 coteries (by held-out)",),
    "04_attack_screening": (
        " 0 attacked: 1 coteries, mine has 50: exact",
        " 1 attacked: 2 coteries, mine has 49: exact",
        "49 attacked: 2 coteries, mine has 1: exact",
    ),
    "06_your_own_candidates": (
        "lines: 2 coteries, not the truth",
        "lines and splines: 3 coteries, exact",
    ),
    "08_heart_disease": ("nested coteries", "switzerland", "have one answer for"),
}


def opened(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def data_must_be_there(folder: str, filename: str) -> None:
    """Skip without the data, or fail where COTERIE_REQUIRE_ALL=1."""
    if local_copy(folder, filename) is None:
        reason = f"COTERIE_DATA is not set to a folder that has {folder}/{filename}"
        if os.environ.get("COTERIE_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_saves_its_figures(path, tmp_path, monkeypatch, capsys):
    if path.stem in DATA:
        data_must_be_there(*DATA[path.stem])
    example = opened(path)
    for name, value in FEWER.get(path.stem, {}).items():
        assert hasattr(example, name)
        monkeypatch.setattr(example, name, value)
    example.main(tmp_path / "figures")
    figures = list((tmp_path / "figures").glob("*.png"))
    assert figures
    for figure in figures:
        assert figure.stat().st_size > 5_000
    printed = capsys.readouterr().out
    for sentence in SAYS.get(path.stem, ("coterie",)):
        assert sentence in printed


def test_schools_are_generated_where_there_are_none(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    example = next(path for path in EXAMPLES if path.stem == "02_schools")
    opened(example).main(tmp_path)
    assert "these schools are generated" in capsys.readouterr().out
    assert (tmp_path / "schools.png").exists()


def test_hospitals_are_generated_where_there_are_none(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    example = opened(next(path for path in EXAMPLES if path.stem == "08_heart_disease"))
    monkeypatch.setattr(example, "SPLITS", 1)
    example.main(tmp_path)
    printed = capsys.readouterr().out
    assert "these hospitals are generated" in printed
    # There are two kinds. Half of Switzerland's patients are 25 rows, too few to tell in every split.
    assert "coteries of hospitals" in printed
    assert (tmp_path / "heart_disease.png").exists()


def test_air_stations_without_data_end_in_a_sentence(tmp_path, monkeypatch):
    monkeypatch.delenv("COTERIE_DATA", raising=False)
    example = next(path for path in EXAMPLES if path.stem == "03_air_stations")
    with pytest.raises(SystemExit, match="COTERIE_DATA names no folder"):
        opened(example).main(tmp_path)
