from coterie.report.words import (
    curves_words,
    differences_words,
    gains_words,
    losses_words,
    map_words,
    membership_words,
    region_words,
    weights_words,
)


def test_the_heat_map_tells_inside_from_between():
    data = {"unit": "noise", "inside": 1.0, "between": 8.0, "binned": False, "admitted": 0}
    assert "Inside the coteries the typical cell is 1.00, between them 8.00: 8.0 times apart." in str(
        losses_words(data)
    )
    assert "block of learners" in str(losses_words(data | {"binned": True}))
    assert "There is one coterie" in str(losses_words(data | {"between": None}))
    assert "Every coterie has one member" in str(losses_words(data | {"inside": None}))
    assert "dissimilarity" in str(losses_words(data | {"unit": "dissimilarity"}))


def test_the_map_says_who_is_not_on_it():
    assert "2 learners with too few rows" in map_words({"admitted": 2})[0]


def curve(chosen, one_truth_z=None):
    return {"chosen": chosen, "one_truth_z": one_truth_z}


def test_the_number_of_coteries_is_explained():
    data = {
        "n_clusters": 3,
        "rule": "held-out",
        "rules": {"held-out": curve(3), "gap": curve(3), "cv": curve(4)},
        "bootstrap": {"n_clusters": [2, 3], "shares": [0.1, 0.9], "n_replicates": 50},
    }
    text = curves_words(data)[0]
    assert "3 coteries because the rule held-out says so" in text
    assert "Of 2 other rules 1 would answer the same; different answers: cv (4)." in text
    assert "(50 times) the held-out rule answered 3 in 90% of the draws" in text
    ruled_out = data | {"rules": {"held-out": curve(3, one_truth_z=6.7)}}
    assert "rule one truth out, by 7 standard deviations" in curves_words(ruled_out)[0]
    assert "within two standard errors" not in curves_words(ruled_out)[0]
    given = data | {"rule": "given", "rules": {"gap": curve(3)}, "bootstrap": None}
    assert curves_words(given)[0].startswith("The number of coteries was given: 3. Of 1 other rule 1 would")


PAYS = {
    "n_compared": 4,
    "typical_gain": 0.2,
    "least_gain": -0.1,
    "most_gain": 0.5,
    "verdicts": {"collaborate": 3, "stay alone": 1, "no clear difference": 0, "too few rows": 0},
}


def test_gains_say_whether_it_pays():
    data = {"left_out": 0, "rows": [[False] * 16] * 5, "shown": [0, 1], "error": "RMSE"}
    text = gains_words(data, PAYS)[0]
    assert "of a learner's squared error" in text
    assert "The typical learner's gain is 20%, from \u221210% to 50%." in text
    assert "1 learner had no error alone" in text
    assert "of a learner's Brier score" in gains_words(data | {"error": "Brier score"}, PAYS)[0]
    assert "could an error alone be measured" in gains_words(data, PAYS | {"n_compared": 0})[0]
    assert "An arrow" not in text
    assert "goes on below \u2212100%" in gains_words(data | {"rows": [[True] * 16] * 5}, PAYS)[0]
    assert "the 2 largest and smallest gains" in gains_words(data | {"left_out": 3}, PAYS)[0]


def test_membership_names_the_least_sure():
    data = {
        "n_replicates": 100,
        "sure": 1,
        "n_learners": 2,
        "learners": ["a", "b"],
        "own": [0.6, 1.0],
        "left_out": 0,
    }
    assert "Least sure: a (60%)." in membership_words(data)[0]
    assert "Least sure" not in membership_words(data | {"own": [1.0, 1.0]})[0]
    assert "each of 2 learners its own" in membership_words(data | {"learners": [], "own": []})[0]


def test_differences_name_the_predictor_and_the_region():
    pair = {
        "clusters": [0, 2],
        "label": None,
        "disagreement": 3.0,
        "noise": 1.5,
        "predictors": [{"name": "dose", "importance": 0.9}],
        "regions": [{"where": "dose > 1", "share": 0.25, "difference": -4.0}],
    }
    text = differences_words({"pairs": [pair], "n_pairs": 3})[0]
    assert "coteries 0 and 2, whose predictions differ by 3.00" in text
    assert "2.0 times the noise. The difference depends most on dose." in text
    assert "1 of 3 pairs" in text
    said = region_words(pair)
    assert said == (
        "Furthest apart where dose > 1 (25% of the rows): there coterie 2 predicts 4.00 more than coterie 0."
    )
    assert region_words(pair | {"regions": []}) == ""
    of_class = pair | {"label": "sick"}
    assert "whose probabilities of 'sick' differ" in differences_words({"pairs": [of_class], "n_pairs": 1})[0]
    assert "there coterie 2 gives 'sick' 4.00 more than coterie 0." in region_words(of_class)
    assert "times the noise" not in differences_words({"pairs": [pair | {"noise": 0.0}], "n_pairs": 1})[0]


def test_weights_are_told_on_average():
    data = {"names": ["its own model", "3 coteries", "all"], "mean": [0.25, 0.75, 0.0], "left_out": 0}
    data["alike"] = False
    assert "On average a learner takes 25% from its own model, 75% from 3 coteries." in weights_words(data)[0]
    assert "Every learner takes 25% from its own model" in weights_words(data | {"alike": True})[0]
