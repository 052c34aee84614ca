"""Four changes that users ask for, each as a plug-in of a few lines: what do they touch in the source?

A family, a carrier, a picture and a rule for the number of clusters. A plug-in uses public names only. Where
there is no seam for it yet, the test is expected to fail, and `TOUCHED` names the files that the change would
touch today. Whoever builds the seam empties the list and takes the mark away: a strict mark fails when its
test passes.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

from coterie import CoterieRegressor, Report
from coterie.datasets import make_linear_learners
from coterie.federated import (
    Answered,
    Conclusion,
    Site,
    answer,
    conclude,
    coordinate,
    decode,
    encode,
    make_site,
    score,
    share,
)
from coterie.records import Curve
from tests import gates

DATA = make_linear_learners(n_learners=9, n_truths=3, n_rows=60, n_features=2, random_state=0)
LEARNERS = DATA.learner_ids.tolist()

# Files of the source that each change touches, beside new ones of its own.
TOUCHED: dict[str, tuple[str, ...]] = {
    # On rows that are here: fit, gains, summary, page and saved models. Sites and the command line come on
    # top. So does a third twin of `collaboration/nested`, after that of classes with 13 files, and one of
    # `method/refine/logistic.py`. Losses are made from residuals, and a deviance needs the response.
    "family": (
        "regressor.py",
        "fit/options.py",
        "fit/run.py",
        "loss.py",
        "candidates.py",
        "rows/learners.py",
        "kernels/losses.py",
        "method/fitting.py",
        "method/select.py",
        "method/noise.py",
        "method/exchange.py",
        "method/n_clusters/one_truth.py",
        "method/refine/losses.py",
        "method/refine/refits.py",
        "collaboration/out_of_fold.py",
        "collaboration/nested/resolutions.py",
        "verdicts/gains.py",
        "verdicts/cluster_fit.py",
        "verdicts/admission.py",
        "verdicts/importance.py",
        "verdicts/learning.py",
        "summary.py",
        "_answer.py",
        "report/cards.py",
        "report/summarize.py",
        "report/against.py",
        "report/words.py",
        "report/pictures.py",
        "displays/_base.py",
        "persistence/codec.py",
        "persistence/checks.py",
    ),
    # Models travel by functions of messages, which any carrier may call.
    "carrier": (),
    # The order of the messages is written in each of these, for models and once more for moments.
    "carrier of every message": (
        "cli/share.py",
        "cli/score.py",
        "cli/conclude.py",
        "cli/rounds.py",
        "cli/moments.py",
        "federated/folder.py",
        "flower/carrying.py",
        "flower/client.py",
        "flower/moments.py",
        "flower/server.py",
    ),
    # Numbers, words, their place on the page, the drawing there, and the drawing for a notebook.
    "picture": (
        "report/pictures.py",
        "report/words.py",
        "report/summarize.py",
        "report/charts.py",
        "displays/__init__.py",
    ),
    "rule": ("fit/options.py", "method/search.py"),
}


def no_seam(change: str, refused: type[Exception]) -> pytest.MarkDecorator:
    """Expect that a change has no seam yet: the plug-in's module or option is not there."""
    files = TOUCHED[change]
    reason = f"A new {change} touches {len(files)} files: {', '.join(files)}."
    return pytest.mark.xfail(strict=True, raises=refused, reason=reason)


# A family: a positive response whose spread grows with its mean.


class Gamma:
    """Costs, durations and other positive numbers, by a logarithmic link."""

    name = "gamma"
    n_columns = 1

    def link(self, mean: Any) -> Any:
        return np.log(mean)

    def mean(self, eta: Any) -> Any:
        return np.exp(eta)

    def variance(self, mean: Any) -> Any:
        return mean**2

    def loss(self, y: Any, prediction: Any) -> Any:
        """Return the deviance of each row, of shape (...), from arrays of shape (..., 1)."""
        ratio = y / prediction
        return 2 * (ratio - 1 - np.log(ratio)).sum(axis=-1)

    def moments(self, Z: Any, y: Any, eta: Any) -> tuple[Any, Any, Any]:
        """Return A (d, d), a (d, 1) and the scores' B (d, d) of the quadratic around a fit (n, 1)."""
        mean = self.mean(eta)
        weights = mean**2 / self.variance(mean)
        scores = weights * (y / mean - 1) * Z
        return (weights * Z).T @ Z, (weights * Z).T @ eta + scores.sum(axis=0)[:, None], scores.T @ scores

    def shown(self, mean: Any) -> Any:
        return mean[:, 0]

    def metrics(self, y: Any, prediction: Any) -> Mapping[str, float]:
        return {"gamma deviance": float(self.loss(y, prediction).mean())}


