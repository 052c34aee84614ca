import json
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import pytest

from coterie import CoterieRegressor, Report
from coterie.datasets import STRESS_SETTINGS, make_linear_learners, make_stress
from coterie.rows.cautions import cautions
from coterie.rows.learners import gather_learners

DATA = make_linear_learners(8, n_rows=30, n_features=3, random_state=0)
NUMBERS = np.unique(DATA.groups, return_inverse=True)[1]

COPY = "is a copy of the response, maybe in other units, so there is nothing to learn: leave it out."
GIVEN_AWAY = "alone nearly determines the response: leave it out if it is known later."


def said(X: Any = DATA.X, y: Any = DATA.y, groups: Any = DATA.groups, names: Any = None) -> tuple[str, ...]:
    return cautions(gather_learners(X, y, groups, caller="test"), names)


def beside(column: Any) -> Any:
    return np.column_stack([DATA.X, column])


@pytest.mark.parametrize("setting", STRESS_SETTINGS)
def test_honest_tables_are_quiet(setting: str) -> None:
    for seed in range(3):
        data = make_stress(setting, seed)
        assert said(data.X, data.y, data.groups) == ()


def test_an_honest_model_has_no_caution() -> None:
    model = CoterieRegressor(candidates="lr", n_bootstrap=0).fit(DATA.X, DATA.y, DATA.groups)
    assert not any("olumn" in note or "response" in note for note in model.partition_.notes)


@pytest.mark.parametrize(
    ("leak", "what"),
    [
        (DATA.y, COPY),
        (5 - 3 * DATA.y, COPY),
        # In a unit of each learner's own.
        (DATA.y * (1 + NUMBERS) - 7 * NUMBERS, COPY),
        (DATA.y.astype(np.float32), COPY),
        (np.exp(DATA.y / 4), GIVEN_AWAY),
        (np.round(DATA.y, 2), GIVEN_AWAY),
    ],
)
def test_a_column_that_gives_the_response_away_is_named(leak: Any, what: str) -> None:
    sentence = f"Column 3 {what}"
    assert said(beside(leak)) == (sentence,)
    assert said(beside(leak), names=["a", "b", "c", "bill"]) == (sentence.replace("3", "'bill'"),)


def test_a_good_predictor_gives_nothing_away() -> None:
    spread = DATA.y.std()
    noise = spread * np.random.default_rng(0).standard_normal(len(DATA.y))
    assert said(beside(DATA.y + 0.1 * noise)) == ()
    # A level of the learner that the response has, too: nothing is known inside the learner.
    assert said(beside(100.0 * NUMBERS + 0.5 + DATA.X[:, 0]), DATA.y + 100 * NUMBERS) == ()


@pytest.mark.parametrize("start", [0, 1, 10_000])
def test_row_numbers_are_named(start: int) -> None:
    number = start + np.arange(len(DATA.y))
    sentence = "Column 3 seems to number the rows: leave it out unless it is a time."
    assert said(beside(number)) == (sentence,)
    # A shuffled table keeps its numbers, and one with gaps rises.
    order = np.random.default_rng(0).permutation(len(number))
    assert said(beside(number)[order], DATA.y[order], DATA.groups[order]) == (sentence,)
    assert said(beside(7 * number)) == (sentence,)


def test_years_counts_and_codes_are_no_row_numbers() -> None:
    rng = np.random.default_rng(0)
    year = 1990.0 + np.arange(len(DATA.y)) % 30
    people = np.sort(rng.choice(10_000_000, len(DATA.y), replace=False)).astype(float)
    for column in (year, rng.permutation(people), rng.integers(0, 3, len(DATA.y)), DATA.X[:, 0] > 0):
        assert said(beside(column)) == ()


def test_a_column_that_names_the_learner_is_named() -> None:
    sentence = "Column 3 seems to name the learner, who is known already: leave it out."
    assert said(beside(NUMBERS + 1)) == (sentence,)
    codes = np.array([901, 7, 33, 5_000, 12, 77, 404, 8])[NUMBERS]
    assert said(beside(codes), groups=codes) == (sentence,)


def test_a_level_of_the_learner_is_a_predictor() -> None:
    assert said(beside(np.random.default_rng(0).standard_normal(8)[NUMBERS])) == ()
    people = np.array([901, 70_000, 33, 5_000, 12, 77, 404, 8])[NUMBERS]
    assert said(beside(people)) == ()


def test_a_response_of_few_values() -> None:
    two, four = (DATA.y > 0).astype(float), np.digitize(DATA.y, np.quantile(DATA.y, [0.25, 0.5, 0.75]))
    assert said(y=two) == (
        "The response has two values only, 0 and 1, and is fitted as a number: a prediction is an average of "
        "the two, not a class.",
    )
    assert said(y=four.astype(float)) == (
        "The response has 4 whole values only, from 0 to 3, and is fitted as a number: that is right for a "
        "rating or a count, and wrong for codes of classes.",
    )
    assert said(y=np.round(4 * DATA.y)) == said(y=four / 3) == ()


