"""Resuming, refusing, and the same bytes from the same seed."""

import json
from dataclasses import replace

import pytest

from reproductions.fairness import experiment as fairness
from reproductions.harness import Run, reproduce
from reproductions.harness import runner as runner_module
from reproductions.harness.files import JOURNAL, RESULTS
from reproductions.harness.runner import replication_seed


def counted(experiment, calls, stop_after=None):
    """Return the experiment with a replication that counts its calls and may be interrupted."""

    def replicate(seed, settings):
        if stop_after is not None and len(calls) == stop_after:
            raise KeyboardInterrupt
        calls.append(seed)
        return experiment.replicate(seed, settings)

    return replace(experiment, replicate=replicate)


def test_an_interrupted_run_continues_with_what_is_missing(numbers, tmp_path):
    whole = reproduce(Run(numbers, tmp_path / "whole"))
    first, second = [], []
    with pytest.raises(KeyboardInterrupt):
        reproduce(Run(counted(numbers, first, stop_after=3), tmp_path / "parts"))
    outcome = reproduce(Run(counted(numbers, second), tmp_path / "parts"))
    assert len(first) == 3
    assert len(second) == 1
    assert (outcome.folder / RESULTS).read_bytes() == (whole.folder / RESULTS).read_bytes()
    assert not (outcome.folder / JOURNAL).exists()


def test_a_torn_line_of_the_journal_is_run_again(numbers, tmp_path):
    whole = reproduce(Run(numbers, tmp_path / "whole"))
    calls = []
    with pytest.raises(KeyboardInterrupt):
        reproduce(Run(counted(numbers, [], stop_after=2), tmp_path / "torn"))
    journal = tmp_path / "torn" / "numbers" / JOURNAL
    journal.write_bytes(journal.read_bytes()[:-20])
    with pytest.raises(KeyboardInterrupt):
        reproduce(Run(counted(numbers, calls, stop_after=1), tmp_path / "torn"))
    # What follows a torn line must not be swallowed by it.
    reproduce(Run(counted(numbers, calls), tmp_path / "torn"))
    assert len(calls) == 3
    torn = tmp_path / "torn" / "numbers" / RESULTS
    assert torn.read_bytes() == (whole.folder / RESULTS).read_bytes()


def test_a_finished_run_runs_nothing_and_more_replications_extend_it(numbers, tmp_path):
    calls = []
    reproduce(Run(numbers, tmp_path))
    before = (tmp_path / "numbers" / RESULTS).read_text()
    reproduce(Run(counted(numbers, calls), tmp_path))
    assert not calls
    reproduce(Run(counted(numbers, calls), tmp_path, replications=6))
    assert calls == [replication_seed(0, 4), replication_seed(0, 5)]
    assert (tmp_path / "numbers" / RESULTS).read_text().startswith(before)


def test_fewer_replications_than_there_are_throw_nothing_away(numbers, tmp_path):
    reproduce(Run(numbers, tmp_path))
    outcome = reproduce(Run(numbers, tmp_path, replications=1))
    assert len(outcome.seconds) == 4


@pytest.mark.parametrize(
    ("change", "named"), [({"seed": 1}, "seed (0 there, 1 asked for)"), ({"quick": True}, "sizes")]
)
def test_results_of_other_settings_are_not_overwritten(numbers, tmp_path, change, named):
    reproduce(Run(numbers, tmp_path))
    before = (tmp_path / "numbers" / RESULTS).read_bytes()
    with pytest.raises(FileExistsError, match="--force") as refused:
        reproduce(Run(numbers, tmp_path, **change))
    assert named in str(refused.value)
    assert (tmp_path / "numbers" / RESULTS).read_bytes() == before
    reproduce(Run(numbers, tmp_path, force=True, **change))
    assert (tmp_path / "numbers" / RESULTS).read_bytes() != before


def test_results_of_another_version_are_not_mixed_with_ours(numbers, tmp_path, monkeypatch):
    reproduce(Run(numbers, tmp_path))
    monkeypatch.setattr(runner_module, "__version__", "99.0")
    with pytest.raises(FileExistsError, match=r"version .*99\.0"):
        reproduce(Run(numbers, tmp_path, replications=9))


def test_results_that_say_not_what_they_are_are_kept(numbers, tmp_path):
    folder = tmp_path / "numbers"
    folder.mkdir()
    (folder / RESULTS).write_text("somebody's\n")
    with pytest.raises(FileExistsError, match=r"no settings\.json"):
        reproduce(Run(numbers, tmp_path))
    assert (folder / RESULTS).read_text() == "somebody's\n"


