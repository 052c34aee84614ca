"""Files that are damaged, hostile, or killed while they are written."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coterie import CoterieRegressor
from coterie.persistence import PersistenceError, archive, load, save
from coterie.persistence.archive import read_archive, write_archive


def assert_unchanged_or_refused(path: Path, original: tuple[dict[str, Any], dict[str, bytes]]) -> None:
    """A file either reads as the original does, or is refused in one sentence."""
    sentence = None
    try:
        read = read_archive(path)
    except PersistenceError as error:
        sentence = str(error)
    if sentence is None:
        assert read == original
    else:
        assert "\n" not in sentence
        assert sentence.endswith(".")


def test_a_file_cut_short_anywhere_is_refused(saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    path = tmp_path / "short.coterie"
    for end in [*range(60), *range(60, len(content), 997), *range(len(content) - 60, len(content))]:
        path.write_bytes(content[:end])
        with pytest.raises(PersistenceError, match=r"not a zip|damaged or cut short"):
            load(path)


@pytest.mark.parametrize("mask", [0x01, 0x80, 0xFF])
def test_a_flipped_byte_anywhere_is_found_or_harmless(mask: int, saved: Path, tmp_path: Path) -> None:
    content = saved.read_bytes()
    original = read_archive(saved)
    path = tmp_path / "flipped.coterie"
    # The structure of the zip lies at its end and in the local headers; numbers and text lie between.
    with zipfile.ZipFile(saved) as zipped:
        headers = [entry.header_offset for entry in zipped.infolist()]
        directory = zipped.start_dir
    places = {p for start in headers[:3] + headers[-2:] for p in range(start, start + 50)}
    places |= set(range(directory, len(content), 1 if mask == 0x80 else 5))
    places |= set(range(0, len(content), 1009))
    for place in sorted(places):
        changed = bytearray(content)
        changed[place] ^= mask
        path.write_bytes(changed)
        assert_unchanged_or_refused(path, original)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_damage_is_found_or_harmless(saved: Path, tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(saved.read_bytes())
    original = read_archive(saved)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(content)))
        end = start + data.draw(st.integers(0, 40))
        content[start:end] = data.draw(st.binary(max_size=40))
    path = tmp_path / "any.coterie"
    path.write_bytes(content)
    assert_unchanged_or_refused(path, original)


def test_a_file_with_a_harmless_flip_gives_the_same_model(
    saved: Path, model: CoterieRegressor, data: Any, tmp_path: Path
) -> None:
    content = bytearray(saved.read_bytes())
    content[10] ^= 0xFF  # the time of the first member, which nobody reads
    path = tmp_path / "flipped.coterie"
    path.write_bytes(content)
    expected = model.predict(data.X, groups=data.groups)
    np.testing.assert_array_equal(load(path).predict(data.X, groups=data.groups), expected)


def test_what_is_not_a_zip_is_refused(model: CoterieRegressor, tmp_path: Path) -> None:
    path = tmp_path / "model.coterie"
    for content in (pickle.dumps({"a": 1}), b"", b"{}", b"\x93NUMPY"):
        path.write_bytes(content)
        with pytest.raises(PersistenceError, match="it is not a zip"):
            load(path)
    np.savez(path.with_suffix(".npz"), a=np.arange(3))
    with pytest.raises(PersistenceError, match=r"has no manifest\.json"):
        load(path.with_suffix(".npz"))


def damaged_array(members: dict[str, bytes]) -> None:
    members["arrays.npz"] = members["arrays.npz"][:-30] + b"x" * 30


def add(name: str) -> Callable[[dict[str, bytes]], object]:
    return lambda members: members.update({name: b"x"})


@pytest.mark.parametrize(
    ("members", "checksums", "match"),
    [
        (damaged_array, False, r"checksum of 'arrays\.npz' is wrong"),
        (lambda m: m.pop("arrays.npz"), False, r"lacks its member 'arrays\.npz'"),
        (lambda m: m.pop("models/0.skops"), False, r"lacks its member 'models/0\.skops'"),
        (lambda m: m.pop("models/0.skops"), True, "cannot be made into a model"),
        (lambda m: m.pop("arrays.npz"), True, "cannot be made into a model"),
        (add("models/99.skops"), False, r"unknown member 'models/99\.skops'"),
        (add("readme.txt"), True, r"unknown member 'readme\.txt'"),
        (add("../../evil.skops"), True, r"unknown member '\.\./\.\./evil\.skops'"),
        (add("/etc/passwd"), True, "unknown member '/etc/passwd'"),
        (add("models/../../0.skops"), True, "unknown member"),
        (add("models/"), True, "unknown member 'models/'"),
        (lambda m: m.update({"manifest.json": b"\xff\xfe"}), False, "is not JSON"),
        (lambda m: m.update({"manifest.json": b"{"}), False, "is not JSON"),
        (lambda m: m.update({"manifest.json": b"[" * 100_000}), False, "is not JSON"),
        (lambda m: m.update({"manifest.json": b'{"format": NaN}'}), False, "is not JSON"),
        (lambda m: m.update({"manifest.json": b"[1]"}), False, "is not a JSON object"),
        (lambda m: m.update({"manifest.json": b"{}"}), False, "without a format version"),
        (lambda m: m.update({"manifest.json": b'{"format": true}'}), False, "without a format version"),
        (lambda m: m.update({"manifest.json": b'{"format": 0}'}), False, "without a format version"),
        (lambda m: m.update({"manifest.json": b'{"format": 5}'}), False, "without checksums"),
        (
            lambda m: m.update({"manifest.json": b'{"format": 5, "checksums": [3]}'}),
            False,
            "without checksums",
        ),
    ],
)
def test_members_that_do_not_belong_are_refused(
    members: Any, checksums: bool, match: str, tampered: Callable[..., Path]
) -> None:
    with pytest.raises(PersistenceError, match=match) as refusal:
        load(tampered(members, checksums=checksums))
    assert "\n" not in str(refusal.value)


def test_a_file_of_0_1_asks_for_a_new_fit(tampered: Callable[..., Path]) -> None:
    path = tampered(manifest=lambda manifest: manifest.update(format=1, coterie="0.1.0"))
    with pytest.raises(
        PersistenceError,
        match=r"written by coterie 0\.1\.0 in format 1, and this one reads format 5: fit the model again",
    ):
        load(path)


def test_a_newer_format_asks_for_an_update(tampered: Callable[..., Path]) -> None:
    def newer(members: dict[str, bytes]) -> None:
        # A newer format may have other members: the advice must not drown in what they are.
        members["future.bin"] = b"x"

    path = tampered(newer, lambda manifest: manifest.update(format=6, coterie="9.1"))
    with pytest.raises(PersistenceError, match=r"newer coterie \(9\.1, format 6; .*: update coterie\."):
        load(path)


def test_a_name_that_stands_twice_is_refused(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "twice.coterie"
    path.write_bytes(saved.read_bytes())
    with zipfile.ZipFile(path, "a") as zipped, pytest.warns(UserWarning, match="Duplicate name"):
        zipped.writestr("arrays.npz", b"")
    with pytest.raises(PersistenceError, match=r"holds 'arrays\.npz' more than once"):
        load(path)


def test_a_file_that_grows_out_of_proportion_is_refused(
    saved: Path, tmp_path: Path, tampered: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "bomb.coterie"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        zipped.writestr("manifest.json", b'{"format": 5}' + b" " * 30_000_000)
    with pytest.raises(PersistenceError, match="would unpack to 29 MiB"):
        load(bomb)

    def inner_bomb(members: dict[str, bytes]) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
            zipped.writestr("a0.npy", bytes(10_000_000))
        members["arrays.npz"] = packed.getvalue()

    with pytest.raises(PersistenceError, match="an archive that grows"):
        load(tampered(inner_bomb))
    monkeypatch.setattr(archive, "LARGEST", saved.stat().st_size)
    with pytest.raises(PersistenceError, match="would unpack to 1 MiB"):
        load(saved)
    monkeypatch.setattr(archive, "LARGEST", 1_000)
    with pytest.raises(PersistenceError, match="is larger than"):
        load(saved)


def lying(members: dict[str, bytes], name: str, tail: bytes, stored: bool = False) -> bytes:
    """Make a zip in which a member goes on behind the size that the zip declares."""
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as zipped:
        for member, part in members.items():
            more = part + tail * (member == name)
            method = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            zipped.writestr(zipfile.ZipInfo(member), more, method, compresslevel=9)
    whole = bytearray(content.getvalue())
    length, place = len(members[name]), 0
    for mark, sum_at, names_at in ((b"PK\3\4", 14, 30), (b"PK\1\2", 16, 46)):
        while (place := whole.find(mark, place)) >= 0:
            if whole[place + names_at : place + names_at + len(name)] == name.encode():
                crc = zlib.crc32(members[name])
                struct.pack_into("<I", whole, place + sum_at, crc)
                struct.pack_into("<I", whole, place + sum_at + 8, length)
            place += 4
        place = 0
    return bytes(whole)


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("name", ["manifest.json", "arrays.npz"])
def test_a_member_longer_than_declared_is_refused_and_not_made(
    name: str, stored: bool, saved: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(saved) as zipped:
        members = {member: zipped.read(member) for member in zipped.namelist()}
    path = tmp_path / "longer.coterie"
    tail = bytes(1000 if stored else 200_000_000)
    path.write_bytes(lying(members, name, tail, stored))
    del tail
    tracemalloc.start()
    try:
        with pytest.raises(PersistenceError, match=f"its member '{name}' is not what the zip says"):
            read_archive(path)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2**25


@pytest.mark.skipif(sys.platform == "win32", reason="devices and pipes")
def test_what_has_no_end_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(PersistenceError, match=r"is no plain file: check the path\."):
            load(path)


@pytest.mark.parametrize("piece", [b"[],", b"{},", b"0,", b'"\\u005b",'])
def test_a_manifest_of_too_many_values_is_not_parsed(
    piece: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bomb = tmp_path / "bomb.coterie"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as zipped:
        zipped.writestr("manifest.json", b'{"format": 1, "x": [' + piece * 1_000_000 + b"0]}")
    monkeypatch.setattr(archive.json, "loads", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(PersistenceError, match="more lists and values than its size allows"):
        load(bomb)


def test_a_model_of_too_many_values_is_not_parsed(tampered: Callable[..., Path]) -> None:
    def inner_bomb(members: dict[str, bytes]) -> None:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as zipped:
            zipped.writestr("schema.json", b'{"protocol": 2, "x": [' + b"[]," * 1_000_000 + b"0]}")
        members["models/0.skops"] = packed.getvalue()

    with pytest.raises(PersistenceError, match="more lists and values than its size allows"):
        load(tampered(inner_bomb))


def test_a_file_that_shrinks_too_far_is_written_plain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "SMALL", 1000)
    path = tmp_path / "zeros.coterie"
    write_archive(path, {}, {"arrays.npz": bytes(1_000_000)})
    assert path.stat().st_size > 1_000_000
    assert read_archive(path)[1] == {"arrays.npz": bytes(1_000_000)}


def test_compression_that_we_do_not_write_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.coterie"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as zipped:
        zipped.writestr("manifest.json", b"{}")
    with pytest.raises(PersistenceError, match=r"in a form that coterie\.save does not write"):
        load(path)


def test_a_model_that_could_not_be_loaded_is_not_saved(
    model: CoterieRegressor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LARGEST", 10_000)
    with pytest.raises(PersistenceError, match="save it with rows=False"):
        save(model, tmp_path / "model.coterie")
    assert list(tmp_path.iterdir()) == []


# An archive that cannot be closed fails once more when it is collected.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("existing", [b"old", None])
@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("os.replace", OSError(28, "No space left on device")),
        ("os.fsync", OSError(28, "No space left on device")),
        ("coterie.persistence.archive._write_members", OSError(28, "No space left on device")),
        ("coterie.persistence.archive.zipfile", OSError(28, "No space left on device")),
        ("coterie.persistence.pack_arrays", MemoryError()),
        ("coterie.persistence.dump_model", KeyboardInterrupt()),
    ],
)
def test_a_failure_leaves_the_old_file_and_no_other(
    where: str,
    error: BaseException,
    existing: bytes | None,
    model: CoterieRegressor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "model.coterie"
    if existing is not None:
        path.write_bytes(existing)

    def fails(*args: Any, **options: Any) -> None:
        raise error

    # Our archive alone cannot be closed: skops closes archives of its own before.
    class Unclosable(zipfile.ZipFile):
        close = fails

    with monkeypatch.context() as patch:
        stand_in = SimpleNamespace(**{**vars(zipfile), "ZipFile": Unclosable})
        patch.setattr(where, stand_in if where.endswith("zipfile") else fails)
        with pytest.raises(type(error)):
            save(model, path)
    assert [p.name for p in tmp_path.iterdir()] == ([] if existing is None else ["model.coterie"])
    assert existing is None or path.read_bytes() == existing


KILLED = """
import sys, time, zipfile
from pathlib import Path
from coterie.persistence.archive import write_archive

