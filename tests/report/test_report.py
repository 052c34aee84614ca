import builtins
import html as escapes
import os
import stat
import sys
import tracemalloc
import webbrowser
from dataclasses import replace

import numpy as np
import pytest

from coterie import Report, cluster_learners


def test_a_report_is_written_in_one_step(partition, tmp_path):
    report = Report(partition)
    report.write_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == report.html()
    assert os.listdir(tmp_path) == ["report.html"]


def test_a_write_that_fails_leaves_the_old_file(partition, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        Report(partition).write_html(target)
    assert os.listdir(tmp_path) == ["report.html"]
    assert target.read_text() == "old"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
def test_permissions_are_handed_on(partition, tmp_path):
    target = tmp_path / "report.html"
    target.write_text("old")
    target.chmod(0o640)
    Report(partition).write_html(target)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_missing_folder_and_a_folder_are_refused_in_a_sentence(partition, tmp_path):
    with pytest.raises(FileNotFoundError, match="make it first"):
        Report(partition).write_html(tmp_path / "nowhere" / "report.html")
    with pytest.raises(IsADirectoryError, match="name of a file"):
        Report(partition).write_html(tmp_path)


def test_open_shows_the_page(partition, monkeypatch):
    output = []
    monkeypatch.setattr(webbrowser, "open", output.append)
    path = Report(partition).open()
    assert output == [path.as_uri()]
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")


def test_a_notebook_shows_the_page_in_a_frame_of_its_own(partition):
    report = Report(partition)
    output = report._repr_html_()
    assert output.startswith("<iframe")
    assert "allow-same-origin" not in output
    inside = output[output.index('srcdoc="') + 8 : output.rindex('"')]
    assert escapes.unescape(inside) == report.html()


def test_the_text_form_is_the_answer(model):
    assert repr(Report(model)).startswith("<Report: The 13 learners fall into 3 coteries")


def test_a_missing_extra_is_named(partition, monkeypatch):
    real = builtins.__import__

    def without_jinja(name, *rest, **more):
        if name.startswith("jinja2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return real(name, *rest, **more)

    report = Report(partition)
    monkeypatch.setattr(builtins, "__import__", without_jinja)
    assert report.json()
    with pytest.raises(ImportError, match="install coterie's extra 'report'"):
        report.html()


def test_names_of_a_fixed_width_are_not_copied_for_each_pair():
    """NumPy keeps texts in place: a table of all pairs would hold each name n times."""
    n = 100
    ids = np.array([f"{k}".rjust(2000, "_") for k in range(n)])
    model = cluster_learners(np.abs(np.subtract.outer(np.arange(n), np.arange(n))) / n, n_clusters=2)
    report = Report(replace(model, learner_ids=ids))
    tracemalloc.start()
    try:
        report.json()
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 2**25
