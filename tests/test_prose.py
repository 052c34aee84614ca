"""What people read is plain: no sentence above 35 words, and none of the words that had to be read twice."""

import ast
import inspect
import pydoc
import re
from pathlib import Path

import pytest
import typer

from coterie.cli.app import app

ROOT = Path(__file__).parents[1]
LONGEST = 35
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    ROOT / "SECURITY.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *(page for shelf in ("benchmarks", "reproductions") for page in sorted((ROOT / shelf).rglob("*.md"))),
]
# Coined words and riddles, retired for good. In code they may be names, and code is not read here.
RETIRED = re.compile(
    r"\b(?:loners?|told|levelled|backed|settled|asked|attendance|standing|surprises?|(?:the|a) together"
    r"|(?:own|three|of|new|newcomers'?) ways|as sure as|so many|of which)\b",
    re.IGNORECASE,
)
QUOTED = (  # sentences that a reader had to read twice, as they stood
    "Common ones minimise the mean over learners of",
    "Where fewer did, lines search",
    "How many standard errors are as sure as",
    "a model that fails at some site stands alone",
)
ENDS = re.compile(r"(?<=[.!?])(?<!\.\.\.)(?<!al\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)(?<!s\.e\.)[)\"'*_]*\s+")


def paragraphs(page: str) -> list[str]:
    """Return what a page says in sentences: no code, tables, pictures or addresses."""
    page = re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)
    page = re.sub(r"^( *)(```|~~~).*?^\1\2 *$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"``.+?``|`[^`]+`", "", page)
    page = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", page)
    page = re.sub(r"\]\([^)]*\)", "", page).replace("[", "")
    page = re.sub(r"^ *\|.*$", "", page, flags=re.MULTILINE)
    page = re.sub(r"^ *(?:#+|[-*>]|\d+\.) +", "\n", page, flags=re.MULTILINE)
    return [" ".join(block.split()) for block in re.split(r"\n\s*\n", page) if block.strip()]


def sentences(page: str) -> list[str]:
    return [sentence for block in paragraphs(page) for sentence in ENDS.split(block)]


def too_long(text: str) -> list[str]:
    return [s for s in sentences(text) if len(re.findall(r"\S*[^\W\d_]\S*", s)) > LONGEST]


def of_this_version(changelog: str) -> str:
    """Return the newest section: what was released stays as it was written."""
    return "\n## ".join(changelog.split("\n## ")[:2])


def help_texts() -> list[tuple[str, str]]:
    """Return what `coterie --help` and every command's `--help` say."""
    group = typer.main.get_command(app)
    commands = {"coterie": group, **group.commands}
    texts = [(name, command.help or "") for name, command in commands.items()]
    for name, command in commands.items():
        texts += [(f"{name} {option.name}", getattr(option, "help", None) or "") for option in command.params]
    return texts


def docstrings() -> list[tuple[str, str]]:
    """Return what the reference says: the docstrings of public names and of what classes have in public."""
    texts = []
    for name in re.findall(r"^::: (\S+)$", (ROOT / "docs" / "api.md").read_text(), re.MULTILINE):
        thing = pydoc.locate(name)
        texts.append((name, inspect.getdoc(thing) or ""))
        members = inspect.getmembers(thing) if inspect.isclass(thing) else []
        for member, value in members:
            if not member.startswith("_") and (getattr(value, "__module__", None) or "").startswith(
                "coterie."
            ):
                texts.append((f"{name}.{member}", inspect.getdoc(value) or ""))
    return texts


def as_page(docstring: str) -> str:
    """Return a docstring without examples, names of parameters and lines under headings."""
    text = re.sub(r"^ *>>>.*?(?=\n\s*\n|\Z)", "", docstring, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"^ *(?:[-=]+|[\w*, ]+ : .*)$", "\n", text, flags=re.MULTILINE)


def messages(source: Path) -> list[str]:
    """Return what a file of the source may say to a user: its strings, without docstrings; X for values."""
    tree = ast.parse(source.read_text())
    silent = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    joined = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
    silent |= {id(part) for text in joined for part in text.values}
    plain = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in silent]
    texts = [str(node.value) for node in plain if isinstance(node.value, str)]
    return texts + [
        "".join(getattr(part, "value", "") if isinstance(part, ast.Constant) else "X" for part in text.values)
        for text in joined
    ]


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def faults(page: Path) -> list[str]:
    text = page.read_text()
    if page.name == "CHANGELOG.md":
        text = of_this_version(text)
    retired = [found for block in paragraphs(text) for found in RETIRED.findall(block)]
    return too_long(text) + retired + [sentence for sentence in QUOTED if sentence in " ".join(text.split())]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_has_short_sentences_and_no_retired_word(page):
    assert not faults(page)


@pytest.mark.parametrize(("place", "text"), [pytest.param(*found, id=found[0]) for found in help_texts()])
def test_the_help_has_short_sentences_and_no_retired_word(place, text):
    assert not too_long(text), place
    assert not RETIRED.findall(text), place


@pytest.mark.parametrize(("name", "text"), [pytest.param(*found, id=found[0]) for found in docstrings()])
def test_the_reference_has_short_sentences_and_no_retired_word(name, text):
    assert not too_long(as_page(text)), name
    assert not RETIRED.findall(re.sub(r"``.+?``|^ *[\w, ]+ : .*$", "", text, flags=re.MULTILINE)), name


def test_messages_have_short_sentences():
    sources = sorted((ROOT / "src" / "coterie").rglob("*.py"))
    assert not [found for source in sources for text in messages(source) for found in too_long(text)]


def headwords() -> list[str]:
    return re.findall(r"^\*\*([^*]+?)\.?\*\*", (ROOT / "docs" / "glossary.md").read_text(), re.MULTILINE)


def test_the_glossary_is_in_order_and_explains_what_pages_speak_of():
    words = [word.lower() for word in headwords()]
    assert words == sorted(words)
    explained = {word.split(" (")[0].split(" of a ")[0] for word in words}
    assert explained >= {"learner", "site", "cluster", "coterie", "gain", "verdict", "truth", "fold", "share"}
    pages = " ".join(page.read_text().lower() for page in PAGES if page.name != "glossary.md")
    assert not [word for word in explained if word not in pages], "nobody uses this word any more"


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_the_yardstick_measures(page):
    assert len(sentences((ROOT / page).read_text())) > 10
    assert too_long("word " * (LONGEST + 1) + ".")
    assert not too_long("word " * LONGEST + ". " + "Word " * LONGEST + ".")
    assert not too_long("Word `" + "code " * LONGEST + "`.")
