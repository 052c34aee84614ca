"""Golden files: predictions and messages of a few dozen fits, for landings that must not change an answer.

    python benchmarks/golden.py           compare this state with the golden files, bit by bit
    python benchmarks/golden.py --record  write them anew, where an answer changed on purpose

A case gives named arrays: predictions, labels, gains, intervals, or what stands in messages, field by field
in the order of their declaration, so that another name for a field changes nothing. Another machine may add
in another order: then the largest relative difference is told, and 1e-9 is allowed. Writes ``golden/*.npz``.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")

import argparse
import dataclasses
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from coterie import CoterieClassifier, CoterieRegressor
from coterie.datasets import make_linear_learners, make_logistic_learners, make_stress
from coterie.federated import answer, coordinate, decode, encode, make_site, predict, score, share
from coterie.federated.moments import conclude_moments, knots_for, open_moments, site_model

HERE = Path(__file__).parent / "golden"
ALLOWED = 1e-9
DIGEST = re.compile(rb"'?[0-9a-f]{64}'?")
Arrays = dict[str, np.ndarray]


def _gains(model: Any) -> Arrays:
    return {f"gains {name}": np.asarray(model.gains_[name]) for name in model.gains_}


def _fresh(data: Any) -> tuple[Any, Any]:
    """Return rows to predict: those of the fit, moved a little."""
    rng = np.random.default_rng(7)
    return data.X + 0.1 * rng.standard_normal(data.X.shape), data.groups


def _regression(data: Any, more: Any = None, **options: Any) -> Arrays:
    model = CoterieRegressor(**{"n_bootstrap": 10, **options}).fit(data.X, data.y, groups=data.groups)
    X, groups = _fresh(data)
    found = {"labels": model.learner_labels_, "predictions": model.predict(X, groups=groups), **_gains(model)}
    for using in ("alone", "others"):
        found[f"predictions {using}"] = model.predict(X, groups=groups, using=using)
    return {**found, **(more(model, X, groups) if more else {})}


def _classification(data: Any, **options: Any) -> Arrays:
    model = CoterieClassifier(**{"n_bootstrap": 10, **options}).fit(data.X, data.y, groups=data.groups)
    X, groups = _fresh(data)
    chances = model.predict_proba(X, groups=groups)
    return {"labels": model.learner_labels_, "probabilities": chances, **_gains(model)}


def _intervals(model: Any, X: Any, groups: Any) -> Arrays:
    return {"intervals": model.predict_interval(X, groups=groups)}


def _newcomers(model: Any, X: Any, groups: Any) -> Arrays:
    few = groups == np.unique(groups)[0]
    admission = model.admit(X[few], X[few].sum(axis=1), groups=np.repeat("new", few.sum()))
    return {"admitted": np.asarray(admission)} if np.asarray(admission).dtype != object else {}


def _table() -> Arrays:
    data = _linear()
    frame = pd.DataFrame(data.X, columns=list("abcde"))
    frame["sort"] = np.where(data.X[:, 0] > 0, "high", "low")
    frame.loc[::17, "b"] = np.nan
    frame["learner"] = data.groups
    model = CoterieRegressor(group_column="learner", n_bootstrap=0).fit(frame, data.y)
    return {"predictions": model.predict(frame), **_gains(model)}


def values_in(message: Any) -> Iterator[bytes]:
    """Give out what stands in a message, in the order of its fields."""
    if dataclasses.is_dataclass(message):
        for field in dataclasses.fields(message):
            yield from values_in(getattr(message, field.name))
    elif isinstance(message, Mapping):
        for key, value in message.items():
            yield from (*values_in(key), *values_in(value))
    elif isinstance(message, list | tuple):
        for value in message:
            yield from values_in(value)
    elif isinstance(message, np.ndarray):
        yield str((message.dtype.str, message.shape)).encode() + message.tobytes()
    else:
        # Digests are of bytes, which hold the names of fields and the version.
        text = message if isinstance(message, bytes) else repr(message).encode()
        yield b"digest" if DIGEST.fullmatch(text) else text


def _content(message: Any) -> np.ndarray:
    return np.frombuffer(b"\0".join(values_in(decode(encode(message)))), dtype=np.uint8)


def _sites(data: Any, **own: Any) -> dict[str, Any]:
    return {
        str(site): make_site(data.X[data.groups == site], data.y[data.groups == site], site=str(site), **own)
        for site in np.unique(data.groups)
    }


def _by_models(data: Any, using: str = "verdict", **own: Any) -> Arrays:
    sites = _sites(data, **own)
    shares = [share(site) for site in sites.values()]
    scores = [score(site, shares) for site in sites.values()]
    found: Arrays = {}
    for kind, messages in (("share", shares), ("score", scores)):
        found |= {f"{kind} {place}": _content(message) for place, message in enumerate(messages)}
    asking, turn = coordinate(shares, scores), 0
    try:
        question = next(asking)
        while True:
            found[f"question {turn}"] = _content(question)
            replies = [answer(sites[m.site], shares, question, n_replicates=0) for m in question.members]
            found |= {f"answer {turn} {place}": _content(each) for place, each in enumerate(replies)}
            question, turn = asking.send(replies), turn + 1
    except StopIteration as end:
        conclusion = end.value
    found["conclusion"] = _content(conclusion)
    for site in conclusion.labels:
        rows = data.X[data.groups == site]
        found[f"predictions {site}"] = np.asarray(predict(rows, site, shares, conclusion, using=using))
    return found


def _by_moments(data: Any) -> Arrays:
    sites = _sites(data, candidates=["ridge"], seed=0)

    def moments(site: Any, knots: Any) -> Any:
        rows = site.learners
        named = {"site": site.name, "columns": site.columns, "target": site.target, "seed": site.seed}
        return open_moments(rows.X, rows.scalar_y, knots=knots, **named)

    straight = [moments(site, ()) for site in sites.values()]
    bent = [
        moments(site, knots_for(straight, mine)) for site, mine in zip(sites.values(), straight, strict=True)
    ]
    found = {f"moments {place}": _content(message) for place, message in enumerate(bent)}
    pooled = conclude_moments(bent)
    found["conclusion"] = _content(pooled.conclusion)
    for site in pooled.conclusion.labels:
        own = site_model(sites[site], pooled)
        found[f"predictions {site}"] = own.predict(data.X[data.groups == site])
    return found


def _linear(n_truths: int = 3, rows: int = 40, learners: int = 12, **more: Any) -> Any:
    options = {"n_features": 5, "noise_variance": 1.0, "random_state": 1, **more}
    return make_linear_learners(learners, n_truths, rows, **options)


def _few() -> Any:
    return _linear(2, 30, 6)


CASES: dict[str, Callable[[], Arrays]] = {
    "default": lambda: _regression(_linear(), _intervals),
    "default, one truth": lambda: _regression(_linear(1), _newcomers),
    "default, curved": lambda: _regression(make_stress("three curved truths", 1)),
    "default, outliers": lambda: _regression(make_stress("2% outliers x 20, three truths", 1)),
    "linear candidates": lambda: _regression(_linear(), _intervals, candidates="linear"),
    "forest candidate": lambda: _regression(_few(), candidates=["rf"]),
    "nested averages": lambda: _regression(_linear(), _newcomers, candidates="linear", refine="average"),
    "plain averages": lambda: _regression(
        _linear(), candidates="linear", refine="average", collaboration="average"
    ),
    "pooled": lambda: _regression(_linear(), candidates="linear", collaboration="pooled"),
    "local": lambda: _regression(_linear(), candidates="linear", collaboration="local"),
    "no refinement": lambda: _regression(_linear(), candidates="linear", refine=None),
    "effort fast": lambda: _regression(_linear(), _intervals, effort="fast"),
    "K given": lambda: _regression(_linear(), candidates="linear", n_clusters=2),
    "K by the gap": lambda: _regression(_linear(), candidates="linear", refine=None, n_clusters="gap"),
    "K by the eigengap": lambda: _regression(
        _linear(), candidates="linear", refine=None, n_clusters="eigengap"
    ),
    "standardised": lambda: _regression(_linear(), candidates="linear", standardize="learner"),
    "robust": lambda: _regression(_linear(), candidates="linear", robust=True, refine="average"),
    "uneven sizes": lambda: _regression(_linear(rows=np.r_[300, np.full(11, 20)])),
    "tiny learners": lambda: _regression(_linear(2, np.r_[np.full(6, 60), np.full(20, 3)], 26)),
    "another seed": lambda: _regression(_linear(), random_state=5),
    "a table": _table,
    "classes": lambda: _classification(make_logistic_learners(12, random_state=1)),
    "classes, linear": lambda: _classification(
        make_logistic_learners(12, random_state=1), candidates="linear"
    ),
    "classes, local": lambda: _classification(
        make_logistic_learners(12, random_state=1), candidates="linear", collaboration="local"
    ),
    "three classes": lambda: _classification(make_logistic_learners(9, n_classes=3, random_state=1)),
    "rare class": lambda: _classification(make_logistic_learners(12, n_rows=80, share=0.1, random_state=1)),
    "messages, ridge": lambda: _by_models(_few(), candidates=["ridge"], seed=0),
    "messages, default": lambda: _by_models(_few(), candidates=["default"], seed=0),
    "messages, forest": lambda: _by_models(_few(), candidates=["rf"], seed=0),
    "messages, classes": lambda: _by_models(
        make_logistic_learners(6, random_state=1), candidates=["logistic"], seed=0, classes=[0, 1]
    ),
    "messages, moments": lambda: _by_moments(_few()),
    "messages, moments, uneven": lambda: _by_moments(_linear(2, np.r_[200, np.full(7, 30)], 8)),
}


def made(name: str) -> Arrays:
    """Return the arrays of a case; text is kept as bytes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        arrays = {key: np.asarray(value) for key, value in CASES[name]().items()}
    return {
        key: value if value.dtype.kind in "fiub" else np.char.encode(value.astype(str), "utf-8")
        for key, value in arrays.items()
    }


