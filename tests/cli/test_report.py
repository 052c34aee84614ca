from pathlib import Path


def test_the_page_of_a_model_is_written_and_named(run, fitted):
    outcome = run("report", fitted, "--out", "page.html")
    assert outcome.code == 0
    assert outcome.out.strip() == "page.html"
    assert "<html" in Path("page.html").read_text()
    assert "exists" in run("report", fitted, "--out", "page.html").complaint


def test_models_and_places_that_are_none(run, fitted):
    assert "There is no file" in run("report", "none.coterie").complaint
    assert "no folder" in run("report", fitted, "--out", "no/where.html").complaint
