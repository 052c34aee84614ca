"""Hostile inputs for the estimator: a good table, bent in one to three ways.

A way keeps the answer (another container, type, order or unit) or may spoil it (gaps, dates, shapes, ...).
"""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse

from coterie import CoterieRegressor
from coterie.datasets import make_linear_learners

DATA = make_linear_learners(6, n_rows=20, coefficients=[[2, 0, 1], [-2, 1, 0]], random_state=0)


class Stubborn:
    """Refuses to be a number, to be compared and to be shown."""

    __hash__ = object.__hash__

    def __float__(self) -> float:
        raise RuntimeError("no number")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparison")

    def __repr__(self) -> str:
        raise RuntimeError("no text")


JUNK: list[Any] = [
    None, "", "strange", "²", "\x1b[31m\u202e", 0, -1, 1.5, 10**30, 10**5000, float("nan"), float("inf"),
    True, 1j, b"x", [], {}, (), ["a", 1], {"a": 1}, np.zeros(3), np.array(["x"]), object(), Stubborn(),
    Stubborn, int, abs, pd.DataFrame({"a": [1]}), np.float64(2.5), np.int64(3), Decimal("1.5"),
    datetime.date(2020, 1, 1),
]  # fmt: skip
OPTIONS = tuple(CoterieRegressor().get_params())
GAPS: list[Any] = [
    None,
    float("nan"),
    float("inf"),
    float("-inf"),
    pd.NA,
    pd.NaT,
    np.ma.masked,
    Decimal("sNaN"),
]
ODD: list[Any] = [
    10**400, -(10**400), 1e308, -1e30, 1e-320, 1j, "", "x", "\x00", b"\xff", [1], (1, 2), {}, {1}, np.ones(2),
    Stubborn(), datetime.datetime(2020, 1, 1), datetime.timedelta(1), np.datetime64("2020"),
    np.timedelta64(1, "s"), pd.Timestamp("2020"), Fraction(1, 3), Decimal("1e999"), np.longdouble("1e4000"),
    int, True,
]  # fmt: skip


@dataclass
class Bent:
    """What is passed, and what must come of it.

    Parameters
    ----------
    X, y, groups, weights : object
        As for ``fit``.
    options : dict
        Of the estimator.
    rows : ndarray
        Where each row stood in the good table.
    plain : tuple
        X, y and groups in their new order, units and names, before anything was spoiled.
    spoiled : bool
        Whether the answer may be another one, or a refusal.
    hopeless : str
        What cannot be answered whatever else is passed: "X", "y" or "groups"; empty: nothing.
    changes : list of str
        How it was bent.
    """

    X: Any = field(default_factory=DATA.X.copy)
    y: Any = field(default_factory=DATA.y.copy)
    groups: Any = field(default_factory=DATA.groups.copy)
    weights: Any = None
    options: dict[str, Any] = field(default_factory=dict)
    rows: Any = field(default_factory=lambda: np.arange(len(DATA.y)))
    plain: tuple[Any, Any, Any] = ()  # type: ignore[assignment]
    spoiled: bool = False
    hopeless: str = ""
    changes: list[str] = field(default_factory=list)


def _objects(values: Any) -> Any:
    array = np.empty(np.shape(values), dtype=object)
    array[...] = np.asarray(values).tolist()
    return array


def _names(X: Any) -> list[str]:
    return [f"x{k}" for k in range(np.shape(X)[1])]


def _frame(X: Any) -> pd.DataFrame:
    return pd.DataFrame(X, columns=_names(X))


