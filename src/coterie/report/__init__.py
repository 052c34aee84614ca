"""A fitted model as one page that works offline.

A report is a pipeline: a model becomes a plain dict (`summarize`), the dict becomes pictures (`figures`), and
both become a page (`html`). The page holds all that it needs, and fetches nothing.
"""

from __future__ import annotations

from coterie.report.report import Report

__all__ = ["Report"]
