import errno
import os

import pytest

from coterie.cli.errors import CommandError
from coterie.cli.models import check_file, write_file


def test_a_file_appears_whole(tmp_path):
    write_file(tmp_path / "a.csv", b"x\n")
    assert (tmp_path / "a.csv").read_bytes() == b"x\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_full_disk_leaves_the_old_file(tmp_path, monkeypatch):
    write_file(tmp_path / "a.csv", b"old")

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(CommandError, match="No space is left"):
        write_file(tmp_path / "a.csv", b"new")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def test_files_and_folders_that_are_in_the_way(tmp_path):
    write_file(tmp_path / "a.csv", b"")
    with pytest.raises(CommandError, match="exists"):
        check_file(tmp_path / "a.csv", force=False)
    check_file(tmp_path / "a.csv", force=True)
    with pytest.raises(CommandError, match="is a folder"):
        check_file(tmp_path, force=True)
    with pytest.raises(CommandError, match="There is no folder"):
        check_file(tmp_path / "no" / "a.csv", force=False)
