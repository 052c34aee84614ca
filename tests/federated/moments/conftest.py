"""Sites that agree on a schema, and what they send."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import pytest

from coterie.datasets import make_linear_learners
from coterie.federated.moments import Column, Schema, open_moments
from coterie.federated.moments.noise import noisy, on_grid, summed
from coterie.federated.moments.pool import unpacked
from coterie.federated.moments.site import bounded_rows
from coterie.federated.tables import Moments, Promise


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("COTERIE_CACHE", str(tmp_path / "cache"))


def make_schema(n_features: int, half: float = 2.0) -> Schema:
    """Return a schema of standard normal columns and a response of such with normal coefficients."""
    most = half * (n_features + 1) ** 0.5
    columns = tuple(Column(f"x{k}", low=-half, high=half) for k in range(n_features))
    return Schema(Column("y", low=-most, high=most), columns)


def packed(halves: Any) -> Any:
    """Return moments (2, q, q) as they stand in a message."""
    places = np.triu_indices(halves.shape[1])
    return tuple(tuple(half[places].tolist()) for half in halves)


@dataclass(frozen=True)
class Drawn:
    """Simulated sites: their data, the rows of each, and what each sent."""

    data: Any
    rows: dict[str, Any]
    messages: list[Moments]
    schema: Schema

    @property
    def sites(self) -> list[str]:
        return self.data.learner_ids.tolist()

    def of(self, site: str) -> tuple[Any, Any]:
        return self.data.X[self.rows[site]], self.data.y[self.rows[site]]


def draw_sites(
    epsilon: float | None = None,
    *,
    n_rows: int = 200,
    n_test: int = 0,
    n_features: int = 3,
    seed: int = 0,
    **more: Any,
) -> Drawn:
    """Draw sites and let them send moments; the noise is drawn from the seed, so that tests repeat."""
    data = make_linear_learners(n_rows=n_rows + n_test, n_features=n_features, random_state=seed, **more)
    schema, below = make_schema(n_features), Random(seed).randrange
    rows, messages = {}, []
    for site in data.learner_ids.tolist():
        rows[site] = np.flatnonzero(data.groups == site)[:n_rows]
        X, y = data.X[rows[site]], data.y[rows[site]]
        if epsilon is None:
            named = {"site": site, "columns": schema.features, "target": "y"}
            messages.append(open_moments(X, y, seed=seed, **named))
            continue
        promise = Promise(epsilon, 1e-6)
        second = np.arange(n_rows) % 2 == 1
        bounded = on_grid(bounded_rows(X, y, schema))
        halves = noisy([summed(bounded[half]) for half in (~second, second)], promise, below)
        messages.append(
            Moments(
                site, n_rows, schema.features, "y", schema.text, packed(halves), promise, {"coterie": "0"}
            )
        )
    assert unpacked(messages[0]).shape == (2, n_features + 2, n_features + 2)
    return Drawn(data, rows, messages, schema)
