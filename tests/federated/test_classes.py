"""Messages do not take classes yet, and say so."""

import numpy as np
import pytest

from coterie.federated import make_party


def test_a_party_of_classes_is_refused_in_a_sentence() -> None:
    X = np.random.default_rng(0).normal(size=(30, 2))
    with pytest.raises(ValueError, match=r"must be numeric: fit classes with CoterieClassifier"):
        make_party(X, np.where(X[:, 0] > 0, "yes", "no"), site="a")
