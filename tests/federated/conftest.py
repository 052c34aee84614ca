"""Sites whose rows are small enough to fit in a moment, and a coordinator that asks them in this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from coterie.datasets import make_linear_learners
from coterie.federated import (
    Answer,
    Conclusion,
    Question,
    Score,
    Settings,
    Share,
    Site,
    answer,
    coordinate,
    make_site,
    score,
    share,
)

CANDIDATES = ["ridge"]


@dataclass(frozen=True)
class Sites:
    """Sites with what they shared and scored."""

    sites: dict[str, Site]
    shares: list[Share]
    scores: list[Score]

    def replies(self, question: Question) -> list[Answer]:
        return [answer(self.sites[member.site], self.shares, question) for member in question.members]

    def without(self, *sites: str) -> Sites:
        return Sites(
            {name: site for name, site in self.sites.items() if name not in sites},
            [message for message in self.shares if message.site not in sites],
            [message for message in self.scores if message.site not in sites],
        )


def make_sites(data, candidates=CANDIDATES, *, seed=0) -> Sites:
    """Return a site for every learner of a dataset."""
    sites = {}
    for learner in dict.fromkeys(data.groups.tolist()):
        mine = data.groups == learner
        sites[learner] = make_site(data.X[mine], data.y[mine], site=learner, candidates=candidates, seed=seed)
    shares = [share(site) for site in sites.values()]
    scores = [score(site, shares) for site in sites.values()]
    return Sites(sites, shares, scores)


def ask_all(
    sites: Sites,
    *,
    settings: Settings | None = None,
    reply: Callable[[Question, int], Sequence[Answer]] | None = None,
) -> Conclusion:
    """Run the coordinator to its end."""
    asking = coordinate(sites.shares, sites.scores, settings=settings)
    rounds = 0
    try:
        question = next(asking)
        while True:
            rounds += 1
            answers = sites.replies(question) if reply is None else reply(question, rounds)
            question = asking.send(answers)
    except StopIteration as end:
        return end.value


@pytest.fixture(scope="session")
def eight():
    """Eight learners of two truths."""
    return make_linear_learners(n_learners=8, n_truths=2, n_rows=40, n_features=3, random_state=0)


@pytest.fixture(scope="session")
def sites(eight) -> Sites:
    return make_sites(eight)


@pytest.fixture(scope="session")
def conclusion(sites) -> Conclusion:
    return ask_all(sites)


def labels_of(model) -> dict[str, int]:
    """Return a local fit's labels by learner."""
    return dict(zip(model.learner_ids_.tolist(), np.asarray(model.learner_labels_).tolist(), strict=True))
