"""Classifiers of scikit-learn as programs that end in a column for each class; see `convert`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.federated.wire.convert import (
    ACTIVATIONS,
    TRANSPARENT,
    Converter,
    family_of,
    fitted_part,
    histogram_trees,
    plain_trees,
    refuse_carriers,
    refused,
)
from coterie.federated.wire.envelope import WireError
from coterie.federated.wire.program import ROWS, Program, ProgramError
from coterie.kernels.logistic import logistic_form

# Probabilities of the classes that a model has seen, in its order, from a table.
ClassWriter = Callable[["ClassConverter", Any, str], str]


class ClassConverter(Converter):
    """Writes classifiers into one program."""

    def repeated(self, column: str, times: int) -> str:
        """Put a column side by side with itself."""
        return self.columns(column, np.zeros(times, dtype=int))

    def normalised(self, table: str) -> str:
        """Divide each row by its sum, so that rows become probabilities."""
        width = self.widths[table]
        return self.add("Div", table, self.repeated(self.product(table, np.ones((width, 1))), width))

    def softmax(self, table: str) -> str:
        """Turn log-odds, a column for each class, into probabilities by exponentials that sum to one.

        The largest of a row is subtracted first, so that no exponential overflows.
        """
        width = self.widths[table]
        largest = self.columns(table, [0])
        for index in range(1, width):
            largest = self.add("Max", largest, self.columns(table, [index]))
        shifted = self.add("Sub", table, self.repeated(largest, width))
        return self.normalised(self.add("Exp", shifted))

    def two(self, second: str) -> str:
        """Return the probabilities of two classes from that of the second."""
        first = self.elementwise("Add", self.elementwise("Mul", second, -1.0), 1.0)
        return self.add("Concat", first, second)

    def linked(self, odds: str, *, softmax: bool = True) -> str:
        """Return probabilities from log-odds: one column of them for two classes, else one for each.

        Without ``softmax``, each class has its own logistic function, and rows are divided by their sums.
        """
        if self.widths[odds] == 1:
            return self.two(self.add("Sigmoid", odds))
        if softmax:
            return self.softmax(odds)
        probabilities = self.elementwise("Max", self.add("Sigmoid", odds), float(np.finfo(float).tiny))
        return self.normalised(probabilities)

    def certain(self, table: str, chances: Any) -> str:
        """Return the same probabilities for every row."""
        zero = self.product(table, np.zeros((self.widths[table], len(chances))))
        return self.elementwise("Add", zero, np.asarray(chances, dtype=float))

    def chances(self, model: Any, table: str) -> str:
        """Write what ``model.predict_proba`` does with a table, and return the name of the result.

        It has a column for each class that the model has seen, in the model's order. Models that keep
        training rows are refused.
        """
        refuse_carriers(model)
        if len(model.classes_) == 1:
            return self.certain(table, [1.0])
        form = logistic_form(model, self.widths[table])
        if form is not None:
            odds = self.product(table, form.coefficients.T)
            return self.linked(self.elementwise("Add", odds, form.intercepts), softmax=form.softmax)
        writer = CLASS_MODELS.get(family_of(type(model)))
        if writer is None:
            raise refused(model, "coterie cannot write it down as numbers and known operators")
        return writer(self, model, table)

    def over_all(self, model: Any, table: str, n_classes: int) -> str:
        """Write the probabilities of all classes, nought for those that the model has not seen.

        A matrix of zeros and ones moves the columns of seen classes, which are numbers here, to their places.
        """
        seen_probabilities, seen = self.chances(model, table), np.asarray(model.classes_).astype(int)
        if len(seen) == n_classes:
            return seen_probabilities
        placement = np.zeros((len(seen), n_classes))
        placement[np.arange(len(seen)), seen] = 1.0
        return self.product(seen_probabilities, placement)


def _tree_sum(to: ClassConverter, table: str, trees: Sequence[Any], values: Callable[[Any], Array]) -> str:
    """Return the mean over trees of the leaf values of a row, a column; ``values`` picks the values.

    Trees see rows rounded to float32, as scikit-learn's do.
    """
    summed = to.add("TreeEnsemble", to.rounded(table), trees=plain_trees(trees, values=values))
    return to.elementwise("Div", summed, len(trees))


def _output(output: int, tree: Any) -> Array:
    """Return the values of a tree's nodes for one output."""
    node_values: Array = tree.value[:, output, 0]
    return node_values


