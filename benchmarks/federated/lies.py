"""What one site can say that is not so, each lie as changes of its rows or of its messages.

A liar knows what everybody knows: the models and moments of the others. From these it can tell its coterie's
truth. The lies after the first ones stay just inside a limit and do as much harm as they can there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.federated import Answer, Question, Score, Share, wire
from coterie.federated.moments.pool import unpacked
from coterie.federated.tables import Moments
from coterie.federated.wire import envelope

HUGE, TINY = 1e30, 1e-90


def _same_share(share: Share, others: list[Share]) -> Share:
    return share


def _same_score(score: Score) -> Score:
    return score


def _same_answer(question: Question, answer: Answer) -> Answer:
    return answer


def _same_rows(X: np.ndarray, y: np.ndarray, truth: np.ndarray, place: int) -> tuple[Any, Any]:
    return X, y


def _same_moments(moments: Moments, others: list[Moments]) -> Moments:
    return moments


@dataclass(frozen=True)
class Lie:
    """How a site changes what it would say.

    ``rows`` changes predictors and response, given the coterie's coefficients and the liar's place among the
    liars, before anything is fitted; ``moments`` changes the message of those who send moments.
    """

    rows: Callable[[Any, Any, Any, int], tuple[Any, Any]] = _same_rows
    moments: Callable[[Moments, list[Moments]], Moments] = _same_moments
    share: Callable[[Share, list[Share]], Share] = _same_share
    score: Callable[[Score], Score] = _same_score
    answer: Callable[[Question, Answer], Answer] = _same_answer


def _halves(by_count: Callable[[int, float], float]) -> Callable[[Question, Answer], Answer]:
    """Change losses of averages by the number of clusters and what was true."""

    def answer(question: Question, given: Answer) -> Answer:
        halves = tuple(
            tuple(
                tuple(None if v is None else by_count(max(labels) + 1, v) for v in pair) for pair in clusters
            )
            for labels, clusters in zip(question.labellings, given.halves, strict=True)
        )
        return replace(given, halves=halves)

    return answer


def _losses(value: Callable[[int, str, float], float | None]) -> Callable[[Score], Score]:
    """Change the losses of others' models, by their place, name and true value."""

    def score(given: Score) -> Score:
        losses = dict(given.losses)
        for place, (site, loss) in enumerate(sorted(given.losses.items())):
            if site != given.site and loss.value is not None:
                losses[site] = replace(loss, value=value(place, site, loss.value))
        return replace(given, losses=losses)

    return score


def _products(diagonal: Callable[[int], np.ndarray]) -> Callable[[Question, Answer], Answer]:
    """Answer with residuals of a given size in each column, all independent."""

    def answer(question: Question, given: Answer) -> Answer:
        if given.products is None:
            return given
        table = np.diag(diagonal(len(given.products.folds[0])))
        folds = tuple(tuple(map(tuple, table.tolist())) for _ in given.products.folds)
        return replace(given, products=replace(given.products, folds=folds))

    return answer


def _verdict(**changes: Any) -> Callable[[Question, Answer], Answer]:
    def answer(question: Question, given: Answer) -> Answer:
        return given if given.verdict is None else replace(given, verdict=replace(given.verdict, **changes))

    return answer


def _pairings(question: Question, given: Answer) -> Answer:
    """Say that the smaller number of clusters is surely worse, whatever it is."""
    return replace(given, pairings=tuple((HUGE, 0.0) for _ in given.pairings))


def _likelihoods(question: Question, given: Answer) -> Answer:
    """Say that offsets and slopes are as large as can be."""
    tables = []
    for table in given.likelihoods:
        values = np.full(np.shape(table), -1e90)
        values[-1, -1] = 0.0
        tables.append(tuple(map(tuple, values.tolist())))
    return replace(given, likelihoods=tuple(tables))


def _random(question: Question, given: Answer) -> Answer:
    draw = np.random.default_rng(len(question.labellings))
    return _halves(lambda n_clusters, value: float(10 ** draw.uniform(-3, 3)))(question, given)


