"""Labels of classes become numbers, and what is no label is refused in a sentence."""

import numpy as np
import pandas as pd
import pytest

from coterie.rows.labels import class_labels, class_numbers


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["yes", "no", "yes"], ["no", "yes"]),
        ([True, False, True], [False, True]),
        ([2, 1, 2], [1, 2]),
        ([2.0, 1.0, 2.0], [1.0, 2.0]),
        (pd.Series(["b", "a", "b"], dtype="category"), ["a", "b"]),
        (pd.Series(["b", "a", "b"], dtype="string"), ["a", "b"]),
        (np.array([True, False, True], dtype=object), [False, True]),
    ],
)
def test_labels_of_any_kind_are_numbered_in_order(labels, classes):
    found = class_labels(labels, "test")
    assert np.unique(found).tolist() == classes
    assert class_numbers(found, np.unique(found), "test").tolist() == [1.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("labels", "sentence"),
    [
        (["a", None, "b"], r"contains NaN: 1 label is missing\. Drop the rows"),
        (pd.Series(["a", pd.NA, "b"]), "contains NaN"),
        ([1.0, np.nan, 0.0], "contains NaN"),
        ([1.0, np.inf, 0.0], "contains infinity"),
        ([[1, 0], [0, 1]], "has 2 columns, and a learner has one response"),
        (np.array(["a", 1, "b"], dtype=object), "mixes texts with other labels"),
        ([0.5, 1.25, 0.1], "Unknown label type: continuous.*numbers are fitted by CoterieRegressor"),
        (3, "must have one dimension"),
    ],
)
def test_what_is_no_label_is_refused(labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        class_labels(labels, "test")


def test_a_class_that_fit_has_not_seen_is_named():
    with pytest.raises(ValueError, match="The class 'maybe' in y of test was not seen in fit"):
        class_numbers(np.array(["no", "maybe"]), np.array(["no", "yes"]), "test")
