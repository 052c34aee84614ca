"""A site and its rows, as far as they are ever known: at the site."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie.federated.messages import ProtocolError, check_site
from coterie.method.select import select_models
from coterie.records import Selection
from coterie.rows.learners import Learners, gather_learners
from coterie.rows.tables import column_names

# Half of the digits of the largest number in a message, less some for the arithmetic on squares.
LARGEST_RESPONSE = 1e45


@dataclass(frozen=True)
class Party:
    """A site, its rows, and what Select found on them; never leaves the site.

    Its randomness derives from its name and the seed. ``learners`` has its rows, as the only learner.
    ``candidates`` are what competed. ``seen`` has what peers' models predict on these rows, or why they do
    not, by the model's sha256: a model is evaluated once, however many rounds there are. ``spent`` are the
    seconds that evaluating them took, of those that all models have together.
    """

    site: str
    learners: Learners = field(repr=False)
    selection: Selection = field(repr=False)
    columns: tuple[str, ...]
    target: str
    candidates: tuple[str, ...]
    seed: int
    seen: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    spent: list[float] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_features(self) -> int:
        """Number of predictors."""
        return self.learners.n_features


def _check_size(y: Any) -> None:
    """Refuse a response whose squares are too large for a message."""
    values = np.asarray(y)
    largest = float(np.abs(values).max()) if values.size and values.dtype.kind in "fiu" else 0.0
    if np.isfinite(largest) and largest > LARGEST_RESPONSE:
        raise ProtocolError(
            f"The response reaches {largest:.3g} in size, and messages hold {LARGEST_RESPONSE:g} at most: "
            "give it in other units, the same at all sites."
        )


def make_party(
    X: Any,
    y: Any,
    *,
    site: str,
    columns: Sequence[str] | None = None,
    target: str = "y",
    candidates: Any = "default",
    seed: int = 0,
    order: str | None = "auto",
) -> Party:
    """Select a model for a site's rows.

    Parameters
    ----------
    X : array-like or table of shape (n, p)
        Predictors.
    y : array-like of shape (n,)
        Response.
    site : str
        Name of the site; no two may have the same.
    columns : sequence of str or None, default=None
        Names of the predictors. None: those of the table, or x0, x1, ...
    target : str, default="y"
        Name of the response.
    candidates : str, list or dict, default="default"
        As for `CoterieRegressor`. Models that keep training rows cannot travel.
    seed : int, default=0
        Of everything random, together with the site's name.
    order : {"auto", None}, default="auto"
        As for `CoterieRegressor`. A site tests its own rows alone, so that it takes more rows or a stronger
        dependence to find it.

    Returns
    -------
    Party
        For `share`, `score` and `answer`.
    """
    check_site(site)
    _check_size(y)
    names = columns if columns is not None else column_names(X)
    groups = np.array([site] * len(y), dtype=object)
    learners = gather_learners(X, y, groups, caller="make_party")
    selection = select_models(learners, candidates=candidates, order=order, random_state=seed)
    found = [f"x{k}" for k in range(learners.n_features)] if names is None else [str(n) for n in names]
    if len(found) != learners.n_features:
        raise ValueError(f"{len(found)} names do not fit {learners.n_features} columns: pass one each.")
    texts = [candidates] if isinstance(candidates, str) else list(candidates)
    return Party(site, learners, selection, tuple(found), target, tuple(map(str, texts)), int(seed))
