"""Could one truth look like this? What two clusters explain, beside what they explain of one truth.

The best of all partitions into two explains something of pure noise, too. How much is seen by trying: the
response is the one model's prediction plus its residuals, with random signs or dealt out anew among all rows,
and the search is made again. Signs leave every learner its own level of noise, its outliers and its
predictors; but where noise is skewed, who has a large one has a high mean and a high level, too, which signs
do not know and dealing does. Neither leaves a second truth. It takes moments only, so that a draw costs as
much as a few small solves. All rows count in the search and in the score, where a rule that holds rows out
has half of them for each: at low signal this sees clusters that such a rule cannot.
"""

from __future__ import annotations

import numpy as np

from coterie._arrays import Array
from coterie.method.refine.averages import bounded_weights
from coterie.method.refine.moment_starts import lowest_loss
from coterie.rows.learners import Learners

# None of these draws may explain as much: where there is one truth, that happens once in a hundred times
# (benchmarks/quality/one_truth).
DRAWS = 99


def _weights(residuals: Array, clips: Array, learners: Learners) -> Array:
    """Return what each row counts for: quiet learners more, wild rows less.

    By the size of the residuals alone, which random signs leave as it is: weights that know more of the
    data, such as those by a learner's own model, make one truth look like two.
    """
    losses = learners.loss.by_row(residuals)
    bounded = np.minimum(losses, clips)
    quiet = bounded_weights(1 / np.maximum(learners.mean_by_learner(bounded), np.finfo(float).tiny))
    with np.errstate(divide="ignore"):
        weights: Array = np.minimum(1.0, clips / losses) * quiet[learners.owner]
    return weights if learners.weights is None else weights * learners.weights


def _share(
    Z: Array, response: Array, weights: Array, size: float, learners: Learners, ridge: Array, seed: int
) -> float:
    """Return what two clusters explain of a response (N, C) beyond one, of so much in all."""
    rows = Z * weights[:, None]
    G = np.array([rows[span].T @ Z[span] for span in map(learners.span, range(len(learners)))])
    c = np.add.reduceat(rows[:, :, None] * response[:, None], learners.offsets[:-1], axis=0)
    total = c.sum(axis=0)
    one = float(np.sum(np.linalg.solve(G.sum(axis=0) + ridge, total) * total))
    return (-one - lowest_loss(G, c, ridge, 2, seed)) / size


def _less_levels(values: Array, weights: Array, blocks: Array | None) -> Array:
    """Return values (N, d) less the mean of their block (N,); all as they are where there are no blocks."""
    if blocks is None:
        return values
    sums = np.array([np.bincount(blocks, weights * column) for column in values.T]).T
    sizes = np.maximum(np.bincount(blocks, weights), np.finfo(float).tiny)
    without_levels: Array = values - (sums / sizes[:, None])[blocks]
    return without_levels


def compare_with_drawn_classes(
    Z: Array,
    chances: Array,
    learners: Learners,
    ridge: Array,
    seed: int,
    *,
    blocks: Array | None = None,
    inflation: float = 1.0,
) -> tuple[float, float]:
    """Compare the same where one truth gives the probabilities of classes: responses are drawn from it.

    ``chances`` (N, C) are those of one model for everybody; of two classes, of the second. Their noise
    differs from row to row, so that neither signs nor dealing would leave it as it is.

    Where neighbouring rows depend on each other, ``blocks`` (N,) have levels of their own, which drift and
    say nothing about truths: slopes alone are compared. Classes are drawn as if rows were independent; what
    two clusters explain of noise is proportional to the variance of sums, which dependence multiplies by
    ``inflation``.
    """
    weights = np.ones(len(Z)) if learners.weights is None else learners.weights
    Z = _less_levels(Z, weights, blocks)
    weighted = Z * weights[:, None]
    gram = weighted.T @ Z + ridge

    def explained(response: Array) -> float:
        """Return what two clusters explain of how far a response is from probabilities of one."""
        left = _less_levels(response - chances, weights, blocks)
        left = left - Z @ np.linalg.solve(gram, weighted.T @ left)
        size = float(weights @ learners.loss.by_row(left))
        return _share(Z, left, weights, size, learners, ridge, seed) if size > 0 else 0.0

    generator, observed, drawn = np.random.default_rng(seed), explained(learners.y), []
    ends = np.cumsum(chances, axis=1)
    for _ in range(DRAWS):
        chance = generator.random(len(Z))
        if chances.shape[1] == 1:
            codes = chance < chances[:, 0]
        else:
            codes = (chance[:, None] > ends[:, :-1]).sum(axis=1)
        drawn.append(inflation * explained(learners.loss.response(codes)))
        if drawn[-1] >= observed:
            return 0.0, 0.0
    gain, spread = observed - float(np.mean(drawn)), float(np.std(drawn))
    return (gain / spread, gain) if spread > 0 else (0.0, 0.0)


def compare_with_one_truth(
    Z: Array, residuals: Array, clips: Array, learners: Learners, ridge: Array, seed: int
) -> tuple[float, float]:
    """Compare what two clusters explain with what they explain of one truth.

    ``Z`` of shape (N, d) are predictors and a column of ones, in a common frame, and ``residuals`` of shape
    (N, C) those of one model for everybody. Rows whose losses exceed ``clips`` of shape (N,) count less.
    ``ridge`` of shape (d, d) is added to the moments of every cluster. Of ``learners`` the response is not
    looked at.

    Returns by how many standard deviations of the draws two clusters explain more, and how much more than the
    mean draw, as a share of the noise beside one model; zero and zero where a draw of one truth explains as
    much.
    """
    n, d = Z.shape

    def share(response: Array, weights: Array, size: float) -> float:
        return _share(Z, response, weights, size, learners, ridge, seed)

    weights = _weights(residuals, clips, learners)
    weighted = Z * weights[:, None]
    # Of residuals, so that little cancels.
    without_lines = residuals - Z @ np.linalg.solve(weighted.T @ Z + ridge, weighted.T @ residuals)
    # As large as the noise that left them: a fit takes d of N rows' worth of it.
    noise = without_lines * np.sqrt(n / (n - d))
    size = float(weights @ learners.loss.by_row(noise))
    if not size > 0:
        return 0.0, 0.0
    generator, observed, drawn = np.random.default_rng(seed), share(without_lines, weights, size), []
    for draw in range(1, DRAWS + 1):
        if draw % 2:
            drawn.append(share(noise * generator.choice([-1.0, 1.0], n)[:, None], weights, size))
        else:
            order = generator.permutation(n)
            mixed = _weights(residuals[order], clips[order], learners)
            size_mixed = float(mixed @ learners.loss.by_row(noise[order]))
            drawn.append(share(noise[order], mixed, size_mixed))
        if drawn[-1] >= observed:
            return 0.0, 0.0
    gain, spread = observed - float(np.mean(drawn)), float(np.std(drawn))
    return (gain / spread, gain) if spread > 0 else (0.0, 0.0)
