"""What the estimators share: how rows and ids come in, newcomers, who leaves, what a fit leaves behind."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from html import escape
from numbers import Integral
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from coterie._arrays import Array
from coterie._notebook import summary_html
from coterie._options import brief, listed
from coterie._seeds import as_entropy
from coterie.encoding import TableEncoder, TableRecipe, encoder_for
from coterie.encoding.times import in_time_order, split_time_column, time_ranks
from coterie.fit.admit import admit_learners, place_learners
from coterie.fit.options import Options
from coterie.fit.out_of_core import RowSource, first_rows, fit_sources
from coterie.fit.record import Fit
from coterie.fit.remove import remove_learners
from coterie.fit.run import fit_learners
from coterie.loss import Loss
from coterie.method.forecasts import Forecasts
from coterie.records import Collaboration, Exchange, Partition, Selection
from coterie.rows.cautions import alike_ids, cautions
from coterie.rows.ids import as_ids
from coterie.rows.learners import Learners, gather_learners
from coterie.rows.numbers import divided, extreme_exponents
from coterie.rows.outside import OUTSIDE, ranges_of, warn_of_ranges
from coterie.rows.tables import check_finite, check_predictors, check_size, column_names, split_group_column
from coterie.rows.wild import warn_of
from coterie.summary import summarize
from coterie.verdicts import Admission, ClusterFit, Gains, Stability

IN_TIME_ORDER = (
    "Rows are in time order. Errors are those of forecasts: each learner's later half of rows, block by "
    "block, from the rows before."
)


def _from_record(name: str) -> Any:
    """Return a property that hands on a field of ``record_``; the class docstring describes it."""

    def get(model: CoterieEstimator) -> Any:
        """Return the attribute from the fitted model's record."""
        check_is_fitted(model, "record_")
        return getattr(model.record_, name)

    return property(get, doc=f"The fit has it as ``record_.{name}``.")


def _of_time(options: Options) -> tuple[str, ...]:
    return (IN_TIME_ORDER,) if isinstance(options.held_out_by, Forecasts) else ()


