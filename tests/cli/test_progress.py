import io
import re
import warnings

import pytest

from coterie.cli.progress import PlainLines, duration, gathered_warnings, progress_bars
from coterie.engines import report


def test_lines_tell_of_a_stage_s_end_once():
    stream = io.StringIO()
    tell = PlainLines(stream)
    for done in (0, 1, 2, 2):
        tell("Select", done, 2)
    begin, end = stream.getvalue().splitlines()
    assert begin == "Select: models of each learner ..."
    assert end.startswith("Select: 2 of 2, ")


def test_lines_tell_now_and_then_how_far_it_is():
    stream = io.StringIO()
    tell = PlainLines(stream, between=0.0)
    tell("Select", 1, 3)
    assert re.search(r"Select: 1 of 3, \S+ s so far, about \S+ s left\n", stream.getvalue())


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.04, "0.0 s"), (12.4, "12 s"), (75, "1 min 15 s"), (7400, "2 h 3 min")]
)
def test_times_are_written_for_people(seconds, words):
    assert duration(seconds) == words


def test_away_from_a_terminal_there_are_lines_on_stderr(capsys):
    with progress_bars():
        report("Cluster", 3, 3)
    output = capsys.readouterr()
    assert output.out == ""
    assert "\nCluster: 3 of 3" in output.err


def test_warnings_become_notes_each_once():
    notes = ["known"]
    with gathered_warnings(notes):
        for text in ("known", "new", "new"):
            warnings.warn(text, UserWarning, stacklevel=1)
    assert notes == ["known", "new"]
