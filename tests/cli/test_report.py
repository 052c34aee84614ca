"""The page of a model, and those of a concluded folder and of its sites."""

import json
import os
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from coterie import Report
from coterie.cli import report as command
from coterie.federated.folder import SealedFolder

from .test_conclude import SITES, concluded, concluded_once, forge, scored_once  # noqa: F401


def test_the_page_of_a_model_is_written_and_named(run, fitted):
    outcome = run("report", fitted, "--out", "page.html")
    assert outcome.code == 0
    assert outcome.out.strip() == "page.html"
    assert "<html" in Path("page.html").read_text()
    assert "exists" in run("report", fitted, "--out", "page.html").complaint


def test_a_run_is_compared_with_an_earlier_one(run, fitted):
    folder = str(Path(fitted).parent)
    outcome = run("report", fitted, "--out", "page.html", "--against", folder)
    assert outcome.out.splitlines()[1:3] == ["Nobody changed coteries.", "No verdict changed."]
    assert outcome.out.splitlines()[-1] == "page.html"
    assert "Against the earlier run" in Path("page.html").read_text()
    assert "There is no" in run("report", fitted, "--out", "p.html", "--against", "none").complaint
    assert "goes with MODEL" in run("report", "--folder", "box", "--against", folder).complaint


def test_models_and_places_that_are_none(run, fitted):
    assert "There is no file" in run("report", "none.coterie").complaint
    assert "no folder" in run("report", fitted, "--out", "no/where.html").complaint


def learners_on(page):
    """Return whose cards a page has."""
    stored = re.search(r'<script type="application/json" id="store">(.*?)</script>', page)[1]
    return sorted(row[0] for row in json.loads(stored)["cards"]["rows"])


def pages():
    return {path.name for path in Path("box").iterdir() if path.suffix != ".coterie"}


def test_the_page_of_a_conclusion_stands_beside_it(run, concluded):  # noqa: F811
    outcome = run("conclude", "--folder", "box")
    assert outcome.out.strip().endswith("box/report.html")
    page = Path("box/report.html").read_text()
    conclusion = SealedFolder("box").read().conclusion
    assert page == Report(conclusion).html()
    assert learners_on(page) == list(SITES)
    assert json.loads(run("conclude", "--folder", "box", "--json").out)["report"] == "box/report.html"
    assert run("report", "--folder", "box", "--out", "again.html").code == 0
    assert Path("again.html").read_text() == page


def test_the_page_is_written_where_it_is_wanted(run, concluded):  # noqa: F811
    for _ in range(2):
        assert run("conclude", "--folder", "box", "--report", "page.html").code == 0
    assert "<html" in Path("page.html").read_text()
    assert pages() == set()
    assert "give --report another place" in run("conclude", "--folder", "box", "--report", "no/p").complaint
    assert "give --report the name" in run("conclude", "--folder", "box", "--report", "box").complaint


def test_a_site_s_page_has_its_verdict_and_no_other_site_s_row(run, concluded):  # noqa: F811
    for row in SealedFolder("box").read().conclusion.gains:
        name = f"{row.learner}.html"
        outcome = run("report", "--folder", "box", "--name", row.learner, "--out", name)
        assert (outcome.code, outcome.out.strip()) == (0, name)
        page = Path(name).read_text()
        assert f"{row.learner}: {row.verdict}. {row.reason}" in page
        assert learners_on(page) == [row.learner]


def test_a_page_is_made_of_what_follows_from_the_folder(run, concluded):  # noqa: F811
    first = SealedFolder("box").read().conclusion.gains[0]
    rows = SealedFolder("box").read().conclusion.gains
    options = ("report", "--folder", "box", "--name", "a", "--force", "--out", "a.html")
    assert run(*options).code == 0
    honest = Path("a.html").read_text()
    # A number that no prediction is made of is not compared, and not shown.
    forge(run, gains=(type(first)(**{**vars(first), "gain": 0.987, "reason": "Trust me."}), *rows[1:]))
    assert run(*options).code == 0
    assert Path("a.html").read_text() == honest
    forge(run, gains=(type(first)(**{**vars(first), "verdict": "stay alone"}), *rows[1:]))
    assert "does not follow" in run(*options).complaint
    assert "needs --known-keys" in run(*options, "--concluder", "a").complaint
    os.remove("box/conclusion.coterie")
    assert "no conclusion yet" in run(*options).complaint


def test_without_the_extra_one_sentence_says_so(run, concluded, monkeypatch):  # noqa: F811
    monkeypatch.setattr(command, "find_spec", lambda name: None if name == "jinja2" else find_spec(name))
    outcome = run("conclude", "--folder", "box")
    assert outcome.code == 0
    said = "Note: there is no report page. The report page needs jinja2: install coterie's extra 'report'.\n"
    assert outcome.err == said
    assert pages() == set()
    assert "leave --report out" in run("conclude", "--folder", "box", "--report", "p.html").complaint
    assert "install coterie's extra 'report'." in run("report", "--folder", "box").complaint


def test_a_page_that_cannot_be_written_stops_no_conclusion(run, concluded):  # noqa: F811
    os.remove("box/conclusion.coterie")
    os.mkdir("box/report.html")
    outcome = run("conclude", "--folder", "box")
    assert outcome.code == 0
    assert "Note: The report page 'box/report.html' cannot be written" in outcome.err
    assert SealedFolder("box").read().conclusion is not None


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_link_in_the_folder_is_replaced_and_not_followed(run, concluded):  # noqa: F811
    Path("precious").write_text("mine")
    os.symlink(os.path.abspath("precious"), "box/report.html")
    assert run("conclude", "--folder", "box").code == 0
    assert Path("precious").read_text() == "mine"
    assert not Path("box/report.html").is_symlink()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "name one of them"),
        (("a.coterie", "--folder", "box"), "name one of them"),
        (("a.coterie", "--name", "a"), "go with --folder"),
        (("--folder", "none"), "no folder 'none'"),
        (("--folder", "box", "--name", "z"), "has no site 'z'"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run, concluded, options, words):  # noqa: F811
    assert words in run("report", *options).complaint


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes are of Unix")
def test_a_pipe_is_not_replaced(run, fitted):
    os.mkfifo("pipe")
    assert "is a device or a pipe" in run("report", fitted, "--out", "pipe", "--force").complaint
    assert Path("pipe").is_fifo()


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
@pytest.mark.parametrize("target", ["precious", "nowhere"])
def test_a_page_takes_the_place_of_a_link(target, run, fitted):
    Path("precious").write_text("mine")
    os.symlink(os.path.abspath(target), "page.html")
    assert "exists" in run("report", fitted, "--out", "page.html").complaint
    assert run("report", fitted, "--out", "page.html", "--force").code == 0
    assert not Path("page.html").is_symlink()
    assert Path("precious").read_text() == "mine"
    assert not Path("nowhere").exists()
