"""What the README and the guide claim is run."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```(?:\n```\n(.*?)```)?", re.DOTALL)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if "```python" in page.read_text()], ids=lambda p: p.name
)
def test_code_on_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code, output in BLOCK.findall(page.read_text()):
        exec(compile(code, str(page), "exec"), names)
        printed = capsys.readouterr().out
        if output:
            assert printed.strip() == output.strip()


def test_the_two_commands_stand_at_the_top_of_the_readme():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:15])
    assert "make demo" in first_screen
    assert "make test" in first_screen


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target
