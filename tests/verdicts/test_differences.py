from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from coterie import CoterieRegressor, load, save
from coterie.datasets import make_linear_learners
from coterie.verdicts import compare_clusters
from coterie.verdicts.differences import _regions

# Only the third predictor matters differently.
TRUTHS = [[1.0, 0, 2, 0], [1.0, 0, -2, 0]]
DATA = make_linear_learners(8, n_rows=60, coefficients=TRUTHS, random_state=0)


def fitted(**options: Any) -> CoterieRegressor:
    model = CoterieRegressor(["lr"], n_clusters=2, n_bootstrap=0, **options)
    return model.fit(DATA.X, DATA.y, groups=DATA.groups)


@pytest.mark.parametrize("collaboration", ["pooled", "average", "local", "global"])
def test_the_predictor_that_differs_is_found(collaboration: str) -> None:
    found = compare_clusters(fitted(collaboration=collaboration), 0, 1)
    assert found.clusters == (0, 1)
    assert found.importance.argmax() == 2
    assert found.importance[2] == pytest.approx(1.0, abs=0.15)
    assert np.delete(found.importance, 2).max() < 0.1
    # Cluster 0 is that of the first learner, whose coefficient is 2, four above the other's.
    assert found.trend[2] == pytest.approx(4 * DATA.X[:, 2].std(), rel=0.2)
    frame = found.frame()
    assert frame["predictor"][0] == "x2"
    assert abs(frame["difference"][0]) == pytest.approx(np.nanmax(np.abs(found.profile[2])))


def test_turning_the_clusters_round_turns_the_differences() -> None:
    model = fitted()
    there, back = compare_clusters(model, 0, 1), compare_clusters(model, 1, 0)
    np.testing.assert_allclose(there.profile, -back.profile)
    np.testing.assert_allclose(there.importance, back.importance)
    assert there.offset == pytest.approx(-back.offset)
    assert there.disagreement == pytest.approx(back.disagreement)


def test_bins_hold_all_rows() -> None:
    found = compare_clusters(fitted(), 0, 1)
    assert (found.counts.sum(axis=1) == len(DATA.y)).all()
    means = (found.profile * found.counts).sum(axis=1) / len(DATA.y)
    np.testing.assert_allclose(means, found.offset)


def test_a_constant_predictor_has_no_part_in_it() -> None:
    X = np.column_stack([DATA.X, np.ones(len(DATA.y))])
    model = CoterieRegressor(["lr"], n_clusters=2, n_bootstrap=0).fit(X, DATA.y, groups=DATA.groups)
    found = compare_clusters(model, 0, 1)
    assert found.importance[4] == 0.0
    assert found.trend[4] == 0.0
    assert np.isfinite(found.frame()["difference"]).all()


def test_names_of_columns_are_used() -> None:
    table = pd.DataFrame(DATA.X, columns=["age", "dose", "weight", "time"])
    model = CoterieRegressor(["lr"], n_clusters=2, n_bootstrap=0).fit(table, DATA.y, groups=DATA.groups)
    found = compare_clusters(model, 0, 1)
    assert found.frame()["predictor"][0] == "weight"
    assert "weight" in found.regions[0].where


def test_regions_are_the_leaves_of_a_tree_in_words() -> None:
    X = np.random.default_rng(0).uniform(size=(400, 2))
    values = np.where(X[:, 0] > 0.5, np.where(X[:, 1] > 0.5, 10.0, 1.0), 0.0)
    regions = _regions(X, values, ["a", "b"])
    assert regions[0].difference == 10.0
    assert regions[0].where.startswith("a > 0.5")
    assert " and b > 0.5" in regions[0].where
    assert sum(region.share for region in regions) == pytest.approx(1.0)
    assert _regions(X, np.zeros(400), ["a", "b"])[0].where == "everywhere"


def test_a_shift_alone_is_an_offset() -> None:
    data = make_linear_learners(8, n_rows=60, coefficients=[[1.0, 2, 0]], random_state=0)
    shifted = np.isin(data.groups, data.learner_ids[5:])
    y = data.y + 30 * shifted
    model = CoterieRegressor(["lr"], n_clusters=2, n_bootstrap=0).fit(data.X, y, groups=data.groups)
    found = compare_clusters(model, 0, 1)
    assert found.offset == pytest.approx(-30, abs=1)
    assert found.disagreement == pytest.approx(30, abs=1)


@pytest.mark.parametrize("cluster", [2, -1, "0", True, 1.0])
def test_unknown_clusters_are_refused(cluster: Any) -> None:
    with pytest.raises(ValueError, match=r"'second' argument of compare_clusters must be a cluster, 0 to 1"):
        compare_clusters(fitted(), 0, cluster)


def test_a_cluster_does_not_differ_from_itself() -> None:
    with pytest.raises(ValueError, match="needs two different clusters"):
        compare_clusters(fitted(), 1, 1)


def test_it_needs_the_rows(tmp_path: Any) -> None:
    save(fitted(), tmp_path / "m.coterie", rows=False)
    with pytest.raises(ValueError, match="saved without its rows, which compare_clusters needs"):
        compare_clusters(load(tmp_path / "m.coterie"), 0, 1)


def test_one_cluster_or_no_fit_is_said_to_be_so() -> None:
    with pytest.raises(NotFittedError):
        compare_clusters(CoterieRegressor(), 0, 1)
    data = make_linear_learners(4, n_truths=1, random_state=0)
    one = CoterieRegressor(["ridge"], n_clusters=1).fit(data.X, data.y, groups=data.groups)
    with pytest.raises(ValueError, match="has one cluster: compare_clusters has nothing to compare"):
        compare_clusters(one, 0, 1)
