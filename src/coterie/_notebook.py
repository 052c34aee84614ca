"""What a notebook shows of a fitted model above scikit-learn's diagram: the answer in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# Sizes of the coteries that are listed.
MOST_SIZES = 12

# No colours of its own: the lines stand on a notebook's light or dark ground alike.
_BOX = "border-left:4px solid #0072B2;padding:.2em .9em;margin:.3em 0 .7em;line-height:1.5"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _coteries(labels: Array, n_clusters: int) -> str:
    sizes = np.bincount(labels[labels >= 0], minlength=n_clusters).tolist()
    shown = ", ".join(map(str, sizes[:MOST_SIZES])) + (", ..." if len(sizes) > MOST_SIZES else "")
    members = "member" if sizes == [1] else "members"
    return f"{_plural(len(labels), 'learner')} in {_plural(n_clusters, 'coterie')} of {shown} {members}"


def _saving(gain: Array) -> str:
    known = gain[np.isfinite(gain)]
    if not len(known):
        return ""
    typical = round(100 * float(np.median(known)))
    return (
        f"the coterie predicts {int((known > 0).sum())} of {len(known)} better than they do alone "
        f"(typical saving {typical}% of the error)".replace("-", "\N{MINUS SIGN}")
    )


def summary_html(labels: Array, n_clusters: int, rule: str, gains: Mapping[str, Any]) -> str:
    """Return the answer of a fitted model as a few lines of HTML.

    Parameters
    ----------
    labels : ndarray of shape (L,)
        Cluster of each learner; negative: none.
    n_clusters : int
        Number of clusters.
    rule : str
        What decided the number of clusters.
    gains : mapping of str to array-like of shape (L,)
        The table of gains; ``verdict`` may be missing.

    Returns
    -------
    str
        An element that needs no style sheet.
    """
    how = "as asked for" if rule == "given" else f"by the rule {rule}"
    lines = [f"<strong>{escape(_coteries(labels, n_clusters))}</strong>, {escape(how)}"]
    saving = _saving(np.asarray(gains["gain"], dtype=float))
    if saving:
        lines.append(escape(saving))
    if "verdict" in gains:
        counts = Counter(str(verdict) for verdict in gains["verdict"]).most_common()
        lines.append(escape(", ".join(f"{count} {verdict}" for verdict, count in counts)))
    lines.append("<code>coterie.Report(model)</code> shows why")
    return f'<div style="{_BOX}">{"<br>".join(lines)}</div>'
