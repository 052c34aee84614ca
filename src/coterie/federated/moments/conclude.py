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
from coterie.federated.moments.search import MOST_LEVEL, MOST_LOSS, MomentSearchResult, search_clusters
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
# Honest moments differ from those of the rows by at most this many standard deviations of the noise.
MOST_NOISE = 8.0
# A site that counts less than this in its coterie's line is named.
MOST_DOUBTED = 0.5


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
        """Return the position of a site in the pool."""
        if site not in self.pool.sites:
            reason = self.conclusion.left_out.get(site)
            raise ProtocolError(
                f"There are no moments of {site!r} here."
                if reason is None
                else f"{site!r} was left out: {reason}"
            )
        return self.pool.sites.index(site)

    def _members(self, site: str, labels: Array) -> Array:
        """Return the members (L,) of a site's cluster whose moments count, the site included."""
        index = self.place(site)
        members: Array = np.where(labels == labels[index], self.counted, 0.0)
        return members

    def line(self, site: str) -> Array:
        """Return the line of a site's coterie, from the moments that were sent."""
        members = self._members(site, self.searched.chosen)
        line: Array = fit_lines(*_summed(self.pool, members))
        return line

    def others(self, site: str, pool: Pool) -> list[list[tuple[Array, float]]]:
        """Return, for every resolution, each cluster's summed moments without a site, and their noise.

        ``pool`` is that of all sites, or of those whose moments have knots.
        """
        self.place(site)
        inside, resolutions = np.isin(self.pool.sites, pool.sites), []
        counted = self.counted[inside] * (np.array(pool.sites) != site)
        for labels in self.searched.resolutions.values():
            members = membership(labels[inside], int(labels.max()) + 1, counted)
            result = [_summed(pool, each) for each in members if each.any()]
            if result:
                resolutions.append(result)
        return resolutions


def _summed(pool: Pool, members: Array) -> tuple[Array, float]:
    """Return the summed moments of the members (L,), and the spread of the noise on them."""
    return np.tensordot(members, pool.moments, axes=1), float(
        np.sqrt(2.0) * spread_of_sums(members, pool.scales)
    )


def _counted(pool: Pool, labels: Array, fits: Array) -> Array:
    """Return how much each site counts in lines (L,): none whom no line describes, less who disagrees."""
    if pool.scales.any():
        # Under noise lines differ by more than rows say: honest sites would count less, and lines be worse.
        return 1.0 * fits
    moments = pool.moments
    own = fit_lines(moments, 0.0)
    ends = np.column_stack([own, -np.ones(len(own))])
    left = np.einsum("lq,lqr,lr->l", ends, moments, ends) / pool.n_rows
    typical = max(float(np.median(left)), 1e-12)
    levels = np.clip(left, typical / MOST_LEVEL, typical)
    counted = agreement_weights(moments[:, :-1, :-1], moments[:, :-1, -1], levels, labels, 1.0 * fits)
    # A site that is alone in its cluster has its own line.
    return np.where(membership(labels, int(labels.max()) + 1, counted).sum(axis=1)[labels] > 0, counted, 1.0)


def _impossible(message: Moments) -> str | None:
    """Say why no rows have such moments."""
    whole = unpacked(message, bent=True).sum(axis=0)
    if message.promise is not None:
        check_promise(message.promise)
        most = message.n_rows + MOST_NOISE * noise_scale(message.promise) * np.sqrt(2.0)
        if np.abs(whole).max() > most:
            return f"Its moments are larger than those of {message.n_rows} rows can be."
        return None
    values = np.linalg.eigvalsh(whole)
    if values[0] < -1e-6 * values[-1]:
        return "Its moments are those of no rows."
    if not message.schema and round(float(whole[0, 0])) != message.n_rows:
        return f"It states {message.n_rows} rows, and its moments are those of {whole[0, 0]:g}."
    return None


