import numpy as np
import pytest

from coterie._text import counted, display_name, joined, number, percent


@pytest.mark.parametrize(
    ("learner", "text"),
    [
        ("$a_b$", "$a_b$"),
        (np.int64(7), "7"),
        (np.str_("x"), "x"),
        ("a\n b\tc", "a b c"),
        ("\x00", "\N{REPLACEMENT CHARACTER}"),
        ("x" * 24, "x" * 24),
    ],
)
def test_names_are_printable(learner: object, text: str) -> None:
    assert display_name(learner) == text


def test_long_names_keep_their_ends_apart() -> None:
    first, second = (display_name(f"St. Mary's Hospital of the North, ward {k}") for k in (7, 8))
    assert first == "St. Mary's Hospi…ward 7"
    assert second.endswith("ward 8")
    assert max(len(first), len(second)) <= 24


def test_counted() -> None:
    assert [counted(n, "learner") for n in (0, 1, 2)] == ["0 learners", "1 learner", "2 learners"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1.00"),
        (0.73912, "0.739"),
        (18.66, "18.7"),
        (1234.5, "1,234"),
        (-2.5, "\u22122.50"),
        (1e-9, "1.00e\u221209"),
        (None, "\u2013"),
        (np.nan, "\u2013"),
    ],
)
def test_a_number_is_short(value, text):
    assert number(value) == text


def test_a_share_is_a_percentage():
    assert percent(0.374) == "37%"
    assert percent(-0.05, sign=True) == "\u22125%"
    assert percent(0.05, sign=True) == "+5%"
    assert percent(-50) == "< \u2212999%"
    assert percent(None) == "\u2013"


def test_names_are_joined():
    assert joined(["a"]) == "a"
    assert joined(["a", "b", "c"]) == "a, b and c"
    assert joined(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert joined([]) == ""


@pytest.mark.parametrize(
    ("gain", "text"),
    [
        (0.234, "+23%"),
        (-0.05, "\N{MINUS SIGN}5%"),
        (0.001, "0%"),
        (-0.001, "0%"),
        (np.nan, "\N{EN DASH}"),
        (-np.inf, "< \N{MINUS SIGN}999%"),
        (-50.0, "< \N{MINUS SIGN}999%"),
    ],
)
def test_gains_are_short_texts(gain: float, text: str) -> None:
    assert percent(gain, sign=True) == text
