"""NVFlare's cross-site matrix: a nested file in, coteries out."""

import json

import numpy as np
import polars as pl
import pytest

from coterie.cli.errors import CommandError
from coterie.cli.nvflare import is_score, read_losses

SITES = ("site-1", "site-2", "site-3", "site-4")


def results(score=False):
    """Sites 1 and 2 agree, and so do 3 and 4; model i on site j has 1 + i / 100 more or less."""
    matrix = {}
    for j, site in enumerate(SITES):
        losses = {model: (0.1 if i // 2 == j // 2 else 0.8) + i / 100 for i, model in enumerate(SITES)}
        matrix[site] = {m: {"metric": 1 - loss if score else loss} for m, loss in losses.items()}
        matrix[site]["SRV_FL_global_model.pt"] = {"metric": 0.4}
    return matrix


def write(folder, content):
    path = folder / "cross_val_results.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return str(path)


def complaint(path, metric=None, higher_is_better=False):
    with pytest.raises(CommandError) as caught:
        read_losses(path, metric, higher_is_better)
    return str(caught.value)


def test_row_i_is_the_model_of_site_i_and_the_server_is_left_out(tmp_path):
    losses, sites, notes = read_losses(write(tmp_path, results()), None, False)
    assert sites == list(SITES)
    np.testing.assert_allclose(losses[1], [0.11, 0.11, 0.81, 0.81])
    assert "SRV_FL_global_model.pt" in notes[0]


def test_scores_become_losses(tmp_path):
    losses, _, _ = read_losses(write(tmp_path, results(score=True)), None, True)
    np.testing.assert_allclose(losses, read_losses(write(tmp_path, results()), None, False)[0])


@pytest.mark.parametrize(
    ("name", "score"),
    [
        ("accuracy", True),
        ("val_acc", True),
        ("ROC-AUC", True),
        ("log_loss", False),
        ("val_loss", False),
        ("Cross Entropy", False),
        ("brier", False),
        ("metric", None),
        ("blossom", None),
    ],
)
def test_names_say_what_a_metric_is(name, score):
    assert is_score(name) is score


def test_a_matrix_of_classes_says_what_it_holds(tmp_path):
    losses = read_losses(write(tmp_path, results()), None, False)[0]
    renamed = json.loads(json.dumps(results(score=True)).replace('"metric"', '"accuracy"'))
    found, _, notes = read_losses(write(tmp_path, renamed), None, False)
    np.testing.assert_allclose(found, losses)
    assert notes[0] == "The matrix has 'accuracy', a score: one minus it is taken for the loss."
    renamed = json.loads(json.dumps(results()).replace('"metric"', '"log_loss"'))
    path = write(tmp_path, renamed)
    assert read_losses(path, None, False)[2][0] == "The matrix has 'log_loss', a loss: lower is better."
    assert "is a loss by its name" in complaint(path, None, True)


def test_a_score_taken_for_a_loss_is_noticed(tmp_path):
    assert any("--higher-is-better" in n for n in read_losses(write(tmp_path, results(True)), None, False)[2])
    assert not any("--higher" in n for n in read_losses(write(tmp_path, results()), None, False)[2])


def test_the_command_writes_labels_and_losses(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, results())
    outcome = run("fit", "--from-nvflare", path, "--n-clusters", "2", "--json", "--out", "out", "--no-report")
    assert outcome.code == 0
    summary = json.loads(outcome.out)
    assert [c["learners"] for c in summary["coteries"]] == [["site-1", "site-2"], ["site-3", "site-4"]]
    assert pl.read_csv("out/labels.csv")["cluster"].to_list() == [0, 0, 1, 1]
    assert pl.read_csv("out/losses.csv").columns == ["model of", *SITES]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["cross_val_results.json", "out"]


def test_files_that_are_something_else(tmp_path):
    assert "There is no file" in complaint(str(tmp_path / "none.json"))
    assert "cannot be read as JSON" in complaint(write(tmp_path, "{"))
    assert "does not hold {site" in complaint(write(tmp_path, [1]))
    assert "does not hold {site" in complaint(write(tmp_path, {"site-1": {"site-1": 3}}))


def test_a_missing_pair_or_metric_is_named(tmp_path):
    matrix = results()
    del matrix["site-2"]["site-3"]
    assert "of the model of 'site-3' on the data of 'site-2' is missing" in complaint(write(tmp_path, matrix))
    matrix = results()
    matrix["site-1"]["site-1"]["other"] = 1
    assert "one of the file's metrics: 'metric', 'other'. Got None" in complaint(write(tmp_path, matrix))


def test_only_the_server_s_model_or_a_score_above_one(tmp_path):
    only = {site: {"SRV_best": {"metric": 0.5}} for site in SITES}
    assert "has 0 sites with a model of their own" in complaint(write(tmp_path, only))
    matrix = results()
    matrix["site-1"]["site-1"]["metric"] = 3
    assert "exceeds 1" in complaint(write(tmp_path, matrix), higher_is_better=True)


def test_a_table_beside_it_is_refused(run, here):
    assert "give one of them" in run("fit", "table.csv", "--from-nvflare", "x.json").complaint
