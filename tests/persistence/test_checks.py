"""Records that do not make a model are refused, whatever their checksums say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.persistence import PersistenceError, load
from coterie.persistence.checks import PARTS

Change = Callable[[dict[str, Any]], object]


def field(record: str, name: str, value: Any) -> Change:
    return lambda m: m["fit"][record]["fields"].update({name: value})


def other(record: str, name: str, source: str, source_name: str) -> Change:
    """Let a field refer to another field's array."""
    return lambda m: m["fit"][record]["fields"].update({name: m["fit"][source]["fields"][source_name]})


def first(items: list[Any], value: Any) -> None:
    items[0] = value


def newcomer(weight_row: int | None) -> dict[str, Any]:
    return {"$": "Newcomer", "fields": {"learner_id": "new", "weight_row": weight_row, "model": None}}


WRONG: dict[str, Change] = {
    "parameters missing": lambda m: m.pop("parameters"),
    "parameters a list": lambda m: m.update(parameters=[]),
    "unknown parameter": lambda m: m["parameters"].update(n_estimators=3),
    "fit missing": lambda m: m.pop("fit"),
    "fit a text": lambda m: m.update(fit="x"),
    "estimator missing": lambda m: m.pop("estimator"),
    "rows a number": lambda m: m.update(rows=1),
    "rows denied": lambda m: m.update(rows=False),
    "learners a list": lambda m: m.update(learners=[]),
    "learner ids cut": lambda m: m["learners"]["ids"]["items"].pop(),
    "labels cut": lambda m: m["learners"]["labels"]["items"].pop(),
    "labels out of range": lambda m: first(m["learners"]["labels"]["items"], 2),
    "labels text": lambda m: m["learners"].update(labels={"$": "strings", "items": ["0"] * 6}),
    "a part more": lambda m: m["fit"].update(predict=1),
    "a method replaced": lambda m: m["estimator"].update(predict=1),
    "a class replaced": lambda m: m["estimator"].update(__class__=1),
    "a parameter among the attributes": lambda m: m["estimator"].update(engine=1),
    "wrong record": lambda m: m["fit"].update(selection=m["fit"]["partition"]),
    "number as text": lambda m: m["fit"].update(min_rows="2"),
    "another p": lambda m: m["estimator"].update(n_features_in_=4),
    "no p": lambda m: m["estimator"].pop("n_features_in_"),
    "seed a bool": lambda m: m["fit"].update(seed=True),
    "selection of fewer": field("selection", "learner_ids", {"$": "strings", "items": ["learner 00"]}),
    "names cut": lambda m: m["fit"]["selection"]["fields"]["names"]["items"].pop(),
    "models cut": lambda m: m["fit"]["selection"]["fields"]["models"]["items"].pop(),
    "models are texts": field("selection", "models", {"$": "tuple", "items": ["a"] * 6}),
    "row counts": other("selection", "n_rows", "partition", "labels"),
    "errors of rows": other("selection", "errors", "learners", "y"),
    "residuals": other("selection", "residuals", "selection", "names"),
    "no residuals": field(
        "selection", "residuals", {"$": "tuple", "items": [{"$": "strings", "items": []}] * 6}
    ),
    "folds": lambda m: m["fit"]["selection"]["fields"].update(
        folds={"$": "tuple", "items": [m["fit"]["partition"]["fields"]["labels"]] * 6}
    ),
    "losses": other("exchange", "source", "partition", "labels"),
    "loss matrix": lambda m: m["fit"]["exchange"]["fields"]["source"].update(
        of=m["fit"]["partition"]["fields"]["embedding"]
    ),
    "losses missing, a model without coefficients": field("exchange", "source", None),
    "similarity": other("partition", "similarity", "partition", "embedding"),
    "embedding": other("partition", "embedding", "learners", "X"),
    "partition labels": other("partition", "labels", "selection", "n_rows"),
    "weights": other("collaboration", "weights", "partition", "similarity"),
    "weights of one dimension": other("collaboration", "weights", "collaboration", "weight_rows"),
    "weight_rows": other("collaboration", "weight_rows", "selection", "n_rows"),
    "newcomer weight rows": other("collaboration", "newcomer_weight_rows", "collaboration", "weight_rows"),
    "traits": other("collaboration", "traits", "collaboration", "weight_rows"),
    "uses_traits": other("collaboration", "uses_traits", "collaboration", "weight_rows"),
    "no models": field("with_all", "models", {"$": "tuple", "items": []}),
    "X": other("learners", "X", "learners", "y"),
    "y": other("learners", "y", "learners", "offsets"),
    "offsets": other("learners", "offsets", "learners", "appearance"),
    "appearance": other("learners", "appearance", "selection", "n_rows"),
    "weights of rows": other("learners", "weights", "learners", "offsets"),
    "twins": lambda m: first(m["fit"]["learners"]["fields"]["ids"]["items"], "learner 01"),
    "units": lambda m: m["fit"].update(units=m["fit"]["learners"]),
    "a newcomer who is not in the table": lambda m: m["fit"]["newcomers"]["items"].append(newcomer(0)),
    "a newcomer of texts": lambda m: m["fit"]["newcomers"]["items"].append("new"),
    "cluster fit of fewer": field("cluster_fit", "learner_ids", {"$": "strings", "items": ["learner 00"]}),
    "cluster fit losses": other("cluster_fit", "losses", "partition", "similarity"),
    "cluster fit fits": other("cluster_fit", "fits", "cluster_fit", "losses"),
    "nearest other": other("cluster_fit", "nearest_other", "selection", "n_rows"),
    "membership": other("stability", "membership", "partition", "similarity"),
    "shares": other("stability", "shares", "selection", "errors"),
    "no replicates": field("stability", "n_replicates", 0),
    "a newcomer without a model": lambda m: m["fit"]["newcomers"]["items"].append(newcomer(None)),
    "a newcomer whose row of weights is not there": lambda m: m["fit"]["newcomers"]["items"].append(
        newcomer(10**6)
    ),
    "gains cut": lambda m: m["fit"]["gains"]["items"].append(["more", {"$": "strings", "items": ["x"]}]),
    "gains of lists": lambda m: m["fit"]["gains"]["items"].append(["more", [1] * 6]),
    "column names": lambda m: m["estimator"].update(feature_names_in_={"$": "strings", "items": ["a"]}),
    **{f"no {name}": lambda m, name=name: m["fit"].pop(name) for name in PARTS},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused(change: Change, tampered: Callable[..., Path]) -> None:
    with pytest.raises(PersistenceError, match=r"^The file .* it was not written by coterie\.save\.$"):
        load(tampered(manifest=change))


def test_the_file_is_taken_when_nothing_is_changed(tampered: Callable[..., Path]) -> None:
    load(tampered(manifest=lambda manifest: None))


def test_an_older_file_may_lack_a_parameter(tampered: Callable[..., Path]) -> None:
    assert load(tampered(manifest=lambda m: m["parameters"].pop("n_jobs"))).n_jobs is None
