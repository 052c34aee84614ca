"""Take pictures of the start page of the site: ``python docs/images/landing.py``."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import sync_playwright

HERE = Path(__file__).parent
SHOTS = {
    "landing.png": ("light", {"width": 1440, "height": 900}),
    "landing-dark.png": ("dark", {"width": 1440, "height": 900}),
    "landing-phone.png": ("light", {"width": 390, "height": 844}),
}


class Quiet(SimpleHTTPRequestHandler):
    """Serve the site and say nothing of it."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main() -> None:
    """Build the site, open its start page and take its pictures."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder]
        subprocess.run(build, check=True, cwd=HERE.parents[1], env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
        # Served: the search box is hidden where a page is opened as a file.
        server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder))
        Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, (scheme, size) in SHOTS.items():
            page = browser.new_page(viewport=size, color_scheme=scheme)
            page.goto(f"http://127.0.0.1:{server.server_port}/")
            page.wait_for_load_state("networkidle")
            page.screenshot(path=HERE / name)
        browser.close()
        server.shutdown()


if __name__ == "__main__":
    main()
