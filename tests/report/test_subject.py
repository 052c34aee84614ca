import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from coterie import CoterieRegressor
from coterie.report.subject import LONGEST_NAME, as_subject, finite_list, full_name


def test_a_model_brings_all_its_parts(model):
    subject = as_subject(model)
    assert subject.model is model
    assert subject.exchange.learner_ids.tolist() == subject.partition.learner_ids.tolist()
    assert subject.summary["n_learners"] == 13


def test_a_partition_brings_losses_only_where_they_are_given(partition, losses):
    assert as_subject(partition).exchange is None
    subject = as_subject(partition, losses)
    np.testing.assert_array_equal(subject.exchange.losses, losses)
    assert subject.summary["pays"] is None
    assert subject.stability is None


def test_losses_in_a_table_are_brought_into_the_order_of_the_partition(partition, losses):
    names = list("fedcba")
    table = pd.DataFrame(losses[::-1, ::-1], index=names, columns=names)
    np.testing.assert_array_equal(as_subject(partition, table).exchange.losses, losses)


def test_what_is_no_model_is_refused_in_a_sentence():
    with pytest.raises(TypeError, match=r"Report takes a fitted CoterieRegressor.*Got list"):
        as_subject([1, 2])
    with pytest.raises(TypeError, match="the class CoterieRegressor itself"):
        as_subject(CoterieRegressor)
    with pytest.raises(NotFittedError):
        as_subject(CoterieRegressor())


def test_losses_that_do_not_fit_are_refused(model, partition):
    with pytest.raises(ValueError, match="has its own losses"):
        as_subject(model, np.eye(3))
    with pytest.raises(ValueError, match="learners"):
        as_subject(partition, np.eye(3))


def test_a_name_is_printable_and_not_endless():
    assert len(full_name("x" * 5000)) == LONGEST_NAME
    assert full_name("\x00\ud800").isprintable()
    assert full_name(np.int64(7)) == "7"


def test_numbers_become_what_json_knows():
    assert finite_list([1.23456789, np.nan, np.inf], 3) == [1.23, None, None]
