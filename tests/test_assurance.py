"""The assurance case names tests and places in the code that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "guide" / "assurance.md").read_text()
NAMED = sorted(set(re.findall(r"`((?:tests|benchmarks)/[\w/.]+)`", PAGE)))
THREATS = ["A model file", "A message", "A table", "The page", "Private moments", "A liar"]


@pytest.mark.parametrize("path", NAMED)
def test_what_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_each_threat_has_a_boundary_and_tests_of_its_own() -> None:
    sections = dict(part.split("\n", 1) for part in PAGE.split("\n## ")[1:])
    assert list(sections)[:-1] == THREATS
    for threat in THREATS:
        for word in ("Threat", "Boundary", "Tests", "What remains"):
            assert sections[threat].count(f"**{word}.**") == 1, (threat, word)
        assert re.search(r"^- `tests/", sections[threat], re.MULTILINE), threat


def test_a_path_that_is_gone_would_be_seen() -> None:
    assert len(NAMED) > 20
    assert not (ROOT / "tests" / "no_such_test.py").exists()


def test_security_says_what_is_promised_what_is_not_and_how_to_report() -> None:
    heads = re.findall(r"^## (.*)$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)
    assert heads == ["What is promised", "What is not a vulnerability", "How to report"]
