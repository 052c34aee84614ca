"""What one site can say that is not so, each lie as changes of its messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coterie.federated import Answer, Question, Score, Share, wire
from coterie.federated.wire import envelope

HUGE, TINY = 1e30, 1e-90


def _same_share(share: Share, others: list[Share]) -> Share:
    return share


def _same_score(score: Score) -> Score:
    return score


def _same_answer(question: Question, answer: Answer) -> Answer:
    return answer


@dataclass(frozen=True)
class Lie:
    """How a site changes what it would say."""

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


LIES: dict[str, Lie] = {
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
