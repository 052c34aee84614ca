"""What a site does with its rows at first: share its model, and score everybody's.

Pure functions from a `Site`, which holds the rows, and messages to a message. The arithmetic is that of the
local stages, run on the rows of one learner.
"""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn

from coterie._version import __version__
from coterie.federated import wire
from coterie.federated.codec import LARGEST
from coterie.federated.labels import loss_of, response_moments
from coterie.federated.messages import PeerLoss, ProtocolError, Score, Share
from coterie.federated.peers import Site, evaluate_peers, is_comparable
from coterie.method.noise import clip_bound, mostly_one_value, noise_statistics, smallest_level
from coterie.method.noise import pooled_variance as pool_variances
from coterie.method.refine.losses import halves_of
from coterie.records import Selection


def software_versions() -> dict[str, str]:
    """Return the versions that a message states."""
    return {
        "coterie": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def share(site: Site) -> Share:
    """Return what the site sends of itself.

    Parameters
    ----------
    site : Site
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
    learners, selection, n_classes = site.learners, site.selection, len(site.classes)
    of_numbers, counts = not n_classes, []
    if n_classes:
        counts = np.bincount(learners.loss.target(learners.y), minlength=n_classes).tolist()
    return Share(
        site=site.name,
        n_rows=len(learners.y),
        error=float(selection.errors[0]),
        response_mean=float(learners.y.mean()) if of_numbers else 0.0,
        response_variance=float(learners.y.var()) if of_numbers else 0.0,
        columns=site.columns,
        target=site.target,
        family=selection.names[0],
        model=wire.pack(selection.models[0], site.n_features, n_classes),
        candidates=site.candidates,
        seed=site.seed,
        software=software_versions(),
        spreads=tuple(learners.X.std(axis=0).tolist()),
        classes=site.classes,
        class_shares=tuple(count / len(learners.y) for count in counts),
    )


def pooled_variance(shares: Sequence[Share]) -> float:
    """Return the variance of these sites' responses together, as a local fit pools it."""
    counts = np.array([share.n_rows for share in shares], dtype=float)
    return pool_variances(counts, *response_moments(shares), loss_of(shares[0].classes))


def bounded_selection(site: Site, shares: Sequence[Share]) -> tuple[Selection, float, float]:
    """Return the selection with the bound that the peers' responses call for, and the noise statistics."""
    # Whoever predicts something else, or from something else, says nothing about rounding here.
    smallest = smallest_level(pooled_variance([peer for peer in shares if is_comparable(site, peer)]))
    residuals, loss = site.selection.residuals[0], site.learners.loss
    clip = clip_bound(residuals, smallest, tied=mostly_one_value(site.learners.y), loss=loss)
    level, variance = noise_statistics(residuals, clip, smallest, loss)
    return replace(site.selection, clips=np.array([clip]), noise=np.array([level])), level, variance


def _score(
    site: Site,
    by_site: Mapping[str, Share],
    values: Mapping[str, float],
    noise: float,
    noise_variance: float,
    **more: Any,
) -> Score:
    """Return a score; ``values`` are the losses of the models that have one, by site."""
    first, second = np.bincount(halves_of(site.selection.folds[0]), minlength=2).tolist()
    return Score(
        site=site.name,
        sha=by_site[site.name].sha,
        losses={name: PeerLoss(peer.sha, values.get(name)) for name, peer in by_site.items()},
        noise=noise,
        noise_variance=noise_variance,
        half_sizes=(first, second),
        **more,
    )


def score(site: Site, shares: Sequence[Share]) -> Score:
    """Return what everybody's models lose on the site's rows.

    Parameters
    ----------
    site : Site
        The site.
    shares : sequence of Share
        Everybody's, the site's own among them, one per site.

    Returns
    -------
    Score
        Scalars. A model that cannot be read or evaluated has no loss.
    """
    by_site = {peer.site: peer for peer in shares}
    if len(by_site) < len(shares):
        raise ProtocolError("Two shares bear one name: leave one of them out.")
    if site.name not in by_site:
        raise ProtocolError(f"The shares lack that of {site.name!r} itself: run share first.")
    peers = evaluate_peers(site, shares)
    y = site.learners.y
    means = site.learners.loss.by_row(peers.table - y).mean(axis=1)
    values = {name: float(m) for name, m in zip(peers.sites, means, strict=True) if m <= LARGEST}
    _, level, variance = bounded_selection(site, shares)
    return _score(site, by_site, values, level, variance, tied=mostly_one_value(y))