def test_a_constant_response() -> None:
    assert said(y=np.ones(len(DATA.y))) == (
        "The response is the same in all rows, so there is nothing to learn.",
    )


def test_few_rows() -> None:
    few = np.arange(0, len(DATA.y), 15)
    assert said(DATA.X[few], DATA.y[few], DATA.groups[few]) == (
        "There are 16 rows for 3 predictors, which is few: errors and gains are known badly.",
    )


def test_huge_and_tiny_units_change_nothing() -> None:
    for unit in (1e-60, 1e60):
        assert said(y=unit * DATA.y) == ()
        assert len(said(beside(DATA.y), unit * DATA.y)) == 1


def test_copies_of_learners_are_named() -> None:
    shuffled = np.random.default_rng(0).permutation(30)
    X, y = (
        np.vstack([DATA.X, DATA.X[shuffled], DATA.X[shuffled]]),
        np.r_[DATA.y, DATA.y[shuffled], DATA.y[shuffled]],
    )
    (note,) = said(X, y, np.r_[NUMBERS, np.repeat([8, 9], 30)])
    assert note.startswith("Learners 0 and 8 have the same rows, and 1 more copies exist:")
    y[-1] += 1e-9
    (note,) = said(X, y, np.r_[NUMBERS, np.repeat([8, 9], 30)])
    assert note.startswith("Learners 0 and 8 have the same rows: rows held out")


def test_few_rows_that_are_the_same_by_chance_are_no_copies() -> None:
    few = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    X, y = np.tile(few, (20, 1)), np.tile([0.0, 1.0, 2.5, 3.0], 20)
    assert not any("same rows" in note for note in said(X, y, np.repeat(np.arange(10), 8)))


def test_cautions_are_notes_of_a_fit() -> None:
    fit = CoterieRegressor(candidates="lr", n_bootstrap=0)
    fit.fit(beside(np.arange(len(DATA.y))), DATA.y, DATA.groups)
    assert fit.partition_.notes[0].startswith("Column 3 seems to number the rows")


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        ("s0 ", True),
        ("S0", True),
        (" S0", True),
        ("S0\N{NO-BREAK SPACE}", True),
        ("s 0", False),
        ("s00", False),
    ],
)
def test_ids_that_differ_by_case_and_blanks_are_named(other: str, alike: bool) -> None:
    names = np.array(["s0", other, "c", "d", "e", "f", "g", "h"])[NUMBERS]
    sentence = (
        f"The ids {', '.join(map(repr, sorted(['s0', other])))} differ by case, blanks or Unicode "
        "composition only: give them one spelling if they are one learner."
    )
    assert said(groups=names) == ((sentence,) if alike else ())


def test_ids_that_differ_by_composition_and_many_of_them() -> None:
    composed, parts = "Z\N{LATIN SMALL LETTER U WITH DIAERESIS}rich", "Zu\N{COMBINING DIAERESIS}rich"
    assert len(said(groups=np.array([composed, parts, *"cdefgh"])[NUMBERS])) == 1
    *three, last = said(groups=np.array(list("aAbBcCdD"))[NUMBERS])
    assert len(three) == 3
    assert last == "Of 1 further learners the ids are as much alike."
    assert said(groups=NUMBERS) == ()


def test_a_newcomer_s_id_that_is_like_a_known_one_is_named() -> None:
    model = CoterieRegressor(candidates="lr", n_bootstrap=0).fit(DATA.X, DATA.y, DATA.groups)
    with pytest.warns(UserWarning, match="The ids 'learner 00', 'Learner 00 ' differ by case"):
        model.admit(DATA.X[:30], DATA.y[:30], groups=["Learner 00 "] * 30)


@pytest.mark.parametrize(
    ("y", "copy", "sentence"),
    [
        (np.full(len(DATA.y), 7.5), DATA.X[:, 0] ** 2, "The response is the same in all rows, so there is"),
        (
            DATA.y,
            3 - 2.5 * DATA.y,
            "Column 'copy' is a copy of the response, maybe in other units, so there is",
        ),
    ],
)
def test_where_there_is_nothing_to_learn_this_is_the_answer(y: Any, copy: Any, sentence: str) -> None:
    table = pd.DataFrame(DATA.X, columns=["a", "b", "c"]).assign(copy=copy)
    model = CoterieRegressor(candidates="lr", n_bootstrap=0).fit(table, y, DATA.groups)
    page = Report(model)
    lead = page.html().split('<p class="lead">')[1].split("</p>")[0]
    for answer in (model.summary(), *json.loads(page.json())["answer"], unescape(lead)):
        assert answer.startswith(sentence)
        assert "\n" not in answer
