import datetime as dt

import numpy as np
import pytest

from coterie._options import brief, check_count, check_option, check_positive, listed


def test_an_unknown_option_lists_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"The 'refine' option must be one of 'pooled', None\. Got 'pool'\."):
        check_option("pool", "refine", ("pooled", None))


@pytest.mark.parametrize("value", ["pooled", "".join(["poo", "led"]), None])
def test_a_known_option_passes(value: object) -> None:
    check_option(value, "refine", ["pooled", None])


@pytest.mark.parametrize("value", [np.array(["pooled", "average"]), ["pooled"], 0, ""])
def test_what_cannot_be_compared_to_an_option_is_refused_in_the_same_sentence(value: object) -> None:
    with pytest.raises(ValueError, match="The 'refine' option must be one of"):
        check_option(value, "refine", ("pooled", None))


@pytest.mark.parametrize("value", [3, np.int64(3), np.uint8(3)])
def test_a_count_comes_back_as_a_plain_integer(value: object) -> None:
    count = check_count(value, "max_clusters")
    assert count == 3
    assert type(count) is int


@pytest.mark.parametrize("value", [0, -1, 2.0, "2", True, None, np.nan])
def test_what_is_no_count_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match=r"The 'max_clusters' option must be an integer of at least 1\. Got"):
        check_count(value, "max_clusters")


def test_the_least_count_can_be_set() -> None:
    assert check_count(0, "depth", least=0) == 0
    with pytest.raises(ValueError, match="at least 4"):
        check_count(3, "min_rows", least=4)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int64(2)])
def test_a_positive_number_comes_back_as_a_float(value: object) -> None:
    number = check_positive(value, "scale", "'noise'")
    assert number == 2.0
    assert type(number) is float


@pytest.mark.parametrize("value", [0, -1.5, np.nan, np.inf, True, "1", None, 1j, 10**400])
def test_what_is_no_positive_number_is_refused_with_the_alternatives(value: object) -> None:
    with pytest.raises(ValueError, match=r"'scale' option must be a positive number or 'noise'\. Got"):
        check_positive(value, "scale", "'noise'")


def test_names_are_joined_and_the_rest_counted() -> None:
    assert listed("abcde") == "'a', 'b', 'c', 'd', 'e'"
    assert listed("abcdefg") == "'a', 'b', 'c', 'd', 'e' and 2 more"
    assert listed([1, "1"], most=1) == "1 and 1 more"
    assert listed([]) == ""


def test_numpy_names_read_like_plain_ones() -> None:
    assert listed(np.array([1, 2])) == "1, 2"
    assert listed(np.array(["a"])) == "'a'"
    assert listed(np.array([1.5])) == "1.5"


def test_a_date_reads_as_a_date() -> None:
    assert "2020, 1, 2" in listed([dt.date(2020, 1, 2)])
    assert "2020-01-02" in listed(np.array(["2020-01-02"], dtype="M8[D]"))


def test_a_date_counted_in_nanoseconds_reads_as_a_date() -> None:
    assert "2020" in listed(np.array(["2020-01-02"], dtype="M8[ns]"))


def test_a_value_is_shown_in_one_short_line() -> None:
    class Nameless:
        def __repr__(self) -> str:
            raise RuntimeError("no")

    assert brief("a\x1b[31m\u202e\n") == r"'a\x1b[31m\u202e\n'"
    assert brief(Nameless()) == "<Nameless>"
    assert brief(10**5000) == "<int>"
    for value in (np.zeros((50, 50)), "x" * 1000):
        assert len(brief(value)) == 100
        assert "\n" not in brief(value)


def test_the_most_that_a_count_may_be_can_be_set() -> None:
    assert check_count(7, "n_bootstrap", least=0, most=7) == 7
    with pytest.raises(ValueError, match=r"at least 0 and at most 7\. Got 8"):
        check_count(8, "n_bootstrap", least=0, most=7)
