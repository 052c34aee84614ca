"""At home a site takes from others what pays, and never does much worse than alone."""

from __future__ import annotations

import numpy as np
import pytest

from coterie.federated import ProtocolError, make_site
from coterie.federated.moments import conclude_moments, knots_for, open_moments, pooled_lines, site_model
from coterie.verdicts.verdict import COLLABORATE, NO_DIFFERENCE, STAY_ALONE, VERDICTS

from .conftest import draw_sites


def site_model_of(drawn, pooled, name, **more):
    X, y = drawn.of(name)
    site = make_site(X, y, site=name, columns=drawn.schema.features, candidates=["ridge"], order=None)
    return site_model(site, pooled, drawn.messages[0].schema, **more)


def test_errors(drawn, site):
    kept = np.flatnonzero(drawn.data.groups == site)[len(drawn.rows[site]) :]
    return drawn.data.X[kept], drawn.data.y[kept]


test_errors.__test__ = False


@pytest.mark.parametrize("epsilon", [None, 10.0])
def test_small_sites_gain_from_others_and_are_told_so(epsilon):
    n_rows = 12 if epsilon is None else 60
    drawn = draw_sites(epsilon, n_learners=40, n_truths=2, n_rows=n_rows, n_test=200)
    pooled = conclude_moments(drawn.messages)
    errors, verdicts = [], []
    for site in drawn.sites[:20]:
        model = site_model_of(drawn, pooled, site)
        X, y = test_errors(drawn, site)
        errors.append([np.mean((p - y) ** 2) for p in (model.predict(X), model.model.predict(X))])
        verdicts.append(model.verdict)
        assert model.verdict in VERDICTS
        assert model.weights.sum() == pytest.approx(1.0)
    with_others, own = np.mean(errors, axis=0)
    assert with_others < own * 1.02
    if epsilon is None:
        assert with_others < 0.85 * own
        # By a dozen rows of its own a site cannot be sure; who is not sure predicts with others.
        assert COLLABORATE in verdicts
        assert STAY_ALONE not in verdicts


def test_a_site_by_itself_predicts_alone():
    drawn = draw_sites(n_learners=1, n_truths=1)
    model = site_model_of(drawn, conclude_moments(drawn.messages), drawn.sites[0])
    assert (model.verdict, model.own) == (NO_DIFFERENCE, 1.0)
    X, _ = drawn.of(drawn.sites[0])
    assert model.predict(X) == pytest.approx(model.model.predict(X))


def test_noise_that_drowns_everything_does_not_harm():
    drawn = draw_sites(0.01, n_learners=12, n_truths=2, n_rows=60, n_test=200)
    pooled = conclude_moments(drawn.messages)
    errors = []
    for site in drawn.sites:
        model = site_model_of(drawn, pooled, site)
        X, y = test_errors(drawn, site)
        errors.append([np.mean((p - y) ** 2) for p in (model.predict(X), model.model.predict(X))])
    with_others, own = np.mean(errors, axis=0)
    assert with_others <= 1.05 * own


def curved(n_rows, seed=0):
    """Return rows of sites that share a curve and have levels of their own."""
    generator = np.random.default_rng(seed)
    found = {}
    for k in range(12):
        X = generator.normal(size=(n_rows + 200, 2))
        noise = 0.3 * generator.normal(size=len(X))
        found[f"site {k:02d}"] = X, 2 * np.abs(X[:, 0]) - X[:, 1] + k % 3 + noise
    return found


def test_moments_above_knots_find_curves():
    rows, n_rows = curved(25), 25
    named = {"columns": ("a", "b"), "target": "y", "seed": 0}
    straight = [open_moments(X[:n_rows], y[:n_rows], site=name, **named) for name, (X, y) in rows.items()]
    knots = knots_for(straight, straight[0])
    bent = [
        open_moments(X[:n_rows], y[:n_rows], site=name, knots=knots, **named) for name, (X, y) in rows.items()
    ]
    # One that has not sent them again is part of the lines, and bends as the others do.
    errors = []
    for messages in (straight, [straight[0], *bent[1:]]):
        pooled = conclude_moments(messages)
        assert (pooled.bends is None) == (messages is straight)
        for name, (X, y) in rows.items():
            site = make_site(
                X[:n_rows], y[:n_rows], site=name, columns=("a", "b"), candidates=["ridge"], order=None
            )
            model = site_model(site, pooled)
            errors.append(np.mean((model.predict(X[n_rows:]) - y[n_rows:]) ** 2))
    with_lines, with_bends = np.mean(errors[: len(rows)]), np.mean(errors[len(rows) :])
    assert with_bends < 0.3 * with_lines
    assert with_bends < 2 * 0.3**2


def test_another_table_is_refused():
    drawn = draw_sites(n_learners=2, n_truths=1)
    X, y = drawn.of(drawn.sites[0])
    site = make_site(X[:, :2], y, site=drawn.sites[0], candidates=["ridge"])
    with pytest.raises(ProtocolError, match="other columns"):
        site_model(site, conclude_moments(drawn.messages))
    stranger = make_site(X, y, site="stranger", candidates=["ridge"])
    with pytest.raises(ProtocolError, match="no moments of 'stranger'"):
        site_model(stranger, conclude_moments(drawn.messages))


def test_lines_out_of_fold_have_not_seen_the_rows_that_they_predict():
    drawn = draw_sites(n_learners=6, n_truths=2, n_rows=60)
    pooled, name = conclude_moments(drawn.messages), drawn.sites[0]
    X, y = drawn.of(name)
    site = make_site(X, y, site=name, candidates=["ridge"], order=None)
    fold = site.selection.folds[0]
    lines = pooled_lines(site, pooled, fold)
    assert lines.out_of_fold.shape == (60, len(lines))
    # One response is changed: no line that predicts rows of the same fold may move.
    changed = y.copy()
    changed[0] += 1.0
    other = pooled_lines(make_site(X, changed, site=name, candidates=["ridge"], order=None), pooled, fold)
    same, rest = fold == fold[0], fold != fold[0]
    inside = np.abs(other.out_of_fold - lines.out_of_fold)
    assert np.allclose(inside[same], 0)
    assert (inside[rest].max(axis=0) > 0).all()