def gamma_rows() -> tuple[Any, Any]:
    """Return predictors and a positive response of three truths."""
    rng = np.random.default_rng(0)
    truths = np.array([LEARNERS.index(learner) % 3 for learner in DATA.groups.tolist()])
    slopes = np.array([[1.0, 0.0], [-1.0, 0.5], [0.0, -1.5]])[truths]
    mean = np.exp(1.0 + (DATA.X * slopes).sum(axis=1))
    return DATA.X, mean * rng.gamma(5.0, 0.2, size=len(mean))


def test_the_family_of_the_plug_in_finds_its_slopes() -> None:
    rng, family = np.random.default_rng(0), Gamma()
    Z = np.column_stack([np.ones(4000), rng.normal(size=(4000, 2))])
    y = (family.mean(Z @ [1.0, 0.5, -0.5]) * rng.gamma(5.0, 0.2, size=4000))[:, None]
    eta = family.link(np.full_like(y, y.mean()))
    for _ in range(20):
        A, a, B = family.moments(Z, y, eta)
        slopes = np.linalg.solve(A, a)
        eta = Z @ slopes
    assert_allclose(slopes[:, 0], [1.0, 0.5, -0.5], atol=0.05)
    assert_allclose(B / A.trace(), A / 5 / A.trace(), atol=0.02)
    assert family.metrics(y, family.mean(eta))["gamma deviance"] < 0.25


@no_seam("family", TypeError)
def test_a_new_family() -> None:
    X, y = gamma_rows()
    model = CoterieRegressor(family=Gamma(), random_state=0).fit(X, y, groups=DATA.groups)
    assert model.n_clusters_ == 3
    predicted = model.predict(X, groups=DATA.groups)
    assert (predicted > 0).all()
    deviance = Gamma().loss(y[:, None], predicted[:, None]).mean()
    assert 0.1 < deviance < 0.3
    assert np.nanmean(model.gains_["error_with"]) < 0.3
    assert "gamma deviance" in str(model)
    assert "gamma deviance" in Report(model).html()


# A carrier: letters that are bytes.


class Letters:
    """Carries bytes between sites that are functions from bytes to bytes."""

    def __init__(self, sites: Mapping[str, Callable[[str, list[bytes]], bytes]]) -> None:
        self.sites, self.carried = sites, 0

    def ask(self, names: Sequence[str], what: str, messages: Sequence[bytes] = ()) -> list[Any]:
        replies = [self.sites[name](what, list(messages)) for name in names]
        assert all(type(letter) is bytes for letter in (*messages, *replies))
        self.carried += sum(map(len, replies)) + len(names) * sum(map(len, messages))
        return [decode(reply) for reply in replies]

    def run(self) -> Conclusion:
        everybody = list(self.sites)
        shares = self.ask(everybody, "share")
        letters = [encode(message) for message in shares]
        asking = coordinate(shares, self.ask(everybody, "score", letters))
        try:
            question = next(asking)
            while True:
                members = [member.site for member in question.members]
                question = asking.send(self.ask(members, "answer", [*letters, encode(question)]))
        except StopIteration as end:
            conclusion: Conclusion = end.value
            return conclusion


def at_site(party: Site) -> Callable[[str, list[bytes]], bytes]:
    """Return what a site does with the bytes that come."""

    def reply(what: str, messages: list[bytes]) -> bytes:
        came: list[Any] = [decode(message) for message in messages]
        if what == "share":
            return encode(share(party))
        return encode(score(party, came) if what == "score" else answer(party, came[:-1], came[-1]))

    return reply


def rows_of(learner: str) -> tuple[Any, Any]:
    mine = DATA.groups == learner
    return DATA.X[mine], DATA.y[mine]


def test_a_new_carrier() -> None:
    parties = {name: make_site(*rows_of(name), site=name, candidates=["ridge"]) for name in LEARNERS}
    carrier = Letters({name: at_site(party) for name, party in parties.items()})
    conclusion = carrier.run()
    shares = [share(party) for party in parties.values()]
    scores = [score(party, shares) for party in parties.values()]
    asked, known = [], conclude(shares, scores)
    while not isinstance(known, Conclusion):
        replies = {member.site: answer(parties[member.site], shares, known) for member in known.members}
        asked.append(Answered(known, replies))
        known = conclude(shares, scores, asked)
    assert encode(conclusion) == encode(known)
    assert len(set(conclusion.labels.values())) == 3
    assert carrier.carried > 0
    assert not TOUCHED["carrier"]


