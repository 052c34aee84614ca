"""Six sites whose response is a class: agreed by message, one of them with a single class, by commands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from coterie import CoterieClassifier
from coterie.federated.folder import SealedFolder

SITES = "abcdef"


@pytest.fixture
def box(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six sites of two truths; f has seen one class only, and a has a label that nobody else has."""
    monkeypatch.setenv("COTERIE_CACHE", str(here / "cache"))
    generator = np.random.default_rng(0)
    for k, site in enumerate(SITES):
        X = generator.normal(size=(60, 2))
        sick = generator.random(60) < 1 / (1 + np.exp(-2 * (1 if k % 2 else -1) * X[:, 0]))
        y = ["sick" if each and site != "f" else "well" for each in sick]
        if site == "a":
            y[:2] = ["odd", "odd"]
        pl.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "y": y}).write_csv(here / f"{site}.csv")
    (here / "box").mkdir()
    return here


def say(run: Any, command: str, site: str, *options: Any) -> Any:
    return run(command, f"{site}.csv", "--target", "y", "--name", site, "--folder", "box", *options)


def shared(run: Any) -> None:
    for site in SITES:
        assert say(run, "columns", site).code == 0
    assert "y has the classes sick, well." in run("agree", "--folder", "box").out
    for site in SITES:
        outcome = say(run, "share", site, "--candidates", "logistic")
        assert outcome.code == 0, outcome.err
    assert "2 of 60 rows have gaps" in say(run, "share", "a", "--candidates", "logistic").err


def test_six_sites_come_to_the_local_fit_without_moving_a_row(run: Any, box: Path) -> None:
    shared(run)
    for _ in range(6):
        for site in SITES:
            assert run("score", f"{site}.csv", "--name", site, "--folder", "box").code == 0
        outcome = run("conclude", "--folder", "box")
        if outcome.code == 0:
            break
    assert outcome.code == 0, outcome.err
    assert "Brier score alone" in outcome.out
    tables = [pl.read_csv(f"{site}.csv").with_columns(site=pl.lit(site)) for site in SITES]
    whole = pl.concat(tables).filter(pl.col("y") != "odd")
    X, y, groups = whole.select("x0", "x1").to_numpy(), whole["y"].to_numpy(), whole["site"].to_numpy()
    local = CoterieClassifier("logistic", refine="average").fit(X, y, groups=groups)
    conclusion = SealedFolder(box / "box").read().conclusion
    assert conclusion.labels == dict(zip(SITES, local.learner_labels_.tolist(), strict=True))
    for site in "af":
        predicted = run("predict", "box", f"{site}.csv", "--name", site, "--out", f"{site}_p.csv", "--force")
        assert predicted.code == 0, predicted.err
        found, rows = pl.read_csv(f"{site}_p.csv"), pl.read_csv(f"{site}.csv").select("x0", "x1").to_numpy()
        expected = local.predict_proba(rows, groups=[site] * len(rows))
        np.testing.assert_allclose(found["prediction_sick"], expected[:, 0], atol=1e-8)
        assert found["prediction"].to_list() == local.classes_[expected.argmax(axis=1)].tolist()
    page = (box / "box" / "report.html").read_text()
    assert "Brier score" in page
    assert "quared error" not in page
    own = run("report", "--folder", "box", "--name", "f", "--out", "f.html")
    assert own.code == 0, own.err
    assert "Brier score on rows not seen" in Path("f.html").read_text()


def test_what_is_revealed_of_classes_can_be_seen_before(run: Any, box: Path) -> None:
    said = say(run, "columns", "f", "--dry-run")
    assert "y: class; entries well" in said.out
    for site in SITES:
        say(run, "columns", site)
    run("agree", "--folder", "box")
    out = say(run, "share", "a", "--candidates", "logistic", "--dry-run").out
    assert "share of each class: sick" in out
    assert "Brier score of the model on its own rows" in out


def test_classes_that_nobody_agreed_on_are_refused(run: Any, box: Path) -> None:
    complaint = say(run, "share", "a", "--candidates", "logistic").complaint
    assert "have not agreed on them: run `coterie columns` at every site" in complaint
    say(run, "columns", "f")
    assert "Only the classes ['well']" in run("agree", "--folder", "box").complaint
    for site in SITES[:4]:
        say(run, "columns", site)
    say(run, "columns", "f", "--replace", "--task", "regression")
    assert "cannot take part unless the target is a class" in run("agree", "--folder", "box").err
    assert "--moments does not take classes" in say(run, "share", "a", "--moments").complaint
