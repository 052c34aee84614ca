"""Everybody's own model without each fold, and how well everybody does alone."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.model_selection import KFold

from coterie import select_models
from coterie.candidates import make_candidates
from coterie.collaboration.nested.guard import widened
from coterie.collaboration.nested.own import folds_of, own_by_fold
from coterie.collaboration.nested.resolutions import Recipe
from coterie.engines import ThreadEngine

RECIPE = Recipe(chosen=2, scale="noise", refine="pooled", robust=False, seed=0, engine=ThreadEngine())


def own_of(data, candidates=("lr",), n_folds=4, **options):
    folds = folds_of(data.learners, data.selection, n_folds, None, 0)
    sets = [make_candidates(list(candidates))] * len(data.learners)
    return own_by_fold(data.learners, data.selection, folds, sets, RECIPE, **options)


def test_predictions_are_those_of_models_without_the_fold(staged):
    data = staged()
    own = own_of(data)
    assert len(own.models) == len(own.folds) == 4
    for fold in range(4):
        for j in (0, 5):
            span = data.learners.span(j)
            validation = np.flatnonzero(own.folds.held_out[span] == fold) + span.start
            predicted = own.models[fold][j].predict(data.learners.X[validation])
            seen = data.learners.scalar_y[span][own.folds.training[fold][span]]
            np.testing.assert_allclose(own.predictions[validation, 0], np.clip(predicted, *widened(seen)))


def test_a_model_that_memorises_shows_its_true_error(staged):
    data = staged(candidates=("knn",))
    residuals = data.learners.scalar_y - own_of(data, ("knn",)).predictions[:, 0]
    # Noise of .3: nobody predicts a row that it has not seen better than that.
    assert np.mean(residuals**2) > 0.09


def test_predictions_stay_within_what_the_other_folds_make_plausible(staged):
    data = staged()
    j = 3
    span = data.learners.span(j)
    far = data.learners.X.copy()
    far[span.start] = 1e6
    own = own_of(replace(data, learners=replace(data.learners, X=far)))
    for fold in range(4):
        training = own.folds.training[fold][span]
        low, high = widened(data.learners.scalar_y[span][training])
        validation = np.flatnonzero(own.folds.held_out[span] == fold) + span.start
        assert (own.predictions[validation] >= low).all()
        assert (own.predictions[validation] <= high).all()
    assert own.bounds[j].tolist() == list(widened(data.learners.scalar_y[span]))


def test_how_well_everybody_does_alone_is_told_by_learner(staged):
    data = staged(sizes=(20, 24, 28, 32))
    own = own_of(data, n_folds=4)
    judged = own.judged(data.learners)
    assert judged.learner_ids.tolist() == data.learners.ids.tolist()
    assert [part.shape for part in judged.residuals] == [(20, 1), (24, 1), (28, 1), (32, 1)]
    assert judged.share == pytest.approx(0.75)
    np.testing.assert_array_equal(judged.bounds, own.bounds)
    span = data.learners.span(2)
    expected = data.learners.scalar_y[span] - own.predictions[span, 0]
    np.testing.assert_array_equal(judged.residuals[2][:, 0], expected)


def test_every_fold_is_reported(staged):
    done = []
    own_of(staged(), done=lambda: done.append(1))
    assert len(done) == 4


def test_folds_are_those_of_the_splitter_or_blocks_or_random_ones(staged):
    data = staged(sizes=(20,) * 4)
    split = KFold(5)
    selection = select_models(data.learners, candidates=["lr"], splitter=split).aligned_to(data.learners.ids)
    assert len(folds_of(data.learners, selection, 4, split, 0)) == 5
    random = folds_of(data.learners, data.selection, 4, None, 0)
    assert np.bincount(random.held_out[:20]).tolist() == [5] * 4
    assert (np.diff(random.held_out[:20]) != 0).sum() > 3
    blocks = folds_of(data.learners, replace(data.selection, in_order=True), 4, None, 0)
    assert blocks.held_out[:20].tolist() == sorted(blocks.held_out[:20].tolist())


def test_there_are_no_more_folds_than_rows(staged):
    data = staged(sizes=(6,) * 4)
    assert len(folds_of(data.learners, data.selection, 10, None, 0)) == 6


def test_rows_that_no_fold_holds_out_have_no_prediction(staged):
    data = staged()
    folds = folds_of(data.learners, data.selection, 4, None, 0)
    held_out = folds.held_out.copy()
    held_out[:3] = -1
    gaps = replace(folds, held_out=held_out)
    own = own_by_fold(data.learners, data.selection, gaps, [make_candidates(["lr"])] * 8, RECIPE)
    assert np.flatnonzero(np.isnan(own.predictions)).tolist() == [0, 1, 2]
