"""What a site answers about averages of everybody's models: losses and residual products of its own rows.

A site is a learner of the local fit whose peers' models came by messages:
`coterie.collaboration.nested.site_rows` has the arithmetic. Shapes: M members, n rows of the site, C columns
of the response, K clusters of a labelling.
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


def _loss_or_none(loss: float) -> float | None:
    """Return a loss as messages hold it: None where it is infinite or too large to be sent.

    Whoever concludes reads None as an infinite loss.
    """
    return float(loss) if loss <= LARGEST else None


def _as_table(matrix: Array) -> Table:
    """Return a matrix as nested tuples, the form of tables in messages."""
    return tuple(tuple(row) for row in matrix.tolist())


def units_of(question: Question) -> Array:
    """Return the common unit of each predictor, of shape (p,), infinite where slopes are not corrected.

    A message states zero there, since it cannot hold an infinite number.
    """
    units = np.array(question.units)
    return np.where(units > 0, units, np.inf)


def _finite_or_none(value: float) -> float | None:
    """Return a number as messages hold it: None where it is not finite."""
    return value if np.isfinite(value) else None


def _finite_pair(mean: Any, error: Any) -> tuple[float, float]:
    """Return a mean and its standard error as two floats; refuse the question where one is not finite.

    A mean is infinite where a cluster has no other member whose model could predict. Arrays of one entry are
    taken, too: the local fit computes both for many learners at once.
    """
    mean_and_error = float(np.ravel(mean)[0]), float(np.ravel(error)[0])
    if not np.isfinite(mean_and_error).all():
        raise ProtocolError("The question is about a cluster that has nobody to predict with.")
    return mean_and_error


def _excess_of_pairing(losses: AverageLosses, pairing: Pairing) -> tuple[float, float]:
    """Return how much more the first form of a pairing loses on the site's rows than the second.

    The difference is taken row by row; the result is its mean and the standard error of the mean. A form is a
    labelling, and the cluster that predicts each half of each member's rows.
    """
    forms = (pairing.labels, pairing.picks, pairing.other_labels, pairing.other_picks)
    # Infinity minus infinity, of clusters with nobody to predict, is NaN, which `_finite_pair` refuses.
    with np.errstate(invalid="ignore"):
        return _finite_pair(*losses.paired_t(*(np.array(labels_or_picks) for labels_or_picks in forms)))


class _Answering:
    """A site's rows with everybody's predictions of them: computes the parts of an answer.

    Models are evaluated once for all parts. Others' models never saw these rows; the site's own model
    predicts them out of fold.
    """

    def __init__(self, site: Site, shares: Sequence[Share], question: Question) -> None:
        """Evaluate the members' models on the site's rows, and prepare losses and averages of models.

        Models that are not comparable or fail have NaN as predictions, and averages leave them out.
        """
        self.site, self.question = site, question
        self.sites = [member.site for member in question.members]
        share_by_site = {peer.site: peer for peer in shares}
        peers = evaluate_peers(site, [share_by_site[name] for name in self.sites])
        # Predictions of the site's rows by every member's model, of shape (M, n, C).
        predictions = np.full((len(self.sites), *site.learners.y.shape), np.nan)
        predictions[[self.sites.index(name) for name in peers.sites]] = peers.table
        # With the bound at which losses of single rows are clipped; the noise level is that of the question.
        selection, _, _ = bounded_selection(site, [share_by_site[name] for name in self.sites])
        self.own_index = self.sites.index(site.name)
        noise_levels = np.array([member.noise for member in question.members])
        # Noise levels from the question, not from the rows: whoever concludes has shrunk them towards each
        # other.
        self.noise = float(noise_levels[self.own_index])
        model_weights = np.array([member.weight for member in question.members])
        # Losses of clusters' averages on the two halves of the rows: one half judges what the other chose.
        self.losses = AverageLosses.of_one(
            learner=site.learners,
            selection=selection,
            table=predictions,
            weights=model_weights,
            place=self.own_index,
            noise=noise_levels,
        )
        # `AverageLosses` sorts the rows by halves; ``to_table_order`` undoes that.
        own, to_table_order = site.own, np.argsort(self.losses.order)
        common_fields: dict[str, Any] = {
            "X": site.learners.X,
            "folds": own.folds.held_out,
            "n_folds": len(own.folds),
            "model_weights": model_weights,
            "place": self.own_index,
            "losses": lambda labels: self.losses.by_row(labels)[:, to_table_order],
        }
        shares_of_members = [share_by_site[name] for name in self.sites]
        if site.classes:
            loss, y = site.learners.loss, site.learners.y
            bounds = class_bounds(shares_of_members)
            self.rows: SiteRows | ClassSiteRows = ClassSiteRows(
                y=y,
                own_predictions=own.predictions,
                table=predictions,
                bounds=bounds,
                loss=loss,
                **common_fields,
            )
            return
        # Models are kept within bounds that follow from the responses that they were fitted on.
        means, variances = response_moments(shares_of_members)
        self.rows = SiteRows(
            y=site.learners.scalar_y,
            own_predictions=own.predictions[:, 0],
            table=predictions[..., 0],
            bounds=model_bounds(means[:, 0], variances),
            noise=self.noise,
            **common_fields,
        )

    def _as_columns(self, values: Array) -> Array:
        """Return predictions or residuals as columns of the response, of shape (n, C); C is 1 for (n,)."""
        return values.reshape(self.site.learners.y.shape)

    def _dictionary(self, mixing: MixingQuestion) -> AverageDictionary:
        """Return the averages that can be mixed: one per labelling, and the size of their corrections.

        A dictionary has the few models that every learner mixes with weights of its own.
        """
        labellings = tuple(np.array(labels) for labels in mixing.labellings)
        return AverageDictionary(labellings, units_of(self.question), np.array(mixing.ratios))

    def likelihoods(self) -> tuple[Table, ...]:
        """Return a table of log-likelihoods for each labelling of the question.

        A table has a row for each candidate variance of offsets and a column for each of slopes, by which the
        site would correct its cluster's average. From the tables of all sites, common variances are chosen.
        Offsets and slopes are random effects: how a site's own line differs from its cluster's average.
        """
        labellings = [np.array(labels) for labels in self.question.labellings]
        if not labellings:
            return ()
        log_likelihoods = self.rows.likelihoods(labellings, units_of(self.question))
        return tuple(_as_table(table) for table in log_likelihoods)

    def products(self) -> Products | None:
        """Return the Gram matrices of the site's out-of-fold residuals, by fold; None: not wanted.

        The columns of the residuals are the predictors that a mixture weighs. Mixing weights are learnt from
        the matrices of all sites, by folds so that they can be tested on rows that they were not learnt on.
        """
        if self.question.mixing is None:
            return None
        grams, counts = self.rows.grams(self._dictionary(self.question.mixing))
        return Products(tuple(_as_table(table) for table in grams), tuple(counts.tolist()))

    def verdict(self, n_replicates: int) -> Verdict | None:
        """Return what the judged partition and mixture bring the site; None: not wanted.

        Errors are those of out-of-fold residuals, of shape (n, C), of three predictors: the site alone, the
        mixture, and the average of all models. ``n_replicates`` counts the bootstrap samples of rows behind
        memberships. The record `Verdict` explains each number; gains and advice are computed from them
        elsewhere.
        """
        judging, losses = self.question.judging, self.losses
        if judging is None:
            return None
        labels, dictionary = np.array(judging.labels), self._dictionary(judging.mixing)
        mixing_weights, y = np.array(judging.weights[self.own_index]), self.site.learners.y
        selection, loss = losses.selection, self.site.learners.loss
        half_fit_residuals, own_residuals = selection.residuals[0], y - self.site.own.predictions
        # One table of weights per fold, learnt without it; the last one, of all rows, is for new rows.
        weights_by_fold = mixing_weights[: self.rows.n_folds]
        mixture_residuals = self._as_columns(self.rows.residuals(dictionary, weights_by_fold))
        all_residuals = y - self._as_columns(self.rows.average(np.zeros_like(labels)))
        # Where every cluster has one member, own residuals stand in for those of the coterie.
        has_coteries = bool(np.bincount(labels).max() > 1)
        coterie_residuals = y - self._as_columns(self.rows.average(labels)) if has_coteries else own_residuals
        # Rows that depend on each other inflate the variance of means.
        error_factor = selection.inflation**0.5
        means_and_errors = [
            error_and_spread(residuals, None, loss)
            for residuals in (own_residuals, mixture_residuals, all_residuals)
        ]
        alone, with_others, with_all = (
            _finite_pair(mean, error * error_factor) for mean, error in means_and_errors
        )
        comparison = compare_with_own(losses, labels)
        excess = zip(comparison.excess[:, 0], comparison.errors[:, 0], strict=True)
        one_class = bool(of_one_class(self.site.learners)[0])
        # Losses clipped per row, from which gains follow. Rows of one class compare nothing: all entries stay
        # empty.
        bounded_errors = (
            LearnerErrors()
            if one_class
            else measure(
                early=half_fit_residuals,
                own_residuals=own_residuals,
                others=mixture_residuals,
                weights=None,
                loss=loss,
                rounding=SMALLEST_ERROR * self.noise,
            )
        )
        # In which share of bootstrap samples each cluster predicts this site best; empty where none were
        # drawn.
        membership: tuple[float, ...] = ()
        if n_replicates:
            stability = bootstrap_losses(
                losses, labels, {}, n_replicates=n_replicates, entropy=self.site.seed
            )
            membership = tuple(stability.membership[0].tolist())
        own_line, line_limits, class_lines = self._own_lines(dictionary, mixing_weights[-1])
        return Verdict(
            clusters=tuple(
                _finite_pair(mean, error) if np.isfinite(mean) else None for mean, error in excess
            ),
            constant=_finite_pair(comparison.constant_excess, comparison.constant_errors),
            coterie=_finite_pair(
                *coterie_excess(
                    with_coterie=coterie_residuals,
                    own=half_fit_residuals,
                    clip=float(selection.clips[0]),
                    inflation=selection.inflation,
                    loss=loss,
                )
            ),
            errors=(alone, with_others, with_all),
            early=bounded_errors.errors[0],
            own=bounded_errors.errors[1],
            others=bounded_errors.errors[2],
            n_rows=bounded_errors.n_rows,
            variance=bounded_errors.variance,
            distance=bounded_errors.distance,
            exact=bounded_errors.exact,
            inflation=float(selection.inflation),
            membership=membership,
            line=tuple(own_line.tolist()),
            limits=line_limits,
            range=tuple(self.site.own.bounds[0].tolist()),
            lines=class_lines,
            beyond=()
            if comparison.beyond is None
            else tuple(map(_finite_or_none, comparison.beyond[:, 0].tolist())),
            coterie_beyond=self._coterie_beyond(coterie_residuals, half_fit_residuals),
            one_class=one_class,
        )

    def _coterie_beyond(self, coterie_residuals: Array, half_fit_residuals: Array) -> float:
        """Return how far the coterie's loss is above what its probabilities claim, in standard deviations.

        If probabilities are right, the loss that they lead to is known. Both arguments are out-of-fold
        residuals, of shape (n, C); rows that only one of the models predicts do not count. Zero for numbers,
        which claim nothing.
        """
        in_both = np.isfinite(coterie_residuals + half_fit_residuals).all(axis=1)
        if not in_both.any():
            return 0.0
        loss, inflation = self.site.learners.loss, self.losses.selection.inflation
        deviations = beyond_claims(coterie_residuals[in_both], None, np.zeros(1, dtype=int), loss, inflation)
        return 0.0 if deviations is None else float(deviations[0])

    def _own_lines(
        self, dictionary: AverageDictionary, weights: Array
    ) -> tuple[Array, tuple[float, float], tuple[Line, ...]]:
        """Return the site's linear correction of its mixture, what it is clipped to, and lines of classes.

        ``weights`` (C,) are those of the mixture's columns. For a number, the correction has p slopes and an
        intercept. For classes it is zero, and a line for each average and class is added to the log-odds
        instead.
        """
        if isinstance(self.rows, SiteRows):
            return *self.rows.correction(dictionary, weights), ()
        own = self.rows.own_lines(dictionary)
        lines_and_limits = zip(
            own.lines.reshape(-1, own.lines.shape[-1]), own.limits.reshape(-1, 2), strict=True
        )
        lines = tuple(
            Line(tuple(slopes_and_intercept.tolist()), tuple(limits.tolist()))
            for slopes_and_intercept, limits in lines_and_limits
        )
        # Classes have no common line: zeros stand in, since the message has a place for one.
        return np.zeros(own.lines.shape[-1]), (0.0, 0.0), lines


def answer(site: Site, shares: Sequence[Share], question: Question, *, n_replicates: int = 100) -> Answer:
    """Answer a question about averages of models by losses and residual products on the site's rows.

    Parameters
    ----------
    site : Site
        The site.
    shares : sequence of Share
        Those that were scored.
    question : Question
        What averages, pairings, mixture and partition the answer is about.
    n_replicates : int, default=100
        Number of bootstrap samples of the site's rows that show how sure its coterie is; 0: none.

    Returns
    -------
    Answer
        Means and products over rows, never a row.

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
    # For each labelling, (K, 2): the site is the only learner here, with index 0.
    losses_on_halves = [losses.on_halves(labels)[:, 0] for labels in labellings]
    return Answer(
        site=site.name,
        question=question_key(question),
        halves=tuple(
            tuple((_loss_or_none(first), _loss_or_none(second)) for first, second in cluster_losses)
            for cluster_losses in losses_on_halves
        ),
        likelihoods=answering.likelihoods(),
        pairings=tuple(_excess_of_pairing(losses, pairing) for pairing in question.pairings),
        products=answering.products(),
        verdict=answering.verdict(n_replicates),
    )
