"""What liars do to honest sites: their partition, and their errors beside those without liars.

    python benchmarks/federated/liars.py [--draws 8] [--liars 1 3] [--only WORDS] [--classes] [--table]

Of twelve sites of three truths, sixty rows each, one or three lie, all in the coterie of the first truth
(with two classes each of another). ARI is of the honest sites among themselves. The unit of errors is excess
over noise: the mean squared distance of predictions from the signal on new rows. It is divided by that of an
oracle, who knows who lies and leaves them out; once for all honest sites, and once for those of the attacked
coterie. Sites send models, or exact moments; from moments a site predicts by the line of its coterie, or at
home. With ``--classes`` the response is one of two classes, sites send models and have 200 rows, and the
signal is the true probability.

Each run is a line of liars.csv, draw by draw; runs that are there are not run again. ``--table`` prints the
means over draws.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections import defaultdict
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from lies import LIES, MOMENT_LIES, PLAUSIBLE, PLAUSIBLE_MOMENTS, Lie
from sklearn.metrics import adjusted_rand_score

from coterie.datasets import make_linear_learners, make_logistic_learners
from coterie.federated import (
    Conclusion,
    ProtocolError,
    Share,
    Site,
    answer,
    coordinate,
    make_site,
    predict,
    score,
    share,
)
from coterie.federated.moments import conclude_moments, open_moments, site_model

SITES, TRUTHS, FEATURES = 12, 3, 6
KEY = ("sends", "lie", "liars", "draw")
VALUES = ("ari", "excess", "excess attacked", "oracle", "oracle attacked", "named")
MODELS, CLASSES, LINE, HOME = "models", "models, two classes", "moments, by the line", "moments, at home"


@lru_cache(maxsize=8)
def drawn(seed: int, n_liars: int, classes: bool) -> tuple[Any, list[tuple[Any, Any]], list[Site]]:
    """Return a draw, the rows of its sites, and the honest sites; the last ones lie, of the first truth."""
    honest = SITES - n_liars
    labels = [*(place % TRUTHS for place in range(honest)), *[0] * n_liars]
    if classes:
        data: Any = make_logistic_learners(SITES, TRUTHS, n_rows=200, n_features=FEATURES, random_state=seed)
    else:
        shape = {"n_rows": 60, "n_features": FEATURES, "labels": labels}
        data = make_linear_learners(SITES, TRUTHS, random_state=seed, **shape)
    rows = [(data.X[data.groups == site], data.y[data.groups == site]) for site in data.learner_ids]
    return data, rows, [site_of(data, place, *rows[place], seed, classes) for place in range(honest)]


def site_of(data: Any, place: int, X: Any, y: Any, seed: int, classes: bool) -> Site:
    """Return a site."""
    candidates, more = (["logistic"], {"classes": [0, 1]}) if classes else (["ridge"], {})
    return make_site(X, y, site=str(data.learner_ids[place]), candidates=candidates, seed=seed, **more)


def concluded(sites: list[Site], lie: Lie | None, liars: set[str]) -> tuple[Conclusion, list[Share]]:
    """Run the protocol of those who send models."""
    shares = [share(site) for site in sites]
    if lie is not None:
        shares = [lie.share(each, shares) if each.site in liars else each for each in shares]
    scores = []
    for site in sites:
        told = score(site, shares)
        if lie is not None and site.name in liars:
            told = lie.score(told)
        scores.append(told)
    asking, by_site = coordinate(shares, scores), {site.name: site for site in sites}
    try:
        question = next(asking)
        while True:
            replies = []
            for member in question.members:
                reply = answer(by_site[member.site], shares, question, n_replicates=0)
                replies.append(lie.answer(question, reply) if lie and member.site in liars else reply)
            question = asking.send(replies)
    except StopIteration as end:
        return end.value, shares


def new_rows(data: Any) -> np.ndarray:
    """Return rows that nobody has seen."""
    return np.random.default_rng(1).normal(size=(500, data.X.shape[1]))


def excess(predicted: Any, data: Any, place: int) -> float:
    """Return how far predictions of new rows are from the signal; of two classes of the second's."""
    signal = new_rows(data) @ data.coefficients[data.truth[place]]
    if signal.ndim > 1:
        signal, predicted = 1 / (1 + np.exp(signal[:, 0] - signal[:, 1])), predicted[:, 1]
    return float(np.mean((predicted - signal) ** 2))


def by_models(
    data: Any, sites: list[Site], lie: Lie | None, liars: set[str]
) -> tuple[Conclusion, dict[str, Any]]:
    """Return the conclusion, and the excess errors of the honest sites."""
    found, shares = concluded(sites, lie, liars)
    names, X = [site.name for site in sites if site.name not in liars], new_rows(data)
    values = [
        excess(predict(X, name, shares, found), data, place) if name in found.labels else np.inf
        for place, name in enumerate(names)
    ]
    return found, {CLASSES if found.classes else MODELS: values}


def by_moments(
    data: Any, rows: list[tuple[Any, Any]], sites: list[Site], lie: Lie | None
) -> tuple[Conclusion, dict[str, Any]]:
    """Return the conclusion, and the excess errors of the honest sites, by the line and at home."""
    names, learners = tuple(f"x{k}" for k in range(FEATURES)), data.learner_ids.tolist()
    messages = [
        open_moments(X, y, site=site, columns=names, target="y", seed=0)
        for site, (X, y) in zip(learners, rows, strict=False)
    ]
    if lie is not None:
        honest = messages[: len(sites)]
        messages = honest + [lie.moments(each, honest) for each in messages[len(sites) :]]
    pooled, X = conclude_moments(messages), new_rows(data)
    values: dict[str, list[float]] = {LINE: [], HOME: []}
    for place, site in enumerate(sites):
        if site.name in pooled.conclusion.labels:
            line = pooled.pool.units.predictions(pooled.line(site.name), X)
            values[LINE].append(excess(line, data, place))
            values[HOME].append(excess(site_model(site, pooled).predict(X), data, place))
        else:
            for each in values.values():
                each.append(np.inf)
    return pooled.conclusion, values


