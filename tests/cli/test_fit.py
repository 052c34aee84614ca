"""``coterie fit`` from a file to its results, and every input that it refuses."""

import errno
import json
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import coterie
from coterie.cli.preparing import prepare
from coterie.datasets import make_stress

FIT = ("--target", "y", "--group", "site", "--candidates", "lr")
QUIET = (*FIT, "--no-report")
TRUTHS = [["a", "c", "e"], ["b", "d", "f"]]


def names_in(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_the_results_are_files_that_agree_with_the_library(run, here, table):
    outcome = run("fit", "table.csv", *QUIET, "--out", "out")
    assert outcome.code == 0
    assert names_in("out") == ["gains.csv", "labels.csv", "losses.csv", "model.coterie", "summary.json"]
    assert names_in(".") == ["out", "table.csv"]
    rows, _ = prepare(table, target="y", group="site")
    by_hand = coterie.CoterieRegressor(candidates="lr").fit(rows.X, rows.y, groups=rows.groups)
    labels, gains = pl.read_csv("out/labels.csv"), pl.read_csv("out/gains.csv")
    assert labels["learner"].to_list() == list("abcdef")
    assert labels["cluster"].to_list() == by_hand.learner_labels_.tolist() == [0, 1] * 3
    np.testing.assert_allclose(gains["gain"], by_hand.gains_["gain"])
    losses = pl.read_csv("out/losses.csv")
    assert losses.columns == ["model of", *"abcdef"]
    np.testing.assert_allclose(losses.drop("model of").to_numpy(), by_hand.exchange_.losses)
    model = coterie.load("out/model.coterie")
    np.testing.assert_array_equal(model.predict(rows.X, rows.groups), by_hand.predict(rows.X, rows.groups))
    assert model.table_.target == "y"


def test_the_summary_answers_the_questions(run, here):
    output = run("fit", "table.csv", *QUIET).out
    assert "The 6 learners fall into 2 coteries" in output
    assert "a, c, e" in output
    assert "Learning with others is expected to" in output
    assert "Why 2 coteries? It is the smallest number" in output
    assert "Results are in coterie-table/." in output


def test_json_is_one_object_alone_on_stdout(run, here):
    outcome = run("fit", "table.csv", *QUIET, "--json", "--out", "out")
    summary = json.loads(outcome.out)
    assert [entry["learners"] for entry in summary["coteries"]] == TRUTHS
    assert summary["n_clusters"] == 2
    assert summary["rule"] == "held-out"
    assert len(summary["gains"]) == 6
    assert [plan["name"] for plan in summary["columns"]] == ["x0", "x1"]
    assert json.loads(Path("out/summary.json").read_text()) == summary


def test_away_from_a_terminal_progress_is_lines_on_stderr(run, here):
    outcome = run("fit", "table.csv", *QUIET)
    assert "Select: 6 of 6" in outcome.err
    assert "Select" not in outcome.out


def test_text_dates_and_gaps_are_encoded_and_listed(run, here, table):
    n = table.height
    table.with_columns(
        colour=pl.Series(["red", "blue"] * (n // 2)),
        day=pl.date_range(pl.date(2020, 1, 1), pl.date(2020, 1, 1) + pl.duration(days=n - 1), eager=True),
        x1=pl.when(pl.int_range(n) % 10 == 0).then(None).otherwise(pl.col("x1")),
    ).write_csv("mixed.csv")
    outcome = run("fit", "mixed.csv", *QUIET, "--n-clusters", "2", "--verbose")
    assert outcome.code == 0
    assert "Column 'colour': category: 2 entries" in outcome.out
    assert "Column 'day': date: month, weekday." in outcome.out
    assert "Column 'x1': number, 12 of 120 missing (filled with the median" in outcome.out


def test_files_of_a_pattern_are_learners(run, here, table):
    for (name,), rows in table.group_by("site"):
        rows.drop("site").write_csv(f"site-{name}.csv.gz" if name == "z" else f"site-{name}.csv")
    options = ("--target", "y", "--group", "filename", "--candidates", "lr", "--no-report", "--json")
    summary = json.loads(run("fit", "site-*.csv", *options).out)
    assert [e["learners"] for e in summary["coteries"]] == [[f"site-{n}" for n in names] for names in TRUTHS]
    assert summary["out"] == "coterie-fit"


def test_the_seed_and_the_order_of_rows_decide_nothing_they_should_not(run, here, table):
    table.sample(fraction=1, shuffle=True, seed=1).write_csv("shuffled.csv")
    one = json.loads(run("fit", "table.csv", *QUIET, "--json").out)
    two = json.loads(run("fit", "shuffled.csv", *QUIET, "--json").out)
    assert [sorted(c["learners"]) for c in two["coteries"]] == [c["learners"] for c in one["coteries"]]


def test_wild_cells_are_noted_once_in_terminal_and_page(run, here, table):
    changed = table.with_columns(
        x1=pl.when(pl.int_range(pl.len()) == 7).then(-9999.0).otherwise(pl.col("x1"))
    )
    changed.write_csv("table.csv")
    said = "Column 'x1' has 1 cell of -9999 in rows of learner"
    outcome = run("fit", "table.csv", *FIT, "--json", "--out", "out")
    assert [note.startswith(said) for note in json.loads(outcome.out)["notes"]].count(True) == 1
    assert "likely a code for a missing value" in Path("out/report.html").read_text()
    loaded = coterie.load("out/model.coterie")
    assert loaded.partition_.notes[0].startswith(said)
    assert "set aside" in run("fit", "table.csv", *QUIET, "--out", "again").out


def test_a_dropped_candidate_is_a_note_not_a_warning(run, here, table):
    # Half of eight rows are fewer than the five neighbours that it asks for.
    table.filter(pl.int_range(pl.len()).over("site") < 8).write_csv("short.csv")
    options = ("--target", "y", "--group", "site", "--candidates", "lr,knn", "--no-report")
    outcome = run("fit", "short.csv", *options, "--n-clusters", "2")
    assert outcome.code == 0
    assert "Note: The candidate 'knn' was dropped for learner 'a', 'b'" in outcome.out
    assert "Warning" not in outcome.err


def test_the_report_page_is_written(run, here):
    assert run("fit", "table.csv", *FIT, "--out", "out").code == 0
    assert "<html" in Path("out/report.html").read_text()


def test_an_unknown_candidate_is_refused_without_a_remedy_of_python_s(run, here):
    assert "scikit-learn" not in run("fit", "table.csv", *QUIET, "--candidates", "magic").complaint


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("none.csv", *QUIET), "There is no file 'none.csv'"),
        ((*QUIET,), "There is no table to fit"),
        (("table.csv", "--group", "site"), "--target is missing"),
        (("table.csv", "--target", "y"), "--group is missing"),
        (("table.csv", "--target", "Y", "--group", "site", "--no-report"), "did you mean 'y'?"),
        (("table.csv", "--target", "y", "--group", "sites", "--no-report"), "did you mean 'site'?"),
        (("table.csv", *QUIET, "--drop", "x9"), "no column 'x9' for --drop: did you mean 'x"),
        (
            ("table.csv", "--target", "site", "--group", "y", "--task", "regression", "--no-report"),
            "'site' is not numeric",
        ),
        (("table.csv", "--target", "y", "--group", "x0", "--no-report"), "Every row has its own value"),
        (("table.csv", *QUIET, "--candidates", "magic"), "The candidate 'magic' is not known"),
        (("table.csv", *QUIET, "--n-clusters", "many"), "--n-clusters must be a number or one of 'auto'"),
        (("table.csv", *QUIET, "--n-clusters", "99"), "must not exceed the number of learners (6)"),
        (("table.csv", *QUIET, "--collaboration", "none"), "--collaboration must be one of"),
        (("table.csv", *QUIET, "--device", "tpu"), "--device must be one of"),
        (("table.csv", *QUIET, "--effort", "none"), "--effort must be one of"),
        (("table.csv", *QUIET, "--order", "time"), "--order must be auto or none. Got 'time'"),
        (("table.csv", *QUIET, "--landmarks", "few"), "--landmarks must be one of"),
        (("latin.csv", *QUIET), "is not encoded in UTF-8"),
        (("semicolon.csv", *QUIET, "--delimiter", ","), "pass --delimiter ';'"),
        (("empty.csv", *QUIET), "is empty"),
        (("header.csv", *QUIET), "has no rows"),
        (("one.csv", *QUIET), "has the one value 'a'"),
        (("words.csv", *QUIET), "The target 'y' is not numeric (it holds 'high')"),
        (("few.csv", *QUIET), "No learner has the 4 rows that clustering needs"),
        (("table.csv", *QUIET, "--out", "table.csv"), "'table.csv' is a file"),
        (("table.csv", *QUIET, "--out", "mine"), "holds 'thesis.tex'"),
        (("table.csv", *QUIET, "--out", "table.csv/out"), "cannot be written"),
    ],
)
def test_bad_input_is_one_sentence_and_leaves_nothing(run, here, table, arguments, sentence):
    Path("latin.csv").write_bytes("y,site,x\n1,caf\xe9,2\n".encode("latin-1"))
    table.write_csv("semicolon.csv", separator=";")
    Path("empty.csv").write_text("")
    Path("header.csv").write_text("y,site,x\n")
    table.with_columns(site=pl.lit("a")).write_csv("one.csv")
    table.with_columns(y=pl.lit("high")).write_csv("words.csv")
    table.filter(pl.int_range(pl.len()).over("site") < 2).write_csv("few.csv")
    Path("mine").mkdir()
    Path("mine/thesis.tex").write_text("")
    before = names_in(".")
    assert sentence in run("fit", *arguments).complaint
    assert names_in(".") == before


