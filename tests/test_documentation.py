"""What the README and the site claim is run, and their links lead somewhere."""

import importlib.util
import os
import re
import shlex
import sys
import warnings
from pathlib import Path

import pytest

import coterie
import coterie.displays
from coterie.cli.app import main

ROOT = Path(__file__).parents[1]
SITE = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [ROOT / "README.md", ROOT / "SECURITY.md", *SITE]
MEASURED = [page for shelf in ("benchmarks", "reproductions") for page in (ROOT / shelf).rglob("README.md")]
BLOCK = re.compile(
    r"^(?:<!-- needs (\w+) -->\n)?```(python|bash)\n(.*?)^```$(?:\n```\n(.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def is_there(library: str) -> bool:
    """Tell whether an optional library can be used; where all are required, its absence is a failure."""
    if importlib.util.find_spec(library) is not None:
        return True
    if os.environ.get("COTERIE_REQUIRE_ALL") == "1":
        pytest.fail(f"{library} is not installed")
    return False


def run_commands(lines: str) -> None:
    """Run commands as a shell would, in this process."""
    for line in lines.replace("\\\n", "").splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "coterie", f"only the coterie command is run here, not {line!r}"
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as end:
                main()
        assert end.value.code in (0, None), line


@pytest.mark.parametrize("page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=name_of)
def test_code_on_a_page_runs_and_prints_what_the_page_says(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for library, language, code, output in BLOCK.findall(page.read_text()):
        if library and not is_there(library):
            continue
        with warnings.catch_warnings():
            if library:  # what other libraries warn about is not ours
                warnings.simplefilter("ignore")
            if language == "bash":
                run_commands(code)
            else:
                exec(compile(code, str(page), "exec"), names)
        printed = capsys.readouterr().out
        if output:
            assert printed.strip() == output.strip()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_code_on_a_page_escapes_the_test_above(page):
    text = page.read_text()
    assert len(re.findall(r"^\s*(?:```|~~~)\s*(?:py|bash|sh|console)", text, re.MULTILINE)) == len(
        BLOCK.findall(text)
    )


def test_the_two_commands_stand_at_the_top_of_the_readme():
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:15])
    assert "make demo" in first_screen
    assert "make test" in first_screen


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) <= 60


def test_no_table_has_an_empty_head():
    for page in [*PAGES, *MEASURED]:
        heads = re.findall(r"^(\|.*\|)\n\|[-|: ]+\|$", page.read_text(), re.MULTILINE)
        assert not [head for head in heads if re.search(r"\| *\|", head)], page


@pytest.mark.parametrize("page", [*PAGES, *MEASURED], ids=name_of)
def test_links_between_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", SITE, ids=name_of)
def test_every_page_is_in_the_navigation(page):
    path = page.relative_to(ROOT / "docs").as_posix()
    assert re.search(rf"[:-] {re.escape(path)}$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in SITE if page.name != "index.md"], ids=name_of)
def test_a_page_begins_with_what_the_reader_can_do_after_it(page):
    assert "After this page" in "\n".join(page.read_text().splitlines()[:4])


@pytest.mark.parametrize("home", [coterie, coterie.displays], ids=lambda home: home.__name__)
def test_every_public_name_is_in_the_reference(home):
    reference = (ROOT / "docs" / "api.md").read_text().split()
    for name in home.__all__:
        assert name.startswith("__") or f"{home.__name__}.{name}" in reference, name