def apart(old: Arrays, new: Arrays) -> tuple[float, str]:
    """Return the largest relative difference of two cases and where it is; 0 where all bits are equal."""
    if set(old) != set(new):
        return np.inf, f"other names: {', '.join(sorted(set(old) ^ set(new)))}"
    worst, where = 0.0, ""
    for key in old:
        if old[key].dtype == new[key].dtype and old[key].tobytes() == new[key].tobytes():
            continue
        distance = np.inf
        if old[key].shape == new[key].shape and old[key].dtype.kind == "f" == new[key].dtype.kind:
            scale = max(float(np.nanmax(np.abs(old[key]), initial=0)), 1e-300)
            same_gaps = np.array_equal(np.isfinite(old[key]), np.isfinite(new[key]))
            distance = (
                float(np.nanmax(np.abs(old[key] - new[key]), initial=0)) / scale if same_gaps else np.inf
            )
        if distance >= worst:
            worst, where = distance, key
    return worst, where


def _file(name: str) -> Path:
    return HERE / f"{name.replace(', ', '-').replace(' ', '_')}.npz"


def main() -> None:
    """Record or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write the golden files anew")
    parser.add_argument("--only", nargs="*", choices=list(CASES), default=list(CASES))
    chosen = parser.parse_args()
    HERE.mkdir(exist_ok=True)
    worst, equal = 0.0, 0
    for name in chosen.only:
        arrays = made(name)
        if chosen.record:
            np.savez_compressed(_file(name), **arrays)
            print(f"{name}: {len(arrays)} arrays", flush=True)
            continue
        with np.load(_file(name)) as known:
            distance, where = apart(dict(known), arrays)
        worst, equal = max(worst, distance), equal + (distance == 0)
        print(f"{name}: " + ("equal" if distance == 0 else f"{distance:.1e} in {where}"), flush=True)
    if not chosen.record:
        print(f"{equal} of {len(chosen.only)} cases are equal bit by bit; largest difference {worst:.1e}.")
        sys.exit(int(worst > ALLOWED))


if __name__ == "__main__":
    main()
