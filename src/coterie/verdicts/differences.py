"""Why two clusters differ: the predictors, and the regions, in which their models disagree most.

Both clusters' models predict the rows of the learners of both. The difference of the two predictions is then
taken apart: how much of it depends on each predictor, how it runs along each, and, by a small tree, in which
part of the space it is largest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.validation import check_is_fitted

from coterie._arrays import Array
from coterie._options import listed
from coterie.kernels.losses import predict_rows
from coterie.records import Selection

# More rows than this make the answer slower, not clearer.
MAX_ROWS = 4_000
# Bins along each predictor, of about as many rows each.
N_BINS = 8
# Parts of the space that are named: the leaves of the tree of differences.
MAX_REGIONS = 4


@dataclass(frozen=True)
class Region:
    """A part of the space of predictors, and how far apart two models are there.

    Parameters
    ----------
    where : str
        The part in words, such as ``"x1 > 0.5 and x3 <= 2"``.
    share : float
        Share of the rows that lie in it.
    difference : float
        Mean difference of the predictions there, first cluster minus second.
    """

    where: str
    share: float
    difference: float


@dataclass(frozen=True)
class Differences:
    """How the models of two clusters differ.

    Parameters
    ----------
    clusters : tuple of int
        The two clusters; differences are the first minus the second.
    predictors : ndarray of shape (p,)
        Names of the predictors.
    importance : ndarray of shape (p,)
        Share of the variance of the difference that depends on the predictor, alone or together with
        others; the shares need not sum to one.
    trend : ndarray of shape (p,)
        Change of the difference per standard deviation of the predictor, others following as they do in
        the rows.
    offset : float
        Mean difference over the rows.
    disagreement : float
        Root mean square difference over the rows.
    noise : float
        Root of the median noise level of the learners in the two clusters.
    edges : ndarray of shape (p, B + 1)
        Where the bins of each predictor begin and end.
    profile : ndarray of shape (p, B)
        Mean difference in each bin; NaN in an empty one.
    counts : ndarray of shape (p, B)
        Rows in each bin.
    regions : tuple of Region
        The parts of the space in which the models disagree, the largest difference first.
    label : class or None, default=None
        The class whose probability is compared; None for numbers.
    """

    clusters: tuple[int, int]
    predictors: Array
    importance: Array
    trend: Array
    offset: float
    disagreement: float
    noise: float
    edges: Array = field(repr=False)
    profile: Array = field(repr=False)
    counts: Array = field(repr=False)
    regions: tuple[Region, ...] = field(repr=False)
    label: Any = None

    def frame(self) -> dict[str, Array]:
        """Return a row per predictor, the most important first.

        Returns
        -------
        dict of str to ndarray
            Columns ``predictor``, ``importance``, ``trend``; ``from`` and ``to``, the bin in which the
            models are furthest apart; ``difference``, the mean difference there, and ``rows`` in it.
        """
        order = np.argsort(-self.importance, kind="stable")
        widest = np.nanargmax(np.abs(self.profile), axis=1)
        predictors = np.arange(len(order))
        columns = {
            "predictor": self.predictors,
            "importance": self.importance,
            "trend": self.trend,
            "from": self.edges[predictors, widest],
            "to": self.edges[predictors, widest + 1],
            "difference": self.profile[predictors, widest],
            "rows": self.counts[predictors, widest],
        }
        return {name: column[order] for name, column in columns.items()}


def _importance(difference: Any, X: Array, differences: Array, generator: np.random.Generator) -> Array:
    """Return the total Sobol index (p,) of each predictor for the difference of two models' predictions.

    ``difference`` is a function of rows (n, p), and ``differences`` (n,) are its values at X. The index is
    half the mean squared change when a predictor's column is shuffled, as a share of the variance; predictors
    are taken to be independent. Where the difference is the same in all rows, all indices are zero.
    """
    variance = float(differences.var())
    sobol_indices = np.zeros(X.shape[1])
    if variance <= 1e-12 * float(np.mean(differences**2)):
        return sobol_indices
    for p in range(X.shape[1]):
        shuffled = X.copy()
        shuffled[:, p] = generator.permutation(X[:, p])
        sobol_indices[p] = np.mean((difference(shuffled) - differences) ** 2) / 2 / variance
    return sobol_indices


def _profiles(X: Array, differences: Array) -> tuple[Array, Array, Array]:
    """Cut each of p predictors into B bins of about as many rows, and average the differences (n,) in them.

    Return the bins' edges (p, B + 1), the mean differences (p, B), NaN in an empty bin, and the rows in each
    bin (p, B).
    """
    n_features = X.shape[1]
    edges = np.quantile(X, np.linspace(0, 1, N_BINS + 1), axis=0).T
    mean_differences, counts = (
        np.full((n_features, N_BINS), np.nan),
        np.zeros((n_features, N_BINS), dtype=int),
    )
    for p in range(n_features):
        bin_of_row = np.clip(np.searchsorted(edges[p], X[:, p], side="right") - 1, 0, N_BINS - 1)
        counts[p] = np.bincount(bin_of_row, minlength=N_BINS)
        sums = np.bincount(bin_of_row, differences, minlength=N_BINS)
        mean_differences[p, counts[p] > 0] = (sums / np.maximum(counts[p], 1))[counts[p] > 0]
    return edges, mean_differences, counts


def _regions(X: Array, differences: Array, names: list[str]) -> tuple[Region, ...]:
    """Return the parts of the space of predictors between which the differences (n,) change most.

    They are the leaves of a small regression tree, in words by the ``names`` (p,) of the predictors, the
    largest mean difference first.
    """
    min_leaf_rows = max(1, len(X) // 20)
    regressor = DecisionTreeRegressor(
        max_leaf_nodes=MAX_REGIONS, min_samples_leaf=min_leaf_rows, random_state=0
    )
    tree = regressor.fit(X, differences).tree_
    regions: list[Region] = []
    # Bounds on each predictor so far: a narrower bound replaces a wider one.
    nodes_to_visit: list[tuple[int, dict[int, tuple[float, float]]]] = [(0, {})]
    while nodes_to_visit:
        node, bounds = nodes_to_visit.pop()
        if tree.children_left[node] >= 0:
            p, cut = int(tree.feature[node]), float(tree.threshold[node])
            low, high = bounds.get(p, (-np.inf, np.inf))
            nodes_to_visit.append((tree.children_right[node], {**bounds, p: (max(low, cut), high)}))
            nodes_to_visit.append((tree.children_left[node], {**bounds, p: (low, min(high, cut))}))
            continue
        # A leaf: its bounds make a sentence.
        conditions = []
        for p, (low, high) in sorted(bounds.items()):
            if not np.isfinite(low):
                conditions.append(f"{names[p]} <= {high:.4g}")
            elif not np.isfinite(high):
                conditions.append(f"{names[p]} > {low:.4g}")
            else:
                conditions.append(f"{low:.4g} < {names[p]} <= {high:.4g}")
        share = float(tree.n_node_samples[node] / len(X))
        where = " and ".join(conditions) or "everywhere"
        regions.append(Region(where, share, difference=float(tree.value[node].ravel()[0])))
    return tuple(sorted(regions, key=lambda region: -abs(region.difference)))


def _predict_cluster(model: Any, selection: Selection, labels: Array, k: int, X: Array) -> Array:
    """Predict rows X (N, p) as cluster k does, in the C columns of the response: (N, C).

    That is by its pooled model (fitted on all its members' rows) where there is one, else by the average of
    its members' models, which count by their rows. ``model`` is a fitted estimator, ``labels`` (L,) are the
    clusters of the learners of ``selection``, which has their models.
    """
    collaboration = model.collaboration_
    if collaboration.by_pooled_rows:
        pooled: Array = collaboration.predict_columns(
            X, np.full(len(X), collaboration.newcomer_weight_rows[k])
        )
        return pooled
    members = np.flatnonzero(labels == k)
    shares = selection.n_rows[members] / selection.n_rows[members].sum()
    weighted_predictions = [
        share * predict_rows(selection.models[j], X, collaboration.loss)
        for j, share in zip(members, shares, strict=True)
    ]
    return np.asarray(sum(weighted_predictions))


def _column(model: Any, label: Any, differences: Array) -> int:
    """Return which of C columns of differences (N, C) to look at: that of the class ``label``.

    Without a label it is the column with the largest mean absolute difference. Numbers have one column.
    Refuse a label that is no class of the ``model``, a fitted estimator.
    """
    classes = getattr(model, "classes_", None)
    if label is None:
        return int(np.abs(np.nan_to_num(differences)).mean(axis=0).argmax())
    labels = [] if classes is None else classes.tolist()
    if label not in labels:
        raise ValueError(
            f"The 'label' argument of compare_clusters must be a class of the model, {listed(labels)}. "
            f"Got {label!r}."
            if labels
            else "The 'label' argument of compare_clusters is for classes, and the model predicts numbers."
        )
    # Of two classes there is one column, the probability of the second.
    return labels.index(label) if differences.shape[1] > 1 else 0


def _checked_cluster(model: Any, cluster: Any, name: str) -> int:
    """Return the argument ``name`` of `compare_clusters` as a cluster's number; refuse what is none."""
    is_number = isinstance(cluster, (int, np.integer)) and not isinstance(cluster, bool)
    if not is_number or not 0 <= cluster < model.n_clusters_:
        raise ValueError(
            f"The '{name}' argument of compare_clusters must be a cluster, 0 to {model.n_clusters_ - 1}. "
            f"Got {cluster!r}."
        )
    return int(cluster)


def predictor_names(model: Any) -> list[str]:
    """Return the names of a fitted model's predictors.

    A column in extreme units was divided by a power of two in fit, and the name says so: ``x0 / 2**40``.
    """
    exponents = model.record_.exponents.tolist()
    names = model.predictors_ or [f"x{p}" for p in range(len(exponents))]
    return [f"{n} / 2**{e}" if e else n for n, e in zip(names, exponents, strict=True)]


def compare_clusters(model: Any, first: int, second: int, label: Any = None) -> Differences:
    """Tell where the models of two clusters disagree.

    Parameters
    ----------
    model : CoterieRegressor or CoterieClassifier
        Fitted, with its rows.
    first : int
        A cluster.
    second : int
        Another.
    label : class or None, default=None
        Of classes, the one whose probability is compared. None: of two the second, of more the one on which
        the clusters differ most.

    Returns
    -------
    Differences
        Of the predictions of the first minus those of the second: of the clusters' pooled models where
        there are such, else of the averages of the members' models. Under ``standardize="learner"``
        predictors and differences are in each learner's standardised units.

    Examples
    --------
    >>> from coterie import CoterieRegressor
    >>> from coterie.datasets import make_linear_learners
    >>> from coterie.verdicts import compare_clusters
    >>> truths = [[1.0, 0.0, 2.0], [1.0, 0.0, -2.0]]
    >>> data = make_linear_learners(8, coefficients=truths, random_state=0)
    >>> model = CoterieRegressor(["ridge"], n_clusters=2).fit(data.X, data.y, groups=data.groups)
    >>> compare_clusters(model, 0, 1).frame()["predictor"].tolist()[0]
    'x2'
    """
    check_is_fitted(model)
    if model.n_clusters_ == 1:
        raise ValueError("The model has one cluster: compare_clusters has nothing to compare.")
    pair = _checked_cluster(model, first, "first"), _checked_cluster(model, second, "second")
    if pair[0] == pair[1]:
        raise ValueError(f"compare_clusters needs two different clusters. Got {pair[0]} twice.")
    learners = model.record_.learners
    if not len(learners.y):
        raise ValueError(
            "This model was saved without its rows, which compare_clusters needs: save it with rows=True."
        )
    labels = model.partition_.aligned_to(learners.ids).labels
    selection = model.selection_.aligned_to(learners.ids)
    members = np.flatnonzero(np.isin(labels, pair))
    rows = np.flatnonzero(np.isin(labels[learners.owner], pair))
    if len(rows) > MAX_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, MAX_ROWS).astype(int)]
    X = learners.X[rows]

    def differences(rows: Array) -> Array:
        """Return how much the predictions of the two clusters differ on rows."""
        first, second = (_predict_cluster(model, selection, labels, k, rows) for k in pair)
        return first - second

    column = _column(model, label, differences_at := differences(X))
    if label is None and hasattr(model, "classes_"):
        label = model.classes_.tolist()[column if differences_at.shape[1] > 1 else 1]
    # The probability of the first of two classes falls as that of the second rises.
    sign = -1.0 if label is not None and label == model.classes_[0] and len(model.classes_) == 2 else 1.0

    def difference(rows: Array) -> Array:
        return sign * differences(rows)[:, column]

    differences_of_rows = difference(X)
    finite = np.isfinite(differences_of_rows)
    X, differences_of_rows = X[finite], differences_of_rows[finite]
    if not len(differences_of_rows):
        raise ValueError(f"The models of clusters {pair[0]} and {pair[1]} predict no row of their learners.")
    names = predictor_names(model)
    spread = X.std(axis=0)
    centred = X - X.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        trend = np.where(spread > 0, centred.T @ differences_of_rows / len(differences_of_rows) / spread, 0.0)
    edges, profile, counts = _profiles(X, differences_of_rows)
    return Differences(
        clusters=pair,
        predictors=np.array(names),
        importance=_importance(difference, X, differences_of_rows, np.random.default_rng(model.record_.seed)),
        trend=trend,
        offset=float(differences_of_rows.mean()),
        disagreement=float(np.sqrt(np.mean(differences_of_rows**2))),
        noise=float(np.sqrt(np.median(selection.noise[members]))),
        edges=edges,
        profile=profile,
        counts=counts,
        regions=_regions(X, differences_of_rows, names),
        label=label,
    )
