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
    """Drop labellings that differ from an earlier one in the names of the clusters only."""
    tidy = (tidy_labels(labels) for labels in labellings)
    return list({labels.tobytes(): labels for labels in tidy}.values())


def best_refined(
    evidence: Evidence,
    losses: ClusterLosses,
    n_clusters: int,
    local: LocalRows | None = None,
    *,
    rounds: int = REFINE.rounds,
) -> Array:
    """Refine from every start and keep the labelling with the lowest loss in units of noise."""
    local = local or LocalRows()
    start, quick = evidence.labels(n_clusters), local.quick or losses
    suggested = local.suggest(n_clusters, evidence.seed) if n_clusters > 1 else []
    refined = (refine_labels(quick, labels, rounds=rounds) for labels in _distinct([start, *suggested]))
    searched = min(refined, key=lambda answer: answer[1])[0]
    if local.quick is None:
        return searched
    # Judging a labelling is costly here, so of what the cheaper form found only its best is judged; but the
    # start is, too, for the cheaper form may be blind to what sets the clusters apart.
    best = min(_distinct([start, searched]), key=lambda labels: labelling_score(losses, labels))
    return refine_labels(losses, best, rounds=min(REFINE.flexible_rounds, rounds))[0]


def _try(losses: ClusterLosses, labels: Array) -> _ScoredLabelling:
    """Score a labelling: each half of a learner's rows is predicted by the cluster best on the other half."""
    halves = losses.on_halves(labels)
    # Each half is predicted by the cluster that is best on the other half.
    picks = halves.argmin(axis=0)[:, ::-1]
    all_learners = np.arange(len(labels))
    scored = np.stack([halves[picks[:, h], all_learners, h] for h in (0, 1)], axis=1)
    sizes = losses.half_sizes
    means = (scored * sizes).sum(axis=1) / sizes.sum(axis=1)
    return _ScoredLabelling(labels, picks, noise_ratios(losses, means))


def errors_allowed(n_learners: int) -> float:
    """Return the number of standard errors that counts as none: two; Student's quantile of few learners."""
    if n_learners >= RULE.few_learners:
        return RULE.standard_errors
    return float(student.isf(norm.sf(RULE.standard_errors), max(n_learners - 1, 1)))


def _margin(difference: Array) -> float:
    """Return the largest mean difference that is as good as none."""
    return errors_allowed(len(difference)) * _standard_error(difference) + RULE.negligible


def _good_enough(trial: _ScoredLabelling, best: _ScoredLabelling) -> bool:
    """Tell whether a labelling loses no more than the best one, within a margin, in the mean."""
    difference = trial.ratios - best.ratios
    return bool(difference.mean() <= _margin(difference))


def _nobody_worse(losses: ClusterLosses, trial: _ScoredLabelling, best: _ScoredLabelling) -> bool:
    """Tell whether no single learner loses significantly more than under the best labelling."""
    excess, error = losses.paired_t(trial.labels, trial.picks, best.labels, best.picks)
    freedom = np.maximum(losses.half_sizes.sum(axis=1) - 1, 1)
    # A single learner may lie, and one that differs predicts alone if the others do not help it. Two that
    # object by chance are as rare at this level as one is at the other.
    level = np.sqrt(2 * RULE.significance) if losses.bounded else RULE.significance
    bound = student.isf(level / len(excess), freedom)
    objections = np.sum((excess > bound * error) & (excess > RULE.negligible * losses.noise))
    return bool(objections <= (1 if losses.bounded else 0))


def _smallest(losses: ClusterLosses, trials: dict[int, _ScoredLabelling], local: LocalRows) -> int:
    """Return the smallest number of clusters that is good enough beside the best of them."""
    best = min(trials, key=lambda k: trials[k].ratios.mean())
    good = [
        k
        for k in sorted(trials)
        if k == best
        or (_good_enough(trials[k], trials[best]) and _nobody_worse(losses, trials[k], trials[best]))
    ]

    def is_beyond_chance(k: int) -> bool:
        return local.anybody_beyond(trials[k].labels, trials[k].picks, RULE.significance)

    return next((k for k in good if not is_beyond_chance(k)), good[0])


