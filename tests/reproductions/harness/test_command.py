"""The command from the outside."""

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from coterie.cli.errors import CommandError
from reproductions.harness import HEADINGS, Experiment, Table, command

RUNNER = CliRunner()


def one_number(seed, settings):
    return [{"x": seed % 10}]


def one_table(records, settings):
    return [Table("Sum", ("n", "sum"), ((str(len(records)), str(sum(r["x"] for r in records))),))]


def experiment(name, check_data=None):
    return Experiment(
        name=name,
        title=name.title(),
        settings={"k": 1},
        quick_settings={"k": 0},
        replications=3,
        quick_replications=1,
        replicate=one_number,
        tabulate=one_table,
        draw=lambda records, settings, folder: [],
        readme=dict.fromkeys(HEADINGS, "Text."),
        check_data=check_data,
    )


def offer(monkeypatch, **known):
    """Let these be the experiments that there are."""
    monkeypatch.setattr(command, "known_experiments", lambda: tuple(known))
    monkeypatch.setattr(command, "find_experiment", known.__getitem__)


@pytest.fixture(autouse=True)
def few_experiments(monkeypatch, tmp_path):
    """Two quick experiments, of which the second wants data that are not there."""

    def missing():
        raise FileNotFoundError("set COTERIE_DATA to a folder that has them.")

    offer(monkeypatch, good=experiment("good"), bare=experiment("bare", missing))
    monkeypatch.setattr(command, "FULL_FOLDER", tmp_path / "reproductions")
    monkeypatch.setattr(command, "QUICK_FOLDER", tmp_path / "reproductions-quick")
    monkeypatch.chdir(tmp_path)


def run(*arguments):
    return RUNNER.invoke(command.app, arguments)


def test_an_unknown_name_is_answered_with_the_known_ones():
    result = run("goood")
    assert isinstance(result.exception, CommandError)
    assert "'goood'" in str(result.exception)
    assert "good, bare; or all" in str(result.exception)


def test_a_run_prints_its_table_and_says_where_everything_is(tmp_path):
    result = run("good")
    assert result.exit_code == 0
    assert "Sum\n\nn  sum\n" in result.stdout
    assert "3 replications" in result.stdout
    assert "good: 3 of 3 (" in result.stderr
    assert (tmp_path / "reproductions" / "good" / "README.md").is_file()


def test_a_quick_run_leaves_the_full_results_alone(tmp_path):
    run("good")
    before = (tmp_path / "reproductions" / "good" / "results.csv").read_bytes()
    assert "1 replication;" in run("good", "--quick").stdout
    assert (tmp_path / "reproductions-quick" / "good" / "results.csv").is_file()
    assert (tmp_path / "reproductions" / "good" / "results.csv").read_bytes() == before


def test_a_finished_run_says_how_to_run_it_again():
    run("good")
    assert "--force" in run("good").stderr


def test_another_seed_is_refused_and_forced(tmp_path):
    run("good", "--out", "here")
    refused = run("good", "--out", "here", "--seed", "5")
    assert isinstance(refused.exception, CommandError)
    assert "seed (0 there, 5 asked for)" in str(refused.exception)
    assert run("good", "--out", "here", "--seed", "5", "--force").exit_code == 0


def test_missing_data_stop_one_experiment_and_of_all_only_that_one():
    alone = run("bare")
    assert isinstance(alone.exception, CommandError)
    assert "COTERIE_DATA" in str(alone.exception)
    among = run("all")
    assert among.exit_code == 2
    assert "bare: set COTERIE_DATA" in among.stderr
    assert "3 replications" in among.stdout


@pytest.mark.parametrize(
    ("options", "same"), [([], "the same command"), (["--force"], "the same command without --force")]
)
def test_an_interrupted_run_says_that_it_continues(monkeypatch, options, same):
    def interrupted(run, progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "reproduce", interrupted)
    result = run("good", *options)
    assert result.exit_code == 130
    assert f"and {same} continues" in result.stderr


@pytest.mark.parametrize("bad", [("--n-jobs", "0"), ("--replications", "0"), ("--seed", "-1")])
def test_numbers_out_of_range_are_refused(bad):
    result = run("good", *bad)
    assert isinstance(result.exception, CommandError) or result.exit_code == 2


def test_a_terminal_gets_a_bar(monkeypatch):
    output = []
    from rich.console import Console

    monkeypatch.setattr(Console, "is_terminal", property(lambda self: True))
    monkeypatch.setattr(
        "rich.progress.Progress.update", lambda self, task, **kw: output.append(kw["completed"])
    )
    assert run("good").exit_code == 0
    assert output == [1, 2, 3]


def failing(seed, settings):
    raise OSError("the disk is full")


def test_what_fails_on_the_way_is_one_sentence_and_the_others_run(monkeypatch):
    offer(monkeypatch, bad=replace(experiment("bad"), replicate=failing), good=experiment("good"))
    alone = run("bad")
    assert isinstance(alone.exception, CommandError)
    assert "Replication 0" in str(alone.exception)
    both = run("all")
    assert both.exit_code == 2
    assert "bad: Replication 0" in both.stderr
    assert "3 replications" in both.stdout
