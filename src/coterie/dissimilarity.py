"""How unlike two learners are: the v of the paper, from losses."""

from __future__ import annotations

from typing import Any


def dissimilarity(there: Any, back: Any, row_errors: Any, column_errors: Any) -> Any:
    """Return v = |E[i,j] - e_j| + |E[j,i] - e_i|, what models lose on each other's rows beyond their own.

    ``there`` has the losses E[i,j] of the models in the rows, ``back`` the losses E[j,i] in the same places.
    The errors e broadcast against them. NumPy arrays and torch tensors alike.
    """
    return abs(there - column_errors) + abs(back - row_errors)
