"""The page in a real browser: it fetches nothing, answers mouse and keyboard, fits a phone, is accessible."""

import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

from coterie import Report, cluster_learners

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
# A busy machine may take its time; nothing here measures it.
PATIENCE = 60_000
OPEN_ALL = "document.querySelectorAll('details').forEach(part => part.open = true)"
WIDTHS = [(390, 844, "light"), (390, 844, "dark"), (1440, 900, "light"), (1440, 900, "dark")]


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


@pytest.fixture
def visit(browser, tmp_path):
    """Opens the pages of reports; nothing may go wrong on them, and nothing be asked for."""
    complaints = []
    pages = []

    def show(report, **context):
        path = tmp_path / f"page-{len(pages)}.html"
        report.write_html(path)
        page = browser.new_page(**{"viewport": {"width": 1440, "height": 900}, **context})
        page.set_default_timeout(PATIENCE)
        page.on("console", lambda said: complaints.append(said.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(dialog.message), dialog.dismiss()))

        def note(request):
            if request.url != path.as_uri() and not request.url.startswith("data:"):
                complaints.append(f"asked for {request.url[:200]}")

        page.on("request", note)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]")
        pages.append(page)
        return page

    yield show
    for page in pages:
        page.close()
    assert complaints == []


def earlier(model):
    """Return the summary of a run in which everybody stood alone."""
    rows = [row | {"cluster": place} for place, row in enumerate(Report(model).summary["gains"])]
    return {"gains": rows}


@pytest.fixture(scope="module")
def reports(model, partition, losses, conclusion):
    """Every kind of page."""
    return {
        "model": Report(model),
        "against": Report(model, against=earlier(model)),
        "partition": Report(partition),
        "losses": Report(partition, losses=losses),
        "conclusion": Report(conclusion),
        "site": Report(conclusion, site="site 00"),
    }


KINDS = ("model", "against", "partition", "losses", "conclusion", "site")


@pytest.mark.parametrize(("width", "height", "theme"), WIDTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_answer_needs_no_scrolling_and_nothing_runs_off(visit, reports, kind, width, height, theme):
    page = visit(reports[kind], viewport={"width": width, "height": height}, color_scheme=theme)
    lead = page.locator(".lead").bounding_box()
    assert lead["y"] + lead["height"] < 0.7 * height
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=ARTEFACTS / f"{kind}-{width}-{theme}.png", full_page=True)
    page.evaluate(OPEN_ALL)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for link in page.locator("nav a").all():
        box = link.bounding_box()
        assert box["x"] + box["width"] <= width


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(visit, reports, kind, theme):
    if find_spec("axe_playwright_python") is None:
        pytest.skip("axe-playwright-python is not installed")
    from axe_playwright_python.sync_playwright import Axe

    page = visit(reports[kind], color_scheme=theme, bypass_csp=True)
    for _ in range(2):
        found = Axe().run(page, options={"resultTypes": ["violations"]})
        said = [f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found.response["violations"]]
        assert said == []
        page.evaluate(OPEN_ALL)


def test_a_learner_is_found_by_its_name(visit, reports):
    page = visit(reports["model"])
    page.fill("#search", "FEW rows")
    assert page.locator("#found").text_content() == "1 of 13 shown"
    assert page.locator(".card h3").all_text_contents() == ["few rows"]
    page.fill("#search", "<script>")
    assert page.locator(".card h3").all_text_contents() == ["<script>alert(1)</script>"]
    page.fill("#search", "nobody")
    assert "no such name" in page.locator("#found").text_content()
    page.fill("#search", "")
    assert page.locator(".card").count() == 3
    page.click("#more")
    assert page.locator(".card").count() == 13


def test_umlauts_need_not_be_typed(visit, losses):
    names = ["K\u00f6nigsbr\u00fcck", "Stra\u00dfe", "c", "d", "e", "f"]
    page = visit(Report(cluster_learners(losses, n_clusters=2, learner_ids=names)))
    for typed, name in (("konigsbruck", names[0]), ("STRASSE", names[1]), ("stra\u00dfe", names[1])):
        page.fill("#search", typed)
        assert page.locator(".card h3").all_text_contents() == [name]


def test_a_learner_by_itself_learns_with_what_it_takes_from_all(visit):
    partition = cluster_learners([[1, 1.1, 9], [1.1, 1, 9], [9, 9, 1]], n_clusters=2)
    for takes, whom in ((None, "nobody"), ([80, 0, 20], "all (adapted)")):
        report = Report(partition)
        cards = report.summary["cards"]
        cards["takes"] = ["its own model", "its coterie", "all (adapted)"]
        cards["rows"][2][9] = takes
        page = visit(report)
        page.fill("#search", "2")
        assert f"{whom}: it has a coterie of its own" in page.locator(".card").text_content()


