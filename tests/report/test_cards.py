from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coterie.report.cards import MOST_GAINS, GainAxis, learner_cards, verdict_parts
from coterie.report.subject import ReportSubject, as_subject, full_name
from coterie.verdicts import Gains
from coterie.verdicts.verdict import COLLABORATE, NO_DIFFERENCE, NOT_MEASURED, STAY_ALONE

NAME, VERDICT, PLACES, ERRORS, TAKEN, SURE, LUCK, USED, CUT = 0, 2, 6, 7, 9, 10, 13, 14, 15


@given(st.lists(st.floats(-5, 1), max_size=20))
def test_every_gain_has_a_place_on_the_track(gains):
    scale = GainAxis(gains)
    assert all(0 <= scale(gain) <= 100 for gain in gains)
    assert scale(scale.low) == 0
    assert scale(scale.high) == 100
    assert 0.0 in [round(tick, 9) for tick in scale.ticks]
    assert 2 <= len(scale.ticks) <= 9
    assert scale(None) is None
    assert all(scale.cuts(gain) == (gain < scale.low) for gain in gains)
    assert scale.cuts(-5.1)
    assert not scale.cuts(None)


def test_cards_have_the_numbers_of_the_table(model):
    cards = learner_cards(as_subject(model))
    gains = model.gains_
    rows = {row[NAME]: row for row in cards["rows"]}
    assert len(rows) == 13
    place = gains["learner"].tolist().index("{{ 7 * 7 }}")
    row = rows["{{ 7 * 7 }}"]
    assert row[VERDICT] == gains["verdict"][place]
    # People read errors in the unit of the target.
    assert float(row[ERRORS][0]) == pytest.approx(np.sqrt(gains["error_alone"][place]), rel=0.01)
    assert sum(row[TAKEN]) == 100
    assert rows["few rows"][PLACES] == [None, None, None]


def test_the_largest_gain_comes_first_and_only_the_compared_are_drawn(model):
    cards = learner_cards(as_subject(model))
    output = [cards["rows"][place][PLACES][0] for place in cards["shown"]]
    assert output == sorted(output, reverse=True)
    assert len(output) == np.isfinite(model.gains_["gain"]).sum()
    assert cards["left_out"] == 0


def crowd_of(model, table):
    record = replace(model.record_, gains=Gains(table))
    return ReportSubject(model.partition_, None, SimpleNamespace(record_=record))


def test_many_gains_show_both_ends(model):
    count = 150
    table = {name: np.resize(column, count) for name, column in model.gains_.items()}
    table["learner"], table["gain"] = np.arange(count), np.linspace(-0.5, 0.5, count)
    cards = learner_cards(crowd_of(model, table))
    assert len(cards["shown"]) == MOST_GAINS
    assert cards["left_out"] == count - MOST_GAINS
    assert cards["rows"][cards["shown"][0]][NAME] == "149"
    assert cards["rows"][cards["shown"][-1]][NAME] == "0"


def test_errors_that_point_the_other_way_are_marked(model):
    table = dict(model.gains_)
    gain = np.where(np.isfinite(table["gain"]), 0.2, np.nan)
    table |= {"gain": gain, "error_with": table["error_alone"] * 1.5}
    cards = learner_cards(crowd_of(model, table))
    assert [row[LUCK] for row in cards["rows"]] == [True] * 12 + [False]


def test_a_card_says_what_predictions_use_and_marks_a_cut_interval(model):
    table = dict(model.gains_)
    verdicts = [STAY_ALONE, NO_DIFFERENCE, COLLABORATE] + [NOT_MEASURED] * (len(table["learner"]) - 3)
    low = np.where(np.array(verdicts) == STAY_ALONE, -3.0, -0.1)
    table |= {"verdict": np.array(verdicts), "gain_low": low}
    table |= {name: np.full(len(low), 0.5) for name in table if name in ("from_alone", "from_coterie")}
    rows = learner_cards(crowd_of(model, table))["rows"]
    said = {row[VERDICT]: (row[USED], row[CUT]) for row in rows}
    assert said == {
        STAY_ALONE: ("Predictions use its own model.", True),
        NO_DIFFERENCE: ("Predictions use others.", False),
        COLLABORATE: ("Predictions use others.", False),
        NOT_MEASURED: ("", False),
    }


def test_a_partition_has_cards_without_numbers(partition):
    cards = learner_cards(as_subject(partition))
    assert not cards["measured"]
    assert [row[NAME] for row in cards["rows"]] == list("abcdef")
    assert cards["shown"] == []


def test_a_coterie_of_one_is_the_learner_itself(model):
    table = dict(model.gains_)
    count = len(table["learner"])
    table = {name: column for name, column in table.items() if not name.startswith("from_")}
    table["cluster"] = np.array([5] + [0] * (count - 1))
    table |= {"from_alone": np.full(count, 0.04), "from_coterie": np.full(count, 0.81)}
    table |= {"from_all_adapted": np.full(count, 0.15), "membership": np.ones(count)}
    subject = crowd_of(model, table)
    subject.summary["coteries"] = [{"cluster": 5, "learners": ["a"]}, {"cluster": 0, "learners": ["b", "c"]}]
    rows = {row[NAME]: row for row in learner_cards(subject)["rows"]}
    lone = rows.pop(full_name(table["learner"][0]))
    assert (lone[TAKEN], lone[SURE]) == ([85, 0, 15], None)
    assert all((row[TAKEN], row[SURE]) == ([4, 81, 15], "100%") for row in rows.values())


def test_sites_take_from_sites(conclusion):
    cards = learner_cards(as_subject(conclusion))
    taken = {row[NAME]: row[TAKEN] for row in cards["rows"]}
    assert taken["site 00"] == [50, 30, 20]
    assert cards["takes"] == ["its own model", "others in its coterie", "other sites"]


def test_verdicts_have_an_order_and_shares():
    parts = verdict_parts({"stay alone": 1, "collaborate": 3, "too few rows": 0})
    assert [(part["kind"], part["count"], part["share"]) for part in parts] == [
        ("gain", 3, 75.0),
        ("lose", 1, 25.0),
    ]
