"""From tables at sites to who learns with whom: the whole way by commands."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from coterie import CoterieRegressor
from coterie.federated import Question, answer, conclude, make_site, score, share
from coterie.federated.folder import SealedFolder
from coterie.federated.sealing import seal
from coterie.federated.signing import read_key

from .conftest import make_table

SITES = "abcdef"


def rows_of(table, site):
    mine = table.filter(pl.col("site") == site).drop("site")
    return mine.select("x0", "x1").to_numpy(), mine["y"].to_numpy()


@pytest.fixture(scope="session")
def scored_once(tmp_path_factory):
    """Six sites that have shared and scored, each with its table."""
    folder = tmp_path_factory.mktemp("sealed")
    table = make_table()
    (folder / "box").mkdir()
    box = SealedFolder(folder / "box")
    sites = {}
    for name in SITES:
        table.filter(pl.col("site") == name).drop("site").write_csv(folder / f"{name}.csv")
        X, y = rows_of(table, name)
        sites[name] = make_site(X, y, site=name, columns=("x0", "x1"), candidates=["ridge"])
    shares = [share(site) for site in sites.values()]
    for message in (*shares, *(score(site, shares) for site in sites.values())):
        box.put(message)
    return folder, sites


@pytest.fixture(scope="session")
def concluded_once(scored_once, tmp_path_factory):
    """The same, answered and concluded."""
    folder, sites = scored_once
    place = tmp_path_factory.mktemp("concluded") / "home"
    shutil.copytree(folder, place)
    box = SealedFolder(place / "box")
    while True:
        contents = box.read()
        outcome = conclude(contents.shares, contents.scores, contents.answered)
        box.put(outcome)
        if not isinstance(outcome, Question):
            return place
        for site in sites.values():
            box.put(answer(site, contents.shares, outcome))


@pytest.fixture
def scored(scored_once, tmp_path, monkeypatch):
    shutil.copytree(scored_once[0], tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


@pytest.fixture
def concluded(concluded_once, tmp_path, monkeypatch):
    shutil.copytree(concluded_once, tmp_path / "done")
    monkeypatch.chdir(tmp_path / "done")
    return tmp_path / "done"


def score_all(run, sites=SITES):
    for site in sites:
        outcome = run("score", f"{site}.csv", "--name", site, "--folder", "box")
        assert outcome.code == 0, outcome


def local_labels():
    table = make_table()
    model = CoterieRegressor(["ridge"], refine="average")
    model.fit(table.select("x0", "x1"), table["y"], groups=table["site"].to_numpy())
    return dict(zip(model.learner_ids_.tolist(), model.learner_labels_.tolist(), strict=True)), model


def test_the_whole_way_comes_to_the_local_fit(run, scored):
    for _ in range(12):
        outcome = run("conclude", "--folder", "box", "--json")
        found = json.loads(outcome.out)
        if outcome.code == 0:
            break
        assert outcome.code == 3
        assert found["state"] == "asking"
        assert set(found["waiting"]) == set(SITES)
        score_all(run)
    labels, model = local_labels()
    assert found["labels"] == labels
    assert found["left_out"] == {}
    gains = {row["learner"]: row["gain"] for row in found["gains"]}
    for site, gain in zip(model.gains_["learner"], model.gains_["gain"], strict=True):
        assert gains[site] == pytest.approx(gain, abs=1e-10)
    again = run("conclude", "--folder", "box", "--json")
    assert json.loads(again.out) == found


def test_people_read_who_learns_with_whom(run, concluded):
    outcome = run("conclude", "--folder", "box")
    assert outcome.code == 0
    labels, model = local_labels()
    assert f"The 6 learners fall into {model.n_clusters_} coteries" in outcome.out
    assert ", ".join(site for site in SITES if labels[site] == 0) in outcome.out
    assert "Learning with others is expected to pay for" in outcome.out


def test_by_losses_alone_nobody_is_told_to_collaborate(run, scored):
    output = run("conclude", "--folder", "box", "--no-rounds")
    assert output.code == 0
    assert "What learning with others brings was not measured." in output.out
    assert "collaborate" not in output.out
    found = json.loads(run("conclude", "--folder", "box", "--no-rounds", "--json").out)
    assert {row["verdict"] for row in found["gains"]} == {"not measured"}
    assert "not measured" in Path("box/report.html").read_text()


def test_a_round_is_announced_and_exit_code_3_says_so(run, scored):
    outcome = run("conclude", "--folder", "box")
    assert outcome.code == 3
    assert "Round 1 of at most 4: run `coterie score` again at 'a', 'b', 'c'" in outcome.out


def test_who_has_not_scored_is_waited_for_or_left_out(run, scored):
    os.remove("box/score-c.coterie")
    outcome = run("conclude", "--folder", "box")
    assert outcome.code == 3
    assert "Waiting for c. It has not scored" in outcome.out
    for options in (("--now",), ("--leave-out", "c")):
        found = json.loads(run("conclude", "--folder", "box", "--json", *options).out)
        assert set(found["waiting"]) == set(SITES) - {"c"}


def test_who_does_not_answer_is_left_out_and_the_rest_concludes(run, scored):
    for _ in range(24):
        outcome = run("conclude", "--folder", "box", "--json", "--now")
        found = json.loads(outcome.out)
        if outcome.code == 0:
            break
        score_all(run, set(found["waiting"]) - {"c"})
    assert found["left_out"] == {"c": "it did not answer."}
    assert set(found["labels"]) == set(SITES) - {"c"}
    outcome = run("conclude", "--folder", "box", "--now")
    assert "Left out: c. It did not answer." in outcome.out


def test_a_damaged_file_is_named_and_the_rest_goes_on(run, scored):
    with open("box/share-c.coterie", "r+b") as file:
        file.seek(-5, os.SEEK_END)
        file.write(b"X")
    outcome = run("conclude", "--folder", "box", "--json")
    assert "'share-c.coterie' is not used. Its content was changed" in outcome.err
    found = json.loads(outcome.out)
    assert set(found["waiting"]) == set(SITES) - {"c"}
    assert "share-c.coterie" in found["troubles"]


def test_scoring_again_does_nothing_until_asked(run, scored):
    before = sorted(os.listdir("box"))
    outcome = run("score", "a.csv", "--name", "a", "--folder", "box")
    assert "nothing to score or to answer" in outcome.out
    assert sorted(os.listdir("box")) == before


def test_a_newcomer_is_scored_by_all_in_the_next_round(run, scored):
    table = make_table()
    X, y = rows_of(table, "a")
    site = make_site(X[:15], y[:15], site="g", columns=("x0", "x1"), candidates=["ridge"])
    SealedFolder("box").put(share(site))
    outcome = run("score", "a.csv", "--name", "a", "--folder", "box")
    assert "a scored 7 models" in outcome.out


def test_a_second_share_under_a_name_that_is_taken_is_not_used(run, scored):
    X, y = rows_of(make_table(), "b")
    impostor = share(make_site(X[:15], y[:15], site="c", columns=("x0", "x1"), candidates=["ridge"]))
    (scored / "box" / "another.coterie").write_bytes(seal(impostor))
    outcome = run("score", "a.csv", "--name", "a", "--folder", "box")
    assert "nothing to score" in outcome.out
    assert "'another.coterie' is not used. Its name must be 'share-c.coterie'" in outcome.err
    found = json.loads(run("conclude", "--folder", "box", "--json").out)
    assert set(found["waiting"]) == set(SITES)


def test_another_table_than_was_shared_is_refused(run, scored):
    complaint = run("score", "b.csv", "--name", "a", "--folder", "box").complaint
    assert "not the one that 'a' shared" in complaint
    assert "no share of 'z'" in run("score", "b.csv", "--name", "z", "--folder", "box").complaint
    assert (
        "not of 'x0'" in run("score", "a.csv", "--name", "a", "--target", "x0", "--folder", "box").complaint
    )
    assert "--name is missing" in run("score", "a.csv", "--folder", "box").complaint


def test_known_keys_refuse_whoever_is_not_listed(run, scored):
    line = run("keygen", "--name", "a", "--out", "key").out
    (scored / "known").write_text(line)
    outcome = run("conclude", "--folder", "box", "--known-keys", "known", "--sign", "key")
    assert outcome.code == 2
    assert "has no share" in outcome.err
    options = ("--candidates", "ridge", "--sign", "key", "--replace")
    run("share", "a.csv", "--target", "y", "--name", "a", "--folder", "box", *options)
    outcome = run("conclude", "--folder", "box", "--known-keys", "known", "--sign", "key")
    assert "Waiting for a" in outcome.out


def test_what_a_list_of_keys_would_refuse_is_not_written(run, scored):
    (scored / "known").write_text(run("keygen", "--name", "a", "--out", "key").out)
    run("keygen", "--name", "b", "--out", "other")
    listed = ("--folder", "box", "--known-keys", "known")
    for command in (
        ("conclude",),
        ("score", "a.csv", "--name", "a"),
        ("share", "a.csv", "--target", "y", "--name", "a"),
    ):
        assert "sign what you write with --sign" in run(*command, *listed).complaint
        assert "in the list of --known-keys" in run(*command, *listed, "--sign", "other").complaint
    (scored / "known").write_bytes(b"\xff\xfe")
    assert "not text in UTF-8" in run("conclude", *listed).complaint


def test_rounds_asked_with_other_settings_have_no_bound_in_common(run, scored):
    run("conclude", "--folder", "box")
    for _ in range(3):
        score_all(run)
        run("conclude", "--folder", "box")
    score_all(run)
    outcome = run("conclude", "--folder", "box", "--refine-rounds", "1", "--n-clusters", "4")
    assert ": run `coterie score`" in outcome.out


def test_few_rows_must_be_a_number_of_rows(run, scored):
    assert run("conclude", "--folder", "box", "--min-rows", "-1").code == 2


def test_each_site_predicts_with_its_coterie(run, concluded):
    outcome = run("predict", "box", "a.csv", "--name", "a")
    assert outcome.code == 0, outcome
    table = make_table()
    _, model = local_labels()
    X, _ = rows_of(table, "a")
    expected = model.predict(pl.DataFrame(X, schema=["x0", "x1"]), groups=["a"] * len(X))
    found = pl.read_csv(outcome.out.encode())["prediction"].to_numpy()
    assert found == pytest.approx(expected)
    assert run("predict", "box", "a.csv", "--name", "a", "--out", "p.csv").code == 0
    assert (concluded / "p.csv").read_text() == outcome.out


def test_predicting_needs_a_conclusion_a_name_and_the_models_of_then(run, scored, concluded):
    os.chdir(concluded)
    assert "--name is missing" in run("predict", "box", "a.csv").complaint
    assert "no site 'z'" in run("predict", "box", "a.csv", "--name", "z").complaint
    os.remove("box/conclusion.coterie")
    assert "no conclusion yet" in run("predict", "box", "a.csv", "--name", "a").complaint


def test_predicting_says_why_a_conclusion_cannot_be_used(run, concluded):
    path = concluded / "box" / "conclusion.coterie"
    path.write_bytes(path.read_bytes()[:-9])
    complaint = run("predict", "box", "a.csv", "--name", "a").complaint
    assert "cannot be used: conclude again. It has" in complaint


def test_predicting_from_text_advises_nothing_that_cannot_be_done(run, concluded):
    pl.read_csv("a.csv").with_columns(x0=pl.lit("red")).write_csv("text.csv")
    complaint = run("predict", "box", "text.csv", "--name", "a").complaint
    assert "'x0' is String" in complaint
    assert "--drop" not in complaint


def test_a_model_that_changed_since_the_conclusion_is_refused(run, concluded):
    options = ("--candidates", "lasso", "--replace")
    run("share", "c.csv", "--target", "y", "--name", "c", "--folder", "box", *options)
    assert "'c' has shared another model since" in run("predict", "box", "a.csv", "--name", "a").complaint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--folder", "box", "--leave-out", "z"), "no share of 'z'"),
        (("--folder", "none"), "no folder 'none'"),
        ((), "--folder is missing"),
        (("--folder", "box", "--n-clusters", "cv"), "The rule 'cv'"),
        (("--folder", "box", "--n-clusters", "9"), "must not exceed"),
        (("--folder", "box", "--n-clusters", "nonsense"), "nonsense"),
        (("--folder", "."), "has no share"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run, scored, options, words):
    assert words in run("conclude", *options).complaint


def test_waiting_ends(run, scored):
    outcome = run("conclude", "--folder", "box", "--wait", "0.1")
    assert outcome.code == 3
    outcome = run("score", "a.csv", "--name", "a", "--folder", "box", "--wait", "0.1")
    assert "a answered 1 question." in outcome.out


@pytest.mark.parametrize("damage", ["cut", "folder", "garbage"])
def test_one_bad_file_does_not_stop_the_conclusion(run, concluded, damage):
    expected = json.loads(run("conclude", "--folder", "box", "--json").out)
    for name in ("box/conclusion.coterie", "box/zz.coterie"):
        content = (concluded / "box" / "conclusion.coterie").read_bytes() if os.path.isfile(name) else b""
        if os.path.exists(name):
            os.remove(name)
        if damage == "folder":
            os.mkdir(name)
        else:
            (concluded / name).write_bytes(content[:-9] if damage == "cut" else b"garbage")
    outcome = run("conclude", "--folder", "box", "--json")
    assert outcome.code == 0, outcome
    assert "'conclusion.coterie' is not used" in outcome.err
    assert json.loads(outcome.out)["labels"] == expected["labels"]
    assert SealedFolder("box").read().conclusion is not None


def test_a_forged_question_file_is_written_anew(run, scored):
    assert run("conclude", "--folder", "box").code == 3
    (question,) = (scored / "box").glob("question-*.coterie")
    question.write_bytes(question.read_bytes()[:-20])
    outcome = run("conclude", "--folder", "box")
    assert outcome.code == 3, outcome
    assert len(SealedFolder("box").read().answered) == 1


def forge(run, signer=None, **changes):
    """Put a conclusion of one's own into the folder."""
    box = SealedFolder("box")
    conclusion = box.read().conclusion
    first, second = sorted(conclusion.mixtures)[:2]
    changes = changes or {
        "mixtures": {**conclusion.mixtures, first: replace(conclusion.mixtures[first], weights={second: 1.0})}
    }
    box.put(replace(conclusion, **changes), signer, replace=True)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"settings": {"n_clusters": "1"}},
        {"settings": {"n_clusters": '"auto"', "stranger": "1"}},
        {"settings": {"refine_rounds": '"many"'}},
    ],
)
def test_a_conclusion_that_does_not_follow_is_not_used(run, concluded, changes):
    forge(run, **changes)
    outcome = run("predict", "box", "a.csv", "--name", "a")
    assert outcome.code != 0
    words = ("does not follow", "are not all here", "none of coterie's")
    assert any(word in outcome.complaint for word in words), outcome


