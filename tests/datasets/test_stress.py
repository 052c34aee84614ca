import numpy as np
import pytest

from coterie.datasets import STRESS_SETTINGS, make_stress


@pytest.mark.parametrize("setting", STRESS_SETTINGS)
def test_every_setting_draws_the_same_learners_from_the_same_seed(setting):
    data, again, other = (make_stress(setting, seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(data.y, again.y)
    assert not np.array_equal(data.X[:10], other.X[:10])
    assert np.isfinite(data.X).all()
    assert np.isfinite(data.y).all()
    assert list(dict.fromkeys(data.groups.tolist())) == data.learner_ids.tolist()


def test_the_settings_are_what_their_names_say():
    assert np.bincount(make_stress("27, 2 and 1 learners").truth).tolist() == [27, 2, 1]
    assert len(set(make_stress("twelve truths, 60 learners").truth.tolist())) == 12
    assert make_stress("continuum of truths").truth is None
    sizes = np.unique(make_stress("sizes 15 to 500, three truths").groups, return_counts=True)[1]
    assert sizes.max() == 500
    assert sizes.min() >= 15
    tiny = np.unique(make_stress("8 to 12 rows, one truth").groups, return_counts=True)[1]
    assert set(tiny) <= set(range(8, 13))
    weak = make_stress("one of 10 coefficients differs by .5, 60 rows").coefficients
    np.testing.assert_allclose(weak[1] - weak[0], [0.5, *[0] * 9])
    noise = make_stress("noise .3 to 3, one truth").noise_variance
    np.testing.assert_allclose([noise.min(), noise.max()], [0.09, 9])


def test_outliers_are_two_per_cent_of_the_rows():
    data = make_stress("2% outliers x 20, one truth", 1)
    share = np.mean(np.abs(data.y - data.signal) > 5)
    assert 0.005 < share < 0.04


def test_wild_cells_are_one_learner_s():
    for seed in range(8):
        data = make_stress("wild cells of one learner, three truths", seed)
        wild = np.flatnonzero((np.abs(np.column_stack([data.X, data.y])) > 900).any(axis=1))
        assert 1 <= len(wild) <= 5
        assert len(set(data.groups[wild].tolist())) == 1


def test_shift_moves_the_predictors_and_not_the_truth():
    data = make_stress("covariate shift, one linear truth")
    means = data.X.reshape(30, 60, 5).mean(axis=1)
    assert means.std() > 0.8
    np.testing.assert_allclose(data.signal, data.X @ data.coefficients[0])


@pytest.mark.parametrize("correlation", [0.5, 0.7, 0.8])
def test_rows_in_time_order_have_noise_that_depends_on_the_row_before(correlation):
    data = make_stress(f"AR(1) noise {correlation:.1f}, three truths".replace("0.", "."))
    noise = (data.y - data.signal).reshape(30, 80)
    assert np.corrcoef(noise[:, 1:].ravel(), noise[:, :-1].ravel())[0, 1] == pytest.approx(
        correlation, abs=0.06
    )
    np.testing.assert_allclose([noise.var(), noise[:, 0].var()], 6 / 16, rtol=0.5)


def test_sorted_rows_rise_inside_each_learner():
    response = make_stress("rows sorted by the response, one truth").y.reshape(30, 60)
    predictor = make_stress("rows sorted by a predictor, one truth").X[:, 0].reshape(30, 60)
    for rising in (response, predictor):
        assert (np.diff(rising, axis=1) >= 0).all()


def test_an_unknown_setting_lists_the_known_ones():
    with pytest.raises(ValueError, match="'one truth', 'three truths'"):
        make_stress("nothing")
