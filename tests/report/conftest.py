"""What reports are made of: a fitted model, a matrix of losses alone, and a crowd of learners."""

import numpy as np
import pytest

from coterie import CoterieRegressor, cluster_learners
from coterie.datasets import make_linear_learners
from coterie.federated import Conclusion, Settings
from coterie.federated.conclusions import Gain, Mixture, SentCurve
from coterie.records import Curve, Partition
from coterie.summary import table_rows

ODD_NAMES = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "<b>bold</b> & <a href='javascript:alert(3)'>link</a>",
    "line\u2028separator",
    "\x00\x1b[31m control",
    "{{ 7 * 7 }}",
    "%{x} %{customdata}",
    "@ink",
    "\u05e9\u05dc\u05d5\u05dd \u202e right to left",
    "\U0001f9ea emoji",
    "a very long name " * 20,
    "quote \" and ' quote",
    "few rows",
]


@pytest.fixture(scope="session")
def model() -> CoterieRegressor:
    """Twelve learners of three truths with odd names; the last has too few rows to shape the clusters."""
    data = make_linear_learners(
        n_learners=13, n_truths=3, n_rows=[40] * 12 + [6], n_features=3, random_state=0
    )
    order = list(dict.fromkeys(data.groups.tolist()))
    names = np.array([ODD_NAMES[order.index(group)] for group in data.groups.tolist()], dtype=object)
    return CoterieRegressor(candidates=["lr", "ridge"]).fit(data.X, data.y, groups=names)


@pytest.fixture(scope="session")
def conclusion(model) -> Conclusion:
    """Thirteen sites with the numbers of the model; one of them takes from others."""
    table = {name: model.gains_[name] for name in Gain.__dataclass_fields__}
    rows = [row | {"learner": f"site {place:02d}"} for place, row in enumerate(table_rows(table))]
    mixtures = {row["learner"]: Mixture({row["learner"]: 1.0}, (0.0,), (0.0, 0.0)) for row in rows}
    near = next(row["learner"] for row in rows[1:] if row["cluster"] == rows[0]["cluster"])
    far = next(row["learner"] for row in rows[1:] if row["cluster"] != rows[0]["cluster"])
    mixtures["site 00"] = Mixture({"site 00": 0.5, near: 0.3, far: 0.2}, (0.1,), (-1.0, 1.0))
    return Conclusion(
        gains=tuple(Gain(**row) for row in rows),
        mixtures=mixtures,
        models={row["learner"]: "0" * 64 for row in rows},
        rule="held-out",
        clear=True,
        curves={"held-out": SentCurve("loss (lower is better)", (1, 2, 3), (9.0, None, 1.0), 3)},
        left_out={"<far>": "it did not answer."},
        notes=("Take care.",),
        rounds=2,
        settings=Settings(seed=7).as_text(),
    )


@pytest.fixture(scope="session")
def losses() -> np.ndarray:
    """Five learners in two groups, and one whose losses are not finite."""
    labels = np.array([0, 0, 0, 1, 1])
    matrix = np.where(labels[:, None] == labels[None, :], 1.0, 8.0)
    matrix += 0.01 * np.arange(5)[:, None]
    matrix = np.pad(matrix, (0, 1), constant_values=5.0)
    matrix[5] = np.nan
    return matrix


@pytest.fixture(scope="session")
def partition(losses) -> Partition:
    """Of these losses."""
    return cluster_learners(losses, n_clusters=2, learner_ids=list("abcdef"))


def _many_learners(count: int, n_clusters: int = 4) -> tuple[Partition, np.ndarray]:
    rng = np.random.default_rng(0)
    labels = np.sort(rng.integers(0, n_clusters, count))
    far = (labels[:, None] - labels[None, :]) ** 2
    losses = 1.0 + far + 0.1 * rng.random((count, count))
    dissimilarity = far + 0.05 * rng.random((count, count))
    similarity = np.exp(-(dissimilarity + dissimilarity.T) / 2)
    embedding = np.eye(n_clusters)[labels] + 0.02 * rng.normal(size=(count, n_clusters))
    curve = Curve("eigengap", np.arange(1, 7), np.array([0.1, 0.2, 0.3, 2.0, 0.1, 0.1]), 4, "drop")
    return (
        Partition(
            learner_ids=np.array([f"site {place:04d}" for place in range(count)]),
            labels=labels,
            similarity=similarity,
            eigenvalues=np.linspace(1, 0, 6),
            embedding=embedding,
            rule="eigengap",
            curves={"eigengap": curve},
        ),
        losses,
    )


@pytest.fixture(scope="session")
def many_learners():
    """A partition of so many learners, with the losses behind it, made without any clustering."""
    return _many_learners
