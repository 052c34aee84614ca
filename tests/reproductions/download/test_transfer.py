import hashlib
import io
import os
import socket
import sys
import time
from pathlib import Path

import pytest

from coterie._files import write_whole
from reproductions.download.transfer import DatasetCorrupted, DatasetUnavailable, download

BODY = bytes(range(256)) * 1000


def test_a_good_download_is_the_file(server, tmp_path: Path) -> None:
    url = server.serve("/table.csv", BODY)
    destination = tmp_path / "new" / "table.csv"
    assert download(url, destination, hashlib.sha256(BODY).hexdigest()) == destination
    assert destination.read_bytes() == BODY
    assert os.listdir(destination.parent) == ["table.csv"]


def test_an_empty_file_is_a_file(server, tmp_path: Path) -> None:
    assert download(server.serve("/empty", b""), tmp_path / "empty").read_bytes() == b""


def test_the_checksum_may_be_in_capitals(server, tmp_path: Path) -> None:
    digest = hashlib.sha256(BODY).hexdigest().upper()
    assert download(server.serve("/a", BODY), tmp_path / "a", digest).exists()


def test_a_wrong_checksum_leaves_nothing(server, tmp_path: Path) -> None:
    url = server.serve("/table.csv", BODY)
    with pytest.raises(DatasetCorrupted) as caught:
        download(url, tmp_path / "table.csv", "0" * 64)
    assert "instead of 0000" in str(caught.value)
    assert "was deleted; try again, or set COTERIE_DATA" in str(caught.value)
    assert os.listdir(tmp_path) == []


def test_a_failed_download_keeps_the_older_file(server, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_bytes(b"old")
    with pytest.raises(DatasetUnavailable):
        download(server.serve("/table.csv", BODY, cut=True), tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["table.csv"]


def assert_one_sentence_with_both_remedies(error: DatasetUnavailable, wanted: str) -> None:
    text = str(error)
    assert f"set COTERIE_DATA to a folder that has {wanted}, " in text
    assert text.endswith("or connect to the internet and try again.")
    assert "\n" not in text
    assert "urlopen" not in text
    assert "Traceback" not in text
    # A chained error would print urllib's traceback above our sentence.
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_missing_page_is_one_sentence(server, tmp_path: Path) -> None:
    with pytest.raises(DatasetUnavailable, match=r"the server answered 404") as caught:
        download(f"{server.address}/nothing", tmp_path / "grid" / "table.csv")
    assert_one_sentence_with_both_remedies(caught.value, "grid/table.csv")
    assert os.listdir(tmp_path / "grid") == []


def test_a_refused_connection_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    # A port that was free a moment ago, and on which nobody listens.
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with pytest.raises(DatasetUnavailable, match="refused") as caught:
        download(f"http://127.0.0.1:{port}/a.zip", tmp_path / "a.zip", wanted="grid/table.csv")
    assert_one_sentence_with_both_remedies(caught.value, "grid/table.csv")
    assert os.listdir(tmp_path) == []


def test_an_unknown_host_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(DatasetUnavailable) as caught:
        download("http://nowhere.invalid/a", tmp_path / "a", wanted="grid/table.csv")
    assert_one_sentence_with_both_remedies(caught.value, "grid/table.csv")


def test_an_interrupted_body_leaves_nothing(server, tmp_path: Path) -> None:
    url = server.serve("/table.csv", BODY, cut=True)
    with pytest.raises(DatasetUnavailable, match="broke after 128000 of 256000 bytes") as caught:
        download(url, tmp_path / "grid" / "table.csv")
    assert_one_sentence_with_both_remedies(caught.value, "grid/table.csv")
    assert os.listdir(tmp_path / "grid") == []


def test_a_silent_server_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/a"
        start = time.monotonic()
        with pytest.raises(DatasetUnavailable, match=r"no answer within 0\.1 seconds") as caught:
            download(url, tmp_path / "grid" / "a", timeout=0.1)
        assert time.monotonic() - start < 5
    assert_one_sentence_with_both_remedies(caught.value, "grid/a")


def test_the_error_is_an_oserror() -> None:
    assert issubclass(DatasetUnavailable, OSError)
    assert issubclass(DatasetCorrupted, ValueError)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_gets_a_bar(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    download(server.serve("/table.csv", BODY), tmp_path / "table.csv")
    last = terminal.getvalue().split("\r")[-1]
    assert last == f"table.csv [{'#' * 30}] 100% 0.3 MB\n"


def test_a_pipe_gets_nothing(server, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    download(server.serve("/table.csv", BODY), tmp_path / "table.csv")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_no_standard_error_is_no_trouble(server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    assert download(server.serve("/a", BODY), tmp_path / "a").exists()


def test_a_file_appears_only_when_it_is_complete(tmp_path: Path) -> None:
    destination = tmp_path / "a"
    with write_whole(destination) as stream:
        stream.write(b"whole")
        assert not destination.exists()
    assert destination.read_bytes() == b"whole"


def test_an_interrupted_writer_leaves_nothing(tmp_path: Path) -> None:
    def write_half() -> None:
        with write_whole(tmp_path / "a") as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    assert os.listdir(tmp_path) == []
