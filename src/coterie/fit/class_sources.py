"""Classes out of core: labels become numbers as each learner is read, once it is known which there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.engines import Engine
from coterie.fit.out_of_core import RowSource
from coterie.rows.labels import class_labels, class_numbers

CALLER = "fit_sources"


@dataclass(frozen=True)
class ClassSource:
    """One learner's rows, whose response is the number of each row's class."""

    source: RowSource
    classes: Array

    @property
    def n_rows(self) -> int:
        """Number of rows, as far as is known without reading them."""
        return self.source.n_rows

    def read(self, most: int) -> tuple[Any, Any]:
        """Read the learner, at most ``most`` of its rows; return predictors and numbers of classes (n,).

        A number is the position of the label among the sorted ``classes`` of all learners.
        """
        X, y = self.source.read(most)
        if not len(y):
            return X, np.zeros(0)
        return X, class_numbers(class_labels(y, CALLER), self.classes, CALLER)


@dataclass(frozen=True)
class _LabelJob:
    source: RowSource
    most: int


def _labels_of(job: _LabelJob) -> Array:
    """Return the classes that occur in a source's rows."""
    labels = job.source.read(job.most)[1]
    return np.unique(class_labels(labels, CALLER)) if len(labels) else np.zeros(0)


def find_classes(sources: Mapping[Any, RowSource], most: int, engine: Engine) -> Array:
    """Return the sorted labels of all learners; each is read once, at most ``most`` rows.

    Numbers of classes must be the same for everybody, so all labels are known before a learner is fitted.
    """
    result = engine.map(_labels_of, [_LabelJob(source, most) for source in sources.values()])
    return known_classes([label for labels in result for label in labels.tolist()])


def known_classes(labels: Any) -> Array:
    """Return the sorted labels; refuse fewer than two."""
    classes = np.unique(class_labels(labels, CALLER)) if len(labels) else np.zeros(0)
    if len(classes) < 2:
        raise ValueError(f"{CALLER} needs rows of two classes at least. Got {classes.tolist()}.")
    return classes
