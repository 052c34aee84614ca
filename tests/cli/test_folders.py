"""Results are whole or not there, and nothing of the user's is overwritten."""

import errno

import pytest

from coterie.cli.errors import CommandError
from coterie.cli.folders import Workplace


def place_in(tmp_path):
    return Workplace(tmp_path / "out")


def write(place, name="labels.csv", text="new"):
    with place.writing() as folder:
        (folder / name).write_text(text)
    place.discard(finished_learners=True)


def fail_with(place, error):
    with place.writing() as folder:
        (folder / "labels.csv").write_text("half")
        raise error


def test_results_appear_at_once_and_nothing_else_is_left(tmp_path):
    place = place_in(tmp_path)
    with place.writing() as folder:
        (folder / "labels.csv").write_text("new")
        assert not place.out.exists()
    place.discard(finished_learners=True)
    assert (place.out / "labels.csv").read_text() == "new"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_while_writing_leaves_the_old_results(tmp_path):
    place = place_in(tmp_path)
    write(place, text="old")
    with pytest.raises(RuntimeError):
        fail_with(place, RuntimeError())
    place.discard(finished_learners=True)
    assert (place.out / "labels.csv").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path):
    place = place_in(tmp_path)
    with pytest.raises(CommandError, match="No space is left on the disk"):
        fail_with(place, OSError(errno.ENOSPC, "No space left on device"))
    place.discard(finished_learners=True)
    assert list(tmp_path.iterdir()) == []


def test_old_results_are_replaced_whole(tmp_path):
    place = place_in(tmp_path)
    write(place, "gains.csv")
    write(place, "labels.csv")
    assert [path.name for path in place.out.iterdir()] == ["labels.csv"]


def test_results_are_replaced_by_force_only(tmp_path):
    place = place_in(tmp_path)
    place.check(force=False, resume=False)
    write(place)
    with pytest.raises(CommandError, match="has results already"):
        place.check(force=False, resume=False)
    place.check(force=True, resume=False)


def test_a_folder_with_files_of_others_is_refused_even_by_force(tmp_path):
    place = place_in(tmp_path)
    write(place)
    (place.out / "thesis.tex").write_text("")
    with pytest.raises(CommandError, match=r"holds 'thesis\.tex', which is not a result of coterie"):
        place.check(force=True, resume=False)


def test_an_empty_folder_is_taken_and_a_file_is_not(tmp_path):
    place = place_in(tmp_path)
    place.out.mkdir()
    place.check(force=False, resume=False)
    write(place)
    assert (place.out / "labels.csv").exists()
    with pytest.raises(CommandError, match="is a file"):
        Workplace(place.out / "labels.csv").check(force=True, resume=False)


def test_a_stopped_run_is_resumed_or_forgotten_but_never_by_accident(tmp_path):
    place = place_in(tmp_path)
    place.fits.mkdir(parents=True)
    (place.fits / "one").write_text("")
    with pytest.raises(CommandError, match="go on with --resume"):
        place.check(force=False, resume=False)
    place.check(force=False, resume=True)
    place.discard(finished_learners=False)
    assert (place.fits / "one").exists()
    place.check(force=True, resume=False)
    assert not place.state.exists()


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="cannot be written"):
        write(Workplace(tmp_path / "file" / "out"))


@pytest.mark.parametrize("kind", ["file", "link", "link to nowhere"])
@pytest.mark.parametrize("option", [{}, {"force": True}, {"resume": True}])
def test_a_file_or_a_link_where_unfinished_work_goes_is_refused_and_kept(tmp_path, kind, option):
    state = tmp_path / "out.unfinished"
    if kind == "file":
        state.write_text("mine")
    else:
        (tmp_path / "elsewhere").mkdir()
        state.symlink_to(tmp_path / ("elsewhere" if kind == "link" else "nowhere"))
    with pytest.raises(CommandError, match="is a file or a link"):
        Workplace(tmp_path / "out").check(**{"force": False, "resume": False, **option})
    assert state.is_symlink() or state.read_text() == "mine"