# Ways that keep rows where they are and change what holds them.
TABLES: dict[str, Callable[[Any], Any]] = {
    "lists": lambda X: X.tolist(),
    "tuples": lambda X: tuple(map(tuple, X.tolist())),
    "list of rows": list,
    "pandas": _frame,
    "pandas, numbered columns": pd.DataFrame,
    "pandas, columns of pairs": lambda X: pd.DataFrame(
        X, columns=pd.MultiIndex.from_product([["a"], range(3)])
    ),
    "pandas, nullable": lambda X: _frame(X).convert_dtypes(),
    "pandas, arrow": lambda X: _frame(X).astype("float64[pyarrow]"),
    "pandas, sparse": lambda X: _frame(X).astype(pd.SparseDtype(float, 0.0)),
    "pandas, objects": lambda X: _frame(X).astype(object),
    "pandas, an index of its own": lambda X: _frame(X).set_axis(np.arange(len(X))[::-1] * 7),
    "polars": lambda X: pl.DataFrame(X, schema=_names(X)),
    "pyarrow": lambda X: pa.table({name: X[:, k] for k, name in enumerate(_names(X))}),
    "objects": _objects,
    "texts": lambda X: np.array([[repr(v) for v in row] for row in X.tolist()]),
    "bytes": lambda X: np.array([[repr(v) for v in row] for row in X.tolist()]).astype("S"),
    "decimals": lambda X: np.array([[Decimal(v) for v in row] for row in X.tolist()]),
    "column by column": np.asfortranarray,
    "a view with gaps": lambda X: np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3],
    "backwards in memory": lambda X: X[::-1, ::-1].copy()[::-1, ::-1],
    "read only": lambda X: np.frombuffer(X.tobytes()).reshape(X.shape),
    "the other byte order": lambda X: X.astype(">f8"),
    "long doubles": lambda X: X.astype(np.longdouble),
    "masked, nothing hidden": np.ma.masked_array,
}
RESPONSES: dict[str, Callable[[Any], Any]] = {
    "y in a list": lambda y: y.tolist(),
    "y in pandas": lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
    "y in polars": pl.Series,
    "y in pyarrow": pa.array,
    "y of objects": _objects,
    "y of texts": lambda y: [repr(v) for v in y.tolist()],
    "y of fractions": lambda y: [Fraction(v) for v in y.tolist()],
    "y in a column": lambda y: y[:, None],
    "y nullable": lambda y: pd.Series(y).convert_dtypes(),
    "y of long doubles": lambda y: y.astype(np.longdouble),
}
IDS: dict[str, Callable[[str], Any]] = {
    "ids of pairs": lambda i: (i, 1),
    "ids of bytes": str.encode,
    "ids of integers": lambda i: int(i[-2:]) + 2**62,
    "ids of huge integers": lambda i: (int(i[-2:]) - 3) * 10**30,
    "ids of floats": lambda i: float(i[-2:]) / 3,
    "ids of dates": lambda i: datetime.date(2020, 1, 1 + int(i[-2:])),
    "long ids": lambda i: i * 2000,
    "ids that end in NUL": lambda i: "a" + "\0" * int(i[-2:]),
    "ids of control characters": lambda i: f"\x1b[3{i[-1]}m\u202e\r\n",
    "ids of half characters": lambda i: f"\ud83d{i[-1]}",
    "formulas as ids": lambda i: f"=cmd|{i[-1]}",
    "ids of several types": lambda i: ("0", 1, 2.5, b"3", ("4",), frozenset("5"))[int(i[-1])],
}
ID_LISTS: dict[str, Callable[[Any], Any]] = {
    "ids in a list": list,
    "ids in a tuple": tuple,
    "ids in pandas": pd.Series,
    "ids as categories": pd.Categorical,
    "ids in polars": pl.Series,
    "ids in a column": lambda ids: np.array(ids)[:, None],
    "ids in an index": pd.Index,
}


def bend_units(bent: Bent, draw: random.Random) -> None:
    """Give columns other units."""
    powers = [draw.choice((0, 0, -20, 30, -130, 130, -600, 600, -900, 900)) for _ in range(bent.X.shape[1])]
    bent.X = np.ldexp(bent.X, powers)
    bent.changes.append(f"columns times 2**{powers}")


def bend_order(bent: Bent, draw: random.Random) -> None:
    """Put rows and columns into another order."""
    seed = draw.randrange(1000)
    rows = np.random.default_rng(seed).permutation(len(bent.y))
    columns = np.random.default_rng(seed).permutation(bent.X.shape[1])
    bent.X, bent.y, bent.groups = bent.X[rows][:, columns], bent.y[rows], bent.groups[rows]
    bent.rows = rows
    bent.changes.append(f"rows and columns in order {seed}")


