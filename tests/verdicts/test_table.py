"""The table of gains: a mapping of columns that can be cut, sorted and handed on."""

import numpy as np
import pytest

from coterie.verdicts import Gains

NAN = float("nan")
GAINS = Gains(
    learner=np.array(["a", "b", "c", "d"]),
    gain=np.array([0.1, NAN, 0.3, 0.1]),
    verdict=np.array(["collaborate", "too few rows", "collaborate", "stay alone"]),
)


def learners(gains: Gains) -> list[str]:
    return gains["learner"].tolist()


def test_the_first_rows_have_all_columns() -> None:
    assert learners(GAINS.head(2)) == ["a", "b"]
    assert list(GAINS.head(2)) == list(GAINS)
    assert len(GAINS.head()["gain"]) == 4


def test_rows_are_sorted_by_a_column_and_those_without_an_entry_come_last() -> None:
    assert learners(GAINS.sort("gain")) == ["a", "d", "c", "b"]
    assert learners(GAINS.sort("gain", descending=True)) == ["c", "a", "d", "b"]
    assert learners(GAINS.sort("verdict")) == ["a", "c", "d", "b"]
    with pytest.raises(ValueError, match="'by' option must be one of 'learner', 'gain'"):
        GAINS.sort("loss")


def test_learners_are_found_by_one_id_or_several() -> None:
    north = Gains(learner=np.array(["south", "north"]), gain=np.array([0.1, 0.2]))
    assert north.of("north")["gain"].tolist() == [0.2]
    assert learners(north.of(["north", "south"])) == ["north", "south"]
    assert Gains(learner=np.array([7, 8])).of(8)["learner"].tolist() == [8]
    with pytest.raises(ValueError, match="There is no learner 'n', 'z' in the table"):
        north.of(["z", "south", "n"])
    with pytest.raises(KeyError, match="no column 'nope'; known columns: 'learner', 'gain'"):
        north["nope"]


def test_it_becomes_a_table_of_either_library() -> None:
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    assert isinstance(GAINS.to_pandas(), pd.DataFrame)
    assert GAINS.to_pandas()["gain"].tolist()[2] == 0.3
    assert isinstance(GAINS.to_polars(), pl.DataFrame)
    assert GAINS.to_polars().columns == ["learner", "gain", "verdict"]


def test_it_shows_itself_as_rows() -> None:
    assert str(GAINS.head(1)).split() == ["learner", "gain", "verdict", "a", "0.1", "collaborate"]
    assert repr(GAINS) == str(GAINS)
