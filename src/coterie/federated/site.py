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
from coterie.candidates import PRESETS
from coterie.collaboration.nested.guard import model_bounds
from coterie.collaboration.nested.parties import AverageDictionary, RowParty
from coterie.federated import wire
from coterie.federated.codec import LARGEST
from coterie.federated.messages import (
    Answer,
    Blur,
    Loss,
    Mixing,
    Pairing,
    Products,
    ProtocolError,
    Question,
    Score,
    Share,
    Table,
    Verdict,
    question_key,
)
from coterie.federated.peers import Party, evaluate_peers, is_comparable, squares_by_row
from coterie.federated.privacy import blurred_coefficients, blurred_means, check_blur, noise_of_level
from coterie.kernels.affine import affine_form
from coterie.loss import SQUARED_ERROR
from coterie.method.noise import clip_bound, mostly_one_value, noise_statistics, smallest_level
from coterie.method.noise import pooled_variance as pool_variances
from coterie.method.refine.averages import AverageLosses
from coterie.method.refine.losses import halves_of
from coterie.records import Selection
from coterie.verdicts.bootstrap import bootstrap_losses
from coterie.verdicts.cluster_fit import compare_with_alone, coterie_excess
from coterie.verdicts.gains import ROUNDING as SMALLEST_ERROR
from coterie.verdicts.gains import error_and_spread
from coterie.verdicts.learning import measure


