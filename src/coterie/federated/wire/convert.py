"""Models of scikit-learn as programs, in float64 from the first scaler to the last sum.

The usual converter, skl2onnx, was tried first: with float64 rows it writes files that onnxruntime refuses for
every tree ensemble, and it knows no TransformedTargetRegressor, hence none of our candidates; with float32
rows, predictors far from zero lose their digits before they are scaled. The programs here agree with
scikit-learn to the rounding of sums: 1e-12 of the size of the predictions, whatever the units of X are
(``tests/federated/wire/test_convert.py`` holds every family to it).

Models that predict by their training rows do not travel, wherever they sit inside another model. Of trees,
thresholds and leaves do: how many rows reached a node, their impurity and which rows they were stay at home.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.feature_selection import SelectorMixin

from coterie._arrays import Array
from coterie.federated.wire.envelope import WireError
from coterie.federated.wire.program import ROWS, Program, ProgramError, ProgramWriter, Trees
from coterie.kernels.affine import affine_form, scaler_form

# Families whose models keep rows that they were fitted on, and what they keep; subclasses are refused, too.
# It is a privacy boundary: such a model would carry rows to other sites.
CARRIERS: dict[str, str] = {
    "KNeighborsRegressor": "all its training rows",
    "RadiusNeighborsRegressor": "all its training rows",
    "SVR": "training rows, its support vectors",
    "NuSVR": "training rows, its support vectors",
    "KernelRidge": "all its training rows",
    "GaussianProcessRegressor": "all its training rows",
    "IsotonicRegression": "values of its training rows",
    "Nystroem": "training rows, its landmarks",
    "KernelPCA": "all its training rows",
    "KNNImputer": "all its training rows",
    "KNeighborsClassifier": "all its training rows",
    "RadiusNeighborsClassifier": "all its training rows",
    "SVC": "training rows, its support vectors",
    "NuSVC": "training rows, its support vectors",
    "GaussianProcessClassifier": "all its training rows",
    "QuantileTransformer": "values of its training rows, the quantiles",
}
ALTERNATIVES = "linear models (ridge, lasso, elastic net), forests, boosting and neural networks"
ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "logistic": "Sigmoid"}
TRANSPARENT = (None, "passthrough")


def family_of(kind: type) -> str:
    """Return the name of a class of scikit-learn or coterie; others may predict in a way of their own."""
    return kind.__name__ if kind.__module__.split(".")[0] in ("sklearn", "coterie") else ""


def fitted_part(model: Any, name: str) -> Any:
    """Return a fitted attribute with a private name, from the state that the model is pickled with.

    Reading the state does not pickle anything.
    """
    return model.__getstate__()[name]


def refused(model: Any, why: str) -> WireError:
    """Return the refusal of a model that does not travel."""
    return WireError(
        f"A {type(model).__name__} cannot be shared, because {why}: choose among {ALTERNATIVES} instead."
    )


def refuse_carriers(part: Any) -> None:
    """Refuse a model or a step that keeps training rows."""
    for family in map(family_of, type(part).__mro__):
        if family in CARRIERS:
            raise refused(part, f"it keeps {CARRIERS[family]}, and rows may not leave their learner")


def _joined(trees: Iterable[tuple[Array, ...]]) -> Trees:
    """Return many trees as one list of inner nodes and one of leaves, as ONNX has them.

    Each tree comes as six arrays over all its nodes, as scikit-learn lists them: whether a node is an inner
    one, its left and right child, feature, threshold and value.
    """
    lists: dict[str, list[Array]] = {name: [] for name in Trees.__dataclass_fields__}
    n_nodes = n_leaves = 0
    for is_inner, left, right, features, splits, values in trees:
        if not is_inner.any():
            # A tree of one leaf becomes a question whose two answers agree: nodes must ask something.
            is_inner, left, right = np.arange(3) == 0, np.full(3, 1), np.full(3, 2)
            features, splits, values = np.zeros(3), np.zeros(3), np.repeat(values, 3)
        # Inner nodes and leaves are numbered apart, each behind those of the trees before.
        new_ids = np.where(is_inner, np.cumsum(is_inner) - 1 + n_nodes, np.cumsum(~is_inner) - 1 + n_leaves)
        lists["features"].append(features[is_inner])
        lists["splits"].append(splits[is_inner])
        lists["true_ids"].append(new_ids[left[is_inner]])
        lists["true_leafs"].append(~is_inner[left[is_inner]])
        lists["false_ids"].append(new_ids[right[is_inner]])
        lists["false_leafs"].append(~is_inner[right[is_inner]])
        lists["roots"].append(np.array([n_nodes]))
        lists["weights"].append(values[~is_inner])
        # Where the next tree's inner nodes and leaves begin.
        n_nodes += int(is_inner.sum())
        n_leaves += int((~is_inner).sum())
    joined = {name: np.concatenate(arrays) for name, arrays in lists.items()}
    float_fields = {"splits", "weights"}
    return Trees(
        **{
            field_name: entries.astype(np.float64 if field_name in float_fields else np.int64)
            for field_name, entries in joined.items()
        }
    )


def _only_value(tree: Any) -> Array:
    """Return the values of a tree's nodes for its only output."""
    values: Array = tree.value[:, 0, 0]
    return values


