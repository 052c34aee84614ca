"""The loss of a row stands in one place, and nothing else squares a residual."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

import coterie
from coterie.kernels.affine import AffineLosses, second_moments
from coterie.loss import SQUARED_ERROR, BrierScore, Loss
from coterie.method.refine.moment_starts import search_moments
from coterie.models.classes import OneClass
from coterie.rows.learners import gather_learners


@dataclass(frozen=True)
class Plane(Loss):
    """Responses of two columns, as probabilities of two classes are."""

    n_columns: ClassVar[int] = 2

    def response(self, y: Any) -> Any:
        return np.column_stack([y, 1 - y])

    def target(self, response: Any) -> Any:
        return response[:, 0]

    def predict(self, model: Any, X: Any) -> Any:
        return self.response(model.predict(X))

    def from_columns(self, predictions: Any) -> Any:
        return predictions[:, 0]


def test_the_loss_of_a_row_is_the_sum_over_its_columns() -> None:
    residuals = np.array([[3.0, 4.0], [0.0, 1.0]])
    assert Plane().by_row(residuals).tolist() == [25, 1]
    assert SQUARED_ERROR.by_row(residuals[..., None]).tolist() == [[9, 16], [0, 1]]
    assert Plane().by_row(residuals, np.array([9.0, 9.0])).tolist() == [9, 1]
    assert residuals.tolist() == [[3, 4], [0, 1]]


def test_the_mean_loss_counts_rows_by_their_weights() -> None:
    residuals = np.array([[1.0], [3.0]])
    assert SQUARED_ERROR.mean(residuals) == 5
    assert SQUARED_ERROR.mean(residuals, np.array([3.0, 1.0])) == 3


def test_an_overflow_is_an_infinite_loss_and_no_warning() -> None:
    assert np.isinf(SQUARED_ERROR.by_row(np.array([[1e200]]))).all()


def test_the_noise_level_is_that_of_the_middle_rows() -> None:
    residuals = np.random.default_rng(0).normal(0, 2, (2000, 1))
    residuals[:20] = 1e6
    assert SQUARED_ERROR.noise_level(residuals) == pytest.approx(4, rel=0.1)
    both = np.column_stack([residuals, residuals])
    assert Plane().noise_level(both) == 2 * SQUARED_ERROR.noise_level(residuals)


def test_a_regression_response_is_one_column_and_back() -> None:
    X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 4.0])
    columns = SQUARED_ERROR.response(y)
    assert columns.shape == (3, 1)
    model = LinearRegression().fit(X, SQUARED_ERROR.target(columns))
    assert SQUARED_ERROR.from_columns(SQUARED_ERROR.predict(model, X)).tolist() == model.predict(X).tolist()


def test_predictions_of_another_shape_are_refused() -> None:
    class Two:
        def predict(self, X: Any) -> Any:
            return np.zeros((len(X), 2))

    with pytest.raises(ValueError, match=r"predicted the shape \(3, 2\) for 3 rows"):
        SQUARED_ERROR.predict(Two(), np.zeros((3, 1)))


def test_moments_of_several_columns_sum_over_them() -> None:
    rng = np.random.default_rng(0)
    X, y, groups = rng.normal(size=(60, 2)), rng.normal(size=60), np.repeat(np.arange(6), 10)
    one = gather_learners(X, y, groups, caller="test")
    two = gather_learners(X, y, groups, loss=Plane(), caller="test")
    assert (one.y.shape, two.y.shape) == ((60, 1), (60, 2))
    # The second column is the first one's mirror image: every loss doubles, and no labelling changes.
    assert np.allclose(two.mean_losses(two.y - 0.5), 2 * one.mean_losses(one.y - 0.5))
    G, c, s = second_moments(X, two.y - 0.5, two)
    G1, c1, s1 = second_moments(X, one.y - 0.5, one)
    assert np.allclose(G, G1)
    assert np.allclose(c, np.concatenate([c1, -c1], axis=2))
    assert np.allclose(s, 2 * s1)
    ridge = 1e-3 * np.eye(2)
    assert np.array_equal(search_moments(G, c, ridge, 2, 0), search_moments(G, c1, ridge, 2, 0))


def test_arithmetic_that_knows_one_column_only_says_so() -> None:
    rng = np.random.default_rng(0)
    two = gather_learners(rng.normal(size=(8, 2)), rng.normal(size=8), loss=Plane(), caller="test")
    with pytest.raises(ValueError, match=r"a response of one column\. Got 2 columns"):
        AffineLosses(np.zeros((1, 3)), two)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_classes_become_columns_and_back(n_classes: int) -> None:
    loss, codes = BrierScore(n_classes), np.arange(10) % n_classes
    columns = loss.response(codes.astype(float))
    assert columns.shape == (10, 1 if n_classes == 2 else n_classes) == (10, loss.n_columns)
    assert loss.target(columns).tolist() == codes.tolist()
    shown = loss.from_columns(columns)
    assert shown.shape == (10, n_classes)
    assert shown.argmax(axis=1).tolist() == codes.tolist()


def test_probabilities_are_shown_within_bounds_and_sum_to_one() -> None:
    assert BrierScore(2).from_columns(np.array([[-0.2], [0.4], [1.3]])).tolist() == [
        [1, 0],
        [0.6, 0.4],
        [0, 1],
    ]
    shown = BrierScore(3).from_columns(np.array([[-0.2, 0.5, 1.5], [0.0, -1.0, 0.0]]))
    np.testing.assert_allclose(shown, [[0, 1 / 3, 2 / 3], [1 / 3, 1 / 3, 1 / 3]])


@pytest.mark.parametrize(("n_classes", "expected"), [(2, [[1.0]]), (4, [[0, 1, 0, 0]])])
def test_a_class_that_a_model_has_not_seen_has_the_probability_zero(n_classes: int, expected: Any) -> None:
    only = OneClass().fit(np.zeros((3, 1)), np.array([1, 1, 1]))
    assert BrierScore(n_classes).predict(only, np.zeros((1, 1))).tolist() == expected


def test_no_row_of_a_rare_class_is_clipped() -> None:
    assert BrierScore().noise_level(np.array([[0.0]] * 99 + [[1.0]])) == np.inf
    assert BrierScore().bounds == (0, 1)
    assert SQUARED_ERROR.bounds is None


# What may be squared elsewhere: file, what is squared, and why it is no residual of a response.
SQUARES = {
    ("collaboration/classes/lines.py", "common[:, :-1]"): "penalty of slopes",
    ("collaboration/classes/lines.py", "departures"): "penalty of offsets and slopes",
    ("collaboration/classes/lines.py", "response"): "second moments of working responses",
    ("collaboration/nested/effects.py", "*"): "second moments of residuals: a closed form of the loss",
    ("collaboration/nested/line.py", "sums.products[:, -1]"): "second moments: a closed form of the loss",
    ("collaboration/nested/weighing.py", "scaled - np.median(scaled, axis=0)"): "distance of Gram matrices",
    ("federated/consistency.py", "WEIGHT_LIMITS.ratio"): "a ratio of losses",
    ("collaboration/nested/sums.py", "response"): "second moments: a closed form of the loss",
    ("collaboration/nested/sums.py", "Z.shape[1]"): "number of predictors",
    ("kernels/affine.py", "learners.X - median_means"): "spread of predictors",
    (
        "kernels/affine.py",
        "largest_predictions + self._sizes[:, -1].max()",
    ): "size of terms, for overflow",
    ("kernels/affine.py", "term_sizes"): "size of terms, for rounding",
    ("kernels/kmeans.py", "*"): "distances of k-means",
    ("kernels/matrix_free.py", "*"): "residuals of eigenvectors",
    ("method/n_clusters/landmark_check.py", "n_learners"): "number of learners",
    ("models/linear.py", "centred"): "spread of predictors",
    ("models/linear.py", "left_vectors"): "leverage of rows",
    ("models/linear.py", "singular_values"): "eigenvalues of the predictors' second moments",
    ("method/noise.py", "NOISE.clip"): "a bound in standard deviations",
    ("method/noise.py", "log_levels - median_log"): "variance of log levels",
    ("method/order.py", "*"): "correlations of ranks",
    ("method/refine/averages.py", "np.maximum(how_models_travel(exchange), 1e-06)"): "a ratio of losses",
    ("method/refine/losses.py", "row_values - mean[..., owner - start]"): "variance of losses",
    ("method/refine/logistic.py", "d"): "number of predictors",
    ("method/refine/pooled.py", "d"): "number of predictors",
    ("models/logistic.py", "centred"): "spread of predictors",
    ("method/spectral.py", "points - points.mean(axis=0)"): "distances of k-means",
    ("rows/learners.py", "(self.X - centre_x[self.owner]).T"): "spread of predictors",
    ("verdicts/gains.py", "weights * deviations"): "variance of losses",
    ("verdicts/gains.py", "own_weights"): "the own model's weight",
    ("verdicts/gain_model.py", "*"): "variances of log ratios of losses",
    ("rows/cautions.py", "*"): "correlations of columns, before anything is fitted",
    ("verdicts/differences.py", "*"): "distance of two models' predictions",
    ("verdicts/outliers.py", "distances_below"): "spread of log losses",
    ("verdicts/cluster_fit.py", "deviations"): "variance of losses",
    ("verdicts/cluster_fit.py", "comparison.constant_errors / noise"): "squared standard errors",
    ("displays/embedding.py", "*"): "distances in a picture",
    ("federated/moments/bounds.py", "*"): "distances of second moments, and a limit on them",
    ("federated/moments/noise.py", "*"): "integers of exact noise",
    ("federated/moments/bends.py", "means"): "spread of a column",
    ("federated/moments/bends.py", "means - middle"): "spread of a column over sites",
    ("federated/moments/site_model.py", "own_weight"): "the own model's weight",
    ("federated/moments/pool.py", "scales"): "variance of added noise",
    ("federated/moments/pool.py", "noise_edge"): "eigenvalues of added noise",
    ("federated/moments/pool.py", "eigenvalues"): "eigenvalues of the predictors' second moments",
    ("federated/moments/pool.py", "means"): "spread of columns",
    ("federated/messages.py", "self.response_mean"): "size of a response, for overflow",
}
# Data sets are drawn from known truths. What learns weights and labels of nested coteries has one column and
# works on second moments, a closed form of the loss; so does the likelihood.
NESTED = tuple(f"collaboration/nested/{name}.py" for name in ("describing", "stacking", "views", "weights"))
ELSEWHERE = ("datasets/", "loss.py", "method/likelihood/", *NESTED)


def _squared(tree: ast.AST) -> Iterator[ast.expr]:
    """Give out what is squared by ``x ** 2``, ``x * x``, ``square(x)`` or ``mean_squared_error``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp):
            power = isinstance(node.op, ast.Pow) and isinstance(node.right, ast.Constant)
            constant = isinstance(node.left, ast.Constant)
            if power and node.right.value == 2 and not constant:
                yield node.left
            if isinstance(node.op, ast.Mult) and ast.dump(node.left) == ast.dump(node.right):
                yield node.left
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name == "square":
                yield node.args[0]
            if "squared_error" in name:
                yield node


