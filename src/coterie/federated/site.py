"""What a site does with its rows at first: share its model, and score everybody's.

Pure functions from a `Party`, which holds the rows, and messages to a message. The arithmetic is that of the
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
from coterie.candidates import PRESETS
from coterie.federated import wire
from coterie.federated.codec import LARGEST
from coterie.federated.messages import (
    Blur,
    Loss,
    ProtocolError,
    Score,
    Share,
)
from coterie.federated.peers import Party, evaluate_peers, is_comparable, squares_by_row
from coterie.federated.privacy import blurred_coefficients, blurred_means, check_blur, noise_of_level
from coterie.kernels.affine import affine_form
from coterie.loss import SQUARED_ERROR
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


def share(party: Party, *, blur: Blur | None = None) -> Share:
    """Return what the site tells of itself.

    Parameters
    ----------
    party : Party
        The site.
    blur : Blur or None, default=None
        Clip and blur the coefficients of a linear model. What else is told then does not depend on the
        rows but for their number: the error is left to `score`, and the response counts as unknown.

    Returns
    -------
    Share
        Its model and a few numbers.

    Raises
    ------
    WireError
        If the model keeps training rows or cannot be written down.
    """
    learners, selection = party.learners, party.selection
    open_share = Share(
        site=party.site,
        n_rows=len(learners.y),
        error=float(selection.errors[0]),
        response_mean=float(learners.y.mean()),
        response_variance=float(learners.y.var()),
        columns=party.columns,
        target=party.target,
        family=selection.names[0],
        model=wire.pack(selection.models[0], party.n_features),
        candidates=party.candidates,
        seed=party.seed,
        software=software_versions(),
        spreads=tuple(learners.X.std(axis=0).tolist()),
    )
    if blur is None:
        return open_share
    form = affine_form(selection.models[0], party.n_features)
    competing = [name for entry in party.candidates for name in PRESETS.get(entry, (entry,))]
    if form is None or len(competing) != 1:
        raise ProtocolError(
            "Only one linear candidate can be blurred: which of several wins, and a forest's leaves, tell of "
            "the rows. Take --candidates ridge."
        )
    w, b = blurred_coefficients(*form, check_blur(blur), np.random.default_rng())
    return replace(
        open_share,
        error=0.0,
        response_mean=0.0,
        response_variance=blur.clip**2,
        model=wire.pack_affine(w, b),
        spreads=(),
        privacy=blur,
    )


def pooled_variance(shares: Sequence[Share]) -> float:
    """Return the variance of these sites' responses together, as a local fit pools it."""
    counts = np.array([share.n_rows for share in shares], dtype=float)
    means = np.array([[share.response_mean] for share in shares])
    within = np.array([share.response_variance for share in shares])
    return pool_variances(counts, means, within)


def bounded_selection(party: Party, shares: Sequence[Share]) -> tuple[Selection, float, float]:
    """Return the selection with the bound that the peers' responses call for, and the noise statistics."""
    # Whoever predicts something else, or from something else, says nothing about rounding here.
    smallest = smallest_level(pooled_variance([peer for peer in shares if is_comparable(party, peer)]))
    residuals = party.selection.residuals[0]
    clip = clip_bound(residuals, smallest, tied=mostly_one_value(party.learners.y))
    level, variance = noise_statistics(residuals, clip, smallest)
    return replace(party.selection, clips=np.array([clip]), noise=np.array([level])), level, variance


def _score(
    party: Party,
    by_site: Mapping[str, Share],
    values: Mapping[str, float],
    noise: float,
    noise_variance: float,
    **more: Any,
) -> Score:
    """Return a score; ``values`` are the losses of the models that have one, by site."""
    first, second = np.bincount(halves_of(party.selection.folds[0]), minlength=2).tolist()
    return Score(
        site=party.site,
        sha=by_site[party.site].sha,
        losses={site: Loss(peer.sha, values.get(site)) for site, peer in by_site.items()},
        noise=noise,
        noise_variance=noise_variance,
        half_sizes=(first, second),
        **more,
    )


def _blurred_score(party: Party, by_site: Mapping[str, Share], blur: Blur) -> Score:
    """Return a score of blurred numbers; the noise level is the loss of the site's own model."""
    if by_site[party.site].privacy is None:
        raise ProtocolError(f"The model of {party.site!r} was shared as it is: blur the share as well.")
    sites, squares = squares_by_row(party, list(by_site.values()))
    means = blurred_means(squares, check_blur(blur), np.random.default_rng())
    values = dict(zip(sites, means.tolist(), strict=True))
    if party.site not in values:
        raise ProtocolError("The site's own model cannot be read: share another.")
    level = max(values[party.site], 1e-12 * blur.clip)
    variance = noise_of_level(level, blur, len(means), len(party.learners.y))
    return _score(party, by_site, values, level, variance, privacy=blur)


def score(party: Party, shares: Sequence[Share], *, blur: Blur | None = None) -> Score:
    """Return what everybody's models lose on the site's rows.

    Parameters
    ----------
    party : Party
        The site.
    shares : sequence of Share
        Everybody's, the site's own among them, one per site.
    blur : Blur or None, default=None
        Clip the squared residuals and blur the losses; the share must have been blurred, too.

    Returns
    -------
    Score
        Scalars. A model that cannot be read or evaluated has no loss.
    """
    by_site = {peer.site: peer for peer in shares}
    if len(by_site) < len(shares):
        raise ProtocolError("Two shares bear one name: leave one of them out.")
    if party.site not in by_site:
        raise ProtocolError(f"The shares lack that of {party.site!r} itself: run share first.")
    if blur is None and by_site[party.site].privacy is not None:
        raise ProtocolError(f"The share of {party.site!r} is blurred: blur the score as well.")
    if blur is not None:
        return _blurred_score(party, by_site, blur)
    peers = evaluate_peers(party, shares)
    y = party.learners.y
    means = SQUARED_ERROR.by_row(peers.table[..., None] - y).mean(axis=1)
    values = {site: float(m) for site, m in zip(peers.sites, means, strict=True) if m <= LARGEST}
    _, level, variance = bounded_selection(party, shares)
    return _score(party, by_site, values, level, variance, tied=mostly_one_value(y))