def plain_trees(
    trees: Sequence[Any], factor: float = 1.0, values: Callable[[Any], Array] = _only_value
) -> Trees:
    """Return fitted decision trees as one list of nodes and leaves.

    ``values`` takes a tree and gives a value for each node, by default its only output; the factor, such as a
    learning rate, multiplies it.
    """
    node_arrays = ("children_left", "children_right", "feature", "threshold")
    return _joined(
        (tree.children_left != -1, *(getattr(tree, name) for name in node_arrays), factor * values(tree))
        for tree in (model.tree_ for model in trees)
    )


def histogram_trees(predictors: Sequence[Any]) -> Trees:
    """Return the trees of histogram gradient boosting as one list; they must not ask about categories."""
    # An infinite threshold parts missing from present values; rows here have no missing ones.
    largest_float, nodes = np.finfo(float).max, ("left", "right", "feature_idx")
    return _joined(
        (
            node_table["is_leaf"] == 0,
            *(node_table[name] for name in nodes),
            np.minimum(node_table["num_threshold"], largest_float),
            node_table["value"],
        )
        for node_table in (predictor.nodes for predictor in predictors)
    )


# Of what `predict` or `transform` does with a table: converter, fitted part and table to the result's name.
Writer = Callable[["Converter", Any, str], str]


class Converter(ProgramWriter):
    """Writes models into one program.

    Tables go by names; ``widths`` has their numbers of columns, and methods return the name of their result.
    """

    def elementwise(self, operator: str, table: str, constant: Any) -> str:
        """Combine a table with a constant for each of its columns, and return the name of the result.

        A single number is spelt out for all columns, for programs never broadcast.
        """
        constants = np.broadcast_to(np.asarray(constant, dtype=float), (self.widths[table],))
        return self.add(operator, table, constant=constants)

    def columns(self, table: str, places: Any) -> str:
        """Pick columns."""
        return self.add("Gather", table, constant=np.asarray(places, dtype=np.int64))

    def product(self, table: str, matrix: Array) -> str:
        """Multiply a table with a matrix."""
        return self.add("MatMul", table, constant=np.asarray(matrix, dtype=float))

    def rounded(self, table: str) -> str:
        """Round to float32 and back, as scikit-learn's trees do before they compare."""
        return self.add("Cast", self.add("Cast", table, single=True))

    def affine(self, table: str, w: Array, b: float) -> str:
        """Return one column: slopes and an intercept."""
        return self.elementwise("Add", self.product(table, np.reshape(w, (-1, 1))), b)

    def mean(self, tables: Sequence[str], weights: Any = None) -> str:
        """Average columns."""
        shares = np.ones(len(tables)) if weights is None else np.asarray(weights, dtype=float)
        return self.product(self.add("Concat", *tables), (shares / shares.sum())[:, None])

    def predict(self, model: Any, table: str) -> str:
        """Write what ``model.predict`` does with the table, and return the name of its column."""
        refuse_carriers(model)
        if getattr(model, "n_outputs_", 1) != 1:
            raise refused(model, "it has more than one response")
        # Whatever is linear in the end, also a pipeline, becomes one line; None: it is not.
        form = affine_form(model, self.widths[table])
        if form is not None:
            return self.affine(table, *form)
        return self._written(MODELS, model, table)

    def transform(self, step: Any, table: str) -> str:
        """Write what ``step.transform`` does with the table, and return the name of its result."""
        refuse_carriers(step)
        scaler = scaler_form(step)
        if scaler is not None:
            return self.elementwise("Div", self.elementwise("Sub", table, scaler[0]), scaler[1])
        if isinstance(step, SelectorMixin):
            return self.columns(table, step.get_support(indices=True))
        return self._written(TRANSFORMERS, step, table)

    def _written(self, writers: Mapping[str, Writer], part: Any, table: str) -> str:
        """Write a model or step with the function for its family into a program."""
        if family_of(type(part)) not in writers:
            raise refused(part, "coterie cannot write it down as numbers and known operators")
        return writers[family_of(type(part))](self, part, table)


