"""From everybody's moments to who learns with whom: one message per site, no questions.

Nothing but the messages is looked at, so that whoever holds them comes to the same conclusion.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from coterie._arrays import Array
from coterie.federated.conclusions import Conclusion, Gain, SentCurve
from coterie.federated.messages import ProtocolError
from coterie.federated.moments.bends import usual_knots
from coterie.federated.moments.bounds import agreement_weights
from coterie.federated.moments.noise import check_promise, noise_scale
from coterie.federated.moments.pool import Pool, fit_lines, pool_of, spread_of_sums, unpacked
from coterie.federated.moments.schema import schema_from
from coterie.federated.moments.search import (
    MAX_LEVEL_RATIO,
    MAX_LOSS_RATIO,
    MomentSearchResult,
    search_clusters,
)
from coterie.federated.moments.site import Knots
from coterie.federated.protocol import Settings
from coterie.federated.tables import Moments
from coterie.method.refine.averages import membership
from coterie.method.search import check_n_clusters, largest_count
from coterie.rows.threshold import rows_needed
from coterie.verdicts.gains import ERRORS, GAINS
from coterie.verdicts.verdict import BAD_DATA, COLLABORATE, STAY_ALONE

LEARNT_AT_SITE = "By moments; what it brings, the site learns at home."
LINE = "line of moments"
# Moments that were sent truthfully differ from those of the rows by at most this many standard deviations of
# the noise.
MAX_NOISE_DEVIATIONS = 8.0
# A site that counts less than this in its coterie's line is named.
MIN_COUNTED = 0.5


@dataclass(frozen=True)
class Pooled:
    """The conclusion, and what it was made of; ``counted`` (L,) says how much each counts in lines.

    ``bends`` is the pool of those whose moments have the usual ``knots``; None where nobody's have any.
    """

    conclusion: Conclusion
    pool: Pool = field(repr=False)
    searched: MomentSearchResult = field(repr=False)
    counted: Array
    bends: Pool | None = field(default=None, repr=False)
    knots: Knots = ()

    def place(self, site: str) -> int:
        """Return the position of a site in the pool.

        A site that is not there is refused, with the reason if it was left out.
        """
        if site not in self.pool.sites:
            reason = self.conclusion.left_out.get(site)
            raise ProtocolError(
                f"There are no moments of {site!r} here."
                if reason is None
                else f"{site!r} was left out: {reason}"
            )
        return self.pool.sites.index(site)

    def _members(self, site: str, labels: Array) -> Array:
        """Return how much each site counts in the cluster of a site, of shape (L,).

        It is nought outside of the cluster. The site itself is included. A site counts less where its line
        surely differs from that of the others.
        """
        position = self.place(site)
        counted_members: Array = np.where(labels == labels[position], self.counted, 0.0)
        return counted_members

    def line(self, site: str) -> Array:
        """Return the line (p + 1,) of a site's coterie: least squares on its members' moments."""
        members = self._members(site, self.searched.chosen)
        line: Array = fit_lines(*_summed(self.pool, members))
        return line

    def others(self, site: str, pool: Pool) -> list[list[tuple[Array, float]]]:
        """Return what the other sites of each cluster sent, for every number of clusters that is kept.

        An entry is the summed moments (q, q) of a cluster without the site, and the standard deviation of
        their noise. Clusters without others are left out. ``pool`` is that of all sites, or of those whose
        moments have knots. With the site's own message, lines would have seen its rows.
        """
        # Refuses a site that sent nothing or was left out.
        self.place(site)
        # The pool of bends may lack sites that sent no knots; both are sorted by site.
        in_pool, resolutions = np.isin(self.pool.sites, pool.sites), []
        counted = self.counted[in_pool] * (np.array(pool.sites) != site)
        for labels in self.searched.resolutions.values():
            members_by_cluster = membership(labels[in_pool], int(labels.max()) + 1, counted)
            clusters = [_summed(pool, members) for members in members_by_cluster if members.any()]
            if clusters:
                resolutions.append(clusters)
        return resolutions


def _summed(pool: Pool, members: Array) -> tuple[Array, float]:
    """Return the summed moments (q, q) of members (L,), and the standard deviation of the noise on them.

    The root of two is there because the two halves of a site's rows carry noise of their own.
    """
    return np.tensordot(members, pool.moments, axes=1), float(
        np.sqrt(2.0) * spread_of_sums(members, pool.scales)
    )


def _counted(pool: Pool, labels: Array, fits: Array) -> Array:
    """Return how much each of L sites counts in the line of its cluster, from nought to one.

    Nought counts a site that no line describes (``fits`` (L,) is false), and less than one a site whose own
    line surely differs from that of the others. ``labels`` (L,) are clusters.
    """
    if pool.scales.any():
        # Under noise lines differ by more than rows say: true ones would count less, and pooled lines be
        # worse.
        return 1.0 * fits
    moments = pool.moments
    own_lines = fit_lines(moments, 0.0)
    lines_and_response = np.column_stack([own_lines, -np.ones(len(own_lines))])
    # Mean squared errors of the sites' own lines on their own rows: the variances of their noise.
    mean_losses = np.einsum("lq,lqr,lr->l", lines_and_response, moments, lines_and_response) / pool.n_rows
    typical = max(float(np.median(mean_losses)), 1e-12)
    levels = np.clip(mean_losses, typical / MAX_LEVEL_RATIO, typical)
    counted = agreement_weights(moments[:, :-1, :-1], moments[:, :-1, -1], levels, labels, 1.0 * fits)
    # A site that is alone in its cluster has its own line.
    return np.where(membership(labels, int(labels.max()) + 1, counted).sum(axis=1)[labels] > 0, counted, 1.0)


def _impossible(message: Moments) -> str | None:
    """Return why no table of rows has the moments of a message, as a sentence; None where one can have them.

    Rows of a schema have at most length one, so n of them have no moment above n, but for noise. Exact
    moments are positive semi-definite and count their rows in the entry (0, 0).
    """
    moments = unpacked(message, bent=True).sum(axis=0)
    if message.promise is not None:
        check_promise(message.promise)
        largest_possible = message.n_rows + MAX_NOISE_DEVIATIONS * noise_scale(message.promise) * np.sqrt(2.0)
        if np.abs(moments).max() > largest_possible:
            return f"Its moments are larger than those of {message.n_rows} rows can be."
        return None
    # A negative eigenvalue would be a negative sum of squares; small ones are rounding.
    eigenvalues = np.linalg.eigvalsh(moments)
    if eigenvalues[0] < -1e-6 * eigenvalues[-1]:
        return "Its moments are those of no rows."
    if not message.schema and round(float(moments[0, 0])) != message.n_rows:
        return f"It states {message.n_rows} rows, and its moments are those of {moments[0, 0]:g}."
    return None


def _participants(
    messages: Sequence[Moments], min_rows: int | None, leave_out: Mapping[str, str]
) -> tuple[list[Moments], dict[str, str]]:
    """Return the messages that can be pooled, sorted by site, and for each site left out the reason.

    Pooled are those with the columns and the schema that most have, with enough rows, and with possible
    moments. ``leave_out`` has sites to go on without, with reasons of the caller's.
    """
    left_out = {message.site: leave_out[message.site] for message in messages if message.site in leave_out}
    message_by_site: dict[str, Moments] = {}
    for message in sorted(messages, key=lambda message: message.site):
        if message_by_site.setdefault(message.site, message) != message:
            left_out[message.site] = "Two different messages bear its name: give each site a name of its own."
    message_by_site = {site: message for site, message in message_by_site.items() if site not in left_out}
    n_messages_by_kind = Counter((m.columns, m.target, m.schema) for m in message_by_site.values())
    # Only moments of the same columns by the same schema can be added up: the most frequent kind stays.
    usual_kind = (
        max(n_messages_by_kind, key=lambda kind: n_messages_by_kind[kind]) if n_messages_by_kind else None
    )
    n_rows = np.array([message.n_rows for message in message_by_site.values()])
    for site, message in list(message_by_site.items()):
        needed = rows_needed(n_rows, len(message.columns), "auto" if min_rows is None else min_rows)
        try:
            if (message.columns, message.target, message.schema) != usual_kind:
                left_out[site] = "Its columns or its schema are not those of most sites."
            elif message.n_rows < needed:
                left_out[site] = f"It has {message.n_rows} rows, and clustering needs {needed}."
            elif message.schema and schema_from(message.schema).features != message.columns:
                left_out[site] = "Its columns are not those of its schema."
            elif (reason := _impossible(message)) is not None:
                left_out[site] = reason
        except ProtocolError as error:
            left_out[site] = str(error)
    return [message for site, message in message_by_site.items() if site not in left_out], left_out


def _notes(messages: Sequence[Moments], fits: Array, pool: Pool, counted: Array) -> tuple[str, ...]:
    """Return what a reader of the conclusion has to know, a sentence each.

    It is how private the moments were, which sites no line describes, which hardly count in lines, and which
    are bounded. ``fits`` and ``counted`` (L,) are by site.
    """
    promises = [message.promise for message in messages]
    notes = []
    if all(promise is None for promise in promises):
        notes.append("Moments were sent as they are: nothing here is private.")
    elif any(promise is None for promise in promises):
        notes.append("Some sites sent their moments without noise: theirs are not private.")
    epsilons = [promise.epsilon for promise in promises if promise is not None]
    if epsilons:
        largest_delta = max(promise.delta for promise in promises if promise is not None)
        notes.append(
            f"Everything here follows from noisy moments: epsilon {max(epsilons):g} at most for each site, "
            f"delta {largest_delta:g}. Each site learns at home what it gains."
        )
    # Which sites (L,) a sentence is about, and how it begins.
    conditions = (
        (~fits, "Not part of any line, for no line of others describes them: "),
        (
            fits & (counted < MIN_COUNTED),
            "Hardly part of a line, for their own differ from it: ",
        ),
        (pool.bounded, "Bounded, for in some direction they would weigh more than the other sites: "),
    )
    for holds, sentence in conditions:
        if holds.any():
            notes.append(sentence + ", ".join(np.array(pool.sites)[holds].tolist()))
    return tuple(notes)


def conclude_moments(
    messages: Sequence[Moments],
    *,
    settings: Settings | None = None,
    leave_out: Mapping[str, str] | None = None,
) -> Pooled:
    """Conclude from everybody's moments who learns with whom.

    Sites are in one cluster where one line predicts them all; sums of their moments give that line.

    Parameters
    ----------
    messages : sequence of Moments
        From all sites.
    settings : Settings or None, default=None
        How to conclude. Of its rules there is the held-out rule only.
    leave_out : mapping of str to str or None, default=None
        Sites to go on without, and why.

    Returns
    -------
    Pooled
        The conclusion, and the pool it was made of.
    """
    settings = settings or Settings()
    pooled_messages, left_out = _participants(messages, settings.min_rows, leave_out or {})
    if not pooled_messages:
        reason = next((f" {site!r}: {sentence}" for site, sentence in left_out.items()), "")
        raise ProtocolError(f"There is no site left to conclude from.{reason}")
    n_clusters = check_n_clusters(settings.n_clusters, len(pooled_messages))
    if isinstance(n_clusters, str) and n_clusters not in ("auto", "held-out"):
        raise ProtocolError(
            f"The rule {n_clusters!r} needs losses of models, and these are moments: take 'auto' or a number."
        )
    pool = pool_of(pooled_messages)
    max_clusters = largest_count(len(pooled_messages), n_clusters, settings.max_clusters)
    # None: the held-out rule chooses the number.
    given_count = n_clusters if isinstance(n_clusters, int) else None
    searched = search_clusters(pool, max_clusters, settings.seed, given_count)
    labels = searched.chosen
    # A site fits where its loss in units of noise is usual; `doubt` is what noise on moments adds to it.
    fits = searched.ratios <= MAX_LOSS_RATIO + MAX_NOISE_DEVIATIONS * searched.doubt
    counted = _counted(pool, labels, fits)
    n_companions = np.bincount(labels)[labels] - 1
    measured_at_sites = (*ERRORS, *(f"{name}_se" for name in ERRORS), *GAINS)
    # Sites measure what they gain at home, so these fields are None here.
    gains = tuple(
        Gain(
            learner=message.site,
            cluster=int(labels[position]),
            model=LINE,
            n_rows=message.n_rows,
            **dict.fromkeys(measured_at_sites),
            verdict=COLLABORATE if n_companions[position] > 0 and fits[position] else STAY_ALONE,
            reason=LEARNT_AT_SITE if fits[position] else BAD_DATA,
            fits=bool(fits[position]),
            membership=None,
            second_cluster=-1,
        )
        for position, message in enumerate(pooled_messages)
    )
    curve = searched.curve
    conclusion = Conclusion(
        gains=gains,
        # A site predicts by lines that anybody can make of the moments, or by what it learns at home.
        mixtures={},
        models={message.site: message.sha for message in pooled_messages},
        rule="given" if given_count else curve.rule,
        clear=True,
        curves={
            curve.rule: SentCurve(
                curve.criterion,
                tuple(curve.n_clusters.tolist()),
                tuple(curve.values.tolist()),
                int(curve.chosen),
            )
        },
        left_out=left_out,
        classes=schema_from(pooled_messages[0].schema).classes if pooled_messages[0].schema else (),
        notes=_notes(pooled_messages, fits, pool, counted),
        rounds=0,
        settings=settings.as_text(),
    )
    knots = usual_knots(pooled_messages)
    bends = (
        pool_of([message for message in pooled_messages if message.knots == knots], bent=True)
        if knots
        else None
    )
    return Pooled(conclusion, pool, searched, counted, bends, knots)