def _voting_forest(to: ClassConverter, model: Any, table: str) -> str:
    """Write a forest of regression trees on indicators of classes into a program."""
    trees, n_classes = model.forest_.estimators_, len(model.classes_)
    if n_classes == 2:
        return to.two(_tree_sum(to, table, trees, partial(_output, 0)))
    columns = [_tree_sum(to, table, trees, partial(_output, output)) for output in range(n_classes)]
    return to.add("Concat", *columns)


def _class_forest(to: ClassConverter, model: Any, table: str) -> str:
    """Write a classification tree or forest into a program: the mean share of each class in the leaves."""
    trees = getattr(model, "estimators_", None)
    trees, n_classes = [model] if trees is None else trees, len(model.classes_)

    def share(column: int) -> Callable[[Any], Array]:
        """Return the function that gives the share of a class in each node of a tree."""
        # Nodes hold counts in some versions of scikit-learn and shares in others: dividing makes both shares.
        return lambda tree: tree.value[:, 0, column] / tree.value[:, 0].sum(axis=1)

    if n_classes == 2:
        return to.two(_tree_sum(to, table, trees, share(1)))
    return to.add("Concat", *(_tree_sum(to, table, trees, share(column)) for column in range(n_classes)))


def _histogram_boosting(to: ClassConverter, model: Any, table: str) -> str:
    """Write histogram boosting of classes into a program: log-odds, then probabilities.

    Each column of log-odds is its baseline and the sum of its own trees, one from each stage.
    """
    if model.is_categorical_ is not None and np.any(model.is_categorical_):
        raise refused(model, "it has categorical predictors, which the trees that travel do not ask about")
    # scikit-learn has no public names for these.
    stages, baselines = (
        fitted_part(model, "_predictors"),
        np.ravel(fitted_part(model, "_baseline_prediction")),
    )
    log_odds = [
        to.elementwise("Add", to.add("TreeEnsemble", table, trees=histogram_trees(trees)), float(baseline))
        for trees, baseline in zip(zip(*stages, strict=True), baselines, strict=True)
    ]
    return to.linked(log_odds[0] if len(log_odds) == 1 else to.add("Concat", *log_odds))


def _boosting(to: ClassConverter, model: Any, table: str) -> str:
    """Write gradient boosting of classes into a program: log-odds, then probabilities.

    Each column of log-odds starts from the share of the class in the training rows, and the trees' leaves are
    added.
    """
    if family_of(type(model.init_)) != "DummyClassifier" or model.loss != "log_loss":
        raise refused(model, "its start or its loss is not among those that travel")
    rounded = to.rounded(table)
    # As in scikit-learn, so that log-odds stay finite.
    smallest_probability = np.finfo(np.float32).eps
    prior = np.clip(
        np.asarray(model.init_.class_prior_, dtype=float), smallest_probability, 1 - smallest_probability
    )
    start_log_odds = [np.log(prior[1] / (1 - prior[1]))] if len(prior) == 2 else np.log(prior)
    log_odds = []
    for output, start in enumerate(start_log_odds):
        trees = plain_trees(model.estimators_[:, output], model.learning_rate)
        log_odds.append(to.elementwise("Add", to.add("TreeEnsemble", rounded, trees=trees), float(start)))
    return to.linked(log_odds[0] if len(log_odds) == 1 else to.add("Concat", *log_odds))


