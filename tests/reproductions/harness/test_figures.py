"""Figures as files."""

import sys

import pytest

from reproductions.harness.figures import check_drawing, new_figure, save_figure


def test_a_drawing_has_the_same_bytes_twice(tmp_path):
    written = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        figure = new_figure()
        figure.add_subplot().plot([1, 2], [3, 4])
        written.append([path.read_bytes() for path in save_figure(figure, tmp_path / name, "line")])
    assert written[0] == written[1]


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="coterie's extra 'plot'"):
        check_drawing()
