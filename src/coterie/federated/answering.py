"""What a site answers about averages of everybody's models: numbers of its own rows.

A site is a learner of the local fit whose peers' models came by messages:
`coterie.collaboration.nested.sites` has the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.collaboration.classes.site_rows import ClassSiteRows
from coterie.collaboration.nested.guard import model_bounds
from coterie.collaboration.nested.site_rows import AverageDictionary, SiteRows
from coterie.federated.codec import LARGEST
from coterie.federated.conclusions import Line
from coterie.federated.labels import class_bounds, response_moments
from coterie.federated.messages import (
    Answer,
    MixingQuestion,
    Pairing,
    Products,
    ProtocolError,
    Question,
    Share,
    Table,
    Verdict,
    question_key,
)
from coterie.federated.peers import Site, evaluate_peers
from coterie.federated.site import bounded_selection
from coterie.method.claims import beyond_claims
from coterie.method.refine.averages import AverageLosses
from coterie.verdicts.bootstrap import bootstrap_losses
from coterie.verdicts.cluster_fit import compare_with_own, coterie_excess
from coterie.verdicts.gains import ROUNDING as SMALLEST_ERROR
from coterie.verdicts.gains import error_and_spread, of_one_class
from coterie.verdicts.learning import LearnerErrors, measure


def _sent(loss: float) -> float | None:
    return float(loss) if loss <= LARGEST else None


def _as_table(values: Array) -> Table:
    return tuple(tuple(row) for row in values.tolist())


def units_of(question: Question) -> Array:
    """Return the common units of the predictors; infinite where slopes are not corrected."""
    units = np.array(question.units)
    return np.where(units > 0, units, np.inf)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _pair(mean: Any, error: Any) -> tuple[float, float]:
    """Return a mean and its standard error as finite numbers."""
    pair = float(np.ravel(mean)[0]), float(np.ravel(error)[0])
    if not np.isfinite(pair).all():
        raise ProtocolError("The question is about a cluster that has nobody to predict with.")
    return pair


def _paired(losses: AverageLosses, pairing: Pairing) -> tuple[float, float]:
    """Return the mean difference of two forms' losses on the site's rows, and its standard error."""
    arrays = (pairing.labels, pairing.picks, pairing.other_labels, pairing.other_picks)
    with np.errstate(invalid="ignore"):
        return _pair(*losses.paired_t(*(np.array(each) for each in arrays)))


class _Answering:
    """A site's rows, and everybody's models on them, ready for a question."""

    def __init__(self, site: Site, shares: Sequence[Share], question: Question) -> None:
        """Evaluate the peers' models on the site's rows, and prepare losses and averages."""
        self.site, self.question = site, question
        self.sites = [member.site for member in question.members]
        by_site = {peer.site: peer for peer in shares}
        peers = evaluate_peers(site, [by_site[name] for name in self.sites])
        table = np.full((len(self.sites), *site.learners.y.shape), np.nan)
        table[[self.sites.index(name) for name in peers.sites]] = peers.table
        selection, _, _ = bounded_selection(site, [by_site[name] for name in self.sites])
        self.place = self.sites.index(site.name)
        levels = np.array([member.noise for member in question.members])
        self.noise = float(levels[self.place])
        weights = np.array([member.weight for member in question.members])
        self.losses = AverageLosses.of_one(site.learners, selection, table, weights, self.place, levels)
        own, inverse = site.own, np.argsort(self.losses.order)
        shared: dict[str, Any] = {
            "X": site.learners.X,
            "folds": own.folds.held_out,
            "n_folds": len(own.folds),
            "model_weights": weights,
            "place": self.place,
            "losses": lambda labels: self.losses.by_row(labels)[:, inverse],
        }
        subset = [by_site[name] for name in self.sites]
        if site.classes:
            loss, y = site.learners.loss, site.learners.y
            bounds = class_bounds(subset)
            self.rows: SiteRows | ClassSiteRows = ClassSiteRows(
                y=y, own_predictions=own.predictions, table=table, bounds=bounds, loss=loss, **shared
            )
            return
        means, variances = response_moments(subset)
        self.rows = SiteRows(
            y=site.learners.scalar_y,
            own_predictions=own.predictions[:, 0],
            table=table[..., 0],
            bounds=model_bounds(means[:, 0], variances),
            noise=self.noise,
            **shared,
        )

    def _columns(self, values: Array) -> Array:
        """Return predictions or residuals as columns, of shape (n, C)."""
        return values.reshape(self.site.learners.y.shape)

    def _dictionary(self, mixing: MixingQuestion) -> AverageDictionary:
        """Return the averages that a question is about."""
        labellings = tuple(np.array(labels) for labels in mixing.labellings)
        return AverageDictionary(labellings, units_of(self.question), np.array(mixing.ratios))

    def likelihoods(self) -> tuple[Table, ...]:
        """Return the log-likelihoods of offsets and slopes for all labellings."""
        labellings = [np.array(labels) for labels in self.question.labellings]
        if not labellings:
            return ()
        result = self.rows.likelihoods(labellings, units_of(self.question))
        return tuple(_as_table(table) for table in result)

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
        weights, y = np.array(judging.weights[self.place]), self.site.learners.y
        selection, loss = losses.selection, self.site.learners.loss
        early, own_residuals = selection.residuals[0], y - self.site.own.predictions
        held_out = weights[: self.rows.n_folds]
        mixed = self._columns(self.rows.residuals(dictionary, held_out))
        with_all = y - self._columns(self.rows.average(np.zeros_like(labels)))
        shared = bool(np.bincount(labels).max() > 1)
        plain = y - self._columns(self.rows.average(labels)) if shared else own_residuals
        spread = selection.inflation**0.5
        errors = [error_and_spread(residuals, None, loss) for residuals in (own_residuals, mixed, with_all)]
        first, second, third = (_pair(mean, error * spread) for mean, error in errors)
        result = compare_with_own(losses, labels)
        excess = zip(result.excess[:, 0], result.errors[:, 0], strict=True)
        one_class = bool(of_one_class(self.site.learners)[0])
        seen = (
            LearnerErrors()
            if one_class
            else measure(early, own_residuals, mixed, None, loss, SMALLEST_ERROR * self.noise)
        )
        membership: tuple[float, ...] = ()
        if n_replicates:
            stability = bootstrap_losses(
                losses, labels, {}, n_replicates=n_replicates, entropy=self.site.seed
            )
            membership = tuple(stability.membership[0].tolist())
        line, limits, lines = self._own_lines(dictionary, weights[-1])
        return Verdict(
            clusters=tuple(_pair(mean, error) if np.isfinite(mean) else None for mean, error in excess),
            constant=_pair(result.constant_excess, result.constant_errors),
            coterie=_pair(
                *coterie_excess(plain, early, float(selection.clips[0]), selection.inflation, loss)
            ),
            errors=(first, second, third),
            early=seen.errors[0],
            own=seen.errors[1],
            others=seen.errors[2],
            n_rows=seen.n_rows,
            variance=seen.variance,
            distance=seen.distance,
            exact=seen.exact,
            inflation=float(selection.inflation),
            membership=membership,
            line=tuple(line.tolist()),
            limits=limits,
            range=tuple(self.site.own.bounds[0].tolist()),
            lines=lines,
            beyond=() if result.beyond is None else tuple(map(_finite, result.beyond[:, 0].tolist())),
            coterie_beyond=self._coterie_beyond(plain, early),
            one_class=one_class,
        )

    def _coterie_beyond(self, plain: Array, early: Array) -> float:
        """Return by how many standard deviations the site's coterie loses more than it claims."""
        known = np.isfinite(plain + early).all(axis=1)
        if not known.any():
            return 0.0
        loss, inflation = self.site.learners.loss, self.losses.selection.inflation
        result = beyond_claims(plain[known], None, np.zeros(1, dtype=int), loss, inflation)
        return 0.0 if result is None else float(result[0])

    def _own_lines(
        self, dictionary: AverageDictionary, weights: Array
    ) -> tuple[Array, tuple[float, float], tuple[Line, ...]]:
        """Return the line that the site adds to its mixture; of classes one for each average and class."""
        if isinstance(self.rows, SiteRows):
            return *self.rows.correction(dictionary, weights), ()
        own = self.rows.own_lines(dictionary)
        pairs = zip(own.lines.reshape(-1, own.lines.shape[-1]), own.limits.reshape(-1, 2), strict=True)
        lines = tuple(Line(tuple(values.tolist()), tuple(limits.tolist())) for values, limits in pairs)
        return np.zeros(own.lines.shape[-1]), (0.0, 0.0), lines


def answer(site: Site, shares: Sequence[Share], question: Question, *, n_replicates: int = 100) -> Answer:
    """Return what averages of models lose on the site's rows.

    Parameters
    ----------
    site : Site
        The site.
    shares : sequence of Share
        Those that were scored.
    question : Question
        The question.
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
    if site.name not in sites:
        raise ProtocolError(f"The question is not about {site.name!r}: there is nothing to answer.")
    for member in question.members:
        peer = by_site.get(member.site)
        if peer is None or peer.sha != member.sha:
            raise ProtocolError(f"The question is about a model of {member.site!r} that is not here.")
    answering = _Answering(site, shares, question)
    losses = answering.losses
    labellings = [np.array(labels) for labels in question.labellings]
    halves = [losses.on_halves(labels)[:, 0] for labels in labellings]
    return Answer(
        site=site.name,
        question=question_key(question),
        halves=tuple(tuple((_sent(first), _sent(second)) for first, second in half) for half in halves),
        likelihoods=answering.likelihoods(),
        pairings=tuple(_paired(losses, pairing) for pairing in question.pairings),
        products=answering.products(),
        verdict=answering.verdict(n_replicates),
    )
