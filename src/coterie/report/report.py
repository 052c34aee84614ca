"""The public face: `Report`."""

from __future__ import annotations

import json
import os
import tempfile
import webbrowser
from collections.abc import Mapping
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from coterie._files import write_bytes
from coterie.report.against import read_run
from coterie.report.html import page
from coterie.report.subject import as_subject
from coterie.report.summarize import report_summary


def _write_in_one_step(path: Path, text: str) -> None:
    """Write a text file such that at its path stands the old file or the whole new one.

    So a failure in between never leaves half a page. A link is followed. A folder that is missing, or in the
    file's place, is refused.
    """
    target = path.resolve()
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no folder {str(target.parent)!r} to write the report in: make it first."
        )
    if target.is_dir():
        raise IsADirectoryError(f"{str(path)!r} is a folder: give Report.write_html the name of a file.")
    write_bytes(target, text.encode())


class Report:
    """A page about a fitted model: who learns with whom, why, and whether it pays.

    The page is one HTML file with its pictures, its style and its data inside. It works offline, in light and
    dark, on a phone and on paper. Pages need the extra ``report``; `json` does not.

    Parameters
    ----------
    model : CoterieRegressor, Partition or Conclusion
        A fitted model, what `cluster_learners` made from a matrix of losses, or what federated sites
        concluded. Sections whose numbers do not exist then say so.
    losses : Exchange, array-like of shape (L, L) or None, default=None
        For a partition, the losses that it was made from. None: its similarities are shown instead.
    title : str or None, default=None
        Heading of the page.
    site : str or None, default=None
        With a conclusion: the site whose own page this is, with its verdict and no other site's numbers.
    against : mapping, path or None, default=None
        An earlier run to compare with: its summary, or the folder of `coterie fit`. The page then says who
        moved, whose verdict changed and what became of the errors.

    Examples
    --------
    >>> from coterie import Report, cluster_learners
    >>> losses = [[1, 1.1, 9], [1.1, 1, 9], [9, 9, 1]]
    >>> report = Report(cluster_learners(losses, n_clusters=2), losses=losses)
    >>> "<html" in report.html()
    True
    """

    def __init__(
        self,
        model: Any,
        *,
        losses: Any = None,
        title: str | None = None,
        site: str | None = None,
        against: Mapping[str, Any] | str | os.PathLike[str] | None = None,
    ) -> None:
        if against is not None and site is not None:
            raise ValueError("A site's own page is about one site: compare runs on the page for all.")
        self._subject = as_subject(model, losses, site)
        self._title = title
        self._against = None if against is None else read_run(against)

    @cached_property
    def summary(self) -> dict[str, Any]:
        """All that the report says, as a dict of texts, numbers, lists and dicts."""
        return report_summary(self._subject, self._title, self._against)

    @cached_property
    def _page(self) -> str:
        return page(self.summary)

    def html(self) -> str:
        """Return the page.

        Returns
        -------
        str
            A whole HTML document.
        """
        return self._page

    def json(self) -> str:
        """Return what the report says, for a program.

        Returns
        -------
        str
            A JSON object; numbers that do not exist are null.
        """
        return json.dumps(self.summary, allow_nan=False)

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, in one step.

        Parameters
        ----------
        path : str or path-like
            The file; one that is there is replaced.
        """
        _write_in_one_step(Path(path), self.html())

    def open(self) -> Path:
        """Show the page in the browser.

        Returns
        -------
        Path
            The temporary file that the browser shows.
        """
        folder = Path(tempfile.mkdtemp(prefix="coterie-"))
        self.write_html(folder / "report.html")
        webbrowser.open((folder / "report.html").as_uri())
        return folder / "report.html"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for notebooks."""
        # A frame keeps the notebook's style and the page's apart, and its sandbox keeps the page from the
        # notebook.
        frame = 'width="100%" height="900" style="border:0" sandbox="allow-scripts allow-downloads"'
        return f'<iframe title="coterie report" {frame} srcdoc="{escape(self.html())}"></iframe>'

    def __repr__(self) -> str:
        return f"<Report: {' '.join(self.summary['answer'])}>"
