"""A fit is one frozen record; whoever changes it gets another one."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners
from coterie.fit.admit import admit_learners, place_learners
from coterie.fit.record import Fit
from coterie.fit.remove import remove_learners
from coterie.rows.learners import gather_learners

DATA = make_linear_learners(12, 2, 30, n_features=2, random_state=0)
KNOWN = np.isin(DATA.groups, DATA.learner_ids[:10])
NEW = gather_learners(DATA.X[~KNOWN], DATA.y[~KNOWN], DATA.groups[~KNOWN], caller="test")


def fitted(**options: Any) -> CoterieRegressor:
    model = CoterieRegressor("lr", n_bootstrap=10, **options)
    return model.fit(DATA.X[KNOWN], DATA.y[KNOWN], groups=DATA.groups[KNOWN])


def parts(fit: Fit) -> dict[str, Any]:
    return {field.name: getattr(fit, field.name) for field in fields(fit)}


@pytest.mark.parametrize(
    "change", [lambda fit: admit_learners(fit, NEW), lambda fit: remove_learners(fit, {DATA.learner_ids[0]})]
)
@pytest.mark.parametrize("options", [{}, {"collaboration": "pooled"}, {"standardize": "learner"}])
def test_a_change_leaves_the_fit_that_it_was_given(change: Any, options: dict[str, Any]) -> None:
    fit = fitted(**options).record_
    before, gains = parts(fit), {name: column.copy() for name, column in fit.gains.items()}
    after = change(fit)
    assert len(after.learner_ids) != len(fit.learner_ids)
    assert all(value is before[name] for name, value in parts(fit).items())
    for name, column in gains.items():
        np.testing.assert_array_equal(fit.gains[name], column)


def test_placing_adds_nothing() -> None:
    fit = fitted().record_
    placed = place_learners(fit, NEW)
    assert placed.learner_ids.tolist() == DATA.learner_ids[10:].tolist()
    assert fit.newcomers == ()


def test_a_fit_is_frozen_and_so_is_what_the_estimator_shows() -> None:
    model = fitted()
    with pytest.raises(FrozenInstanceError):
        model.record_.seed = 1
    with pytest.raises(AttributeError):
        model.gains_ = None


def test_who_left_and_came_back_predicts_as_a_newcomer() -> None:
    fit = fitted(collaboration="pooled").record_
    with_new = admit_learners(fit, NEW)
    assert [new.learner_id for new in with_new.newcomers] == DATA.learner_ids[10:].tolist()
    without = remove_learners(with_new, set(DATA.learner_ids[10:].tolist()))
    assert without.newcomers == ()
    assert without.learner_ids.tolist() == fit.learner_ids.tolist()
    rows = DATA.X[KNOWN]
    ids = DATA.groups[KNOWN].tolist()
    same = without.predict(rows, without.places_of(ids, len(rows), "test"))
    np.testing.assert_array_equal(same, fit.predict(rows, fit.places_of(ids, len(rows), "test")))


def test_a_newcomer_whom_no_cluster_fits_predicts_with_its_own_model() -> None:
    model = fitted()
    X = DATA.X[~KNOWN][:30]
    y = 50 + 40 * X[:, 0] - 70 * X[:, 1]
    assert model.admit(X, y, groups=["odd"] * 30).tolist() == [-1]
    (new,) = model.record_.newcomers
    np.testing.assert_allclose(model.predict(X, groups=["odd"] * 30), new.model.predict(X))
    # What the nearest cluster would say is there, too.
    others = model.predict(X, groups=["odd"] * 30, using="others")
    assert np.mean((y - others) ** 2) > 10 * np.mean((y - new.model.predict(X)) ** 2)
