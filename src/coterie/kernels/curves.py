"""Do curves pay? Asked once, of pooled rows, before clusters are refitted by a flexible family.

On few rows lines often win though the truth is curved; on the rows of many learners the curve shows. Were
only those clusters refitted whose members chose a flexible family, setting these members apart would look
like a discovery, and learners who see different parts of one curve would look like different lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from coterie._rows import Learners
from coterie._seeds import seeded_copy
from coterie.kernels.affine import affine_form
from coterie.kernels.fitting import fit_model, quiet_fits
from coterie.records import Exchange, Selection

Array = NDArray[Any]

# Groups in which the question is asked, beside all learners together.
MOST_GROUPS = 8
# Of more learners than this all are one group: a tree of all pairs would cost more than the answer is worth.
MOST_NEIGHBOURS = 2_000


def most_frequent(names: Iterable[str]) -> str:
    """Return the most frequent name, of equally frequent ones the first in the alphabet."""
    counts = Counter(names)
    return min(counts, key=lambda name: (-counts[name], name))


def neighbourhoods(exchange: Exchange) -> Array:
    """Return about sqrt(L) groups of learners whose models agree, eight at most, by average linkage on v."""
    n = len(exchange.learner_ids)
    if n < 3 or n > MOST_NEIGHBOURS:
        return np.zeros(n, dtype=np.int64)
    tree = linkage(squareform(exchange.dissimilarity, checks=False), "average")
    groups: Array = fcluster(tree, min(MOST_GROUPS, int(np.ceil(np.sqrt(n)))), "maxclust") - 1
    return groups.astype(np.int64)


def _is_curve(candidate: Any, learners: Learners) -> bool:
    """Tell whether a candidate, fitted on one learner's rows, is anything but affine; False if it fails."""
    rows = learners.span(int(learners.sizes.argmax()))
    try:
        with quiet_fits():
            fitted = fit_model(seeded_copy(candidate, 0), learners.X[rows], learners.y[rows])
    except Exception:
        return False
    return affine_form(fitted, learners.n_features) is None


def flexible_model(
    learners: Learners, selection: Selection, affine: Array, candidates: Sequence[Mapping[str, Any]] | None
) -> Any:
    """Return the flexible model that clusters may be refitted by, or None where nobody has one.

    Parameters
    ----------
    learners : Learners
        Everybody's rows.
    selection : Selection
        Of the same learners, in the same order.
    affine : ndarray of bool, shape (L,)
        Whose chosen model is affine.
    candidates : sequence of mapping or None
        Each learner's candidates; None: only what learners chose.

    Returns
    -------
    estimator or None
        The flexible family that most learners chose; where all chose lines, the flexible candidate that
        came nearest to the chosen ones.
    """
    curved = np.flatnonzero(~affine)
    if len(curved):
        family = most_frequent(selection.names[j] for j in curved)
        return next(selection.models[j] for j in curved if selection.names[j] == family)
    ratios: dict[str, list[float]] = {}
    models: dict[str, Any] = {}
    for j, mine in enumerate(candidates or ()):
        for name, candidate in mine.items():
            error = selection.candidate_errors[j].get(name)
            if error is not None and name not in selection.names:
                ratios.setdefault(name, []).append(error / max(selection.held_out_errors[j], 1e-300))
                models.setdefault(name, candidate)
    nearest = sorted(ratios, key=lambda name: (np.median(ratios[name]), name))
    curve = next((models[name] for name in nearest if _is_curve(models[name], learners)), None)
    # What learners chose has been given a seed; this one has not.
    return None if curve is None else seeded_copy(curve, 0)