def test_a_conclusion_with_other_settings_is_checked_with_these(run, scored):
    options = ("--n-clusters", "3", "--refine-rounds", "1")
    while run("conclude", "--folder", "box", *options).code:
        score_all(run)
    assert run("predict", "box", "a.csv", "--name", "a").code == 0
    os.remove("box/score-b.coterie")
    assert "conclude again" in run("predict", "box", "a.csv", "--name", "a").complaint


def test_who_may_conclude_can_be_named(run, scored):
    os.rename("box", "unsigned")
    os.mkdir("box")
    for site in SITES[:3]:
        key = run("keygen", "--name", site, "--out", f"{site}.key").out.split()[-1]
        with open("known.txt", "a") as file:
            file.write(f"{site} {key}\n")
    box = ("--folder", "box", "--known-keys", "known.txt")
    for site in SITES[:3]:
        options = ("--target", "y", "--name", site, "--candidates", "ridge", "--sign", f"{site}.key")
        assert run("share", f"{site}.csv", *options, *box).code == 0
    while True:
        for site in SITES[:3]:
            assert run("score", f"{site}.csv", "--name", site, "--sign", f"{site}.key", *box).code == 0
        if run("conclude", "--sign", "b.key", *box).code == 0:
            break
    alone, listed = ("predict", "box", "a.csv", "--name", "a"), ("--known-keys", "known.txt")
    honest = run(*alone, *listed).out
    assert run(*alone, *listed, "--concluder", "b").out == honest
    assert "not signed by 'a'" in run(*alone, *listed, "--concluder", "a").complaint
    assert "has no key of 'z'" in run(*alone, *listed, "--concluder", "z").complaint
    assert "needs --known-keys" in run(*alone, "--concluder", "b").complaint
    # One of them signs a conclusion of its own.
    forge(run, read_key("c.key"))
    assert "does not follow" in run(*alone, *listed).complaint
    assert "not signed by 'b'" in run(*alone, *listed, "--concluder", "b").complaint
