"""Tables and READMEs as a person sees them."""

from dataclasses import replace
from pathlib import Path

import pytest

from reproductions.harness import HEADINGS, Table, find_experiment, known_experiments
from reproductions.harness.pages import readme_text, table_as_markdown, table_as_text

TABLE = Table("Title", ("b", "ours"), (("0.5", "1.20 (0.01)"), ("10", "9")), ("A note.",))
STAMP = {"version": "1.0", "seed": 3, "settings": {"b": [1]}}


def test_columns_of_text_are_aligned():
    assert table_as_text(TABLE).splitlines() == [
        "Title",
        "",
        "b           ours",
        "---  -----------",
        "0.5  1.20 (0.01)",
        "10             9",
        "",
        "A note.",
    ]


def test_markdown_keeps_a_bar_inside_its_cell():
    output = table_as_markdown(replace(TABLE, rows=(("a|b", "1"),)))
    assert "| a\\|b | 1 |" in output


def test_a_readme_has_the_fixed_headings_tables_figures_and_times(numbers):
    page = readme_text(
        numbers, STAMP, [TABLE], [Path("x/some_curve.png"), Path("x/some_curve.svg")], [2.0, 4.0]
    )
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert tuple(headings) == HEADINGS
    assert "![some curve](some_curve.png)" in page
    assert "some_curve.svg" not in page
    assert "| 0.5 | 1.20 (0.01) |" in page
    assert "- `b`: [1]" in page
    assert "3.0 s of processor time (median), the 2 together 6.0 s" in page
    assert "seed 3 with 2 replications" in page


def test_a_readme_without_a_heading_s_text_is_refused(numbers):
    lacking = {heading: text for heading, text in numbers.readme.items() if heading != HEADINGS[2]}
    with pytest.raises(ValueError, match=HEADINGS[2]):
        readme_text(replace(numbers, readme=lacking), STAMP, [], [], [1.0])


@pytest.mark.parametrize("name", known_experiments())
def test_every_experiment_has_text_under_every_heading(name):
    experiment = find_experiment(name)
    assert experiment.name == name
    page = readme_text(experiment, STAMP, [], [], [1.0])
    assert set(experiment.readme) <= set(HEADINGS)
    assert page.startswith(f"# {experiment.title}\n")


def test_an_unknown_experiment_is_answered_with_the_known_ones():
    with pytest.raises(ValueError, match="fairness, simulation1, simulation2, ct, grid"):
        find_experiment("fairnes")


def test_a_page_of_another_run_says_so_and_how_it_was_made(numbers):
    usual = {**STAMP, "seed": 0, "settings": numbers.settings}
    page = readme_text(numbers, usual, [], [], [1.0] * 4)
    assert "Made by `python -m reproductions numbers`, " in page
    assert "of another run" not in page
    page = readme_text(numbers, STAMP, [], [], [1.0] * 3)
    assert "Made by `python -m reproductions numbers --quick --seed 3 --replications 3`, " in page
    assert "written about `python -m reproductions numbers`, with its 4 replications" in page
