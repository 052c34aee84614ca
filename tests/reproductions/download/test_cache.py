import gzip
import hashlib
import os
from pathlib import Path

import pytest

from reproductions.download.cache import (
    fetch_member,
    file_checksum,
    record_checksum,
    verify_checksum,
    verify_record,
)
from reproductions.download.transfer import DatasetCorrupted, DatasetUnavailable


def test_the_checksum_is_of_the_content(tmp_path: Path) -> None:
    plain, packed = tmp_path / "a", tmp_path / "b"
    plain.write_bytes(b"content")
    packed.write_bytes(gzip.compress(b"content"))
    expected = hashlib.sha256(b"content").hexdigest()
    assert file_checksum(plain) == file_checksum(packed) == expected
    verify_checksum(plain, expected)
    with pytest.raises(DatasetCorrupted, match=r"a was altered .* instead of 00\); replace it"):
        verify_checksum(plain, "00")


def test_a_record_notices_a_change(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1\n")
    assert verify_record(path) is False
    record_checksum(path)
    assert verify_record(path) is True
    path.write_bytes(b"2\n")
    with pytest.raises(DatasetCorrupted, match=r"a\.csv was altered .* remove it to have it"):
        verify_record(path)


def test_an_empty_record_is_no_record(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"1\n")
    (tmp_path / "a.csv.sha256").touch()
    assert verify_record(path) is False


def test_a_member_is_fetched_once(server, empty_cache: Path) -> None:
    url = server.serve_zip("/a.zip", **{"table.csv": b"1,2\n", "other.csv": b"3\n"})
    digest = hashlib.sha256(b"1,2\n").hexdigest()
    path = fetch_member(url, "grid", "table.csv", digest)
    assert path == empty_cache / "grid" / "table.csv"
    assert path.read_bytes() == b"1,2\n"
    assert os.listdir(path.parent) == ["table.csv"]
    assert fetch_member(url, "grid", "table.csv", digest) == path
    assert server.requests == ["/a.zip"]


def test_a_fresh_download_drops_the_old_record(server, empty_cache: Path) -> None:
    url = server.serve_zip("/a.zip", **{"table.csv": b"1\n"})
    path = fetch_member(url, "grid", "table.csv")
    record_checksum(path)
    path.unlink()
    url = server.serve_zip("/a.zip", **{"table.csv": b"2\n"})
    assert verify_record(fetch_member(url, "grid", "table.csv")) is False


def test_members_never_become_paths(server, empty_cache: Path, tmp_path: Path) -> None:
    url = server.serve_zip("/a.zip", **{"../../escaped": b"bad", "table.csv": b"1\n"})
    fetch_member(url, "grid", "table.csv")
    assert not any("escaped" in str(path) for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            {"other.csv": b"1\n"},
            r"cannot be used \(it holds no file table\.csv\); try again, or set",
        ),
        (
            {"table.csv": b"other\n"},
            r"table\.csv downloaded from http.* was altered .* was deleted",
        ),
        (b"<html>log in first</html>", r"cannot be used \(File is not a zip file\)"),
    ],
)
def test_a_bad_archive_leaves_nothing(server, empty_cache: Path, body, sentence: str) -> None:
    if isinstance(body, bytes):
        url = server.serve("/a.zip", body)
    else:
        url = server.serve_zip("/a.zip", **body)
    with pytest.raises(DatasetCorrupted, match=sentence) as caught:
        fetch_member(url, "grid", "table.csv", "0" * 64)
    assert "COTERIE_DATA to a folder that has grid/table.csv." in str(caught.value)
    assert os.listdir(empty_cache / "grid") == []


def test_a_damaged_member_leaves_nothing(server, empty_cache: Path) -> None:
    url = server.serve_zip("/a.zip", **{"table.csv": b"0123456789" * 1000})
    body = bytearray(server.bodies["/a.zip"])
    body[45] ^= 0xFF
    server.bodies["/a.zip"] = bytes(body)
    with pytest.raises(DatasetCorrupted, match="cannot be used"):
        fetch_member(url, "grid", "table.csv")
    assert os.listdir(empty_cache / "grid") == []


def test_no_network_names_the_file_and_leaves_nothing(server, empty_cache: Path) -> None:
    with pytest.raises(DatasetUnavailable, match=r"a folder that has grid/table\.csv, or connect"):
        fetch_member(f"{server.address}/nothing", "grid", "table.csv")
    assert os.listdir(empty_cache / "grid") == []


def test_a_cache_that_cannot_be_made_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A file where the folder should be is an obstacle even for root.
    (tmp_path / "file").touch()
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "file"))
    with pytest.raises(DatasetUnavailable, match=r"cannot be written .* set COTERIE_CACHE to"):
        fetch_member("http://nowhere.invalid/", "grid", "table.csv")
