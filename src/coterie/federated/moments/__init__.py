"""One message per site: second moments of its rows, noisy at a stated cost. The rest is arithmetic on them.

A site sends the second moments of (1, x, y) over two halves of its rows, once. Sums of moments give linear
models of pooled rows, and quadratic forms in them give losses, so that clusters, their number and their lines
at every resolution follow without another round. Where rows are scaled to a bounded length and the moments
carry Gaussian noise, all of that is post-processing: the epsilon of the message is the total.

A site learns, from its own rows, how much it takes from the lines of others and whether it pays.
That is never sent.
"""

from __future__ import annotations

from coterie.federated.moments.bends import knots_for
from coterie.federated.moments.conclude import Pooled, conclude_moments
from coterie.federated.moments.schema import Column, Schema, read_schema
from coterie.federated.moments.site import moments_of, open_moments
from coterie.federated.moments.site_model import PooledLines, SiteModel, pooled_lines, site_model

__all__ = [
    "Column",
    "Pooled",
    "PooledLines",
    "Schema",
    "SiteModel",
    "conclude_moments",
    "knots_for",
    "moments_of",
    "open_moments",
    "pooled_lines",
    "read_schema",
    "site_model",
]
