from dataclasses import replace

import numpy as np
from sklearn.linear_model import LinearRegression

from coterie.candidates import make_candidates
from coterie.collaboration.nested.resolutions import (
    Recipe,
    labels_at,
    names_without,
    refit_own,
    resolution_counts,
    selection_without,
    share_names,
)
from coterie.engines import ThreadEngine

RECIPE = Recipe(chosen=2, scale="noise", refine="pooled", robust=False, seed=0, engine=ThreadEngine())


def test_resolutions_lie_between_alone_and_all():
    assert resolution_counts(80, 5) == (12, 6, 5, 3)
    assert resolution_counts(80, 1) == (12, 6, 3)
    assert resolution_counts(10, 3) == (3,)
    assert resolution_counts(2, 1) == resolution_counts(2, 2) == ()
    # The chosen number is always there; everybody alone is no cluster.
    assert resolution_counts(6, 5) == (5, 3)
    assert resolution_counts(6, 6) == (3,)
    assert share_names((12, 3)) == ("alone", "12 coteries", "3 coteries", "all")


def test_models_are_fitted_again_on_the_rows_that_are_left(staged):
    data = staged()
    kept = np.arange(len(data.learners.y)) % 2 == 0
    training = data.learners.only(kept)
    sets = [make_candidates(["lr"])] * 8
    models = refit_own(data.learners, kept, data.selection, sets, RECIPE)
    mine = training.span(3)
    expected = LinearRegression().fit(training.X[mine], training.scalar_y[mine])
    np.testing.assert_allclose(models[3].coef_, expected.coef_)
    again = selection_without(data.selection, data.learners, kept, models)
    assert again.n_rows.tolist() == training.sizes.tolist()
    np.testing.assert_array_equal(again.residuals[0], data.selection.residuals[0][kept[:20]])
    assert again.errors[3] == np.mean((training.scalar_y[mine] - expected.predict(training.X[mine])) ** 2)


def test_a_candidate_is_chosen_by_the_rows_that_are_left(staged):
    data = staged()
    n = len(data.learners.y)
    first, second = np.ones(20), np.r_[np.zeros(10), np.full(10, 5.0)]
    losses = ({"a": first, "b": second}, *({} for _ in range(7)))
    selection = replace(data.selection, names=("a",) * 8, candidate_losses=losses)
    # On its first ten rows the first learner would choose b; who had no choice keeps the name.
    assert names_without(selection, data.learners, np.arange(n) % 20 < 10) == ("b", *("a",) * 7)
    assert names_without(selection, data.learners, np.ones(n, dtype=bool))[0] == "a"
    gap = ({"a": first, "b": np.full(20, np.nan)}, *({} for _ in range(7)))
    unknown = replace(selection, names=("b",) * 8, candidate_losses=gap)
    assert names_without(unknown, data.learners, np.ones(n, dtype=bool)) == ("b",) * 8


def test_where_a_candidate_fails_on_few_rows_the_model_of_all_rows_stands_in(staged):
    class Picky(LinearRegression):
        def fit(self, X, y, sample_weight=None):
            if len(y) < 20:
                raise ValueError("too few")
            return super().fit(X, y)

    data = staged()
    kept = np.arange(160) % 2 == 0
    sets = [{"linearregression": Picky(), "lr": Picky()}] * 8
    models = refit_own(data.learners, kept, data.selection, sets, RECIPE)
    assert all(model is own for model, own in zip(models, data.selection.models, strict=True))


def test_truths_are_found_at_every_form_of_refinement(staged):
    data = staged()
    truth = np.arange(8) % 2
    for refine in ("pooled", "average", None):
        recipe = replace(RECIPE, refine=refine)
        labels = labels_at(data.learners, data.selection, (4, 2), recipe)
        assert np.array_equal(labels[2], truth)
        # Nobody of another truth shares one of the finer clusters.
        assert all(len(set(truth[labels[4] == k])) == 1 for k in np.unique(labels[4]))
