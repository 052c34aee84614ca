"""What matters is found on rows that the models have not seen, for numbers and for classes."""

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from coterie import CoterieClassifier, CoterieRegressor
from coterie.datasets import make_linear_learners, make_logistic_learners
from coterie.encoding import TableEncoder, TableRecipe
from coterie.verdicts import measure_importance
from coterie.verdicts.importance import MOST_ROWS

TRUTHS = [[3.0, 0.0, 0.0], [0.0, 0.0, -3.0]]


@pytest.fixture(scope="module")
def model() -> CoterieRegressor:
    """Two truths, each about one predictor of three."""
    data = make_linear_learners(8, n_rows=60, coefficients=TRUTHS, random_state=0)
    return CoterieRegressor(["ridge"], n_clusters=2).fit(data.X, data.y, groups=data.groups)


def test_the_predictor_behind_each_cluster_is_found(model) -> None:
    found = measure_importance(model)
    assert found.clusters.tolist() == [0, 1]
    assert sorted(found.importance.argmax(axis=1).tolist()) == [0, 2]
    np.testing.assert_allclose(found.shares.sum(axis=1), 1.0)
    assert found.shares.max(axis=1).min() > 0.95
    # Noise has no importance on rows that no model has seen.
    assert np.abs(found.importance[:, 1]).max() < 4 * found.spread[:, 1].max() + 0.02
    assert found.n_rows.tolist() == [240, 240]
    assert (found.error < 0.5).all()


def test_shapes_say_how(model) -> None:
    found = measure_importance(model, n_shapes=2)
    shapes = {shape.predictor: shape for shape in found.shapes}
    assert set(shapes) == {"x0", "x2"}
    first = found.importance.argmax(axis=1).tolist().index(0)
    slopes = {name: np.polyfit(shape.values, shape.predictions.T, 1)[0] for name, shape in shapes.items()}
    assert slopes["x0"][first] == pytest.approx(3.0, abs=0.3)
    assert slopes["x0"][1 - first] == pytest.approx(0.0, abs=0.3)
    assert slopes["x2"][1 - first] == pytest.approx(-3.0, abs=0.3)


def test_the_answer_is_the_same_every_time(model) -> None:
    first, second = measure_importance(model), measure_importance(model, [0, 1])
    np.testing.assert_array_equal(first.importance, second.importance)


def test_some_clusters_and_few_rows_are_enough(model) -> None:
    found = measure_importance(model, [1])
    assert found.clusters.tolist() == [1]
    data = make_linear_learners(4, n_rows=600, n_truths=1, random_state=0)
    many = CoterieRegressor(["ridge"]).fit(data.X, data.y, groups=data.groups)
    assert measure_importance(many).n_rows.tolist() == [MOST_ROWS]


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_have_importance_too(n_classes) -> None:
    data = make_logistic_learners(6, n_rows=80, n_truths=1, n_classes=n_classes, random_state=0)
    y = np.array(["well", "sick", "dead"])[data.y]
    model = CoterieClassifier("linear", n_clusters=1, n_bootstrap=0).fit(data.X, y, groups=data.groups)
    found = measure_importance(model)
    assert found.label in y
    assert found.importance.max() > 0.02
    shape = found.shapes[0]
    assert ((shape.predictions >= 0) & (shape.predictions <= 1)).all()
    labels = model.classes_.tolist()
    total = sum(measure_importance(model, label=label).shapes[0].predictions for label in labels)
    np.testing.assert_allclose(total, 1.0)
    with pytest.raises(ValueError, match="must be a class of the model"):
        measure_importance(model, label="nobody")


def test_the_columns_of_a_text_column_are_one_predictor() -> None:
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 240
    colour = rng.choice(["red", "blue", "green"], n)
    table = pd.DataFrame({"colour": colour, "size": rng.normal(size=n)})
    table.loc[::7, "size"] = np.nan
    y = np.where(colour == "red", 5.0, 0.0) + 0.3 * rng.normal(size=n)
    encoder = TableEncoder().fit(table)
    model = CoterieRegressor(["ridge"], n_clusters=1).fit(
        encoder.transform(table), y, groups=np.arange(n) % 4
    )
    model.table_ = TableRecipe("y", "g", encoder.columns_)
    found = measure_importance(model)
    assert found.predictors.tolist() == ["colour", "size"]
    shape = found.shapes[0]
    assert shape.predictor == "colour"
    assert set(shape.values.tolist()) == {"red", "blue", "green"}
    predictions = dict(zip(shape.values.tolist(), shape.predictions[0].tolist(), strict=True))
    assert predictions["red"] == pytest.approx(5.0, abs=0.3)
    assert predictions["blue"] == pytest.approx(0.0, abs=0.3)


class Moody(Ridge):
    """Fails once it has been fitted often enough."""

    fits = 0

    def fit(self, X, y):
        Moody.fits += 1
        if Moody.fits > 10_000:
            raise RuntimeError("not today")
        return super().fit(X, y)


def test_a_candidate_that_fails_is_no_accident() -> None:
    data = make_linear_learners(4, n_rows=40, n_truths=1, random_state=0)
    model = CoterieRegressor({"moody": Moody()}, n_clusters=1, n_jobs=1)
    model.fit(data.X, data.y, groups=data.groups)
    assert measure_importance(model).models == ("moody",)
    Moody.fits = 10_000
    with pytest.raises(ValueError, match="No cluster has enough rows"):
        measure_importance(model)


def test_what_cannot_be_measured_is_refused(model) -> None:
    with pytest.raises(ValueError, match="is for classes"):
        measure_importance(model, label="sick")
    constant = CoterieRegressor(["lr"], n_clusters=1)
    rng = np.random.default_rng(0)
    constant.fit(rng.normal(size=(40, 2)), np.ones(40), groups=np.arange(40) % 2)
    with pytest.raises(ValueError, match="No cluster has enough rows"):
        measure_importance(constant)
