import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from coterie import Report
from coterie.report.html import bars_of, page, policy

SCRIPT = re.compile(r"<script([^>]*)>(.*?)</script>", re.DOTALL)


class Elements(HTMLParser):
    """Collects the elements of a page with their attributes, and the text outside scripts and styles."""

    def __init__(self, html):
        super().__init__()
        self.found, self.text, self.inside = [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if not {"script", "style"} & set(self.inside):
            self.text.append(data)


@pytest.fixture(scope="module")
def html(model):
    return Report(model).html()


def test_the_page_fetches_nothing(html):
    elements = Elements(html)
    assert not [tag for tag, _ in elements.found if tag in ("link", "img", "iframe", "object", "embed")]
    for _, attributes in elements.found:
        for name in ("src", "srcset", "href", "action", "data"):
            inside = ("#", "data:image/png;base64,")
            assert name not in attributes or attributes[name].startswith(inside)
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style


def test_names_from_the_data_are_text(html):
    elements = Elements(html)
    # Ours are the JSON and the page's own script; nothing linked comes from a name.
    assert [tag for tag, _ in elements.found].count("script") == 2
    assert not [attributes for _, attributes in elements.found if "onerror" in attributes]
    assert all(attributes["href"].startswith("#") for tag, attributes in elements.found if tag == "a")
    text = "".join(elements.text)
    assert "<script>alert(1)</script>" in text
    assert "{{ 7 * 7 }}" in text
    assert "49" not in re.findall(r"\{\{.*?\}\}", text)


def test_the_data_cannot_leave_their_script(html):
    stored = next(body for attributes, body in SCRIPT.findall(html) if "application/json" in attributes)
    assert not re.search(r"[<>\u2028\u2029]", stored)
    store = json.loads(stored)
    assert len(store["cards"]["rows"]) == 13
    assert len(store["heat"]["cells"]) == 12


def test_the_policy_names_the_scripts_that_the_page_has(html):
    given = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1].replace("&#39;", "'")
    running = [body for attributes, body in SCRIPT.findall(html) if "json" not in attributes]
    hashes = [base64.b64encode(hashlib.sha256(body.encode()).digest()).decode() for body in running]
    assert given == policy(running)
    assert all(f"'sha256-{value}'" in given for value in hashes)
    assert "unsafe-eval" not in given
    assert given.startswith("default-src 'none'")


def test_every_section_stands_on_the_page_in_words(html, model):
    text = " ".join("".join(Elements(html).text).split())
    for section in Report(model).summary["sections"]:
        assert section["heading"] in text
        assert " ".join(section["words"][0].split()) in text


def test_the_title_is_escaped(partition):
    html = Report(partition, title="<img src=x>").html()
    assert "<title>&lt;img src=x&gt;" in html
    assert "<img" not in html[: html.index("<script")]


def test_a_number_that_is_not_json_fails_here(partition):
    summary = dict(Report(partition).summary)
    losses = next(section for section in summary["sections"] if section["id"] == "losses")
    losses["data"]["cells"][0][0] = float("nan")
    with pytest.raises(ValueError, match="JSON"):
        page(summary)


def test_reasons_stand_on_the_cards(model):
    summary = dict(Report(model).summary)
    rows = [[*row[:3], "its <data> disagree", *row[4:]] for row in summary["cards"]["rows"]]
    made = page(summary | {"cards": summary["cards"] | {"rows": rows}})
    assert made.count("its \\u003cdata\\u003e disagree") == 13


def test_a_page_is_small(html):
    assert len(html) < 200_000


def section(name, **data):
    return {"id": name, "data": data}


def test_bars_are_cut_into_parts_that_have_names():
    shares, names = [[0.334, 0.666, 0.0]], ["alone", "all", "others"]
    found = bars_of(section("weights", learners=["a"], names=names, shares=shares, alike=False))
    assert [part["name"] for part in found["legend"]] == ["alone", "all"]
    (row,) = found["rows"]
    assert row["said"] == "all: 67%, alone: 33%"
    assert [part["width"] for part in row["parts"]] == [33.4, 66.6]
    # Colours mean coteries: whom predictions come from is grey.
    assert all(part["colour"].startswith("var(--g") for part in found["legend"])


def test_learners_that_take_the_same_have_no_bars():
    data = {"learners": ["a", "b"], "names": ["alone", "all"], "shares": [[0.5, 0.5]] * 2}
    assert bars_of(section("weights", **data, alike=True)) is None


def test_memberships_have_the_colours_of_coteries():
    found = bars_of(section("membership", learners=["a"], membership=[[0.9, 0.1]]))
    assert [part["colour"] for part in found["legend"]] == ["var(--c0)", "var(--c1)"]
    assert bars_of(section("membership", learners=[], membership=[])) is None
    many = bars_of(section("membership", learners=["a"], membership=[[1.0] + [0.0] * 30]))
    assert many["legend"] == []


def test_a_site_s_sources_are_measured_against_the_largest():
    sources = {"learners": ["a", "b"], "weights": [0.8, 0.2]}
    rows = bars_of(section("site", sources=sources))["rows"]
    assert [row["parts"][0]["width"] for row in rows] == [100.0, 25.0]
    assert [row["said"] for row in rows] == ["80%", "20%"]
    assert bars_of(section("site", sources=None)) is None
    assert bars_of({"id": "weights", "data": None}) is None
