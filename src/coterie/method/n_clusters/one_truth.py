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
    """Return the weight (N,) of each row in the test: quiet learners count more, wild rows less.

    A learner counts by one over its mean clipped loss. ``clips`` (N,) are the largest loss that counts of
    each row, as Select found them; a row above counts by bound / loss. ``residuals`` have shape (N, C).

    The weights depend on the size of the residuals (N, C) alone, which random signs leave as it is. Weights
    that know more of the data, such as those by a learner's own model, make one truth look like two.
    """
    losses_by_row = learners.loss.by_row(residuals)
    clipped_losses = np.minimum(losses_by_row, clips)
    learner_weights = bounded_weights(
        1 / np.maximum(learners.mean_by_learner(clipped_losses), np.finfo(float).tiny)
    )
    # A loss of zero gives infinity here, and so the weight one.
    with np.errstate(divide="ignore"):
        row_weights: Array = np.minimum(1.0, clips / losses_by_row) * learner_weights[learners.owner]
    return row_weights if learners.weights is None else row_weights * learners.weights


def _share_explained_by_two(
    Z: Array,
    response: Array,
    weights: Array,
    total_squares: float,
    learners: Learners,
    ridge: Array,
    seed: int,
) -> float:
    """Return the share of a response's sum of squares that two clusters explain beyond one.

    ``Z`` (N, d) are predictors, ``response`` has the shape (N, C), ``weights`` (N,) count rows,
    ``total_squares`` is the weighted sum of squares of the response, and ``ridge`` (d, d) is added
    to X'X, so that it can be inverted. Two clusters are the best partition of learners that random starts
    from ``seed`` find, with a linear model each; all of it comes from sums X'X and X'y.
    """
    weighted_rows = Z * weights[:, None]
    # Each learner's sums: G (L, d, d) is X'X, c (L, d, C) is X'y.
    G = np.array([weighted_rows[span].T @ Z[span] for span in map(learners.span, range(len(learners)))])
    c = np.add.reduceat(weighted_rows[:, :, None] * response[:, None], learners.offsets[:-1], axis=0)
    summed_products = c.sum(axis=0)
    explained_by_one = float(
        np.sum(np.linalg.solve(G.sum(axis=0) + ridge, summed_products) * summed_products)
    )
    # A lowest loss is minus the squares that its models explain.
    return (-explained_by_one - lowest_loss(G, c, ridge, 2, seed)) / total_squares


def _less_levels(values: Array, weights: Array, blocks: Array | None) -> Array:
    """Return the columns of values (N, d) less the weighted mean of their block.

    ``blocks`` (N,) numbers the block of each row, such as half a learner's rows; None: values are returned
    as they are. ``weights`` (N,) are the rows'. Levels of blocks drift where neighbouring rows depend on each
    other, as in a time series, and say nothing about truths.
    """
    if blocks is None:
        return values
    block_sums = np.array([np.bincount(blocks, weights * column) for column in values.T]).T
    block_weights = np.maximum(np.bincount(blocks, weights), np.finfo(float).tiny)
    without_levels: Array = values - (block_sums / block_weights[:, None])[blocks]
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
    """Compare what two clusters explain of classes with what they explain of classes drawn from one model.

    This asks whether one truth, one model for all learners, could look like these classes. If each of 99
    drawn responses is explained less well by two clusters than the real one, it could hardly.

    ``Z`` (N, d) are predictors with a column of ones, ``chances`` (N, C) the probabilities of classes by one
    model for everybody; of two classes, of the second. Responses are drawn from them, because the noise of
    classes differs from row to row, so that neither random signs nor permutations would leave it as it is.

    Where neighbouring rows depend on each other, ``blocks`` (N,) number the blocks whose levels are taken
    off, so that slopes alone are compared. Classes are drawn as if rows were independent; what two clusters
    explain of noise is proportional to the variance of sums, which dependence multiplies by ``inflation``.

    Returns the same two numbers as `compare_with_one_truth`: standard deviations above chance, and the gain.
    ``ridge`` (d, d) steadies the models, and ``seed`` is that of draws and random starts.
    """
    weights = np.ones(len(Z)) if learners.weights is None else learners.weights
    Z = _less_levels(Z, weights, blocks)
    weighted_rows = Z * weights[:, None]
    gram = weighted_rows.T @ Z + ridge

    def explained(response: Array) -> float:
        """Return the share of a response (N, C) that two clusters explain beyond one model.

        The response counts as far as it departs from the probabilities, and from a line through that.
        """
        unexplained = _less_levels(response - chances, weights, blocks)
        unexplained = unexplained - Z @ np.linalg.solve(gram, weighted_rows.T @ unexplained)
        total_squares = float(weights @ learners.loss.by_row(unexplained))
        return (
            _share_explained_by_two(Z, unexplained, weights, total_squares, learners, ridge, seed)
            if total_squares > 0
            else 0.0
        )

    generator, observed_share, drawn_shares = np.random.default_rng(seed), explained(learners.y), []
    cumulative = np.cumsum(chances, axis=1)
    for _ in range(DRAWS):
        # A class is drawn by where a uniform number falls among the cumulative probabilities.
        uniform = generator.random(len(Z))
        if chances.shape[1] == 1:
            codes = uniform < chances[:, 0]
        else:
            codes = (uniform[:, None] > cumulative[:, :-1]).sum(axis=1)
        drawn_shares.append(inflation * explained(learners.loss.response(codes)))
        # One truth is possible as soon as one draw explains as much: the other draws need not be made.
        if drawn_shares[-1] >= observed_share:
            return 0.0, 0.0
    gain, standard_deviation = observed_share - float(np.mean(drawn_shares)), float(np.std(drawn_shares))
    return (gain / standard_deviation, gain) if standard_deviation > 0 else (0.0, 0.0)


