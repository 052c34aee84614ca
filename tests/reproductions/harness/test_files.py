"""What is written is read back the same."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reproductions.harness.files import (
    JOURNAL,
    Replication,
    append_to_journal,
    differences,
    plain,
    read_finished,
    read_journal,
    read_results,
    results_text,
    write_finished,
)

SCALARS = st.one_of(
    st.integers(-(2**63), 2**63),
    st.floats(allow_nan=False),
    st.booleans(),
    st.sampled_from(["rf", "a,b", 'q"']),
)


@given(st.lists(st.fixed_dictionaries({"a": SCALARS, "b": SCALARS}), min_size=1, max_size=5))
def test_records_survive_a_round_trip(records):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "results.csv"
        path.write_text(results_text(records), newline="\n")
        assert read_results(path) == records


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=4), st.binary(max_size=30))
def test_the_journal_forgives_whatever_a_kill_leaves_behind(values, torn):
    with TemporaryDirectory() as name:
        folder = Path(name)
        append_to_journal(folder, Replication(0, 1.5, tuple({"x": value} for value in values)))
        with (folder / JOURNAL).open("ab") as stream:
            stream.write(b'{"replication": 7, "rec' + torn.replace(b"\n", b""))
        append_to_journal(folder, Replication(1, 2.5, ({"x": 0.0},)))
        found = read_journal(folder)
    assert set(found) == {0, 1}
    assert [record["x"] for record in found[0].records] == values


def test_records_of_different_kinds_share_a_file(tmp_path):
    write_finished(tmp_path, [Replication(1, 0.5, ({"a": 1}, {"b": "x"})), Replication(0, 0.25, ({"a": 2},))])
    assert (tmp_path / "results.csv").read_text() == "replication,a,b\n0,2,\n1,1,\n1,,x\n"
    finished = read_finished(tmp_path)
    assert finished[1] == Replication(1, 0.5, ({"a": 1}, {"b": "x"}))


def test_a_numpy_scalar_becomes_python_s_own():
    assert type(plain(np.float64(1.5))) is float
    assert type(plain(np.int64(1))) is int
    with pytest.raises(TypeError, match="scalars"):
        plain([1, 2])


def test_differences_are_named_by_the_innermost_setting():
    there = {"seed": 0, "settings": {"b": [1, 2], "rows": 5}}
    requested = {"seed": 0, "settings": {"b": (1, 2), "rows": 6}}
    assert differences(requested, there) == ["rows (5 there, 6 asked for)"]


@pytest.mark.parametrize(
    "line",
    [
        '{"replication": 1, "seconds": 1.0, "records": []}',
        '{"replication": 1, "seconds": 1.0, "records": "abc"}',
        '{"replication": "1", "seconds": 1.0, "records": [{"x": 1}]}',
        '{"replication": 1, "seconds": null, "records": [{"x": 1}]}',
    ],
)
def test_a_line_that_nobody_here_wrote_counts_as_not_there(tmp_path, line):
    (tmp_path / "journal.jsonl").write_text(line + "\n")
    assert read_journal(tmp_path) == {}


@pytest.mark.parametrize(
    "content", [b"replication,x\n0,1\n1", b"replication,x\n0,1,2\n", b"a\nfoo\n", b"\xff\xfe\x00"]
)
@pytest.mark.parametrize("name", ["results.csv", "seconds.csv"])
def test_a_damaged_file_is_named_with_the_way_out(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=rf"{name} is damaged .*: give --force"):
        read_finished(tmp_path)