def _many_rows(n_rows: int) -> Lie:
    return Lie(
        share=lambda share, others: replace(share, n_rows=n_rows),
        score=lambda score: replace(score, half_sizes=(n_rows // 2, n_rows - n_rows // 2)),
    )


def _scaled_model(factor: float) -> Callable[[Share, list[Share]], Share]:
    """Share another model than was fitted, and score and answer about it truly."""

    def changed(share: Share, others: list[Share]) -> Share:
        if share.classes:
            lines = wire.unpack(share.model, len(share.columns), len(share.classes)).lines
            bent = replace(lines, lines=factor * lines.lines).to_bytes()
            return replace(share, model=envelope.seal(envelope.CLASS_LINES, len(share.columns), bent))
        w, b = wire.unpack(share.model, len(share.columns)).affine
        return replace(share, model=wire.pack_affine(factor * w, factor * b))

    return changed


def _other_response(share: Share, others: list[Share]) -> Share:
    """State another size of the response, or that all rows have the first class."""
    if share.classes:
        return replace(share, class_shares=(1.0, *(0.0 for _ in share.classes[1:])))
    return replace(share, response_mean=1e40, response_variance=1e80)


def _stealthy(factor: float) -> Lie:
    """Share another model than was fitted, and state the own loss of the one that was fitted."""
    errors: dict[str, float] = {}

    def shared(share: Share, others: list[Share]) -> Share:
        errors[share.site] = share.error
        return _scaled_model(factor)(share, others)

    def scored(score: Score) -> Score:
        own = replace(score.losses[score.site], value=errors[score.site])
        return replace(score, losses={**score.losses, score.site: own})

    return Lie(share=shared, score=scored)


HONEST = "an honest site"

LIES: dict[str, Lie] = {
    HONEST: Lie(),
    "answers 100 for every labelling with several coteries": Lie(
        answer=_halves(lambda n_clusters, value: value if n_clusters == 1 else 100.0)
    ),
    "answers falling with the number of coteries": Lie(
        answer=_halves(lambda n_clusters, value: 100.0 * 0.1**n_clusters)
    ),
    "noise level 1e-90": Lie(score=lambda score: replace(score, noise=TINY)),
    "fails on a third of the models": Lie(
        score=_losses(lambda place, site, value: None if place < 4 else value)
    ),
    "n_rows = 2^53": _many_rows(2**53),
    "noise level 1e90": Lie(score=lambda score: replace(score, noise=1e90)),
    "all models are perfect": Lie(score=_losses(lambda place, site, value: 0.0)),
    "all models are useless": Lie(score=_losses(lambda place, site, value: 1e90)),
    "praises the models of other truths": Lie(
        score=_losses(lambda place, site, value: 0.0 if place % 3 else 1e3 * value)
    ),
    "answers at random": Lie(answer=_random),
    "a wild model": Lie(share=_scaled_model(1e3)),
    "a model off by a third, well hidden": _stealthy(4 / 3),
    "another unit of the response": Lie(share=_other_response),
    "offsets and slopes as large as can be": Lie(answer=_likelihoods),
    "own model useless, averages perfect": Lie(
        answer=_products(lambda size: np.r_[1e30, np.full(size - 1, 1e-30)])
    ),
    "own model perfect, averages useless": Lie(
        answer=_products(lambda size: np.r_[1e-30, np.full(size - 1, 1e30)])
    ),
    "others save everything": Lie(
        answer=_verdict(early=HUGE, own=HUGE, others=TINY, n_rows=2**53, variance=TINY)
    ),
    "others ruin everything": Lie(
        answer=_verdict(early=TINY, own=TINY, others=HUGE, n_rows=2**53, variance=TINY)
    ),
    "any smaller number of coteries is worse": Lie(answer=_pairings),
    "its coterie is no better than a constant": Lie(answer=_verdict(constant=(HUGE, 0.0))),
    "spreads of 1e90": Lie(share=lambda share, others: replace(share, spreads=(1e90,) * len(share.columns))),
    "spreads of zero": Lie(share=lambda share, others: replace(share, spreads=(0.0,) * len(share.columns))),
    "the model of another truth": Lie(
        share=lambda share, others: replace(share, model=others[1].model, error=others[1].error)
    ),
}


def _coterie_model(share: Share, others: list[Share]) -> tuple[np.ndarray, float]:
    """Return the mean of the models that are nearest to the site's own, as anybody can compute it."""
    lines = [np.r_[wire.unpack(each.model, len(each.columns)).affine] for each in (share, *others)]
    lines = [np.r_[np.ravel(line[:-1]), line[-1]] for line in lines]
    apart = [np.sum((line - lines[0]) ** 2) for line in lines[1:]]
    nearest = np.argsort(apart)[: max(len(others) // 3, 1)]
    mean = np.mean([lines[1 + place] for place in nearest], axis=0)
    return mean[:-1], float(mean[-1])


def _shifted(
    shift: Any,
    *,
    level: float = 0.0,
    rows: int | None = None,
    noise: float = 1.0,
    score: Callable[[Score], Score] = _same_score,
    answer: Callable[[Question, Answer], Answer] = _same_answer,
) -> Lie:
    """Share the mean of the coterie's models with a shift of slopes and level, and say that it suits.

    ``rows`` are stated, and the stated noise level is multiplied by ``noise``.
    """

    errors: dict[str, float] = {}

    def shared(given: Share, others: list[Share]) -> Share:
        errors[given.site] = given.error
        slopes, intercept = _coterie_model(given, others)
        change = np.zeros(len(slopes))
        change[: np.size(shift)] = shift
        model = wire.pack_affine(slopes + change, intercept + level)
        return replace(given, model=model, n_rows=rows or given.n_rows)

    def scored(given: Score) -> Score:
        size = rows or sum(given.half_sizes)
        own = replace(given.losses[given.site], value=errors[given.site])
        losses = {**given.losses, given.site: own}
        changed = replace(given, losses=losses, noise=given.noise * noise)
        return score(replace(changed, half_sizes=(size - size // 2, size // 2)))

    return Lie(share=shared, score=scored, answer=answer)


def _praise_own(given: Score) -> Score:
    """Say that the models of its coterie, colluders among them, suit it twice as well as they do."""
    middle = np.median([loss.value for loss in given.losses.values() if loss.value is not None])
    return _losses(lambda place, site, value: value / 2 if value < middle else value)(given)


def _shuffled(X: np.ndarray, y: np.ndarray, truth: np.ndarray, place: int) -> tuple[Any, Any]:
    return X, np.random.default_rng(place).permutation(y)


LIES |= {
    "the response is shuffled": Lie(rows=_shuffled),
    "a slope off by .5, 100,000 rows": _shifted(0.5, rows=100_000),
    "a slope off by .7, 100,000 rows": _shifted(0.7, rows=100_000),
    "a slope off by .5, a twentieth of the noise": _shifted(0.5, noise=0.05),
    "a slope off by .5, rows just below the limit": _shifted(0.5, rows=599),
    "a slope off by .5, noise just above the limit": _shifted(0.5, noise=0.11),
    "a slope off by .5, rows and noise at the limits": _shifted(0.5, rows=599, noise=0.11),
    "a model just not wild, 100,000 rows": _shifted(1.0, rows=100_000),
    "a level off by .5, 100,000 rows": _shifted(0.0, level=0.5, rows=100_000),
    "all slopes off by .2, 100,000 rows": _shifted([0.2] * 6, rows=100_000),
    "a slope off by .5, 100,000 rows, praises its own": _shifted(0.5, rows=100_000, score=_praise_own),
    "a slope off by .5, 100,000 rows, wants more coteries": _shifted(0.5, rows=100_000, answer=_pairings),
    "a slope off by .5, 100,000 rows, a wide range": _shifted(
        0.5, rows=100_000, answer=_verdict(range=(-1e6, 1e6))
    ),
    "a slope off by .5, 100,000 rows, flat likelihoods": _shifted(0.5, rows=100_000, answer=_likelihoods),
}
# These state no more than an honest site: size bounds nothing of them.
PLAUSIBLE = {
    "a slope off by .4": _shifted(0.4),
    "a slope off by .5": _shifted(0.5),
    "a level off by .4": _shifted(0.0, level=0.4),
    "all slopes off by .15": _shifted([0.15, -0.15] * 3),
    "a slope off by .4, praises its own": _shifted(0.4, score=_praise_own),
}
LIES |= PLAUSIBLE


def _told(
    shift: Any = 0.0,
    *,
    level: float = 0.0,
    times: Any = 1.0,
    moved: float = 0.0,
    noise: float = 1.0,
    repeat: float = 1.0,
) -> Lie:
    """Send moments of rows whose slopes and level are off; predictors are scaled and moved."""

    def rows(X: np.ndarray, y: np.ndarray, truth: np.ndarray, place: int) -> tuple[Any, Any]:
        left, change, factors = noise * (y - X @ truth), np.zeros(X.shape[1]), np.ones(X.shape[1])
        change[: np.size(shift)], factors[: np.size(times)] = shift, times
        X = X * factors
        X[:, 0] += moved
        y = X @ (truth + change) + level + left
        again = np.resize(np.arange(len(y)), round(repeat * len(y)))
        return X[again], y[again]

    return Lie(rows=rows)


def _everywhere(factor: float) -> list[float]:
    return [factor] * 6


def _packed(moments: Moments, halves: np.ndarray, **more: Any) -> Moments:
    places = np.triu_indices(halves.shape[1])
    first, second = (tuple(half[places].tolist()) for half in halves)
    return replace(moments, halves=(first, second), **more)


def _outside(change: Callable[[np.ndarray], None], times: int = 1) -> Lie:
    """Change moments where they stand; ``times`` as many rows are stated."""

    def moments(given: Moments, others: list[Moments]) -> Moments:
        halves = unpacked(given)
        change(halves)
        return _packed(given, times * halves, n_rows=times * given.n_rows)

    return Lie(moments=moments)


def _factors(first: int, last: int, factor: float) -> Callable[[np.ndarray], None]:
    """Multiply columns from first to last, and so rows from first to last, of both halves."""

    def change(halves: np.ndarray) -> None:
        places = np.arange(halves.shape[1])[first:last] if last else np.arange(halves.shape[1])[first:]
        halves[:, places] *= factor
        halves[:, :, places] *= factor

    return change


def _nonsense(halves: np.ndarray) -> None:
    _factors(-1, 0, 0.0)(halves)
    halves[:, -1, -1] = 1e4 * halves[:, 0, 0]


def _two_faced(halves: np.ndarray) -> None:
    halves[1, -1, :-1] *= -1
    halves[1, :-1, -1] *= -1
    _factors(-1, 0, 1000.0)(halves)


def _constant(halves: np.ndarray) -> None:
    count = halves[:, 0, 0].copy()
    halves[:] = 0.0
    halves[:, 0, 0] = count


def _made_up(halves: np.ndarray) -> None:
    n = round(float(halves[:, 0, 0].sum()) / 2)
    rows = 10 * np.random.default_rng(0).normal(size=(2, n, halves.shape[1]))
    rows[..., 0] = 1.0
    halves[:] = np.einsum("hnq,hnr->hqr", rows, rows)


def _one_of_them(halves: np.ndarray) -> None:
    halves[:, -1], halves[:, :, -1] = halves[:, 1], halves[:, :, 1]
    halves[:, -1, -1] = halves[:, 1, 1]


def _one_entry(halves: np.ndarray) -> None:
    halves[0, 1, 1] = 1e6


def _copy(given: Moments, others: list[Moments]) -> Moments:
    return replace(others[1], site=given.site)


def _poison(X: np.ndarray, y: np.ndarray, truth: np.ndarray, place: int) -> tuple[Any, Any]:
    """Widen a direction for the last liar, who is off there; alone it does both."""
    X = X.copy()
    left, shift = y - X @ truth, np.zeros(X.shape[1])
    X[:, 0] *= 30.0
    shift[0] = 0.4 if place == 0 else 0.0
    return X, X @ (truth + shift) + left


def _half_and_half(X: np.ndarray, y: np.ndarray, truth: np.ndarray, place: int) -> tuple[Any, Any]:
    """Half of the rows have a slope that is too large, the others one that is too small."""
    return X, y + np.where(np.arange(len(y)) % 2, 0.7, -0.7) * X[:, 0]


def _mimic(X: np.ndarray, y: np.ndarray, truth: np.ndarray, place: int) -> tuple[Any, Any]:
    """A fifth of the way to the opposite truth."""
    return X, y - 0.2 * X @ truth


MOMENT_LIES: dict[str, Lie] = {
    HONEST: Lie(),
    "the opposite relation": _outside(_factors(-1, 0, -1.0)),
    "the opposite relation, a million times the rows": _outside(_factors(-1, 0, -1.0), 10**6),
    "no response": _outside(_factors(-1, 0, 0.0)),
    "a response a hundred times as large that has no relation": _outside(_nonsense),
    "halves that contradict each other": _outside(_two_faced),
    "a response a thousand times as large": _outside(_factors(-1, 0, 1000.0)),
    "rows that are all the same": _outside(_constant),
    "other units": _outside(_factors(1, 0, 0.001)),
    "made up rows": _outside(_made_up),
    "a response that is a predictor": _outside(_one_of_them),
    "one entry of a million": _outside(_one_entry),
    "a million times the rows": _outside(lambda halves: None, 10**6),
    "the response is shuffled": Lie(rows=_shuffled),
    "a slope off by .7, x times 10": _told(0.7, times=_everywhere(10.0)),
    "a slope off by .7, x times 50": _told(0.7, times=_everywhere(50.0)),
    "a slope off by .7, its x times 10": _told(0.7, times=10.0),
    "a slope off by .7, its x times 50": _told(0.7, times=50.0),
    "a slope off by .4, x times 50": _told(0.4, times=_everywhere(50.0)),
    "a slope off by .4, its x times 50": _told(0.4, times=50.0),
    "a slope off by .4, x just below the limit": _told(0.4, times=_everywhere(1.3)),
    "a slope off by .4, rows just below the limit": _told(0.4, repeat=1.7),
    "a slope off by .4, its x far out": _told(0.4, moved=5.0),
    "two slopes off by .4, their x times 50": _told([0.4, -0.4], times=[50.0, 50.0]),
    "a slope off by .3, x times 50": _told(0.3, times=_everywhere(50.0)),
    "a slope off by .4, x times 50, no noise": _told(0.4, times=_everywhere(50.0), noise=0.0),
    "a level off by .4, a million times the rows": replace(
        _told(level=0.4), moments=_outside(lambda halves: None, 10**6).moments
    ),
    "a wide direction for the others, a slope off by .4": Lie(rows=_poison),
}
PLAUSIBLE_MOMENTS = {
    "a slope off by .4": _told(0.4),
    "a slope off by .7": _told(0.7),
    "a slope off by .4, twice the noise": _told(0.4, noise=1.4),
    "a slope off by .4, no noise": _told(0.4, noise=0.0),
    "a level off by .4": _told(level=0.4),
    "the moments of another site": Lie(moments=_copy),
    "a fifth of the way to the opposite": Lie(rows=_mimic),
    "halves of the rows off by .7 and -.7": Lie(rows=_half_and_half),
}
MOMENT_LIES |= PLAUSIBLE_MOMENTS
