"""The paper's penalised within-cluster sum: W(K) / L + K lambda.

The lemma asks for max(1/n, u_n^4) = o(lambda), where u_n bounds the rate of the nonparametric candidates.
Ours is lambda = log(n) / n with n the median number of rows, which dominates both for rates of n^(-1/4) and
better. W(K) is divided by the number of learners, so that the penalty means the same for twenty learners
and for a thousand. As with the gap statistic, K = 1 is judged in the two columns of K = 2, because the
one-column embedding has no spread by construction.
"""

from __future__ import annotations

import numpy as np

from coterie.method.n_clusters.evidence import Evidence
from coterie.records import Curve


def penalty(evidence: Evidence) -> Curve:
    """Choose the K with the smallest within-cluster sum of squares per learner plus K log(n) / n.

    The sums of squares are those of k-means on the spectral embedding, in which similar learners lie close
    together; n is the median number of rows of a learner. The penalty makes a further cluster cost something.
    """
    # From a matrix of losses alone the sample sizes are not known: a hundred rows are assumed.
    typical_n_rows = 100.0 if evidence.n_rows is None else max(float(np.median(evidence.n_rows)), 3.0)
    n_clusters = np.arange(1, evidence.most + 1)
    penalised_sums = (
        evidence.within_sums / evidence.n_learners + n_clusters * np.log(typical_n_rows) / typical_n_rows
    )
    return Curve(
        rule="penalty",
        n_clusters=n_clusters,
        values=penalised_sums,
        chosen=int(penalised_sums.argmin()) + 1,
        criterion="within-cluster sum of squares per learner plus K log(n)/n (lower is better)",
    )
