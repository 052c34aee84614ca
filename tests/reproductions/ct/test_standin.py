from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from reproductions.ct.standin import KINDS, make_standin


def test_it_has_the_shape_of_the_real_file_by_default():
    defaults = make_standin.__defaults__
    assert defaults[:3] == (97, 53_500, 384)


@pytest.mark.parametrize(("n_patients", "n_rows"), [(1, 1), (3, 10), (7, 7), (20, 1001)])
def test_every_row_belongs_to_a_patient_and_nobody_is_empty(n_patients, n_rows):
    table = make_standin(n_patients, n_rows, 5)
    assert table.X.shape == (n_rows, 5)
    assert table.y.shape == table.groups.shape == (n_rows,)
    assert (np.bincount(table.groups, minlength=n_patients) > 0).all()
    assert ((table.X >= 0) & (table.X <= 1)).all()
    assert ((table.y >= 0) & (table.y <= 100)).all()


def test_a_seed_is_a_table():
    one, other, another = (make_standin(4, 50, 6, random_state=seed) for seed in (0, 0, 1))
    assert np.array_equal(one.X, other.X)
    assert not np.array_equal(one.X, another.X)


def test_a_model_of_one_kind_is_wrong_on_another():
    table = make_standin(12, 3000, 60, random_state=1)
    assert set(table.kinds.tolist()) == set(range(len(KINDS)))
    kind = table.kinds[table.groups]
    model = Ridge().fit(table.X[kind == 0], table.y[kind == 0])
    errors = [np.mean((model.predict(table.X[kind == k]) - table.y[kind == k]) ** 2) for k in (0, 1, 2)]
    assert min(errors[1:]) > 4 * errors[0]