def test_a_card_says_verdict_gain_company_and_sources(visit, reports):
    page = visit(reports["model"])
    page.fill("#search", "@ink")
    card = page.locator(".card").first.text_content()
    row = next(row for row in reports["model"].summary["cards"]["rows"] if row[0] == "@ink")
    for said in (row[2], row[4], f"between {row[5][0]} and {row[5][1]}", f"alone {row[7][0]}", "coterie "):
        assert said in card
    shares = [int(share) for share in re.findall(r"(\d+)% from", card)]
    assert sum(shares) == 100


def test_a_name_in_the_picture_leads_to_its_card(visit, reports):
    page = visit(reports["model"])
    button = page.locator(".forest button.name").nth(2)
    name = button.text_content()
    button.focus()
    page.keyboard.press("Enter")
    assert page.locator(".card h3").first.text_content() == name
    assert page.evaluate("document.activeElement.id") == "search"


def test_the_table_is_sorted_by_mouse_and_keyboard(visit, reports):
    page = visit(reports["model"])
    page.locator("#table summary").click()
    head = page.locator("#table th", has_text="Gain")
    head.locator("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    column = "#table tbody tr td:nth-child(4)"

    def gains():
        texts = page.locator(column).all_text_contents()
        # Who has no gain stands last, whichever way.
        assert texts[-1] == "\N{EN DASH}"
        return [float(text.rstrip("%").replace("\N{MINUS SIGN}", "-")) for text in texts[:-1]]

    assert gains() == sorted(gains(), reverse=True)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    assert gains() == sorted(gains())


def test_cells_of_the_heat_map_are_named_by_pointer_and_keys(visit, reports):
    page = visit(reports["model"])
    page.locator("#losses summary").click()
    box = page.locator("#cells").bounding_box()
    # The first model, on the rows of the last learner.
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 3)
    learners = next(part for part in reports["model"].summary["sections"] if part["id"] == "losses")["data"]
    said = page.locator("#cell").text_content()
    assert said.startswith(f"Model of {learners['learners'][0]} on the rows of {learners['learners'][-1]}: ")
    assert said.endswith("times its noise.")
    page.locator("#losses svg").focus()
    page.keyboard.press("ArrowDown")
    assert page.locator("#cell").text_content().startswith(f"Model of {learners['learners'][1]} on")


def test_everything_is_reached_by_keyboard(visit, reports):
    page = visit(reports["model"])
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
    assert {"theme", "search", "more", "SUMMARY", "A", "BUTTON"} <= reached


def test_the_theme_is_switched(visit, reports):
    page = visit(reports["model"])
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.click("#theme")
    assert page.locator("#theme").get_attribute("aria-pressed") == "true"
    assert page.evaluate(background) != light
    page.click("#theme")
    assert page.evaluate(background) == light


def test_paper_is_white_and_has_no_buttons(visit, reports):
    page = visit(reports["model"], color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    for hidden in ("nav", "#theme", ".tools"):
        assert not page.locator(hidden).is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")


def test_two_thousand_learners_stay_quick(visit, many_learners):
    partition, losses = many_learners(2000)
    page = visit(Report(partition, losses=losses))
    assert page.evaluate("document.querySelectorAll('*').length") < 5000
    page.fill("#search", "site 0042")
    assert page.locator("#found").text_content() == "1 of 2000 shown"
    page.locator("#table summary").click()
    page.locator("#table tbody tr").nth(1999).wait_for(state="attached")
    head = page.locator("#table th button").first
    head.click()
    head.click()
    assert page.locator("#table tbody th").first.text_content() == "site 1999"
    page.locator("#losses summary").click()
    box = page.locator("#cells").bounding_box()
    page.mouse.move(box["x"] + 1, box["y"] + 1)
    said = page.locator("#cell").text_content()
    assert re.search(r"on the rows of 8 learners, site \d{4} to site \d{4}", said)


def test_a_site_s_own_page_says_what_it_takes_from_whom(visit, reports, conclusion):
    page = visit(reports["site"])
    row = conclusion.gains[0]
    assert f"Verdict: {row.verdict}. {row.reason}" in page.locator("section#site").text_content()
    assert page.locator("#site .bars li").count() == 3
    assert page.locator(".card h3").all_text_contents() == ["site 00"]
    assert page.locator("#search").count() == 0


def test_a_notebook_frame_shows_the_page(browser, partition, tmp_path):
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><body>{Report(partition)._repr_html_()}</body>", encoding="utf-8")
    page = browser.new_page()
    page.set_default_timeout(PATIENCE)
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(path.as_uri())
    inside = page.frame_locator("iframe")
    inside.locator("html[data-ready]").wait_for()
    inside.locator("#theme").click()
    inside.locator("html[data-theme='dark']").wait_for()
    page.close()
    assert complaints == []
