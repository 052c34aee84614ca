"""Eigengap: the largest drop between the sorted eigenvalues of S, as the paper's Algorithm 1 has it."""

from __future__ import annotations

import numpy as np

from coterie.method.n_clusters.evidence import Evidence
from coterie.method.spectral import top_eigenpairs
from coterie.records import Curve


def eigengap(evidence: Evidence) -> Curve:
    """Choose the K after which the eigenvalues of the similarity S drop most.

    With K clear clusters the similarities are nearly K blocks, so that K eigenvalues are large. The curve
    has, for each K, the difference between the K-th and the next eigenvalue.
    """
    n_eigenvalues = min(evidence.most + 1, evidence.n_learners)
    eigenvalues = evidence.spectrum.plain_values
    if eigenvalues is None:
        eigenvalues, _ = top_eigenpairs(np.asarray(evidence.similarity), None, n_eigenvalues)
    # Eigenvalues that do not exist count as zero: S has L of them, and landmarks span fewer.
    eigenvalues = np.append(
        eigenvalues[:n_eigenvalues], np.zeros(max(0, evidence.most + 1 - len(eigenvalues[:n_eigenvalues])))
    )
    drops = eigenvalues[: evidence.most] - eigenvalues[1 : evidence.most + 1]
    return Curve(
        rule="eigengap",
        n_clusters=np.arange(1, len(drops) + 1),
        values=drops,
        chosen=int(drops.argmax()) + 1,
        criterion="drop to the next eigenvalue of the similarity (higher is better)",
    )