def _clipped_min_max(to: Converter, step: Any, table: str) -> str:
    """Write a MinMaxScaler that clips to its range into a program."""
    scaled = to.elementwise("Add", to.elementwise("Mul", table, step.scale_), step.min_)
    low, high = step.feature_range
    return to.elementwise("Min", to.elementwise("Max", scaled, low), high)


def _polynomial(to: Converter, step: Any, table: str) -> str:
    """Write PolynomialFeatures into a program: each output is a product of input columns.

    The powers of an output are spelt out as a list of columns, so that Gather and Mul do for all outputs at
    once.
    """
    width = to.widths[table]
    column_of_ones = to.elementwise("Add", to.elementwise("Mul", to.columns(table, [0]), 0.0), 1.0)
    extended = to.add("Concat", table, column_of_ones)
    # Each product as a list of columns, filled up with the column of ones.
    degree = int(step.powers_.sum(axis=1).max())
    columns_of_products = np.full((len(step.powers_), degree), width)
    for row, powers in enumerate(step.powers_):
        columns = np.repeat(np.arange(width), powers)
        columns_of_products[row, : len(columns)] = columns
    products = to.columns(extended, columns_of_products[:, 0])
    for index in range(1, degree):
        products = to.add("Mul", products, to.columns(extended, columns_of_products[:, index]))
    return products


def _components(to: Converter, step: Any, table: str) -> str:
    """Write a projection on components into a program, such as PCA."""
    centre = getattr(step, "mean_", None)
    if getattr(step, "whiten", False):
        raise refused(step, "whitening is not among the operators that travel")
    return to.product(table if centre is None else to.elementwise("Sub", table, centre), step.components_.T)


def _pipeline(to: Converter, model: Any, table: str) -> str:
    """Write a pipeline into a program: its steps, then its model."""
    for _, step in model.steps[:-1]:
        table = table if step in TRANSPARENT else to.transform(step, table)
    return to.predict(model.steps[-1][1], table)


def _target(to: Converter, model: Any, table: str) -> str:
    """Write a TransformedTargetRegressor into a program: its model, then the inverse of the transformation.

    Of inverses only those of scalers, exp and expm1 are operators of ONNX programs here.
    """
    transformed_prediction, transformer = to.predict(model.regressor_, table), model.transformer_
    scaler = scaler_form(transformer)
    if scaler is not None:
        centre, spread = (float(np.ravel(part)[0]) for part in scaler)
        return to.elementwise("Add", to.elementwise("Mul", transformed_prediction, spread), centre)
    inverse = (
        transformer.inverse_func if family_of(type(transformer)) == "FunctionTransformer" else transformer
    )
    if inverse is None:
        return transformed_prediction
    if inverse is np.exp or inverse is np.expm1:
        exponential = to.add("Exp", transformed_prediction)
        return exponential if inverse is np.exp else to.elementwise("Sub", exponential, 1.0)
    raise refused(model, "of the ways back from a transformed response only scalers, exp and expm1 travel")


def _dummy(to: Converter, model: Any, table: str) -> str:
    return to.affine(table, np.zeros(to.widths[table]), float(np.ravel(model.constant_)[0]))


def _forest(to: Converter, model: Any, table: str) -> str:
    """Write a tree into a program, or the mean of a forest's trees."""
    trees = getattr(model, "estimators_", None)
    summed = to.add("TreeEnsemble", to.rounded(table), trees=plain_trees([model] if trees is None else trees))
    return summed if trees is None else to.elementwise("Div", summed, len(trees))


def _boosting(to: Converter, model: Any, table: str) -> str:
    """Write gradient boosting into a program: its start and the sum of its trees."""
    rounded, trees = to.rounded(table), plain_trees(model.estimators_[:, 0], model.learning_rate)
    summed = to.add("TreeEnsemble", rounded, trees=trees)
    if isinstance(model.init_, str):
        return summed
    return to.add("Add", summed, to.predict(model.init_, rounded))


