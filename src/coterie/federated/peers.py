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

# The largest response, in absolute value. Its square must fit into a message, whose largest number is 1e100.
LARGEST_RESPONSE = 1e45
# Folds of a site's rows on which weights are learnt: ``nested_folds`` of a local fit.
N_FOLDS = 4


@dataclass(frozen=True)
class Site:
    """A site with its rows and the model that was selected on them; never leaves the site.

    ``learners`` has its rows, as the only learner, and ``selection`` its model with out-of-fold residuals.
    ``candidates`` are the names of the models that competed, ``sets`` the models themselves. Randomness
    derives from the site's name and ``seed``.

    ``seen`` is a cache: by the sha256 of a peer's model, its predictions of these rows, or the reason why
    there are none. A model is evaluated once, however many rounds there are. ``spent`` are the seconds that
    evaluations took, for all models share one allowance.
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
        """Return predictions of each fold of the site's rows by its own model, fitted on the other folds.

        They are made as in a local fit, when they are first needed.
        """
        recipe = Recipe(
            chosen=1,
            scale="noise",
            refine="average",
            robust=False,
            seed=self.seed,
            engine=ThreadEngine(),
        )
        folds = folds_of(self.learners, self.selection, N_FOLDS, None, self.seed)
        return own_by_fold(
            self.learners, self.selection, folds, [dict(candidate_set) for candidate_set in self.sets], recipe
        )


def _check_size(y: Any) -> None:
    """Refuse a response whose squares are too large for a message; text and booleans pass.

    It is said at once, when the site is made, and not by the message that could not be sent.
    """
    responses = np.asarray(y)
    largest = float(np.abs(responses).max()) if responses.size and responses.dtype.kind in "fiu" else 0.0
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
    """Select a model for a site's rows by cross-validation, as a local fit does for a learner.

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
        Seed of everything random, with the site's name.
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
    known_classes = () if classes is None else class_names(classes)
    if known_classes:
        y = class_codes(y, known_classes, "make_site")
    _check_size(y)
    given_names = columns if columns is not None else column_names(X)
    groups = np.array([site] * len(y), dtype=object)
    learners = gather_learners(X, y, groups, loss=loss_of(known_classes), caller="make_site")
    # Select: the site chooses its model among the candidates by cross-validation.
    competing = ForClasses(candidates) if known_classes else candidates
    selection = select_models(learners, candidates=competing, order=order, random_state=seed)
    feature_names = (
        [f"x{k}" for k in range(learners.n_features)]
        if given_names is None
        else [str(n) for n in given_names]
    )
    if len(feature_names) != learners.n_features:
        raise ValueError(
            f"{len(feature_names)} names do not fit {learners.n_features} columns: pass one each."
        )
    # Names of the candidates go into the message, the models themselves stay here.
    specified = [candidates] if isinstance(candidates, str) else list(candidates)
    sets = tuple(candidates_per_learner(competing, learners.ids.tolist()))
    candidate_names = tuple(map(str, specified))
    return Site(
        name=site,
        learners=learners,
        selection=selection,
        columns=tuple(feature_names),
        target=target,
        candidates=candidate_names,
        seed=int(seed),
        sets=sets,
        classes=known_classes,
    )


def other_columns(peer: Share, columns: Sequence[str], target: str, classes: Sequence[str] = ()) -> str:
    """Return a sentence that says how a peer's columns, target or classes differ from those expected.

    To be called only where they differ.
    """
    if peer.target != target:
        return f"It predicts {peer.target!r}, not {target!r}."
    not_in_both = sorted(set(peer.columns) ^ set(columns))
    if not_in_both:
        verb = "has" if not_in_both[0] in peer.columns else "lacks"
        return f"It {verb} the column {not_in_both[0]!r}: give all sites the same columns."
    if peer.columns == tuple(columns) and peer.classes != tuple(classes):
        return f"Its target has other classes ({listed(peer.classes)}): run `coterie agree` and share again."
    return "Its columns come in another order: give --features in the order of the others."


def is_comparable(site: Site, peer: Share) -> bool:
    """Tell whether a peer predicts the same response from the same columns, in the same order."""
    return (peer.columns, peer.target, peer.classes) == (site.columns, site.target, site.classes)


@dataclass(frozen=True)
class Peers:
    """Everybody's models, evaluated on a site's n rows.

    ``sites`` are the M peers whose models could be evaluated, sorted; ``table``, of shape (M, n, C), is what
    they predict, in C columns of the response. ``troubles`` says whose could not, and why.
    """

    sites: tuple[str, ...]
    table: Array
    troubles: Mapping[str, str]


def _evaluate_new_models(site: Site, shares: Sequence[Share]) -> None:
    """Evaluate models on the site's rows, and keep predictions or reasons in ``site.seen``.

    All models of a site share one allowance of seconds: a peer must not stop it with slow models.
    """
    model_by_sha = {}
    for peer in shares:
        try:
            model_by_sha[peer.sha] = wire.unpack(peer.model, site.n_features, len(site.classes))
        except wire.WireError as error:
            site.seen[peer.sha] = str(error)
    # What earlier models of the same folder have used is gone, however often new ones appear.
    seconds_left = max(0.0, wire.Allowance().seconds - sum(site.spent))
    evaluated = wire.predict_each(list(model_by_sha.values()), site.learners.X, wire.Allowance(seconds_left))
    site.spent.append(evaluated.seconds)
    for index, sha in enumerate(model_by_sha):
        reason = evaluated.troubles.get(index)
        site.seen[sha] = evaluated.predictions[index] if reason is None else f"Its model {reason}."