def squares_of_the_source() -> set[tuple[str, str]]:
    """Return where something is squared outside the loss, and what."""
    root = Path(coterie.__file__).parent
    files = {str(path.relative_to(root)): path for path in root.rglob("*.py")}
    return {
        (name, ast.unparse(square))
        for name, path in files.items()
        if not name.startswith(ELSEWHERE)
        for square in _squared(ast.parse(path.read_text(encoding="utf-8")))
    }


def test_nothing_but_the_loss_squares_a_residual() -> None:
    found = squares_of_the_source()
    unknown = {(name, what) for name, what in found if not {(name, what), (name, "*")} & set(SQUARES)}
    assert not unknown, "square residuals by Loss.by_row, or say here why this is no residual"


def test_the_list_of_squares_has_no_entry_too_many() -> None:
    found = squares_of_the_source()
    files = {name for name, _ in found}
    assert all((name in files) if what == "*" else ((name, what) in found) for name, what in SQUARES)


def test_the_search_for_squares_sees_them_all() -> None:
    source = "a ** 2; np.square(b); c * c; mean_squared_error(y, d); 2 ** 2; x ** 3; e * f"
    found = [ast.unparse(square) for square in _squared(ast.parse(source))]
    assert sorted(found) == ["a", "b", "c", "mean_squared_error(y, d)"]