@no_seam("carrier of every message", ImportError)
@pytest.mark.parametrize("sends", ["model", "moments"])
def test_a_carrier_that_knows_no_message(sends: str) -> None:
    from coterie.sites import Coordinator, Site

    sites = {name: Site(*rows_of(name), name=name, sends=sends) for name in LEARNERS}
    coordinator = Coordinator(LEARNERS)
    while coordinator.conclusion is None:
        letters = list(coordinator.letters())
        assert letters
        for name, letter in letters:
            for reply in sites[name].receive(letter):
                coordinator.receive(name, reply)
    assert len(set(coordinator.conclusion.labels.values())) == 3


# A picture: how large the coteries are.


class Sizes:
    """How many learners each coterie has, as one bar for each."""

    name = "sizes"
    heading = "How large the coteries are"

    def numbers(self, summary: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"sizes": [len(coterie["learners"]) for coterie in summary["coteries"]]}

    def drawing(self, numbers: Mapping[str, Any]) -> str:
        """Return an SVG image."""
        bars = [
            f'<rect x="0" y="{20 * place}" width="{10 * size}" height="16"/>'
            for place, size in enumerate(numbers["sizes"])
        ]
        return f'<svg viewBox="0 0 200 {20 * len(bars)}">{"".join(bars)}</svg>'

    def words(self, numbers: Mapping[str, Any]) -> Sequence[str]:
        return [f"The largest coterie has {max(numbers['sizes'])} learners."]


@pytest.fixture(scope="module")
def fitted() -> CoterieRegressor:
    model = CoterieRegressor("linear", n_clusters=3, collaboration="pooled", effort="fast")
    return model.fit(DATA.X, DATA.y, groups=DATA.groups)


def test_the_picture_of_the_plug_in_is_drawn_from_a_summary(fitted: CoterieRegressor) -> None:
    picture = Sizes()
    numbers = picture.numbers(Report(fitted).summary)
    assert sum(numbers["sizes"]) == len(LEARNERS)
    assert picture.drawing(numbers).count("<rect") == 3
    assert picture.words(numbers) == [f"The largest coterie has {max(numbers['sizes'])} learners."]


@no_seam("picture", ImportError)
def test_a_new_picture(fitted: CoterieRegressor) -> None:
    from coterie.tell.pictures import PICTURES

    report = Report(fitted, pictures=[*PICTURES, Sizes()])
    section = next(part for part in report.summary["sections"] if part["id"] == "sizes")
    assert sum(section["data"]["sizes"]) == len(LEARNERS)
    for shown in (Sizes.heading, section["words"][0], Sizes().drawing(section["data"])):
        assert shown in report.html()


# A rule for the number of clusters.


class LargeEigenvalues:
    """As many clusters as the normalised similarity has eigenvalues above a half."""

    name = "large eigenvalues"

    def __call__(self, evidence: Any) -> Curve:
        values = evidence.spectrum.eigenvalues[: evidence.most]
        return Curve(
            rule=self.name,
            n_clusters=np.arange(1, len(values) + 1),
            values=values,
            chosen=max(1, int((values > 0.5).sum())),
            criterion="eigenvalue of the normalised similarity (above a half)",
        )


def test_the_rule_of_the_plug_in_counts_eigenvalues() -> None:
    class Spectrum:
        eigenvalues = np.array([1.0, 0.9, 0.8, 0.1, 0.0])

    class Known:
        spectrum, most = Spectrum(), 4

    curve = LargeEigenvalues()(Known())
    assert curve.chosen == 3
    assert curve.n_clusters.tolist() == [1, 2, 3, 4]


@no_seam("rule", ValueError)
def test_a_new_rule_for_the_number_of_clusters() -> None:
    rule = LargeEigenvalues()
    options: dict[str, Any] = {"collaboration": "pooled", "effort": "fast"}
    model = CoterieRegressor("linear", n_clusters=rule, **options).fit(DATA.X, DATA.y, groups=DATA.groups)
    assert model.partition_.rule == rule.name
    assert model.n_clusters_ == model.partition_.curves[rule.name].chosen == 3
    assert rule.name in Report(model).html()


# What holds for all of them.


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("coterie"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_plug_ins_use_public_names_only() -> None:
    found = list(_imported(Path(__file__)))
    assert found
    assert not [name for name in found if any(part.startswith("_") for part in name.split("."))]


def test_the_files_that_a_change_touches_are_there() -> None:
    files = {file for touched in TOUCHED.values() for file in touched}
    assert not files - set(gates.sources())
