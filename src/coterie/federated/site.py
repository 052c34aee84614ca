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
    """Return the versions of coterie, Python, NumPy and scikit-learn, which a message states."""
    return {
        "coterie": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
    }


def share(site: Site) -> Share:
    """Return the first message of a site: its model, and what others must know to compare and weigh it.

    The model is the one that cross-validation selected among the site's candidates.

    Parameters
    ----------
    site : Site
        The site.

    Returns
    -------
    Share
        Its model, error, number of rows, columns, and mean and variance of the response.

    Raises
    ------
    WireError
        If the model keeps training rows or cannot be written down.
    """
    # The site is the only learner of its tables, so that its error and model have the index 0.
    learners, selection, n_classes = site.learners, site.selection, len(site.classes)
    of_numbers, rows_by_class = not n_classes, []
    if n_classes:
        rows_by_class = np.bincount(learners.loss.target(learners.y), minlength=n_classes).tolist()
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
        # Only shares of classes are sent; empty where the response is a number.
        class_shares=tuple(count / len(learners.y) for count in rows_by_class),
    )


def pooled_variance(shares: Sequence[Share]) -> float:
    """Return the variance of the sites' responses as if their rows were in one table, as in a local fit.

    It follows from the numbers, means and variances in the shares. What is far below it is rounding. Numbers
    of rows are needed to weigh the sites.
    """
    counts = np.array([share.n_rows for share in shares], dtype=float)
    return pool_variances(counts, *response_moments(shares), loss_of(shares[0].classes))


def bounded_selection(site: Site, shares: Sequence[Share]) -> tuple[Selection, float, float]:
    """Return the site's selection with its bound for losses, its noise level, and the level's variance.

    Losses of single rows are clipped at the bound. The noise level is the mean clipped loss of out-of-fold
    residuals; its sampling variance is that of the logarithm. Both count as rounding below a level that
    depends on the variance of all comparable sites' responses. Responses that are tied, mostly one value, are
    not clipped: all others would be outliers.
    """
    # Whoever predicts something else, or from something else, says nothing about rounding here.
    smallest = smallest_level(pooled_variance([peer for peer in shares if is_comparable(site, peer)]))
    residuals, loss = site.selection.residuals[0], site.learners.loss
    bound = clip_bound(residuals, smallest, tied=mostly_one_value(site.learners.y), loss=loss)
    noise_level, log_variance = noise_statistics(residuals, bound, smallest, loss)
    return (
        replace(site.selection, clips=np.array([bound]), noise=np.array([noise_level])),
        noise_level,
        log_variance,
    )


def _score(
    site: Site,
    share_by_site: Mapping[str, Share],
    loss_by_site: Mapping[str, float],
    noise: float,
    noise_variance: float,
    **more: Any,
) -> Score:
    """Return a score; ``loss_by_site`` has the mean losses of the models that could be evaluated, by site.

    Models without an entry get None as loss. ``more`` are further fields of `Score`.
    """
    # One half of the rows judges the clusters that the other half chose, and the other way round.
    n_first_half, n_second_half = np.bincount(halves_of(site.selection.folds[0]), minlength=2).tolist()
    return Score(
        site=site.name,
        sha=share_by_site[site.name].sha,
        losses={name: PeerLoss(peer.sha, loss_by_site.get(name)) for name, peer in share_by_site.items()},
        noise=noise,
        noise_variance=noise_variance,
        half_sizes=(n_first_half, n_second_half),
        **more,
    )


def score(site: Site, shares: Sequence[Share]) -> Score:
    """Return the mean loss of everybody's models on the site's rows, with the site's noise level.

    It is the site's part of the exchange: losses of everybody's models on everybody's rows.

    Parameters
    ----------
    site : Site
        The site.
    shares : sequence of Share
        Everybody's, the site's own among them, one per site.

    Returns
    -------
    Score
        Means over rows, never a row. A model that cannot be read or evaluated has no loss.
    """
    share_by_site = {peer.site: peer for peer in shares}
    if len(share_by_site) < len(shares):
        raise ProtocolError("Two shares bear one name: leave one of them out.")
    if site.name not in share_by_site:
        raise ProtocolError(f"The shares lack that of {site.name!r} itself: run share first.")
    peers = evaluate_peers(site, shares)
    y = site.learners.y
    mean_losses = site.learners.loss.by_row(peers.table - y).mean(axis=1)
    loss_by_site = {
        # A loss that is infinite or too large for a message has no entry, and is sent as None.
        name: float(loss)
        for name, loss in zip(peers.sites, mean_losses, strict=True)
        if loss <= LARGEST
    }
    _, noise_level, log_variance = bounded_selection(site, shares)
    return _score(site, share_by_site, loss_by_site, noise_level, log_variance, tied=mostly_one_value(y))
