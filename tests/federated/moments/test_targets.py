"""What private moments must reach: coteries at epsilon 1, predictions at epsilon 3; 1,000 rows a site."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from coterie.federated import make_site
from coterie.federated.moments import conclude_moments, site_model

from .conftest import draw_sites

SETTING = {"n_learners": 30, "n_truths": 3, "n_rows": 1000, "n_features": 4}


def recovery(seed, epsilon=1.0):
    drawn = draw_sites(epsilon, seed=seed, **SETTING)
    labels = conclude_moments(drawn.messages).conclusion.labels
    return adjusted_rand_score(drawn.data.truth, [labels[site] for site in drawn.sites])


def test_thirty_sites_of_three_truths_are_found_at_epsilon_one_without_knowing_their_number():
    found = [recovery(seed) for seed in range(8)]
    assert np.mean(found) >= 0.95
    assert np.min(found) >= 0.8


def errors(seed, epsilon):
    """Return mean errors on new rows: by the lines, and at home at some sites."""
    drawn = draw_sites(epsilon, seed=seed, n_test=500, **SETTING)
    pooled, by_line, by_site_model = conclude_moments(drawn.messages), [], []
    for k, name in enumerate(drawn.sites):
        kept = np.flatnonzero(drawn.data.groups == name)[SETTING["n_rows"] :]
        X, y = drawn.data.X[kept], drawn.data.y[kept]
        by_line.append(np.mean((pooled.pool.units.predictions(pooled.line(name), X) - y) ** 2))
        if k < 6:
            site = make_site(*drawn.of(name), site=name, candidates=["ridge"], order=None)
            model = site_model(site, pooled, drawn.messages[0].schema)
            by_site_model.append(np.mean((model.predict(X) - y) ** 2))
    return np.mean(by_line), np.mean(by_site_model)


@pytest.mark.parametrize("seed", range(3))
def test_predictions_at_epsilon_three_are_nearly_those_from_exact_moments(seed):
    private, exact = errors(seed, 3.0), errors(seed, None)
    assert private[0] <= 1.1 * exact[0]
    assert private[1] <= 1.1 * exact[1]


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "least"), [(0.5, 0.9), (1.0, 0.98), (3.0, 0.99)])
def test_many_draws_find_the_truths(epsilon, least):
    assert np.mean([recovery(seed, epsilon) for seed in range(100, 140)]) >= least
