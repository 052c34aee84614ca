"""What the plain forms lose on rows that neither models nor clusters have seen."""

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import KFold, ShuffleSplit, TimeSeriesSplit
from sklearn.neighbors import KNeighborsRegressor

from coterie import CoterieRegressor, cross_evaluate, select_models
from coterie.candidates import candidates_per_learner
from coterie.collaboration import out_of_fold
from coterie.collaboration.forms import plausible_ranges
from coterie.collaboration.nested import Recipe, folds_of, own_by_fold
from coterie.collaboration.out_of_fold import residuals_out_of_fold
from coterie.datasets import make_linear_learners
from coterie.engines import ThreadEngine
from coterie.rows.learners import Learners, gather_learners

FORMS = ["pooled", "average", "local"]
SIZES = [20, 22, 24, 26, 28, 30]
DATA = make_linear_learners(6, n_rows=SIZES, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)
TRUTH = np.asarray(DATA.truth)


def residuals_of(
    method: str, candidates: Any = ("lr",), labels: Any = TRUTH, y: Any = None, chosen: int = 2
) -> tuple[Learners, Any, np.ndarray]:
    """Return learners, their own models by fold, and the residuals of all rows."""
    candidates = list(candidates)
    y = DATA.y if y is None else y
    learners = gather_learners(DATA.X, y, DATA.groups, caller="test")
    selection = select_models(learners, candidates=candidates).aligned_to(learners.ids)
    cross_evaluate(selection, learners)
    recipe = Recipe(chosen, "noise", "pooled", False, 0, ThreadEngine())
    sets = candidates_per_learner(candidates, learners.ids.tolist())
    folds = folds_of(learners, selection, 4, None, 0)
    own = own_by_fold(learners, selection, folds, sets, recipe)
    residuals = residuals_out_of_fold(method, np.asarray(labels), learners, selection, own, sets, recipe)
    assert [part.shape for part in residuals] == [(size, 1) for size in SIZES]
    return learners, own, np.concatenate(residuals)[:, 0]


@pytest.mark.parametrize("method", FORMS)
def test_a_model_that_memorises_its_rows_shows_its_true_error(method: str) -> None:
    # The nearest neighbour of a seen row is the row itself: an error that is not held out would be zero.
    _, _, residuals = residuals_of(method, [KNeighborsRegressor(1)])
    assert np.mean(residuals**2) > DATA.noise_variance[0]


@pytest.mark.parametrize("collaboration", [*FORMS, "global", "auto"])
def test_so_it_does_in_every_form_of_a_fit(collaboration: str) -> None:
    model = CoterieRegressor(
        [KNeighborsRegressor(1)], n_clusters=2, collaboration=collaboration, n_bootstrap=0
    )
    model.fit(DATA.X, DATA.y, groups=DATA.groups)
    fit = model.record_
    for parts in (fit.collaboration.residuals, fit.with_all.residuals, fit.own.residuals):
        # Lines, which nested coteries have, too, lose little more than the noise.
        # A neighbour that has seen the row loses nothing.
        assert np.mean(np.concatenate(parts) ** 2) > 0.8 * DATA.noise_variance[0]


def test_pooled_rows_are_those_of_the_other_folds() -> None:
    learners, own, residuals = residuals_of("pooled")
    fold, mates = 1, TRUTH[learners.owner] == 0
    train, validation = own.folds.training[fold] & mates, (own.folds.held_out == fold) & mates
    pooled = LinearRegression().fit(learners.X[train], learners.scalar_y[train])
    assert_allclose(
        residuals[validation], learners.scalar_y[validation] - pooled.predict(learners.X[validation])
    )


