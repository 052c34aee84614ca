"""Take the pictures of a report that the README and the guide show: ``python docs/images/report.py``."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import polars as pl
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from coterie.cli.app import app
from coterie.datasets import make_linear_learners

HERE = Path(__file__).parent
NAMES = ("soil", "rain", "sun", "slope", "seed")
# Name, width, height, theme.
PICTURES = (
    ("report", 1180, 1500, "light"),
    ("report_dark", 1180, 1500, "dark"),
    ("report_phone", 390, 844, "light"),
)


def write_table(path: Path) -> None:
    """Write a table of thirty farms with three truths; one farm has a truth of its own."""
    truths = [0] * 13 + [1] * 10 + [2] * 6 + [3]
    rng = np.random.default_rng(0)
    rows = rng.permutation(np.geomspace(18, 150, 30).astype(int)).tolist()
    data = make_linear_learners(
        n_learners=30, n_truths=4, n_rows=rows, n_features=len(NAMES), labels=truths, random_state=3
    )
    farms = [f"farm {int(str(group).split()[-1]) + 1:02d}" for group in data.groups]
    harvest = 30 + 2 * data.y + 2 * rng.normal(size=len(data.y))
    table = pl.DataFrame(data.X, schema=list(NAMES)).with_columns(
        farm=pl.Series(farms), harvest=pl.Series(harvest)
    )
    table.write_csv(path)


def main() -> None:
    """Fit the table, open the page and take its pictures."""
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        write_table(folder / "farms.csv")
        options = ("--target", "harvest", "--group", "farm", "--unit", "tonnes", "--candidates", "linear")
        done = CliRunner().invoke(
            app, ["fit", str(folder / "farms.csv"), *options, "--out", str(folder / "o")]
        )
        assert done.exit_code == 0, done.output
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for picture, width, height, theme in PICTURES:
            page = browser.new_page(
                viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=1
            )
            page.goto((folder / "o" / "report.html").as_uri())
            page.wait_for_selector("html[data-ready]")
            page.screenshot(path=HERE / f"{picture}.png")
            page.close()
        browser.close()


if __name__ == "__main__":
    main()