def compare_with_one_truth(
    Z: Array, residuals: Array, clips: Array, learners: Learners, ridge: Array, seed: int
) -> tuple[float, float]:
    """Compare what two clusters explain of residuals with what they explain of noise around one model.

    This asks whether one truth, one model for all learners, could look like these residuals. The best two
    clusters explain something of pure noise, too; so the same search is made on draws of noise.

    ``Z`` of shape (N, d) are predictors and a column of ones, in a common frame, and ``residuals`` of shape
    (N, C) those of one model for everybody. Rows whose losses exceed ``clips`` of shape (N,) count less.
    ``ridge`` of shape (d, d) is added to the sums X'X of every cluster. The response of ``learners`` is not
    looked at. Draws of noise are the residuals with random signs and in random orders, in turn.

    Returns two numbers: by how many standard deviations of the draws two clusters explain more than the mean
    draw, and how much more, as a share of the noise that one model leaves. Both are zero if some draw
    explains as much.
    """
    n, d = Z.shape

    def explained(response: Array, weights: Array, total_squares: float) -> float:
        """Return the share of a response (N, C) that two clusters explain beyond one."""
        return _share_explained_by_two(Z, response, weights, total_squares, learners, ridge, seed)

    weights = _weights(residuals, clips, learners)
    weighted_rows = Z * weights[:, None]
    # The weighted model is fitted to residuals instead of responses, so that few digits cancel.
    unexplained = residuals - Z @ np.linalg.solve(weighted_rows.T @ Z + ridge, weighted_rows.T @ residuals)
    # Residuals are smaller than the noise behind them, as a fit of d coefficients takes d of N rows' worth.
    noise = unexplained * np.sqrt(n / (n - d))
    total_squares = float(weights @ learners.loss.by_row(noise))
    if not total_squares > 0:
        return 0.0, 0.0
    generator, observed_share, drawn_shares = (
        np.random.default_rng(seed),
        explained(unexplained, weights, total_squares),
        [],
    )
    for draw in range(1, DRAWS + 1):
        # Odd draws flip signs, even ones deal the noise out anew: each leaves what the other may disturb.
        if draw % 2:
            drawn_shares.append(
                explained(noise * generator.choice([-1.0, 1.0], n)[:, None], weights, total_squares)
            )
        else:
            # Weights depend on the size of a row's noise, so they are made anew where the noise has moved.
            permutation = generator.permutation(n)
            permuted_weights = _weights(residuals[permutation], clips[permutation], learners)
            permuted_total = float(permuted_weights @ learners.loss.by_row(noise[permutation]))
            drawn_shares.append(explained(noise[permutation], permuted_weights, permuted_total))
        if drawn_shares[-1] >= observed_share:
            return 0.0, 0.0
    gain, standard_deviation = observed_share - float(np.mean(drawn_shares)), float(np.std(drawn_shares))
    return (gain / standard_deviation, gain) if standard_deviation > 0 else (0.0, 0.0)
