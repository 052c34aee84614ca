"""A matrix of losses that somebody else computed, as an exchange."""

from __future__ import annotations

from typing import Any

import numpy as np

from coterie._options import listed
from coterie.kernels.tiles import DenseTiles
from coterie.records import Exchange
from coterie.rows.tables import as_table


def exchange_from_losses(losses: Any, learner_ids: Any = None) -> Exchange:
    """Return the exchange of a precomputed matrix of losses; its diagonal gives errors and noise levels.

    Row i is the model of learner i on everybody. ``learner_ids`` default to the columns of a table, else to 0
    to L - 1.
    """
    table = as_table(losses)
    if learner_ids is None and table is not None:
        learner_ids = list(table.columns)
        names = getattr(losses, "index", None)
        if names is not None and set(names) == set(learner_ids):
            # pandas names the models too: their order need not be that of the learners.
            losses = losses.loc[learner_ids]
            table = as_table(losses)
        elif names is not None and not all(isinstance(name, int) for name in names):
            raise ValueError(
                "The index of the table of losses must name the same learners as its columns: "
                f"{listed(set(names) ^ set(learner_ids))} stands in one of them only."
            )
    matrix = np.asarray(losses if table is None else table.to_numpy(), dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not matrix.size:
        raise ValueError(
            "A precomputed matrix of losses must be square, models by learners. "
            f"Got the shape {matrix.shape}."
        )
    ids = np.arange(len(matrix)) if learner_ids is None else np.asarray(learner_ids)
    if len(ids) != len(matrix):
        raise ValueError(f"{len(ids)} learner ids do not fit {len(matrix)} learners: pass one each.")
    if len(set(ids.tolist())) < len(ids):
        twice = [i for i in dict.fromkeys(ids.tolist()) if ids.tolist().count(i) > 1]
        raise ValueError(f"Learner ids must differ: {listed(twice)} stands for several learners.")
    if (matrix < 0).any():
        raise ValueError("Losses must not be negative: pass mean squared errors, not scores.")
    finite = np.isfinite(matrix).all(axis=1)
    if not finite.any():
        raise ValueError("Every row of the matrix of losses has entries that are not finite.")
    errors = matrix.diagonal().copy()
    return Exchange(ids, DenseTiles(matrix), errors, np.where(finite, errors, np.nan), ~finite)
