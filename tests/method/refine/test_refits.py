from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import Lasso, LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from coterie import cross_evaluate
from coterie.engines import ThreadEngine
from coterie.method.refine import refits
from coterie.method.refine.flexible import FlexibleRule, quick_forest
from coterie.method.refine.losses import LocalLosses, LocalRows, halves_of, whole_losses
from coterie.method.refine.pooled import PooledLosses
from coterie.method.refine.refits import BestFormLosses, RefitLosses, pooled_losses
from coterie.records import Selection
from coterie.rows.learners import Learners

LABELS = np.array([0, 1, 0, 3, 1])


class Counting(RegressorMixin, BaseEstimator):
    """Predicts the mean and counts how often it was fitted, and on how many rows."""

    fits: list[int] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any) -> Any:
        self.mean_ = y.mean()
        self.fits.append(len(y))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


def refit(learners: Learners, selection: Selection) -> RefitLosses:
    return RefitLosses(learners, selection, PooledLosses(learners, selection), selection.models[0])


def by_hand(losses: RefitLosses, model: Any, members: list[int]) -> Any:
    """Each half of everybody's rows from the other half of the members', in the order of the answer."""
    learners = losses.learners
    second = np.concatenate([halves_of(folds) for folds in losses.selection.folds])[learners.rows]
    theirs = np.isin(learners.owner, members)
    # Quiet learners count more, rows that a learner's own honest model misses by far count less.
    quiet = 1 / np.median(1 / losses.noise)
    honest = np.concatenate(losses.selection.residuals)[learners.rows, 0]
    weights = quiet / losses.noise[learners.owner] * np.minimum(1, losses.clips / honest**2)
    weights = weights if learners.weights is None else weights * learners.weights
    residuals = np.empty(len(learners.y))
    for half in (0, 1):
        rows, out = theirs & (second != half), second == half
        extra = {}
        if isinstance(model, RandomForestRegressor | LinearRegression):
            extra = {"sample_weight": weights[rows]}
        fitted = clone(model).fit(learners.X[rows], learners.scalar_y[rows], **extra)
        residuals[out] = learners.scalar_y[out] - fitted.predict(learners.X[out])
    return residuals


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "model",
    [KNeighborsRegressor(2), RandomForestRegressor(3, random_state=0)],
    ids=lambda m: type(m).__name__,
)
def test_clusters_predict_one_half_from_the_other_half_of_their_members(
    model: Any,
    weighted: bool,
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
) -> None:
    learners = make_learners(weighted=weighted)
    losses = refit(learners, select(learners, [model]))
    residuals = losses.residuals(LABELS, 4)[..., 0]
    assert np.allclose(residuals[0], by_hand(losses, model, [0, 2]))
    assert np.allclose(residuals[1], by_hand(losses, model, [1, 4]))
    assert np.isnan(residuals[2]).all()


