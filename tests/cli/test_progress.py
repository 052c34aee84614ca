import io
import warnings

from coterie.cli.progress import PlainLines, gathered_warnings, shown_progress
from coterie.engines import report


def test_lines_tell_of_a_stage_s_end_once():
    stream = io.StringIO()
    tell = PlainLines(stream)
    for done in (0, 1, 2, 2):
        tell("Select", done, 2)
    assert stream.getvalue().startswith("Select: 2 of 2, ")
    assert stream.getvalue().count("\n") == 1


def test_lines_tell_now_and_then_how_far_it_is():
    stream = io.StringIO()
    tell = PlainLines(stream, between=0.0)
    tell("Select", 1, 3)
    assert "Select: 1 of 3" in stream.getvalue()


def test_away_from_a_terminal_there_are_lines_on_stderr(capsys):
    with shown_progress():
        report("Cluster", 3, 3)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("Cluster: 3 of 3")


def test_warnings_become_notes_each_once():
    notes = ["known"]
    with gathered_warnings(notes):
        for text in ("known", "new", "new"):
            warnings.warn(text, UserWarning, stacklevel=1)
    assert notes == ["known", "new"]