def software_versions() -> dict[str, str]:
    """Return the versions that a message states."""
    return {
        "coterie": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def share(party: Party, *, blur: Blur | None = None) -> Share:
    """Return what the site tells of itself.

    Parameters
    ----------
    party : Party
        The site.
    blur : Blur or None, default=None
        Clip and blur the coefficients of a linear model. What else is told then does not depend on the
        rows but for their number: the error is left to `score`, and the response counts as unknown.

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
    open_share = Share(
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
        spreads=tuple(learners.X.std(axis=0).tolist()),
    )
    if blur is None:
        return open_share
    form = affine_form(selection.models[0], party.n_features)
    competing = [name for entry in party.candidates for name in PRESETS.get(entry, (entry,))]
    if form is None or len(competing) != 1:
        raise ProtocolError(
            "Only one linear candidate can be blurred: which of several wins, and a forest's leaves, tell of "
            "the rows. Take --candidates ridge."
        )
    w, b = blurred_coefficients(*form, check_blur(blur), np.random.default_rng())
    return replace(
        open_share,
        error=0.0,
        response_mean=0.0,
        response_variance=blur.clip**2,
        model=wire.pack_affine(w, b),
        spreads=(),
        privacy=blur,
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


def _blurred_score(party: Party, by_site: Mapping[str, Share], blur: Blur) -> Score:
    """Return a score of blurred numbers; the noise level is the loss of the site's own model."""
    if by_site[party.site].privacy is None:
        raise ProtocolError(f"The model of {party.site!r} was shared as it is: blur the share as well.")
    sites, squares = squares_by_row(party, list(by_site.values()))
    means = blurred_means(squares, check_blur(blur), np.random.default_rng())
    values = dict(zip(sites, means.tolist(), strict=True))
    if party.site not in values:
        raise ProtocolError("The site's own model cannot be read: share another.")
    level = max(values[party.site], 1e-12 * blur.clip)
    variance = noise_of_level(level, blur, len(means), len(party.learners.y))
    return _score(party, by_site, values, level, variance, privacy=blur)


def score(party: Party, shares: Sequence[Share], *, blur: Blur | None = None) -> Score:
    """Return what everybody's models lose on the site's rows.

    Parameters
    ----------
    party : Party
        The site.
    shares : sequence of Share
        Everybody's, the site's own among them, one per site.
    blur : Blur or None, default=None
        Clip the squared residuals and blur the losses; the share must have been blurred, too.

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
    if blur is None and by_site[party.site].privacy is not None:
        raise ProtocolError(f"The share of {party.site!r} is blurred: blur the score as well.")
    if blur is not None:
        return _blurred_score(party, by_site, blur)
    peers = evaluate_peers(party, shares)
    y = party.learners.y
    means = SQUARED_ERROR.by_row(peers.table[..., None] - y).mean(axis=1)
    values = {site: float(m) for site, m in zip(peers.sites, means, strict=True) if m <= LARGEST}
    _, level, variance = _bounded(party, shares)
    return _score(party, by_site, values, level, variance, tied=mostly_one_value(y))


def _sent(loss: float) -> float | None:
    return float(loss) if loss <= LARGEST else None


def _as_table(values: Array) -> Table:
    return tuple(tuple(row) for row in values.tolist())


def units_of(question: Question) -> Array:
    """Return the common units of the predictors; infinite where slopes are not corrected."""
    units = np.array(question.units)
    return np.where(units > 0, units, np.inf)


def _pair(mean: Any, error: Any) -> tuple[float, float]:
    pair = float(np.ravel(mean)[0]), float(np.ravel(error)[0])
    if not np.isfinite(pair).all():
        raise ProtocolError("The question is about a cluster that has nobody to predict with.")
    return pair


def _paired(losses: AverageLosses, pairing: Pairing) -> tuple[float, float]:
    arrays = (pairing.labels, pairing.picks, pairing.other_labels, pairing.other_picks)
    with np.errstate(invalid="ignore"):
        return _pair(*losses.paired_t(*(np.array(each) for each in arrays)))


class _Answering:
    """A site's rows, and everybody's models on them, ready for a question."""

    def __init__(self, party: Party, shares: Sequence[Share], question: Question) -> None:
        self.party, self.question = party, question
        self.sites = [member.site for member in question.members]
        by_site = {peer.site: peer for peer in shares}
        peers = evaluate_peers(party, [by_site[site] for site in self.sites])
        table = np.full((len(self.sites), len(party.learners.y)), np.nan)
        table[[self.sites.index(site) for site in peers.sites]] = peers.table
        selection, _, _ = _bounded(party, [by_site[site] for site in self.sites])
        self.place = self.sites.index(party.site)
        self.noise = question.members[self.place].noise
        weights = np.array([member.weight for member in question.members])
        self.losses = AverageLosses.of_one(party.learners, selection, table[..., None], weights, self.place)
        means, variances = (
            np.array([getattr(by_site[site], name) for site in self.sites])
            for name in ("response_mean", "response_variance")
        )
        own, inverse = party.own, np.argsort(self.losses.order)
        self.rows = RowParty(
            X=party.learners.X,
            y=party.learners.scalar_y,
            folds=own.folds.held_out,
            n_folds=len(own.folds),
            alone=own.predictions,
            table=table,
            bounds=model_bounds(means, variances),
            model_weights=weights,
            place=self.place,
            losses=lambda labels: self.losses.by_row(labels)[:, inverse],
            noise=self.noise,
        )

    def _dictionary(self, mixing: Mixing) -> AverageDictionary:
        labellings = tuple(np.array(labels) for labels in mixing.labellings)
        return AverageDictionary(labellings, units_of(self.question), np.array(mixing.ratios))

    def likelihoods(self) -> tuple[Table, ...]:
        """Return the log-likelihoods of offsets and slopes for all labellings."""
        labellings = [np.array(labels) for labels in self.question.labellings]
        if not labellings:
            return ()
        found = self.rows.likelihoods(labellings, units_of(self.question))
        return tuple(_as_table(table) for table in found)

    def products(self) -> Products | None:
        """Return the products of the residuals of what is mixed."""
        if self.question.mixing is None:
            return None
        grams, counts = self.rows.grams(self._dictionary(self.question.mixing))
        return Products(tuple(_as_table(table) for table in grams), tuple(counts.tolist()))

    def verdict(self, n_replicates: int) -> Verdict | None:
        """Return what the partition and the mixture bring the site."""
        judging, losses = self.question.judging, self.losses
        if judging is None:
            return None
        labels, dictionary = np.array(judging.labels), self._dictionary(judging.mixing)
        weights, y = np.array(judging.weights[self.place]), self.party.learners.y
        selection, loss = losses.selection, self.party.learners.loss
        early, alone = selection.residuals[0], y - self.party.own.predictions[:, None]
        held_out = weights[: self.rows.n_folds]
        mixed = self.rows.residuals(dictionary, held_out)[:, None]
        with_all = y - self.rows.average(np.zeros_like(labels))[:, None]
        shared = bool(np.bincount(labels).max() > 1)
        plain = y - self.rows.average(labels)[:, None] if shared else alone
        spread = selection.inflation**0.5
        errors = [error_and_spread(residuals) for residuals in (alone, mixed, with_all)]
        first, second, third = (_pair(mean, error * spread) for mean, error in errors)
        found = compare_with_alone(losses, labels)
        excess = zip(found.excess[:, 0], found.errors[:, 0], strict=True)
        seen = measure(early, alone, mixed, None, loss, SMALLEST_ERROR * self.noise)
        membership: tuple[float, ...] = ()
        if n_replicates:
            stability = bootstrap_losses(
                losses, labels, {}, n_replicates=n_replicates, entropy=self.party.seed
            )
            membership = tuple(stability.membership[0].tolist())
        line, limits = self.rows.correction(dictionary, weights[-1])
        return Verdict(
            clusters=tuple(_pair(mean, error) if np.isfinite(mean) else None for mean, error in excess),
            constant=_pair(found.constant_excess, found.constant_errors),
            coterie=_pair(*coterie_excess(plain, early, float(selection.clips[0]), selection.inflation)),
            errors=(first, second, third),
            early=seen.errors[0],
            alone=seen.errors[1],
            others=seen.errors[2],
            n_rows=seen.n_rows,
            variance=seen.variance,
            exact=seen.exact,
            inflation=float(selection.inflation),
            membership=membership,
            line=tuple(line.tolist()),
            limits=limits,
            range=tuple(self.party.own.bounds[0].tolist()),
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
    if party.site in by_site and by_site[party.site].privacy is not None:
        raise ProtocolError(f"{party.site!r} blurs what it sends, and answers no further questions.")
    if party.site not in sites:
        raise ProtocolError(f"The question is not about {party.site!r}: there is nothing to answer.")
    for member in question.members:
        peer = by_site.get(member.site)
        if peer is None or peer.sha != member.sha:
            raise ProtocolError(f"The question is about a model of {member.site!r} that is not here.")
    answering = _Answering(party, shares, question)
    losses = answering.losses
    labellings = [np.array(labels) for labels in question.labellings]
    halves = [losses.on_halves(labels)[:, 0] for labels in labellings]
    return Answer(
        site=party.site,
        question=question_key(question),
        halves=tuple(tuple((_sent(first), _sent(second)) for first, second in half) for half in halves),
        likelihoods=answering.likelihoods(),
        pairings=tuple(_paired(losses, pairing) for pairing in question.pairings),
        products=answering.products(),
        verdict=answering.verdict(n_replicates),
    )
