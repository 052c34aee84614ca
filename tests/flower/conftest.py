"""Six sites of two truths, on Flower's grid in one process."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

# Before anything of Flower is imported: it reports usage and looks for updates unless it is told not to.
os.environ |= {
    "FLWR_TELEMETRY_ENABLED": "0",
    "FLWR_DISABLE_UPDATE_CHECK": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "FLWR_HOME": os.environ.get("FLWR_HOME") or tempfile.mkdtemp(prefix="coterie-flwr-"),
}

from coterie.datasets import make_linear_learners
from coterie.federated import Site, make_site

SITES = [f"learner {k:02d}" for k in range(6)]


@pytest.fixture(scope="session")
def data() -> Any:
    return make_linear_learners(n_learners=6, n_truths=2, n_rows=40, n_features=3, random_state=0)


@pytest.fixture(scope="session")
def load_site(data: Any) -> Callable[[Any], Site]:
    sites: dict[str, Site] = {}

    def load(context: Any) -> Site:
        # On a real node every round makes the site anew; here once is enough.
        site = context.node_config["site"]
        if site not in sites:
            mine = data.groups == context.node_config.get("rows-of", site)
            assert np.any(mine)
            sites[site] = make_site(data.X[mine], data.y[mine], site=site, candidates=["ridge"])
        return sites[site]

    return load


@pytest.fixture
def configs() -> list[dict[str, Any]]:
    return [{"site": site} for site in SITES]
