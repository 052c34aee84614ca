"""Records that do not make a model are refused, whatever their checksums say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coterie.persistence import PersistenceError, load
from coterie.persistence.checks import REQUIRED

Change = Callable[[dict[str, Any]], object]


def field(record: str, name: str, value: Any) -> Change:
    return lambda m: m["state"][record]["fields"].update({name: value})


def other(record: str, name: str, source: str, source_name: str) -> Change:
    """Let a field refer to another field's array."""
    return lambda m: m["state"][record]["fields"].update({name: m["state"][source]["fields"][source_name]})


def first(items: list[Any], value: Any) -> None:
    items[0] = value


WRONG: dict[str, Change] = {
    "parameters missing": lambda m: m.pop("parameters"),
    "parameters a list": lambda m: m.update(parameters=[]),
    "unknown parameter": lambda m: m["parameters"].update(n_estimators=3),
    "state missing": lambda m: m.pop("state"),
    "state a text": lambda m: m.update(state="x"),
    "rows a number": lambda m: m.update(rows=1),
    "rows denied": lambda m: m.update(rows=False),
    "learners a list": lambda m: m.update(learners=[]),
    "learner ids cut": lambda m: m["learners"]["ids"]["items"].pop(),
    "labels cut": lambda m: m["learners"]["labels"]["items"].pop(),
    "labels out of range": lambda m: first(m["learners"]["labels"]["items"], 2),
    "labels text": lambda m: m["learners"].update(labels={"$": "strings", "items": ["0"] * 6}),
    "a method replaced": lambda m: m["state"].update(predict=1),
    "a class replaced": lambda m: m["state"].update(__class__=1),
    "a parameter among the attributes": lambda m: m["state"].update(engine=1),
    "wrong record": lambda m: m["state"].update(selection_=m["state"]["partition_"]),
    "number as text": lambda m: m["state"].update(n_clusters_="2"),
    "another K": lambda m: m["state"].update(n_clusters_=3),
    "another p": lambda m: m["state"].update(n_features_in_=4),
    "entropy a bool": lambda m: m["state"].update(_entropy=True),
    "selection of fewer": field("selection_", "learner_ids", {"$": "strings", "items": ["learner 00"]}),
    "names cut": lambda m: m["state"]["selection_"]["fields"]["names"]["items"].pop(),
    "models cut": lambda m: m["state"]["selection_"]["fields"]["models"]["items"].pop(),
    "models are texts": field("selection_", "models", {"$": "tuple", "items": ["a"] * 6}),
    "row counts": other("selection_", "n_rows", "partition_", "labels"),
    "errors of rows": other("selection_", "errors", "_shaping", "y"),
    "residuals": other("selection_", "residuals", "selection_", "names"),
    "no residuals": field(
        "selection_", "residuals", {"$": "tuple", "items": [{"$": "strings", "items": []}] * 6}
    ),
    "folds": lambda m: m["state"]["selection_"]["fields"].update(
        folds={"$": "tuple", "items": [m["state"]["partition_"]["fields"]["labels"]] * 6}
    ),
    "losses": other("exchange_", "source", "partition_", "labels"),
    "loss matrix": lambda m: m["state"]["exchange_"]["fields"]["source"].update(
        of=m["state"]["partition_"]["fields"]["embedding"]
    ),
    "losses missing, a model without coefficients": field("exchange_", "source", None),
    "similarity": other("partition_", "similarity", "partition_", "embedding"),
    "embedding": other("partition_", "embedding", "_shaping", "X"),
    "partition labels": other("partition_", "labels", "selection_", "n_rows"),
    "weights": other("collaboration_", "weights", "partition_", "similarity"),
    "weights of one dimension": other("collaboration_", "weights", "collaboration_", "ways"),
    "ways": other("collaboration_", "ways", "selection_", "n_rows"),
    "newcomer ways": other("collaboration_", "newcomer_ways", "collaboration_", "ways"),
    "traits": other("collaboration_", "traits", "collaboration_", "ways"),
    "told": other("collaboration_", "told", "collaboration_", "ways"),
    "no models": field("_everybody", "models", {"$": "tuple", "items": []}),
    "X": other("_shaping", "X", "_shaping", "y"),
    "y": other("_shaping", "y", "_shaping", "offsets"),
    "offsets": other("_shaping", "offsets", "_shaping", "appearance"),
    "appearance": other("_shaping", "appearance", "selection_", "n_rows"),
    "weights of rows": other("_shaping", "weights", "_shaping", "offsets"),
    "twins": lambda m: first(m["state"]["_shaping"]["fields"]["ids"]["items"], "learner 01"),
    "units": lambda m: m["state"].update(_units=m["state"]["_shaping"]),
    "a newcomer without units": lambda m: m["state"]["_admitted"]["items"].append(
        ["new", {"$": "tuple", "items": [0, 99]}]
    ),
    "a newcomer of texts": lambda m: m["state"]["_admitted"]["items"].append(["new", "way"]),
    "standing of fewer": field("standing_", "learner_ids", {"$": "strings", "items": ["learner 00"]}),
    "standing losses": other("standing_", "losses", "partition_", "similarity"),
    "standing fits": other("standing_", "fits", "standing_", "losses"),
    "nearest other": other("standing_", "nearest_other", "selection_", "n_rows"),
    "membership": other("stability_", "membership", "partition_", "similarity"),
    "shares": other("stability_", "shares", "selection_", "errors"),
    "no replicates": field("stability_", "n_replicates", 0),
    "loners of texts": lambda m: m["state"].update(_loners={"$": "tuple", "items": ["a"]}),
    "a newcomer without a model": lambda m: m["state"]["_admitted"]["items"].append(
        ["new", {"$": "tuple", "items": [-1, 0]}]
    ),
    "gains cut": lambda m: m["state"]["gains_"]["items"].append(["more", {"$": "strings", "items": ["x"]}]),
    "gains of lists": lambda m: m["state"]["gains_"]["items"].append(["more", [1] * 6]),
    "column names": lambda m: m["state"].update(feature_names_in_={"$": "strings", "items": ["a"]}),
    **{f"no {name}": lambda m, name=name: m["state"].pop(name) for name in REQUIRED if "learner" not in name},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_what_does_not_fit_is_refused(change: Change, tampered: Callable[..., Path]) -> None:
    with pytest.raises(PersistenceError, match=r"^The file .* it was not written by coterie\.save\.$"):
        load(tampered(manifest=change))


def test_the_file_is_taken_when_nothing_is_changed(tampered: Callable[..., Path]) -> None:
    load(tampered(manifest=lambda manifest: None))


def test_an_older_file_may_lack_a_parameter(tampered: Callable[..., Path]) -> None:
    assert load(tampered(manifest=lambda m: m["parameters"].pop("n_jobs"))).n_jobs is None
