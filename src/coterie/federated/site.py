"""What a site does with its rows: share its model, score everybody's, answer about averages of them.

Pure functions from a `Party`, which holds the rows, and messages to a message. The arithmetic is that of the
local stages, run on the rows of one learner.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn

from coterie._arrays import Array
from coterie._version import __version__
from coterie.collaboration.forms import average_weights, averaged_residuals
from coterie.federated import wire
from coterie.federated.codec import LARGEST
from coterie.federated.messages import (
    Answer,
    Gram,
    Loss,
    Pairing,
    ProtocolError,
    Question,
    Score,
    Share,
    Verdict,
    question_key,
)
from coterie.federated.peers import Party, evaluate_peers, is_comparable
from coterie.loss import SQUARED_ERROR
from coterie.method.noise import clip_bound, mostly_one_value, noise_statistics, smallest_level
from coterie.method.noise import pooled_variance as pool_variances
from coterie.method.refine.averages import AverageLosses
from coterie.method.refine.losses import halves_of
from coterie.records import Selection
from coterie.verdicts.bootstrap import bootstrap_losses
from coterie.verdicts.cluster_fit import compare_with_alone, coterie_excess
from coterie.verdicts.gains import ROUNDING, error_and_spread, gain_spread


def software_versions() -> dict[str, str]:
    """Return the versions that a message states."""
    return {
        "coterie": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def share(party: Party) -> Share:
    """Return what the site tells of itself.

    Parameters
    ----------
    party : Party
        The site.

    Returns
    -------
    Share
        Its model and a few numbers.

    Raises
    ------
    WireError
        If the model keeps training rows or cannot be written down.
    """
    learners, selection = party.learners, party.selection
    return Share(
        site=party.site,
        n_rows=len(learners.y),
        error=float(selection.errors[0]),
        response_mean=float(learners.y.mean()),
        response_variance=float(learners.y.var()),
        columns=party.columns,
        target=party.target,
        family=selection.names[0],
        model=wire.pack(selection.models[0], party.n_features),
        candidates=party.candidates,
        seed=party.seed,
        software=software_versions(),
    )


def pooled_variance(shares: Sequence[Share]) -> float:
    """Return the variance of these sites' responses together, as a local fit pools it."""
    counts = np.array([share.n_rows for share in shares], dtype=float)
    means = np.array([[share.response_mean] for share in shares])
    within = np.array([share.response_variance for share in shares])
    return pool_variances(counts, means, within)


def _bounded(party: Party, shares: Sequence[Share]) -> tuple[Selection, float, float]:
    """Return the selection with the bound that the peers' responses call for, and the noise statistics."""
    # Whoever predicts something else, or from something else, says nothing about rounding here.
    smallest = smallest_level(pooled_variance([peer for peer in shares if is_comparable(party, peer)]))
    residuals = party.selection.residuals[0]
    clip = clip_bound(residuals, smallest, tied=mostly_one_value(party.learners.y))
    level, variance = noise_statistics(residuals, clip, smallest)
    return replace(party.selection, clips=np.array([clip]), noise=np.array([level])), level, variance


def _gram(table: Array, y: Array, own: Array) -> Gram:
    products = table @ table.T / len(y)
    return Gram(
        models=tuple(tuple(row) for row in products.tolist()),
        response=tuple((table @ y[:, 0] / len(y)).tolist()),
        square=SQUARED_ERROR.mean(y),
        own=SQUARED_ERROR.mean(own),
    )


def _score(
    party: Party,
    by_site: Mapping[str, Share],
    values: Mapping[str, float],
    noise: float,
    noise_variance: float,
    **more: Any,
) -> Score:
    """Return a score; ``values`` are the losses of the models that have one, by site."""
    first, second = np.bincount(halves_of(party.selection.folds[0]), minlength=2).tolist()
    return Score(
        site=party.site,
        sha=by_site[party.site].sha,
        losses={site: Loss(peer.sha, values.get(site)) for site, peer in by_site.items()},
        noise=noise,
        noise_variance=noise_variance,
        half_sizes=(first, second),
        **more,
    )


def score(party: Party, shares: Sequence[Share], *, reveal_gram: bool = False) -> Score:
    """Return what everybody's models lose on the site's rows.

    Parameters
    ----------
    party : Party
        The site.
    shares : sequence of Share
        Everybody's, the site's own among them, one per site.
    reveal_gram : bool, default=False
        Send Gram matrices of all models' predictions as well. They save rounds, and reveal more: with as
        many independent linear models as there are predictors, the second moments of the site's rows.

    Returns
    -------
    Score
        Scalars. A model that cannot be read or evaluated has no loss.
    """
    by_site = {peer.site: peer for peer in shares}
    if len(by_site) < len(shares):
        raise ProtocolError("Two shares bear one name: leave one of them out.")
    if party.site not in by_site:
        raise ProtocolError(f"The shares lack that of {party.site!r} itself: run share first.")
    peers = evaluate_peers(party, shares)
    y = party.learners.y
    means = SQUARED_ERROR.by_row(peers.table[..., None] - y).mean(axis=1)
    values = {site: float(m) for site, m in zip(peers.sites, means, strict=True) if m <= LARGEST}
    _, level, variance = _bounded(party, shares)
    grams = None
    if reveal_gram:
        second, own = halves_of(party.selection.folds[0]), party.selection.residuals[0]
        kept = [site in values for site in peers.sites]
        first, last = (
            _gram(peers.table[np.ix_(kept, second == half)], y[second == half], own[second == half])
            for half in (0, 1)
        )
        grams = first, last
    return _score(party, by_site, values, level, variance, grams=grams)


