"""Held-out: the smallest number of clusters that predicts every learner as well as the best number does.

For each K the learners are clustered and refined. Each learner's rows are split in two: on one half it
finds the cluster that predicts it best, on the other half that cluster's model is scored; then the halves
swap. Assignment and score never see the same rows, so splitting one truth hardly looks good. Chosen is the
smallest K for which

1. the mean over learners of loss / noise is within two standard errors of the best K's, paired over
   learners; of fewer than ten learners, within Student's quantile for the same probability;
2. no single learner does significantly worse than under the best K: paired over its rows, Student's t,
   one-sided, one per mille shared out among the learners, for the search has seen the rows of them all. This
   finds one attacked learner among fifty, whom the first condition cannot see.

For classes, the probabilities themselves say how much a learner should lose. If a learner surely
loses more than that (`coterie.method.claims`), the next larger K that meets the conditions is taken, if no
learner does so there.

If one cluster is good enough by all this, linear models on pooled rows test whether one truth could look like
these learners (`one_truth`). If it could not, the smallest good number of two and more is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm
from scipy.stats import t as student

from coterie._arrays import Array
from coterie.engines import report
from coterie.method.n_clusters.evidence import Evidence
from coterie.method.refine.losses import ClusterLosses, LocalRows, noise_ratios
from coterie.method.refine.moves import REFINE, labelling_score, refine_labels
from coterie.method.spectral import tidy_labels
from coterie.records import Curve


@dataclass(frozen=True)
class HeldOutRule:
    """What counts as better, and when the search ends."""

    # A smaller K is as good as the best one if its loss is within this many standard errors. One truth is
    # answered with one cluster in 98.4 % of 1,700 draws (benchmarks/quality/one_truth).
    standard_errors: float = 2.0
    # Of fewer learners than this a standard error is known badly, and Student's quantile takes its place.
    # With twenty, Student's quantile costs ten learners in five pairs .10 of the adjusted Rand index
    # (benchmarks/quality/ablation).
    few_learners: int = 10
    # Level of the test that no single learner does worse, divided by the number of learners. Finds one
    # attacked learner among fifty, whom the mean over learners cannot show (benchmarks/quality/ablation, "27,
    # 2 and 1 learners").
    significance: float = 0.001
    # A difference of this share of the noise is none, however surely it is measured.
    negligible: float = 1e-3
    # The search ends this many clusters beyond the best number so far. Four gave the same labels in all of
    # 522 draws (linear settings of the ablation, six draws each).
    patience: int = 2
    # If (loss / noise - 1) is above this many standard errors, clusters do not explain the learners. Where
    # clusters explain the learners it is below zero; on continua of truths it was never below 2
    # (benchmarks/quality/how_many).
    unclear: float = 1.5


RULE = HeldOutRule()


@dataclass(frozen=True)
class _ScoredLabelling:
    """Labels (L,), the cluster that predicts each half of a learner's rows (L, 2), and loss / noise (L,).

    Each learner's rows are in two halves; the cluster of one half in ``picks`` is the one that predicts the
    other half best. Losses in units of the learner's noise are ``ratios``, and comparable between learners.
    """

    labels: Array
    picks: Array
    ratios: Array


@dataclass(frozen=True)
class HeldOut:
    """The rule's answer: its curve, and the refined labelling for each number of clusters.

    ``excess`` is the mean of loss / noise - 1 at the chosen number, in its standard errors.
    """

    curve: Curve
    labels: dict[int, Array]
    excess: float


def _distinct(labellings: list[Array]) -> list[Array]:
    """Drop labellings of the same partition as an earlier one, whose clusters only have other numbers.

    Those that are left have their clusters renumbered by size.
    """
    renumbered = (tidy_labels(labels) for labels in labellings)
    return list({labels.tobytes(): labels for labels in renumbered}.values())


def best_refined(
    evidence: Evidence,
    losses: ClusterLosses,
    n_clusters: int,
    local: LocalRows | None = None,
    *,
    rounds: int = REFINE.rounds,
) -> Array:
    """Refine the labels (L,) of K clusters from every start, and return the labelling with the lowest loss.

    Starts are the spectral clusters and, where rows are here, labellings that ``local`` suggests. Losses are
    in units of the learners' noise. If ``local`` has a cheaper form of the losses, that form searches first
    and ``losses`` decide at the end.
    """
    local = local or LocalRows()
    spectral_labels, search_losses = evidence.labels(n_clusters), local.quick or losses
    suggested_labels = local.suggest(n_clusters, evidence.seed) if n_clusters > 1 else []
    refined_with_scores = (
        refine_labels(search_losses, labels, rounds=rounds)
        for labels in _distinct([spectral_labels, *suggested_labels])
    )
    best_found = min(refined_with_scores, key=lambda labels_and_score: labels_and_score[1])[0]
    if local.quick is None:
        return best_found
    # Judging a labelling is costly here, so of what the cheaper form found only its best is judged; but the
    # start is, too, for the cheaper form may be blind to what sets the clusters apart.
    best_start = min(
        _distinct([spectral_labels, best_found]), key=lambda labels: labelling_score(losses, labels)
    )
    return refine_labels(losses, best_start, rounds=min(REFINE.flexible_rounds, rounds))[0]


def _try(losses: ClusterLosses, labels: Array) -> _ScoredLabelling:
    """Score a labelling (L,) on held-out rows, by cross-fitting inside each learner.

    A learner's rows are in two halves. Each half is predicted by the cluster whose model predicts the other
    half best, so that the same rows never both choose the cluster and score it. The result is scored, not
    judged: `_smallest` compares the numbers of clusters by it.
    """
    # Mean losses (K, L, 2) of each cluster on each half of each learner's rows.
    losses_on_halves = losses.on_halves(labels)
    # Reversing the halves swaps them: the best cluster of one half predicts the other.
    picked_clusters = losses_on_halves.argmin(axis=0)[:, ::-1]
    all_learners = np.arange(len(labels))
    held_out_losses = np.stack(
        [losses_on_halves[picked_clusters[:, h], all_learners, h] for h in (0, 1)], axis=1
    )
    half_sizes = losses.half_sizes
    mean_losses = (held_out_losses * half_sizes).sum(axis=1) / half_sizes.sum(axis=1)
    return _ScoredLabelling(labels=labels, picks=picked_clusters, ratios=noise_ratios(losses, mean_losses))


def errors_allowed(n_learners: int) -> float:
    """Return how many standard errors a difference between two means may have and still count as none.

    These are two; for few learners, whose standard error is known badly, Student's quantile of the same
    probability.
    """
    if n_learners >= RULE.few_learners:
        return RULE.standard_errors
    return float(student.isf(norm.sf(RULE.standard_errors), max(n_learners - 1, 1)))


def _margin(differences: Array) -> float:
    """Return the largest mean of the differences (L,) that still counts as none.

    It is a few standard errors, plus a share of the noise that is negligible however surely it is measured.
    """
    return errors_allowed(len(differences)) * _standard_error(differences) + RULE.negligible


def _good_enough(trial: _ScoredLabelling, best: _ScoredLabelling) -> bool:
    """Tell whether the mean loss under a labelling is not significantly above that under the best one.

    Losses are in units of noise, and paired over learners. `_margin` says what is significant; a negative
    difference is always good enough.
    """
    differences = trial.ratios - best.ratios
    return bool(differences.mean() <= _margin(differences))


def _nobody_worse(losses: ClusterLosses, trial: _ScoredLabelling, best: _ScoredLabelling) -> bool:
    """Tell whether no single learner loses significantly more than under the best labelling.

    Each learner has a one-sided t-test, paired over its rows, at a level that is shared out among the
    learners. The mean over learners would not show one harmed learner among many. Where losses are
    ``bounded``, because learners may lie, one objection is ignored.
    """
    excess, standard_error = losses.paired_t(trial.labels, trial.picks, best.labels, best.picks)
    degrees_of_freedom = np.maximum(losses.half_sizes.sum(axis=1) - 1, 1)
    # A single learner may lie, and one that differs predicts alone if the others do not help it. Two that
    # object by chance are as rare at this level as one is at the other.
    # Two of n tests at level a / n fail by chance with probability a^2 / 2: so a is the root of twice it.
    level = np.sqrt(2 * RULE.significance) if losses.bounded else RULE.significance
    critical_t = student.isf(level / len(excess), degrees_of_freedom)
    n_objections = np.sum((excess > critical_t * standard_error) & (excess > RULE.negligible * losses.noise))
    return bool(n_objections <= (1 if losses.bounded else 0))


def _smallest(losses: ClusterLosses, trials: dict[int, _ScoredLabelling], local: LocalRows) -> int:
    """Return the smallest number of clusters that predicts everybody as well as the best number does.

    ``trials`` has the scored labelling of each number tried. Of the good numbers, one where no learner loses
    more than class probabilities claim is preferred; if there is none, the smallest good one is returned.
    """
    best_number = min(trials, key=lambda k: trials[k].ratios.mean())
    good_numbers = [
        k
        for k in sorted(trials)
        if k == best_number
        or (
            _good_enough(trials[k], trials[best_number])
            and _nobody_worse(losses, trials[k], trials[best_number])
        )
    ]

    def is_beyond_chance(k: int) -> bool:
        """Tell whether some learner loses significantly more than its K clusters' probabilities claim."""
        return local.anybody_beyond(trials[k].labels, trials[k].picks, RULE.significance)

    return next((k for k in good_numbers if not is_beyond_chance(k)), good_numbers[0])


