"""Results are whole or not there, nothing of the user's is removed, and two runs do not meet."""

import errno
import os
import stat
from dataclasses import replace

import pytest

from coterie.cli import folders
from coterie.cli.errors import CommandError
from coterie.cli.folders import MARK, RESULTS, Workplace

FIT = "0" * 32


def place_in(tmp_path):
    return Workplace(tmp_path / "out")


def write(place, name="labels.csv", text="new"):
    with replace(place, force=True).held(), place.writing() as folder:
        (folder / name).write_text(text)


def fail_with(place, error):
    with replace(place, force=True).held(), place.writing() as folder:
        (folder / "labels.csv").write_text("half")
        raise error


def leave_fit(place):
    """Leave what a run leaves that was killed after its first learner."""
    place.fits.mkdir(parents=True)
    (place.state / MARK).write_text("Process 1 on here\n")
    (place.fits / FIT).write_text("fit")


def names_in(folder):
    return sorted(os.listdir(folder))


def refusal(place, **options):
    with pytest.raises(CommandError) as caught:
        replace(place, **options).check()
    return str(caught.value)


def test_results_appear_at_once_and_nothing_else_is_left(tmp_path):
    place = place_in(tmp_path)
    with place.held(), place.writing() as folder:
        (folder / "labels.csv").write_text("new")
        assert not place.out.exists()
    assert (place.out / "labels.csv").read_text() == "new"
    assert names_in(tmp_path) == ["out"]


