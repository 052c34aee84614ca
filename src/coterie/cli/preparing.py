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
_ALIKE = 0.5


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
        """Fit a model to them; return what is to be said of it."""
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
        """Fit a model to them; return what is to be said of it."""
        known = {"classes": self.classes} if self.classes else {}
        model.fit_sources(self.sources, memory=self.memory, **known)
        there, read = sum(s.n_rows for s in self.sources.values()), int(model.gains_["n_rows"].sum())
        kept = sum(len(residuals) for residuals in model.selection_.residuals)
        said = [
            f"{read} of {there} rows were read, learner by learner; {kept} were kept for the clustering.",
            "What becomes of the columns was decided by some rows of some learners.",
        ]
        if there > read:
            said.append(f"{there - read} rows have no target, or were too many for the memory.")
        return said


def check_columns(names: Sequence[str], known: Sequence[str], option: str) -> None:
    """Refuse names that are not columns, with the nearest one that is."""
    for name in names:
        if name in known:
            continue
        folded = {other.casefold(): other for other in reversed(known)}
        near = get_close_matches(name.casefold(), folded, n=1, cutoff=_ALIKE)
        if near:
            hint = f"did you mean {folded[near[0]]!r}?"
        else:
            first_columns = ", ".join(repr(other) for other in known[:12])
            hint = f"there are {first_columns}" + (" and more." if len(known) > 12 else ".")
        raise CommandError(f"The table has no column {name!r} for {option}: {hint}")


def chosen_columns(
    known: Sequence[str], target: str, group: str | None, features: Sequence[str], drop: Sequence[str]
) -> list[str]:
    """Return the predictors that were named, or all columns but the target and the group."""
    taken = [target] if group is None else [target, group]
    wanted = (([target], "--target"), (taken[1:], "--group"), (features, "--features"), (drop, "--drop"))
    for names, option in wanted:
        check_columns(names, known, option)
    if target == group:
        raise CommandError(f"The column {target!r} cannot be both target and group: name two columns.")
    chosen = features or [name for name in known if name not in taken]
    chosen = [name for name in dict.fromkeys(chosen) if name not in drop]
    for name in taken:
        if name in chosen:
            raise CommandError(f"The column {name!r} cannot be a predictor, too: take it out of --features.")
    if not chosen:
        raise CommandError("No column is left to predict from: name some with --features, or --drop fewer.")
    return chosen


def target_values(frame: pl.DataFrame, target: str) -> pl.Series:
    """Return the response as numbers, null where it is missing or infinite."""
    values = frame[target]
    if not values.dtype.is_numeric() and values.dtype != pl.Boolean and values.dtype != pl.Null:
        examples = values.drop_nulls()
        if values.dtype == pl.String:
            odd = examples.filter(examples.cast(pl.Float64, strict=False).is_null())
            examples = odd if len(odd) else examples
        example = brief(examples[0]) if len(examples) else "nothing"
        raise CommandError(
            f"The target {target!r} is not numeric (it holds {example}): "
            "name a column of numbers, or of classes with `coterie fit --task classification`."
        )
    numbers = values.cast(pl.Float64)
    return numbers.set(~numbers.is_finite().fill_null(False), None)


def learner_names(values: pl.Series) -> pl.Series:
    """Return the entries of a group column as text, null where there is none; NaN names no learner."""
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
    """Refuse a group column with one value only, or with another value in every row."""
    distinct = names.n_unique()
    if distinct == 1:
        raise CommandError(
            f"The group column {group!r} has the one value {names[0]!r}: clustering needs several learners, "
            "so name the column that tells them apart."
        )
    if distinct == len(names):
        raise CommandError(
            f"Every row has its own value of the group column {group!r}: name the column that says whose "
            "rows these are, with several rows for each."
        )


def _as_array(names: pl.Series) -> Any:
    """Return texts as a numpy array, each distinct one converted once."""
    distinct = names.unique()
    codes = names.cast(pl.Enum(distinct)).to_physical().to_numpy()
    return id_array(distinct.to_list())[codes]


def _dropped(count: int, total: int, column: str, what: str) -> list[str]:
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
    """Return predictors, responses, groups and positions of the usable rows, and what was left out."""
    names = learner_names(frame[group])
    known = names.is_not_null()
    notes = _dropped(int((~known).sum()), frame.height, group, "learner")
    values = None
    if target is not None:
        values = (class_values if classes else target_values)(frame, target)
        answered = values.is_not_null()
        notes += _dropped(int((~answered & known).sum()), frame.height, target, "target")
        known = known & answered
    if time is not None:
        timed = frame[time].is_not_null()
        notes += _dropped(int((~timed & known).sum()), frame.height, time, "time")
        known = known & timed
        columns = [*columns, time]
    kept = known.arg_true()
    if not len(kept):
        needed = f"{group!r}" if target is None else f"both {target!r} and {group!r}"
        raise CommandError(f"No row has an entry in {needed}: check that these are the right columns.")
    used = frame.select(columns)
    used = used if len(kept) == frame.height else used[kept]
    y = None if values is None else values.gather(kept).to_numpy()
    return used, y, names.gather(kept), kept.to_numpy(), notes


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
    """Decide what becomes of a table's columns; return rows to fit on, and the recipe for other tables.

    ``task`` says whether the target is fitted as classes or as numbers; ``"auto"``: as it looks. The column
    ``time`` says when each row was observed; it stays as it is, for the model to take it out.
    """
    if time is not None:
        check_columns([time], frame.columns, "--time")
        if time in (target, group):
            raise CommandError(f"The column {time!r} cannot be the time, too: name another one with --time.")
        drop = [*drop, time]
    chosen = chosen_columns(frame.columns, target, group, features, drop)
    classes = task_of(frame[target], task) == CLASSIFICATION
    used, y, names, kept, notes = _usable(frame, chosen, target, group, classes=classes, time=time)
    _check_groups(names, group)
    with one_sentence():
        encoder = TableEncoder().fit(used.select(chosen))
    recipe = TableRecipe(target, group, encoder.columns_, by_file)
    if classes:
        notes.insert(0, said_of(y, target, task))
    notes += recipe.notes
    X = encoder.transform(used)
    if time is not None:
        X = X.with_columns(used[time])
    return PreparedRows(X, y, _as_array(names), kept, tuple(notes), classes), recipe


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
    needed = [plan.name for plan in recipe.columns if plan.kind != "left out"]
    check_columns([recipe.group], frame.columns, "the learners")
    check_columns([recipe.target] if with_target else [], frame.columns, "the target")
    check_columns(needed, frame.columns, "a predictor of the model")
    check_columns([] if time is None else [time], frame.columns, "the time")
    target = recipe.target if with_target else None
    used, y, names, kept, notes = _usable(frame, needed, target, recipe.group, classes=classes, time=time)
    return PreparedRows(used, y, _as_array(names), kept, tuple(notes), classes)
