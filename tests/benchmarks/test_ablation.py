"""Every part of the search can be switched off, and the page says what that costs."""

from __future__ import annotations

import csv
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "quality" / "ablation"


@pytest.fixture(scope="module")
def bench() -> Any:
    """Return the benchmark's modules by name, and leave nothing of them behind."""
    before, path = dict(sys.modules), list(sys.path)
    names = ("parts", "constants", "settings", "search", "page")
    for name in names:
        sys.modules.pop(name, None)
    sys.path.insert(0, str(FOLDER))
    found = {}
    for name in names:
        spec = spec_from_file_location(name, FOLDER / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        found[name] = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(found[name])
    yield found
    sys.path[:] = path
    for name in names:
        sys.modules.pop(name, None)
        if name in before:
            sys.modules[name] = before[name]


def test_each_part_is_switched_off_and_on_again(bench: Any) -> None:
    names = tuple(part.name for part in bench["parts"].PARTS)
    first = bench["search"].one_draw("how_many", "three truths", "linear", 1, names)
    assert [row["without"] for row in first] == ["the whole", *names]
    assert {row["k"] for row in first} == {3}
    # Nothing stays patched.
    assert bench["search"].one_draw("how_many", "three truths", "linear", 1, names) == first


@pytest.mark.parametrize(
    ("setting", "seed", "part"),
    [
        (("how_many", "AR(1) noise .7, one truth", "linear"), 0, "detection of order"),
        (("how_many", "wild cells of one learner, one truth", "linear"), 0, "wild rows set aside"),
        (("own", "two quadratic truths", "polynomial"), 1, "the learners' family"),
        (("how_many", "one of 10 coefficients differs by .5, 60 rows", "linear"), 0, "test of one truth"),
    ],
)
def test_what_a_part_is_there_for_is_lost_without_it(bench: Any, setting: Any, seed: int, part: str) -> None:
    whole, without = bench["search"].one_draw(*setting, seed, (part,))
    assert float(without["ari"]) < float(whole["ari"]) - 0.2


def test_the_page_names_the_settings_in_which_a_part_matters(bench: Any) -> None:
    page = bench["page"]

    def row(part: str, seed: int, ari: float) -> dict[str, Any]:
        values = ("b", "s", "linear", seed, part, 2, ari, "", 1, 2.0 if seed == 0 else "")
        return dict(zip(bench["search"].COLUMNS, map(str, values), strict=True))

    draws = [row("the whole", seed, 1.0) for seed in range(4)]
    draws += [row("useful", seed, 0.5 + 0.01 * seed) for seed in range(4)]
    draws += [row("useless", seed, 1.0) for seed in range(4)]
    text = page.table(page.changed(page.aggregated(draws)))
    assert "| useful | -0.4850 | 1.00 | s (linear, K unknown): -0.485, s.e. 0.006 |" in text
    assert "| useless | +0.0000 | 1.00 | no setting |" in text


def test_the_committed_table_has_every_part(bench: Any) -> None:
    with open(FOLDER / "results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    measured = {row["without"] for row in rows if row["benchmark"] == "all"}
    assert measured == {part.name for part in bench["parts"].PARTS}
    with open(FOLDER / "deleted.csv", newline="") as file:
        gone = list(csv.DictReader(file))
    assert not measured & {row["without"] for row in gone}
    with open(FOLDER / "constants.csv", newline="") as file:
        varied = list(csv.DictReader(file))
    halved = {row["without"] for row in varied if row["benchmark"] == "all"}
    assert halved == {part.name for part in bench["constants"].VARIED}
    readme = (FOLDER / "README.md").read_text()
    assert bench["page"].numbers(varied) in readme
    assert bench["page"].table(rows) in readme
    assert bench["page"].table(gone) in readme


def test_the_parts_that_are_gone_cost_nothing_beyond_chance(bench: Any) -> None:
    with open(FOLDER / "deleted.csv", newline="") as file:
        text = bench["page"].table(list(csv.DictReader(file)))
    assert all(line.endswith("| no setting |") for line in text.splitlines()[2:])