def _histogram_boosting(to: Converter, model: Any, table: str) -> str:
    """Write histogram boosting into a program: its baseline and the sum of its trees.

    Losses for counts and sizes predict on the log scale, so an exponential follows.
    """
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise refused(model, "it has categorical predictors, which the trees that travel do not ask about")
    trees = histogram_trees([stage[0] for stage in fitted_part(model, "_predictors")])
    baseline = float(np.ravel(fitted_part(model, "_baseline_prediction"))[0])
    summed = to.elementwise("Add", to.add("TreeEnsemble", table, trees=trees), baseline)
    return to.add("Exp", summed) if model.loss in ("poisson", "gamma") else summed


def _network(to: Converter, model: Any, table: str) -> str:
    """Write a neural network into a program, layer by layer."""
    for layer, (matrix, offset) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        table = to.elementwise("Add", to.product(table, matrix), offset)
        if layer < len(model.coefs_) - 1 and model.activation != "identity":
            table = to.add(ACTIVATIONS[model.activation], table)
    # A network for counts predicts their logarithm.
    return to.add("Exp", table) if model.out_activation_ == "exp" else table


def _generalised_linear(to: Converter, model: Any, table: str) -> str:
    """Write a generalised linear model with the identity or the log link into a program."""
    linear = to.affine(table, model.coef_, float(np.ravel(model.intercept_)[0]))
    identity = type(fitted_part(model, "_base_loss").link).__name__ == "IdentityLink"
    return linear if identity else to.add("Exp", linear)


def _bagging(to: Converter, model: Any, table: str) -> str:
    """Write the mean of bagged models into a program, each on its own columns of the table.

    Columns are picked only where a model does not take all.
    """
    all_columns = np.arange(to.widths[table])
    parts = []
    for inner, indices in zip(model.estimators_, model.estimators_features_, strict=True):
        takes_all_columns = np.array_equal(indices, all_columns)
        parts.append(to.predict(inner, table if takes_all_columns else to.columns(table, indices)))
    return to.mean(parts)


def _voting(to: Converter, model: Any, table: str) -> str:
    """Write the weighted mean of several models into a program."""
    weights = model.weights
    if weights is not None:
        # Models that were dropped keep their weight in the settings, and are not among the fitted ones.
        weights = [w for (_, inner), w in zip(model.estimators, weights, strict=True) if inner != "drop"]
    return to.mean([to.predict(inner, table) for inner in model.estimators_], weights)


def _stacking(to: Converter, model: Any, table: str) -> str:
    """Write a stack into a program: the models, then the one that combines them."""
    columns = [to.predict(inner, table) for inner in model.estimators_]
    columns += [table] if model.passthrough else []
    return to.predict(model.final_estimator_, to.add("Concat", *columns))


# An allow-list: a family that is not here cannot be sent.
# Exact classes: a subclass may predict in a way of its own.
MODELS: Mapping[str, Writer] = {
    "BaggingRegressor": _bagging,
    "DecisionTreeRegressor": _forest,
    "DummyRegressor": _dummy,
    "ExtraTreeRegressor": _forest,
    "ExtraTreesRegressor": _forest,
    "GammaRegressor": _generalised_linear,
    "GradientBoostingRegressor": _boosting,
    "GridSearchCV": lambda to, model, table: to.predict(model.best_estimator_, table),
    "HistGradientBoostingRegressor": _histogram_boosting,
    "MLPRegressor": _network,
    "Pipeline": _pipeline,
    "PoissonRegressor": _generalised_linear,
    "RANSACRegressor": lambda to, model, table: to.predict(model.estimator_, table),
    "RandomForestRegressor": _forest,
    "QuickForest": _forest,
    "RandomizedSearchCV": lambda to, model, table: to.predict(model.best_estimator_, table),
    "StackingRegressor": _stacking,
    "TransformedTargetRegressor": _target,
    "TweedieRegressor": _generalised_linear,
    "VotingRegressor": _voting,
}
TRANSFORMERS: Mapping[str, Writer] = {
    "MinMaxScaler": _clipped_min_max,
    "PCA": _components,
    "PolynomialFeatures": _polynomial,
    "TruncatedSVD": _components,
}


def convert(model: Any, n_features: int) -> Program:
    """Write a fitted scikit-learn regressor with one response as a program that predicts the same.

    A WireError refuses models that keep rows, and families that coterie cannot write.
    """
    converter = Converter(n_features)
    try:
        converter.predict(model, ROWS)
        return converter.program()
    except ProgramError as error:
        raise WireError(
            f"The {type(model).__name__} cannot be shared, because it {error}: use fewer or smaller parts, "
            "or leave this candidate out."
        ) from error
