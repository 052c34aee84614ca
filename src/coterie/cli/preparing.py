"""From a table to learners: which column is what, which rows can be used, what the table became."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from coterie._options import brief
from coterie.cli.errors import CommandError, one_sentence
from coterie.cli.tasks import CLASSIFICATION, REGRESSION, class_values, said_of, task_of
from coterie.encoding import TableEncoder, TableRecipe
from coterie.estimator import CoterieEstimator
from coterie.fit.out_of_core import RowSource
from coterie.rows.ids import id_array

# How alike a column's name must be to be offered for one that is not there.
_MIN_NAME_SIMILARITY = 0.5


@dataclass(frozen=True)
class PreparedRows:
    """The rows of a table, as the library takes them; y and groups have one entry per row of X.

    ``classes`` says that y holds labels of classes, no numbers.

    Those of a site that has no learners but itself are an array of shape (n, p), without groups.
    """

    X: pl.DataFrame | NDArray[np.float64]
    y: NDArray[Any] | None
    groups: NDArray[np.str_] | None
    # Where each row stood in the table.
    kept: NDArray[np.int_]
    notes: tuple[str, ...]
    classes: bool = False

    def fit(self, model: CoterieEstimator) -> list[str]:
        """Fit a model to these rows; return no notes, as `StreamedRows.fit` returns some."""
        model.fit(self.X, self.y, groups=self.groups)
        return []


@dataclass(frozen=True)
class StreamedRows:
    """All learners of a fit that reads them one by one, by id, and the memory that it may take.

    ``classes`` are the labels of the target, none where it holds numbers.
    """

    sources: Mapping[str, RowSource]
    memory: str
    notes: tuple[str, ...]
    classes: tuple[Any, ...] = ()

    def fit(self, model: CoterieEstimator) -> list[str]:
        """Fit a model, reading learner by learner; return notes on how many rows were read and kept.

        Only some rows of each learner stay in memory, for the clustering.
        """
        class_options = {"classes": self.classes} if self.classes else {}
        model.fit_sources(self.sources, memory=self.memory, **class_options)
        n_rows_in_files, n_rows_read = (
            sum(source.n_rows for source in self.sources.values()),
            int(model.gains_["n_rows"].sum()),
        )
        n_rows_kept = sum(len(residuals) for residuals in model.selection_.residuals)
        notes = [
            f"{n_rows_read} of {n_rows_in_files} rows were read, learner by learner; {n_rows_kept} were kept "
            "for the clustering.",
            "What becomes of the columns was decided by some rows of some learners.",
        ]
        if n_rows_in_files > n_rows_read:
            notes.append(
                f"{n_rows_in_files - n_rows_read} rows have no target, or were too many for the memory."
            )
        return notes


def check_columns(names: Sequence[str], known: Sequence[str], option: str) -> None:
    """Refuse ``names`` that are not among the ``known`` columns; offer the most similar one.

    ``option`` says in the error who asks for the column.
    """
    for name in names:
        if name in known:
            continue
        name_by_lower_case = {other.casefold(): other for other in reversed(known)}
        close_names = get_close_matches(name.casefold(), name_by_lower_case, n=1, cutoff=_MIN_NAME_SIMILARITY)
        if close_names:
            hint = f"did you mean {name_by_lower_case[close_names[0]]!r}?"
        else:
            first_columns = ", ".join(repr(other) for other in known[:12])
            hint = f"there are {first_columns}" + (" and more." if len(known) > 12 else ".")
        raise CommandError(f"The table has no column {name!r} for {option}: {hint}")


def chosen_columns(
    known: Sequence[str], target: str, group: str | None, features: Sequence[str], drop: Sequence[str]
) -> list[str]:
    """Return the predictors: ``features`` if given, else all columns but target and group; without ``drop``.

    Names that are not columns, and a target or group among the predictors, are refused.
    """
    target_and_group = [target] if group is None else [target, group]
    names_by_option = (
        ([target], "--target"),
        (target_and_group[1:], "--group"),
        (features, "--features"),
        (drop, "--drop"),
    )
    for names, option in names_by_option:
        check_columns(names, known, option)
    if target == group:
        raise CommandError(f"The column {target!r} cannot be both target and group: name two columns.")
    chosen = features or [name for name in known if name not in target_and_group]
    chosen = [name for name in dict.fromkeys(chosen) if name not in drop]
    for name in target_and_group:
        if name in chosen:
            raise CommandError(f"The column {name!r} cannot be a predictor, too: take it out of --features.")
    if not chosen:
        raise CommandError("No column is left to predict from: name some with --features, or --drop fewer.")
    return chosen


def target_values(frame: pl.DataFrame, target: str) -> pl.Series:
    """Return the target column as numbers, null where it is missing or infinite; refuse text.

    The error shows an entry that is no number.
    """
    column = frame[target]
    if not column.dtype.is_numeric() and column.dtype != pl.Boolean and column.dtype != pl.Null:
        examples = column.drop_nulls()
        if column.dtype == pl.String:
            not_numbers = examples.filter(examples.cast(pl.Float64, strict=False).is_null())
            examples = not_numbers if len(not_numbers) else examples
        example = brief(examples[0]) if len(examples) else "nothing"
        raise CommandError(
            f"The target {target!r} is not numeric (it holds {example}): "
            "name a column of numbers, or of classes with `coterie fit --task classification`."
        )
    numbers = column.cast(pl.Float64)
    return numbers.set(~numbers.is_finite().fill_null(False), None)


def learner_names(values: pl.Series) -> pl.Series:
    """Return a group column as texts, null where a row has no learner; refuse lists, objects and the like.

    The group column says to which learner each row belongs.
    """
    kind = values.dtype
    if kind.is_float():
        values = values.fill_nan(None)
    if not kind.is_nested() and kind != pl.Object:
        try:
            return values.cast(pl.String)
        except pl.exceptions.PolarsError:
            pass
    raise CommandError(
        f"The group column {values.name!r} holds entries of type {kind}, which name no learner: name a "
        "column of text or numbers."
    )


def _check_groups(names: pl.Series, group: str) -> None:
    """Refuse a group column with one value only, or with another value in every row: it names no learners."""
    n_distinct = names.n_unique()
    if n_distinct == 1:
        raise CommandError(
            f"The group column {group!r} has the one value {names[0]!r}: clustering needs several learners, "
            "so name the column that tells them apart."
        )
    if n_distinct == len(names):
        raise CommandError(
            f"Every row has its own value of the group column {group!r}: name the column that says whose "
            "rows these are, with several rows for each."
        )


def _as_array(names: pl.Series) -> Any:
    """Return texts as a numpy array (n,), each distinct one converted once: rows are many, learners few."""
    distinct = names.unique()
    codes = names.cast(pl.Enum(distinct)).to_physical().to_numpy()
    return id_array(distinct.to_list())[codes]


def _dropped(count: int, total: int, column: str, what: str) -> list[str]:
    """Return a note on ``count`` rows that were left out because a column is empty; none for no rows."""
    return [f"{count} of {total} rows have no {what} ({column!r}) and were left out."] if count else []


def _usable(
    frame: pl.DataFrame,
    columns: Sequence[str],
    target: str | None,
    group: str,
    *,
    classes: bool,
    time: str | None = None,
) -> tuple[pl.DataFrame, Any, pl.Series, Any, list[str]]:
    """Select the rows that have a learner and, if they are wanted, a target and a time.

    Returns, in this order, their predictors, their responses (None without target), their learners' names,
    their positions in the table, and notes that count the rows left out for each reason. ``classes``: the
    target holds labels, not numbers.
    """
    learners = learner_names(frame[group])
    usable = learners.is_not_null()
    # Each row is counted once, for the first reason: no learner, then no target, then no time.
    notes = _dropped(int((~usable).sum()), frame.height, group, "learner")
    responses = None
    if target is not None:
        responses = (class_values if classes else target_values)(frame, target)
        has_target = responses.is_not_null()
        notes += _dropped(int((~has_target & usable).sum()), frame.height, target, "target")
        usable = usable & has_target
    if time is not None:
        has_time = frame[time].is_not_null()
        notes += _dropped(int((~has_time & usable).sum()), frame.height, time, "time")
        usable = usable & has_time
        columns = [*columns, time]
    positions = usable.arg_true()
    if not len(positions):
        needed_columns = f"{group!r}" if target is None else f"both {target!r} and {group!r}"
        raise CommandError(
            f"No row has an entry in {needed_columns}: check that these are the right columns."
        )
    predictors = frame.select(columns)
    predictors = predictors if len(positions) == frame.height else predictors[positions]
    y = None if responses is None else responses.gather(positions).to_numpy()
    return predictors, y, learners.gather(positions), positions.to_numpy(), notes


def prepare(
    frame: pl.DataFrame,
    *,
    target: str,
    group: str,
    features: Sequence[str] = (),
    drop: Sequence[str] = (),
    by_file: bool = False,
    task: str = REGRESSION,
    time: str | None = None,
) -> tuple[PreparedRows, TableRecipe]:
    """Decide how a table's columns become numbers; return its rows for `fit`, and a recipe for others.

    ``task`` says whether the target is fitted as classes or as numbers; ``"auto"``: as its entries show.
    The column ``time`` says when each row was observed. It is kept beside the predictors, for the model
    takes it out itself. The recipe says what became of each column, for tables to come.
    """
    if time is not None:
        check_columns([time], frame.columns, "--time")
        if time in (target, group):
            raise CommandError(f"The column {time!r} cannot be the time, too: name another one with --time.")
        drop = [*drop, time]
    chosen = chosen_columns(frame.columns, target, group, features, drop)
    classes = task_of(frame[target], task) == CLASSIFICATION
    predictors, y, learners, positions, notes = _usable(
        frame, chosen, target, group, classes=classes, time=time
    )
    _check_groups(learners, group)
    with one_sentence():
        encoder = TableEncoder().fit(predictors.select(chosen))
    recipe = TableRecipe(target, group, encoder.columns_, by_file)
    if classes:
        notes.insert(0, said_of(y, target, task))
    notes += recipe.notes
    X = encoder.transform(predictors)
    if time is not None:
        X = X.with_columns(predictors[time])
    return PreparedRows(X, y, _as_array(learners), positions, tuple(notes), classes), recipe


def apply_recipe(
    frame: pl.DataFrame,
    recipe: TableRecipe,
    *,
    with_target: bool,
    classes: bool = False,
    time: str | None = None,
) -> PreparedRows:
    """Take the columns that `prepare` used out of another table, for a model to encode.

    ``classes`` says that the target holds labels, ``time`` names the column of times, if it is needed.
    """
    predictor_names = [plan.name for plan in recipe.columns if plan.kind != "left out"]
    check_columns([recipe.group], frame.columns, "the learners")
    check_columns([recipe.target] if with_target else [], frame.columns, "the target")
    check_columns(predictor_names, frame.columns, "a predictor of the model")
    check_columns([] if time is None else [time], frame.columns, "the time")
    target = recipe.target if with_target else None
    predictors, y, learners, positions, notes = _usable(
        frame, predictor_names, target, recipe.group, classes=classes, time=time
    )
    return PreparedRows(predictors, y, _as_array(learners), positions, tuple(notes), classes)
