"""A fit that was killed or interrupted repeats no finished learner and ends as if nothing had been."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from coterie.method import fitting

FIT = (
    "table.csv",
    "--target",
    "y",
    "--group",
    "site",
    "--candidates",
    "lr,knn",
    "--no-report",
    "--jobs",
    "1",
)
OPTIONS = (*FIT, "--n-clusters", "2", "--out", "out")
STATE = Path("out.unfinished")

# Runs the command, and ends it by a signal when the third learner's turn has come.
ENDING = """
import signal, sys
from coterie.cli.app import main
from coterie.method import fitting

real, seen, number = fitting.fit_candidate, set(), int(sys.argv.pop())

def ending(candidate, job, rows):
    seen.add(job.owner)
    if len(seen) == 3:
        signal.raise_signal(number)
    return real(candidate, job, rows)

fitting.fit_candidate = ending
main()
"""


def ended_by(number, *options):
    """Run a fit that is ended in its middle."""
    command = [sys.executable, "-c", ENDING, "fit", *OPTIONS, *options, str(int(number))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def finished():
    """Return the files of finished learners."""
    return [path for path in STATE.glob("fits/*") if not path.name.startswith(".")]


@pytest.fixture
def owners(monkeypatch):
    """Whose rows were fitted, in this process."""
    seen = []
    real = fitting.fit_candidate

    def noting(candidate, job, rows):
        seen.append(job.owner)
        return real(candidate, job, rows)

    monkeypatch.setattr(fitting, "fit_candidate", noting)
    return seen


@pytest.fixture
def interrupted(run, here, monkeypatch):
    """What is there after Ctrl-C when the third learner's turn has come."""
    real, seen = fitting.fit_candidate, set()

    def interrupting(candidate, job, rows):
        seen.add(job.owner)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return real(candidate, job, rows)

    with monkeypatch.context() as patch:
        patch.setattr(fitting, "fit_candidate", interrupting)
        return run("fit", *OPTIONS)


def learners_in(owners):
    return {owner for owner in owners if owner.startswith("learner")}


def test_a_killed_fit_goes_on_where_it_was(run, here, owners):
    assert ended_by(signal.SIGKILL).returncode == -signal.SIGKILL
    assert len(finished()) == 2
    assert not Path("out").exists()
    assert "go on with --resume" in run("fit", *OPTIONS).complaint
    outcome = run("fit", *OPTIONS, "--resume")
    assert outcome.code == 0
    assert len(learners_in(owners)) == 4
    assert "2 finished fits were taken from" in outcome.err
    assert sorted(os.listdir()) == ["out", "table.csv"]
    owners.clear()
    assert run("fit", *OPTIONS[:-1], "whole").code == 0
    assert len(learners_in(owners)) == 6
    for name in ("labels.csv", "gains.csv", "losses.csv"):
        assert Path("out", name).read_bytes() == Path("whole", name).read_bytes()


def test_a_killed_fit_of_classes_goes_on_where_it_was(run, here, table, owners):
    named = pl.when(table["y"] > table["y"].median()).then(pl.lit("high")).otherwise(pl.lit("low"))
    table.with_columns(y=named).write_csv("classes.csv")
    options = ("classes.csv", *FIT[1:5], "--candidates", "logistic,rf", "--no-report", "--jobs", "1")
    command = [sys.executable, "-c", ENDING, "fit", *options, "--out", "out", str(int(signal.SIGKILL))]
    assert subprocess.run(command, capture_output=True, check=False).returncode == -signal.SIGKILL
    assert len(finished()) == 2
    outcome = run("fit", *options, "--out", "out", "--resume")
    assert outcome.code == 0
    assert "2 finished fits were taken from" in outcome.err
    assert len(learners_in(owners)) == 4
    assert run("fit", *options, "--out", "whole").code == 0
    for name in ("labels.csv", "gains.csv"):
        assert Path("out", name).read_bytes() == Path("whole", name).read_bytes()


def test_ctrl_c_says_how_to_go_on(here):
    outcome = ended_by(signal.SIGINT)
    assert outcome.returncode == 130
    assert outcome.stdout == ""
    assert outcome.stderr.splitlines()[-1] == (
        "coterie: Stopped. Finished learners are kept in 'out.unfinished': "
        "run the same command with --resume to go on."
    )
    assert sorted(os.listdir()) == ["out.unfinished", "table.csv"]
    assert len(finished()) == 2


def test_other_rows_are_fitted_anew(run, interrupted, table, owners):
    assert interrupted.code == 130
    table.with_columns(x0=table["x0"] * 2 + table["x1"]).write_csv("table.csv")
    assert run("fit", *OPTIONS, "--resume").code == 0
    assert len(learners_in(owners)) == 6


def test_force_begins_again(run, interrupted, owners):
    assert run("fit", *OPTIONS, "--force").code == 0
    assert len(learners_in(owners)) == 6


def test_resume_without_anything_to_resume_is_a_fit(run, here):
    assert run("fit", *OPTIONS, "--resume").code == 0
    assert sorted(os.listdir()) == ["out", "table.csv"]


def test_a_refused_option_costs_no_finished_learner(run, interrupted, owners):
    kept = sorted(path.name for path in finished())
    assert len(kept) == 2
    for options in (("--n-clusters", "100"), ("--candidates", "nonsense"), ("--target", "nonsense")):
        assert run("fit", *OPTIONS, *options, "--resume").code == 2
        assert sorted(path.name for path in finished()) == kept
        assert run("fit", *OPTIONS, *options, "--force").code == 2
        assert set(kept) <= {path.name for path in finished()}


def test_a_killed_replacement_is_taken_up_by_force_and_resume(run, here, monkeypatch):
    assert run("fit", *OPTIONS).code == 0
    old = Path("out", "labels.csv").stat().st_ino
    assert ended_by(signal.SIGKILL, "--force").returncode == -signal.SIGKILL
    assert Path("out", "labels.csv").stat().st_ino == old
    outcome = run("fit", *OPTIONS, "--force", "--resume")
    assert outcome.code == 0
    assert "2 finished fits were taken from" in outcome.err
    assert Path("out", "labels.csv").stat().st_ino != old
    assert sorted(os.listdir()) == ["out", "table.csv"]


def test_nothing_is_removed_before_the_table_was_read(run, interrupted):
    Path("table.csv").unlink()
    assert run("fit", *OPTIONS, "--force").code == 2
    assert len(finished()) == 2


def test_out_may_be_a_link_to_a_folder(run, here):
    Path("elsewhere").mkdir()
    Path("real").symlink_to("elsewhere/results")
    options = (*OPTIONS[:-1], "real")
    assert run("fit", *options).code == 0
    assert "has results already" in run("fit", *options).complaint
    assert run("fit", *options, "--force").code == 0
    assert Path("real").is_symlink()
    assert Path("elsewhere/results/labels.csv").exists()
    assert sorted(os.listdir()) == ["elsewhere", "real", "table.csv"]
    assert os.listdir("elsewhere") == ["results"]


def test_a_fit_leaves_nothing_in_the_cache(run, here, tmp_path_factory, monkeypatch):
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("COTERIE_CACHE", str(cache))
    assert run("fit", *OPTIONS).code == 0
    assert os.listdir(cache) == []
