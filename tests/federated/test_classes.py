"""Classes by messages come to what a local fit comes to; a site that has seen one class takes part."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie import CoterieClassifier
from coterie.datasets import make_logistic_learners
from coterie.federated import (
    Conclusion,
    ProtocolError,
    Settings,
    Site,
    decode,
    encode,
    make_site,
    predict,
    score,
    share,
)
from coterie.federated.labels import class_codes, class_names, label_text
from coterie.federated.recomputing import check_conclusion

from .conftest import Sites, ask_all, labels_of

NAMES = np.array(["no", "perhaps", "yes"])
PRECISION = 1e-8


def rows(n_classes: int, seed: int = 0, n_learners: int = 8) -> Any:
    """Learners of two truths; the first has seen one class only."""
    made = make_logistic_learners(
        n_learners, n_truths=2, n_rows=60, n_features=3, n_classes=n_classes, random_state=seed
    )
    kept = (made.groups != made.learner_ids[0]) | (made.y == 0)
    return SimpleNamespace(X=made.X[kept], y=NAMES[made.y][kept], groups=made.groups[kept])


def carried(message: Any) -> Any:
    return decode(encode(message))


def class_sites(data: Any, candidates: Any = "linear", seed: int = 0) -> Sites:
    sites: dict[str, Site] = {}
    classes = np.unique(data.y).tolist()
    for name in dict.fromkeys(data.groups.tolist()):
        mine = data.groups == name
        sites[name] = make_site(
            data.X[mine], data.y[mine], site=name, candidates=candidates, seed=seed, classes=classes
        )
    shares = [carried(share(site)) for site in sites.values()]
    return Sites(sites, shares, [carried(score(site, shares)) for site in sites.values()])


def concluded(sites: Sites, **options: Any) -> Conclusion:
    found: Conclusion = carried(ask_all(sites, settings=Settings(**options)))
    return found


def assert_same(found: Conclusion, sites: Sites, data: Any, model: CoterieClassifier) -> None:
    assert found.labels == labels_of(model)
    gains = model.gains_
    each = [next(row for row in found.gains if row.learner == site) for site in gains["learner"].tolist()]
    for name in ("error_alone", "error_with", "error_all", "error_with_se", "gain", "gain_se", "gain_low"):
        ours = np.array([np.nan if getattr(row, name) is None else getattr(row, name) for row in each])
        assert_allclose(ours, gains[name], atol=PRECISION, err_msg=name)
    assert [row.verdict for row in each] == gains["verdict"].tolist()
    assert [row.reason for row in each] == gains["reason"].tolist()
    assert [row.second_cluster for row in each] == gains["second_cluster"].tolist()
    assert_allclose([row.membership for row in each], gains["membership"])
    X = 2 * np.random.default_rng(5).normal(size=(40, 3))
    for using in ("verdict", "others", "alone"):
        for site in found.labels:
            ours = predict(X, site, sites.shares, found, using=using)
            assert_allclose(ours.sum(axis=1), 1)
            local = model.predict_proba(X, groups=[site] * len(X), using=using)
            assert_allclose(ours, local, atol=PRECISION)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("candidates", ["linear", ["rf", "logistic"], "gb"])
def test_messages_come_to_the_local_fit(n_classes: int, candidates: Any) -> None:
    data = rows(n_classes, n_learners=8 if candidates == "linear" else 6)
    sites = class_sites(data, candidates)
    found = concluded(sites)
    model = CoterieClassifier(candidates, refine="average").fit(data.X, data.y, groups=data.groups)
    assert found.classes == tuple(NAMES[:n_classes])
    assert_same(found, sites, data, model)


def test_another_seed_and_a_given_number_come_to_the_local_fit() -> None:
    data = rows(2, seed=3, n_learners=14)
    sites = class_sites(data, seed=3)
    found = concluded(sites, seed=3, n_clusters=3)
    model = CoterieClassifier("linear", refine="average", n_clusters=3, random_state=3)
    assert_same(found, sites, data, model.fit(data.X, data.y, groups=data.groups))


@pytest.fixture(scope="module")
def three() -> tuple[Any, Sites, Conclusion]:
    data = rows(3)
    sites = class_sites(data)
    return data, sites, concluded(sites)


def test_without_rounds_each_predicts_with_its_coterie(three: Any) -> None:
    _, sites, _ = three
    found = concluded(sites, rounds=False)
    X = np.random.default_rng(0).normal(size=(9, 3))
    for site in found.labels:
        assert_allclose(predict(X, site, sites.shares, found).sum(axis=1), 1)


def test_a_site_of_other_classes_is_left_out(three: Any) -> None:
    data, sites, _ = three
    mine = data.groups == "learner 03"
    other = make_site(
        data.X[mine],
        np.char.upper(data.y[mine]),
        site="learner 03",
        candidates="linear",
        classes=["NO", "PERHAPS", "YES"],
    )
    by_name = sites.sites | {"learner 03": other}
    shares = [share(site) for site in by_name.values()]
    found = concluded(Sites(by_name, shares, [score(site, shares) for site in by_name.values()]))
    assert "other classes" in found.left_out["learner 03"]
    assert len(found.labels) == len(by_name) - 1


def test_a_conclusion_whose_parts_were_changed_is_refused(three: Any) -> None:
    _, sites, found = three
    answered: list[Any] = []

    def noting(question: Any, _: int) -> Any:
        from coterie.federated import Answered

        replies = sites.replies(question)
        answered.append(Answered(question, {reply.site: reply for reply in replies}))
        return replies

    ask_all(sites, reply=noting)
    check_conclusion(found, sites.shares, sites.scores, answered)
    site = "learner 02"
    mixture = found.mixtures[site]
    part = replace(
        mixture.parts[-1], lines=tuple(replace(line, limits=(-9.0, 9.0)) for line in mixture.parts[-1].lines)
    )
    for changed in (
        replace(
            found, mixtures={**found.mixtures, site: replace(mixture, parts=(*mixture.parts[:-1], part))}
        ),
        replace(found, mixtures={**found.mixtures, site: replace(mixture, parts=())}),
        replace(found, classes=("a", "b", "c")),
    ):
        with pytest.raises(ProtocolError, match="does not follow"):
            check_conclusion(changed, sites.shares, sites.scores, answered)


def test_labels_have_one_text_everywhere() -> None:
    assert [label_text(v) for v in (np.float64(1), 2, True, "x", np.str_("y"))] == [
        "1",
        "2",
        "True",
        "x",
        "y",
    ]
    assert class_names([1, 0, 10, 2]) == ("0", "1", "2", "10")
    assert class_codes(np.array([1.0, 0.0]), ("0", "1"), "make_party").tolist() == [1, 0]
    with pytest.raises(ProtocolError, match="need two classes"):
        class_names(["a", "a"])
    with pytest.raises(ValueError, match="was not seen"):
        class_codes(["c"], ("a", "b"), "make_party")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"class_shares": (0.5, 0.5)}, "must state the share of each class"),
        ({"class_shares": (0.9, 0.9, 0.2)}, "must state the share of each class"),
        ({"classes": ("a", "a", "b")}, "Two classes have one name"),
        ({"classes": ("a",), "class_shares": (1.0,)}, "2 to 100 classes"),
    ],
)
def test_shares_that_contradict_themselves_are_refused(three: Any, change: Any, sentence: str) -> None:
    with pytest.raises(ProtocolError, match=sentence):
        replace(three[1].shares[1], **change)


def test_text_without_classes_is_refused_in_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"must be numeric: fit classes with CoterieClassifier"):
        make_site(np.zeros((8, 1)), ["a", "b"] * 4, site="north")