def test_of_averages_the_own_part_is_without_the_fold() -> None:
    learners, own, residuals = residuals_of("average")
    row = int(np.flatnonzero((own.folds.held_out == 2) & (learners.owner == 1))[0])
    x = learners.X[[row]]
    mates = np.flatnonzero(TRUTH == 1)
    shares = np.array(SIZES)[mates] / np.array(SIZES)[mates].sum()
    parts = []
    for j in mates:
        span = learners.span(int(j))
        whole = LinearRegression().fit(learners.X[span], learners.scalar_y[span])
        parts.append((own.models[2][1] if j == 1 else whole).predict(x)[0])
    assert residuals[row] == pytest.approx(learners.scalar_y[row] - shares @ parts)


def test_alone_is_the_own_model_without_the_fold() -> None:
    learners, own, residuals = residuals_of("local")
    assert_allclose(residuals, learners.scalar_y - own.predictions[:, 0])


@pytest.mark.parametrize("method", ["pooled", "average"])
def test_clusters_are_made_without_the_fold(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def swapped(learners: Any, selection: Any, kept: Any, models: Any, recipe: Any) -> Any:
        seen.append(kept)
        return 1 - TRUTH if len(seen) % 2 else np.zeros(6, dtype=int)

    honest = residuals_of(method)[2]
    monkeypatch.setattr(out_of_fold, "labels_without_fold", swapped)
    _learners, own, residuals = residuals_of(method)
    np.testing.assert_array_equal(seen, own.folds.training)
    # The names of clusters do not matter, who is in them does: folds 1 and 3 mix the truths.
    same = np.isin(own.folds.held_out, [0, 2])
    assert_allclose(residuals[same], honest[same])
    assert np.mean(residuals[~same] ** 2) > 2 * np.mean(honest[~same] ** 2)


@pytest.mark.parametrize("method", ["pooled", "average"])
def test_who_is_put_among_strangers_at_the_end_is_judged_there(method: str) -> None:
    # Without any fold the clusters are the truths; the final ones have the first learner among the others.
    final = TRUTH.copy()
    final[0] = 1 - final[0]
    learners, _, honest = residuals_of(method)
    _, _, residuals = residuals_of(method, labels=final)
    first = learners.owner == 0
    assert np.mean(residuals[first] ** 2) > 5 * np.mean(honest[first] ** 2)


def test_one_cluster_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out_of_fold, "labels_without_fold", None)
    residuals_of("pooled", labels=np.zeros(6, dtype=int), chosen=1)
    residuals_of("local")


@pytest.mark.parametrize("method", FORMS)
def test_predictions_are_kept_within_what_the_cluster_makes_plausible(method: str) -> None:
    y = DATA.y.copy()
    y[DATA.groups == DATA.learner_ids[0]] *= 1e-3
    learners, _, residuals = residuals_of(method, y=y)
    predicted = learners.scalar_y - residuals
    low, high = plausible_ranges(learners, TRUTH)[TRUTH[learners.owner]].T
    assert (predicted >= low - 1e-9).all()
    assert (predicted <= high + 1e-9).all()


@pytest.mark.parametrize(
    "splitter", [KFold(2), KFold(3), ShuffleSplit(3, random_state=0), TimeSeriesSplit(3)]
)
@pytest.mark.parametrize("collaboration", ["pooled", "average"])
def test_the_folds_of_a_splitter_are_those_of_a_fit(collaboration: str, splitter: Any) -> None:
    options = {"collaboration": collaboration, "splitter": splitter, "n_bootstrap": 0}
    model = CoterieRegressor(["lr", "ridge"], n_clusters=2, **options).fit(DATA.X, DATA.y, groups=DATA.groups)
    residuals = model.collaboration_.residuals
    held_out = [folds >= 0 for folds in model.selection_.folds]
    assert all(
        (np.isfinite(part[:, 0]) == known).all() for part, known in zip(residuals, held_out, strict=True)
    )
    assert np.nanmean(np.concatenate(residuals) ** 2) == pytest.approx(DATA.noise_variance[0], rel=0.5)
    # Nothing is extrapolated from two equal shares of the rows.
    own = [np.nanmean(part**2) for part in model.record_.own.residuals]
    assert_allclose(model.gains_["error_alone"], own)