class CoterieEstimator(BaseEstimator):  # type: ignore[misc]
    """The part of `CoterieRegressor` and `CoterieClassifier` that does not ask what the response is."""

    # Weights reach the candidates that take them; see ``fit``.
    __metadata_request__fit = {"sample_weight": None}  # noqa: RUF012

    learner_ids_: Array = _from_record("learner_ids")
    learner_labels_: Array = _from_record("labels")
    n_clusters_: int = _from_record("n_clusters")
    selection_: Selection = _from_record("selection")
    exchange_: Exchange = _from_record("exchange")
    partition_: Partition = _from_record("partition")
    collaboration_: Collaboration = _from_record("collaboration")
    gains_: Gains = _from_record("gains")
    cluster_fit_: ClusterFit = _from_record("cluster_fit")
    stability_: Stability | None = _from_record("stability")
    admission_: Admission | None = _from_record("admission")
    min_rows_: int = _from_record("min_rows")

    ranges_: Array

    @property
    def encoder_(self) -> TableEncoder | None:
        """The encoder of the table of fit; None where X was numbers."""
        check_is_fitted(self, "record_")
        return self.table_.encoder if hasattr(self, "table_") else None

    @property
    def predictors_(self) -> list[str] | None:
        """The names of the columns that models see; None where X had no names."""
        if self.encoder_ is not None:
            return list(self.table_.features)
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [str(name) for name in names]

    @abstractmethod
    def _loss(self) -> Loss:
        """Return what the response is, as far as it is known."""

    def _response(self, y: Any, options: Options, caller: str) -> tuple[Any, Options]:
        """Return the response of a fit in numbers, and the options with its loss."""
        return y, options

    def _newcomers_response(self, y: Any, caller: str) -> Any:
        """Return the response of newcomers in numbers."""
        return y

    @classmethod
    def _called(cls, method: str) -> str:
        return f"{cls.__name__}.{method}"

    @contextmanager
    def _unchanged_if_refused(self) -> Iterator[None]:
        """Leave everything as it was where a fit is refused, or is stopped in the middle."""
        before = dict(vars(self))
        # What an earlier fit's table was says nothing of this one's.
        for name in ("table_", "target_name_", "ranges_"):
            self.__dict__.pop(name, None)
        try:
            yield
        except BaseException:
            self.__dict__ = before
            raise

    def _fit(self, X: Any, y: Any, groups: Any, time: Any, fit_params: dict[str, Any]) -> Self:
        """Fit; a fit that is refused leaves the estimator as it was."""
        with self._unchanged_if_refused():
            return self._fit_rows(X, y, groups, time, fit_params)

    def _fit_rows(self, X: Any, y: Any, groups: Any, time: Any, fit_params: dict[str, Any]) -> Self:
        """Check and encode the rows, fit on them, and keep the result in ``record_``.

        Learner ids and times may be columns of X, which are taken out first. Columns of extreme size are
        divided by powers of two, ``exponents``, as trees hold them in single precision.
        """
        caller = self._called("fit")
        options = self.check_options()
        unknown = sorted(set(fit_params) - {"sample_weight"})
        if unknown:
            raise TypeError(f"{caller} takes 'sample_weight' beside X, y and groups. Got {unknown[0]!r}.")
        column = self.group_column if groups is None else groups
        by_column = isinstance(column, str) or (groups is None and isinstance(column, Integral))
        self._group_column = column if by_column else None
        X, groups = self._split_groups(X, groups, caller)
        if time is not None:
            options = replace(options, time=time if isinstance(time, str) else True)
        if time is True:
            # Rows are in time order already.
            time = None
        if isinstance(options.time, str):
            if options.time == self._group_column:
                raise ValueError(f"The column {options.time!r} of {caller} cannot be group and time at once.")
            X, time = split_time_column(X, options.time, caller)
        if y is None:
            raise ValueError(f"{caller} requires y to be passed, but the target y is None.")
        encoder = encoder_for(X, caller)
        names = getattr(y, "name", None), self._group_column
        self.target_name_, group = (name if isinstance(name, str) else "" for name in names)
        if encoder is not None:
            self.keep_recipe(TableRecipe(self.target_name_, group, encoder.columns_))
        X, predictors = self._checked(X, caller, reset=encoder is None)
        y, options = self._response(y, options, caller)
        exponents = extreme_exponents(X)
        inside = {"exponents": exponents, "loss": options.loss, **fit_params}
        learners = gather_learners(X, y, groups, names=predictors, **inside, caller=caller)
        warn_of(learners.wild, stacklevel=5)
        if time is not None:
            learners = in_time_order(learners, time_ranks(time, len(X), caller))
        if groups is None:
            warnings.warn(
                f"{caller} got no groups, so all rows belong to one learner, and there is nobody to learn "
                "from. Pass groups, one id per row or the name of a column, or set group_column.",
                UserWarning,
                stacklevel=4,
            )
            # One learner, hence one cluster, whatever n_clusters says.
            options = replace(options, n_clusters=1)
        seed = as_entropy(self.random_state)
        fit = fit_learners(learners, options, seed=seed, exponents=exponents)
        notes = [*_of_time(options), *cautions(learners, predictors)]
        out = [] if encoder is None else [plan.name for plan in encoder.columns_ if plan.kind == "left out"]
        if out:
            notes.append(f"Left out of the predictors: {listed(out)}. Why, encoder_.columns_ says.")
        if encoder is not None:
            notes += self.table_.notes
        self.record_ = fit.with_notes(tuple(notes))
        self._see(learners)
        return self

    def _fit_sources(self, sources: Mapping[Any, RowSource], memory: Any, options: Options) -> Self:
        """Fit on learners that are read one by one, within so much memory (bytes, or a text with a unit)."""
        with self._unchanged_if_refused():
            self._group_column = None
            head = first_rows(sources)
            validate_data(self, head, skip_check_array=True)
            seed = as_entropy(self.random_state)
            fit = fit_sources(options, sources, memory, seed=seed, n_features=self.n_features_in_)
            # Rows that were standardised no longer show what they were.
            plain = fit.units is None
            said = cautions(fit.learners, column_names(head)) if plain else ()
            self.record_ = fit.with_notes((*_of_time(options), *said))
            if plain:
                self._see(fit.learners)
        return self

    def _see(self, learners: Learners) -> None:
        """Keep the ranges of the predictors, for rows that are predicted later."""
        # The fit's columns are divided by powers of two: multiplied again, ranges are in the user's units.
        ranges = np.ldexp(ranges_of(learners.X), self.record_.exponents)
        if getattr(self, "ranges_", None) is not None:
            self.ranges_ = ranges_of(np.concatenate([self.ranges_, ranges]))
        elif len(learners.X) >= OUTSIDE.fewest:
            self.ranges_ = ranges

    def _warn_of_unseen(self, X: Array, names: list[str] | None, stacklevel: int) -> None:
        """Warn of rows that lie far outside those of fit."""
        if getattr(self, "ranges_", None) is not None:
            warn_of_ranges(X, self.ranges_, names, stacklevel + 1)

    def check_options(self) -> Options:
        """Refuse an option that is not known, before any row is read.

        Returns
        -------
        Options
            The options as one record.
        """
        given = self.get_params(deep=False)
        known = {field.name for field in fields(Options)} - {"loss"}
        options = Options(
            loss=self._loss(), **{name: value for name, value in given.items() if name in known}
        )
        options.check()
        if self.group_column is not None and not isinstance(self.group_column, (str, Integral)):
            raise ValueError(
                "The 'group_column' option must be the name or the position of a column of X. "
                f"Got {brief(self.group_column)}."
            )
        return options

    def _split_groups(self, X: Any, groups: Any, caller: str) -> tuple[Any, Any]:
        """Return X without the column of learner ids, and the ids; None where there are none.

        The column is that of ``groups``, else of the option ``group_column``, else the one used in ``fit``.
        """
        column = self.group_column if groups is None else groups
        if groups is None and column is None:
            column = getattr(self, "_group_column", None)
        if groups is not None and self.group_column is not None:
            raise ValueError(
                f"{caller} got learner ids twice: from groups and from group_column="
                f"{self.group_column!r}. Pass one of them."
            )
        if isinstance(column, str) or (groups is None and isinstance(column, Integral)):
            return split_group_column(X, column, caller)
        return X, groups

    def _without_times(self, X: Any, caller: str, *, needed: bool) -> tuple[Any, Any]:
        """Take the column of times out of X, if fit had one."""
        column = self.record_.options.time
        return split_time_column(X, column, caller, needed=needed) if isinstance(column, str) else (X, None)

    def keep_recipe(self, recipe: TableRecipe) -> None:
        """Keep how a table became numbers: `predict` and the others then take tables as they come.

        Parameters
        ----------
        recipe : TableRecipe
            Made of the table whose rows are those of ``fit``.
        """
        self.table_, self.target_name_ = recipe, recipe.target
        self.feature_names_in_ = np.array([plan.name for plan in recipe.columns], dtype=object)
        self.n_features_in_ = len(recipe.columns)

    def _checked(self, X: Any, caller: str, *, reset: bool = False) -> tuple[Array, list[str] | None]:
        """Compare the columns of X with those of ``fit``, or note them; return an array, and their names.

        ``reset`` notes them, in a fit. A table that the fit had to encode is encoded the same way again.
        """
        names = column_names(X)
        if hasattr(self, "table_"):
            if names is None:
                raise ValueError(
                    f"{caller} takes a table with the columns of fit, which was given a table with more than "
                    f"numbers. Got {type(X).__name__}."
                )
            return check_predictors(self.table_.encoder.transform(X), caller), list(self.table_.features)
        if names is None:
            X = check_predictors(X, caller)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return check_predictors(X, caller), names

    def admit(self, X: Any, y: Any, groups: Any = None) -> Array:
        """Place newcomers into the coteries; they can then be predicted.

        Parameters
        ----------
        X : array-like or table of shape (N, p)
            Predictors of the newcomers, with the columns of ``fit``.
        y : array-like of shape (N,)
            Response.
        groups : array-like of shape (N,), str, or None, default=None
            Id of the newcomer who holds each row, or the name of the column of X that holds it.

        Returns
        -------
        ndarray of shape (M,)
            Cluster of each newcomer, in order of first appearance; -1 where none of the clusters predicts
            it as well as its own noise allows: it then predicts with its own model. How sure the answer
            is, ``admission_`` says.
        """
        newcomers = self._newcomers(X, y, groups, self._called("admit"))
        self.record_ = admit_learners(self._record(), newcomers)
        if getattr(self, "ranges_", None) is not None:
            self._see(newcomers)
        return self.learner_labels_[-len(newcomers) :]

    def _record(self) -> Fit:
        """Return the fit, to go on with under its own options; who runs the work may be another one now."""
        options = replace(self.record_.options, engine=self.engine, n_jobs=self.n_jobs)
        return replace(self.record_, options=options)

    def _newcomers(self, X: Any, y: Any, groups: Any, caller: str) -> Learners:
        """Check the rows of newcomers, learners that the fit has not seen, and gather them as in the fit.

        Ids that the model knows already are refused; ids that look like known ones are warned of.
        """
        check_is_fitted(self)
        X, groups = self._split_groups(X, groups, caller)
        if groups is None:
            raise ValueError(
                f"{caller} needs an id for every row: pass groups, or set group_column before fit."
            )
        X, times = self._without_times(X, caller, needed=True)
        X, names = self._checked(X, caller)
        fit = self.record_
        y = self._newcomers_response(y, caller)
        newcomers = gather_learners(
            X, y, groups, names=names, exponents=fit.exponents, loss=fit.options.loss, caller=caller
        )
        warn_of(newcomers.wild)
        # What was set aside is no reason to warn once more.
        self._warn_of_unseen(np.ldexp(newcomers.X, fit.exponents), names, stacklevel=4)
        if times is not None:
            newcomers = in_time_order(newcomers, time_ranks(times, len(X), caller))
        known = set(self.learner_ids_.tolist()) & set(newcomers.ids.tolist())
        method = caller.rpartition(".")[2]
        if known:
            who, are = ("Learner", "is") if len(known) == 1 else ("Learners", "are")
            raise ValueError(
                f"{who} {listed(sorted(known, key=str))} {are} known already: {method} takes new ids."
            )
        before = self.learner_ids_.tolist()
        for sentence in set(alike_ids([*before, *newcomers.ids.tolist()])) - set(alike_ids(before)):
            warnings.warn(sentence, UserWarning, stacklevel=3)
        self._need_rows(method)
        return newcomers

    def _need_rows(self, method: str) -> None:
        """Refuse a method that needs the rows of a model that was saved without them."""
        if not self.record_.has_rows:
            raise ValueError(
                f"This model was saved without its rows, which {method} needs: save it with rows=True."
            )

    def place_stream(self, chunks: Iterable[tuple[Any, Any, Any]]) -> Iterator[Admission]:
        """Say where newcomers belong, chunk by chunk, against the coteries as they are.

        Nothing is added to the model: memory is that of a chunk, however many newcomers there are.

        Parameters
        ----------
        chunks : iterable of tuple
            Each ``(X, y, groups)`` as for ``admit``, all rows of a newcomer in one chunk.

        Yields
        ------
        Admission
            Of the newcomers of a chunk, in order of first appearance. Noise levels are shrunk towards
            those of the chunk, so chunks should hold some dozens of newcomers.
        """
        for X, y, groups in chunks:
            newcomers = self._newcomers(X, y, groups, self._called("place_stream"))
            yield place_learners(self._record(), newcomers)

    def remove(self, learner_ids: Any) -> Self:
        """Take learners out of the model: their rows, losses and models, and what was fitted on their rows.

        Costs no losses and no new clusters. What the others predict with is fitted again on the rows that are
        left, and judged again. How sure the clusters are, and how well other clusters predict a learner,
        stays as ``fit`` measured it.

        Parameters
        ----------
        learner_ids : id or array-like of ids
            Who leaves: learners of ``fit``, or newcomers.

        Returns
        -------
        CoterieEstimator
            Itself, without them.
        """
        check_is_fitted(self)
        caller = self._called("remove")
        single = isinstance(learner_ids, (str, bytes)) or np.ndim(learner_ids) == 0
        leaving = set(as_ids([learner_ids] if single else learner_ids, caller).tolist())
        unknown = leaving - set(self.learner_ids_.tolist())
        if unknown:
            raise ValueError(f"Learner {listed(sorted(unknown, key=str))} is not in the model.")
        shaping = set(self.selection_.learner_ids.tolist())
        if shaping <= leaving:
            raise ValueError(f"{caller} must leave at least one learner that shaped the clusters.")
        if shaping & leaving:
            self._need_rows("remove")
        self.record_ = remove_learners(self._record(), leaving)
        return self

    def _rows_and_places(self, X: Any, groups: Any, caller: str) -> tuple[Array, Array]:
        """Check rows to be predicted; return them in units of the fit, and the places of their learners.

        A place is a learner's position in the record of the fit; ranges are checked in the user's units.
        """
        check_is_fitted(self)
        X, groups = self._split_groups(X, groups, caller)
        X, _ = self._without_times(X, caller, needed=False)
        X, names = self._checked(X, caller)
        ids = None if groups is None else as_ids(groups, caller)
        index = self.record_.places_of(None if ids is None else ids.tolist(), len(X), caller)
        ids_in_order = np.zeros(len(X), dtype=int) if ids is None else ids
        check_finite(X, names, np.arange(len(X)), ids_in_order, caller)
        seen = X
        X = divided(X, self.record_.exponents)
        check_size(X, names, caller)
        self._warn_of_unseen(seen, names, stacklevel=4)
        return X, index

    def _answer(self) -> Mapping[str, Any]:
        """Return the summary of the fit."""
        unit = self.table_.unit if hasattr(self, "table_") else ""
        return summarize(
            self.record_, named=False, target=getattr(self, "target_name_", "") or None, unit=unit
        )

    def summary(self) -> str:
        """Say what the fit found: the coteries, whether learning with others pays, and for whom.

        Returns
        -------
        str
            The answer of the command line and of the report, a sentence a line; ``print(model)`` shows it.
        """
        check_is_fitted(self, "record_")
        return "\n".join(self._answer()["answer"])

    def __str__(self) -> str:
        return self.summary() if hasattr(self, "record_") else repr(self)

    def plot(self, ax: Any = None, **kwargs: Any) -> Any:
        """Draw each learner's error alone, with its coterie and with all, the largest gain at the top.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Where to draw. None: a new figure.
        **kwargs : dict
            For the points, passed to ``Axes.scatter``.

        Returns
        -------
        GainsDisplay
            With ``ax_`` and ``figure_``. Other pictures are in `coterie.displays`.
        """
        from coterie.displays import GainsDisplay

        return GainsDisplay.from_estimator(self).plot(ax, **kwargs)

    def _html_repr(self) -> str:
        """Return the answer and scikit-learn's diagram as HTML."""
        diagram: str = estimator_html_repr(self)
        if not hasattr(self, "record_"):
            return diagram
        # The diagram holds the model's text, which is the answer above it.
        return summary_html(self._answer()) + diagram.replace(escape(str(self)), escape(repr(self)))

    # In scikit-learn 1.6 the next two make the diagram by themselves, without a look at `_html_repr`.
    def _repr_html_inner(self) -> str:
        return self._html_repr()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        """Return what notebooks show: text, and HTML if diagrams are on."""
        bundle = {"text/plain": repr(self)}
        if get_config()["display"] == "diagram":
            bundle["text/html"] = self._html_repr()
        return bundle