def _one_truth_z(local: LocalRows, seed: int) -> float | None:
    """Return how many standard deviations above chance two clusters are, or None if one truth is possible.

    One truth means that one model could hold for all learners. It is ruled out only if the gain of two
    clusters is not negligible, either. Where the test does not apply, its answers are NaN, and None follows.
    """
    # NaN is above nothing, so both comparisons are false for it.
    z, gain = local.one_truth_test(seed)
    return z if z > 0 and gain > RULE.negligible else None


def held_out(
    evidence: Evidence,
    losses: ClusterLosses,
    local: LocalRows | None = None,
    *,
    refine: bool = True,
    rounds: int = REFINE.rounds,
) -> HeldOut:
    """Choose the number of clusters on rows that neither chose a learner's cluster nor trained its model.

    For each K the learners are clustered, refined and scored; the search ends when more clusters stop paying.
    Learners move to the clusters that predict them best, in ``rounds`` rounds at most; without ``refine`` the
    paper's clusters stay as they are. ``evidence`` gives the paper's clusters for any K, ``losses`` what
    clusters lose on each learner's halves of rows, and ``local`` what only rows that are here can add.

    If one cluster is good enough by held-out losses, a test on all rows asks whether one truth could look
    like these learners; if not, the smallest good number of two and more is chosen.
    """
    trials: dict[int, _ScoredLabelling] = {}
    best_number, local = 1, local or LocalRows()
    report("Cluster", 0, evidence.most)
    for k in range(1, evidence.most + 1):
        labels = best_refined(evidence, losses, k, local, rounds=rounds) if refine else evidence.labels(k)
        trials[k] = _try(losses, labels)
        # A gain below 1e-12 is rounding.
        if trials[k].ratios.mean() < trials[best_number].ratios.mean() - 1e-12:
            best_number = k
        if k - best_number >= RULE.patience or not _good_enough(trials[k], trials[best_number]):
            break
        report("Cluster", k, evidence.most)
    report("Cluster", evidence.most, evidence.most)
    chosen = _smallest(losses, trials, local)
    # Labels of zeros are one cluster, however many were asked for.
    trials_of_several = {k: trial for k, trial in trials.items() if trial.labels.any()}
    one_truth_z = None
    if chosen == 1 and refine and trials_of_several:
        one_truth_z = _one_truth_z(local, evidence.seed)
        chosen = 1 if one_truth_z is None else _smallest(losses, trials_of_several, local)
    ratios = trials[chosen].ratios
    standard_errors = np.array([_standard_error(trial.ratios) for trial in trials.values()])
    curve = Curve(
        rule="held-out",
        n_clusters=np.array(list(trials)),
        values=np.array([trial.ratios.mean() for trial in trials.values()]),
        chosen=chosen,
        criterion="mean held-out loss in units of the learner's noise (lower is better)",
        spread=standard_errors,
        one_truth_z=one_truth_z,
    )
    standard_error = _standard_error(ratios)
    # Without a standard error nothing speaks against the clusters: minus infinity stands in.
    excess = float((ratios.mean() - 1) / standard_error) if standard_error > 0 else float("-inf")
    return HeldOut(curve, {k: trial.labels for k, trial in trials.items()}, excess)


