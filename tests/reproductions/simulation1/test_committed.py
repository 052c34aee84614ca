"""What the committed numbers of Simulation 1 must show."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from reproductions.harness.cells import column
from reproductions.harness.files import read_results
from reproductions.simulation1.variants import HEADS

RESULTS = Path(__file__).parents[3] / "reproductions" / "simulation1" / "results.csv"
pytestmark = pytest.mark.skipif(not RESULTS.is_file(), reason="reproductions/simulation1 is not there")


@pytest.fixture(scope="module")
def shares():
    """Share of exact recovery by cell and way, and the number of draws behind it."""
    records = read_results(RESULTS)
    cells = {(record["p"], record["snr"]) for record in records}
    return {
        (p, snr): {variant: column(records, f"exact_{variant}", p=p, snr=snr).mean() for variant in HEADS}
        | {"n": len(column(records, "exact_paper", p=p, snr=snr))}
        for p, snr in cells
    }


def noise(*cells, variant="paper"):
    """Two standard errors of a difference of shares."""
    return 2 * np.sqrt(sum(max(c[variant] * (1 - c[variant]), 0.02) / c["n"] for c in cells))


def test_every_cell_of_the_figure_was_run_a_hundred_times(shares):
    assert set(shares) == {(p, 2**e) for p in (5, 10, 20) for e in range(8)}
    assert min(cell["n"] for cell in shares.values()) >= 100


@pytest.mark.parametrize("p", [5, 10, 20])
def test_the_papers_settings_rise_with_snr_and_are_flat_beyond_32(shares, p):
    curve = [shares[p, 2**e] for e in range(8)]
    for low, high in pairwise(curve):
        assert high["paper_2"] >= low["paper_2"] - noise(low, high, variant="paper_2")
    assert curve[-1]["paper"] > curve[0]["paper"] + 0.5
    assert abs(curve[-1]["paper"] - curve[5]["paper"]) < 0.3


def test_a_smaller_p_is_better_at_equal_snr(shares):
    for low, high in ((5, 10), (10, 20)):
        means = [np.mean([shares[p, 2**e]["paper"] for e in range(8)]) for p in (low, high)]
        assert means[0] > means[1]


def test_coteries_defaults_find_the_clusters_at_moderate_noise(shares):
    assert shares[20, 16]["coterie"] >= 0.95
    assert shares[20, 8]["coterie"] >= 0.60


def test_coteries_defaults_are_nowhere_below_the_papers_settings(shares):
    for found in shares.values():
        assert found["coterie"] >= found["paper"] - noise(found, {**found, "paper": found["coterie"]})


def test_nobody_beats_the_oracle(shares):
    for found in shares.values():
        assert found["coterie_2"] <= found["oracle"] + noise(found, variant="oracle")