def wait(zipped):
    print("half", flush=True)
    time.sleep(60)

zipfile.ZipFile.close = wait
write_archive(Path(sys.argv[1]), {}, {"arrays.npz": bytes(1_000_000)})
"""


@pytest.mark.skipif(os.name != "posix", reason="SIGKILL")
def test_a_save_that_is_killed_leaves_the_old_file(saved: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.coterie"
    path.write_bytes(saved.read_bytes())
    with subprocess.Popen([sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(signal.SIGKILL)
    assert path.read_bytes() == saved.read_bytes()
    load(path)


def test_the_new_file_replaces_the_old_with_its_permissions(model: CoterieRegressor, tmp_path: Path) -> None:
    path, link = tmp_path / "model.coterie", tmp_path / "link.coterie"
    path.write_bytes(b"old")
    path.chmod(0o600)
    link.symlink_to(path)
    save(model, link)
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o600
    load(path)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link.coterie", "model.coterie"]


def test_the_manifest_names_every_member_with_its_checksum(saved: Path) -> None:
    with zipfile.ZipFile(saved) as zipped:
        manifest = json.loads(zipped.read("manifest.json"))
        contents = {name: zipped.read(name) for name in zipped.namelist()}
    del contents["manifest.json"]
    assert manifest["checksums"] == {
        name: hashlib.sha256(content).hexdigest() for name, content in contents.items()
    }
    assert manifest["format"] == archive.FORMAT
    assert manifest["learners"]["ids"]["items"][0] == "learner 00"
    assert sorted(set(manifest["learners"]["labels"]["items"])) == [0, 1]
    assert manifest["parameters"]["n_clusters"] == 2
    assert manifest["fit"]["selection"]["$"] == "Selection"


def test_what_write_archive_writes_read_archive_reads(tmp_path: Path) -> None:
    path = tmp_path / "any"
    write_archive(path, {"coterie": "x"}, {"models/0.skops": b"one", "arrays.npz": b""})
    manifest, members = read_archive(path)
    assert members == {"models/0.skops": b"one", "arrays.npz": b""}
    assert manifest["coterie"] == "x"
    assert time.time() - path.stat().st_mtime < 60
