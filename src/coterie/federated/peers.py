"""A site and its rows, and everybody's models on them; rows are never known but at the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie._options import listed
from coterie.candidates import ForClasses, candidates_per_learner
from coterie.collaboration.classes.own_lines import OwnLines, chances_of, log_odds_of
from coterie.collaboration.nested import Recipe, folds_of, own_by_fold
from coterie.collaboration.nested.guard import model_bounds
from coterie.collaboration.nested.own import OwnByFold
from coterie.engines import ThreadEngine
from coterie.federated import wire
from coterie.federated.checks import check_site
from coterie.federated.conclusions import Conclusion, Mixture
from coterie.federated.labels import class_bounds, class_codes, class_names, loss_of
from coterie.federated.messages import ProtocolError, Share
from coterie.method.select import select_models
from coterie.records import Selection
from coterie.rows.learners import Learners, gather_learners
from coterie.rows.tables import column_names

# Half of the digits of the largest number in a message, less some for the arithmetic on squares.
LARGEST_RESPONSE = 1e45
# Folds of a site's rows on which weights are learnt: ``nested_folds`` of a local fit.
N_FOLDS = 4


@dataclass(frozen=True)
class Site:
    """A site, its rows, and what Select found on them; never leaves the site.

    Its randomness derives from its name and the seed. ``learners`` has its rows, as the only learner.
    ``candidates`` are the names of what competed, ``sets`` the candidates. ``seen`` has what peers' models
    predict on these rows, or why they do not, by the model's sha256: a model is evaluated once, however many
    rounds there are. ``spent`` are the seconds that evaluating them took, of those that all models have
    together.
    """

    name: str
    learners: Learners = field(repr=False)
    selection: Selection = field(repr=False)
    columns: tuple[str, ...]
    target: str
    candidates: tuple[str, ...]
    seed: int
    sets: tuple[Mapping[str, Any], ...] = field(default=(), repr=False, compare=False)
    classes: tuple[str, ...] = ()
    seen: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    spent: list[float] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_features(self) -> int:
        """Number of predictors."""
        return self.learners.n_features

    @cached_property
    def own(self) -> OwnByFold:
        """The own model without each fold, as a local fit makes it."""
        recipe = Recipe(1, "noise", "average", False, self.seed, ThreadEngine())
        folds = folds_of(self.learners, self.selection, N_FOLDS, None, self.seed)
        return own_by_fold(self.learners, self.selection, folds, [dict(each) for each in self.sets], recipe)


def _check_size(y: Any) -> None:
    """Refuse a response whose squares are too large for a message."""
    values = np.asarray(y)
    largest = float(np.abs(values).max()) if values.size and values.dtype.kind in "fiu" else 0.0
    if np.isfinite(largest) and largest > LARGEST_RESPONSE:
        raise ProtocolError(
            f"The response reaches {largest:.3g} in size, and messages hold {LARGEST_RESPONSE:g} at most: "
            "give it in other units, the same at all sites."
        )


def make_site(
    X: Any,
    y: Any,
    *,
    site: str,
    columns: Sequence[str] | None = None,
    target: str = "y",
    candidates: Any = "default",
    seed: int = 0,
    order: str | None = "auto",
    classes: Sequence[Any] | None = None,
) -> Site:
    """Select a model for a site's rows.

    Parameters
    ----------
    X : array-like or table of shape (n, p)
        Predictors.
    y : array-like of shape (n,)
        Response.
    site : str
        Name of the site; no two may have the same.
    columns : sequence of str or None, default=None
        Names of the predictors. None: those of the table, or x0, x1, ...
    target : str, default="y"
        Name of the response.
    candidates : str, list or dict, default="default"
        As for `CoterieRegressor`. Models that keep training rows cannot travel.
    seed : int, default=0
        Of everything random, together with the site's name.
    order : {"auto", None}, default="auto"
        As for `CoterieRegressor`. A site tests its own rows alone, so that it takes more rows or a stronger
        dependence to find it.
    classes : sequence or None, default=None
        The labels that all sites agreed on, where the response is a class; a site need not have seen all of
        them. None: the response is a number.

    Returns
    -------
    Site
        For `share`, `score` and `answer`.
    """
    check_site(site)
    known = () if classes is None else class_names(classes)
    if known:
        y = class_codes(y, known, "make_site")
    _check_size(y)
    names = columns if columns is not None else column_names(X)
    groups = np.array([site] * len(y), dtype=object)
    learners = gather_learners(X, y, groups, loss=loss_of(known), caller="make_site")
    wanted = ForClasses(candidates) if known else candidates
    selection = select_models(learners, candidates=wanted, order=order, random_state=seed)
    result = [f"x{k}" for k in range(learners.n_features)] if names is None else [str(n) for n in names]
    if len(result) != learners.n_features:
        raise ValueError(f"{len(result)} names do not fit {learners.n_features} columns: pass one each.")
    texts = [candidates] if isinstance(candidates, str) else list(candidates)
    sets = tuple(candidates_per_learner(wanted, learners.ids.tolist()))
    names_of = tuple(result), target, tuple(map(str, texts))
    return Site(site, learners, selection, *names_of, int(seed), sets, known)


def other_columns(peer: Share, columns: Sequence[str], target: str, classes: Sequence[str] = ()) -> str:
    """Say how a peer's columns or classes differ from those expected."""
    if peer.target != target:
        return f"It predicts {peer.target!r}, not {target!r}."
    strange = sorted(set(peer.columns) ^ set(columns))
    if strange:
        verb = "has" if strange[0] in peer.columns else "lacks"
        return f"It {verb} the column {strange[0]!r}: give all sites the same columns."
    if peer.columns == tuple(columns) and peer.classes != tuple(classes):
        return f"Its target has other classes ({listed(peer.classes)}): run `coterie agree` and share again."
    return "Its columns come in another order: give --features in the order of the others."