def test_a_cluster_of_one_predicts_others_by_its_model_and_itself_by_honest_residuals(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    learners = make_learners()
    losses = refit(learners, select(learners, [KNeighborsRegressor(1)]))
    residuals, whole = losses.residuals(LABELS, 4)[..., 0], whole_losses(losses, LABELS)
    mine = losses.learners.owner == 3
    assert np.isnan(residuals[3, mine]).all()
    others = losses.learners.X[~mine], losses.learners.scalar_y[~mine]
    assert np.allclose(residuals[3, ~mine], others[1] - losses.selection.models[3].predict(others[0]))
    own = np.minimum(losses.selection.residuals[3][:, 0] ** 2, losses.selection.clips[3])
    assert whole[3, 3] == pytest.approx(own.mean())
    assert whole[3, 3] > 0
    assert np.isinf(whole[2]).all()


def test_a_memorising_family_never_predicts_a_row_that_it_has_seen(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    learners = make_learners()
    losses = refit(learners, select(learners, [KNeighborsRegressor(1)]))
    assert (np.abs(losses.residuals(np.zeros(5, dtype=int), 1)) > 1e-9).all()


def test_a_set_of_members_is_fitted_once_in_however_many_labellings(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    learners = make_learners()
    losses = refit(learners, select(learners, [Counting()]))
    Counting.fits.clear()
    for labels in ([0, 1, 0, 2, 1], [1, 0, 1, 2, 0], [0, 1, 0, 1, 1]):
        losses.on_halves(np.array(labels))
    # {0, 2} and {1, 4} and {1, 3, 4}, a fit a half each; the cluster of one is not fitted again.
    assert len(Counting.fits) == 6


def test_more_rows_than_needed_are_thinned_out(
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learners = make_learners()
    monkeypatch.setattr(refits, "FLEXIBLE", FlexibleRule(rows=10))
    losses = refit(learners, select(learners, [Counting()]))
    Counting.fits.clear()
    assert np.isfinite(losses.residuals(np.zeros(5, dtype=int), 1)).all()
    assert Counting.fits == [10, 10]


@pytest.mark.parametrize("within", [lambda e: e, lambda e: make_pipeline(StandardScaler(), e)])
def test_a_large_ensemble_is_searched_with_in_a_lighter_copy(
    within: Any,
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learners = make_learners((12, 9))
    monkeypatch.setattr(refits, "FLEXIBLE", FlexibleRule(trees=2))
    labels = np.zeros(2, dtype=int)
    heavy = refit(learners, select(learners, [within(RandomForestRegressor(4, random_state=0))]))
    small = tuple(within(RandomForestRegressor(2, random_state=0)) for _ in range(2))
    light = refit(learners, replace(heavy.selection, models=small))
    assert np.allclose(heavy.residuals(labels, 1), light.residuals(labels, 1))
    assert (
        heavy.selection.models[0].get_params()[
            "n_estimators" if within(1) == 1 else "randomforestregressor__n_estimators"
        ]
        == 4
    )


def test_boosting_by_bins_counts_its_trees_under_another_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refits, "FLEXIBLE", FlexibleRule(trees=2))
    inside = make_pipeline(StandardScaler(), HistGradientBoostingRegressor(max_iter=7))
    assert refits._lighter(inside)[-1].max_iter == 2
    assert refits._lighter(HistGradientBoostingRegressor(max_iter=7)).max_iter == 2
    # Elsewhere the same name bounds a search, which has to end where it ends.
    assert refits._lighter(Lasso(max_iter=7)).max_iter == 7


def test_a_refit_that_cannot_predict_is_an_infinite_loss_for_others(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    learners = make_learners((12, 9, 15))
    selection = select(learners, [KNeighborsRegressor(4)])
    greedy = replace(selection, models=(KNeighborsRegressor(1000).fit(learners.X, learners.scalar_y),) * 3)
    whole = whole_losses(refit(learners, greedy), np.array([0, 0, 1]))
    assert np.isinf(whole[0, 2])
    assert np.isfinite(whole[0, :2]).all()


# The better form.


def stairs(X: Any, owner: Any) -> Any:
    return 4.0 * (X[:, 0] > 0) - 4.0 * (np.abs(X[:, 0]) > 1.2)


def both(
    truth: Any,
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
    weighted: bool = False,
) -> tuple[PooledLosses, RefitLosses, BestFormLosses]:
    learners = make_learners((40,) * 5, noise=0.3, truth=truth, weighted=weighted)
    forest = RandomForestRegressor(10, random_state=0)
    selection = select(learners, {i: {"lr": LinearRegression()} if i == 4 else [forest] for i in range(5)})
    linear = PooledLosses(learners, selection)
    flexible = RefitLosses(learners, selection, linear, quick_forest())
    return linear, flexible, BestFormLosses(learners, selection, [quick_forest()], np.zeros(5, dtype=int))


def line(X: Any, owner: Any) -> Any:
    return 3 * X[:, 0] - 2 * X[:, 1]


@pytest.mark.parametrize(("truth", "better"), [(stairs, 1), (line, 0)], ids=["steps", "line"])
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_forests_are_taken_on_a_step_and_lines_on_a_line(
    truth: Any,
    better: int,
    weighted: bool,
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
) -> None:
    *forms, best = both(truth, make_learners, select, weighted)
    for labels in (np.zeros(5, dtype=int), np.array([0, 1, 0, 1, 0])):
        assert np.allclose(best.on_halves(labels), forms[better].on_halves(labels))


def test_each_cluster_takes_its_own_form(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    def truth(X: Any, owner: Any) -> Any:
        return np.where(owner < 2, stairs(X, owner), line(X, owner))

    linear, flexible, best = both(truth, make_learners, select)
    labels = np.array([0, 0, 1, 1, 1])
    residuals = best.residuals(labels, 2)
    assert np.array_equal(residuals[0], flexible.residuals(labels, 2)[0])
    assert np.array_equal(residuals[1], linear.residuals(labels, 2)[1])


def test_only_members_decide_about_the_form_of_their_cluster(
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    linear, _, best = both(line, make_learners, select)
    labels = np.array([0, 0, 1, 1, 1])
    theirs = labels[linear.learners.owner] == 0
    # On the members of the first cluster the flexible form is better, on everybody else much worse.
    answers = (np.where(theirs, 0.2, 0.0)[:, None], np.where(theirs, 0.1, 0.4)[:, None])
    monkeypatch.setattr(PooledLosses, "residuals", lambda self, labels, n: np.array([answers[0]] * 2))
    monkeypatch.setattr(RefitLosses, "cluster_residuals", lambda self, members: answers[1])
    residuals = best.residuals(labels, 2)
    assert np.array_equal(residuals[0], answers[1])
    assert np.array_equal(residuals[1], answers[0])


def test_a_cluster_whose_members_all_chose_lines_may_yet_predict_better_by_the_forest(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    learners = make_learners((40,) * 5, noise=0.3, truth=stairs)
    selection = select(learners, [LinearRegression()])
    everybody = np.zeros(5, dtype=int)
    best = BestFormLosses(learners, selection, [quick_forest()], np.zeros(5, dtype=int))
    flexible = RefitLosses(learners, selection, best.lines, quick_forest())
    assert np.array_equal(best.residuals(everybody, 1), flexible.residuals(everybody, 1))


def test_clusters_of_one_and_empty_clusters_keep_their_meaning_in_the_better_form(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    _, _, best = both(stairs, make_learners, select)
    whole = whole_losses(best, LABELS)
    assert np.isinf(whole[2]).all()
    own = np.minimum(best.selection.residuals[3][:, 0] ** 2, best.selection.clips[3])
    assert whole[3, 3] == pytest.approx(own.mean())
    assert np.isfinite(whole[[0, 1, 3]]).all()


# Which form.


def pooled(learners: Learners, selection: Selection) -> tuple[LocalLosses, LocalRows]:
    exchange = cross_evaluate(selection, learners).aligned_to(learners.ids)
    return pooled_losses(learners, selection, exchange, ThreadEngine())


@pytest.mark.parametrize("n_flexible", range(6))
def test_the_form_follows_the_models_in_use(
    n_flexible: int,
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
) -> None:
    learners = make_learners((40,) * 5, noise=0.3, truth=stairs)
    families = {i: KNeighborsRegressor(2) if i < n_flexible else LinearRegression() for i in range(5)}
    losses, local = pooled(learners, select(learners, families))
    if n_flexible == 5:
        assert type(losses) is BestFormLosses
        assert type(local.quick) is PooledLosses
        return
    assert type(losses) is PooledLosses
    assert local.quick is None
    assert (local.second is not None) == (n_flexible > 0)
    # A quarter of the learners must be flexible before forests search for clusters of their own.
    assert (local.second is not None and local.second.always) == (n_flexible >= 2)


def test_many_predictors_are_refitted(
    make_learners: Callable[..., Learners], select: Callable[..., Selection], monkeypatch: pytest.MonkeyPatch
) -> None:
    learners = make_learners(n_features=3)
    selection = select(learners, [LinearRegression()])
    monkeypatch.setattr(refits, "FLEXIBLE", FlexibleRule(predictors=3))
    assert type(pooled(learners, selection)[0]) is PooledLosses
    monkeypatch.setattr(refits, "FLEXIBLE", FlexibleRule(predictors=2))
    assert type(pooled(learners, selection)[0]) is RefitLosses


@pytest.mark.parametrize(
    "candidate",
    [
        "lr",
        "lasso",
        make_pipeline(StandardScaler(), LinearRegression()),
        "ridge",
    ],
    ids=["lr", "lasso", "scaled", "ridge"],
)
def test_linear_candidates_are_pooled_by_moments(
    candidate: Any, make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    learners = make_learners()
    assert type(pooled(learners, select(learners, [candidate]))[0]) is PooledLosses


@pytest.mark.parametrize(("truth", "best"), [(stairs, "tree"), (line, "line")], ids=["steps", "line"])
def test_where_all_is_refitted_every_cluster_takes_the_family_that_predicts_best(
    truth: Any,
    best: str,
    make_learners: Callable[..., Learners],
    select: Callable[..., Selection],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(refits, "FLEXIBLE", FlexibleRule(predictors=1))
    learners = make_learners((40,) * 6, noise=0.3, truth=truth)
    models = {"tree": RandomForestRegressor(10, random_state=0), "line": LinearRegression()}
    # Whichever family is better, most learners chose the other one.
    other = {"tree": "line", "line": "tree"}[best]
    families = {i: {name: models[name]} for i, name in enumerate([best, best, *[other] * 4])}
    losses, _ = pooled(learners, select(learners, families))
    assert isinstance(losses, RefitLosses)
    for members in ([0, 1, 2, 3, 4, 5], [0, 1], [2, 3, 4, 5]):
        labels = np.isin(np.arange(6), members, invert=True).astype(int)
        assert np.allclose(losses.residuals(labels, 2)[0, :, 0], by_hand(losses, models[best], members))


def test_a_family_that_fails_on_pooled_rows_is_not_everybodys(
    make_learners: Callable[..., Learners], select: Callable[..., Selection]
) -> None:
    class Small(KNeighborsRegressor):
        def fit(self, X: Any, y: Any) -> Any:
            if len(y) > 15:
                raise ValueError("too many")
            return super().fit(X, y)

    learners = make_learners()
    near, small = KNeighborsRegressor(2), Small(1)
    losses = refit(
        learners, select(learners, {i: {"near": near} if i < 2 else {"small": small} for i in range(5)})
    )
    losses.take_best_family([small, near], np.zeros(5, dtype=int))
    one_group = np.zeros(5, dtype=int)
    assert np.allclose(losses.residuals(one_group, 1)[0, :, 0], by_hand(losses, near, list(range(5))))
