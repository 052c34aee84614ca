import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from coterie.datasets import (
    DatasetCorrupted,
    DatasetUnavailable,
    load_ct_slices,
    load_grid_stability,
    loaders,
    parse_ct_slices,
)

CT_HEADER = ",".join(["patientId", *(f"value{i}" for i in range(384)), "reference"])


def ct_text(patients: list[int]) -> str:
    """A CT table in which row i has value0 = i, other values 0.25 and the reference 100 + i."""
    rows = [f"{p},{i},{'0.25,' * 383}{100 + i}" for i, p in enumerate(patients)]
    return "\n".join([CT_HEADER, *rows]) + "\n"


@pytest.fixture
def grid_folder(data_file, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A local folder with a copy of the true grid file, to be damaged at will."""
    source = data_file("grid_stability", "Data_for_UCI_named.csv")
    folder = tmp_path / "data" / "grid_stability"
    folder.mkdir(parents=True)
    (folder / source.name).write_bytes(source.read_bytes())
    monkeypatch.setenv("COTERIE_DATA", str(folder.parent))
    return folder


def test_the_grid_is_the_true_one(data_file) -> None:
    path = data_file("grid_stability", "Data_for_UCI_named.csv")
    table = load_grid_stability()
    assert table.path == path
    assert table.X.shape == (10_000, 12)
    assert table.feature_names[:5] == ("tau1", "tau2", "tau3", "tau4", "p1")
    assert table.feature_names[-1] == "g4"
    first = path.read_text().splitlines()[1].split(",")
    assert table.X[0].tolist() == [float(cell) for cell in first[:12]]
    assert table.y[0] == float(first[12])
    # The power balance of the four nodes, and the meaning of the label that is left out.
    assert np.allclose(table.X[:, 4], -table.X[:, 5:8].sum(axis=1))
    labels = [line.rsplit(",", 1)[1].strip('"') for line in path.read_text().splitlines()[1:]]
    assert np.array_equal(table.y > 0, np.array(labels) == "unstable")


def test_a_compressed_grid_is_read(grid_folder: Path) -> None:
    plain = grid_folder / "Data_for_UCI_named.csv"
    (grid_folder / "Data_for_UCI_named.csv.gz").write_bytes(gzip.compress(plain.read_bytes(), 1))
    plain.unlink()
    assert load_grid_stability().X.shape == (10_000, 12)


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda text: text[:100_000], r"line \d+ has \d+ columns instead of 14"),
        (lambda text: text[: text.index(b"\n", 100_000) + 1], r"it has \d+ rows instead of 10,000"),
        (
            lambda text: text.replace(b"2.95906", b"2.95907", 1),
            r"its SHA-256 is .* instead of 7afc",
        ),
        (
            lambda text: text.replace(b"2.95906", b"nothing", 1),
            r"could not convert string 'nothing",
        ),
        (lambda text: text.replace(b"2.95906002455997", b"nan", 1), r"row 1 has no finite .* tau1"),
        (
            lambda text: text.replace(b"tau2", b"tau7", 1),
            r"its header does not name the 14 columns",
        ),
        (lambda text: text[:83], r"it has no rows"),
        (lambda text: b"", r"its header does not name"),
        (lambda text: text[:1000] + b"\xff" + text[1000:], r"it is not text"),
    ],
    ids=["cut", "short", "digit", "word", "nan", "header", "no-rows", "empty", "bytes"],
)
def test_a_damaged_grid_is_refused(grid_folder: Path, damage, cause: str) -> None:
    path = grid_folder / "Data_for_UCI_named.csv"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DatasetCorrupted, match=cause) as caught:
        load_grid_stability()
    assert str(path) in str(caught.value)
    assert "replace it with a fresh copy" in str(caught.value)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    assert path.exists()


@pytest.fixture
def empty_cache_after_data(data_file, request: pytest.FixtureRequest) -> tuple[bytes, Path]:
    """The true grid file's bytes, and then a machine that has neither data nor cache."""
    content = data_file("grid_stability", "Data_for_UCI_named.csv").read_bytes()
    return content, request.getfixturevalue("empty_cache")


def test_the_grid_is_downloaded_once(server, empty_cache_after_data, monkeypatch: pytest.MonkeyPatch) -> None:
    content, cache = empty_cache_after_data
    monkeypatch.setattr(loaders, "GRID_URL", server.serve_zip("/grid.zip", **{loaders.GRID_FILE: content}))
    for _ in range(2):
        table = load_grid_stability()
    assert table.path == cache / "grid_stability" / loaders.GRID_FILE
    assert server.requests == ["/grid.zip"]


def test_without_network_the_remedies_are_named(
    server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaders, "GRID_URL", f"{server.address}/grid")
    monkeypatch.setattr(loaders, "CT_URL", f"{server.address}/ct")
    with pytest.raises(DatasetUnavailable, match=r"has grid_stability/Data_for_UCI_named\.csv, or"):
        load_grid_stability()
    with pytest.raises(DatasetUnavailable, match=r"has ct_slices/slice_localization_data\.csv, or"):
        load_ct_slices()


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
    monkeypatch.setattr(loaders, "CT_ROWS", 4)
    monkeypatch.setattr(loaders, "CT_PATIENTS", 2)


def test_ct_is_downloaded_once_and_recorded(
    small_ct, server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = ct_text([0, 0, 1, 1]).encode()
    monkeypatch.setattr(loaders, "CT_URL", server.serve_zip("/ct.zip", **{loaders.CT_FILE: text}))
    for _ in range(2):
        table = load_ct_slices()
    assert table.groups.tolist() == [0, 0, 1, 1]
    assert server.requests == ["/ct.zip"]
    assert sorted(os.listdir(table.path.parent)) == [loaders.CT_FILE, f"{loaders.CT_FILE}.sha256"]
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
    monkeypatch.setattr(loaders, "CT_URL", server.serve_zip("/ct.zip", **{loaders.CT_FILE: text}))
    with pytest.raises(DatasetCorrupted, match=cause):
        load_ct_slices()
    assert os.listdir(empty_cache / "ct_slices") == [loaders.CT_FILE]


def test_the_whole_ct_file_may_lack_its_last_line_end(small_ct, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text(ct_text([0, 0, 1, 1]).rstrip("\n"))
    assert parse_ct_slices(path).y.tolist() == [100, 101, 102, 103]


def test_a_local_ct_copy_comes_first(
    small_ct, empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ct_slices").mkdir()
    (tmp_path / "ct_slices" / loaders.CT_FILE).write_text(ct_text([0, 0, 1, 1]))
    monkeypatch.setenv("COTERIE_DATA", str(tmp_path))
    assert load_ct_slices().path == tmp_path / "ct_slices" / loaders.CT_FILE
    assert not empty_cache.exists()
    assert os.listdir(tmp_path / "ct_slices") == [loaders.CT_FILE]
