"""Bring the committed measurements into the site: the READMEs of benchmarks and reproductions, with figures.

A README stays where its numbers are made and is a page of the site too. Links from pages to files of the
repository that are no part of the site become plain text, so that one source reads well in both places.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
SHELVES = {"Benchmarks": "benchmarks", "Reproductions": "reproductions"}
SHOWN = {".md", ".png", ".svg", ".csv"}
LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")


def _measured(shelf: str) -> list[str]:
    """Return the paths of a shelf's pages and figures, relative to the repository; pages have headings."""
    found = (path for path in sorted((ROOT / shelf).rglob("*")) if path.suffix in SHOWN)
    kept = (path for path in found if path.suffix != ".md" or path.name == "README.md")
    return [path.relative_to(ROOT).as_posix() for path in kept if path.parent != ROOT / shelf]


def _title(page: Path) -> str:
    heading = re.search(r"^# (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return heading.group(1) if heading else page.parent.name


def on_config(config: Any) -> Any:
    """List the READMEs in the navigation, under the page that introduces them."""
    for section in config.nav:
        for name, entries in section.items():
            if name in SHELVES:
                pages = [path for path in _measured(SHELVES[name]) if path.endswith(".md")]
                entries.extend({_title(ROOT / path): path} for path in pages)
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the READMEs and what they show, under their paths in the repository."""
    for shelf in SHELVES.values():
        for path in _measured(shelf):
            files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Point links at the pages of the site, and write what is only in the repository as text."""
    folder = posixpath.dirname(page.file.src_uri)
    # A README lies in the repository; a page lies in docs/.
    inside = page.file.src_uri.split("/")[0] in SHELVES.values()
    here = folder if inside else posixpath.join("docs", folder)

    def rewritten(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        path, _, anchor = target.partition("#")
        if "://" in target or not path:
            return match.group(0)
        normal = posixpath.normpath(posixpath.join(here, path))
        source = normal.removeprefix("docs/")
        if files.get_file_from_path(source) is None:
            # What leads nowhere at all is a mistake, and the strict build shall say so.
            only_in_repository = not normal.startswith("docs/") and (ROOT / normal).exists()
            return text if only_in_repository else match.group(0)
        relative = posixpath.relpath(source, folder or ".")
        return f"{mark}[{text}]({relative}{'#' + anchor if anchor else ''})"

    return LINK.sub(rewritten, markdown)