def test_a_seed_depends_on_the_run_s_seed_and_the_number_alone():
    seeds = {replication_seed(seed, number) for seed in (0, 1) for number in range(50)}
    assert len(seeds) == 100
    assert replication_seed(0, 7) == replication_seed(0, 7)


def test_the_number_of_processes_changes_nothing(tmp_path):
    small = {"b": [1], "learners": 8, "training_learners": 6, "rows": 20, "candidates": ["lr"]}
    variants = {"coterie": {"n_clusters": "auto", "refine": "pooled"}}
    experiment = replace(fairness.EXPERIMENT, settings={**fairness.SETTINGS, **small, "ways": variants})
    one = reproduce(Run(experiment, tmp_path / "one", replications=2))
    two = reproduce(Run(experiment, tmp_path / "two", replications=2, n_jobs=2))
    assert (one.folder / RESULTS).read_bytes() == (two.folder / RESULTS).read_bytes()
    assert (one.folder / "ratio.svg").read_bytes() == (two.folder / "ratio.svg").read_bytes()


def test_a_failing_replication_is_named_with_its_seed(numbers, tmp_path):
    def fail(seed, settings):
        raise ZeroDivisionError("no")

    with pytest.raises(
        RuntimeError, match=r"Replication 0, with the seed \d+, failed: ZeroDivisionError: no"
    ):
        reproduce(Run(replace(numbers, replicate=fail), tmp_path))


def test_data_are_asked_for_before_anything_is_written(numbers, tmp_path):
    def missing():
        raise FileNotFoundError("set COTERIE_DATA")

    with pytest.raises(FileNotFoundError, match="COTERIE_DATA"):
        reproduce(Run(replace(numbers, check_data=missing), tmp_path))
    assert not list(tmp_path.iterdir())


def test_progress_is_told_of_what_was_there_and_of_every_replication(numbers, tmp_path):
    reported = []
    reproduce(Run(numbers, tmp_path, replications=1))
    reproduce(
        Run(numbers, tmp_path, replications=3),
        lambda done, of, last: reported.append((done, of, last is None)),
    )
    assert reported == [(1, 3, True), (2, 3, False), (3, 3, False)]


def test_times_stay_out_of_the_results(numbers, tmp_path):
    outcome = reproduce(Run(numbers, tmp_path))
    assert "seconds" not in (outcome.folder / RESULTS).read_text()
    assert (outcome.folder / "seconds.csv").read_text().startswith("replication,seconds\n0,")
    assert json.loads((outcome.folder / "settings.json").read_text())["seed"] == 0


def test_a_folder_that_cannot_be_made_is_refused_before_any_work(numbers, tmp_path):
    (tmp_path / "taken").touch()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / numbers.name).touch()
    for out in (tmp_path / "taken" / "inside", tmp_path / "half"):
        with pytest.raises(NotADirectoryError, match="is a file, not a folder: give another one by --out"):
            reproduce(Run(numbers, out))


def test_force_throws_away_the_page_and_its_figures_too(numbers, tmp_path):
    folder = reproduce(Run(numbers, tmp_path, seed=0)).folder
    (folder / "mine.png").touch()

    def stop(seed, settings):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(Run(replace(numbers, replicate=stop), tmp_path, seed=7, force=True))
    assert sorted(path.name for path in folder.iterdir()) == ["mine.png", "settings.json"]


def test_settings_that_cannot_be_read_are_said_to_be_so(numbers, tmp_path):
    folder = reproduce(Run(numbers, tmp_path)).folder
    (folder / "settings.json").write_text("{")
    with pytest.raises(FileExistsError, match=r"settings\.json, which says .* cannot be read: give --force"):
        reproduce(Run(numbers, tmp_path))


def test_earlier_replications_can_forbid_going_on(numbers, tmp_path):
    def other_data(records, settings):
        assert [record["replication"] for record in records] == [0, 0]
        raise ValueError("other data")

    reproduce(Run(numbers, tmp_path, replications=1))
    guarded = replace(numbers, check_earlier=other_data)
    assert reproduce(Run(guarded, tmp_path, replications=1)).records
    with pytest.raises(ValueError, match="other data"):
        reproduce(Run(guarded, tmp_path, replications=2))
