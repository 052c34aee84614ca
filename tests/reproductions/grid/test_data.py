import gzip
from pathlib import Path

import numpy as np
import pytest

from reproductions.download.transfer import DatasetCorrupted, DatasetUnavailable
from reproductions.grid import data
from reproductions.grid.data import load_grid_stability


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
    monkeypatch.setattr(data, "GRID_URL", server.serve_zip("/grid.zip", **{data.GRID_FILE: content}))
    for _ in range(2):
        table = load_grid_stability()
    assert table.path == cache / "grid_stability" / data.GRID_FILE
    assert server.requests == ["/grid.zip"]


def test_without_network_the_remedies_are_named(
    server, empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "GRID_URL", f"{server.address}/grid")
    with pytest.raises(DatasetUnavailable, match=r"has grid_stability/Data_for_UCI_named\.csv, or"):
        load_grid_stability()
