"""The report page that stands beside a conclusion: the server's is common, a site's is its own."""

from __future__ import annotations

import logging
from pathlib import Path

from coterie.federated.conclusions import Conclusion
from coterie.report import Report

logger = logging.getLogger(__name__)

PAGE = "report.html"


def write_page(conclusion: Conclusion, folder: Path, site: str | None = None) -> None:
    """Write the page of a conclusion, or of one of its sites, to a folder; where that fails, say so."""
    try:
        # The page of an earlier run is no part of this conclusion.
        (folder / PAGE).unlink(missing_ok=True)
        Report(conclusion, site=site).write_html(folder / PAGE)
    except (ImportError, OSError) as error:
        logger.warning("There is no report page. %s", error)
