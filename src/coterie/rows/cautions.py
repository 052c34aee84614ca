"""What a reader should know about a table before trusting a number: sentences, not refusals.

A column may give the response away, number the rows or name the learner; the response may be a code; rows may
be few. A fit then runs as always, and its errors look better, or mean less, than the reader thinks. Each
caution names the column. Honest tables give none; see the tests.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.isotonic import isotonic_regression

from coterie._arrays import Array
from coterie._options import listed
from coterie.rows.learners import Learners


@dataclass(frozen=True)
class CautionRule:
    """From where on a table is worth a sentence."""

    # Share of the variance inside learners that one column explains. Of the tables of
    # benchmarks/quality/real_tables none has more than .99.
    determined: float = 0.999
    # Share that a line on a copy of the response leaves, up to rounding.
    copied: float = 1e-9
    # A column with a rank correlation below this does not explain so much. Of two values, a column that
    # tells them apart has .87.
    related: float = 0.8
    # Whole numbers may be codes of classes if there are no more.
    most_codes: int = 5
    # Rows for each coefficient of a line, all learners together.
    rows_each: int = 5
    # Numbered rows, or learners, may have gaps, and small tables have numbers by chance.
    gaps: float = 2.0
    fewest_rows: int = 20
    fewest_learners: int = 5
    # Two learners may share fewer different rows by chance.
    fewest_copied: int = 5
    # Pairs of ids that are alike and have a sentence of their own.
    most_named: int = 3
    # More rows show no more.
    most_rows: int = 5_000


CAUTION = CautionRule()
# If a caution says this, the fit has no other answer.
NOTHING_TO_LEARN = "so there is nothing to learn"


def _whole(values: Array) -> bool:
    return bool(np.array_equal(values, np.round(values)))


def _consecutive(values: Array) -> bool:
    """Tell whether different whole numbers follow each other, in any order, with some gaps."""
    return bool(values.max() - values.min() < CAUTION.gaps * len(values))


def _numbers_rows(column: Array, rows: Array) -> bool:
    """Tell whether a column numbers the rows, which stood in places ``rows`` (N,) of the table.

    It holds different whole numbers that rise or fall with the rows, or follow each other with few gaps.
    """
    if len(column) < CAUTION.fewest_rows or not _whole(column) or len(np.unique(column)) < len(column):
        return False
    steps = np.diff(column[np.argsort(rows)])
    return bool((steps > 0).all() or (steps < 0).all() or _consecutive(column))


def _names_learners(column: Array, learners: Learners) -> bool:
    """Tell whether a column has one number for each learner: its id, or consecutive ones."""
    firsts = column[learners.offsets[:-1]]
    distinct = len(np.unique(firsts)) == len(learners)
    if len(learners) < 2 or not distinct or not np.array_equal(column, firsts[learners.owner]):
        return False
    ids = learners.ids
    if ids.dtype.kind in "iuf":
        return bool(np.array_equal(firsts, ids.astype(float)))
    return len(learners) >= CAUTION.fewest_learners and _whole(firsts) and _consecutive(firsts)


def _unexplained_by_lines(x: Array, y: Array, owner: Array, counts: Array) -> float:
    """Return the share of the response's variance inside learners that least-squares lines on x leave.

    Each learner has a line of its own. ``x`` and ``y`` (N,) are of rows of learners ``owner`` (N,), who have
    ``counts`` (L,) rows. The share is adjusted for degrees of freedom, as in an adjusted R squared.
    """

    def centred(values: Array) -> Array:
        return values - (np.bincount(owner, values) / counts)[owner]

    x_centred, y_centred = centred(x), centred(y)
    squares, products = np.bincount(owner, x_centred * x_centred), np.bincount(owner, x_centred * y_centred)
    slopes = np.divide(products, squares, out=np.zeros_like(products), where=squares > 0)
    # A line goes through any two rows: each costs its learner two of its rows.
    freedom_left = max(len(y) - 2 * len(counts), 0) / max(len(y) - len(counts), 1)
    unexplained = float(np.sum((y_centred - slopes[owner] * x_centred) ** 2))
    return unexplained / (float(y_centred @ y_centred) * freedom_left) if freedom_left else 1.0


def _determines(x: Array, y: Array, owner: Array, counts: Array) -> str:
    """Say what is wrong with column x (N,) if it alone predicts the response y (N,); else return "".

    It does if lines, one for each learner, or one rising or falling function (isotonic regression) leave next
    to nothing of the variance inside learners.
    """
    unexplained_by_lines = _unexplained_by_lines(x, y, owner, counts)
    if unexplained_by_lines < CAUTION.copied:
        return f"is a copy of the response, maybe in other units, {NOTHING_TO_LEARN}: leave it out."
    squares_within = float(np.sum((y - (np.bincount(owner, y) / counts)[owner]) ** 2))
    order = np.argsort(x, kind="stable")
    # Rows with the same value get the same prediction.
    _, value_of_row = np.unique(x[order], return_inverse=True)
    rows_of_value = np.bincount(value_of_row)
    means = np.bincount(value_of_row, y[order]) / rows_of_value
    unexplained = []
    for rising in (True, False):
        fitted = isotonic_regression(means, sample_weight=rows_of_value, increasing=rising)[value_of_row]
        unexplained.append(float(np.sum((y[order] - fitted) ** 2)) / squares_within)
    determined = min(*unexplained, unexplained_by_lines) < 1 - CAUTION.determined
    return "alone nearly determines the response: leave it out if it is known later." if determined else ""


def _determining(learners: Learners) -> list[tuple[int, str]]:
    """Return the positions of columns that nearly determine the response, each with a caution about it.

    At most `CAUTION.most_rows` rows are looked at. Only columns with a high rank correlation, overall or
    inside learners, are tried, as fitting each would take long.
    """
    subset = np.arange(len(learners.y))
    if len(subset) > CAUTION.most_rows:
        subset = subset[np.linspace(0, len(subset) - 1, CAUTION.most_rows).astype(int)]
    X, y = learners.X[subset], learners.scalar_y[subset]
    owner = np.unique(learners.owner[subset], return_inverse=True)[1]
    counts = np.bincount(owner)
    # In ordinary units, for sums of squares.
    y = (y - y.mean()) / (np.abs(y - y.mean()).max() or 1.0)
    levels = (np.bincount(owner, y) / counts)[owner]
    if len(y) < CAUTION.fewest_rows or np.ptp(y - levels) < 1e-9:
        return []
    cautions_by_column = []
    for column in np.flatnonzero(np.ptp(X, axis=0) > 0).tolist():
        x = X[:, column] / np.abs(X[:, column]).max()
        if any(_related(*pair) for pair in ((x, y), _inside(x, y, owner, counts))):
            cautions_by_column.append((column, _determines(x, y, owner, counts)))
    return [(column, caution) for column, caution in cautions_by_column if caution]


def _inside(x: Array, y: Array, owner: Array, counts: Array) -> tuple[Array, Array]:
    """Return x and y (N,) standardised inside each learner: less its mean, over its standard deviation."""
    standardised = []
    for column in (x, y):
        centred = column - (np.bincount(owner, column) / counts)[owner]
        deviation = np.sqrt(np.bincount(owner, centred**2) / counts)[owner]
        standardised.append(np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 0))
    return standardised[0], standardised[1]


def _related(x: Array, y: Array) -> bool:
    """Tell whether predictor and response have a high rank correlation (Spearman), of either sign."""
    ranks = rankdata(np.column_stack([x, y]), axis=0)
    ranks -= ranks.mean(axis=0)
    norms = np.sqrt((ranks**2).sum(axis=0))
    return bool(abs(ranks[:, 0] @ ranks[:, 1]) > CAUTION.related * norms[0] * norms[1] > 0)


def _of_response(y: Array) -> Iterator[str]:
    """Yield cautions about a response y (N,) that has few distinct values: it may be a code of classes."""
    levels = np.unique(y)
    if len(levels) == 1:
        yield f"The response is the same in all rows, {NOTHING_TO_LEARN}."
    elif len(levels) == 2:
        yield (
            f"The response has two values only, {levels[0]:g} and {levels[1]:g}, and is fitted as a number: "
            "a prediction is an average of the two, not a class."
        )
    elif len(levels) <= CAUTION.most_codes and _whole(levels):
        yield (
            f"The response has {len(levels)} whole values only, from {levels[0]:g} to {levels[-1]:g}, and "
            "is fitted as a number: that is right for a rating or a count, and wrong for codes of classes."
        )


def _copies(learners: Learners) -> list[tuple[int, int]]:
    """Return pairs of learners with the same rows, in whatever order: the first that has them, and a copy.

    Pairs are of positions. Learners with few different rows may have the same ones by chance, and are left
    out. A hash of the sorted rows stands for them.
    """
    table, first_with_rows, pairs = np.column_stack([learners.X, learners.y]), dict[bytes, int](), []
    for j in range(len(learners)):
        rows = table[learners.span(j)]
        rows = rows[np.lexsort(rows.T)]
        # One more than the changes from row to row is the number of different rows.
        if 1 + np.count_nonzero((rows[1:] != rows[:-1]).any(axis=1)) < CAUTION.fewest_copied:
            continue
        first = first_with_rows.setdefault(sha256(rows.tobytes()).digest(), j)
        if first != j:
            pairs.append((first, j))
    return pairs


def alike_ids(ids: Iterable[Any]) -> tuple[str, ...]:
    """Say which ids are the same but for case, blanks and how their letters are composed.

    They may be one learner, whose rows would be cut in two. There is a sentence for each such group.
    """
    ids_by_spelling: dict[str, list[str]] = {}
    for learner in dict.fromkeys(ids):
        if isinstance(learner, str):
            plain_spelling = " ".join(unicodedata.normalize("NFKC", learner).casefold().split())
            ids_by_spelling.setdefault(plain_spelling, []).append(learner)
    return tuple(
        f"The ids {listed(alike)} differ by case, blanks or Unicode composition only: give them one "
        "spelling if they are one learner."
        for alike in ids_by_spelling.values()
        if len(alike) > 1
    )


def cautions(learners: Learners, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Return what a reader of a fit of these rows should know about the table, in sentences.

    Nothing is refused: a fit runs as always. ``names`` are those of the columns; None: they have no names but
    their positions.
    """

    def column(position: int) -> str:
        return f"Column {names[position]!r}" if names else f"Column {position}"

    # Of classes it is known that they are no numbers.
    sentences = [] if learners.loss.bounds is not None else list(_of_response(learners.scalar_y))
    n_rows, n_features = len(learners.y), learners.n_features
    if n_rows < CAUTION.rows_each * (n_features + 1):
        many = f"{n_features} predictor{'s' if n_features > 1 else ''}"
        sentences.append(
            f"There are {n_rows} rows for {many}, which is few: errors and gains are known badly."
        )
    sentences += [
        f"{column(position)} {what}"
        for position, what in (_determining(learners) if learners.y.shape[1] == 1 else ())
    ]
    alike = alike_ids(learners.ids.tolist())
    sentences += alike[: CAUTION.most_named]
    if len(alike) > CAUTION.most_named:
        sentences.append(f"Of {len(alike) - CAUTION.most_named} further learners the ids are as much alike.")
    copies = _copies(learners)
    if copies:
        first, second = (str(learners.ids[j]) for j in copies[0])
        others = f", and {len(copies) - 1} more copies exist" if len(copies) > 1 else ""
        sentences.append(
            f"Learners {first} and {second} have the same rows{others}: rows held out of one stand in the "
            "other, so that the errors of both look too low."
        )
    for position in range(n_features):
        values = learners.X[:, position]
        if len(learners) > 1 and _numbers_rows(values, learners.rows):
            sentences.append(
                f"{column(position)} seems to number the rows: leave it out unless it is a time."
            )
        elif _names_learners(values, learners):
            sentences.append(
                f"{column(position)} seems to name the learner, who is known already: leave it out."
            )
    return tuple(sentences)
