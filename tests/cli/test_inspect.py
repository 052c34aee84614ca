import json
from pathlib import Path

import pytest
import sklearn

import coterie


def test_a_file_is_described_without_making_its_models(run, fitted, monkeypatch):
    monkeypatch.setattr("coterie.persistence.models.load_model", lambda *_: pytest.fail("a model was made"))
    monkeypatch.setattr("coterie.persistence.load_model", lambda *_: pytest.fail("a model was made"))
    about = json.loads(run("inspect", fitted, "--json").out)
    assert about["versions"]["coterie"] == coterie.__version__
    assert about["versions"]["scikit-learn"] == sklearn.__version__
    assert about["learners"] == {name: k % 2 for k, name in enumerate("abcdef")}
    assert (about["n_learners"], about["n_clusters"], about["rule"]) == (6, 2, "held-out")
    assert about["settings"]["candidates"] == ["lr"]
    assert about["predictors"] == ["x0", "x1"]
    assert about["table"]["target"] == "y"


def test_people_see_the_same(run, fitted):
    output = run("inspect", fitted).out
    assert "6 learners, 2 coteries, by held-out" in output
    assert "Target 'y', learners by 'site'" in output


def test_a_model_of_python_s_and_files_that_are_none(run, fitted, table):
    model = coterie.CoterieRegressor(candidates="lr", n_clusters=2)
    coterie.save(model.fit(table.select("x0", "x1"), table["y"], groups=table["site"]), "by-hand.coterie")
    assert "Predictors: x0, x1" in run("inspect", "by-hand.coterie").out
    assert "There is no file" in run("inspect", "none.coterie").complaint
    Path("cut.coterie").write_bytes(fitted.read_bytes()[:-50])
    assert "is damaged or cut short" in run("inspect", "cut.coterie").complaint


def test_the_folder_of_a_fit_stands_for_its_model(run, fitted):
    folder = str(fitted.parent)
    assert run("inspect", folder).out == run("inspect", fitted).out
    assert run("predict", folder, "table.csv").out == run("predict", fitted, "table.csv").out
    assert run("report", folder, "--out", "page.html").code == 0
    assert "are known already" in run("admit", folder, "table.csv").complaint
    assert "no conclusion yet" in run("predict", folder, "table.csv", "--name", "a").complaint
