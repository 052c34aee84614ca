"""Finished fits as files: the same models come back, no code runs, and what cannot be read is not written."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.linear_model import Ridge

from coterie.candidates import KNOWN, make_candidates
from coterie.datasets import make_linear_learners
from coterie.fit import out_of_core as _streaming
from coterie.method.fitting import FitJob, choose_candidate
from coterie.persistence import PersistenceError
from coterie.persistence.results import ResultCodec


class OwnRidge(Ridge):
    """A type that coterie does not trust."""


def fitted(candidates, n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    folds = np.arange(n) % 2
    training = np.array([folds != 0, folds != 1])
    job = FitJob("learner 'a'", X, X @ [[1.0], [2.0], [0.0]], folds, training, (0, 1), candidates, 0)
    return X, choose_candidate(job)


@pytest.mark.parametrize("name", KNOWN)
def test_every_known_candidate_comes_back_as_it_was(name):
    X, before = fitted(make_candidates(name))
    codec = ResultCodec()
    after = codec.load(codec.dump(before))
    assert (after.name, after.error, after.held_out_error) == (name, before.error, before.held_out_error)
    assert after.candidate_errors == before.candidate_errors
    assert after.failures == {}
    assert_array_equal(after.residuals, before.residuals)
    for one, other in zip(
        (after.model, *after.fold_models), (before.model, *before.fold_models), strict=True
    ):
        assert_array_equal(one.predict(X), other.predict(X))


def test_a_learner_that_was_read_comes_back_with_its_rows():
    data = make_linear_learners(n_learners=2, n_truths=1, random_state=0)

    class Source:
        n_rows = 60

        def read(self, most):
            return data.X[:60], data.y[:60]

    job = _streaming.SourceJob("a", Source(), make_candidates("lr"), None, True, 0, 30, 60)
    before = _streaming.select_from_source(job)
    codec = ResultCodec()
    after = codec.load(codec.dump(before))
    assert_array_equal(after.rows.X, before.rows.X)
    assert_array_equal(after.rows.ids, before.rows.ids)
    assert_array_equal(after.training, before.training)
    assert_array_equal(
        after.units.scales if hasattr(after.units, "scales") else 0, getattr(before.units, "scales", 0)
    )
    assert after.fitted.name == "lr"
    assert after.serial == before.serial
    assert after.whole is None
    assert (after.n_rows, after.names) == (60, None)


def test_a_type_that_is_not_trusted_is_not_written():
    codec = ResultCodec()
    assert codec.dump(fitted({"own": OwnRidge()})[1]) is None
    assert codec.dump(fitted({"own": OwnRidge()})[1]) is None
    assert codec.dump(fitted(make_candidates("lr"))[1]) is not None


class Trap:
    def __reduce__(self):
        return pytest.fail, ("a stranger's pickle was opened",)


def test_nothing_but_a_result_is_read():
    codec = ResultCodec()
    whole = codec.dump(fitted(make_candidates("lr"))[1])
    with pytest.raises(zipfile.BadZipFile):
        codec.load(pickle.dumps(Trap()))
    with pytest.raises(KeyError):
        codec.load(whole[:-30])
    members = zipfile.ZipFile(io.BytesIO(whole))
    for name, content in (
        ("result.json", b"[]"),
        ("result.json", members.read("result.json").replace(b'"residuals"', b'"others"')),
        ("models/0.skops", pickle.dumps(Trap())),
    ):
        bent = io.BytesIO()
        with zipfile.ZipFile(bent, "w") as zipped:
            for entry in members.namelist():
                zipped.writestr(entry, content if entry == name else members.read(entry))
        with pytest.raises((PersistenceError, zipfile.BadZipFile)):
            codec.load(bent.getvalue())
