"""A site's own page has its verdict, and nobody else's numbers."""

import re
from dataclasses import asdict, replace

import numpy as np
import pytest

from coterie import Report
from coterie._text import number
from coterie.report.site import MOST_SOURCES, mixtures_picture, mixtures_words, site_picture, site_words


@pytest.fixture
def conclusion(conclusion):
    """The first site is told to collaborate."""
    numbers = {"gain": 0.123, "gain_low": 0.05, "gain_high": 0.2, "error_alone": 0.0777}
    told = {"verdict": "collaborate", "reason": "Others are expected to save 12 % of its error."}
    return replace(conclusion, gains=(replace(conclusion.gains[0], **told, **numbers), *conclusion.gains[1:]))


def test_a_site_s_page_says_its_verdict_gain_and_interval(conclusion):
    report = Report(conclusion, site="site 00")
    first = "site 00: collaborate. Others are expected to save 12 % of its error."
    assert report.summary["answer"][0] == first
    words = " ".join(report.summary["sections"][0]["words"])
    assert (
        "The expected gain is 12% of the error alone; with a probability of 90% it lies between 5% and 20%."
        in words
    )
    assert "Root mean squared error on rows not seen: alone 0.279" in words
    html = report.html()
    assert "<h1>site 00: with whom to learn</h1>" in html
    assert first in html
    assert 'class="bars"' in html
    assert "Curve of the rule held-out" in html


def test_a_site_s_page_has_no_other_site_s_numbers(conclusion):
    report = Report(conclusion, site="site 00")
    assert [row["learner"] for row in report.summary["gains"]] == ["site 00"]
    assert [row[0] for row in report.summary["cards"]["rows"]] == ["site 00"]
    text = report.json()
    numbers = ("error_alone", "error_with", "error_all", "gain", "gain_low", "gain_high")
    mine = asdict(conclusion.gains[0])
    for row in conclusion.gains[1:]:
        values = [getattr(row, name) for name in numbers]
        others = {value for value in values if value is not None} - set(mine.values())
        assert not any(repr(value) in text or f">{number(value)} <" in text for value in others)
    assert report.summary["pays"] is None
    assert all(set(each) == {"cluster", "n_learners", "learners"} for each in report.summary["coteries"])


def test_a_site_sees_with_whom_it_learns_and_what_it_takes_from_whom(conclusion):
    data = site_picture(conclusion, "site 00")
    labels = conclusion.labels
    assert data["company"] == [s for s in labels if s != "site 00" and labels[s] == labels["site 00"]]
    sources = data["sources"]
    assert sources["learners"][0] == "site 00"
    assert sources["weights"] == [0.5, 0.3, 0.2]
    words = site_words(data)
    assert words[1].startswith(f"It is in coterie {labels['site 00']}, with site")
    assert "50% from its own model, 30% from the others in its coterie and 20% from other sites" in words[2]
    assert "A line of its own is added" in words[2]


def test_who_is_told_to_stay_alone_takes_from_nobody(conclusion):
    row = replace(conclusion.gains[0], verdict="stay alone")
    alone = replace(conclusion, gains=(row, *conclusion.gains[1:]))
    sources = site_picture(alone, "site 00")["sources"]
    assert sources["learners"] == ["site 00"]
    assert (sources["own"], sources["company"], sources["others"]) == (1.0, 0, 0.0)


def test_from_moments_a_site_learns_at_home_what_others_bring(conclusion):
    nothing = {name: None for name in asdict(conclusion.gains[0]) if re.match("error|gain|membership", name)}
    rows = tuple(
        replace(row, **nothing, reason="By moments; what it brings, the site learns at home.")
        for row in conclusion.gains
    )
    moments = replace(conclusion, gains=rows, mixtures={}, rounds=0)
    common = Report(moments)
    sections = {section["id"]: section for section in common.summary["sections"]}
    assert sections["gains"]["missing"]
    assert "each site learns at home" in sections["gains"]["words"][0]
    assert "weights" not in sections
    assert "concluded from moments that each site sent once" in common.html()
    own = Report(moments, site="site 00")
    assert "the site learns it at home" in own.summary["sections"][0]["words"][2]
    assert 'class="bars"' not in own.html()


def test_a_conclusion_by_losses_alone_says_so(conclusion):
    nothing = {name: None for name in asdict(conclusion.gains[0]) if name.startswith(("error", "gain"))}
    rows = tuple(replace(row, **nothing) for row in conclusion.gains)
    summary = Report(replace(conclusion, gains=rows, rounds=0)).summary
    found = {section["id"]: section for section in summary["sections"]}
    assert "asked for losses only" in found["gains"]["words"][0]


def test_many_sources_are_named_by_weight(conclusion):
    names = [row.learner for row in conclusion.gains]
    crowd = [f"site {place:03d}" for place in range(100)]
    rows = tuple(replace(conclusion.gains[0], learner=name, cluster=0) for name in crowd)
    weights = dict(zip(crowd, (np.arange(100, 0, -1) / 5050).tolist(), strict=True))
    mixture = replace(conclusion.mixtures[names[0]], weights=weights)
    many = replace(
        conclusion, gains=rows, mixtures=dict.fromkeys(crowd, mixture), models=dict.fromkeys(crowd, "0" * 64)
    )
    data = site_picture(many, "site 003")
    assert data["sources"]["learners"] == crowd[:MOST_SOURCES]
    assert "leaves out 60 sites with smaller weights" in site_words(data)[2]
    everybody = mixtures_picture(many)
    assert everybody["left_out"] == 60
    assert "shows 40 sites from both ends" in mixtures_words(everybody)[0]


def test_a_page_of_nobody_is_refused(conclusion, partition):
    with pytest.raises(ValueError, match="has no site 'z'"):
        Report(conclusion, site="z")
    with pytest.raises(ValueError, match="'<far>' was left out: it did not answer"):
        Report(conclusion, site="<far>")
    with pytest.raises(ValueError, match="pass site= with a Conclusion"):
        Report(partition, site="a")
