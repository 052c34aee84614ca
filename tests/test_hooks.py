"""The site's hook: measurements become pages, and links suit both the site and the repository."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[1]
README = "benchmarks/quality/how_many/README.md"


@pytest.fixture
def hooks():
    if importlib.util.find_spec("mkdocs") is None:
        missing = "the site's tools are not installed: pip install '.[docs]'"
        pytest.fail(missing) if os.environ.get("COTERIE_REQUIRE_ALL") == "1" else pytest.skip(missing)
    spec = importlib.util.spec_from_file_location("site_hooks", ROOT / "docs" / "hooks.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Files:
    """The pages of a site."""

    def __init__(self, *paths):
        self.paths = paths

    def get_file_from_path(self, path):
        return path if path in self.paths else None


def rewritten(hooks, source, text):
    page = SimpleNamespace(file=SimpleNamespace(src_uri=source))
    return hooks.on_page_markdown(text, page, None, Files(README, "index.md", "guide/select.md"))


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("index.md", f"[a table](../{README})", f"[a table]({README})"),
        ("guide/select.md", f"[a table](../../{README}#x)", f"[a table](../{README}#x)"),
        ("index.md", "[a script](../examples/01_quick_start.py)", "a script"),
        ("index.md", "[a mistake](guide/selct.md)", "[a mistake](guide/selct.md)"),
        ("index.md", "[elsewhere](https://example.org)", "[elsewhere](https://example.org)"),
        (README, "[the command](run.py)", "the command"),
        (README, "[the guide](../../../docs/guide/select.md)", "[the guide](../../../guide/select.md)"),
    ],
)
def test_links_suit_the_site(hooks, source, text, expected):
    assert rewritten(hooks, source, text) == expected


def test_measurements_are_listed_under_the_page_that_introduces_them(hooks):
    config = SimpleNamespace(nav=[{"Start": "index.md"}, {"Benchmarks": ["benchmarks.md"]}])
    listed = hooks.on_config(config).nav[1]["Benchmarks"]
    assert listed[0] == "benchmarks.md"
    assert README in [path for entry in listed[1:] for path in entry.values()]


def test_a_shelf_that_is_not_there_lists_nothing(hooks, tmp_path, monkeypatch):
    monkeypatch.setattr(hooks, "ROOT", tmp_path)
    config = SimpleNamespace(nav=[{"Reproductions": ["reproductions.md"]}])
    assert hooks.on_config(config).nav == [{"Reproductions": ["reproductions.md"]}]