def bend_weights(bent: Bent, draw: random.Random) -> None:
    """Weigh all rows alike."""
    weight = draw.choice((1.0, 1e308, 1e-310, 7, True))
    bent.weights = np.full(len(bent.y), weight)
    bent.changes.append(f"weights of {weight}")


def spoil_cell(bent: Bent, draw: random.Random) -> None:
    """Put something odd into a cell."""
    where, value = draw.choice(("X", "X", "y", "groups")), draw.choice(GAPS + ODD)
    array = _objects(getattr(bent, where))
    place = tuple(draw.randrange(size) for size in array.shape)
    array[place] = value
    setattr(bent, where, array)
    finite = where == "groups" and isinstance(value, float) and abs(value) == float("inf")
    bent.hopeless = where if any(value is gap for gap in GAPS) and not finite else ""
    bent.changes.append(f"{_said(value)} in {where}")


def spoil_mask(bent: Bent, draw: random.Random) -> None:
    """Hide a cell."""
    where = draw.choice(("X", "y", "groups"))
    values = getattr(bent, where)
    mask = np.zeros(np.shape(values), dtype=bool)
    mask.flat[draw.randrange(mask.size)] = True
    setattr(bent, where, np.ma.masked_array(values, mask=mask))
    bent.hopeless = where
    bent.changes.append(f"a hidden entry in {where}")


def spoil_type(bent: Bent, draw: random.Random) -> None:
    """Give everything another type."""
    where, kind = (
        draw.choice(("X", "y")),
        draw.choice(("datetime64[s]", "timedelta64[s]", complex, "V8", bool)),
    )
    with np.errstate(invalid="ignore"):
        setattr(bent, where, (getattr(bent, where) * 1e6).astype(int).astype(kind))
    bent.hopeless = where if kind is not bool else ""
    bent.changes.append(f"{where} of {kind}")


def spoil_shape(bent: Bent, draw: random.Random) -> None:
    """Give everything another shape."""
    shapes: dict[str, Callable[[Any], Any]] = {
        "no rows": lambda v: v[:0],
        "one row": lambda v: v[:1],
        "a row less": lambda v: v[:-1],
        "one dimension less": lambda v: v[..., 0],
        "one dimension more": lambda v: v[..., None, None],
        "two columns": lambda v: np.column_stack([v, v]),
        "ragged": lambda v: [v.tolist()[0], *([1, 2] * len(v))],
        "a generator": iter,
        "a mapping": lambda v: dict(enumerate(v.tolist())) if v.ndim == 1 else {"a": v},
        "a text": lambda v: "hello",
        "nothing": lambda v: None,
        "sparse": lambda v: scipy.sparse.csr_array(np.atleast_2d(np.arange(len(v)))),
        "records": lambda v: np.array([(1.0, 2)] * len(v), dtype=[("a", float), ("b", int)]),
        "no columns": lambda v: v[:, :0] if v.ndim == 2 else v,
        "one constant": lambda v: np.repeat(v[:1], len(v), axis=0),
    }
    where, shape = draw.choice(("X", "y", "groups")), draw.choice(list(shapes))
    setattr(bent, where, shapes[shape](getattr(bent, where)))
    bent.changes.append(f"{where}: {shape}")


def spoil_size(bent: Bent, draw: random.Random) -> None:
    """Give the response extreme units."""
    factor = draw.choice((1e-320, 1e-100, 1e-71, 1e71, 1e100, 1e300))
    bent.y = bent.y * factor
    bent.changes.append(f"y times {factor:g}")


def spoil_weights(bent: Bent, draw: random.Random) -> None:
    """Put something odd among the weights."""
    weights = _objects(np.ones(len(bent.y)))
    value = draw.choice([*GAPS, *ODD, -1, 0])
    weights[draw.randrange(len(weights))] = value
    bent.weights = weights
    bent.changes.append(f"{_said(value)} among the weights")


