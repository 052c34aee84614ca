from collections.abc import Iterator

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners

ODD_NAMES = [
    "$a_b$",
    "<script>alert('x')</script>",
    "St. Mary's Hospital of the Northern Territories, ward 7",
    "two\nlines\tand a tab",
    "$",
    "\\frac{1}",
    "50% & more",
    "_",
    "",
    "\x00\ud800",
    "^{x}$y",
    "é ü ß",
]


@pytest.fixture
def odd_names() -> list[str]:
    """Twelve names that are hard to write."""
    return list(ODD_NAMES)


@pytest.fixture(autouse=True)
def _no_figure_is_left() -> Iterator[None]:
    before = set(plt.get_fignums())
    yield
    plt.close("all")
    assert not before


@pytest.fixture(scope="session")
def model() -> CoterieRegressor:
    """Twelve learners of three truths; one more, with too few rows to shape the clusters, is admitted."""
    data = make_linear_learners(n_learners=13, n_truths=3, n_rows=[40] * 12 + [6], random_state=0)
    return CoterieRegressor(candidates="linear").fit(data.X, data.y, groups=data.groups)


@pytest.fixture(scope="session")
def lonely() -> CoterieRegressor:
    """One learner only."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    return CoterieRegressor(candidates="linear").fit(X, X[:, 0] + 0.1 * rng.normal(size=40), groups=[0] * 40)