def one_is_as_good(losses: ClusterLosses, second: ClusterLosses, labels: Array) -> bool:
    """Tell whether one cluster of a second, more flexible form predicts as well as several of the first form.

    A form is how a cluster predicts from its members' rows: a line, say, or a forest. ``losses`` and
    ``labels`` (L,) are the first form's, ``second`` has the second form's losses. Learners who see different
    parts of one curve look like different lines. False where there is one cluster anyway.
    """
    if not labels.any():
        return False
    one_cluster = _try(second, np.zeros_like(labels))
    return bool(one_cluster.ratios.mean() <= _try(losses, labels).ratios.mean())


def second_is_better(
    losses: ClusterLosses, labels: Array, second: ClusterLosses, others: Array, *, ruled_out: bool = False
) -> bool:
    """Tell whether ``others``, the clusters that a second form found, explain the learners better.

    A form is how a cluster predicts: a line, say, or a forest. ``losses`` and ``labels`` (L,) are the first
    form's, ``second`` and ``others`` (L,) the second form's. The second form wins if its held-out loss is
    significantly lower, or if it needs fewer clusters and its loss is not higher. Otherwise the
    first form stays: it knows more about its own uncertainty.

    ``ruled_out`` says that the first form ruled out one truth by a test, though its clusters do not pay on
    held-out rows. The second form must then beat one cluster of the first form, or it explains nothing
    either.
    """
    first_scores = _try(losses, np.zeros_like(labels) if ruled_out else labels)
    gains = first_scores.ratios - _try(second, others).ratios
    if gains.mean() > _margin(gains):
        return True
    has_fewer_clusters = len(np.unique(others)) < len(np.unique(labels))
    return bool(has_fewer_clusters and not ruled_out and gains.mean() >= 0)


def _standard_error(values: Array) -> float:
    """Return the standard error of the mean of the values, zero for a single value."""
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
