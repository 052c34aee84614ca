"""Sites send moments, with noise or without; one visit each, and the rest follows."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from itertools import count
from random import Random

import numpy as np
import polars as pl
import pytest

from coterie.datasets import make_linear_learners
from coterie.federated.conclusions import Conclusion, Gain
from coterie.federated.folder import SealedFolder

from .workbooks import write_workbook

SITES = [chr(ord("a") + k) for k in range(8)]


@pytest.fixture
def box(here, monkeypatch):
    """Eight sites of two truths with a table each, a schema and an empty folder."""
    monkeypatch.setenv("COTERIE_CACHE", str(here / "cache"))
    # Noise comes from the system's entropy; here it is the same in every run.
    unseeded, seeds = np.random.default_rng, count()
    monkeypatch.setattr(np.random, "default_rng", lambda *seed: unseeded(*(seed or (next(seeds),))))
    monkeypatch.setattr("coterie.federated.moments.noise.randbelow", Random(0).randrange)
    data = make_linear_learners(n_learners=8, n_truths=2, n_rows=400, n_features=2, random_state=0)
    for site, name in zip(SITES, data.learner_ids.tolist(), strict=True):
        mine = data.groups == name
        table = pl.DataFrame(data.X[mine], schema=["x0", "x1"]).with_columns(y=pl.Series(data.y[mine]))
        table.write_csv(here / f"{site}.csv")
    columns = [{"name": name, "low": -2, "high": 2} for name in ("x0", "x1")]
    schema = {"target": {"name": "y", "low": -4, "high": 4}, "columns": columns}
    (here / "schema.json").write_text(json.dumps(schema))
    (here / "box").mkdir()
    return here


def share(run, site, *options, table=None):
    return run("share", table or f"{site}.csv", "--name", site, "--folder", "box", *options)


def privately(run, site, *options, epsilon="3", **more):
    return share(run, site, "--epsilon", epsilon, "--schema", "schema.json", *options, **more)


def conclusion(box):
    return SealedFolder(box / "box").read().conclusion


def test_two_classes_go_the_private_way(run, box):
    schema = json.loads((box / "schema.json").read_text())
    schema["target"] = {"name": "y", "kind": "category", "levels": ["low", "high"]}
    (box / "schema.json").write_text(json.dumps(schema))
    for site in SITES:
        table = pl.read_csv(box / f"{site}.csv")
        named = pl.when(pl.col("y") > 0).then(pl.lit("high")).otherwise(pl.lit("low"))
        table.with_columns(y=named).write_csv(box / f"{site}.csv")
        assert f"{site} shared: noisy moments of 400 rows" in privately(run, site).out
    assert run("conclude", "--folder", "box").code == 0
    assert conclusion(box).labels == {site: k % 2 for k, site in enumerate(SITES)}
    assert conclusion(box).classes == ("low", "high")
    output = run("score", "b.csv", "--name", "b", "--folder", "box")
    assert "Brier score on rows not seen: alone" in output.out
    for options in ((), ("--own", "b.csv")):
        done = run("predict", "box", "b.csv", "--name", "b", "--out", "p.csv", "--force", *options)
        assert done.code == 0, done.err
        found, truth = pl.read_csv(box / "p.csv"), pl.read_csv(box / "b.csv")["y"]
        assert (found["prediction"] == truth).mean() > 0.8
        np.testing.assert_allclose(found["prediction_low"] + found["prediction_high"], 1)
    schema["target"]["levels"] = ["low", "middle", "high"]
    (box / "schema.json").write_text(json.dumps(schema))
    assert "a category of two levels" in privately(run, "a", "--replace").complaint


def test_the_private_way_from_share_to_predictions(run, box):
    for site in SITES:
        assert f"{site} shared: noisy moments of 400 rows" in privately(run, site).out
    concluded = run("conclude", "--folder", "box")
    assert "8 learners fall into 2 coteries" in concluded.out
    assert conclusion(box).labels == {site: k % 2 for k, site in enumerate(SITES)}
    output = run("score", "a.csv", "--name", "a", "--folder", "box")
    assert "a: " in output.out
    assert "nothing of it is sent" in output.out
    before = sorted(os.listdir(box / "box"))
    by_line = run("predict", "box", "a.csv", "--name", "a", "--out", "line.csv")
    predicted_at_site = run("predict", "box", "a.csv", "--name", "a", "--own", "a.csv", "--out", "home.csv")
    assert (by_line.code, predicted_at_site.code) == (0, 0)
    truth = pl.read_csv(box / "a.csv")["y"]
    for name in ("line.csv", "home.csv"):
        error = ((pl.read_csv(box / name)["prediction"] - truth) ** 2).mean()
        assert error < 1.3 * 2 / 16
    assert (
        sorted(os.listdir(box / "box"))
        == before
        == sorted(["conclusion.coterie", "report.html", *(f"moments-{site}.coterie" for site in SITES)])
    )


def test_the_common_page_holds_only_what_follows_from_noisy_moments(run, box):
    for site in SITES:
        privately(run, site)
    run("conclude", "--folder", "box")
    first = conclusion(box)
    # Other rows behind the same noisy moments: nothing in the conclusion can tell them apart.
    for row in first.gains:
        assert isinstance(row, Gain)
        assert row.error_alone is row.error_with is row.error_all is row.gain is row.membership is None
    for site in SITES:
        (box / f"{site}.csv").unlink()
    (box / "box" / "conclusion.coterie").unlink()
    run("conclude", "--folder", "box")
    assert isinstance(first, Conclusion)
    assert conclusion(box) == first
    page = (box / "box" / "report.html").read_text()
    assert "concluded from moments that each site sent once" in page
    assert "each site learns at home what others bring it" in page
    # Nothing is known of gains and errors: a card has the numbers that were sent beside the moments.
    cards = json.loads(page.partition('id="store">')[2].partition("</script>")[0])["cards"]["rows"]
    for card, site in zip(cards, SITES, strict=True):
        name, _, _, _, gain, _, interval, errors, *_ = card
        assert (name, gain, interval, errors) == (site, "\N{EN DASH}", [None] * 3, ["\N{EN DASH}"] * 3)
    assert run("report", "--folder", "box", "--name", "a", "--out", "a.html").code == 0
    own = (box / "a.html").read_text()
    assert "a: collaborate. By moments; what it brings, the site learns at home." in own
    assert "It is in coterie 0, with c, e and g." in own


def test_a_site_has_a_page_of_what_it_learns_at_home(run, box):
    for site in SITES:
        privately(run, site)
    run("conclude", "--folder", "box")
    before = conclusion(box)
    output = run("score", "a.csv", "--name", "a", "--folder", "box").out
    options = ("report", "--folder", "box", "--own", "a.csv")
    outcome = run(*options, "--name", "a", "--out", "a.html")
    assert outcome.code == 0
    page = (box / "a.html").read_text()
    alone = output.split("alone ")[1].split(",")[0]
    assert f"Root mean squared error on rows not seen: alone {float(alone) ** 0.5:.2g}" in page
    assert "of a prediction is its own model" in page
    assert "with all" not in page.split("Verdict:")[1].split("</p>")[0]
    # Nothing of it went into the folder.
    assert conclusion(box) == before
    assert "name it with --name" in run(*options, "--out", "b.html").complaint
    assert "go with --folder" in run("report", "m.coterie", "--own", "a.csv").complaint


def test_what_is_spent_is_said_and_known_again(run, box):
    assert "epsilon 3, delta 1e-06 (this one included)" in privately(run, "a").out
    outcome = privately(run, "a")
    assert "had shared already" in outcome.out
    assert "spends nothing anew" in outcome.out
    rows = pl.read_csv(box / "a.csv")
    rows.sort("y").write_csv(box / "sorted.csv")
    assert "spends nothing anew" in privately(run, "z", table="sorted.csv").out
    pl.concat([rows, pl.read_csv(box / "b.csv").head(3)]).write_csv(box / "more.csv")
    complaint = privately(run, "a", table="more.csv").complaint
    assert "400 of the 403 rows were part of an earlier private message" in complaint
    assert "epsilon 6 in all" in complaint
    assert "--replace" in complaint
    assert "epsilon 6, delta 2e-06" in privately(run, "a", "--replace", table="more.csv").out


def test_a_dry_run_says_what_would_be_revealed_and_spends_nothing(run, box):
    outcome = privately(run, "a", "--dry-run", epsilon="1")
    for words in (
        "number of rows: 400",
        "20 numbers",
        "6.41 or 4.53",
        "epsilon 1, delta 1e-06",
        "Nothing else",
    ):
        assert words in outcome.out
    assert os.listdir(box / "box") == []
    assert not (box / "cache").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--epsilon", "1"), "--epsilon needs --schema"),
        (("--delta", "1e-5"), "--delta does nothing without --epsilon"),
        (("--schema", "schema.json"), "--schema does nothing without --epsilon"),
        (("--epsilon", "-1", "--schema", "schema.json"), "must be positive"),
        (("--epsilon", "1", "--schema", "none.json"), "none.json"),
        (("--epsilon", "1", "--schema", "schema.json", "--moments"), "take one of them"),
        (("--epsilon", "1", "--schema", "schema.json", "--target", "z"), "predicts 'y', not 'z'"),
        (("--epsilon", "1", "--schema", "a.csv"), "not JSON"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run, box, options, words):
    assert words in share(run, "a", *options).complaint
    assert os.listdir(box / "box") == []


def test_moments_without_noise_take_no_schema_and_no_rounds(run, box):
    for site in SITES:
        outcome = share(run, site, "--moments", "--target", "y", "--candidates", "ridge")
        assert f"{site} shared: moments of 400 rows" in outcome.out
    assert "had shared already" in share(run, "a", "--moments", "--target", "y").out
    concluded = run("conclude", "--folder", "box")
    assert "8 learners fall into 2 coteries" in concluded.out
    assert "nothing here is private" in concluded.out
    assert "a: " in run("score", "a.csv", "--name", "a", "--folder", "box").out
    assert run("predict", "box", "a.csv", "--name", "a", "--own", "a.csv", "--out", "p.csv").code == 0


def test_whose_turn_it_is(run, box):
    for site in SITES[:7]:
        privately(run, site)
    share(run, "h", "--target", "y", "--candidates", "ridge")
    outcome = run("status", "--folder", "box")
    assert "7 sites have shared." in outcome.out
    assert "Left out: h. It shared a model" in outcome.out
    assert "run `coterie conclude`" in outcome.out
    run("conclude", "--folder", "box")
    assert "Concluded" in run("status", "--folder", "box").out
    privately(run, "z", table="b.csv")
    outcome = run("status", "--folder", "box")
    assert "z shared later: run `coterie conclude`." in outcome.out
    privately(run, "a", "--replace", epsilon="2")
    assert "Nobody is waited for" in run("status", "--folder", "box").out


def test_a_conclusion_that_does_not_follow_from_the_moments_is_refused(run, box):
    for site in SITES:
        privately(run, site)
    run("conclude", "--folder", "box")
    found, sealed = conclusion(box), SealedFolder(box / "box")

    turned = tuple(
        replace(row, cluster=1 - row.cluster if row.learner < "c" else row.cluster) for row in found.gains
    )
    sealed.put(replace(found, gains=turned), replace=True)
    assert "does not follow from the moments" in run("predict", "box", "a.csv", "--name", "a").complaint
    assert "does not follow" in run("score", "a.csv", "--name", "a", "--folder", "box").complaint
    sealed.put(found, replace=True)
    named = run("predict", "box", "a.csv", "--name", "a", "--concluder", "a")
    assert "--concluder needs --known-keys" in named.complaint
    pl.read_csv(box / "b.csv").head(300).write_csv(box / "b.csv")
    privately(run, "b", "--replace")
    assert "other moments since" in run("predict", "box", "a.csv", "--name", "a").complaint


def test_models_and_moments_do_not_mix(run, box):
    for site in SITES[:5]:
        privately(run, site)
    share(run, "h", "--target", "y", "--candidates", "ridge")
    run("conclude", "--folder", "box")
    assert "shared a model" in conclusion(box).left_out["h"]
    for site in SITES[1:6]:
        (box / "box" / f"moments-{site}.coterie").unlink(missing_ok=True)
        share(run, site, "--target", "y", "--candidates", "ridge")
    run("conclude", "--folder", "box", "--no-rounds")
    for site in ("h", *SITES[1:6]):
        run("score", f"{site}.csv", "--name", site, "--folder", "box")
    run("conclude", "--folder", "box", "--no-rounds")
    assert "sent moments" in conclusion(box).left_out["a"]
    assert "was left out: It sent moments" in run("predict", "box", "a.csv", "--name", "a").complaint
    assert "shared a model" in run("score", "a.csv", "--name", "a", "--folder", "box").complaint
    assert run("predict", "box", "h.csv", "--name", "h", "--out", "h_predicted.csv").code == 0
    (box / "box" / "moments-a.coterie").unlink()
    assert "--own goes with" in run("predict", "box", "h.csv", "--name", "h", "--own", "h.csv").complaint


def test_categories_dates_and_gaps_are_encoded_as_the_schema_says(run, box):
    schema = json.loads((box / "schema.json").read_text())
    schema["columns"] += [
        {"name": "kind", "kind": "category", "levels": ["old", "new"]},
        {"name": "day", "kind": "date", "low": 2018, "high": 2022},
    ]
    schema["columns"][0]["missing"] = True
    (box / "schema.json").write_text(json.dumps(schema))
    for k, site in enumerate(SITES):
        table = pl.read_csv(box / f"{site}.csv")
        kinds = ["old", "new", f"only at {site}"]
        table = table.with_columns(
            x0=pl.when(pl.int_range(pl.len()) % 10 == 0).then(None).otherwise(pl.col("x0")),
            kind=pl.Series([kinds[j % (3 if k else 2)] for j in range(400)]),
            day=pl.date_range(pl.date(2019, 1, 1), pl.date(2020, 2, 4), eager=True)[:400],
        )
        table.write_parquet(box / f"{site}.parquet")
        outcome = privately(run, site, epsilon="100", table=f"{site}.parquet")
        assert outcome.code == 0, outcome
    run("conclude", "--folder", "box")
    found = conclusion(box)
    assert found.labels == {site: k % 2 for k, site in enumerate(SITES)}
    assert b"only at" not in b"".join(path.read_bytes() for path in (box / "box").iterdir())
    outcome = run("predict", "box", "a.parquet", "--name", "a", "--own", "a.parquet", "--out", "p.csv")
    assert outcome.code == 0
    assert pl.read_csv(box / "p.csv")["prediction"].null_count() == 0


def test_columns_that_were_named_from_rows_are_not_covered_by_epsilon(run, box):
    run("columns", "a.csv", "--target", "y", "--name", "a", "--folder", "box")
    assert "which epsilon does not cover" in privately(run, "a").err
    assert "not cover" not in privately(run, "b").err


def test_exact_moments_are_sent_again_above_knots_and_find_curves(run, box):
    for site in SITES:
        rows = pl.read_csv(box / f"{site}.csv").head(30)
        rows.with_columns(y=pl.col("y") + 3 * pl.col("x0").abs()).write_csv(box / f"{site}.csv")
        outcome = share(run, site, "--moments", "--target", "y")
        assert "run `coterie score` once at each site" in outcome.out
    complaint = run("score", "b.csv", "--name", "a", "--folder", "box").complaint
    assert "not the one that 'a' shared" in complaint
    for site in SITES:
        outcome = run("score", f"{site}.csv", "--name", site, "--folder", "box")
        assert f"{site} sent its moments above 8 knots" in outcome.out
    assert "has sent its moments" in run("score", "a.csv", "--name", "a", "--folder", "box").out
    messages = SealedFolder(box / "box").read().moments
    # Whoever came first saw the same moments: the knots are everybody's.
    assert len({message.knots for message in messages}) == 1
    run("conclude", "--folder", "box")
    assert "nothing of it is sent" in run("score", "a.csv", "--name", "a", "--folder", "box").out
    fresh = make_linear_learners(n_learners=8, n_truths=2, n_rows=2000, n_features=2, random_state=0)
    mine = fresh.groups == fresh.learner_ids[0]
    X = fresh.X[mine]
    pl.DataFrame(X, schema=["x0", "x1"]).write_csv(box / "new.csv")
    run("predict", "box", "new.csv", "--name", "a", "--own", "a.csv", "--out", "home.csv")
    found = pl.read_csv(box / "home.csv")["prediction"].to_numpy()
    assert np.mean((found - fresh.y[mine] - 3 * np.abs(X[:, 0])) ** 2) < 0.5


def rows_sent(run, monkeypatch, table, *options):
    """Return the predictors and the response that a message would be made of, and what was said."""
    found = []

    def stop(X, y, **_):
        found.extend([X, y])
        raise ValueError("seen")

    monkeypatch.setattr("coterie.cli.moments.moments_of", stop)
    said = privately(run, "a", "--dry-run", *options, table=table).err
    return (*found, said)


def test_entries_are_read_one_by_one_as_the_schema_says(run, box, monkeypatch):
    schema = json.loads((box / "schema.json").read_text())
    schema["decimal"] = ","
    (box / "schema.json").write_text(json.dumps(schema))
    (box / "a.csv").write_text('x0;x1;y\n1,5;2;3\nabc;1;?\n1;2\n"1;2;3\n"1,25";-1;2,5\n')
    X, y, said = rows_sent(run, monkeypatch, "a.csv")
    assert X.tolist() == [[1.5, 2.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.25, -1.0]]
    np.testing.assert_equal(y, [3.0, np.nan, np.nan, np.nan, 2.5])
    assert "2 of 5 lines of 'a.csv' have too many or too few fields, or a stray quote" in said
    assert "1 of 5 entries of 'x0' are no number and count as gaps: 'abc'" in said
    assert "1 of 5 entries of 'y' are no number and count as gaps: '?'" in said
    # Numbers of a typed file are numbers; a text in it has the comma.
    pl.DataFrame({"x0": [1.234], "x1": ["1,5"], "y": [2]}).write_parquet(box / "a.parquet")
    X, y, _ = rows_sent(run, monkeypatch, "a.parquet")
    assert (X.tolist(), y.tolist()) == ([[1.234, 1.5]], [2.0])
    write_workbook(
        box / "a.xlsx", s=[["x0", "x1", "y"], [1.234, "1,5", 2], [None, None, None], ["1.234", "x", 1]]
    )
    X, y, _ = rows_sent(run, monkeypatch, "a.xlsx")
    assert X.tolist() == [[1.234, 1.5], [0.0, 0.0], [1.234, 0.0]]
    np.testing.assert_equal(y, [2.0, np.nan, 1.0])


def test_a_file_of_several_kinds_and_any_bytes_has_a_message(run, box, monkeypatch):
    (box / "a.csv").write_bytes(b"x0,x1,y\n1,2,3\n\xff\xfe,\x00,\xc3\n" + b'"""""",,"\n' * 3)
    pl.DataFrame({"x0": ["1"], "x1": [None], "y": [True]}).write_parquet(box / "a.parquet")
    pattern = str(box / "a.*")
    assert [len(part) for part in rows_sent(run, monkeypatch, pattern)[:2]] == [6, 6]


def test_a_header_that_cannot_be_read_is_refused(run, box):
    for head, words in (('x0,"x1,y', "a quote too many"), ("x0,x0,y", "named 'x0'"), ("", "is empty")):
        (box / "a.csv").write_text(f"{head}\n1,2,3\n")
        assert words in privately(run, "a").complaint
