"""Eigengap: the largest drop between the sorted eigenvalues of S, as the paper's Algorithm 1 has it."""

from __future__ import annotations

import numpy as np

from coterie.method.n_clusters.evidence import Evidence
from coterie.method.spectral import top_eigenpairs
from coterie.records import Curve


def eigengap(evidence: Evidence) -> Curve:
    """Choose the number of clusters by the largest gap between eigenvalues of S."""
    count = min(evidence.most + 1, evidence.n_learners)
    values = evidence.spectrum.plain_values
    if values is None:
        values, _ = top_eigenpairs(np.asarray(evidence.similarity), None, count)
    # Behind the last eigenvalue known lies nothing: of all learners', or of what landmarks span.
    values = np.append(values[:count], np.zeros(max(0, evidence.most + 1 - len(values[:count]))))
    drops = values[: evidence.most] - values[1 : evidence.most + 1]
    return Curve(
        rule="eigengap",
        n_clusters=np.arange(1, len(drops) + 1),
        values=drops,
        chosen=int(drops.argmax()) + 1,
        criterion="drop to the next eigenvalue of the similarity (higher is better)",
    )
