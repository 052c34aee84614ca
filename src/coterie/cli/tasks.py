"""Is a target a class or a number? What its column holds says so, unless the user does."""

from __future__ import annotations

from typing import Any

import polars as pl

from coterie._options import brief, listed
from coterie.cli.errors import CommandError

AUTO, CLASSIFICATION, REGRESSION = "auto", "classification", "regression"
TASKS = (AUTO, CLASSIFICATION, REGRESSION)
# Text with more distinct entries than this is rather a name or a badly written number than a class.
MOST_CLASSES = 50


def check_task(task: str) -> str:
    """Refuse a task that is not known."""
    if task not in TASKS:
        raise CommandError(f"--task must be one of {', '.join(TASKS)}. Got {task!r}.")
    return task


def labels_of(values: pl.Series) -> pl.Series:
    """Return a target's entries as labels of classes, null where there is none (also NaN and empty texts).

    Texts lose the spaces around them, so that "yes" and "yes " are one class.
    """
    if values.dtype.is_float():
        return values.set(~values.is_finite().fill_null(False), None)
    if values.dtype == pl.String:
        stripped = values.str.strip_chars()
        return stripped.set(stripped == "", None)
    if values.dtype in (pl.Categorical, pl.Enum):
        return values.cast(pl.String)
    return values


def _are_numbers(texts: pl.Series) -> bool:
    """Tell whether most of the distinct texts are numbers: the others are then gaps written in words."""
    numbers = texts.cast(pl.Float64, strict=False).is_not_null()
    return 2 * int(numbers.sum()) > len(texts)


def task_of(values: pl.Series, task: str) -> str:
    """Return whether a target is fitted as classes or as numbers: ``task``, or as its entries show.

    Truth values, numbers of two values, and texts of few distinct entries are classes (each seen twice on
    average), unless most of these texts are numbers.
    """
    if task != AUTO:
        return task
    distinct = labels_of(values).drop_nulls().unique()
    kind = distinct.dtype
    if kind == pl.Boolean or (kind.is_numeric() and len(distinct) == 2):
        return CLASSIFICATION
    few_texts = kind == pl.String and 1 < len(distinct) <= min(MOST_CLASSES, len(values) // 2)
    return CLASSIFICATION if few_texts and not _are_numbers(distinct) else REGRESSION


def may_be_classes(values: pl.Series, task: str) -> bool:
    """Tell whether a site's target may be a class; with one value only, a site cannot know."""
    distinct = labels_of(values).drop_nulls().n_unique()
    return task_of(values, task) == CLASSIFICATION or (task == AUTO and distinct == 1)


def class_values(frame: pl.DataFrame, target: str) -> pl.Series:
    """Return the labels of a target, null where they are missing."""
    values = frame[target]
    if values.dtype.is_nested() or values.dtype.is_temporal() or values.dtype == pl.Object:
        raise CommandError(
            f"The target {target!r} holds entries of type {values.dtype}, which are no classes."
        )
    return labels_of(values)


def said_of(y: Any, target: str, task: str) -> str:
    """Say that a target is taken for classes, and how to fit it as numbers; refuse one class only."""
    import numpy as np

    classes = np.unique(y)
    if len(classes) == 1:
        raise CommandError(
            f"The target {target!r} has the one class {brief(classes.tolist()[0])}: "
            "there is nothing to tell apart."
        )
    text = f"The target {target!r} holds {len(classes)} classes: {listed(classes.tolist())}."
    surely_classes = task == CLASSIFICATION or classes.dtype.kind not in "biuf"
    return text if surely_classes else f"{text} To fit it as numbers, pass --task regression."
