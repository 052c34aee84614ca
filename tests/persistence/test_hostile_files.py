"""Whole files that were made to do harm, through `load` and `coterie admit`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import PolynomialFeatures, StandardScaler

from coterie import CoterieRegressor
from coterie.persistence import PersistenceError, load, save

from .hostile import fitted
from .zoo import X, y

GROUPS = np.repeat(["north", "south"], 20)


def saved(path: Path, **options: Any) -> Path:
    save(CoterieRegressor(n_bootstrap=0, n_clusters=1, **options).fit(X, y, groups=GROUPS), path)
    return path


def test_rows_are_not_written_and_no_pickle_is_read(tmp_path: Path) -> None:
    """The cache of a pipeline would keep pickles of the rows where the file says."""
    steps = Pipeline([("scale", StandardScaler()), ("ridge", Ridge())])
    search = GridSearchCV(steps, {"memory": [str(tmp_path / "cache")]}, cv=2)
    path = saved(tmp_path / "evil.coterie", candidates=[search], refine=None, collaboration="local")
    assert (tmp_path / "cache").exists()
    with pytest.raises(PersistenceError, match="a GridSearchCV whose 'param_grid' is not among"):
        load(path)


@pytest.mark.parametrize(
    "candidate",
    [
        make_pipeline(PolynomialFeatures(10), Ridge()),
        GridSearchCV(make_pipeline(PolynomialFeatures(2), Ridge()), {"polynomialfeatures__degree": [2, 10]}),
    ],
)
def test_what_makes_a_table_without_end_is_refused(candidate: Any, tmp_path: Path) -> None:
    for times in (1, 10):
        model = CoterieRegressor("lr", n_bootstrap=0, n_clusters=1, refine=None, collaboration="local")
        record = model.fit(np.tile(X, times), y, groups=GROUPS).record_
        model.record_ = replace(record, options=replace(record.options, candidates=[candidate]))
        save(model, tmp_path / f"{times}.coterie")
    assert load(tmp_path / "1.coterie").n_features_in_ == 4
    with pytest.raises(PersistenceError, match="a polynomial that does not fit"):
        load(tmp_path / "10.coterie")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_bootstrap", 10**12),
        ("engine", {"$": "dict", "items": []}),
        ("nested_folds", [1.5, {"$": "float", "text": "nan"}, {"$": "model", "member": "models/9999.skops"}]),
    ],
)
def test_parameters_of_the_estimator_are_bounded(
    name: str, value: Any, tampered: Callable[..., Path]
) -> None:
    with pytest.raises(PersistenceError):
        load(tampered(manifest=lambda manifest: manifest["parameters"].update({name: value})))


def test_threads_are_those_of_this_machine(tampered: Callable[..., Path]) -> None:
    assert load(tampered(manifest=lambda manifest: manifest["parameters"].update(n_jobs=10**9))).n_jobs == -1


def test_a_model_that_would_end_the_process_is_not_handed_out(tampered: Callable[..., Path]) -> None:
    from sklearn.svm import SVR

    evil = fitted(SVR(epsilon=0.0), _n_support=np.full(90_000, 40, np.int32))
    with pytest.raises(PersistenceError, match="a SVR whose parts do not fit each other"):
        load(tampered(lambda members: members.update({"models/0.skops": evil})))


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest: manifest.update(format=99, coterie="\x1b[2J\u202eevil\n" * 1000),
        lambda manifest: manifest["fit"].update(seed={"$": "\x1b[2J\n" * 1000}),
        lambda manifest: manifest["learners"].update(labels={"$": "values", "dtype": "\x1b\n", "items": []}),
        lambda manifest: manifest["parameters"].update({"\x1b[2J\n": 1}),
    ],
)
def test_sentences_show_nothing_that_steers_a_terminal(change: Any, tampered: Callable[..., Path]) -> None:
    with pytest.raises(PersistenceError) as refusal:
        load(tampered(manifest=change))
    assert str(refusal.value).isprintable()
    assert len(str(refusal.value)) < 1000
