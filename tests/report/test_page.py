"""The page in a real browser: it draws, fetches nothing, answers the mouse and the keyboard, fits a phone."""

import html
import os
import re
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from coterie import Report

ROOT = Path(__file__).parents[2]
# Screenshots are kept here, for whoever wants to look.
ARTEFACTS = ROOT / "build" / "screenshots"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-sync",
    "--no-first-run",
]
SECTIONS = ("answer", "losses", "map", "why", "gains", "membership", "differences", "table", "settings")
# A busy machine may take its time; nothing here measures it.
PATIENCE = 300_000


@pytest.fixture(scope="module")
def browser():
    """Chromium; without it skip, or fail where COTERIE_REQUIRE_ALL=1."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        reason = "Chromium is not installed: apt-get install chromium"
        if os.environ.get("COTERIE_REQUIRE_ALL") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield chromium
        chromium.close()


class Visit:
    """A page that notes what went wrong on it."""

    def __init__(self, browser, address):
        self.complaints = []
        self.page = browser.new_page(viewport={"width": 1440, "height": 900}, color_scheme="light")
        self.page.set_default_timeout(PATIENCE)
        self.page.on("console", lambda said: self.complaints.append(said.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.complaints.append(dialog.message), dialog.dismiss()))
        self.page.on("request", self.note_request)
        self.address = address
        self.page.goto(address)
        self.page.wait_for_selector("html[data-drawn]")

    def note_request(self, request):
        if request.url != self.address and not request.url.startswith(("data:", "blob:")):
            self.complaints.append(f"asked for {request.url[:200]}")


@pytest.fixture(scope="module")
def written(model, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    Report(model).write_html(path)
    return path.as_uri()


@pytest.fixture(scope="module")
def visit(browser, written):
    """The page as a desktop shows it, shared by the tests that look at it."""
    visit = Visit(browser, written)
    yield visit
    assert visit.complaints == []
    visit.page.close()


@pytest.fixture
def width_and_theme(visit):
    """Shows the page so wide, on a system with this theme; afterwards as it was."""

    def show(width, theme):
        page = visit.page
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_selector(f"html[data-drawn='{theme}'][data-width='{width}']")

    yield show
    show(1440, "light")


@pytest.mark.parametrize(("width", "theme"), [(390, "light"), (390, "dark"), (1440, "light"), (1440, "dark")])
def test_every_section_is_there_at_every_width_in_both_themes(visit, width_and_theme, width, theme):
    width_and_theme(width, theme)
    page = visit.page
    for name in SECTIONS:
        box = page.locator(f"section#{name}").bounding_box()
        assert box is not None
        assert box["height"] > 50
        assert box["x"] + box["width"] <= width
    pictures = page.locator(".picture")
    assert pictures.count() == page.locator(".picture .main-svg:first-child").count() >= 7
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"report-{width}-{theme}.png", full_page=True)


def test_hovering_the_heat_map_names_the_learners(visit):
    page = visit.page
    page.locator("#figure-losses").scroll_into_view_if_needed()
    area = page.locator("#figure-losses .nsewdrag").bounding_box()
    # The first model, on the rows of the last learner.
    page.mouse.move(area["x"] + area["width"] - 8, area["y"] + 8)
    page.wait_for_selector("#figure-losses .hovertext")
    said = page.locator("#figure-losses .hovertext").text_content()
    assert "on the rows of" in said
    name = page.evaluate("document.getElementById('figure-losses')._fullLayout.yaxis.ticktext[0]")
    assert html.unescape(name)[:10] in said
    assert "times its noise" in said


def first_learner(page):
    return page.locator("#learners tbody tr:not([hidden]) th").first.text_content()


def test_the_table_is_sorted_by_mouse_and_keyboard(visit):
    page = visit.page
    head = page.locator("#learners th[data-key='gain']")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    column = "#learners tbody tr td:nth-child({})"
    place = page.locator("#learners thead th").evaluate_all(
        "heads => heads.findIndex(head => head.dataset.key === 'gain') + 1"
    )
    shown = "cells => cells.map(cell => cell.dataset.sort)"
    gains = page.locator(column.format(place)).evaluate_all(shown)
    known = [float(gain) for gain in gains if gain is not None]
    assert known == sorted(known, reverse=True)
    # Who has no gain stands last, whichever way.
    assert gains[-1] is None
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    gains = page.locator(column.format(place)).evaluate_all(shown)
    assert [float(gain) for gain in gains if gain is not None] == sorted(known)
    assert gains[-1] is None


def test_the_table_is_searched(visit):
    page = visit.page
    page.fill("#search", "FEW rows")
    assert page.locator("#found").text_content() == "1 of 13"
    assert first_learner(page) == "few rows"
    page.fill("#search", "<script>")
    assert first_learner(page) == "<script>alert(1)</script>"
    page.fill("#search", "")
    assert page.locator("#found").text_content() == "13 of 13"


def test_the_theme_is_switched_and_the_pictures_follow(visit):
    page = visit.page
    background = "getComputedStyle(document.body).backgroundColor"
    ink = "document.getElementById('figure-gains')._fullLayout.font.color"
    light = page.evaluate(background), page.evaluate(ink)
    page.click("#theme")
    page.wait_for_selector("html[data-drawn='dark']")
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    dark = page.evaluate(background), page.evaluate(ink)
    assert dark[0] != light[0]
    assert dark[1] != light[1]
    page.click("#theme")
    page.wait_for_selector("html[data-drawn='light']")
    assert (page.evaluate(background), page.evaluate(ink)) == light


def test_paper_is_white_and_has_no_buttons(visit):
    page = visit.page
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("nav").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.emulate_media(media="screen", color_scheme="light")


def test_two_thousand_learners_stay_responsive(browser, many_learners, tmp_path):
    partition, losses = many_learners(2000)
    path = tmp_path / "crowd.html"
    Report(partition, losses=losses).write_html(path)
    visit = Visit(browser, path.as_uri())
    page = visit.page
    assert page.locator("#learners tbody tr").count() == 2000
    assert page.evaluate("document.getElementById('figure-losses').data[0].z.length") <= 260
    page.locator("#learners th[data-key='learner'] button").click()
    page.locator("#learners th[data-key='learner'] button").click()
    assert first_learner(page) == "site 1999"
    page.fill("#search", "site 0042")
    assert page.locator("#found").text_content() == "1 of 2000"
    page.locator("#figure-losses").scroll_into_view_if_needed()
    area = page.locator("#figure-losses .nsewdrag").bounding_box()
    page.mouse.move(area["x"] + 3, area["y"] + 3)
    page.wait_for_selector("#figure-losses .hovertext")
    said = page.locator("#figure-losses .hovertext").text_content()
    assert re.search(r"on the rows of 8 learners, site \d{4} to site \d{4}", said)
    page.close()
    assert visit.complaints == []


def test_a_site_s_own_page_draws_what_it_takes_from_whom(browser, conclusion, tmp_path):
    path = tmp_path / "site.html"
    Report(conclusion, site="site 00").write_html(path)
    visit = Visit(browser, path.as_uri())
    page = visit.page
    row = conclusion.gains[0]
    assert f"Verdict: {row.verdict}. {row.reason}" in page.locator("section#site").text_content()
    assert page.locator("#figure-site .bars path").count() == 3
    assert page.locator("#learners tbody tr").count() == 1
    assert first_learner(page) == "site 00"
    assert not page.locator("#search").is_visible()
    page.locator("#figure-site").scroll_into_view_if_needed()
    bar = page.locator("#figure-site .bars path").first.bounding_box()
    page.mouse.move(bar["x"] + bar["width"] / 2, bar["y"] + bar["height"] / 2)
    page.wait_for_selector("#figure-site .hovertext")
    assert "site 00" in page.locator("#figure-site .hovertext").text_content()
    for width, theme in ((390, "dark"), (1440, "light")):
        page.emulate_media(color_scheme=theme)
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_selector(f"html[data-drawn='{theme}'][data-width='{width}']")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=tmp_path / f"site-{width}.png", full_page=True)
    page.close()
    assert visit.complaints == []


def test_a_conclusion_s_page_draws_all_that_it_has(browser, conclusion, tmp_path):
    path = tmp_path / "conclusion.html"
    Report(conclusion).write_html(path)
    visit = Visit(browser, path.as_uri())
    for name in ("why-held-out", "gains", "weights"):
        assert visit.page.locator(f"#figure-{name} .main-svg").count() > 0
    visit.page.close()
    assert visit.complaints == []


def test_a_notebook_frame_draws_the_page(browser, partition, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body>{Report(partition)._repr_html_()}</body>", encoding="utf-8")
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("html[data-drawn]").wait_for()
    inside.locator("#theme").click()
    inside.locator("html[data-drawn='dark']").wait_for()
    page.close()
    assert complaints == []