def _sent(loss: float) -> float | None:
    return float(loss) if loss <= LARGEST else None


def _pair(mean: Any, error: Any) -> tuple[float, float]:
    pair = float(np.ravel(mean)[0]), float(np.ravel(error)[0])
    if not np.isfinite(pair).all():
        raise ProtocolError("The question is about a cluster that has nobody to predict with.")
    return pair


def _paired(losses: AverageLosses, pairing: Pairing) -> tuple[float, float]:
    arrays = (pairing.labels, pairing.picks, pairing.other_labels, pairing.other_picks)
    with np.errstate(invalid="ignore"):
        return _pair(*losses.paired_t(*(np.array(each) for each in arrays)))


def _verdict(
    losses: AverageLosses, labels: Array, n_rows: Array, noise: float, n_replicates: int, seed: int
) -> Verdict:
    y, holder, inflation = losses.learners.y, losses.holder, losses.selection.inflation
    alone = losses.selection.residuals[0][losses.order]
    with_coterie, with_all = (
        averaged_residuals(losses.averages, average_weights(n_rows, each), each, holder, y, alone)
        for each in (labels, np.zeros_like(labels))
    )
    errors = [error_and_spread(residuals) for residuals in (alone, with_coterie, with_all)]
    first, second, third = (_pair(mean, error * inflation**0.5) for mean, error in errors)
    found = compare_with_alone(losses, labels)
    excess = zip(found.excess[:, 0], found.errors[:, 0], strict=True)
    spread = gain_spread(alone, with_coterie, None, ROUNDING * noise) * np.sqrt(inflation)
    membership: tuple[float, ...] = ()
    if n_replicates:
        stability = bootstrap_losses(losses, labels, {}, n_replicates=n_replicates, entropy=seed)
        membership = tuple(stability.membership[0].tolist())
    return Verdict(
        clusters=tuple(_pair(mean, error) if np.isfinite(mean) else None for mean, error in excess),
        constant=_pair(found.constant_excess, found.constant_errors),
        coterie=_pair(*coterie_excess(with_coterie, alone, float(losses.selection.clips[0]), inflation)),
        errors=(first, second, third),
        gain_error=spread if np.isfinite(spread) else None,
        membership=membership,
    )


def answer(party: Party, shares: Sequence[Share], question: Question, *, n_replicates: int = 100) -> Answer:
    """Return what averages of models lose on the site's rows.

    Parameters
    ----------
    party : Party
        The site.
    shares : sequence of Share
        Those that were scored.
    question : Question
        What is asked.
    n_replicates : int, default=100
        How often rows are resampled to see how sure the site's coterie is; 0: not at all.

    Returns
    -------
    Answer
        Scalars.

    Raises
    ------
    ProtocolError
        If the question is about models that were not shared, or not about this site.
    """
    sites = [member.site for member in question.members]
    by_site = {peer.site: peer for peer in shares}
    if party.site not in sites:
        raise ProtocolError(f"The question is not about {party.site!r}: there is nothing to answer.")
    for member in question.members:
        peer = by_site.get(member.site)
        if peer is None or peer.sha != member.sha:
            raise ProtocolError(f"The question is about a model of {member.site!r} that is not here.")
    peers = evaluate_peers(party, [by_site[site] for site in sites])
    table = np.full((len(sites), *party.learners.y.shape), np.nan)
    table[[sites.index(site) for site in peers.sites]] = peers.table[..., None]
    selection, _, _ = _bounded(party, [by_site[site] for site in sites])
    if not question.clipped:
        selection = replace(selection, clips=np.array([np.inf]))
    place = sites.index(party.site)
    weights = np.array([member.weight for member in question.members])
    n_rows = np.array([member.n_rows for member in question.members])
    losses = AverageLosses.of_one(party.learners, selection, table, weights, place)
    noise = question.members[place].noise
    labellings = [np.array(labels) for labels in question.labellings]
    halves = [losses.on_halves(labels)[:, 0] for labels in labellings]
    return Answer(
        site=party.site,
        question=question_key(question),
        halves=tuple(tuple((_sent(first), _sent(second)) for first, second in half) for half in halves),
        pairings=tuple(_paired(losses, pairing) for pairing in question.pairings),
        verdicts=tuple(
            _verdict(losses, np.array(labels), n_rows, noise, n_replicates, party.seed)
            for labels in question.verdicts
        ),
    )