def _network(to: ClassConverter, model: Any, table: str) -> str:
    """Write a neural network that answers probabilities into a program."""
    for layer, (matrix, offset) in enumerate(zip(model.coefs_, model.intercepts_, strict=True)):
        table = to.elementwise("Add", to.product(table, matrix), offset)
        if layer < len(model.coefs_) - 1 and model.activation != "identity":
            table = to.add(ACTIVATIONS[model.activation], table)
    return to.linked(table)


def _pipeline(to: ClassConverter, model: Any, table: str) -> str:
    """Write a pipeline into a program: its steps, then its classifier."""
    for _, step in model.steps[:-1]:
        table = table if step in TRANSPARENT else to.transform(step, table)
    return to.chances(model.steps[-1][1], table)


def _average(to: ClassConverter, parts: Sequence[str], weights: Any = None) -> str:
    """Return the weighted mean of tables of the same width; without weights, all count the same."""
    shares = np.ones(len(parts)) if weights is None else np.asarray(weights, dtype=float)
    shares = shares / shares.sum()
    weighted_sum = to.elementwise("Mul", parts[0], shares[0])
    for part, share in zip(parts[1:], shares[1:], strict=True):
        weighted_sum = to.add("Add", weighted_sum, to.elementwise("Mul", part, share))
    return weighted_sum


def _voting(to: ClassConverter, model: Any, table: str) -> str:
    """Write the weighted mean of several classifiers' probabilities into a program."""
    if model.voting != "soft":
        raise refused(model, "it counts votes, and has no probabilities")
    weights = model.weights
    if weights is not None:
        weights = [w for (_, inner), w in zip(model.estimators, weights, strict=True) if inner != "drop"]
    return _average(to, [to.chances(inner, table) for inner in model.estimators_], weights)


def _bagging(to: ClassConverter, model: Any, table: str) -> str:
    """Write the mean of bagged classifiers' probabilities into a program."""
    n_classes, parts = len(model.classes_), []
    for inner, indices in zip(model.estimators_, model.estimators_features_, strict=True):
        takes_all_columns = np.array_equal(indices, np.arange(to.widths[table]))
        # A part numbers the classes as the whole does.
        parts.append(
            to.over_all(inner, table if takes_all_columns else to.columns(table, indices), n_classes)
        )
    return _average(to, parts)


# Exact classes: a subclass may predict in a way of its own.
CLASS_MODELS: Mapping[str, ClassWriter] = {
    "BaggingClassifier": _bagging,
    "BoostedClasses": _histogram_boosting,
    "DecisionTreeClassifier": _class_forest,
    "DummyClassifier": lambda to, model, table: to.certain(table, model.class_prior_),
    "ExtraTreeClassifier": _class_forest,
    "ExtraTreesClassifier": _class_forest,
    "GradientBoostingClassifier": _boosting,
    "GridSearchCV": lambda to, model, table: to.chances(model.best_estimator_, table),
    "HistGradientBoostingClassifier": _histogram_boosting,
    "MLPClassifier": _network,
    "Pipeline": _pipeline,
    "RandomForestClassifier": _class_forest,
    "RandomizedSearchCV": lambda to, model, table: to.chances(model.best_estimator_, table),
    "VotingClassifier": _voting,
    "VotingForest": _voting_forest,
}


def convert_classifier(model: Any, n_features: int, n_classes: int) -> Program:
    """Write a fitted classifier of numbered classes as a program of a column for each of them.

    Of two classes there is one column, the probability of the second.
    """
    converter = ClassConverter(n_features)
    try:
        whole = converter.over_all(model, ROWS, n_classes)
        # The last step is what the program predicts: of two classes the second column is enough.
        if n_classes == 2:
            converter.columns(whole, [1])
        return converter.program(1 if n_classes == 2 else n_classes)
    except ProgramError as error:
        raise WireError(
            f"The {type(model).__name__} cannot be shared, because it {error}: use fewer or smaller parts, "
            "or leave this candidate out."
        ) from error
