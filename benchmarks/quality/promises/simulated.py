"""Promises beside true gains: one line for each simulated federation, and one for each of its learners."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from federations import Federation, federation
from promised import COLLABORATE, STAY_ALONE, Promises, promises

# Gains are large if they are at least this many of their sampling standard errors.
LARGE = 3.0
# Relative differences below this are rounding: the learner predicts with others as it does alone.
ROUNDING = 1e-9

NUMBERS = ["promised", "low", "high", "true", "in_se", "error_alone", "error_with", "true_alone", "true_with"]
LEARNER_COLUMNS = ["kind", "form", "candidates", "draw", "learner", "n_rows", "verdict", *NUMBERS]


@dataclass(frozen=True)
class Truth:
    """What learners lose on new rows, arrays of shape (L,).

    ``gain`` is the share of the error alone that predicting with others saves, ``in_se`` the same in standard
    errors: those of a mean over as many rows as the learner has. ``own_mean`` is what the mean of its own
    responses loses, which is the least that a learner without a model of its own can do.
    """

    own: np.ndarray
    others: np.ndarray
    in_se: np.ndarray
    own_mean: np.ndarray

    @property
    def gain(self) -> np.ndarray:
        """The true share saved; exactly zero where both predictions are the same."""
        gain: np.ndarray = 1 - self.others / self.own
        return np.where(np.abs(gain) < ROUNDING, 0.0, gain)


def truth_of(data: Federation, stated: Promises) -> Truth:
    """Measure each learner on fresh rows, in the order of ``stated.learners``."""
    own_error = stated.own(data.fresh_X, data.fresh_groups)
    others = stated.others(data.fresh_X, data.fresh_groups)
    losses: list[tuple[float, ...]] = []
    for learner in stated.learners:
        rows, place = data.fresh_groups == learner, int(np.flatnonzero(data.names == learner)[0])
        signal, y, noise = data.fresh_signal[rows], data.fresh_y[rows], data.noise_variance[place]
        mine, theirs = (float(np.mean((signal - part[rows]) ** 2)) for part in (own_error, others))
        own_mean = float(np.mean((signal - data.y[data.groups == learner].mean()) ** 2))
        spread = float(np.std((y - own_error[rows]) ** 2 - (y - others[rows]) ** 2, ddof=1))
        error = spread / np.sqrt(np.count_nonzero(data.groups == learner))
        same = not error > 0
        in_se = 0.0 if same else (mine - theirs) / error
        losses.append((noise + mine, noise + theirs, in_se, noise + own_mean))
    return Truth(*np.array(losses).T)


def _share(some: np.ndarray) -> int:
    return int(np.count_nonzero(some))


def federation_line(stated: Promises, truth: Truth) -> dict[str, Any]:
    """Count what was told rightly and wrongly among the learners that have an error alone."""
    known = stated.compared & np.isfinite(truth.gain)
    gain, in_se = truth.gain[known], truth.in_se[known]
    sent, kept = (stated.verdict[known] == word for word in (COLLABORATE, STAY_ALONE))
    large, harmed = (in_se >= LARGE) & (gain > 0), (in_se <= -LARGE) & (gain < 0)
    bounded = np.isfinite(stated.low[known]) & np.isfinite(stated.high[known])
    inside = bounded & (stated.low[known] <= gain) & (gain <= stated.high[known])
    return {
        "learners": len(stated.learners),
        "k": int(stated.model.n_clusters_),
        "compared": _share(known),
        "gainers": _share(gain > 0),
        "same": _share(gain == 0),
        "large": _share(large),
        "found": _share(large & sent),
        "told": _share(sent),
        "false": _share(sent & (gain <= 0)),
        "harmed": _share(harmed),
        "warned": _share(harmed & kept),
        "stay": _share(kept),
        "stay_false": _share(kept & (gain >= 0)),
        "stay_same": _share(kept & (gain == 0)),
        "promised": f"{np.nanmean(stated.gain[known][sent]):.4f}" if sent.any() else "",
        "realised": f"{gain[sent].mean():.4f}" if sent.any() else "",
        "bounded": _share(bounded),
        "inside": _share(inside),
        "tiny": _share(~stated.compared),
        "tiny_told": _share(~stated.compared & (stated.verdict == COLLABORATE)),
        "tiny_worse": _share(~stated.compared & (truth.others > truth.own_mean)),
    }


def learner_lines(data: Federation, stated: Promises, truth: Truth) -> list[dict[str, Any]]:
    """Return what each learner was told and what is true of it."""
    errors = [np.asarray(stated.model.gains_[name], dtype=float) for name in ("error_alone", "error_with")]
    numbers = zip(
        *(stated.gain, stated.low, stated.high, truth.gain, truth.in_se, *errors, truth.own, truth.others),
        strict=True,
    )
    return [
        {"learner": learner, "n_rows": _share(data.groups == learner), "verdict": verdict}
        | {name: f"{value:.5g}" for name, value in zip(NUMBERS, values, strict=True)}
        for learner, verdict, values in zip(stated.learners, stated.verdict, numbers, strict=True)
    ]


def one_federation(
    kind: str, form: str, candidates: str, draw: int
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Fit one federation and compare what it was told with the truth."""
    key = {"kind": kind, "form": form, "candidates": candidates, "draw": draw}
    data, start = federation(kind, draw), time.process_time()
    stated = promises(data.X, data.y, data.groups, form, None if candidates == "default" else candidates)
    seconds = time.process_time() - start
    truth = truth_of(data, stated)
    line = {**key, **federation_line(stated, truth), "seconds": f"{seconds:.1f}"}
    return line, [{**key, **each} for each in learner_lines(data, stated, truth)]