def spoil_columns(bent: Bent, draw: random.Random) -> None:
    """Make a table with odd columns."""
    changes: dict[str, Callable[[Any], Any]] = {
        "a column twice": lambda X: pd.DataFrame(X, columns=["a", "a", "b"]),
        "categories": lambda X: _frame(X).assign(c=pd.Categorical(np.arange(len(X)) % 3)),
        "periods": lambda X: _frame(X).assign(c=pd.period_range("2020", periods=len(X))),
        "texts": lambda X: _frame(X).assign(c="red"),
        "lists": lambda X: pl.DataFrame(X).with_columns(c=pl.lit([[1]] * len(X))),
        "nulls": lambda X: pl.DataFrame(X).with_columns(c=None),
        "lazy": lambda X: pl.DataFrame(X).lazy(),
        "structs": lambda X: pl.DataFrame(X).with_columns(c=pl.struct(a=1)),
        "gaps": lambda X: _frame(X).astype("Float64").assign(c=pd.array([None] * len(X), dtype="Int64")),
        "a name that is no text": lambda X: pd.DataFrame(X, columns=["a", 1, None]),
    }
    change = draw.choice(list(changes))
    bent.X = changes[change](bent.X)
    bent.changes.append(f"a table with {change}")


def spoil_option(bent: Bent, draw: random.Random) -> None:
    """Give an option an odd value."""
    name, value = draw.choice(OPTIONS), draw.choice(JUNK)
    bent.options[name] = value
    bent.changes.append(f"{name}={_said(value)}")


def _said(value: Any) -> str:
    try:
        text = ascii(value)
    except (RuntimeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= 40 else f"{text[:37]}..."


def _hold(bent: Bent, draw: random.Random) -> None:
    """Put rows, responses and ids into other containers, where they are plain arrays still."""
    for place, (where, changes) in enumerate((("X", TABLES), ("y", RESPONSES))):
        values, plain = getattr(bent, where), bent.plain[place]
        same = type(values) is np.ndarray and (values.dtype, values.shape) == (plain.dtype, plain.shape)
        if same and draw.random() < 0.7:
            change = draw.choice(list(changes))
            setattr(bent, where, changes[change](values))
            bent.changes.append(change)
    if bent.groups is bent.plain[2] and bent.groups.dtype.kind == "U" and draw.random() < 0.5:
        change = draw.choice(list(ID_LISTS))
        bent.groups = ID_LISTS[change](bent.groups.tolist())
        bent.changes.append(change)


def bend_names(bent: Bent, draw: random.Random) -> None:
    """Give learners other names."""
    change = draw.choice(list(IDS))
    names = {i: IDS[change](i) for i in dict.fromkeys(DATA.groups.tolist())}
    groups = np.empty(len(bent.y), dtype=object)
    groups[:] = [names[i] for i in bent.groups.tolist()]
    bent.groups = groups
    bent.changes.append(change)


def spoil_groups(bent: Bent, draw: random.Random) -> None:
    """Add rows that are groups of one."""
    n = draw.choice((300, 3_000, 30_000))
    X, y, groups = bent.plain
    more = np.arange(n) % len(y)
    names = np.array([f"one of {n}: {k}" for k in range(n)])
    bent.X, bent.y = np.concatenate([X, X[more]]), np.concatenate([y, y[more]])
    bent.groups = np.concatenate([np.asarray(groups).astype(str), names])
    bent.weights = None
    bent.changes.append(f"{n} groups of one")


KEEPING = (bend_units, bend_order, bend_weights, bend_names)
SPOILING = (
    *(spoil_cell, spoil_cell, spoil_mask, spoil_type, spoil_shape, spoil_shape),
    *(spoil_size, spoil_weights, spoil_columns, spoil_option, spoil_option, spoil_groups),
)


def bend_table(draw: random.Random) -> Bent:
    """Return a bent table: one in three keeps its answer.

    Parameters
    ----------
    draw : random.Random
        What decides.

    Returns
    -------
    Bent
        What to pass.
    """
    bent = Bent()
    for change in sorted(draw.sample(KEEPING, draw.randrange(4)), key=KEEPING.index):
        change(bent, draw)
    bent.plain = bent.X, bent.y, bent.groups
    if draw.random() < 0.65:
        bent.spoiled = True
        draw.choice(SPOILING)(bent, draw)
    _hold(bent, draw)
    return bent
