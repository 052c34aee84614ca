"""Ids of any type stay what they are; what cannot be one is refused in a sentence."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from coterie.rows.ids import as_ids, id_array


def test_texts_that_numpy_would_shorten_stay_different() -> None:
    assert id_array(["a", "a\0"]).tolist() == ["a", "a\0"]


def test_a_long_text_does_not_lengthen_all_others() -> None:
    ids = id_array(["x" * 10_000, "y"])
    assert ids.dtype == object
    assert ids.tolist() == ["x" * 10_000, "y"]


def test_large_integers_of_both_signs_stay_integers() -> None:
    ids = [2**63, 2**63 + 1, -1]
    assert id_array(ids).tolist() == ids


@pytest.mark.parametrize(
    "groups", [np.ma.masked_array(["a", "b"], mask=[0, 1]), ["a", Decimal("sNaN")], [("a", None), ("a", 1)]]
)
def test_gaps_of_every_kind_are_counted(groups: Any) -> None:
    with pytest.raises(ValueError, match=r"fit must name a learner for every row\. 1 entry is missing"):
        as_ids(groups, "fit")


class NeverEqual:
    """Cannot be compared."""

    __hash__ = object.__hash__

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")


class Nameless:
    """Has no text."""

    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize("odd", [{}, NeverEqual(), Nameless()])
def test_what_cannot_be_an_id_is_refused(odd: Any) -> None:
    with pytest.raises(
        ValueError, match=rf"holds a {type(odd).__name__}, which cannot be an id .* by text or"
    ):
        as_ids(["a", odd], "fit")


def test_lists_of_different_lengths_are_no_ids() -> None:
    with pytest.raises(ValueError, match="The 'groups' argument of fit has entries of different lengths"):
        as_ids([np.ones(2), np.ones(3)], "fit")
