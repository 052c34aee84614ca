"""Everybody's models on one site's rows, and who cannot be used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coterie.federated import wire
from coterie.federated.messages import ProtocolError, Share
from coterie.federated.party import Party

Array = NDArray[Any]


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
    comparable, troubles = {}, {}
    for peer in shares:
        if is_comparable(party, peer):
            comparable[peer.site] = peer
        else:
            troubles[peer.site] = other_columns(peer, party.columns, party.target)
    _look_at(party, [peer for peer in comparable.values() if peer.sha not in party.seen])
    sites = []
    for site in sorted(comparable):
        found = party.seen[comparable[site].sha]
        if isinstance(found, str):
            troubles[site] = found
        else:
            sites.append(site)
    table = [party.seen[comparable[site].sha] for site in sites]
    return Peers(tuple(sites), np.array(table).reshape(len(sites), len(party.learners.y)), troubles)


def squares_by_row(party: Party, shares: Sequence[Share]) -> tuple[tuple[str, ...], Array]:
    """Return the sites whose models can be read, sorted, and the squared residuals, of shape (M, n).

    They are infinite where a prediction fails. Which models are among them does not depend on the rows, and a
    row's squares depend on no other row: one row at which a model fails must not show in whether the model
    has a loss.
    """
    models = {}
    for peer in sorted(shares, key=lambda peer: peer.site):
        if is_comparable(party, peer):
            with suppress(wire.WireError):
                models[peer.site] = wire.unpack(peer.model, party.n_features)
    predictions = wire.predict_rows(list(models.values()), party.learners.X).predictions
    squares = party.learners.loss.by_row(predictions[..., None] - party.learners.y)
    return tuple(models), np.where(np.isnan(squares), np.inf, squares)


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
