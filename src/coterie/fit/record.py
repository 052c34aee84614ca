"""A fit as one frozen record: everything that is known when the method has run.

`run` makes it. `admit` and `remove` make another one from it and leave it as it was.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import listed
from coterie.fit.options import Options
from coterie.records import Collaboration, Exchange, OwnResiduals, Partition, Selection
from coterie.rows.ids import positions_of
from coterie.rows.learners import Learners, Standardization
from coterie.verdicts import Admission, ClusterFit, GainModel, Gains, Intervals, LabelSets, Stability
from coterie.verdicts.verdict import STAY_ALONE

# The place of a learner that the fit has not seen.
UNKNOWN = -1
# What a prediction uses.
USING = ("verdict", "alone", "others")


@dataclass(frozen=True)
class Newcomer:
    """A learner that was placed after the clusters had been found, and how it predicts.

    It is new, or has too few rows to shape clusters. With others it predicts by row ``weight_row`` of the
    collaboration's weights, alone with its own ``model``, kept within ``bounds`` (2,), if it has one.
    """

    learner_id: Any
    weight_row: int
    model: Any = None
    bounds: Array = field(default_factory=lambda: np.array([-np.inf, np.inf]), repr=False)


@dataclass(frozen=True)
class Fit:
    """Everything that a fit knows.

    ``learners`` are the rows of those that shaped the clusters, in the units of the models. The records of
    the stages, ``selection`` to ``collaboration``, are in the order in which the learners first appeared;
    ``with_all`` says how each would predict with everybody, and ``own`` with its own model.
    ``cluster_fit`` tells how well each cluster describes each learner, ``stability`` how sure the clusters
    are, where rows were resampled. ``gains`` has a row per learner, newcomers too, in the order shown to the
    user; ``gain_model`` is the model across learners behind it, by which newcomers are judged. ``admission``
    says where newcomers were placed, None while there are none. ``units`` has each learner's centre and
    spread, newcomers behind the others, where rows were standardised. Predictors were divided by two to the
    power of ``exponents``, of shape (p,). From ``seed`` every random split derives. A learner needed
    ``min_rows`` to shape the clusters. ``few`` has the rows of learners that had fewer, where these are
    pooled with the others'. ``intervals`` has what prediction intervals are made from, or sets of labels.
    """

    options: Options
    learners: Learners
    selection: Selection
    exchange: Exchange
    partition: Partition
    collaboration: Collaboration
    with_all: Collaboration
    own: OwnResiduals
    cluster_fit: ClusterFit
    stability: Stability | None
    gains: Gains
    gain_model: GainModel
    admission: Admission | None
    newcomers: tuple[Newcomer, ...]
    units: Standardization | None
    exponents: Array
    seed: int
    min_rows: int
    few: Learners | None = None
    intervals: Intervals | LabelSets | None = None

    @property
    def learner_ids(self) -> Array:
        """All learners, newcomers too, in the order shown to the user."""
        return self.gains["learner"]

    @property
    def labels(self) -> Array:
        """Cluster of each of them; -1 for a newcomer whom no cluster fits."""
        return self.gains["cluster"]

    @property
    def n_clusters(self) -> int:
        """Number of clusters."""
        return self.partition.n_clusters

    @property
    def has_rows(self) -> bool:
        """Whether the rows are there; a saved model may be without them."""
        return len(self.learners.y) > 0

    def with_notes(self, notes: tuple[str, ...]) -> Fit:
        """Return the same fit with further notes on its partition, before the others."""
        partition = replace(self.partition, notes=(*notes, *self.partition.notes))
        return replace(self, partition=partition)

    def in_order(self, learner_ids: list[Any]) -> Fit:
        """Return the same fit with its table in the order of some ids."""
        return replace(self, gains=self.gains.of(learner_ids))

    def _weight_rows(self) -> Array:
        """Return each learner's row of the collaboration's weights, (L + M,), by place (see `places_of`)."""
        collaboration = self.collaboration
        weight_row_of = dict(
            zip(collaboration.learner_ids.tolist(), collaboration.weight_rows.tolist(), strict=True)
        )
        of_shaping = [weight_row_of[learner] for learner in self.learners.ids.tolist()]
        return np.array([*of_shaping, *(new.weight_row for new in self.newcomers)], dtype=int)

    def _own_model(self, place: int) -> tuple[Any, Array] | None:
        """Return the own model of the learner at a place and the bounds of its predictions; None without one.

        The L learners that shaped the clusters have the first places, newcomers the next. Bounds keep
        predictions near the responses that the learner has shown.
        """
        newcomer = place - len(self.learners)
        if newcomer >= 0:
            new = self.newcomers[newcomer]
            return None if new.model is None else (new.model, new.bounds)
        position = positions_of([self.learners.ids.tolist()[place]], self.selection.learner_ids.tolist())[0]
        return self.selection.models[position], self.own.bounds[position]

    def _predicts_with_own(self, using: str) -> Array:
        """Tell the places, of shape (L + M,), whose learners predict with their own models.

        ``using`` is one of `USING`: "alone" is everybody, "others" nobody, "verdict" those who stay alone.
        """
        n = len(self.learners) + len(self.newcomers)
        if using != "verdict":
            return np.full(n, using == "alone")
        verdicts = dict(zip(self.gains["learner"].tolist(), self.gains["verdict"].tolist(), strict=True))
        all_learners = [*self.learners.ids.tolist(), *(new.learner_id for new in self.newcomers)]
        return np.array([verdicts[learner] == STAY_ALONE for learner in all_learners])

    def _predict_inside(self, X: Array, places: Array, using: str) -> Array:
        """Return predictions (N, C) of rows X (N, p), in the units of the models and the response's columns.

        Learners at ``places`` (N,) predict with their own model or with others; unknown ones (-1) by what all
        learners share. Who should predict alone and has no model predicts with others, with a warning.
        """
        loss, with_own = self.options.loss, self._predicts_with_own(using)
        own_models = {
            place: self._own_model(place) for place in np.unique(places[places != UNKNOWN]) if with_own[place]
        }
        without_model = [place for place, model in own_models.items() if model is None]
        if without_model:
            ids = [self.newcomers[place - len(self.learners)].learner_id for place in without_model]
            who, have, are = ("Learner", "has", "is") if len(ids) == 1 else ("Learners", "have", "are")
            warnings.warn(
                f"{who} {listed(ids)} {have} too few rows for an own model and {are} predicted with others.",
                UserWarning,
                stacklevel=4,
            )
            with_own[without_model] = False
        prediction = np.empty((len(X), loss.n_columns))
        unknown = places == UNKNOWN
        if unknown.any():
            weight_row_of_all = self.with_all.newcomer_weight_rows[0]
            weight_rows = np.full(np.count_nonzero(unknown), weight_row_of_all)
            prediction[unknown] = self.with_all.predict_columns(X[unknown], weight_rows)
        with_others = ~unknown & ~with_own[places]
        weight_rows = self._weight_rows()[places[with_others]]
        prediction[with_others] = self.collaboration.predict_columns(X[with_others], weight_rows)
        for place, model_and_bounds in own_models.items():
            if model_and_bounds is not None:
                model, bounds = model_and_bounds
                rows = np.flatnonzero(places == place)
                prediction[rows] = np.clip(loss.predict(model, X[rows]), *bounds)
        return prediction

    def places_of(self, ids: list[Any] | None, n_rows: int, caller: str) -> Array:
        """Return for each row the place of its learner, of shape (N,): newcomers stand behind the others.

        ``ids`` is None where there is one learner. Learners that the fit has not seen are at -1, with a
        warning, or refused, as the options have it.
        """
        all_learners = [*self.learners.ids.tolist(), *(new.learner_id for new in self.newcomers)]
        if ids is None:
            if len(all_learners) > 1:
                raise ValueError(
                    f"{caller} needs to know whose rows these are: pass groups, one id per row of X."
                )
            ids = all_learners * n_rows
        if len(ids) != n_rows:
            raise ValueError(
                f"The 'groups' argument of {caller} must have one entry per row of X ({n_rows}). "
                f"Got {len(ids)}."
            )
        known = set(all_learners)
        unknown = list(dict.fromkeys(i for i in ids if i not in known))
        if not unknown:
            return positions_of(ids, all_learners)
        one = len(unknown) == 1
        who = (
            f"{'Learner' if one else 'Learners'} {listed(unknown)} {'was' if one else 'were'} not seen in fit"
        )
        if self.options.unknown_learners == "raise":
            raise ValueError(
                f"{who}: use admit to place newcomers, or set "
                "unknown_learners='warn' to predict them by what all learners share."
            )
        warnings.warn(
            f"{who}, and {'is' if one else 'are'} predicted by what all learners share. "
            "Use admit to place newcomers, or set unknown_learners='raise'.",
            UserWarning,
            stacklevel=4,
        )
        seen = np.array([i in known for i in ids])
        indices = np.full(n_rows, UNKNOWN)
        indices[seen] = positions_of([i for i in ids if i in known], all_learners)
        return indices

    def predict(self, X: Array, places: Array, using: str = "verdict") -> Array:
        """Predict rows of X, divided by ``exponents``, for learners at some places (see `places_of`).

        ``using`` is one of `USING`: as the verdict has it, with the own model, or with others.
        """
        if self.units is None:
            predictions = self._predict_inside(X, places, using)
        else:
            # A learner that the fit has not seen has the units of the average one, behind all others.
            units = self.units.joined(self.units.average())
            inside = self._predict_inside(units.forward_X(X, places), places, using)
            predictions = units.backward_y(inside, places)
        return self._in_units_of_y(self.options.loss.from_columns(predictions))

    def _in_units_of_y(self, predictions: Array) -> Array:
        """Undo the log of the response."""
        return np.exp(predictions) if self.options.log_target else predictions

    def predict_interval(self, X: Array, places: Array, coverage: float) -> Array:
        """Return intervals (N, 2), lower and upper end, around the predictions of rows X (N, p).

        ``places`` (N,) are as for `predict`; a new response lies inside with the probability ``coverage``.
        """
        assert isinstance(self.intervals, Intervals), "intervals are measured at the end of a fit"
        if self.units is None:
            predicted = self._predict_inside(X, places, "verdict")[:, 0]
            return self._in_units_of_y(self.intervals.around(X, predicted, places, coverage))
        units = self.units.joined(self.units.average())
        X = units.forward_X(X, places)
        inside = self.intervals.around(X, self._predict_inside(X, places, "verdict")[:, 0], places, coverage)
        ends = [units.backward_y(end[:, None], places) for end in inside.T]
        return self._in_units_of_y(np.column_stack(ends))

    def predict_set(self, X: Array, places: Array, coverage: float) -> Array:
        """Tell for each row which of K classes are in its set, (N, K): the true one is, by ``coverage``.

        That is the probability with which a row's set holds its class; ``places`` (N,) are as for `predict`.
        """
        assert isinstance(self.intervals, LabelSets), "sets of labels are measured at the end of a fit"
        return self.intervals.around(self.predict(X, places), places, coverage)