def is_comparable(site: Site, peer: Share) -> bool:
    """Tell whether a peer predicts the same response from the same columns."""
    return (peer.columns, peer.target, peer.classes) == (site.columns, site.target, site.classes)


@dataclass(frozen=True)
class Peers:
    """Everybody's models, evaluated on a site's rows.

    ``sites`` are those whose models could be evaluated, sorted; ``table``, of shape (M, n, C), is what they
    predict. ``troubles`` says whose could not, and why.
    """

    sites: tuple[str, ...]
    table: Array
    troubles: Mapping[str, str]


def _look_at(site: Site, shares: Sequence[Share]) -> None:
    """Evaluate models that the site has not seen yet, and remember what came of it."""
    models = {}
    for peer in shares:
        try:
            models[peer.sha] = wire.unpack(peer.model, site.n_features, len(site.classes))
        except wire.WireError as error:
            site.seen[peer.sha] = str(error)
    # What earlier models of the same folder have used is gone, however often new ones appear.
    seconds_left = max(0.0, wire.Allowance().seconds - sum(site.spent))
    answers = wire.predict_each(list(models.values()), site.learners.X, wire.Allowance(seconds_left))
    site.spent.append(answers.seconds)
    for index, sha in enumerate(models):
        reason = answers.troubles.get(index)
        site.seen[sha] = answers.predictions[index] if reason is None else f"Its model {reason}."


def evaluate_peers(site: Site, shares: Sequence[Share]) -> Peers:
    """Read everybody's models, the site's own among them, and predict the site's rows."""
    comparable = [peer for peer in shares if is_comparable(site, peer)]
    _look_at(site, [peer for peer in comparable if peer.sha not in site.seen])
    strange = [peer for peer in shares if not is_comparable(site, peer)]
    ours = site.columns, site.target, site.classes
    result: dict[str, Any] = {peer.site: other_columns(peer, *ours) for peer in strange}
    result |= {peer.site: site.seen[peer.sha] for peer in sorted(comparable, key=lambda peer: peer.site)}
    troubles = {name: answer for name, answer in result.items() if isinstance(answer, str)}
    sites = tuple(sorted(set(result) - set(troubles)))
    table = np.array([result[name] for name in sites]).reshape(len(sites), *site.learners.y.shape)
    return Peers(sites, table, troubles)


