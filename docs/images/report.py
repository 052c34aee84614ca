"""Take the picture of a report that the README and the guide show: ``python docs/images/report.py``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from coterie import CoterieRegressor, Report
from coterie.datasets import make_linear_learners

TARGET = Path(__file__).with_name("report.png")
SIZE = {"width": 1180, "height": 1500}


def fitted() -> CoterieRegressor:
    """Fit thirty sites with three truths, one of whose sites has a truth of its own."""
    truths = [0] * 13 + [1] * 10 + [2] * 6 + [3]
    data = make_linear_learners(n_learners=30, n_truths=4, n_rows=40, labels=truths, random_state=3)
    rng = np.random.default_rng(0)
    sites = np.array([f"site {int(str(group).split()[-1]) + 1:02d}" for group in data.groups])
    y = data.y + rng.normal(size=len(data.y))
    return CoterieRegressor(candidates="linear").fit(data.X, y, groups=sites)


def main() -> None:
    """Write the report, open it and take its picture."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "report.html"
        Report(fitted(), title="Thirty sites").write_html(path)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(300_000)
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-drawn]")
        page.screenshot(path=TARGET)
        browser.close()


if __name__ == "__main__":
    main()
