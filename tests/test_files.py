"""Files are whole or not there, and a kill leaves nothing that the next writer does not remove."""

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from coterie import _files
from coterie._files import exchange, remove_stale, write_bytes, write_whole

posix = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such signals and locks")

# Writes half of a file and is killed.
KILLED = """
import os, sys
from pathlib import Path
from coterie._files import write_whole

with write_whole(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    os.kill(os.getpid(), 9)
"""


def killed_writer(path):
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_file_takes_the_place_of_the_old_one_and_its_permissions(tmp_path):
    path = tmp_path / "a"
    write_bytes(path, b"old", mode=0o600)
    with write_whole(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path, monkeypatch, name):
    path = tmp_path / "a"
    write_bytes(path, b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, name, full)
    with pytest.raises(OSError, match="No space") as caught:
        write_bytes(path, b"new")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize("renames", [True, False], ids=["renames", "links only"])
def test_a_fresh_file_replaces_nothing(renames, tmp_path, monkeypatch):
    if not renames:
        monkeypatch.setattr(_files, "renameat2", lambda *_: False)
    write_bytes(tmp_path / "a", b"one", fresh=True)
    with pytest.raises(FileExistsError):
        write_bytes(tmp_path / "a", b"two", fresh=True)
    assert (tmp_path / "a").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


def test_a_fresh_file_where_there_are_no_links(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(_files, "renameat2", lambda *_: False)
    write_bytes(tmp_path / "a", b"one", fresh=True)
    with pytest.raises(FileExistsError):
        write_bytes(tmp_path / "a", b"two", fresh=True)
    assert (tmp_path / "a").read_bytes() == b"one"
    assert os.listdir(tmp_path) == ["a"]


@posix
def test_what_a_killed_writer_left_goes_with_the_next_one(tmp_path):
    killed_writer(tmp_path / "a")
    assert len(os.listdir(tmp_path)) == 1
    write_bytes(tmp_path / "b", b"")
    assert os.listdir(tmp_path) == ["b"]


@posix
def test_the_file_of_a_writer_that_is_at_work_stays(tmp_path):
    with write_whole(tmp_path / "a") as one:
        with write_whole(tmp_path / "b") as other:
            other.write(b"b")
        one.write(b"a")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"]


@posix
def test_nobody_else_s_temporary_file_is_removed(tmp_path):
    strange = [
        ".coterie-00000000-0123456789abcdef.tmp",
        f".coterie-{_files._mark()}-notes.tmp",
        "notes.tmp",
    ]
    for name in strange:
        (tmp_path / name).write_text("")
    ours = tmp_path / f".coterie-{_files._mark()}-0123456789abcdef.tmp"
    ours.symlink_to(tmp_path / "notes.tmp")
    remove_stale(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted([*strange, ours.name])
    remove_stale(tmp_path / "nowhere")


def _write_often(path):
    for _ in range(50):
        write_bytes(Path(path), os.urandom(50))


@posix
def test_writers_at_once_do_not_remove_each_other_s_files(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(str(tmp_path / "a"),)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0] * 4
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux exchanges names in one step")
def test_two_folders_change_places(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / name).write_text("")
    assert exchange(tmp_path / "a", tmp_path / "b")
    assert os.listdir(tmp_path / "a") == ["b"]
    assert os.listdir(tmp_path / "b") == ["a"]
    with pytest.raises(OSError, match="No such file"):
        exchange(tmp_path / "a", tmp_path / "c")


def test_a_system_that_cannot_exchange_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not exchange(tmp_path / "a", tmp_path / "b")


def test_nothing_else_in_the_source_puts_files_into_their_place():
    source = Path(_files.__file__).parent
    writers = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if any(call in path.read_text(encoding="utf-8") for call in ("os.replace(", "mkstemp(", ".tmp"))
    }
    # The sealed folder renames a file that it cannot read; results move as folders in cli/folders.py.
    assert writers == {"_files.py", "federated/folder.py"}
