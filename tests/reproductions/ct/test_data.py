import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from reproductions.ct import data
from reproductions.ct.data import load_ct_slices, parse_ct_slices
from reproductions.download.transfer import DatasetCorrupted, DatasetUnavailable

CT_HEADER = ",".join(["patientId", *(f"value{i}" for i in range(384)), "reference"])


def ct_text(patients: list[int]) -> str:
    """A CT table in which row i has value0 = i, other values 0.25 and the reference 100 + i."""
    rows = [f"{p},{i},{'0.25,' * 383}{100 + i}" for i, p in enumerate(patients)]
    return "\n".join([CT_HEADER, *rows]) + "\n"


def test_the_true_head_of_the_ct_file(data_file) -> None:
    path = data_file("ct_slices_head", "slice_localization_data.csv")
    table = parse_ct_slices(path)
    assert table.X.shape == (682, 384)
    assert table.feature_names[0] == "value0"
    assert table.feature_names[-1] == "value383"
    assert np.unique(table.groups, return_counts=True)[1].tolist() == [583, 99]
    assert table.groups.dtype == np.int64
    assert table.y[0] == 21.803851
    assert table.y[-1] == 17.978527
    assert ((table.y >= 0) & (table.y <= 180)).all()
    assert table.X.min() == -0.25
    assert table.X.max() <= 1.0


def test_the_head_is_not_the_whole(data_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = data_file("ct_slices_head", "slice_localization_data.csv")
    (tmp_path / "ct_slices").mkdir()
    (tmp_path / "ct_slices" / head.name).write_bytes(head.read_bytes())
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    with pytest.raises(DatasetCorrupted, match=r"it has 682 rows instead of 53,500"):
        load_ct_slices()


@pytest.mark.parametrize("compress", [False, True])
def test_columns_go_where_they_belong(tmp_path: Path, compress: bool) -> None:
    text = ct_text([5, 5, 3]).encode()
    path = tmp_path / "table"
    path.write_bytes(gzip.compress(text) if compress else text)
    table = parse_ct_slices(str(path))
    assert table.groups.tolist() == [5, 5, 3]
    assert table.X[:, 0].tolist() == [0, 1, 2]
    assert (table.X[:, 1:] == 0.25).all()
    assert table.y.tolist() == [100, 101, 102]


def test_quotes_windows_lines_and_blank_lines_do_no_harm(tmp_path: Path) -> None:
    header, rest = ct_text([1, 2]).split("\n", 1)
    quoted = ",".join(f'"{name}"' for name in header.split(","))
    path = tmp_path / "table.csv"
    path.write_bytes(f"{quoted}\n{rest}\n\n".replace("\n", "\r\n").encode())
    assert parse_ct_slices(path).y.tolist() == [100, 101]


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda text: text[:-2], r"it ends inside row 3"),
        (lambda text: text[:-900], r"line 4 has \d+ columns instead of 386"),
        (lambda text: text.replace("\n5,", "\n5.5,", 1), r"a patientId is not a whole number"),
        (
            lambda text: text.replace("0.25", "inf", 1),
            r"row 1 has no finite number in column value1",
        ),
        (lambda text: text.replace("0.25", "x", 1), r"could not convert string 'x'"),
        (lambda text: text.replace("0.25", "#", 1), r"could not convert string '#'"),
        (
            lambda text: text.split("\n", 1)[1],
            r"its header does not name the 386 columns patientId",
        ),
        (lambda text: CT_HEADER, r"it has no rows"),
    ],
)
def test_a_damaged_ct_file_is_refused(tmp_path: Path, damage, cause: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text(damage(ct_text([5, 5, 3])))
    with pytest.raises(DatasetCorrupted, match=cause) as caught:
        parse_ct_slices(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("where", [0.5, -4])
def test_a_truncated_archive_is_refused(tmp_path: Path, where: float) -> None:
    packed = gzip.compress(ct_text(list(range(50))).encode())
    path = tmp_path / "table.csv.gz"
    path.write_bytes(packed[: int(len(packed) * where) if where > 0 else int(where)])
    with pytest.raises(DatasetCorrupted, match=r"table\.csv\.gz is truncated .* ended before"):
        parse_ct_slices(path)


def test_an_altered_archive_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(ct_text([5, 5, 3]).encode()))
    packed[-6] ^= 0xFF
    path = tmp_path / "table.csv.gz"
    path.write_bytes(packed)
    with pytest.raises(DatasetCorrupted, match="CRC check failed"):
        parse_ct_slices(path)


@pytest.fixture
def small_ct(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CT file of four rows and two patients counts as whole."""
    monkeypatch.setattr(data, "CT_ROWS", 4)
    monkeypatch.setattr(data, "CT_PATIENTS", 2)


def test_ct_is_downloaded_once_and_recorded(
    small_ct, server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ct_text([0, 0, 1, 1]).encode()
    monkeypatch.setattr(data, "CT_URL", server.serve_zip("/ct.zip", **{data.CT_FILE: text}))
    for _ in range(2):
        table = load_ct_slices()
    assert table.groups.tolist() == [0, 0, 1, 1]
    assert server.requests == ["/ct.zip"]
    assert sorted(os.listdir(table.path.parent)) == [data.CT_FILE, f"{data.CT_FILE}.sha256"]
    # Same shape, other digits: only the record can tell.
    table.path.write_bytes(text.replace(b"0.25", b"0.75", 1))
    with pytest.raises(DatasetCorrupted, match="was altered"):
        load_ct_slices()
    table.path.unlink()
    assert load_ct_slices().y.tolist() == table.y.tolist()
    assert server.requests == ["/ct.zip"] * 2


@pytest.mark.parametrize(
    ("patients", "cause"),
    [([0, 0, 1], "it has 3 rows instead of 4"), ([0, 0, 0, 0], "it has 1 patients instead of 2")],
)
def test_a_ct_file_of_another_shape_is_never_recorded(
    small_ct, server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch, patients, cause: str
) -> None:
    text = ct_text(patients).encode()
    monkeypatch.setattr(data, "CT_URL", server.serve_zip("/ct.zip", **{data.CT_FILE: text}))
    with pytest.raises(DatasetCorrupted, match=cause):
        load_ct_slices()
    assert os.listdir(empty_cache / "ct_slices") == [data.CT_FILE]


def test_the_whole_ct_file_may_lack_its_last_line_end(small_ct, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(ct_text([0, 0, 1, 1]).rstrip("\n"))
    assert parse_ct_slices(path).y.tolist() == [100, 101, 102, 103]


def test_a_local_ct_copy_comes_first(
    small_ct, empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ct_slices").mkdir()
    (tmp_path / "ct_slices" / data.CT_FILE).write_text(ct_text([0, 0, 1, 1]))
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    assert load_ct_slices().path == tmp_path / "ct_slices" / data.CT_FILE
    assert not empty_cache.exists()
    assert os.listdir(tmp_path / "ct_slices") == [data.CT_FILE]


def test_without_network_the_remedies_are_named(
    server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "CT_URL", f"{server.address}/ct")
    with pytest.raises(DatasetUnavailable, match=r"has ct_slices/slice_localization_data\.csv, or"):
        load_ct_slices()