def test_a_failure_while_writing_leaves_the_old_results(tmp_path):
    place = place_in(tmp_path)
    write(place, text="old")
    with pytest.raises(RuntimeError):
        fail_with(place, RuntimeError())
    assert (place.out / "labels.csv").read_text() == "old"
    assert names_in(tmp_path) == ["out"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        # As polars says it.
        OSError("No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_a_sentence_and_leaves_nothing(tmp_path, error):
    place = place_in(tmp_path)
    with pytest.raises(CommandError, match="No space is left on the disk"):
        fail_with(place, error)
    assert names_in(tmp_path) == []


def test_old_results_are_replaced_whole_with_their_permissions(tmp_path):
    place = place_in(tmp_path)
    write(place, "gains.csv")
    place.out.chmod(0o750)
    write(place, "labels.csv")
    assert names_in(place.out) == ["labels.csv"]
    assert stat.S_IMODE(place.out.stat().st_mode) == 0o750


def test_results_are_replaced_by_force_only(tmp_path):
    place = place_in(tmp_path)
    place.check()
    write(place)
    assert "has results already" in refusal(place)
    replace(place, force=True).check()


def test_a_folder_with_files_of_others_is_refused_even_by_force(tmp_path):
    place = place_in(tmp_path)
    write(place)
    (place.out / "thesis.tex").write_text("")
    assert "holds 'thesis.tex', which is not a result of coterie" in refusal(place, force=True)


def test_a_link_or_a_folder_with_the_name_of_a_result_is_not_ours(tmp_path):
    place = place_in(tmp_path)
    place.out.mkdir()
    (place.out / "labels.csv").symlink_to(tmp_path / "elsewhere")
    assert "holds 'labels.csv'" in refusal(place, force=True)


def test_an_empty_folder_is_taken_and_a_file_is_not(tmp_path):
    place = place_in(tmp_path)
    place.out.mkdir()
    place.check()
    write(place)
    assert (place.out / "labels.csv").exists()
    assert "is a file" in refusal(Workplace(place.out / "labels.csv"), force=True)


def test_a_stopped_run_is_resumed_or_forgotten_but_never_by_accident(tmp_path):
    place = place_in(tmp_path)
    leave_fit(place)
    assert "go on with --resume" in refusal(place)
    replace(place, resume=True).check()
    # Nothing is removed before new results are there.
    replace(place, force=True).check()
    with replace(place, force=True).held():
        pass
    assert (place.fits / FIT).exists()
    with replace(place, force=True).held():
        place.forget_fits()
    assert names_in(tmp_path) == []


def test_a_run_that_was_killed_before_its_first_learner_is_in_nobody_s_way(tmp_path):
    place = place_in(tmp_path)
    (place.state / RESULTS).mkdir(parents=True)
    (place.state / MARK).write_text("")
    (place.state / RESULTS / "labels.csv").write_text("half")
    place.check()
    write(place)
    assert names_in(tmp_path) == ["out"]


def test_a_folder_of_that_name_without_our_mark_is_never_touched(tmp_path):
    place = place_in(tmp_path)
    place.fits.mkdir(parents=True)
    (place.fits / FIT).write_text("")
    for options in ({"force": True}, {"resume": True}, {}):
        assert "was not put there by coterie: move it" in refusal(place, **options)
    assert names_in(place.fits) == [FIT]


@pytest.mark.parametrize("where", ["thesis.tex", "fits/thesis.tex", "results/thesis.tex", "fits/folder/"])
def test_foreign_files_among_unfinished_work_are_never_touched(tmp_path, where):
    place = place_in(tmp_path)
    leave_fit(place)
    strange = place.state / where
    strange.parent.mkdir(exist_ok=True)
    strange.mkdir() if where.endswith("/") else strange.write_text("mine")
    for options in ({"force": True}, {"resume": True}, {}):
        assert str(strange) in refusal(place, **options)
    with pytest.raises(CommandError, match="was not put there"):
        write(place)
    assert strange.exists()
    assert (place.fits / FIT).exists()


@pytest.mark.parametrize("where", ["", "fits", "results", MARK])
def test_nothing_is_removed_through_a_link(tmp_path, where):
    place = place_in(tmp_path)
    target = tmp_path / "target"
    leave_fit(Workplace(tmp_path / "other"))
    (tmp_path / "other.unfinished").rename(target)
    if where:
        place.state.mkdir()
        (place.state / MARK).write_text("")
        (place.state / where).unlink(missing_ok=True)
        (place.state / where).symlink_to(target / where if where == MARK else target / "fits")
    else:
        place.state.symlink_to(target)
    for options in ({"force": True}, {"resume": True}):
        assert "move it" in refusal(place, **options)
        with (
            pytest.raises(CommandError, match="move it"),
            replace(place, **options).held(),
        ):
            place.forget_fits()
    assert (target / "fits" / FIT).exists()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner here")
def test_unfinished_work_of_somebody_else_is_not_used(tmp_path, monkeypatch):
    place = place_in(tmp_path)
    leave_fit(place)
    monkeypatch.setattr(os, "getuid", lambda: place.state.stat().st_uid + 1)
    assert "belongs to somebody else" in refusal(place, resume=True)


def test_a_folder_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match="cannot be written"):
        write(Workplace(tmp_path / "file" / "out"))
    assert "File name too long" in refusal(Workplace(tmp_path / ("a" * 300)))


def test_of_two_runs_one_wins_and_the_other_says_who_holds_the_folder(tmp_path):
    place = place_in(tmp_path)
    with place.held():
        said = f"Process {os.getpid()} on "
        for options in ({"force": True}, {"resume": True}, {}):
            assert refusal(place, **options).startswith(said)
        with pytest.raises(CommandError, match=said):
            write(Workplace(tmp_path / "out"))
        with place.writing() as folder:
            (folder / "labels.csv").write_text("first")
    assert (place.out / "labels.csv").read_text() == "first"
    assert names_in(tmp_path) == ["out"]


class Killed(BaseException):
    """Ends the test where a kill would end the process."""


@pytest.mark.parametrize("steps", [1, 2])
def test_old_results_come_back_where_a_kill_came_between_two_renames(tmp_path, monkeypatch, steps):
    place = place_in(tmp_path)
    write(place, text="old")
    monkeypatch.setattr(folders, "exchange", lambda *_: False)
    monkeypatch.setattr(Workplace, "_leave", lambda self: None)
    real, done = os.rename, []

    def killed(*paths):
        if len(done) == steps:
            raise Killed
        real(*paths)
        done.append(paths)
        if len(done) == steps:
            raise Killed

    monkeypatch.setattr(os, "rename", killed)
    with pytest.raises(Killed):
        write(place, text="new")
    monkeypatch.undo()
    assert place.out.exists() is (steps == 2)
    assert "has results already" in refusal(place)
    assert (place.out / "labels.csv").read_text() == ("old" if steps == 1 else "new")
    replace(place, force=True, resume=True).check()
    write(place, text="newest")
    assert (place.out / "labels.csv").read_text() == "newest"
    assert names_in(tmp_path) == ["out"]


def test_results_are_replaced_where_the_system_needs_two_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "exchange", lambda *_: False)
    place = place_in(tmp_path)
    write(place, text="old")
    write(place, text="new")
    assert (place.out / "labels.csv").read_text() == "new"
    assert names_in(tmp_path) == ["out"]


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
        Workplace(tmp_path / "out", **option).check()
    assert state.is_symlink() or state.read_text() == "mine"


def test_the_root_of_a_disk_is_no_folder_for_results():
    with pytest.raises(CommandError, match="is the root of a disk: give --out the name of a folder in it"):
        Workplace.named(os.path.abspath(os.sep))


def test_a_quota_of_nothing_leaves_nothing(tmp_path, monkeypatch):
    """As with `ulimit -f 0`: names can be made, and nothing be written."""

    def full(*_):
        raise OSError(errno.EFBIG, "File too large")

    place = place_in(tmp_path)
    monkeypatch.setattr(os, "write", full)
    monkeypatch.setattr(os, "ftruncate", full)
    with pytest.raises(CommandError, match="cannot be written"):
        fail_with(place, OSError(errno.EFBIG, "File too large"))
    assert names_in(tmp_path) == []