def test_results_that_are_there_are_kept_unless_forced(run, here):
    assert run("fit", "table.csv", *QUIET, "--out", "out").code == 0
    before = Path("out/model.coterie").stat().st_mtime_ns
    assert "has results already" in run("fit", "table.csv", *QUIET, "--out", "out").complaint
    assert Path("out/model.coterie").stat().st_mtime_ns == before
    assert run("fit", "table.csv", *QUIET, "--out", "out", "--force").code == 0
    assert Path("out/model.coterie").stat().st_mtime_ns > before


def test_no_space_while_results_are_written(run, here, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("coterie.persistence.save", full)
    monkeypatch.setitem(vars(coterie), "save", full)
    outcome = run("fit", "table.csv", *QUIET, "--out", "out")
    assert outcome.code == 2
    assert "No space is left on the disk of 'out'" in outcome.err
    assert "Traceback" not in outcome.err
    assert not Path("out").exists()
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert run("fit", "table.csv", *QUIET, "--out", "out", "--resume").code == 0
    assert names_in(".") == ["out", "table.csv"]


def test_no_space_while_learners_are_kept(run, here, monkeypatch):
    def full(self, name, result):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("coterie.engines.checkpoints.CheckpointEngine._write", full)
    outcome = run("fit", "table.csv", *QUIET, "--out", "out")
    assert outcome.code == 2
    assert "No space is left" in outcome.err
    assert names_in(".") == ["table.csv"]


def test_a_missing_extra_is_named_before_any_work(run, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    assert "install coterie's extra 'report'" in run("fit", "table.csv", *FIT).complaint


def test_a_scheduler_that_does_not_answer_is_one_sentence(run, here, monkeypatch):
    pytest.importorskip("distributed", reason="dask.distributed is not installed")
    monkeypatch.setattr("coterie.engines.dask.PATIENCE", 0.5)
    before = names_in(".")
    outcome = run("fit", "table.csv", *QUIET, "--scheduler", "tcp://127.0.0.1:9")
    assert outcome.complaint.startswith("No Dask scheduler answers at 'tcp://127.0.0.1:9'")
    assert names_in(".") == before


@pytest.mark.filterwarnings("ignore")
def test_the_workers_of_a_scheduler_give_the_same_answer(run, here):
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
    assert run("fit", "table.csv", *QUIET, "--out", "here").code == 0
    options = {"processes": False, "dashboard_address": None, "protocol": "tcp://", "host": "127.0.0.1"}
    with distributed.LocalCluster(1, **options) as cluster:
        address = cluster.scheduler_address
        assert run("fit", "table.csv", *QUIET, "--out", "there", "--scheduler", address).code == 0
    assert Path("there/gains.csv").read_text() == Path("here/gains.csv").read_text()


def test_rows_in_time_order_are_a_note_unless_their_order_is_to_mean_nothing(run, here):
    data = make_stress("AR(1) noise .8, one truth", 1000)
    mine = np.isin(data.groups, data.learner_ids[:6])
    columns = {f"x{p}": data.X[mine, p] for p in range(6)}
    pl.DataFrame({"y": data.y[mine], "site": data.groups[mine], **columns}).write_csv("time.csv")
    for order, found in (("auto", True), ("none", False)):
        outcome = run(
            "fit", "time.csv", *QUIET, "--candidates", "lr", "--order", order, "--out", order, "--json"
        )
        assert outcome.code == 0, outcome
        notes = " ".join(json.loads(outcome.out)["notes"])
        assert ("Neighbouring rows of the learners depend on each other" in notes) is found


def test_little_effort_is_passed_on_and_has_candidates_of_its_own(run, here, table):
    by_default = ("--target", "y", "--group", "site", "--no-report")
    outcome = run("fit", "table.csv", *by_default, "--effort", "fast", "--out", "out")
    assert outcome.code == 0, outcome
    model = coterie.load("out/model.coterie")
    assert (model.effort, model.candidates, model.stability_) == ("fast", None, None)
    assert set(model.selection_.names) == {"ridge"}
    rows, _ = prepare(table, target="y", group="site")
    by_hand = coterie.CoterieRegressor(effort="fast").fit(rows.X, rows.y, groups=rows.groups)
    np.testing.assert_array_equal(model.predict(rows.X, rows.groups), by_hand.predict(rows.X, rows.groups))


def test_candidates_that_are_named_stay_with_little_effort(run, here):
    assert run("fit", "table.csv", *QUIET, "--effort", "fast", "--out", "out").code == 0
    assert set(coterie.load("out/model.coterie").selection_.names) == {"lr"}


def test_the_effort_is_full_unless_asked_for(run, here):
    assert run("fit", "table.csv", *QUIET, "--out", "out").code == 0
    assert coterie.load("out/model.coterie").effort == "full"


@pytest.mark.parametrize("option", ["--n-clusters", "--landmarks", "--max-clusters", "--seed"])
@pytest.mark.parametrize("value", ["²", "9" * 5000, "1" * 400 + "x", "-"])
def test_what_only_looks_like_a_number_is_refused(run, here, option, value):
    # The first two ended in tracebacks of int().
    assert len(run("fit", "table.csv", *QUIET, option, value).complaint) <= 1000


def test_one_thread_and_several_give_the_same_bits(run, here):
    fit = ("fit", "table.csv", "--target", "y", "--group", "site", "--candidates", "ridge,rf", "--no-report")
    for jobs in ("1", "2"):
        assert run(*fit, "--jobs", jobs, "--out", jobs).code == 0
    for name in ("gains.csv", "losses.csv", "labels.csv"):
        assert Path("1", name).read_bytes() == Path("2", name).read_bytes()
    models = [coterie.load(f"{jobs}/model.coterie") for jobs in ("1", "2")]
    rows = pl.read_csv("table.csv").drop("y")
    first, second = (m.predict(rows.drop("site"), groups=rows["site"]) for m in models)
    np.testing.assert_array_equal(first, second)


def test_a_hundred_thousand_jobs_are_done_by_fewer_threads(run, here):
    assert run("fit", "table.csv", *QUIET, "--jobs", "100000").code == 0


@pytest.mark.parametrize("address", ["%%%", "", "http://x", "tcp://127.0.0.1:99999999", "tcp://", "\x1b"])
def test_what_is_no_address_is_refused_at_once(run, here, address):
    # Some were tried for minutes, and dask logged a traceback.
    pytest.importorskip("distributed")
    assert (
        "is no address of a Dask scheduler"
        in run("fit", "table.csv", *QUIET, "--scheduler", address).complaint
    )


@pytest.mark.parametrize("name", ["o" * 300, "a/" * 3000 + "b"])
def test_a_name_that_is_too_long_is_a_sentence(run, here, fitted, name):
    for arguments in (
        ("fit", "table.csv", *QUIET),
        ("predict", fitted, "table.csv"),
        ("report", fitted),
        ("keygen", "--name", "a"),
    ):
        assert "File name too long" in run(*arguments, "--out", name).complaint


def test_learners_of_long_names_are_shown_short_and_written_whole(run, here, table):
    names = {letter: letter * 5000 for letter in "abcdef"}
    table.with_columns(table["site"].replace_strict(names)).write_csv("long.csv")
    outcome = run("fit", "long.csv", *QUIET, "--out", "out")
    assert outcome.code == 0
    assert len(outcome.out) < 10_000
    assert pl.read_csv("out/labels.csv")["learner"].to_list() == list(names.values())


def test_the_time_column_orders_rows_and_is_no_predictor(run, here, table):
    n = table.height
    timed = table.with_columns(day=pl.int_range(n, eager=True) % (n // 6))
    timed[np.random.default_rng(0).permutation(n)].write_csv("timed.csv")
    outcome = run("fit", "timed.csv", *QUIET, "--time", "day", "--out", "out")
    assert outcome.code == 0
    assert "Errors are those of forecasts" in outcome.out
    model = coterie.load("out/model.coterie")
    assert model.predictors_ == ["x0", "x1"]
    known = run("predict", "out/model.coterie", "table.csv")
    assert known.code == 0
    newcomers = timed.filter(pl.col("site") == "a").with_columns(site=pl.lit("new"))
    newcomers.drop("day").write_csv("untimed.csv")
    assert "has no column 'day' for the time" in run("admit", "out/model.coterie", "untimed.csv").complaint
    newcomers.write_csv("new.csv")
    assert run("admit", "out/model.coterie", "new.csv").code == 0


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--time", "dya"), "has no column 'dya' for --time"),
        (("--time", "site"), "'site' cannot be the time, too"),
        (("--log-target",), "'y' goes down to -"),
        (("--log-target", "--task", "classification"), "--log-target is for numbers"),
        (("--memory", "1GiB", "--time", "x0"), "--memory does not take --time"),
    ],
)
def test_a_time_or_a_log_that_cannot_be_is_refused(run, here, options, why):
    assert why in run("fit", "table.csv", *QUIET, *options).complaint


def test_the_log_of_the_target_is_undone_in_predictions(run, here, table):
    table.with_columns(pl.col("y").exp()).write_csv("prices.csv")
    assert "of the log of y on rows not seen" in run("fit", "prices.csv", *QUIET, "--log-target").out
    assert run("fit", "table.csv", *QUIET).code == 0
    logs, plain = (
        pl.read_csv(run("predict", f"coterie-{name}/model.coterie", "table.csv").out.encode())["prediction"]
        for name in ("prices", "table")
    )
    np.testing.assert_allclose(logs, plain.exp())


def test_a_model_of_the_command_takes_the_table_in_python(run, here, table):
    mixed = table.with_columns(colour=pl.Series(["red", "blue"] * (table.height // 2)))
    mixed.write_csv("mixed.csv")
    assert run("fit", "mixed.csv", *QUIET, "--out", "out").code == 0
    model = coterie.load("out/model.coterie")
    by_command = pl.read_csv(run("predict", "out/model.coterie", "mixed.csv").out.encode())["prediction"]
    in_python = model.predict(mixed.to_pandas(), groups=mixed["site"].to_list())
    np.testing.assert_allclose(in_python, by_command)
    assert model.predictors_ == ["x0", "x1", "colour=red"]
    assert model.feature_names_in_.tolist() == ["x0", "x1", "colour"]
