"""A site and its rows, and everybody's models on them; rows are never known but at the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from coterie._arrays import Array
from coterie.federated import wire
from coterie.federated.messages import ProtocolError, Share, check_site
from coterie.method.select import select_models
from coterie.records import Selection
from coterie.rows.learners import Learners, gather_learners
from coterie.rows.tables import column_names

# Half of the digits of the largest number in a message, less some for the arithmetic on squares.
LARGEST_RESPONSE = 1e45


@dataclass(frozen=True)
class Party:
    """A site, its rows, and what Select found on them; never leaves the site.

    Its randomness derives from its name and the seed. ``learners`` has its rows, as the only learner.
    ``candidates`` are what competed. ``seen`` has what peers' models predict on these rows, or why they do
    not, by the model's sha256: a model is evaluated once, however many rounds there are. ``spent`` are the
    seconds that evaluating them took, of those that all models have together.
    """

    site: str
    learners: Learners = field(repr=False)
    selection: Selection = field(repr=False)
    columns: tuple[str, ...]
    target: str
    candidates: tuple[str, ...]
    seed: int
    seen: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    spent: list[float] = field(default_factory=list, repr=False, compare=False)

    @property
    def n_features(self) -> int:
        """Number of predictors."""
        return self.learners.n_features


def _check_size(y: Any) -> None:
    """Refuse a response whose squares are too large for a message."""
    values = np.asarray(y)
    largest = float(np.abs(values).max()) if values.size and values.dtype.kind in "fiu" else 0.0
    if np.isfinite(largest) and largest > LARGEST_RESPONSE:
        raise ProtocolError(
            f"The response reaches {largest:.3g} in size, and messages hold {LARGEST_RESPONSE:g} at most: "
            "give it in other units, the same at all sites."
        )


def make_party(
    X: Any,
    y: Any,
    *,
    site: str,
    columns: Sequence[str] | None = None,
    target: str = "y",
    candidates: Any = "default",
    seed: int = 0,
    order: str | None = "auto",
) -> Party:
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

    Returns
    -------
    Party
        For `share`, `score` and `answer`.
    """
    check_site(site)
    _check_size(y)
    names = columns if columns is not None else column_names(X)
    groups = np.array([site] * len(y), dtype=object)
    learners = gather_learners(X, y, groups, caller="make_party")
    selection = select_models(learners, candidates=candidates, order=order, random_state=seed)
    found = [f"x{k}" for k in range(learners.n_features)] if names is None else [str(n) for n in names]
    if len(found) != learners.n_features:
        raise ValueError(f"{len(found)} names do not fit {learners.n_features} columns: pass one each.")
    texts = [candidates] if isinstance(candidates, str) else list(candidates)
    return Party(site, learners, selection, tuple(found), target, tuple(map(str, texts)), int(seed))


def other_columns(peer: Share, columns: Sequence[str], target: str) -> str:
    """Say how a peer's columns differ from those expected."""
    if peer.target != target:
        return f"It predicts {peer.target!r}, not {target!r}."
    strange = sorted(set(peer.columns) ^ set(columns))
    if strange:
        verb = "has" if strange[0] in peer.columns else "lacks"
        return f"It {verb} the column {strange[0]!r}: give all sites the same columns."
    return "Its columns come in another order: give --features in the order of the others."


def is_comparable(party: Party, peer: Share) -> bool:
    """Tell whether a peer predicts the same response from the same columns."""
    return (peer.columns, peer.target) == (party.columns, party.target)


@dataclass(frozen=True)
class Peers:
    """Everybody's models, evaluated on a site's rows.

    ``sites`` are those whose models could be evaluated, sorted; ``table``, of shape (M, n), is what they
    predict. ``troubles`` says whose could not, and why.
    """

    sites: tuple[str, ...]
    table: Array
    troubles: Mapping[str, str]


def _look_at(party: Party, shares: Sequence[Share]) -> None:
    """Evaluate models that the party has not seen yet, and remember what came of it."""
    models = {}
    for peer in shares:
        try:
            models[peer.sha] = wire.unpack(peer.model, party.n_features)
        except wire.WireError as error:
            party.seen[peer.sha] = str(error)
    # What earlier models of the same folder have used is gone, however often new ones appear.
    left = max(0.0, wire.Allowance().seconds - sum(party.spent))
    answers = wire.predict_each(list(models.values()), party.learners.X, wire.Allowance(left))
    party.spent.append(answers.seconds)
    for place, sha in enumerate(models):
        why = answers.troubles.get(place)
        party.seen[sha] = answers.predictions[place] if why is None else f"Its model {why}."


def evaluate_peers(party: Party, shares: Sequence[Share]) -> Peers:
    """Read everybody's models, the site's own among them, and predict the site's rows."""
    comparable = [peer for peer in shares if is_comparable(party, peer)]
    _look_at(party, [peer for peer in comparable if peer.sha not in party.seen])
    strange = [peer for peer in shares if not is_comparable(party, peer)]
    found: dict[str, Any] = {peer.site: other_columns(peer, party.columns, party.target) for peer in strange}
    found |= {peer.site: party.seen[peer.sha] for peer in sorted(comparable, key=lambda peer: peer.site)}
    troubles = {site: answer for site, answer in found.items() if isinstance(answer, str)}
    sites = tuple(sorted(set(found) - set(troubles)))
    table = np.array([found[site] for site in sites]).reshape(len(sites), len(party.learners.y))
    return Peers(sites, table, troubles)


def predict(X: Any, site: str, shares: Sequence[Share], weights: Mapping[str, float]) -> Array:
    """Predict a site's rows with the models of its coterie.

    Parameters
    ----------
    X : array-like of shape (n, p)
        Predictors, in the order of the shared columns.
    site : str
        Who predicts.
    shares : sequence of Share
        At least those of the coterie.
    weights : mapping of str to float
        From `Conclusion.weights`.

    Returns
    -------
    ndarray of shape (n,)
        The members' models, averaged.
    """
    by_site = {peer.site: peer for peer in shares}
    lacking = [member for member in weights if member not in by_site]
    if lacking:
        raise ProtocolError(f"The model of {lacking[0]!r}, of the coterie of {site!r}, is not here.")
    rows = np.asarray(X, dtype=float)
    models = [wire.unpack(by_site[member].model, rows.shape[1]) for member in weights]
    found = wire.predict_each(models, rows)
    if found.troubles:
        place, why = next(iter(found.troubles.items()))
        raise ProtocolError(f"The model of {list(weights)[place]!r} {why}.")
    prediction: Array = np.array(list(weights.values())) @ found.predictions
    return prediction
