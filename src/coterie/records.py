"""What the stages hand on: frozen results, one per verb of the method.

Select makes a `Selection`, Exchange an `Exchange`, Cluster a `Partition`, Collaborate a `Collaboration`.
Every record names its learners, so that two records can always be brought into the same order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from coterie._arrays import Array
from coterie.dissimilarity import dissimilarity
from coterie.loss import SQUARED_ERROR, Loss
from coterie.rows.ids import positions_of


class LossTiles(Protocol):
    """Losses of models on learners, given out piece by piece."""

    @property
    def n_learners(self) -> int:
        """Number of learners."""
        ...

    def tile(self, models: Any, learners: Any) -> Array:
        """Return the losses of some models on some learners, given by slices or positions."""
        ...

    def take(self, positions: Array) -> LossTiles:
        """Return the losses among some of the learners, in the order given."""
        ...


class SimilarityTiles(Protocol):
    """A matrix of similarities that is made piece by piece; ``numpy.asarray`` makes the whole of it."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of learners, twice."""
        ...

    def tile(self, rows: Any, columns: Any) -> Array:
        """Return the similarities between some learners and others."""
        ...

    def times(self, vectors: Array) -> Array:
        """Return the matrix times a block of vectors."""
        ...

    def take(self, positions: Array) -> SimilarityTiles:
        """Return the similarities among some of the learners, in the order given."""
        ...

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the whole matrix, for ``numpy.asarray``."""
        ...


# Marks the fields that run over learners.
BY_LEARNER = {"by_learner": True}


def _taken(value: Any, positions: Array) -> Any:
    """Return the entries at some positions of a field that runs over learners: tuple, array or record."""
    if isinstance(value, tuple):
        return tuple(value[p] for p in positions)
    return value[positions] if isinstance(value, np.ndarray) else value.take(positions)


@dataclass(frozen=True)
class Aligned:
    """A record of L learners, whose fields marked with `BY_LEARNER` have one entry for each."""

    learner_ids: Array = field(metadata=BY_LEARNER)

    def take(self, positions: Array) -> Self:
        """Return the record of some of the learners, in the order given."""
        field_names = [f.name for f in fields(self) if f.metadata.get("by_learner")]
        taken_fields = {name: _taken(getattr(self, name), positions) for name in field_names}
        return replace(self, **taken_fields)

    def aligned_to(self, learner_ids: Array) -> Self:
        """Return the record with its learners in the order of ``learner_ids``.

        Every one of these must be in the record; other learners of the record are left out.
        """
        known_ids = set(self.learner_ids.tolist())
        missing_ids = [i for i in learner_ids.tolist() if i not in known_ids]
        if missing_ids:
            raise ValueError(
                f"The {type(self).__name__} knows nothing of learner {missing_ids[0]!r}: "
                "pass the rows of the learners that it was made from."
            )
        return self.take(positions_of(learner_ids.tolist(), self.learner_ids.tolist()))


@dataclass(frozen=True)
class Selection(Aligned):
    """What Select hands on: one model per learner.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        Who selected.
    names : tuple of str
        Name of each learner's chosen candidate.
    models : tuple of estimators
        The chosen candidate refitted on all rows of the learner (the paper's f_i).
    errors : ndarray of shape (L,)
        Mean loss of the model on the rows that it was fitted on (the paper's e_i).
    held_out_errors : ndarray of shape (L,)
        Mean loss of the chosen candidate on the rows that it had not seen.
    n_rows : ndarray of shape (L,)
        Rows of each learner.
    candidate_errors : tuple of dict
        Held-out error of every candidate that could be fitted.
    candidate_losses : tuple of dict
        The losses of the rows (n_j,) behind these errors, where there was a choice; NaN for rows that did not
        count. By them a choice can be made again without some of the rows.
    residuals : tuple of ndarray of shape (n_j, C)
        Out-of-fold residual of each row: from a model that was not fitted on it. NaN where a splitter never
        holds the row out. C is the number of columns of the response, one for regression.
    folds : tuple of ndarray
        Which fold held the row out; -1 where none did.
    training : tuple of ndarray
        The rows that each fold trained on, of shape (folds, n_j).
    fold_models : tuple of tuple of estimators
        The models behind the residuals, by fold.
    noise : ndarray of shape (L,)
        Noise level h_j: mean of the clipped losses of rows, shrunk towards the median level.
    clips : ndarray of shape (L,)
        Losses of rows above this bound count as this bound where losses are clipped.
    dependent : bool, default=False
        Whether rows of a learner depend on each other: dependence was found, or a splitter cut the rows.
    in_order : bool, default=False
        Whether dependence was found in the order of the rows, so that blocks were held out.
    inflation : float, default=1.0
        By what factor dependence between rows inflates the variance of a learner's mean.
    """

    names: tuple[str, ...] = field(metadata=BY_LEARNER)
    models: tuple[Any, ...] = field(metadata=BY_LEARNER, repr=False)
    errors: Array = field(metadata=BY_LEARNER)
    held_out_errors: Array = field(metadata=BY_LEARNER)
    n_rows: Array = field(metadata=BY_LEARNER)
    candidate_errors: tuple[dict[str, float], ...] = field(metadata=BY_LEARNER, repr=False)
    candidate_losses: tuple[dict[str, Array], ...] = field(metadata=BY_LEARNER, repr=False)
    residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    folds: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    training: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    fold_models: tuple[tuple[Any, ...], ...] = field(metadata=BY_LEARNER, repr=False)
    noise: Array = field(metadata=BY_LEARNER)
    clips: Array = field(metadata=BY_LEARNER, repr=False)
    dependent: bool = False
    in_order: bool = False
    inflation: float = 1.0


@dataclass(frozen=True)
class Exchange(Aligned):
    """What Exchange hands on: everybody's model on everybody's rows.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        Who exchanged.
    source : LossTiles
        Where the losses come from, piece by piece.
    errors : ndarray of shape (L,)
        Loss of each model on its own learner (e_i).
    noise : ndarray of shape (L,)
        Noise level of each learner.
    isolated : ndarray of shape (L,)
        True for a learner whose model gave a loss that is not finite.
    """

    source: LossTiles = field(metadata=BY_LEARNER, repr=False)
    errors: Array = field(metadata=BY_LEARNER)
    noise: Array = field(metadata=BY_LEARNER)
    isolated: Array = field(metadata=BY_LEARNER)

    @property
    def landmarks(self) -> Array | None:
        """The learners with whom everybody exchanged, by position; None: everybody with everybody."""
        marks: Array | None = getattr(self.source, "marks", None)
        return marks

    def dissimilarity_tile(self, rows: Any, columns: Any) -> Array:
        """Return v = |E[i,j] - e_j| + |E[j,i] - e_i| between some learners and others.

        E[i, j] is the loss of model i on learner j, and e_j the loss of learner j's own model. Both groups of
        learners are given by slices or positions; v is zero between a learner and itself.
        """
        losses_of_rows, losses_of_columns = self.source.tile(rows, columns), self.source.tile(columns, rows).T
        tile: Array = dissimilarity(
            losses_of_rows, losses_of_columns, self.errors[rows][:, None], self.errors[columns]
        )
        positions = np.arange(len(self.learner_ids))
        _, own_rows, own_columns = np.intersect1d(positions[rows], positions[columns], True, True)
        tile[own_rows, own_columns] = 0.0
        return tile

    def dissimilarity_tiles(self, block: int = 1024) -> Iterator[tuple[slice, slice, Array]]:
        """Yield rows, columns and dissimilarities of square tiles on and above the diagonal.

        Rows and columns are slices of at most ``block`` learners; v is symmetric, so that the lower triangle
        follows.
        """
        n = len(self.learner_ids)
        spans = [slice(start, min(start + block, n)) for start in range(0, n, block)]
        for index, rows in enumerate(spans):
            for columns in spans[index:]:
                yield rows, columns, self.dissimilarity_tile(rows, columns)

    @cached_property
    def losses(self) -> Array:
        """All losses as an array of shape (L, L): row i is the model of learner i on everybody."""
        all_learners = slice(0, len(self.learner_ids))
        return self.source.tile(all_learners, all_learners)

    @cached_property
    def dissimilarity(self) -> Array:
        """The dissimilarity v of the paper, an array of shape (L, L) with a zero diagonal."""
        n = len(self.learner_ids)
        v = np.empty((n, n))
        for rows, columns, tile in self.dissimilarity_tiles():
            v[rows, columns] = tile
            v[columns, rows] = tile.T
        return v


@dataclass(frozen=True)
class Curve:
    """How a rule for the number of clusters came to its answer.

    Parameters
    ----------
    rule : str
        Name of the rule.
    n_clusters : ndarray of shape (M,)
        The numbers of clusters looked at.
    values : ndarray of shape (M,)
        The rule's criterion for each.
    chosen : int
        The rule's answer.
    criterion : str
        What the values are, in words.
    spread : ndarray of shape (M,) or None, default=None
        Standard errors of the values, where the rule has them.
    one_truth_z : float or None, default=None
        Where one cluster was ruled out because one truth does not look like these learners: by how many
        standard deviations.
    """

    rule: str
    n_clusters: Array
    values: Array
    chosen: int
    criterion: str
    spread: Array | None = None
    one_truth_z: float | None = None


@dataclass(frozen=True)
class Partition(Aligned):
    """What Cluster hands on: who learns with whom.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        Who was clustered.
    labels : ndarray of shape (L,)
        Cluster of each learner, 0 to K - 1, the largest first.
    similarity : ndarray of shape (L, L) or SimilarityTiles
        The matrix S = exp(-a v). With very many learners it is made piece by piece when needed, and
        ``numpy.asarray`` makes the whole matrix.
    eigenvalues : ndarray of shape (M,)
        Largest eigenvalues of the normalised similarity, in descending order.
    embedding : ndarray of shape (L, K)
        Rows of the top eigenvectors, scaled to length one.
    scale : float
        The factor a.
    rule : str
        What decided the number of clusters.
    curves : mapping of str to Curve
        Every rule's curve, also of those that did not decide.
    clear : bool
        False when the learners do not fall into clear coteries.
    notes : tuple of str
        What a reader of the partition should know, in sentences.
    """

    labels: Array = field(metadata=BY_LEARNER)
    similarity: Array | SimilarityTiles = field(repr=False)
    eigenvalues: Array = field(repr=False)
    embedding: Array = field(metadata=BY_LEARNER, repr=False)
    scale: float = 1.0
    rule: str = "given"
    curves: Mapping[str, Curve] = field(default_factory=dict, repr=False)
    clear: bool = True
    notes: tuple[str, ...] = ()

    @property
    def n_clusters(self) -> int:
        """Number of clusters that have members."""
        return int(self.labels.max()) + 1

    def take(self, positions: Array) -> Self:
        """Return the partition of some of the learners, in the order given."""
        taken = super().take(positions)
        if isinstance(self.similarity, np.ndarray):
            return replace(taken, similarity=self.similarity[np.ix_(positions, positions)])
        return replace(taken, similarity=self.similarity.take(positions))


@dataclass(frozen=True)
class Collaboration(Aligned):
    """What Collaborate hands on: how each learner predicts.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        Who collaborates.
    method : str
        The form of collaboration.
    models : tuple of estimators
        The models that are averaged.
    names : tuple of str
        Name of the candidate behind each model.
    weights : ndarray of shape (M, len(models))
        Weights over the models, to predict with; each row sums to one.
    weight_rows : ndarray of shape (L,)
        The row of ``weights`` that each learner predicts with.
    newcomer_weight_rows : ndarray of shape (K,)
        The row of ``weights`` that a newcomer to each cluster predicts with.
    residuals : tuple of ndarray of shape (n_j, C)
        Out-of-fold residual of each row of each learner under this collaboration.
    loss : Loss, default=SQUARED_ERROR
        What residuals cost, and how models answer.
    plausible : ndarray of shape (M, 2) or None, default=None
        What the predictions of each row of ``weights`` are clipped to; None: nothing is clipped.
    """

    method: str
    models: tuple[Any, ...] = field(repr=False)
    names: tuple[str, ...]
    weights: Array = field(repr=False)
    weight_rows: Array = field(metadata=BY_LEARNER)
    newcomer_weight_rows: Array
    residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    loss: Loss = field(default=SQUARED_ERROR, kw_only=True)
    plausible: Array | None = field(default=None, kw_only=True, repr=False)

    @property
    def by_pooled_rows(self) -> bool:
        """Whether a newcomer to a cluster predicts with a model of its members' pooled rows."""
        return self.method == "pooled"

    @property
    def cluster_residuals(self) -> tuple[Array, ...] | None:
        """Out-of-fold residuals under what a cluster's members share, None where they share nothing."""
        return self.residuals if self.method in ("pooled", "average") else None

    @property
    def taken(self) -> dict[str, Array]:
        """How much each learner takes from whom, by column; empty where the clusters say it all."""
        return {}

    def predict(self, X: Array, weight_rows: Array) -> Array:
        """Predict rows of X, each with its own weights.

        Parameters
        ----------
        X : ndarray of shape (N, p)
            Predictors.
        weight_rows : ndarray of shape (N,)
            Row of ``weights`` to predict each row of X with.

        Returns
        -------
        ndarray of shape (N,)
            Predictions.
        """
        return self.loss.from_columns(self.predict_columns(X, weight_rows))

    def predict_columns(self, X: Array, weight_rows: Array) -> Array:
        """Return predictions (N, C) of the response's columns: numbers, or probabilities of classes.

        Each row of X (N, p) is predicted by the weighted sum of models that its entry of ``weight_rows`` (N,)
        names. Rows with the same weights are predicted together. Models of weight zero do not predict.
        """
        prediction = np.zeros((len(X), self.loss.n_columns))
        for weight_row in np.unique(weight_rows):
            selected = np.flatnonzero(weight_rows == weight_row)
            for model_position in np.flatnonzero(self.weights[weight_row]):
                model_prediction = self.loss.predict(self.models[model_position], X[selected])
                prediction[selected] += self.weights[weight_row, model_position] * model_prediction
        return self._clipped_to_plausible(prediction, weight_rows)

    def _clipped_to_plausible(self, prediction: Array, weight_rows: Array) -> Array:
        """Return predictions (N, C) clipped to the plausible range of their row of weights."""
        if self.plausible is None:
            return prediction
        # Two columns (N, 1), one lower and one upper bound for each row.
        low, high = self.plausible[weight_rows].T[..., None]
        return np.clip(prediction, low, high)


@dataclass(frozen=True)
class OwnResiduals(Aligned):
    """How learners predict alone, and how well they do so.

    Parameters
    ----------
    learner_ids : ndarray of shape (L,)
        The learners.
    residuals : tuple of ndarray of shape (n_j, C)
        Residual of each row under the learner's own model, chosen and fitted without the row's fold; NaN
        where no fold holds the row out.
    share : float
        Share of a learner's rows that each fold trains on.
    bounds : ndarray of shape (L, 2)
        What the predictions of each learner's own model are clipped to.
    """

    residuals: tuple[Array, ...] = field(metadata=BY_LEARNER, repr=False)
    share: float
    bounds: Array = field(metadata=BY_LEARNER, repr=False)


def share_of_rows(selection: Selection) -> float:
    """Return the mean share of a learner's rows that its out-of-fold residuals' models were fitted on."""
    return float(np.mean([training.mean() for training in selection.training]))