def evaluate_peers(site: Site, shares: Sequence[Share]) -> Peers:
    """Return everybody's predictions of the site's rows, the site's own model among them.

    A peer with other columns, or whose model cannot be evaluated, is among the troubles, and stops nobody
    else.
    """
    comparable = [peer for peer in shares if is_comparable(site, peer)]
    _evaluate_new_models(site, [peer for peer in comparable if peer.sha not in site.seen])
    not_comparable = [peer for peer in shares if not is_comparable(site, peer)]
    # A trouble is a sentence in place of predictions: a stranger's model may fail, and the others go on.
    own_columns = site.columns, site.target, site.classes
    predictions_or_reasons: dict[str, Any] = {
        peer.site: other_columns(peer, *own_columns) for peer in not_comparable
    }
    predictions_or_reasons |= {
        peer.site: site.seen[peer.sha] for peer in sorted(comparable, key=lambda peer: peer.site)
    }
    troubles = {name: reason for name, reason in predictions_or_reasons.items() if isinstance(reason, str)}
    sites = tuple(sorted(set(predictions_or_reasons) - set(troubles)))
    table = np.array([predictions_or_reasons[name] for name in sites]).reshape(
        len(sites), *site.learners.y.shape
    )
    return Peers(sites, table, troubles)


def predict(
    X: Any, site: str, shares: Sequence[Share], conclusion: Conclusion, *, using: str = "verdict"
) -> Array:
    """Predict a site's rows by the mixture of models that the conclusion gives it.

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
    used_weights = {member: weight for member, weight in mixture.weights.items() if weight > 0}
    missing = [member for member in used_weights if member not in by_site]
    if missing:
        raise ProtocolError(f"The model of {missing[0]!r}, which {site!r} predicts with, is not here.")
    members = [by_site[member] for member in used_weights]
    n_classes = len(conclusion.classes)
    evaluated = wire.predict_each(
        [wire.unpack(member.model, rows.shape[1], n_classes) for member in members], rows
    )
    if evaluated.troubles:
        index, reason = next(iter(evaluated.troubles.items()))
        raise ProtocolError(f"The model of {members[index].site!r} {reason}.")
    # Classes: probabilities are kept within what each model's number of rows can show, then mixed.
    if n_classes:
        if site not in by_site:
            raise ProtocolError(f"The share of {site!r}, which says how many rows it has, is not here.")
        own_limits = class_bounds([by_site[site]])[0] if mixture.range is None else mixture.range
        with_bounds = zip(evaluated.predictions, class_bounds(members), strict=True)
        by_model = np.array(
            [np.clip(predicted, *limits_of_model) for predicted, limits_of_model in with_bounds]
        )
        class_columns = mixed_parts_of(mixture, [member.site for member in members], by_model, rows)
        probabilities: Array = loss_of(conclusion.classes).from_columns(np.clip(class_columns, *own_limits))
        return probabilities
    # Numbers: each model is kept near its own site's responses; alone, within the range of the site's own.
    limits_by_model = [
        _plausible_range(member) if mixture.range is None else np.array(mixture.range) for member in members
    ]
    clipped = [
        np.clip(predicted, *limits_of_model)
        for predicted, limits_of_model in zip(evaluated.predictions, limits_by_model, strict=True)
    ]
    correction = np.clip(rows @ np.array(mixture.line[:-1]) + mixture.line[-1], *mixture.limits)
    prediction: Array = np.array(list(used_weights.values())) @ np.array(clipped) + correction
    # With its own model alone, that model's range counts.
    plausible = mixture.plausible if mixture.range is None else None
    return prediction if plausible is None else np.clip(prediction, *plausible)


def mixed_parts_of(mixture: Mixture, sites: Sequence[str], probabilities_by_model: Array, X: Array) -> Array:
    """Return the class probabilities (n, C) of a mixture, from those of its M models, (M, n, C).

    Each part averages models; its line, if there is one, is added to the log-odds of the average.
    ``X`` (n, p) has the predictors, and ``sites`` names the models.
    """
    probabilities = np.zeros(probabilities_by_model.shape[1:])
    for part in mixture.parts:
        weights = np.array([part.weights.get(site, 0.0) for site in sites])
        average = np.einsum("m,mnc->nc", weights, probabilities_by_model)
        if part.lines:
            # Of one average: lines (1, C, p + 1) and their limits (1, C, 2).
            lines = OwnLines(
                np.array([[line.values for line in part.lines]]),
                np.array([[line.limits for line in part.lines]]),
            )
            average = chances_of(lines.added(X, log_odds_of(average)[:, None]))[:, 0]
        probabilities += part.share * average
    return probabilities


def _plausible_range(share: Share) -> Array:
    """Return the smallest and largest prediction that a site's model may make, of shape (2,).

    It follows from mean and variance of the site's response: a model must not extrapolate far beyond them.
    """
    bounds: Array = model_bounds(np.array([share.response_mean]), np.array([share.response_variance]))[0]
    return bounds


def concluded_shares(shares: Sequence[Share], conclusion: Conclusion) -> dict[str, Share]:
    """Return shares by site; refuse a model that is not the one concluded from, or two of one name.

    A site may have shared a new model since: the conclusion's weights are not meant for that one.
    """
    by_site: dict[str, Share] = {}
    for share in shares:
        if share.site in by_site and by_site[share.site] != share:
            raise ProtocolError(f"There are two different shares of {share.site!r}: leave the old one out.")
        by_site[share.site] = share
    for site, share in by_site.items():
        if conclusion.models.get(site, share.sha) != share.sha:
            raise ProtocolError(
                f"The model of {site!r} is not the one that the conclusion is about: conclude again, or take "
                "the share of the same run."
            )
    return by_site
