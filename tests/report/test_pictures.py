from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from coterie.report.pictures import (
    MOST_MEMBERS,
    both_ends,
    losses_picture,
    membership_picture,
    weights_picture,
)
from coterie.report.subject import ReportSubject, as_subject, full_names


@dataclass(frozen=True)
class WithStability(ReportSubject):
    found: object = None

    @property
    def stability(self):
        return self.found


def test_the_heat_map_is_ordered_by_cluster_and_in_units_of_noise(model):
    subject = as_subject(model)
    picture = losses_picture(subject)
    order = np.argsort(subject.partition.labels, kind="stable")
    assert picture["clusters"] == sorted(picture["clusters"])
    assert picture["learners"] == full_names(subject.partition.learner_ids[order])
    expected = (subject.exchange.losses / subject.exchange.noise)[np.ix_(order, order)]
    np.testing.assert_allclose(np.array(picture["cells"]), expected, rtol=6e-3)
    assert picture["inside"] < picture["between"]
    assert not picture["binned"]


def test_losses_that_are_not_finite_are_left_empty(partition, losses):
    picture = losses_picture(as_subject(partition, losses))
    row = picture["cells"][picture["learners"].index("f")]
    assert row == [None] * 6
    assert picture["unit"] == "loss"


def test_without_losses_the_dissimilarity_is_shown(partition):
    picture = losses_picture(as_subject(partition))
    assert picture["unit"] == "dissimilarity"
    assert np.diag(np.array(picture["cells"], float)).tolist() == [0.0] * 6


@given(st.integers(0, 300), st.integers(2, 80))
def test_both_ends_are_sorted_distinct_and_bounded(count, most):
    positions = both_ends(count, most)
    assert positions == sorted(set(positions))
    assert len(positions) == min(count, most)
    assert not positions or (positions[0] == 0 and positions[-1] == count - 1)


def test_membership_shows_the_least_sure_first(many_learners):
    partition, _ = many_learners(60)
    rng = np.random.default_rng(1)
    membership = np.eye(4)[partition.labels]
    membership[7] = 0.25
    shuffled = rng.permutation(60)
    found = SimpleNamespace(
        learner_ids=partition.learner_ids[shuffled],
        membership=membership[shuffled],
        n_replicates=200,
    )
    subject = WithStability(partition, found=found)
    picture = membership_picture(subject)
    assert picture["learners"][0] == "site 0007"
    assert picture["own"] == [0.25]
    assert picture["sure"] == 59
    assert len(picture["learners"]) == 1
    assert picture["left_out"] == 59
    found.membership = np.full((60, 4), 0.25)
    assert len(membership_picture(subject)["learners"]) == MOST_MEMBERS


def test_weights_are_shown_where_the_collaboration_has_them(model):
    collaboration = SimpleNamespace(
        learner_ids=np.array(["a", "b"]),
        share_names=("alone", "all"),
        shares=np.array([[0.75, 0.25], [0.25, 0.75]]),
    )
    subject = ReportSubject(model.partition_, None, SimpleNamespace(collaboration_=collaboration))
    picture = weights_picture(subject)
    assert picture["learners"] == ["a", "b"]
    assert picture["names"] == ["its own model", "all learners"]
    assert picture["mean"] == [0.5, 0.5]
    assert not picture["alike"]
    collaboration.shares = np.full((2, 2), 0.5)
    assert weights_picture(subject)["alike"]
    without = SimpleNamespace(collaboration_=SimpleNamespace(method="pooled"))
    assert weights_picture(replace(subject, model=without)) is None
