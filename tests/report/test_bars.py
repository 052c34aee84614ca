from coterie.report.bars import bars_of


def section(name, **data):
    return {"id": name, "data": data}


def test_bars_are_cut_into_parts_that_have_names():
    shares, names = [[0.334, 0.666, 0.0]], ["alone", "all", "others"]
    found = bars_of(section("weights", learners=["a"], names=names, shares=shares, alike=False))
    assert [part["name"] for part in found["legend"]] == ["alone", "all"]
    (row,) = found["rows"]
    assert row["said"] == "all: 67%, alone: 33%"
    assert [part["width"] for part in row["parts"]] == [33.4, 66.6]
    # Colours mean coteries: whom predictions come from is grey.
    assert all(part["colour"].startswith("var(--g") for part in found["legend"])


def test_learners_that_take_the_same_have_no_bars():
    data = {"learners": ["a", "b"], "names": ["alone", "all"], "shares": [[0.5, 0.5]] * 2}
    assert bars_of(section("weights", **data, alike=True)) is None


def test_memberships_have_the_colours_of_coteries():
    found = bars_of(section("membership", learners=["a"], membership=[[0.9, 0.1]]))
    assert [part["colour"] for part in found["legend"]] == ["var(--c0)", "var(--c1)"]
    assert bars_of(section("membership", learners=[], membership=[])) is None
    many = bars_of(section("membership", learners=["a"], membership=[[1.0] + [0.0] * 30]))
    assert many["legend"] == []


def test_a_site_s_sources_are_measured_against_the_largest():
    sources = {"learners": ["a", "b"], "weights": [0.8, 0.2]}
    rows = bars_of(section("site", sources=sources))["rows"]
    assert [row["parts"][0]["width"] for row in rows] == [100.0, 25.0]
    assert [row["said"] for row in rows] == ["80%", "20%"]
    assert bars_of(section("site", sources=None)) is None
    assert bars_of({"id": "weights", "data": None}) is None