def _one_truth_z(local: LocalRows, seed: int) -> float | None:
    """Return by how many standard deviations one truth is ruled out, or None where it is not."""
    deviations, gain = local.one_truth_test(seed)
    return deviations if deviations > 0 and gain > RULE.negligible else None


def held_out(
    evidence: Evidence,
    losses: ClusterLosses,
    local: LocalRows | None = None,
    *,
    refine: bool = True,
    rounds: int = REFINE.rounds,
) -> HeldOut:
    """Choose the number of clusters on rows that neither assignment nor model has seen.

    Learners move to the clusters that predict them best, in ``rounds`` rounds at most; without ``refine`` the
    paper's clusters stay as they are.
    """
    trials: dict[int, _ScoredLabelling] = {}
    best, local = 1, local or LocalRows()
    report("Cluster", 0, evidence.most)
    for k in range(1, evidence.most + 1):
        result = best_refined(evidence, losses, k, local, rounds=rounds) if refine else evidence.labels(k)
        trials[k] = _try(losses, result)
        if trials[k].ratios.mean() < trials[best].ratios.mean() - 1e-12:
            best = k
        if k - best >= RULE.patience or not _good_enough(trials[k], trials[best]):
            break
        report("Cluster", k, evidence.most)
    report("Cluster", evidence.most, evidence.most)
    chosen = _smallest(losses, trials, local)
    several = {k: trial for k, trial in trials.items() if trial.labels.any()}
    one_truth_z = None
    if chosen == 1 and refine and several:
        one_truth_z = _one_truth_z(local, evidence.seed)
        chosen = 1 if one_truth_z is None else _smallest(losses, several, local)
    ratios = trials[chosen].ratios
    spread = np.array([_standard_error(trial.ratios) for trial in trials.values()])
    curve = Curve(
        rule="held-out",
        n_clusters=np.array(list(trials)),
        values=np.array([trial.ratios.mean() for trial in trials.values()]),
        chosen=chosen,
        criterion="mean held-out loss in units of the learner's noise (lower is better)",
        spread=spread,
        one_truth_z=one_truth_z,
    )
    error = _standard_error(ratios)
    excess = float((ratios.mean() - 1) / error) if error > 0 else float("-inf")
    return HeldOut(curve, {k: trial.labels for k, trial in trials.items()}, excess)


def one_is_as_good(losses: ClusterLosses, second: ClusterLosses, labels: Array) -> bool:
    """Tell whether one model of a second form predicts everybody as well as several clusters do.

    Learners who see different parts of one curve look like different lines. False where there is one cluster.
    """
    if not labels.any():
        return False
    one = _try(second, np.zeros_like(labels))
    return bool(one.ratios.mean() <= _try(losses, labels).ratios.mean())


def second_is_better(
    losses: ClusterLosses, labels: Array, second: ClusterLosses, others: Array, *, ruled_out: bool = False
) -> bool:
    """Tell whether ``others``, the clusters that a second form found, explain the learners better.

    The second form wins if its held-out loss is surely lower, or if it needs fewer clusters and its loss is
    not higher. Otherwise the first form stays: it knows more about its own uncertainty. Where it ruled out
    one truth though its clusters do not pay on held-out rows, one cluster of it is what the second form must
    surely beat, or the second form explains nothing either.
    """
    first = _try(losses, np.zeros_like(labels) if ruled_out else labels)
    gain = first.ratios - _try(second, others).ratios
    if gain.mean() > _margin(gain):
        return True
    fewer = len(np.unique(others)) < len(np.unique(labels))
    return bool(fewer and not ruled_out and gain.mean() >= 0)


def _standard_error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else 0.0