def measured(
    sends: str, lie: Lie | None, n_liars: int, seed: int
) -> tuple[Conclusion | None, dict[str, Any]]:
    """Return the conclusion with a lie, or the oracle's without liars, and the honest sites' errors."""
    classes = sends == CLASSES
    data, rows, honest = drawn(seed, n_liars, classes)
    liars = set(data.learner_ids[len(honest) :].tolist())
    with_liars = list(rows[: len(honest)])
    if lie is not None:
        truth = data.coefficients[0]
        with_liars += [lie.rows(*rows[len(honest) + k], truth, k) for k in range(n_liars)]
    if sends not in (MODELS, CLASSES):
        return by_moments(data, with_liars, honest, lie)
    more = range(len(honest), len(with_liars))
    sites = [*honest, *(site_of(data, place, *with_liars[place], seed, classes) for place in more)]
    try:
        return by_models(data, sites, lie, liars)
    except ProtocolError:
        return None, {sends: [np.inf] * len(honest)}


@lru_cache(maxsize=32)
def oracle(sends: str, n_liars: int, seed: int) -> dict[str, Any]:
    """Return the errors of the honest sites among themselves."""
    return measured(sends, None, n_liars, seed)[1]


def judged(sends: str, name: str, n_liars: int, seed: int) -> Iterator[dict[str, Any]]:
    """Yield what a lie does in a draw."""
    lie = (MOMENT_LIES if sends == LINE else LIES)[name]
    data, _, honest = drawn(seed, n_liars, sends == CLASSES)
    found, errors = measured(sends, lie, n_liars, seed)
    attacked = data.truth[len(honest)]
    truth, liars = data.truth[: len(honest)], data.learner_ids[len(honest) :].tolist()
    # Who was left out is in nobody's coterie.
    known = found.labels if found is not None else {}
    labels = [known.get(site.name, -1 - place) for place, site in enumerate(honest)]
    text = " ".join(found.notes) if found is not None else ""
    named = found is not None and any(site in found.left_out or site in text for site in liars)
    for form, values in errors.items():
        without = np.array(oracle(sends, n_liars, seed)[form])
        parts = [
            part
            for each in (np.array(values), without)
            for part in (each.mean(), each[truth == attacked].mean())
        ]
        numbers = [round(float(adjusted_rand_score(truth, labels)), 4), *(float(f"{x:.4g}") for x in parts)]
        row = (form, name, n_liars, seed, *numbers, int(named))
        yield dict(zip((*KEY, *VALUES), map(str, row), strict=True))


def summary(lines: list[dict[str, str]]) -> list[tuple[Any, ...]]:
    """Return a row for each lie: ARI, ratios of mean errors, the largest ratio, in how many draws named."""
    groups = defaultdict(list)
    for line in lines:
        groups[line["sends"], int(line["liars"]), line["lie"]].append([float(line[name]) for name in VALUES])
    rows = []
    for key, values in groups.items():
        ari, errors, attacked, without, without_attacked, named = np.array(values).T
        ratios = errors.mean() / without.mean(), attacked.mean() / without_attacked.mean()
        rows.append(
            (*key, len(values), ari.mean(), ari.min(), *ratios, (errors / without).max(), int(named.sum()))
        )
    return rows


def print_table(lines: list[dict[str, str]]) -> None:
    """Print the summary in Markdown."""
    for sends in dict.fromkeys(line["sends"] for line in lines):
        for n_liars in (1, 3):
            part = [row for row in summary(lines) if row[:2] == (sends, n_liars)]
            if part:
                print(f"\n{sends}, {n_liars} of twelve lie\n")
                print("| lie | draws | mean ARI | least ARI | all | attacked | largest in a draw | named |")
                print("|---|---|---|---|---|---|---|---|")
            for _, _, name, draws, mean, least, whole, attacked, largest, named in part:
                plain = " *" if name in (*PLAUSIBLE, *PLAUSIBLE_MOMENTS) else ""
                numbers = f"{mean:.2f} | {least:.2f} | {whole:.2f} | {attacked:.2f} | {largest:.2f}"
                print(f"| {name}{plain} | {draws} | {numbers} | {named} |")


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--liars", type=int, nargs="*", default=[1, 3])
    parser.add_argument("--sends", nargs="*", choices=("models", "moments"), default=["moments", "models"])
    parser.add_argument("--only", default="")
    parser.add_argument("--classes", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("liars.csv"))
    options = parser.parse_args()
    lines = list(csv.DictReader(options.out.open())) if options.out.exists() else []
    if options.table:
        print_table(lines)
        return
    done = {tuple(line[name] for name in KEY) for line in lines}
    with options.out.open("a", newline="") as file:
        writer = csv.DictWriter(file, (*KEY, *VALUES))
        if not lines:
            writer.writeheader()
        for seed in range(options.draws):
            for n_liars in options.liars:
                pairs = [(LINE, name) for name in MOMENT_LIES if "moments" in options.sends]
                pairs += [(MODELS, name) for name in LIES if "models" in options.sends]
                if options.classes:
                    # Lies about slopes are of lines that are not there.
                    pairs = [
                        (CLASSES, name) for name in LIES if "off by ." not in name and "just not" not in name
                    ]
                for sends, name in pairs:
                    if options.only in name and (sends, name, str(n_liars), str(seed)) not in done:
                        writer.writerows(judged(sends, name, n_liars, seed))
                        file.flush()


if __name__ == "__main__":
    main()