def predict(
    X: Any, site: str, shares: Sequence[Share], conclusion: Conclusion, *, using: str = "verdict"
) -> Array:
    """Predict a site's rows as the conclusion says.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Predictors, in the order of the shared columns.
    site : str
        Who predicts.
    shares : sequence of Share
        At least those of the models that the site uses; each must be the one that was concluded from.
    conclusion : Conclusion
        Who learns with whom.
    using : {"verdict", "others", "alone"}, default="verdict"
        As the verdict has it, with others, or with the site's own model.

    Returns
    -------
    ndarray of shape (n,), or (n, n_classes)
        Predictions; of classes the probability of each, in the order of the conclusion's ``classes``.
    """
    mixture, rows = conclusion.mixture(site, using=using), np.asarray(X, dtype=float)
    by_site = concluded_shares(shares, conclusion)
    used = {member: weight for member, weight in mixture.weights.items() if weight > 0}
    lacking = [member for member in used if member not in by_site]
    if lacking:
        raise ProtocolError(f"The model of {lacking[0]!r}, which {site!r} predicts with, is not here.")
    members = [by_site[member] for member in used]
    n_classes = len(conclusion.classes)
    result = wire.predict_each(
        [wire.unpack(member.model, rows.shape[1], n_classes) for member in members], rows
    )
    if result.troubles:
        index, reason = next(iter(result.troubles.items()))
        raise ProtocolError(f"The model of {members[index].site!r} {reason}.")
    if n_classes:
        if site not in by_site:
            raise ProtocolError(f"The share of {site!r}, which says how many rows it has, is not here.")
        limits = class_bounds([by_site[site]])[0] if mixture.range is None else mixture.range
        inside = zip(result.predictions, class_bounds(members), strict=True)
        chances = np.array([np.clip(part, *each) for part, each in inside])
        mixed = mixed_parts_of(mixture, [member.site for member in members], chances, rows)
        probabilities: Array = loss_of(conclusion.classes).from_columns(np.clip(mixed, *limits))
        return probabilities
    bounds = [_bounds(member) if mixture.range is None else np.array(mixture.range) for member in members]
    clipped = [np.clip(part, *each) for part, each in zip(result.predictions, bounds, strict=True)]
    line = np.clip(rows @ np.array(mixture.line[:-1]) + mixture.line[-1], *mixture.limits)
    prediction: Array = np.array(list(used.values())) @ np.array(clipped) + line
    # With its own model alone, that model's range counts.
    within = mixture.plausible if mixture.range is None else None
    return prediction if within is None else np.clip(prediction, *within)


def mixed_parts_of(mixture: Mixture, sites: Sequence[str], chances: Array, X: Array) -> Array:
    """Return the probabilities (n, C) of a mixture of classifiers, from those of its models, (M, n, C)."""
    mixed = np.zeros(chances.shape[1:])
    for part in mixture.parts:
        shares = np.array([part.weights.get(site, 0.0) for site in sites])
        average = np.einsum("m,mnc->nc", shares, chances)
        if part.lines:
            own = OwnLines(
                np.array([[line.values for line in part.lines]]),
                np.array([[line.limits for line in part.lines]]),
            )
            average = chances_of(own.added(X, log_odds_of(average)[:, None]))[:, 0]
        mixed += part.share * average
    return mixed


def _bounds(share: Share) -> Array:
    """Return what a model's predictions are kept within."""
    bounds: Array = model_bounds(np.array([share.response_mean]), np.array([share.response_variance]))[0]
    return bounds


def concluded_shares(shares: Sequence[Share], conclusion: Conclusion) -> dict[str, Share]:
    """Return the shares that a conclusion was made from, by site; refuse another model or two of one name."""
    result: dict[str, Share] = {}
    for share in shares:
        if share.site in result and result[share.site] != share:
            raise ProtocolError(f"There are two different shares of {share.site!r}: leave the old one out.")
        result[share.site] = share
    for site, share in result.items():
        if conclusion.models.get(site, share.sha) != share.sha:
            raise ProtocolError(
                f"The model of {site!r} is not the one that the conclusion is about: conclude again, or take "
                "the share of the same run."
            )
    return result
