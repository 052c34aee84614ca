"""Two files that differ in one cell are sent as tables that differ in one row, and both are sent."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

TABLE = Path(__file__).parents[2] / "benchmarks" / "federated" / "neighbours.txt"
KINDS = ("CSV, raw", "CSV, quoted", "Excel", "Parquet, text", "Parquet, typed")
READERS = [(kind, "share") for kind in KINDS] + [(kind, "Flower") for kind in KINDS if kind != "Excel"]
# What text a cell may hold; a workbook is XML, which has no control characters.
PLAIN = st.characters(exclude_categories=("Cs", "Cc"))
MARKS = st.text(alphabet="\"',;\n\r\t0123456789.-+eExX_ |=@a\\", max_size=12)


@pytest.fixture(scope="module")
def folder(tmp_path_factory, neighbours):
    made = tmp_path_factory.mktemp("neighbours")
    (made / "schema.json").write_text(json.dumps(neighbours.SCHEMA))
    return made


@pytest.fixture(scope="module")
def compare(folder, neighbours):
    """Return what comes of a pair: the first file is the same each time, and is read once."""
    first = {}

    def compared(kind: str, reader: str, row: int, column: int, text: str) -> str:
        suffix, write = neighbours.WRITERS[kind]
        read, path, schema = neighbours.READERS[reader], folder / f"rows{suffix}", folder / "schema.json"
        if (kind, reader) not in first:
            write(path, neighbours.ROWS)
            first[kind, reader] = read(path, schema)
        write(path, neighbours.with_cell(row, column, text))
        return neighbours.outcome_of(kind, text, row, first[kind, reader], read(path, schema))

    return compared


@pytest.mark.parametrize(("kind", "reader"), READERS)
def test_one_cell_changes_one_row_and_a_message_exists(compare, neighbours, kind, reader):
    texts = st.one_of(st.sampled_from(neighbours.TEXTS), st.text(PLAIN, max_size=30), MARKS)
    if kind == "Excel":
        texts = texts.map(lambda text: text.replace("\r", "\n"))
    cells = st.tuples(st.sampled_from((0, 13, 29)), st.integers(0, 4), texts)

    @settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
    @given(cells)
    def kept(cell):
        assert compare(kind, reader, *cell) == "kept"

    kept()


def test_the_bound_is_seen_to_be_broken_where_it_is(neighbours):
    rows = np.eye(4)
    assert neighbours.outcome_of("Excel", "1", 1, rows, None) == "refused"
    assert neighbours.outcome_of("Excel", "1", 1, rows, rows[[0, 2, 3, 3]]) == "other rows changed"
    assert neighbours.outcome_of("Excel", "1", 1, rows, rows[[0, 0, 2, 3]]) == "kept"
    assert (
        neighbours.outcome_of("Excel", "1", 1, rows, np.where([[0], [1], [0], [0]], 2, 1) * rows)
        == "moved too far"
    )
    # A row that became two is allowed where a raw text has a line end, and nowhere else.
    assert neighbours.outcome_of("CSV, raw", "a\nb", 1, rows, rows[[0, 1, 1, 2, 3]]) == "kept"
    assert neighbours.outcome_of("Excel", "a\nb", 1, rows, rows[[0, 1, 1, 2, 3]]) == "other rows changed"


def test_the_committed_table_has_no_pair_that_breaks_the_bound():
    now, before = TABLE.read_text().split("\n\n")
    lines = [line.split() for line in now.splitlines() if line.startswith(("share", "Flower"))]
    assert len(lines) == len(READERS)
    for *_, pairs, kept, refused, other, far in lines:
        assert (int(kept), int(refused), int(other), int(far)) == (int(pairs), 0, 0, 0)
    assert "0.2" in before