def _participants(
    messages: Sequence[Moments], min_rows: int | None, leave_out: Mapping[str, str]
) -> tuple[list[Moments], dict[str, str]]:
    """Return the messages that can be pooled, sorted by site, and who is left out and why."""
    left_out = {message.site: leave_out[message.site] for message in messages if message.site in leave_out}
    known: dict[str, Moments] = {}
    for message in sorted(messages, key=lambda message: message.site):
        if known.setdefault(message.site, message) != message:
            left_out[message.site] = "Two different messages bear its name: give each site a name of its own."
    known = {site: message for site, message in known.items() if site not in left_out}
    kinds = Counter((m.columns, m.target, m.schema) for m in known.values())
    usual = max(kinds, key=lambda kind: kinds[kind]) if kinds else None
    sizes = np.array([message.n_rows for message in known.values()])
    for site, message in list(known.items()):
        needed = rows_needed(sizes, len(message.columns), "auto" if min_rows is None else min_rows)
        try:
            if (message.columns, message.target, message.schema) != usual:
                left_out[site] = "Its columns or its schema are not those of most sites."
            elif message.n_rows < needed:
                left_out[site] = f"It has {message.n_rows} rows, and clustering needs {needed}."
            elif message.schema and schema_from(message.schema).features != message.columns:
                left_out[site] = "Its columns are not those of its schema."
            elif (reason := _impossible(message)) is not None:
                left_out[site] = reason
        except ProtocolError as error:
            left_out[site] = str(error)
    return [message for site, message in known.items() if site not in left_out], left_out


def _notes(messages: Sequence[Moments], fits: Array, pool: Pool, counted: Array) -> tuple[str, ...]:
    """Say how private the moments were, who is bounded, and who is part of no line."""
    promises = [message.promise for message in messages]
    notes = []
    if all(promise is None for promise in promises):
        notes.append("Moments were sent as they are: nothing here is private.")
    elif any(promise is None for promise in promises):
        notes.append("Some sites sent their moments without noise: theirs are not private.")
    epsilons = [promise.epsilon for promise in promises if promise is not None]
    if epsilons:
        most = max(promise.delta for promise in promises if promise is not None)
        notes.append(
            f"Everything here follows from noisy moments: epsilon {max(epsilons):g} at most for each site, "
            f"delta {most:g}. Each site learns at home what it gains."
        )
    told = (
        (~fits, "Not part of any line, for no line of others describes them: "),
        (
            fits & (counted < MOST_DOUBTED),
            "Hardly part of a line, for their own differ from it: ",
        ),
        (pool.bounded, "Bounded, for in some direction they would weigh more than the other sites: "),
    )
    for result, sentence in told:
        if result.any():
            notes.append(sentence + ", ".join(np.array(pool.sites)[result].tolist()))
    return tuple(notes)


def conclude_moments(
    messages: Sequence[Moments],
    *,
    settings: Settings | None = None,
    leave_out: Mapping[str, str] | None = None,
) -> Pooled:
    """Conclude from everybody's moments who learns with whom.

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
    known, left_out = _participants(messages, settings.min_rows, leave_out or {})
    if not known:
        reason = next((f" {site!r}: {sentence}" for site, sentence in left_out.items()), "")
        raise ProtocolError(f"There is no site left to conclude from.{reason}")
    n_clusters = check_n_clusters(settings.n_clusters, len(known))
    if isinstance(n_clusters, str) and n_clusters not in ("auto", "held-out"):
        raise ProtocolError(
            f"The rule {n_clusters!r} needs losses of models, and these are moments: take 'auto' or a number."
        )
    pool = pool_of(known)
    most = largest_count(len(known), n_clusters, settings.max_clusters)
    given = n_clusters if isinstance(n_clusters, int) else None
    searched = search_clusters(pool, most, settings.seed, given)
    labels = searched.chosen
    fits = searched.ratios <= MOST_LOSS + MOST_NOISE * searched.doubt
    counted = _counted(pool, labels, fits)
    company = np.bincount(labels)[labels] - 1
    measured = (*ERRORS, *(f"{name}_se" for name in ERRORS), *GAINS)
    gains = tuple(
        Gain(
            learner=message.site,
            cluster=int(labels[k]),
            model=LINE,
            n_rows=message.n_rows,
            **dict.fromkeys(measured),
            verdict=COLLABORATE if company[k] > 0 and fits[k] else STAY_ALONE,
            reason=LEARNT_AT_SITE if fits[k] else BAD_DATA,
            fits=bool(fits[k]),
            membership=None,
            second_cluster=-1,
        )
        for k, message in enumerate(known)
    )
    curve = searched.curve
    conclusion = Conclusion(
        gains=gains,
        # A site predicts by lines that anybody can make of the moments, or by what it learns at home.
        mixtures={},
        models={message.site: message.sha for message in known},
        rule="given" if given else curve.rule,
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
        classes=schema_from(known[0].schema).classes if known[0].schema else (),
        notes=_notes(known, fits, pool, counted),
        rounds=0,
        settings=settings.as_text(),
    )
    knots = usual_knots(known)
    bends = pool_of([message for message in known if message.knots == knots], bent=True) if knots else None
    return Pooled(conclusion, pool, searched, counted, bends, knots)
